from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from rprime.store import is_id, new_id
from rprime.store.ids import _Sequence, created_at, creation_times, first_id


def test_ids_sort_in_the_order_in_which_they_were_made() -> None:
    made = [new_id() for _ in range(2000)]
    assert made == sorted(made)
    assert len(set(made)) == 2000
    assert all(map(is_id, made))


def test_threads_never_make_the_same_id() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: new_id(), range(5000)))
    assert len(set(made)) == 5000


def test_a_clock_set_back_does_not_disturb_the_order() -> None:
    sequence = _Sequence()
    made = [sequence.following(moment) for moment in (5000, 5000, 10, 4999, 5001, 3)]
    assert made == sorted(made)


def test_an_id_tells_its_time() -> None:
    assert abs(created_at(new_id()) - datetime.now(UTC)) < timedelta(seconds=10)


def test_the_first_id_of_a_moment_stands_before_all_of_it() -> None:
    moment = datetime(2030, 5, 6, 7, 8, 9, 123_000, UTC)
    assert created_at(first_id(moment)) == moment
    assert first_id(moment - timedelta(milliseconds=1)) < first_id(moment)
    assert first_id(moment.replace(tzinfo=None)) == first_id(moment)


def test_other_text_is_no_id() -> None:
    made = new_id()
    for text in ("", made[:-1], made + "0", made.upper(), "z" * 26, made[:-1] + "u", made + "\n"):
        assert not is_id(text)


def test_many_ids_tell_their_times_as_each_does() -> None:
    identifiers = [new_id(), first_id(datetime(1970, 1, 1, tzinfo=UTC))]
    identifiers.append(first_id(datetime(2099, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)))
    expected = [created_at(identifier).replace(tzinfo=None) for identifier in identifiers]
    assert creation_times(identifiers) == expected
    assert creation_times([]) == []
