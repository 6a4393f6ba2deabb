"""Real models: two families, 20 versions of each in one project, held to scikit-learn."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, recall_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from tests.history_service import ServeApp, keep, keeping

pytestmark = pytest.mark.slow

Json = dict[str, Any]
VERSIONS = range(20)
FAMILIES: Json = {"logreg": LogisticRegression(max_iter=1000), "knn": KNeighborsClassifier(3)}
GATES: Json = {
    "rules": [
        {"index": "accuracy", "max_drop": 0.02},
        {"index": "recall", "classes": "all", "max_drop": 0.1},
    ]
}
MISLABELLED = 7
"""Versions 12 to 15 see half of these digits with a wrong label."""


@pytest.fixture
def client(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


@pytest.fixture(scope="module")
def predictions() -> tuple[list[int], dict[tuple[str, int], list[int]]]:
    """True labels of the test items, and the predictions of each family and version."""
    images, digits = load_digits(return_X_y=True)
    training, unseen, labels, true = train_test_split(
        images / 16, digits, test_size=0.5, random_state=0, stratify=digits
    )
    predicted = {}
    for version in VERSIONS:
        size = 300 + 30 * version
        seen = labels[:size].copy()
        if version in range(12, 16):
            seen[np.flatnonzero(seen == MISLABELLED)[::2]] = 9
        for family, model in FAMILIES.items():
            predicted[family, version] = model.fit(training[:size], seen).predict(unseen).tolist()
    return true.tolist(), predicted


def test_every_version_is_compared_with_its_own_predecessor(
    client: httpx.Client, predictions: tuple[list[int], dict[tuple[str, int], list[int]]]
) -> None:
    true, predicted = predictions
    ids: dict[tuple[str, int], str] = {}
    for version in VERSIONS:
        for family in FAMILIES:
            request: Json = {"project": "digits", "model": family, "version": f"v{version}"}
            request |= {"y_true": true, "y_pred": predicted[family, version]}
            gates = GATES | {"anchor": {"version": "v0"}}
            if version:
                request |= {"baseline": {"version": f"v{version - 1}"}, "gates": gates}
            report = keep(client, request)
            ids[family, version] = report["id"]
            if version:
                check(report, true, [predicted[family, n] for n in (version, version - 1, 0)])
                resolved = report["comparison"]["baseline"]["resolved"]
                assert resolved == ids[family, version - 1]
                assert since(report)["baseline"]["resolved"] == ids[family, 0]
    for family in FAMILIES:
        path = f"/v1/projects/digits/trend?index=accuracy&model={family}"
        items = client.get(path).json()["items"]
        assert [item["evaluation"] for item in items] == [ids[family, n] for n in VERSIONS]
        first = accuracy_score(true, predicted[family, 0])
        for version, item in zip(VERSIONS, items, strict=True):
            expected = accuracy_score(true, predicted[family, version]) - first
            assert item.get("since_anchor", 0.0) == pytest.approx(expected)


def since(report: Json) -> Json:
    comparison: Json = report["gate"]["since_anchor"]
    return comparison


def check(report: Json, true: list[int], of: list[list[int]]) -> None:
    """Hold the differences from predecessor and anchor to scikit-learn's values."""
    candidate, before, first = (accuracy_score(true, labels) for labels in of)
    comparison = report["comparison"]
    assert comparison["pairing"] == "paired"
    assert comparison["overall"]["accuracy"]["value"] == pytest.approx(candidate - before)
    assert since(report)["overall"]["accuracy"]["value"] == pytest.approx(candidate - first)
    recalls = [recall_score(true, labels, average=None) for labels in of]
    for digit in range(10):
        delta = comparison["per_class"][str(digit)]["recall"]["value"]
        assert delta == pytest.approx(recalls[0][digit] - recalls[1][digit])
        delta = since(report)["per_class"][str(digit)]["recall"]["value"]
        assert delta == pytest.approx(recalls[0][digit] - recalls[2][digit])
