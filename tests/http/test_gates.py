"""Gates over HTTP: what a verdict says to programs, and what the schema says to people."""

from typing import Any

import httpx
import pytest

from rprime.schemas.gate import Gate, Gates

Json = dict[str, Any]
TRUE = ["a"] * 100 + ["b"] * 100
GOOD = {"y_true": TRUE, "y_pred": TRUE}
RULES = [{"index": "recall", "classes": "all", "max_drop": 0.1}]


def judged(client: httpx.Client, **members: Any) -> Json:
    answer = client.post("/evaluate", json={**GOOD, **members})
    assert answer.status_code == 200, answer.text
    assert answer.headers["Evaluation-Verdict"] == answer.json()["gate"]["verdict"]
    gate: Json = answer.json()["gate"]
    return gate


def test_each_result_has_one_sided_limits_and_their_level(client: httpx.Client) -> None:
    gate = judged(client, baseline={"y_pred": TRUE}, gates={"rules": RULES, "alpha": 0.1})
    assert (gate["verdict"], gate["judged"], gate["message"]) == ("pass", True, "The gate passed.")
    first = gate["results"][0]
    assert -0.1 < first["lower_limit"] < 0 < first["upper_limit"]
    assert (first["level"], first["against"], first["suspect"]) == (0.9, "baseline", False)
    assert "interval" not in first


def test_what_could_not_be_judged_says_so(client: httpx.Client) -> None:
    other = {"y_true": TRUE[1:], "y_pred": TRUE[1:]}
    gate = judged(client, baseline=other, gates={"rules": RULES})
    assert (gate["verdict"], gate["judged"]) == ("fail", False)
    assert gate["message"].startswith("The gate could not be judged. The test sets differ")
    first_run = judged(client, gates={"rules": RULES})
    assert (first_run["verdict"], first_run["judged"]) == ("no_baseline", False)


def test_a_cell_is_a_target(client: httpx.Client) -> None:
    confused = ["a"] * 80 + ["b"] * 120
    rule = {"confusion": ["a", "b"], "max_gain": 0.02}
    gate = judged(client, y_pred=confused, baseline={"y_pred": TRUE}, gates={"rules": [rule]})
    (result,) = gate["results"]
    assert (result["index"], result["confusion"], result["delta"]) == (None, ["a", "b"], 0.2)
    assert gate["verdict"] == "fail"


@pytest.mark.parametrize(
    ("rule", "place", "said"),
    [
        ({"max_change": 0}, "/max_change", "it must be above 0"),
        ({"max_change": 1}, "/max_change", "must be below 1"),
        ({"max_change": 0.1, "max_drop": 0.1}, "", "exactly one of"),
        ({"max_change": 0.1, "policy": "average"}, "/policy", "the policy of max_change is each"),
        ({"equivalence": 0.1}, "", "Did you mean `max_change`?"),
    ],
)
def test_an_equivalence_that_means_nothing_is_refused(
    client: httpx.Client, rule: Json, place: str, said: str
) -> None:
    members = {"baseline": {"y_pred": TRUE}, "gates": {"rules": [{"index": "accuracy"} | rule]}}
    answer = client.post("/evaluate", json=GOOD | members)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == f"/gates/rules/0{place}"
    assert said in error["detail"]


def test_a_page_marks_a_change_on_its_side(client: httpx.Client) -> None:
    rules = [{"index": "accuracy", "max_change": 0.05}]
    members = {"baseline": {"y_pred": ["b"] * 20 + TRUE[20:]}, "gates": {"rules": rules}}
    answer = client.post("/evaluate", json=GOOD | members, headers={"Accept": "text/html"})
    assert "change +0.1000, limit ±0.0500" in answer.text


@pytest.mark.parametrize("model", [Gates, Gate])
def test_every_member_of_a_gate_is_described(model: Any) -> None:
    schema = model.model_json_schema()
    models = [schema, *schema["$defs"].values()]
    silent = [
        name
        for schema in models
        for name, member in schema.get("properties", {}).items()
        if "description" not in member and schema.get("title") not in OF_BASELINES
    ]
    assert not silent


OF_BASELINES = ("StoredSide",)
