from concurrent.futures import ThreadPoolExecutor

import pytest

from rprime.store import (
    AliasChangedError,
    EvaluationMissingError,
    Expected,
    Retention,
    Store,
    new_id,
)
from rprime.store.aliases import AliasMissingError
from rprime.store.evaluations import EvaluationAliasedError
from rprime.store.records import InvalidRecordError
from tests.store import samples

NEW = Expected(absent=True)
ANY = Expected()


def stored(store: Store, number: int = 0, project: str = "animals") -> str:
    return samples.put(store, samples.evaluation(number, project=project)).result().id


def test_an_alias_is_made_moved_and_deleted(store: Store) -> None:
    first, two = stored(store, 1), stored(store, 2)
    made = store.put_alias("animals", "champion", evaluation=first, expected=NEW)
    assert made.created
    assert store.alias("animals", "champion") == made.alias
    moved = store.put_alias(
        "animals", "champion", evaluation=two, expected=Expected([made.alias.etag])
    )
    assert not moved.created
    assert moved.alias.etag != made.alias.etag
    assert store.aliases("animals") == (moved.alias,)
    assert store.aliases("plants") == ()
    store.delete_alias("animals", "champion", expected=Expected([moved.alias.etag]))
    with pytest.raises(AliasMissingError):
        store.alias("animals", "champion")


def pointed(store: Store, name: str = "champion") -> list[tuple[str | None, str | None]]:
    """Return what an alias pointed at, newest first, and who changed it."""
    return [(c.evaluation, c.by) for c in store.alias_changes("animals", name)]


def test_every_change_of_an_alias_is_kept(store: Store) -> None:
    first, two = stored(store, 1), stored(store, 2)
    assert pointed(store) == []
    store.put_alias("animals", "champion", evaluation=first, expected=NEW, by="ci")
    moved = store.put_alias("animals", "champion", evaluation=two, expected=ANY).alias
    # The same once more is no change, and it points there since the first time.
    again = store.put_alias("animals", "champion", evaluation=two, expected=ANY, by="x").alias
    assert (again.updated_at, again.etag != moved.etag) == (moved.updated_at, True)
    store.delete_alias("animals", "champion", expected=ANY, by="eve")
    store.put_alias("animals", "champion", evaluation=first, expected=NEW, by="ci")
    assert pointed(store) == [(first, "ci"), (None, "eve"), (two, None), (first, "ci")]
    times = [change.changed_at for change in store.alias_changes("animals", "champion")]
    assert times == sorted(times, reverse=True)
    newest = store.alias_changes("animals", "champion", limit=1)
    assert [(c.evaluation, c.version) for c in newest] == [(first, store.get(first).version)]
    assert newest[0].changed_at == store.alias("animals", "champion").updated_at
    assert (
        store.alias_changes("animals", "other") == store.alias_changes("plants", "champion") == ()
    )


def test_a_deleted_evaluation_disappears_from_the_changes(store: Store) -> None:
    first, two, three = (stored(store, number) for number in range(3))
    for target in (first, two, three):
        store.put_alias("animals", "champion", evaluation=target, expected=ANY)
    store.delete(two)
    assert pointed(store) == [(three, None), (first, None)]
    store.purge("animals", Retention(keep_last=1))
    assert pointed(store) == [(three, None)]
    store.delete_project("animals")
    assert pointed(store) == []


def test_of_the_changes_the_newest_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rprime.store.aliases.MOST_CHANGES", 3)
    ids = [stored(store, number) for number in range(5)]
    for target in ids:
        store.put_alias("animals", "champion", evaluation=target, expected=ANY)
    assert [target for target, _ in pointed(store)] == ids[:1:-1]


def test_an_alias_that_changed_is_not_overwritten(store: Store) -> None:
    identifier = stored(store)
    made = store.put_alias("animals", "main", evaluation=identifier, expected=NEW).alias
    again = store.put_alias("animals", "main", evaluation=identifier, expected=ANY).alias
    for expected in (NEW, Expected([made.etag]), Expected([])):
        with pytest.raises(AliasChangedError) as caught:
            store.put_alias("animals", "main", evaluation=identifier, expected=expected)
        assert caught.value.current == again
    with pytest.raises(AliasChangedError):
        store.delete_alias("animals", "main", expected=Expected([made.etag]))
    assert not store.put_alias(
        "animals", "main", evaluation=identifier, expected=Expected("*")
    ).created


def test_an_alias_that_has_to_be_there_is_not_made(store: Store) -> None:
    identifier = stored(store)
    with pytest.raises(AliasChangedError) as caught:
        store.put_alias("animals", "main", evaluation=identifier, expected=Expected("*"))
    assert caught.value.current is None
    with pytest.raises(AliasChangedError):
        store.delete_alias("animals", "main", expected=Expected("*"))
    with pytest.raises(AliasMissingError):
        store.delete_alias("animals", "main", expected=ANY)


def test_an_etag_does_not_come_back_with_the_alias(store: Store) -> None:
    identifier = stored(store)
    first = store.put_alias("animals", "main", evaluation=identifier, expected=NEW).alias
    store.delete_alias("animals", "main", expected=ANY)
    second = store.put_alias("animals", "main", evaluation=identifier, expected=NEW).alias
    assert first.etag != second.etag


def test_an_alias_stays_within_its_project(store: Store) -> None:
    elsewhere = stored(store, project="plants")
    for target in (elsewhere, new_id(), "nonsense"):
        with pytest.raises(EvaluationMissingError):
            store.put_alias("animals", "main", evaluation=target, expected=NEW)
    with pytest.raises(InvalidRecordError):
        store.put_alias("plants", "a\nb", evaluation=elsewhere, expected=NEW)


def test_an_aliased_evaluation_is_not_deleted(store: Store) -> None:
    identifier = stored(store)
    for name in ("main", "champion"):
        store.put_alias("animals", name, evaluation=identifier, expected=NEW)
    with pytest.raises(EvaluationAliasedError) as caught:
        store.delete(identifier)
    assert caught.value.names == ("champion", "main")
    for name in caught.value.names:
        store.delete_alias("animals", name, expected=ANY)
    store.delete(identifier)


def test_of_simultaneous_changes_one_wins(store: Store) -> None:
    identifier = stored(store)
    first = store.put_alias("animals", "main", evaluation=identifier, expected=NEW).alias

    def move(_: int) -> bool:
        try:
            store.put_alias(
                "animals", "main", evaluation=identifier, expected=Expected([first.etag])
            )
        except AliasChangedError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(move, range(32))) == 1


def test_deleting_and_aliasing_at_once_never_leaves_a_dangling_alias(store: Store) -> None:
    def race(number: int) -> None:
        target = stored(store, number)
        with ThreadPoolExecutor(2) as pool:
            doomed = pool.submit(store.delete, target)
            pointed = pool.submit(
                store.put_alias, "animals", str(number), evaluation=target, expected=NEW
            )
        lost = isinstance(doomed.exception(), EvaluationAliasedError)
        assert lost != isinstance(pointed.exception(), EvaluationMissingError)

    for number in range(20):
        race(number)
    for alias in store.aliases("animals"):
        assert store.get(alias.evaluation).id == alias.evaluation
