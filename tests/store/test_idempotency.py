from concurrent.futures import ThreadPoolExecutor

import pytest

from rprime.store import Idempotency, KeyRunningError, Replay, Store, open_store
from rprime.store.insertion import KeyReusedError
from tests.store import samples

BODY = b'{"id":"' + b"x" * 500 + b'"}'


def key(payload: bytes = b"payload", owner: str = "ci", name: str = "key 1") -> Idempotency:
    return Idempotency(owner=owner, key=name, payload=payload, status=201, body=BODY)


def test_a_repeated_key_gets_the_first_answer(store: Store) -> None:
    first = samples.evaluation(1)
    assert samples.put(store, first, idempotency=key()).result().replay is None
    again = samples.put(store, samples.evaluation(2), idempotency=key()).result()
    assert (again.id, again.created) == (first.id, False)
    assert again.replay == Replay(first.id, 201, BODY)
    assert store.replay("ci", "key 1", b"payload") == again.replay
    assert store.count("animals") == 1


def test_a_key_belongs_to_its_owner(store: Store) -> None:
    samples.put(store, samples.evaluation(1), idempotency=key()).result()
    assert (
        samples.put(store, samples.evaluation(2), idempotency=key(owner="other")).result().created
    )
    assert store.replay("nobody", "key 1", b"payload") is None


def test_a_key_with_another_payload_is_refused(store: Store) -> None:
    samples.put(store, samples.evaluation(1), idempotency=key()).result()
    with pytest.raises(KeyReusedError):
        samples.put(store, samples.evaluation(2), idempotency=key(b"other")).result()
    with pytest.raises(KeyReusedError):
        store.replay("ci", "key 1", b"other")
    assert store.count("animals") == 1


def test_simultaneous_requests_with_one_key_make_one_row(store: Store) -> None:
    def put(number: int) -> bool:
        return samples.put(store, samples.evaluation(number), idempotency=key()).result().created

    with ThreadPoolExecutor(16) as pool:
        created = list(pool.map(put, range(64)))
    assert sum(created) == 1
    assert store.count("animals") == 1


def test_another_key_does_not_store_the_same_submission_again(store: Store) -> None:
    first = samples.evaluation(submission=b"same")
    samples.put(store, first, idempotency=key()).result()
    for idempotency in (key(name="key 2"), None):
        new = samples.evaluation(submission=b"same")
        outcome = samples.put(store, new, idempotency=idempotency).result()
        assert (outcome.id, outcome.created, outcome.replay) == (first.id, False, None)


def test_an_answer_is_forgotten_after_a_day(url: str) -> None:
    now = 1_800_000_000_000
    store = open_store(url, clock=lambda: now)
    samples.put(store, samples.evaluation(1), idempotency=key()).result()
    now += 24 * 3600 * 1000 - 1
    assert store.replay("ci", "key 1", b"payload") is not None
    now += 1
    assert store.replay("ci", "key 1", b"payload") is None
    assert samples.put(store, samples.evaluation(2), idempotency=key()).result().created
    assert store.replay("ci", "key 1", b"payload") is not None
    store.close()


def test_a_key_is_held_while_its_request_runs(store: Store) -> None:
    with store.running("ci", "key"):
        with pytest.raises(KeyRunningError), store.running("ci", "key"):
            pass
        with store.running("ci", "another"), store.running("other", "key"):
            pass
    with store.running("ci", "key"):
        pass


def test_a_key_is_free_after_its_request_failed(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.running("ci", "key"):
        raise ZeroDivisionError
    with store.running("ci", "key"):
        pass


def test_a_request_that_holds_its_key_can_store_under_it(store: Store) -> None:
    with store.running("ci", "key 1"):
        assert samples.put(store, samples.evaluation(), idempotency=key()).result(5).created


def test_on_postgresql_two_services_make_one_row_of_one_key(postgresql_url: str) -> None:
    stores = [open_store(postgresql_url) for _ in range(4)]
    futures = [
        samples.put(stores[i % 4], samples.evaluation(i), idempotency=key()) for i in range(64)
    ]
    assert sum(future.result().created for future in futures) == 1
    for opened in stores:
        opened.close()
