"""Requests of every combination of evidence and options are answered or refused, never failed."""

import random
from typing import Any

import httpx
import numpy as np
import pytest

from rprime.core.catalog import CLASS_INDICES, OVERALL_INDICES

Json = dict[str, Any]
OVERALL, PER_CLASS = list(OVERALL_INDICES), list(CLASS_INDICES)
LIMITS = ("min_value", "max_value", "max_drop", "max_gain", "min_gain")
BLOCK, BLOCKS = 75, 4


def tables(draw: random.Random, k: int) -> Any:
    """Draw a table: of nothing, of right items alone, nearly empty, full, or of one line."""
    random_of = np.random.default_rng(draw.randrange(1 << 30))
    full = random_of.integers(0, 50, (k, k))
    table = draw.choice([full * 0, np.diag(full.diagonal()), full // 45, full, full])
    if draw.random() < 0.2:
        table = table * (np.arange(k) == 0)
    return (table if draw.random() < 0.5 else table.T).tolist()


def evidence(draw: random.Random, labels: list[str]) -> Json:
    kind, n = draw.random(), draw.choice([1, 3, 30, 100])
    if kind < 0.6:
        content: Json = {"labels": labels, "confusion_matrix": tables(draw, len(labels))}
        for name in ("unclassified", "spurious"):
            if draw.random() < 0.25:
                content[name] = [draw.randrange(5) for _ in labels]
        return content
    some = labels[: draw.choice([1, len(labels)])]
    true = [draw.choice(some) for _ in range(n)]
    if kind > 0.85:
        scores = np.random.default_rng(draw.randrange(1 << 30)).random((n, len(labels)))
        scores /= draw.choice([1, scores.sum(1, keepdims=True)])
        more: Json = draw.choice([{}, {}, {"reject_below": 0.9}, {"curves": True}])
        return {"labels": labels, "y_true": true, "y_score": scores.tolist(), **more}
    predicted = [draw.choice([*labels, None]) if draw.random() < 0.4 else label for label in true]
    content = {"labels": labels, "y_true": true, "y_pred": predicted}
    part = draw.random()
    if part < 0.2:
        content["groups"] = [draw.randrange(1 + n // 3) for _ in true]
    elif part < 0.4:
        content["sample_weight"] = [draw.choice([0, 1, 2.5]) for _ in true]
    elif part < 0.7:
        content["slices"] = {name: [draw.choice("xyz") for _ in true] for name in "rs"}
        content |= draw.choice([{}, {"slice_crossings": [["r", "s"]]}])
    return content


def rule(draw: random.Random, labels: list[str]) -> Json:
    targets: list[Json] = [
        {"index": draw.choice(PER_CLASS), "classes": draw.choice(["all", labels[:1]])},
        {"index": draw.choice(OVERALL)},
        {"confusion": [draw.choice(labels), draw.choice(labels)]},
    ]
    others: list[Json] = [{}, {}, {"test": "none"}, {"min_items": 5}, {"policy": "each"}]
    limit = {draw.choice(LIMITS): draw.choice([0.01, 0.1, 0.3])}
    return draw.choice(targets) | limit | draw.choice(others)


def options(draw: random.Random, labels: list[str]) -> Json:
    k = len(labels)
    equal = dict.fromkeys(labels, 1 / k)
    every: dict[str, list[Any]] = {
        "families": [["all"]],
        "indices": [draw.sample([*OVERALL, *PER_CLASS], 2), [draw.choice(OVERALL)]],
        "intervals": [False, "all"],
        "exact": [True],
        "undefined": ["zero", "one"],
        "beta": [2],
        "cost": [(1 - np.eye(k)).tolist()],
        "kappa_weights": ["linear", (1 - np.eye(k)).tolist()],
        "cell_weights": [np.full((k, k), 1.5).tolist()],
        "sampling": ["fixed_rows"],
        "population": [
            {"prevalence": "uniform"},
            {"prevalence": equal},
            {"strata": "predicted", "shares": equal},
        ],
    }
    return {name: draw.choice(some) for name, some in every.items() if draw.random() < 0.25}


def request(draw: random.Random) -> Json:
    labels = [f"c{i}" for i in range(draw.choice([1, 2, 2, 3, 5]))]
    content = evidence(draw, labels) | options(draw, labels)
    if draw.random() < 0.4:
        baseline = evidence(draw, labels)
        content["baseline"] = {
            name: baseline[name]
            for name in baseline
            if name not in {"slices", "slice_crossings", "reject_below", "curves"}
        }
    if draw.random() < 0.5:
        rules = [rule(draw, labels) for _ in range(draw.choice([1, 1, 3]))]
        if "slices" in content and draw.random() < 0.5:
            rules[0]["slices"] = "all"
        content["gates"] = {"rules": rules}
    return content


@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_combination_is_answered_or_refused(client: httpx.Client, block: int) -> None:
    codes = set()
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        content = request(random.Random(seed))  # noqa: S311 (no secret)
        answer = client.post("/evaluate", json=content)
        assert answer.status_code in {200, 422}, (seed, answer.text)
        codes.add(answer.status_code)
    assert codes == {200, 422}
