from typing import Any

import pytest

from rprime.store import BaselineQuery, Expected, Store
from tests.store import samples


def stored(store: Store, **given: Any) -> str:
    return store.put(samples.evaluation(**given)).result().id


def resolved(store: Store, by: Any, name: str) -> tuple[str | None, str]:
    baseline = store.baseline("animals", BaselineQuery(by, name))
    found = baseline.evaluation
    return None if found is None else found.id, baseline.why


def test_by_alias(store: Store) -> None:
    one = stored(store)
    store.put_alias("animals", "champion", evaluation=one, expected=Expected(absent=True))
    assert resolved(store, "alias", "champion") == (one, "The alias champion points at it.")


def test_by_version_it_is_the_newest(store: Store) -> None:
    stored(store, version="1.0")
    newest = stored(store, version="1.0", verdict="fail")
    stored(store, version="2.0")
    stored(store, version="1.0", project="plants")
    assert resolved(store, "version", "1.0")[0] == newest


def test_by_branch_failed_and_waived_ones_are_skipped(store: Store) -> None:
    stored(store, branch="main", verdict="pass")
    good = stored(store, branch="main")
    stored(store, branch="main", verdict="fail")
    stored(store, branch="main", verdict="pass", waived=True)
    stored(store, branch="feature", verdict="pass")
    found, why = resolved(store, "branch", "main")
    assert found == good
    assert "2 newer skipped" in why


@pytest.mark.parametrize("verdict", ["pass", "inconclusive", "no_rules", None])
def test_by_branch_whatever_did_not_fail_will_do(store: Store, verdict: str | None) -> None:
    one = stored(store, branch="main", verdict=verdict)
    assert resolved(store, "branch", "main")[0] == one


def test_by_id_within_the_project(store: Store) -> None:
    one, elsewhere = stored(store), stored(store, project="plants")
    assert resolved(store, "evaluation", one)[0] == one
    assert resolved(store, "evaluation", elsewhere)[0] is None
    assert resolved(store, "evaluation", "nonsense")[0] is None


def test_what_cannot_be_found_says_why(store: Store) -> None:
    stored(store, branch="broken", verdict="fail")
    why = {by: resolved(store, by, "x") for by in ("alias", "version", "branch", "evaluation")}
    assert why == {
        "alias": (None, "The project has no alias x."),
        "version": (None, "The project has no evaluation of version x."),
        "branch": (None, "The project has no evaluation on branch x."),
        "evaluation": (None, "The project has no evaluation with this id."),
    }
    assert resolved(store, "branch", "broken") == (
        None,
        "All 1 evaluations on branch broken failed or were waived.",
    )
