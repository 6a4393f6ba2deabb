from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from rprime.store import (
    EvaluationMissingError,
    Filters,
    LookMovedError,
    Store,
    Stored,
    StoreHealth,
    new_id,
    packing,
)
from rprime.store.errors import StoreClosedError, StoreDamagedError
from rprime.store.insertion import EvaluationExistsError
from rprime.store.records import InvalidRecordError
from rprime.store.schema import slices
from tests.store import samples


def test_what_was_put_is_given_back(store: Store) -> None:
    evaluation = samples.evaluation(
        model="resnet",
        branch="main",
        commit="a" * 40,
        tags=("nightly", "gpu 1"),
        test_set="holdout",
        fingerprint=samples.FINGERPRINT,
        options=b'{"beta":2.0}',
        source=b'{"run":"https://ci.example/1"}',
        gate=b'{"verdict":"fail","results":[' + b'{"rule":"accuracy.max_drop"},' * 40 + b"{}]}",
        comparison=b'{"why":"\xc3\xbc"}',
        extras=b"[1.5,null]",
        verdict="fail",
        waived=True,
    )
    assert samples.put(store, evaluation).result().id == evaluation.id
    stored = store.get(evaluation.id)
    names = {field.name for field in fields(evaluation)} - {
        "table",
        "items",
        "scores",
        "slices",
        "submission",
        "look",
    }
    for name in names:
        assert getattr(stored, name) == getattr(evaluation, name), name
    assert samples.same_table(stored.table, evaluation.table)
    assert stored.keeps_items is False
    assert abs(stored.created_at - datetime.now(UTC)) < timedelta(minutes=1)


def test_what_was_left_out_is_none(store: Store) -> None:
    evaluation = samples.evaluation(version=None)
    samples.put(store, evaluation).result()
    stored = store.get(evaluation.id)
    assert (stored.version, stored.tags, stored.fingerprint, stored.gate) == (None, (), None, None)


def test_items_are_kept_apart(store: Store) -> None:
    kept = samples.kept_items()
    evaluation = samples.evaluation(items=kept)
    samples.put(store, evaluation).result()
    assert store.get(evaluation.id).keeps_items
    items = store.items(evaluation.id)
    assert items is not None
    assert samples.same_items(items, kept)


def test_columns_of_slices_are_kept_with_the_items(store: Store) -> None:
    evaluation = samples.evaluation(**samples.sliced())
    samples.put(store, evaluation).result()
    assert evaluation.items is not None
    assert evaluation.slices is not None
    sliced = store.sliced_items(evaluation.id)
    assert sliced is not None
    assert samples.same_items(sliced[0], evaluation.items)
    assert samples.same_columns(evaluation.slices.columns, sliced[1])
    for less in ({"items": None}, {"slices": None}):
        other = samples.evaluation(**samples.sliced() | less)
        samples.put(store, other).result()
        unsliced = store.sliced_items(other.id)
        assert unsliced is None or unsliced[1] == {}


def test_there_may_be_no_items(store: Store) -> None:
    evaluation = samples.evaluation()
    samples.put(store, evaluation).result()
    assert store.items(evaluation.id) is None


def test_what_is_drawn_of_scores_is_kept_apart_and_counted(store: Store) -> None:
    kept = samples.score_summary()
    evaluation = samples.evaluation(scores=kept)
    samples.put(store, evaluation).result()
    assert samples.same_scores(kept, store.scores(evaluation.id))
    (project,) = store.projects()
    assert project.bytes > len(packing.pack_scores(kept))
    store.delete(evaluation.id)
    assert store.scores(evaluation.id) is None
    assert store.projects() == ()


def test_slices_are_kept_apart_and_counted(store: Store) -> None:
    evaluation = samples.evaluation(slices=samples.slices())
    assert evaluation.slices is not None
    samples.put(store, evaluation).result()
    samples.put(store, samples.evaluation(1)).result()
    stored = store.get(evaluation.id)
    assert samples.same_slices(evaluation.slices, store.slices(stored))
    crossing = (("device", "w=b"), ("region", "US"))
    part = store.slices(stored, crossing)
    assert part is not None
    assert part.names == ({"region": "US", "device": "w=b"},)
    assert np.array_equal(part.tables.cells.counts[0], evaluation.slices.tables.cells.counts[7])
    assert store.slices(stored, (("region", "Asia"),)) is None
    assert store.slices(store.get(store.page("animals").items[0].id)) is None
    assert store.slice_names("animals") == evaluation.slices.names
    assert store.slice_names("animals", Filters(version="1.1")) == ()
    before = store.projects()[0].bytes
    store.delete(evaluation.id)
    assert store.slices(stored) is None
    assert before - store.projects()[0].bytes > evaluation.slices.tables.cells.counts.nbytes / 8


def test_a_changed_slice_is_damage(store: Store) -> None:
    evaluation = samples.evaluation(slices=samples.slices())
    samples.put(store, evaluation).result()
    stored = store.get(evaluation.id)
    contents = store.database.read(lambda c: c.execute(select(slices)).all())
    for column, value in (("content", contents[1].content), ("name", b'{"region":"UK"}')):
        write = slices.update().where(slices.c.key == contents[0].key).values({column: value})
        store.write(lambda c: c.execute(write).rowcount)  # noqa: B023 (what no code does)
        with pytest.raises(StoreDamagedError):
            store.slices(stored)
        with pytest.raises(StoreDamagedError):  # from now on nothing is stored
            store.delete(evaluation.id)
        store.database.health = StoreHealth()
        write = slices.update().where(slices.c.key == contents[0].key)
        write = write.values(content=contents[0].content, name=contents[0].name)
        store.write(lambda c: c.execute(write).rowcount)  # noqa: B023 (as above)
        assert samples.same_slices(samples.slices(), store.slices(stored))


def test_what_is_missing_is_said(store: Store) -> None:
    with pytest.raises(EvaluationMissingError):
        store.get(new_id())
    with pytest.raises(EvaluationMissingError):
        store.delete(new_id())


def test_deleting_takes_the_items_along(store: Store) -> None:
    evaluation = samples.evaluation(items=samples.kept_items())
    samples.put(store, evaluation).result()
    store.delete(evaluation.id)
    assert store.items(evaluation.id) is None
    with pytest.raises(EvaluationMissingError):
        store.get(evaluation.id)


def test_looks_are_counted_for_each_test_set(store: Store) -> None:
    results = [
        samples.put(store, samples.evaluation(i, fingerprint=samples.FINGERPRINT)).result().look
        for i in range(3)
    ]
    other = samples.put(store, samples.evaluation(9, fingerprint="another")).result()
    elsewhere = samples.put(
        store, samples.evaluation(9, project="plants", fingerprint=samples.FINGERPRINT)
    ).result()
    none = samples.put(store, samples.evaluation(10)).result()
    assert (results, other.look, elsewhere.look, none.look) == ([1, 2, 3], 1, 1, None)
    assert store.looks("animals", samples.FINGERPRINT) == 3


def test_the_same_predictions_again_are_no_new_look(store: Store) -> None:
    def look(number: int, **members: Any) -> int | None:
        content = {"fingerprint": samples.FINGERPRINT, **members}
        return samples.put(store, samples.evaluation(number, **content)).result().look

    def following(number: int) -> int:
        return store.next_look("animals", samples.FINGERPRINT, samples.digest(number))

    assert [following(1), look(1), following(1), look(1), look(2)] == [1, 1, 1, 1, 2]
    # Judged again after others, it has the stricter level of the last look.
    assert [following(1), look(1, look=2), following(3), look(3)] == [2, 2, 3, 3]
    # Another test set, and another project.
    assert [look(1, fingerprint="another"), look(1, project="plants")] == [1, 1]
    with pytest.raises(LookMovedError):
        look(1, look=4)
    assert store.looks("animals", samples.FINGERPRINT) == 3


def test_the_same_predictions_twice_in_a_batch_are_one_look(store: Store) -> None:
    numbers = (1, 1, 2, 1)
    batch = [samples.evaluation(n, fingerprint=samples.FINGERPRINT) for n in numbers]
    outcomes = store.put_many([store.pack(new) for new in batch]).result()
    assert [outcome.look for outcome in outcomes if isinstance(outcome, Stored)] == [1, 1, 2, 2]


def test_a_deleted_evaluation_was_still_a_look(store: Store) -> None:
    evaluation = samples.evaluation(fingerprint=samples.FINGERPRINT)
    samples.put(store, evaluation).result()
    store.delete(evaluation.id)
    assert store.looks("animals", samples.FINGERPRINT) == 1


def test_two_gates_never_spend_the_same_look(store: Store) -> None:
    def judged(number: int) -> int:
        evaluation = samples.evaluation(number, fingerprint=samples.FINGERPRINT)
        look = store.looks("animals", samples.FINGERPRINT) + 1
        while True:
            try:
                stored = samples.put(
                    store,
                    samples.evaluation(
                        number, fingerprint=samples.FINGERPRINT, look=look, id=evaluation.id
                    ),
                ).result()
            except LookMovedError as exc:
                look = exc.look
            else:
                assert stored.look == look
                return look

    with ThreadPoolExecutor(8) as pool:
        spent = list(pool.map(judged, range(40)))
    assert sorted(spent) == list(range(1, 41))


def test_the_same_submission_is_stored_once(store: Store) -> None:
    first = samples.evaluation(submission=b"all that matters", fingerprint="f")
    again = samples.evaluation(submission=b"all that matters", fingerprint="f")
    other = samples.evaluation(submission=b"something else")
    elsewhere = samples.evaluation(submission=b"all that matters", project="plants")
    assert samples.put(store, first).result().created
    repeated = samples.put(store, again).result()
    assert (repeated.id, repeated.created, repeated.look) == (first.id, False, None)
    assert samples.put(store, other).result().created
    assert samples.put(store, elsewhere).result().created
    assert store.looks("animals", "f") == 1


def test_simultaneous_same_submissions_are_stored_once(store: Store) -> None:
    futures = [samples.put(store, samples.evaluation(submission=b"same")) for _ in range(16)]
    results = [future.result() for future in futures]
    assert sum(result.created for result in results) == 1
    assert len({result.id for result in results}) == 1


def test_an_id_is_taken_once_and_the_neighbours_do_not_suffer(store: Store) -> None:
    taken = samples.evaluation(0)
    samples.put(store, taken).result()
    futures = [samples.put(store, samples.evaluation(i)) for i in range(8)]
    refused = samples.put(store, samples.evaluation(9, id=taken.id))
    futures += [samples.put(store, samples.evaluation(i)) for i in range(8)]
    with pytest.raises(EvaluationExistsError):
        refused.result()
    assert all(future.result().created for future in futures)
    assert store.count("animals") == 17


def test_what_became_of_each_is_told_in_the_order_of_a_batch(store: Store) -> None:
    taken, same = samples.evaluation(0), samples.evaluation(1, submission=b"same")
    samples.put(store, taken).result()
    batch = [
        same,
        samples.evaluation(2, fingerprint="f", look=7),
        samples.evaluation(3, submission=b"same"),
        samples.evaluation(4, id=taken.id),
        samples.evaluation(5, fingerprint="f", look=1),
    ]
    first, moved, again, refused, last = store.put_many(list(map(store.pack, batch))).result()
    assert first == Stored(same.id, created=True)
    assert isinstance(moved, LookMovedError)
    assert moved.look == 1
    assert again == Stored(same.id, created=False)
    assert isinstance(refused, EvaluationExistsError)
    assert last == Stored(batch[-1].id, created=True, look=1)
    assert store.count("animals") == 3


def test_a_batch_may_be_large(store: Store) -> None:
    evaluation = samples.evaluation()
    batch = [store.pack(replace(evaluation, id=new_id())) for _ in range(1600)]
    assert all(isinstance(outcome, Stored) for outcome in store.put_many(batch).result())
    assert store.count("animals") == 1600


@pytest.mark.parametrize(
    "wrong",
    [
        {"project": ""},
        {"project": "x" * 256},
        {"version": "a\nb"},
        {"tags": ("fine", "nul\0")},
        {"branch": "\ud800"},
        {"id": "not an id"},
    ],
)
def test_names_that_no_database_could_hold_are_refused(store: Store, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRecordError):
        samples.put(store, samples.evaluation(**wrong))


def test_all_that_waits_is_written_before_closing(store: Store) -> None:
    futures = [samples.put(store, samples.evaluation(i)) for i in range(100)]
    store.close()
    assert all(future.done() and future.result().created for future in futures)
    with pytest.raises(StoreClosedError):
        samples.put(store, samples.evaluation())


def test_many_threads_write_and_read_at_once(store: Store) -> None:
    def work(number: int) -> None:
        evaluation = samples.evaluation(number)
        samples.put(store, evaluation).result()
        assert store.get(evaluation.id).version == evaluation.version
        store.page("animals")

    with ThreadPoolExecutor(16) as pool:
        done, _ = wait([pool.submit(work, i) for i in range(200)])
    assert not [future.exception() for future in done if future.exception()]
    assert store.count("animals") == 200
