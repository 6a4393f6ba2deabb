"""Slices of stored evaluations: how they are named, kept and compared."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from pydantic_core import PydanticCustomError

from rprime.schemas.history import read_slice
from tests.history_service import ServeApp, keep, keeping

Json = dict[str, Any]

DRAW = np.random.default_rng(8)
TRUE = DRAW.integers(3, size=1200)
OTHER = (TRUE + DRAW.integers(1, 3, size=1200)) % 3
LUCK = DRAW.random(1200)
REGION = np.array(["US", "EU", "Asia"])[DRAW.integers(3, size=1200)]
DEVICE = np.array(["web", "ios"])[DRAW.integers(2, size=1200)]
ALONE = ["links", "id", "created_at", "version"]


def body(version: str, wrong: float = 0.1, **more: object) -> Json:
    """Return a request of which a share of the items in the EU is wrong, and 10 % elsewhere."""
    predicted = np.where(np.where(REGION == "EU", wrong, 0.1) > LUCK, OTHER, TRUE)
    return {
        "y_true": TRUE.tolist(),
        "y_pred": predicted.tolist(),
        "slices": {"region": REGION.tolist(), "device": DEVICE.tolist()},
        "slice_crossings": [["region", "device"]],
        "indices": ["accuracy", "recall"],
        "project": "pets",
        "version": version,
        **more,
    }


@pytest.fixture
def store(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["region=EU"], {"region": "EU"}),
        (["region=EU", "device=ios"], {"region": "EU", "device": "ios"}),
        (["url=a=b"], {"url": "a=b"}),
        (['{"a=b": "EU"}', "device=ios"], {"a=b": "EU", "device": "ios"}),
        (["Re\u0301gion= EU "], {"R\u00e9gion": "EU"}),
        ({"device": "ios", "region": "EU"}, {"region": "EU", "device": "ios"}),
        ([], {}),
    ],
)
def test_a_slice_is_named_by_columns_and_values(given: object, named: dict[str, str]) -> None:
    assert read_slice(given) == tuple(sorted(named.items()))


@pytest.mark.parametrize(
    "given",
    [
        ["region"],
        ["region="],
        ["=EU"],
        ["region=EU", "region=US"],
        ["{region=EU"],
        ['{"region": 1}'],
        [["region", "EU"]],
        {"region": None},
        ["a=1", "b=1", "c=1", "d=1"],
    ],
)
def test_what_names_no_slice_is_refused(given: object) -> None:
    with pytest.raises(PydanticCustomError):
        read_slice(given)


@pytest.mark.parametrize(
    "more", [{}, {"keep_items": False}, {"slice_adjust": "benjamini_hochberg"}]
)
def test_a_stored_report_has_its_slices(store: httpx.Client, more: Json) -> None:
    first = keep(store, body("1", 0.3, **more))
    assert len(first["slices"]) == 11
    assert [*first["slices"][5]["slice"]] == ["region", "device"]
    later = store.get(f"/v1/evaluations/{first['id']}").json()
    assert later == first
    page = store.get(f"/v1/evaluations/{first['id']}/report.md").text
    assert "Weakest first, by Accuracy" in page
    assert store.get(f"/v1/evaluations/{first['id']}?include=slices").json()["slices"]


def test_slices_of_tables_are_kept(store: httpx.Client) -> None:
    cells = {"confusion_matrix": [[30, 2], [1, 40]], "unclassified": [3, 0]}
    slices = {"site": {"a": cells, "b": {"confusion_matrix": [[10, 2], [1, 10]]}}}
    whole = {"confusion_matrix": [[41, 5], [2, 52]], "unclassified": [3, 0], "labels": ["x", "y"]}
    first = keep(store, {**whole, "slices": slices, "project": "pets"})
    assert store.get(f"/v1/evaluations/{first['id']}").json() == first


@pytest.mark.parametrize("keep_items", [True, False])
def test_a_gate_judges_slices_against_a_stored_baseline(
    store: httpx.Client, keep_items: bool
) -> None:
    keep(store, body("1", keep_items=keep_items))
    rule = {"index": "accuracy", "max_drop": 0.05, "slices": "all"}
    gate = {"baseline": {"version": "1"}, "gates": {"rules": [rule]}}
    good = keep(store, body("2", 0.11, keep_items=keep_items, **gate))
    assert good["gate"]["verdict"] == "pass"
    worse = keep(store, body("3", 0.4, keep_items=keep_items, **gate))
    assert worse["gate"]["verdict"] == "fail"
    failed = [one["slice"] for one in worse["gate"]["results"] if one["verdict"] == "fail"]
    assert {"region": "EU"} in failed
    assert all(slice_.get("region", "EU") == "EU" for slice_ in failed)
