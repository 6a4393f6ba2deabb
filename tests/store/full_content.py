"""Requests that fill a store with everything that it stores, sent to a service of any version.

`python -m tests.store.full_content URL` made `schemas/schema_2_full.db`; the next schema is filled
in the same way, by the last commit before it.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np

Json = dict[str, Any]

LABELS = ["cat", "dog", "naïve bird"]
PROJECT = "animals"
FINGERPRINTS = ("a" * 64, "b" * 64)
COMMIT = "5f0c3a9e" * 5
_N = 240
_DRAW = np.random.default_rng(7)
_TRUE = _DRAW.integers(0, 3, _N)
_NAMED: Json = {"project": PROJECT, "model": "resnet", "branch": "main", "commit": COMMIT}
WAIVER = {
    "rule": "cat-recall",
    "ceiling": 0.6,
    "reason": "The camera was dirty.",
    "by": "ada",
    "expires": "2099-12-31",
}


def _named(codes: Any) -> list[str]:
    return [LABELS[code] for code in codes]


def _predicted(wrong: dict[int, float], seed: int) -> list[str]:
    """Predict, a share of each class wrongly."""
    draw = np.random.default_rng(seed)
    rates = np.array([wrong.get(code, 0.05) for code in _TRUE.tolist()])
    moved = (_TRUE + draw.integers(1, 3, _N)) % 3
    return _named(np.where(draw.random(_N) < rates, moved, _TRUE))


def _labels(wrong: dict[int, float], seed: int, **more: Any) -> Json:
    request = {"y_true": _named(_TRUE), "y_pred": _predicted(wrong, seed), "labels": LABELS}
    return request | more


def _slices() -> Json:
    draw = np.random.default_rng(3)
    columns = {"region": ["EU", "US"], "device": ["ios", "w=b"]}
    drawn = {name: [v[i] for i in draw.integers(0, 2, _N)] for name, v in columns.items()}
    return {"slices": drawn, "slice_crossings": [["region", "device"]]}


def _gate() -> Json:
    """Return rules with results of every kind, against the version before and a pinned one."""
    rules: list[Json] = [
        {"index": "accuracy", "max_drop": 0.5},
        {"index": "recall", "classes": "all", "max_drop": 0.02},
        {"id": "proven", "index": "precision", "classes": "all", "max_drop": 0.01,
         "policy": "proven_only"},
        {"id": "suspects", "index": "recall", "classes": ["dog"], "max_drop": 0.2,
         "policy": "suspects_fail", "severity": "warn"},
        {"id": "floor", "index": "accuracy", "min_value": 0.97, "severity": "warn"},
        {"id": "cat-recall", "index": "recall", "classes": ["cat"], "min_value": 0.995},
        {"id": "none", "index": "error_rate", "max_value": 0.001, "test": "none",
         "severity": "warn"},
        {"id": "gain", "index": "accuracy", "min_gain": 0.0, "policy": "all_must_pass",
         "severity": "warn"},
        {"id": "leaks", "confusion": ["cat", "dog"], "max_gain": 0.3},
        {"id": "gap", "index": "accuracy", "max_gap": 0.5, "slices": "region"},
        {"id": "sliced", "index": "accuracy", "max_drop": 0.2, "slices": ["region"],
         "policy": "suspects_undecided"},
        {"id": "absent", "index": "precision", "classes": ["eel"], "max_drop": 0.2,
         "severity": "warn"},
        {"id": "empty", "index": "recall", "classes": ["eel"], "min_value": 0.2,
         "severity": "warn"},
        {"id": "cost", "index": "expected_cost", "max_value": 9.0},
    ]  # fmt: skip
    on = {"inconclusive": "warn", "no_baseline": "warn", "undefined": "warn"}
    return {"rules": rules, "waivers": [WAIVER], "on": on, "anchor": {"alias": "pinned"}}


def _evaluations() -> Iterator[tuple[str, Json]]:
    """Yield requests in their order, each with the alias that then points at it, if any."""
    cost = {"cost": [[0, 1, 2], [1, 0, 1], [2, 1, 0]]}
    ran = {"test_set": {"id": "spring", "fingerprint": FINGERPRINTS[0]}, "tags": ["nightly", "a b"]}
    first = {"version": "1", "source": "https://ci.example.org/run/1", "keep_items": True}
    yield "pinned", _labels({}, 1, **_NAMED, **ran, **first, **_slices(), **cost)
    whole = _labels({0: 0.15, 1: 0.35, 2: 0.2}, 2, **_NAMED, **ran, **_slices(), **cost)
    options = {
        "baseline": {"version": "1"},
        "gates": _gate(),
        "beta": 2.0,
        "labels": [*LABELS, "eel"],
    }
    cost |= {"cost": [[0, 1, 2, 1], [1, 0, 1, 1], [2, 1, 0, 1], [1, 1, 1, 0]]}
    yield "champion", whole | options | cost | {"version": "2", "beta": 2.0}
    short = {"rules": [{"index": "accuracy", "max_drop": 0.1}]}
    begun = {**_NAMED, "project": "new", "version": "1", "baseline": {"alias": "champion"}}
    yield "", _labels({}, 4, **begun, gates=short)
    other = {"test_set": {"id": "autumn", "fingerprint": FINGERPRINTS[1]}, "version": "3"}
    table = {"confusion_matrix": [[50, 3, 1], [2, 70, 0], [0, 1, 40]], "labels": LABELS}
    yield "", table | _NAMED | other | {"baseline": {"version": "1"}, "gates": short}
    lone = {"confusion_matrix": [[50, 0], [0, 0]], "labels": LABELS[:2], "version": "3b"}
    yield "", lone | _NAMED | {"gates": {"rules": [{"index": "kappa", "min_value": 0.1}]}}
    looks = {"looks": {"budget": 20}, "rules": [{"index": "r_prime", "max_drop": 0.2}]}
    yield (
        "",
        _labels({0: 0.1}, 5, **_NAMED, **ran, version="4", baseline={"latest": True}, gates=looks),
    )
    groups = {"groups": [f"patient {i // 4}" for i in range(_N)], "keep_items": True}
    yield "", _labels({0: 0.1}, 6, **_NAMED, **groups, version="5")
    weights = {"sample_weight": (np.arange(_N) % 7 / 3 + 0.5).tolist(), "keep_items": True}
    yield "", _labels({0: 0.1}, 7, **_NAMED, **weights, version="6")
    shares = {"prevalence": {"cat": 0.7, "dog": 0.2, "naïve bird": 0.1}}
    yield "", _labels({1: 0.1}, 8, **_NAMED, population=shares, version="7")
    strata = {"strata": ["day", "night"] * (_N // 2), "shares": {"day": 0.9, "night": 0.1}}
    yield "", _labels({1: 0.1}, 9, **_NAMED, population=strata, version="8")
    weighed = [[1, 0.5, 0], [0.5, 1, 0.25], [0, 0.25, 1]]
    yield "", _labels({1: 0.1}, 10, **_NAMED, cell_weights=weighed, version="9", exact=True)
    scores = np.random.default_rng(11).dirichlet(np.ones(3), _N) + 2 * np.eye(3)[_TRUE]
    scored = {"y_true": _named(_TRUE), "labels": LABELS, "curves": True, "model": "forest"}
    rows = (scores / scores.sum(axis=1, keepdims=True)).round(6)
    rows[:, 2] = 1 - rows[:, 0] - rows[:, 1]
    judged = {
        "rules": [{"index": "log_loss", "max_value": 2.0}, {"index": "accuracy", "max_drop": 0.5}]
    }
    compared = {"baseline": {"version": "2", "model": "resnet"}, "gates": judged, "version": "1"}
    yield "", {**_NAMED, **scored, "y_score": rows.tolist(), **compared}
    cells = [[i, j, 3 + 90 * (i == j)] for i in range(40) for j in (i, (i + 1) % 40)]
    many = {"cells": cells, "labels": [f"species {i}" for i in range(40)], "model": "long tail"}
    yield "", many | {**_NAMED, "model": "long-tail", "version": "1", "gates": {"rules": []}}
    gaps: list[Any] = _predicted({}, 12)
    gaps[::9] = [None] * len(gaps[::9])
    yield "", _labels({}, 12, **_NAMED, version="10") | {"y_pred": gaps}


def _first_evaluations() -> Iterator[tuple[str, Json]]:
    """Yield requests that 0.1.0 knew, as `_evaluations`."""
    ran = {"test_set": {"id": "spring", "fingerprint": FINGERPRINTS[0]}, "tags": ["nightly", "a b"]}
    first = {"version": "1", "source": "https://ci.example.org/run/1", "keep_items": True}
    yield "pinned", _labels({}, 1, **_NAMED, **ran, **first)
    rules: list[Json] = [
        {"index": "accuracy", "max_drop": 0.5},
        {"index": "recall", "classes": "all", "max_drop": 0.02},
        {"id": "proven", "index": "precision", "classes": "all", "max_drop": 0.01,
         "policy": "not_fail"},
        {"id": "floor", "index": "accuracy", "min_value": 0.97, "severity": "warn"},
        {"id": "cat-recall", "index": "recall", "classes": ["cat"], "min_value": 0.995},
        {"id": "none", "index": "error_rate", "max_value": 0.001, "test": "none",
         "severity": "warn", "policy": "pass"},
        {"id": "rise", "index": "error_rate", "max_gain": 0.9},
        {"id": "absent", "index": "precision", "classes": ["eel"], "max_drop": 0.2,
         "severity": "warn"},
    ]  # fmt: skip
    gates = {"rules": rules, "waivers": [WAIVER], "looks": "spend"}
    options = {"baseline": {"version": "1"}, "gates": gates, "version": "2"}
    whole = _labels({0: 0.15, 1: 0.35, 2: 0.2}, 2, **_NAMED, **ran, **options)
    yield "champion", whole | {"labels": [*LABELS, "eel"]}
    short = {"rules": [{"index": "accuracy", "max_drop": 0.1}]}
    begun = {**_NAMED, "project": "new", "version": "1", "baseline": {"alias": "champion"}}
    yield "", _labels({}, 4, **begun, gates=short)
    other = {"test_set": {"id": "autumn", "fingerprint": FINGERPRINTS[1]}, "version": "3"}
    table = {"confusion_matrix": [[50, 3, 1], [2, 70, 0], [0, 1, 40]], "labels": LABELS}
    yield "", table | _NAMED | other | {"baseline": {"version": "1"}, "gates": short}
    lone = {"confusion_matrix": [[50, 0], [0, 0]], "labels": LABELS[:2], "version": "3b"}
    yield "", lone | _NAMED | {"gates": {"rules": [{"index": "kappa", "min_value": 0.1}]}}
    groups = {"groups": [f"patient {i // 4}" for i in range(_N)], "keep_items": True}
    yield "", _labels({0: 0.1}, 6, **_NAMED, **groups, version="5")
    weights = {"sample_weight": (np.arange(_N) % 7 / 3 + 0.5).tolist(), "keep_items": True}
    yield "", _labels({0: 0.1}, 7, **_NAMED, **weights, version="6")
    weighed = [[1, 0.5, 0], [0.5, 1, 0.25], [0, 0.25, 1]]
    yield "", _labels({1: 0.1}, 10, **_NAMED, cell_weights=weighed, version="9", exact=True)
    scores = np.random.default_rng(11).dirichlet(np.ones(3), _N).round(6)
    scores[:, 2] = 1 - scores[:, 0] - scores[:, 1]
    scored = {"y_true": _named(_TRUE), "y_score": scores.tolist(), "labels": LABELS}
    yield "", {**_NAMED, **scored, "model": "forest", "version": "1", "gates": {"rules": []}}


def _columns() -> Json:
    """Return a body of columns, whose items have names."""
    rows = zip(_named(_TRUE), _predicted({}, 13), range(_N), strict=True)
    lines = [
        "y_true,y_pred,item_id",
        *(f"{true},{predicted},image {i}" for true, predicted, i in rows),
    ]
    request = _NAMED | {"version": "11", "baseline": {"version": "1"}, "tags": ["columns"]}
    return {
        "params": {"request": json.dumps(request)},
        "content": "\n".join(lines).encode(),
        "headers": {"Content-Type": "text/csv"},
    }


def fill(client: httpx.Client) -> list[Json]:
    """Fill the store of a service; return the reports that it answers."""
    reports = []
    is_first = client.get("/version").json()["version"] == "0.1.0"

    def keep(**sent: Any) -> None:
        answer = client.post("/v1/evaluate", **sent)
        assert answer.status_code == 201, answer.text
        reports.append(answer.json())

    aliases = f"/v1/projects/{PROJECT}/aliases"
    requests = _first_evaluations() if is_first else _evaluations()
    for number, (alias, request) in enumerate(requests):
        keep(json=request, headers={"Idempotency-Key": "again"} if number == 4 else {})
        for name in [alias, f"was-{alias}"] if alias else []:
            target, new = {"evaluation": reports[-1]["id"]}, {"If-None-Match": "*"}
            client.put(f"{aliases}/{name}", json=target, headers=new).raise_for_status()
    keep(**_columns())
    client.delete(f"{aliases}/was-pinned", headers={"If-Match": "*"}).raise_for_status()
    settings = {"badge_public": True} if is_first else {"badge_public": True, "keeps_slices": True}
    client.put(f"/v1/projects/{PROJECT}", json=settings).raise_for_status()
    return reports


if __name__ == "__main__":
    with httpx.Client(base_url=sys.argv[1], timeout=60) as client:
        for report in fill(client):
            gate = report.get("gate") or {"verdict": None, "results": []}
            found = sorted({(r["verdict"], r.get("suspect", False)) for r in gate["results"]})
            sys.stdout.write(f"{report['model']} {report['version']} {gate['verdict']} {found}\n")
