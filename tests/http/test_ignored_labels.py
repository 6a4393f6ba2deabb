"""Items whose true label is ignored: as if they had not been sent."""

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import rprime as library
from tests.command import Run
from tests.history_service import Json
from tests.http.column_bodies import WRITERS, send

DRAW = np.random.default_rng(0)
SIZE = 240
TRUE = DRAW.choice(["a", "b", "c", "void"], SIZE, p=[0.5, 0.2, 0.2, 0.1]).tolist()
NEW, OLD = (
    [t if w and t != "void" else g for t, w, g in zip(TRUE, right, guess, strict=True)]
    for right, guess in (
        ((DRAW.random(SIZE) < q).tolist(), DRAW.choice(["a", "b", "c"], SIZE).tolist())
        for q in (0.7, 0.6)
    )
)
ITEMS: Json = {"y_true": TRUE, "y_pred": NEW}
IGNORE = {"ignore_true": ["void"]}
KEPT = [place for place, label in enumerate(TRUE) if label != "void"]
RULES = {"rules": [{"index": "accuracy", "max_drop": 0.05}]}
BESIDE: dict[str, Json] = {
    "labels": {"labels": ["a", "b", "c"]},
    "weights": {"sample_weight": (DRAW.random(SIZE) + 0.5).tolist()},
    "groups": {"groups": DRAW.integers(0, 50, SIZE).tolist()},
    "slices": {
        "slices": {"region": DRAW.choice(["x", "y"], SIZE).tolist(), "age": [*range(SIZE)]},
        "slice_cuts": {"age": 3},
    },
    "baseline": {"baseline": {"y_pred": OLD}, "gates": RULES},
    "whole baseline": {"baseline": {"y_true": TRUE, "y_pred": OLD}},
    "constant": {"baseline": {"constant": "prior"}},
    "ids": {
        "item_id": [f"i{n}" for n in DRAW.permutation(SIZE)],
        "baseline": {"y_pred": OLD},
        "changed_items": True,
    },
    "strata": {
        "population": {
            "strata": DRAW.choice(["n", "s"], SIZE).tolist(),
            "shares": {"n": 0.3, "s": 0.7},
        }
    },
    "scores": {"y_score": DRAW.dirichlet([1, 1, 1], SIZE).tolist(), "labels": ["a", "b", "c"]},
}


def kept(value: Any) -> Any:
    """Leave out of each column what belongs to an ignored item."""
    if isinstance(value, dict):
        return {name: kept(member) for name, member in value.items()}
    is_column = isinstance(value, list) and len(value) == SIZE
    return [value[place] for place in KEPT] if is_column else value


def evaluated(client: httpx.Client, body: Json) -> Json:
    answer = client.post("/evaluate", json=body)
    assert answer.status_code == 200, answer.text
    report: Json = answer.json()
    warnings = {warning["code"]: warning["detail"] for warning in report.pop("warnings")}
    return {"ignored": warnings.get("ignored_items"), "report": report}


@pytest.mark.parametrize("beside", BESIDE)
def test_ignored_items_are_as_if_they_had_not_been_sent(client: httpx.Client, beside: str) -> None:
    """The digest, too: it is the same evidence."""
    body = {**ITEMS, **BESIDE[beside]}
    ignoring, without = (evaluated(client, part) for part in ({**body, **IGNORE}, kept(body)))
    assert ignoring["report"] == without["report"]
    assert without["ignored"] is None
    left_out = SIZE - len(KEPT)
    assert ignoring["ignored"] == (
        f"{left_out} items are left out, because `ignore_true` names their true label: "
        f"`void` {left_out}."
    )


@pytest.mark.parametrize("kind", WRITERS)
def test_columns_are_read_alike(client: httpx.Client, kind: str) -> None:
    expected = evaluated(client, {**ITEMS, "baseline": {"y_pred": OLD}, **IGNORE})["report"]
    columns = {**ITEMS, "y_pred_baseline": OLD, "item_id": [f"{n:03}" for n in range(SIZE)]}
    answer = send(client, kind, WRITERS[kind](columns), IGNORE)
    assert answer.status_code == 200, answer.text
    for member in ("overall", "per_class", "counts"):
        assert answer.json()[member] == expected[member]
    compared = answer.json()["comparison"]
    assert compared["pairing"] == "paired"
    assert compared["overall"] == expected["comparison"]["overall"]


def test_the_label_may_lie_outside_of_the_classes(client: httpx.Client) -> None:
    """As 255 of a mask, which no prediction is."""
    codes = {"a": 0, "b": 1, "c": 2, "void": 255}
    body = {"y_true": [codes[t] for t in TRUE], "y_pred": [codes[p] for p in NEW]}
    report = evaluated(client, {**body, "ignore_true": [255]})["report"]
    assert report["labels"] == ["0", "1", "2"]
    expected = evaluated(client, {**ITEMS, **IGNORE})["report"]
    assert report["overall"]["accuracy"] == expected["overall"]["accuracy"]
    declared = {**body, "labels": [0, 1, 2], "ignore_true": [255]}
    assert evaluated(client, declared)["report"]["overall"] == report["overall"]


def test_values_are_those_of_torchmetrics_with_ignore_index(client: httpx.Client) -> None:
    reference = json.loads(
        (Path(__file__).parents[1] / "reference/torchmetrics.json").read_text(encoding="utf-8")
    )["ignore_index"]
    expected = reference.pop("overall")
    report = evaluated(client, {**reference, "indices": [*expected]})["report"]
    values = {key: report["overall"][key]["value"] for key in expected}
    assert values == pytest.approx(expected, abs=1e-6)


def test_an_alias_of_an_ignored_label_is_ignored(client: httpx.Client) -> None:
    spelled = ["VOID" if t == "void" and n % 2 else t for n, t in enumerate(TRUE)]
    body = {"y_true": spelled, "y_pred": NEW, "aliases": {"VOID": "void"}, **IGNORE}
    expected = evaluated(client, {**ITEMS, **IGNORE})["report"]
    assert evaluated(client, body)["report"]["overall"] == expected["overall"]


def test_a_label_that_no_item_has_is_said(client: httpx.Client) -> None:
    answer = evaluated(client, {**ITEMS, "ignore_true": ["vod"]})
    assert answer["ignored"] == "None of the true labels is one of `ignore_true`."
    assert answer["report"] == evaluated(client, ITEMS)["report"]


def test_weak_slices_are_those_of_the_items_that_are_left(client: httpx.Client) -> None:
    body = {**ITEMS, "slices": BESIDE["slices"]["slices"], "min_items": 20}
    answers = [
        client.post("/v1/studies/slices", json=part) for part in ({**body, **IGNORE}, kept(body))
    ]
    assert answers[0].status_code == 200, answers[0].text
    assert answers[0].json() == answers[1].json()


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({**ITEMS, "ignore_true": ["a", "b", "c", "void"]}, "/ignore_true", "empty"),
        ({**ITEMS, "ignore_true": []}, "/ignore_true", "too_short"),
        ({**ITEMS, "ignore_true": "void"}, "/ignore_true", "list_type"),
        ({"confusion_matrix": [[1]], **IGNORE}, "/ignore_true", "not_with_this_evidence"),
        (
            {**ITEMS, "baseline": {"y_pred": OLD, "ignore_true": ["a"]}},
            "/baseline/ignore_true",
            "not_with_this_evidence",
        ),
        ({**ITEMS, **IGNORE, "sample_weight": [1.0]}, "/sample_weight", "wrong_length"),
        ({**ITEMS, **IGNORE, "item_id": ["a"]}, "/item_id", "wrong_length"),
        ({**ITEMS, **IGNORE, "slices": {"r": ["x"]}}, "/slices/r", "wrong_length"),
    ],
)
def test_what_cannot_be_ignored_is_refused(
    client: httpx.Client, body: Json, pointer: str, code: str
) -> None:
    answer = client.post("/evaluate", json=body)
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == (pointer, code)


def test_the_command_takes_it_in_the_request(rprime: Run, tmp_path: Path) -> None:
    file, request = tmp_path / "items.csv", tmp_path / "request.json"
    file.write_bytes(WRITERS["csv"](ITEMS))
    request.write_text('{"ignore_true": ["void"], "average_except": ["a"]}')
    done = rprime("evaluate", str(file), "--request", str(request), "--json")
    report = library.evaluate(TRUE, NEW, ignore_true="void", average_except="a")
    assert done.stdout.encode() == report.content + b"\n"
