from collections.abc import Callable  # noqa: TC003 - as everywhere else
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rprime.store import (
    BaselineQuery,
    Candidate,
    EvaluationMissingError,
    EvaluationSummary,
    Filters,
    InvalidCursorError,
    ProjectMissingError,
    Retention,
    Store,
)
from rprime.store.records import InvalidRecordError, ModelSummary
from tests.store import samples


def put(store: Store, *evaluations: dict[str, Any]) -> list[str]:
    futures = [
        samples.put(store, samples.evaluation(i, **fields)) for i, fields in enumerate(evaluations)
    ]
    return [future.result().id for future in futures]


def listed(store: Store, **filters: Any) -> list[str]:
    return [item.id for item in store.page("animals", Filters(**filters)).items]


def test_the_newest_comes_first(store: Store) -> None:
    ids = put(store, {}, {}, {"project": "plants"}, {})
    assert listed(store) == [ids[3], ids[1], ids[0]]
    assert store.page("nothing here").items == ()


def test_a_summary_says_what_is_known_without_the_evidence(store: Store) -> None:
    fields: dict[str, Any] = {
        "model": "m",
        "version": "1",
        "branch": "b",
        "commit": "c" * 40,
        "tags": ("one", "two"),
        "test_set": "t",
        "fingerprint": samples.FINGERPRINT,
        "verdict": "pass",
        "waived": True,
    }
    [identifier] = put(store, {**fields, "items": samples.kept_items()})
    expected = EvaluationSummary(id=identifier, project="animals", keeps_items=True, **fields)
    assert store.page("animals").items == (expected,)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", "resnet"),
        ("version", "2.0"),
        ("branch", "main"),
        ("test_set", "holdout"),
        ("fingerprint", samples.FINGERPRINT),
        ("verdict", "fail"),
    ],
)
def test_every_filter_selects(store: Store, name: str, value: str) -> None:
    ids = put(store, {name: value}, {name: value + "x"}, {}, {name: value})
    assert listed(store, **{name: value}) == [ids[3], ids[0]]
    assert listed(store, **{name: value.upper() + "?"}) == []


def test_a_short_commit_and_a_fingerprint_are_found(store: Store) -> None:
    commit, other = "01abcdef01ab" + "0" * 28, "01abcdef01ff" + "f" * 28
    ids = put(
        store,
        {"commit": commit, "test_set": "t", "fingerprint": samples.FINGERPRINT},
        {"commit": other, "test_set": samples.FINGERPRINT},
        {"commit": "01ABCDEF01AB", "fingerprint": "cd" * 32},
        {"commit": "01abcdeg"},
    )
    assert listed(store, commit="01abcdef") == [ids[1], ids[0]]
    assert listed(store, commit="01abcdef01f") == [ids[1]]
    assert listed(store, commit=other) == [ids[1]]
    assert listed(store, commit="01abcd") == []
    assert listed(store, test_set=samples.FINGERPRINT) == [ids[1], ids[0]]


def test_filters_add_up(store: Store) -> None:
    ids = put(
        store,
        {"model": "a", "branch": "main"},
        {"model": "b", "branch": "main"},
        {"model": "a", "branch": "dev"},
    )
    assert listed(store, model="a", branch="main") == [ids[0]]


def test_a_tag_is_found_whole_and_exact(store: Store) -> None:
    ids = put(
        store,
        {"tags": ("nightly", "gpu")},
        {"tags": ("Nightly",)},
        {"tags": ("nightly build",)},
        {"tags": ("gpu", 'a"nightly"%_')},
    )
    assert listed(store, tag="nightly") == [ids[0]]
    assert listed(store, tag="gpu") == [ids[3], ids[0]]
    assert listed(store, tag="%") == []
    assert listed(store, tag='a"nightly"%_') == [ids[3]]


def test_since_selects_by_time(store: Store) -> None:
    ids = put(store, {}, {})
    created = store.get(ids[0]).created_at
    assert listed(store, since=created) == ids[::-1]
    assert listed(store, since=created.replace(tzinfo=None) - timedelta(days=1)) == ids[::-1]
    assert listed(store, since=datetime.now(UTC) + timedelta(minutes=1)) == []
    assert listed(store, since=datetime(1900, 1, 1, tzinfo=UTC)) == ids[::-1]


def test_pages_follow_each_other_without_gap_or_overlap(store: Store) -> None:
    ids = put(store, *({"tags": ("even",) if i % 2 == 0 else ()} for i in range(25)))
    identifiers: list[str] = []
    cursor, pages = None, 0
    while True:
        page = store.page("animals", Filters(tag="even"), limit=5, cursor=cursor)
        identifiers += [item.id for item in page.items]
        pages += 1
        cursor = page.next_cursor
        if cursor is None:
            break
        # What is new does not shift the pages that follow.
        put(store, {"tags": ("even",)})
    assert identifiers == ids[::2][::-1]
    assert pages == 3


def test_the_last_page_says_that_it_is(store: Store) -> None:
    put(store, {}, {}, {}, {})
    first = store.page("animals", limit=2)
    second = store.page("animals", limit=2, cursor=first.next_cursor)
    assert first.next_cursor is not None
    assert second.next_cursor is None
    assert len(second.items) == 2


def test_a_page_has_at_most_200(store: Store) -> None:
    put(store, *({} for _ in range(205)))
    assert len(store.page("animals", limit=1000).items) == 200
    assert len(store.page("animals", limit=0).items) == 1


@pytest.mark.parametrize("cursor", ["", "x", "é", "MTIz", "Mg==", "%%%"])
def test_a_cursor_that_no_page_gave_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(InvalidCursorError):
        store.page("animals", cursor=cursor)


@pytest.mark.parametrize("name", ["nul\0", "\ud800", "", "x" * 5000])
def test_names_that_cannot_be_stored_find_nothing(store: Store, name: str) -> None:
    put(store, {"tags": ("t",)})
    looked_up: list[Callable[[], object]] = [
        lambda: store.page(name).items,
        lambda: store.page("animals", Filters(tag=name, model=name)).items,
        lambda: list(store.tables(name)),
        lambda: store.aliases(name),
        lambda: (
            store.baseline(Candidate("animals", name), BaselineQuery("branch", name)).evaluation
        ),
        lambda: store.looks(name, name),
        lambda: store.get(name),
        lambda: store.delete_project(name),
        lambda: store.delete(name),
        lambda: store.replay(name, name, b"p"),
        lambda: store.purge(name, Retention()).deleted,
    ]
    for look_up in looked_up:
        with suppress(InvalidRecordError, EvaluationMissingError, ProjectMissingError):
            assert not look_up()


def test_a_list_is_of_the_evaluations_that_are_named(store: Store) -> None:
    ids = put(store, {}, {}, {"project": "plants"}, {})
    assert listed(store, ids=(ids[0], ids[2], ids[3])) == [ids[3], ids[0]]
    assert listed(store, ids=()) == []


def test_models_and_branches_are_listed(store: Store) -> None:
    ids = put(
        store,
        {"model": "a", "branch": "main"},
        {"model": "b", "branch": "dev"},
        {"model": "a"},
        {},
        {"model": "c", "branch": "x", "project": "plants"},
    )
    assert store.models("animals") == (
        ModelSummary(name=None, evaluations=1, newest=ids[3]),
        ModelSummary(name="a", evaluations=2, newest=ids[2]),
        ModelSummary(name="b", evaluations=1, newest=ids[1]),
    )
    assert store.branches("animals") == ("dev", "main")
    assert store.models("nothing here") == ()
    assert store.branches("nothing here") == ()
