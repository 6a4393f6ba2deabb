from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from rprime.schemas.history import ProjectEntry
from rprime.store import Expected, Idempotency, ProjectMissingError, Retention, Store
from rprime.store.ids import first_id
from rprime.store.schema import metadata, shared
from tests.store import samples


def fill(store: Store, number: int, project: str = "animals") -> list[str]:
    futures = [samples.put(store, samples.evaluation(i, project=project)) for i in range(number)]
    return [future.result().id for future in futures]


def aged(number: int, days: float) -> str:
    """Return an id as it was made some days ago."""
    return first_id(datetime.now(UTC) - timedelta(days=days))[:20] + f"{number:06}"


def test_projects_are_listed_with_their_counts(store: Store) -> None:
    animals, plants = fill(store, 3), fill(store, 1, "plants")
    store.put_settings("plants", badge_public=True)
    store.put_settings("empty", badge_public=False)
    projects = store.projects()
    sizes = {project.name: project.bytes for project in projects}
    assert sizes["animals"] > sizes["plants"] > sizes["empty"] == 0
    assert [project.model_copy(update={"bytes": 0}) for project in projects] == [
        ProjectEntry(
            name="animals",
            evaluations=3,
            newest=animals[-1],
            bytes=0,
            badge_public=False,
            keeps_slices=True,
        ),
        ProjectEntry(
            name="empty", evaluations=0, newest=None, bytes=0, badge_public=False, keeps_slices=True
        ),
        ProjectEntry(
            name="plants",
            evaluations=1,
            newest=plants[0],
            bytes=0,
            badge_public=True,
            keeps_slices=True,
        ),
    ]


def test_a_badge_is_public_only_when_it_was_made_so(store: Store) -> None:
    assert not store.setting("animals", "badge_public")
    assert store.setting("animals", "keeps_slices")
    store.put_settings("animals", badge_public=True, keeps_slices=True)
    store.put_settings("animals", keeps_slices=False)
    assert store.setting("animals", "badge_public")
    assert not store.setting("animals", "keeps_slices")
    store.put_settings("animals", badge_public=False)
    assert not store.setting("animals", "badge_public")


def test_deleting_a_project_leaves_nothing_of_it(store: Store) -> None:
    key = Idempotency(owner="ci", key="k", payload=b"p", status=201, body=b"{}")
    evaluation = samples.evaluation(
        fingerprint="f", items=samples.kept_items(), labels=("a", "b", "c"), options=b'{"x":1}'
    )
    samples.put(store, evaluation, idempotency=key).result()
    store.put_alias("animals", "main", evaluation=evaluation.id, expected=Expected(absent=True))
    store.put_settings("animals", badge_public=True)
    other = fill(store, 2, "plants")
    assert store.delete_project("animals") == 1
    assert store.replay("ci", "k", b"p") is None
    assert store.delete_project("plants") == 2
    assert other
    left = store.database.read(
        lambda c: {
            t.name: c.scalar(select(func.count()).select_from(t)) for t in metadata.tables.values()
        }
    )
    assert set(left.values()) == {0}
    with pytest.raises(ProjectMissingError):
        store.delete_project("animals")


def test_a_purge_keeps_the_last_ones(store: Store) -> None:
    ids = fill(store, 10)
    fill(store, 2, "plants")
    planned = store.purge("animals", Retention(keep_last=3), dry_run=True)
    assert (planned.deleted, planned.kept, planned.aliased) == (7, 3, 0)
    assert store.count("animals") == 10
    purged = planned.model_copy(update={"dry_run": False})
    assert store.purge("animals", Retention(keep_last=3)) == purged
    assert [item.id for item in store.page("animals").items] == ids[:-4:-1]
    assert store.count("plants") == 2


def test_a_purge_keeps_the_last_ones_of_each_model(store: Store) -> None:
    models = ["svc", None, "knn", "svc", "svc", None, "svc", "rare"]
    ids = [
        samples.put(store, samples.evaluation(number, model=model)).result().id
        for number, model in enumerate(models)
    ]
    assert store.purge("animals", Retention(keep_last=2)).deleted == 2
    kept = {item.id for item in store.page("animals").items}
    assert kept == set(ids) - {ids[0], ids[3]}


def test_a_purge_keeps_what_an_alias_points_at(store: Store) -> None:
    ids = fill(store, 5)
    store.put_alias("animals", "main", evaluation=ids[0], expected=Expected(absent=True))
    done = store.purge("animals", Retention(keep_last=1))
    assert (done.deleted, done.kept, done.aliased) == (3, 2, 1)
    assert {item.id for item in store.page("animals").items} == {ids[0], ids[4]}


def test_a_purge_keeps_what_is_new(store: Store) -> None:
    old = [samples.evaluation(i, id=aged(i, days=10)) for i in range(4)]
    for evaluation in old:
        samples.put(store, evaluation).result()
    new = fill(store, 2)
    assert store.purge("animals", Retention(newer_than_days=30), dry_run=True).deleted == 0
    both = Retention(keep_last=3, newer_than_days=5)
    assert store.purge("animals", both).deleted == 3
    assert {item.id for item in store.page("animals").items} == {*new, old[-1].id}


def test_a_purge_that_keeps_more_than_there_are_deletes_nothing(store: Store) -> None:
    fill(store, 3)
    assert store.purge("animals", Retention(keep_last=100)).deleted == 0


def test_a_purge_of_many_goes_in_steps_and_drops_what_nobody_uses(store: Store) -> None:
    futures = [
        samples.put(store, samples.evaluation(i, options=b'{"beta":%d}' % (i % 7)))
        for i in range(600)
    ]
    for future in futures:
        future.result()
    assert store.purge("animals", Retention(keep_last=1)).deleted == 599
    left = store.database.read(lambda c: c.scalar(select(func.count()).select_from(shared)))
    assert left == 2
    assert store.get(store.page("animals").items[0].id).options == b'{"beta":%d}' % (599 % 7)
