"""A comparison names the items that a candidate lacks, also against what is stored."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.history_service import Json, ServeApp, keeping
from tests.http.column_bodies import as_csv, send

N = 400
TRUE = np.where(np.arange(N) % 10, "a", "b")
REGION = np.where(np.arange(N) % 4, "US", "EU")


@pytest.fixture
def store(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


def kept(
    store: httpx.Client,
    version: str,
    chosen: Any = slice(None),
    true: Any = TRUE,
    region: Any = REGION,
    **more: object,
) -> Json:
    """Evaluate and keep some of the items; every ninth prediction is wrong."""
    predicted = np.where(np.arange(N) % 9, TRUE, "c")
    columns = {
        "item_id": np.array([f"i{i}" for i in range(N)])[chosen],
        "y_true": true[chosen],
        "y_pred": predicted[chosen],
        "slice:region": region[chosen],
    }
    options = {"project": "pets", "model": "m", "version": version, "labels": ["a", "b", "c"]}
    response = send(store, "csv", as_csv(columns), options | more)
    assert response.status_code == 201, response.text
    report: Json = response.json()
    return report


def compared(store: httpx.Client, candidate: Json, baseline: Json, **more: object) -> Json:
    sides = {"candidate": candidate, "baseline": baseline}
    body = {name: {"evaluation": side["id"]} for name, side in sides.items()}
    response = store.post("/v1/compare", json=body | more)
    assert response.status_code == 200, response.text
    report: Json = response.json()
    return report


LOST = np.flatnonzero((TRUE != "b") | (np.arange(N) < 200))
"""Half of the items of class b are missing: 20, of which 10 are of the slice EU."""


def test_stored_items_are_matched_by_their_ids(store: httpx.Client) -> None:
    old, new = kept(store, "1"), kept(store, "2", LOST)
    report = compared(store, new, old)
    comparison = report["comparison"]
    assert (comparison["comparability"], comparison["pairing"]) == ("common_items", "paired")
    assert comparison["overall"]["accuracy"]["interval"] is not None
    counts = {"removed": 20, "relabelled": 0, "moved": 0}
    assert comparison["missing"] == {
        "items": 400,
        **counts,
        "added": 0,
        "classes": {"b": {"items": 40, **counts}},
        "slices": [
            {"items": 100, **counts, "removed": 10, "slice": {"region": "EU"}},
            {"items": 300, **counts, "removed": 10, "slice": {"region": "US"}},
        ],
        "new_classes": {},
    }
    (warning,) = (w for w in report["warnings"] if w["code"] == "items_differ")
    assert "Not compared: class `b` 20 of 40." in warning["detail"]
    assert (
        "Not compared: slice region=EU 10 of 100, slice region=US 10 of 300." in warning["detail"]
    )


def test_new_items_are_named_by_their_class(store: httpx.Client) -> None:
    old, new = (
        kept(store, "1", LOST),
        kept(store, "2", true=np.where(np.arange(N) == 210, "c", TRUE)),
    )
    report = compared(store, new, old)
    missing = report["comparison"]["missing"]
    assert (missing["removed"], missing["added"]) == (0, 20)
    assert missing["new_classes"] == {"b": 19, "c": 1}
    assert "Only the candidate has items of `c`." in report["warnings"][0]["detail"]


def test_relabelled_items_come_with_the_command_that_helps(store: httpx.Client) -> None:
    labels = TRUE.copy()
    labels[:12] = "c"
    report = compared(store, kept(store, "2", true=labels), kept(store, "1"))
    missing = report["comparison"]["missing"]
    assert (missing["removed"], missing["relabelled"]) == (0, 12)
    assert {name: changes["relabelled"] for name, changes in missing["classes"].items()} == {
        "a": 10,
        "b": 2,
    }
    assert "`rprime evaluate BASELINE.csv`" in report["warnings"][0]["detail"]


def test_items_that_moved_are_missing_in_both_slices(store: httpx.Client) -> None:
    moved = REGION.copy()
    moved[:8] = "US"
    report = compared(store, kept(store, "2", region=moved), kept(store, "1"))
    comparison = report["comparison"]
    assert comparison["comparability"] == "same_items"
    slices = {part["slice"]["region"]: part["moved"] for part in comparison["missing"]["slices"]}
    assert slices == {"EU": 2, "US": 2}
    assert {part["slice"]["region"]: part["items"] for part in comparison["slices"]} == {
        "EU": 98,
        "US": 300,
    }


def test_a_slice_of_stored_items_is_compared_on_those_of_both(store: httpx.Client) -> None:
    moved = REGION.copy()
    moved[:8] = "US"
    old, new = kept(store, "1"), kept(store, "2", LOST, region=moved)
    comparison = compared(store, new, old, slice={"region": "US"})["comparison"]
    assert (comparison["comparability"], comparison["pairing"]) == ("common_items", "paired")
    assert (comparison["missing"]["items"], comparison["missing"]["removed"]) == (300, 10)
    assert comparison["missing"]["added"] == 2


def test_the_same_items_have_nothing_missing(store: httpx.Client) -> None:
    comparison = compared(store, kept(store, "2"), kept(store, "1"))["comparison"]
    assert "missing" not in comparison


def test_a_stored_baseline_without_items_cannot_be_matched(store: httpx.Client) -> None:
    old = kept(store, "1", keep_items=False)
    comparison = compared(store, kept(store, "2", LOST), old)["comparison"]
    assert comparison["comparability"] == "different"
    assert "missing" not in comparison


def test_a_stored_report_keeps_what_is_missing(store: httpx.Client) -> None:
    kept(store, "1")
    new = kept(store, "2", LOST, baseline={"version": "1"})
    assert new["comparison"]["missing"]["removed"] == 20
    again = store.get(f"/v1/evaluations/{new['id']}").json()
    assert again["comparison"]["missing"] == new["comparison"]["missing"]
    page = store.get(f"/v1/evaluations/{new['id']}/report.md").text
    assert "Items that are not compared" in page
    assert re.search(r"^\| `?b`? \| 20 \| 0 \| 40 \|", page, re.MULTILINE)


def test_an_anchor_says_what_is_missing(store: httpx.Client) -> None:
    kept(store, "1")
    gates = {"anchor": {"version": "1"}, "rules": [{"index": "accuracy", "max_drop": 0.02}]}
    new = kept(store, "2", LOST, gates=gates, baseline={"version": "1"})
    assert new["gate"]["since_anchor"]["missing"]["classes"]["b"]["removed"] == 20
