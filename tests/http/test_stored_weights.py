"""A stored evaluation of weighted items says what its first answer says."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.history_service import ServeApp, keeping

TRUE = ["cat"] * 60 + ["dog"] * 40
PREDICTED = ["cat"] * 50 + ["dog"] * 45 + ["cat"] * 5
WEIGHTS = [0.5 + i % 7 for i in range(100)]


@pytest.fixture
def client(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


def body(**more: Any) -> dict[str, Any]:
    sent = {"y_true": TRUE, "y_pred": PREDICTED, "sample_weight": WEIGHTS, "families": ["all"]}
    return {**sent, **more}


def answered(client: httpx.Client, **more: Any) -> Any:
    answer = client.post("/evaluate", json=body(**more))
    assert answer.status_code in {200, 201}, answer.text
    return answer.json()


def test_intervals_are_the_same_with_and_without_a_project(client: httpx.Client) -> None:
    alone = answered(client)
    first = answered(client, project="pets", version="1")
    later = client.get(f"/v1/evaluations/{first['id']}").json()
    for report in (first, later):
        assert report["overall"] == alone["overall"]
        assert report["per_class"] == alone["per_class"]
        assert report["counts"] == alone["counts"]
    assert alone["counts"]["items"] == 100
    assert alone["counts"]["weight"] == sum(WEIGHTS)
    assert alone["overall"]["accuracy"]["interval"] is not None
    assert "weighted_without_intervals" not in {w["code"] for w in later["warnings"]}


def test_weights_that_were_not_kept_are_missed_aloud(client: httpx.Client) -> None:
    first = answered(client, project="pets", version="2", keep_items=False)
    later = client.get(f"/v1/evaluations/{first['id']}").json()
    assert later["counts"]["items"] == 100
    assert later["overall"]["accuracy"] == {"value": first["overall"]["accuracy"]["value"]}
    assert later["overall"]["chi2"]["value"] == first["overall"]["chi2"]["value"]
    assert "items_not_kept" in {w["code"] for w in later["warnings"]}
    text = client.get(f"/v1/evaluations/{first['id']}/report.md").text
    assert "items_not_kept" in text
    assert "100 items" in text


def test_weights_in_groups_have_no_intervals_and_every_rendering_says_so(
    client: httpx.Client,
) -> None:
    groups = [i // 5 for i in range(100)]
    first = answered(client, project="pets", version="3", groups=groups)
    assert first["overall"]["accuracy"]["reason"] == "weighted"
    for suffix in ("md", "html"):
        text = client.get(f"/v1/evaluations/{first['id']}/report.{suffix}").text
        assert "weighted_without_intervals" in text
    sent = client.post("/evaluate", json=body(groups=groups), headers={"Accept": "text/markdown"})
    assert "weighted_without_intervals" in sent.text


def test_a_stored_table_of_weights_has_its_numbers_of_items(client: httpx.Client) -> None:
    table = {"cells": [[0, 0, 150.5], [1, 1, 99.5], [1, 0, 50]], "labels": ["cat", "dog"]}
    sent = {**table, "weighted": True, "project": "pets", "version": "4"}
    first, other, bare = (
        client.post("/evaluate", json=sent | more).json()
        for more in ({"class_items": [60, 40]}, {"class_items": [6, 4]}, {})
    )
    assert first["counts"]["items"] == 100
    assert bare["counts"]["items"] is None
    assert len({report["input_digest"] for report in (first, other, bare)}) == 3
    later = client.get(f"/v1/evaluations/{first['id']}").json()
    assert later["counts"] == first["counts"]
    assert "100 items" in client.get(f"/v1/evaluations/{first['id']}/report.md").text
