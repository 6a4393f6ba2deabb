"""Requests as 0.2.0 documented them: the same answer, or a problem that gives the new name."""

from collections.abc import Iterator
from functools import reduce
from typing import Any

import httpx
import pytest

from tests.history_service import Json, ServeApp, keep, keeping

MATRIX: Json = {"confusion_matrix": [[80, 20], [10, 90]]}
OTHER: Json = {"confusion_matrix": [[95, 5], [2, 98]]}
NAMED: Json = MATRIX | {"labels": ["cat", "dog"]}
LABELS: Json = {"y_true": ["cat", "dog", "cat", "eel"], "y_pred": ["cat", "dog", "dog", None]}
SCORES: Json = {
    "y_true": ["cat", "dog", "eel"],
    "y_score": [[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.2, 0.5, 0.3]],
}
ACCURACY = {"index": "accuracy", "max_drop": 0.02}
RECALL = {"index": "recall", "classes": "all", "max_drop": 0.1}


def indices(*keys: str) -> Json:
    return MATRIX | {"indices": list(keys)}


def judged(*rules: Json, **gates: Any) -> Json:
    return MATRIX | {"baseline": OTHER, "gates": {"rules": list(rules or (ACCURACY,)), **gates}}


EVALUATE, PETS = "/evaluate", "/v1/projects/pets"
SAME: list[tuple[str, Json | None, str, object]] = [
    (EVALUATE, LABELS, "overall/accuracy/value", 0.5),
    (EVALUATE, SCORES, "overall/accuracy/value", 2 / 3),
    (EVALUATE, indices("accuracy", "r_prime"), "overall/r_prime/value", 0.85),
    (EVALUATE, NAMED | {"families": ["core"]}, "overall/accuracy/value", 0.85),
    (EVALUATE, NAMED | {"cost": [[0, 1], [2, 0]], "indices": ["expected_cost"]},
     "overall/expected_cost/value", 0.2),
    (EVALUATE, MATRIX | {"beta": 2, "indices": ["f_beta"]}, "options/beta", 2.0),
    (EVALUATE, MATRIX | {"classes": {"limit": 1, "order_by": "r_prime"}}, "classes/left_out", 1),
    (EVALUATE, NAMED | {"population": {"prevalence": {"cat": 0.9, "dog": 0.1}}},
     "overall/accuracy/value", 0.81),
    (EVALUATE, MATRIX | {"undefined": "zero"}, "options/undefined", "zero"),
    (EVALUATE, judged(on={"no_baseline": "warn"}), "gate/verdict", "fail"),
    (EVALUATE, judged(ACCURACY, RECALL), "gate/verdict", "fail"),
    ("/v1/evaluate/batch", {"requests": [MATRIX, OTHER]},
     "results/1/report/overall/accuracy/value", 0.965),
    ("/v1/compare", {"candidate": MATRIX, "baseline": OTHER},
     "comparison/overall/accuracy/candidate", 0.85),
    ("/v1/gates/lint", MATRIX | {"gates": {"rules": [ACCURACY]}, "replicates": 100},
     "false_fail_rate", 0.0),
    (f"{PETS}/evaluations?model=svc&limit=10", None, "items/0/version", "1"),
    (f"{PETS}/trend?index=accuracy", None, "items/0/value", 0.85),
    (f"{PETS}/leaderboard?index=accuracy", None, "tiers/0/versions/0/value", 0.85),
    (f"{PETS}/badge.json?index=accuracy", None, "schemaVersion", 1),
    ("/v1/indices/overall/r_prime", None, "key", "r_prime"),
    ("/livez?verbose=1", None, "status", "ok"),
]  # fmt: skip
"""Path, body, and a value in the answer, which is that of 0.2.0."""
REFUSED: list[tuple[str, Json | None, str, str]] = [
    (EVALUATE, indices("macro_lift"), "/indices/0", "`lift`"),
    (EVALUATE, indices("weighted_prevalence"), "/indices/0", "`prevalence`"),
    (EVALUATE, indices("macro_true_positives"), "/indices/0", "`true_positives`"),
    (EVALUATE, indices("gt_index_macro"), "/indices/0", "`gt_index`"),
    (EVALUATE, indices("weighted_diagnostic_odds_ratio"), "/indices/0", "`diagnostic_odds_ratio`"),
    (EVALUATE, judged(on={"inconclusive": "fail"}), "/gates/on", "`undecided`"),
    (EVALUATE, judged(looks={"budget": 5}), "/gates", "`max_looks`"),
    (EVALUATE, judged(RECALL | {"policy": "all_must_pass"}), "/gates/rules/0/policy", "`each`"),
    (EVALUATE, judged(RECALL | {"policy": "suspects_fail"}), "/gates/rules/0/policy",
     "`effects: {suspect: fail}`"),
    (EVALUATE, judged(RECALL | {"policy": "suspects_undecided"}), "/gates/rules/0/policy",
     "`average`"),
    (EVALUATE, judged(RECALL | {"policy": "proven_only"}), "/gates/rules/0/policy", "`average`"),
    ("/v1/gates/lint", judged(on={"inconclusive": "warn"}) | {"baseline": None}, "/gates/on",
     "`undecided`"),
    ("/v1/projects?model=svc", None, "/query/model", "`limit`, `cursor`"),
    (f"{PETS}/purge", {"keep": 5}, "", "`keep_last`"),
]  # fmt: skip
"""Path, body, the place of the problem, and the name that it gives."""


@pytest.fixture(scope="module")
def store(serve_app: ServeApp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path_factory.mktemp("old")) as client:
        keep(client, MATRIX | {"project": "pets", "model": "svc", "version": "1"})
        yield client


def answered(store: httpx.Client, path: str, body: Json | None) -> httpx.Response:
    if body is None:
        return store.get(path)
    return store.post(path, json={name: part for name, part in body.items() if part is not None})


def test_there_are_at_least_thirty() -> None:
    assert len(SAME) + len(REFUSED) >= 30


@pytest.mark.parametrize(("path", "body", "place", "value"), SAME)
def test_the_answer_is_the_same(
    store: httpx.Client, path: str, body: Json | None, place: str, value: object
) -> None:
    answer = answered(store, path, body)
    assert answer.status_code == 200, answer.text

    def member(part: Any, name: str) -> Any:
        return part[int(name)] if isinstance(part, list) else part[name]

    shown = reduce(member, place.split("/"), answer.json())
    assert shown == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value)


@pytest.mark.parametrize(("path", "body", "place", "name"), REFUSED)
def test_the_problem_gives_the_new_name(
    store: httpx.Client, path: str, body: Json | None, place: str, name: str
) -> None:
    answer = answered(store, path, body)
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert error["pointer"] == place
    assert name in error["detail"]
