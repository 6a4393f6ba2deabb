"""Baselines, gates, POST /v1/compare and POST /v1/gates/lint over HTTP."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

Json = Any
TABLES = json.loads((Path(__file__).parents[1] / "reference/beyond_ap_tables.json").read_text())
PAIRS = {
    ("table7_mnist_before", "table7_mnist_after"): ["0", "4", "6", "8"],
    ("table8_cifar10_before", "table8_cifar10_after"): ["cat", "deer", "dog", "horse"],
}
GATE = {"rules": [{"index": "r_prime", "classes": "all", "max_drop": 0.05}]}
TRUE = ["cat"] * 60 + ["dog"] * 60
GOOD = ["cat"] * 57 + ["dog"] * 3 + ["dog"] * 58 + ["cat"] * 2
BAD = ["cat"] * 35 + ["dog"] * 25 + ["dog"] * 58 + ["cat"] * 2


def side(name: str) -> dict[str, Json]:
    table = TABLES["matrices"][name]
    return {"confusion_matrix": table["counts"], "labels": table["classes"]}


def evaluated(client: httpx.Client, **body: Json) -> Json:
    return judged(client.post("/evaluate", json=body))


def with_cells(client: httpx.Client, **body: Json) -> Json:
    return judged(client.post("/evaluate?include=cells", json=body))


def judged(answer: httpx.Response) -> Json:
    assert answer.status_code == 200, answer.text
    report = answer.json()
    assert answer.headers.get("Evaluation-Verdict") == report.get("gate", {}).get("verdict")
    return report


def verdicts(report: Json) -> set[str]:
    return {result["verdict"] for result in report["gate"]["results"]}


@pytest.mark.parametrize("pair", PAIRS)
def test_the_gate_finds_the_classes_that_the_paper_names(
    client: httpx.Client, pair: tuple[str, str]
) -> None:
    before, after = map(side, pair)
    report = with_cells(client, **before, baseline=after, gates=GATE)
    failed = [r["class"] for r in report["gate"]["results"] if r["verdict"] == "fail"]
    assert report["gate"]["verdict"] == "fail"
    assert failed == PAIRS[pair]
    moved = {(c["true"], c["predicted"]) for c in report["comparison"]["cells"]}
    assert {(name, name) for name in failed} & moved


@pytest.mark.parametrize("pair", PAIRS)
def test_no_class_fails_the_other_way_round(client: httpx.Client, pair: tuple[str, str]) -> None:
    before, after = map(side, pair)
    report = evaluated(client, **after, baseline=before, gates=GATE)
    assert verdicts(report) == {"pass"}
    assert report["gate"]["verdict"] == "pass"


def test_the_report_names_the_confusions_that_moved(client: httpx.Client) -> None:
    before, after = side("table7_mnist_before"), side("table7_mnist_after")
    comparison = with_cells(client, **before, baseline=after)["comparison"]
    worst = comparison["attribution"]["accuracy"]["cells"][0]
    assert (worst["true"], worst["predicted"]) == ("4", "9")
    parts = comparison["attribution"]["accuracy"]
    total = sum(c["contribution"] for c in parts["cells"]) + parts["rest"]
    assert total == pytest.approx(comparison["overall"]["accuracy"]["value"], abs=1e-6)


def test_predictions_for_the_same_items_are_compared_item_by_item(client: httpx.Client) -> None:
    report = evaluated(client, y_true=TRUE, y_pred=BAD, baseline={"y_pred": GOOD})
    comparison = report["comparison"]
    assert (comparison["comparability"], comparison["pairing"]) == ("same_items", "paired")
    assert comparison["overall"]["accuracy"]["method"] == "tango"
    assert comparison["flips"]["right_to_wrong"] == 22
    assert comparison["moves"][0] == {"true": "cat", "from": "cat", "to": "dog", "items": 22}


def test_two_label_lists_of_one_test_set_are_paired(client: httpx.Client) -> None:
    baseline = {"y_true": TRUE, "y_pred": GOOD}
    report = evaluated(client, y_true=TRUE, y_pred=BAD, baseline=baseline)
    assert report["comparison"]["comparability"] == "same_items"


def test_other_test_sets_are_not_compared_and_never_pass(client: httpx.Client) -> None:
    baseline = {"y_true": TRUE[::-1], "y_pred": GOOD}
    report = evaluated(client, y_true=TRUE, y_pred=GOOD, baseline=baseline, gates=GATE)
    assert report["comparison"]["comparability"] == "different"
    assert verdicts(report) == {"not_comparable"}
    assert report["gate"]["verdict"] == "fail"


def test_declared_test_sets_decide_where_there_are_no_items(client: httpx.Client) -> None:
    table = side("table7_mnist_after")
    other = table | {"test_set": {"id": "october"}}
    same = table | {"test_set": {"id": "november"}}
    for baseline, expected in ((other, "different"), (same, "same_test_set")):
        report = evaluated(client, **table, test_set={"id": "november"}, baseline=baseline)
        assert report["comparison"]["comparability"] == expected


class TestFailsClosed:
    """Missing evidence is never a pass."""

    def test_without_a_baseline(self, client: httpx.Client) -> None:
        report = evaluated(client, y_true=TRUE, y_pred=GOOD, gates=GATE)
        assert verdicts(report) == {"no_baseline"}
        assert report["gate"]["verdict"] == "no_baseline"

    def test_with_a_class_missing_from_the_baseline(self, client: httpx.Client) -> None:
        baseline = {"confusion_matrix": [[9, 1], [1, 9]], "labels": ["cat", "eel"]}
        gates = {"rules": [{"index": "recall", "classes": ["dog"], "max_drop": 0.1}]}
        report = evaluated(client, y_true=TRUE, y_pred=GOOD, baseline=baseline, gates=gates)
        assert verdicts(report) == {"no_baseline"}
        assert (report["gate"]["verdict"], report["gate"]["judged"]) == ("inconclusive", False)

    def test_with_an_undefined_value(self, client: httpx.Client) -> None:
        never = ["cat"] * 120
        gates = {"rules": [{"index": "class_mcc", "classes": ["dog"], "max_drop": 0.1}]}
        body = {"y_true": TRUE, "y_pred": never, "baseline": {"y_pred": GOOD}}
        report = evaluated(client, **body, gates=gates, undefined="one")
        assert verdicts(report) == {"undefined"}
        assert report["gate"]["verdict"] == "fail"

    def test_without_rules(self, client: httpx.Client) -> None:
        report = evaluated(client, y_true=TRUE, y_pred=GOOD, gates={"rules": []})
        assert report["gate"]["verdict"] == "no_rules"

    def test_with_weights(self, client: httpx.Client) -> None:
        gates = {"rules": [{"index": "accuracy", "min_value": 0.1}]}
        body = {"y_true": TRUE, "y_pred": GOOD, "sample_weight": [100] * 120}
        report = evaluated(client, **body, gates=gates)
        assert verdicts(report) == {"pass"}
        assert report["overall"]["accuracy"]["interval"][0] > 0.1

    def test_a_baseline_with_weights(self, client: httpx.Client) -> None:
        gates = {"rules": [{"index": "accuracy", "max_drop": 0.1}]}
        body = {"y_true": TRUE, "y_pred": GOOD, "sample_weight": [0.5, 1.5, 1] * 40}
        same = evaluated(client, **body, gates=gates, baseline={"y_pred": GOOD})
        assert verdicts(same) == {"pass"}
        bad = ["cat" if label == "dog" else "dog" for label in TRUE]
        worse = evaluated(client, **body | {"y_pred": bad}, gates=gates, baseline={"y_pred": GOOD})
        assert verdicts(worse) == {"fail"}
        table = {
            "confusion_matrix": [[20.5, 9], [1, 30]],
            "labels": ["cat", "dog"],
            "weighted": True,
        }
        unknown = evaluated(client, **body, gates=gates, baseline=table)
        assert verdicts(unknown) == {"undecided"}
        assert "the weights of the items are unknown" in unknown["gate"]["results"][0]["message"]

    @pytest.mark.parametrize(
        ("gates", "pointer"),
        [
            ({"rules": [{"index": "acuracy", "max_drop": 0.1}]}, "/gates/rules/0/index"),
            (
                {"rules": [{"index": "accuracy", "max_drop": 0.1, "clases": "all"}]},
                "/gates/rules/0",
            ),
            ({"rules": [{"index": "accuracy", "max_drop": 0}]}, "/gates/rules/0/max_drop"),
            ({"rules": [{"index": "error_rate", "max_drop": 0.1}]}, "/gates/rules/0/max_drop"),
            ({"rules": [{"index": "accuracy"}]}, "/gates/rules/0"),
            ({"rules": [{"index": "kappa", "classes": "all", "max_drop": 0.1}]}, "/gates/rules/0"),
            ({"rulez": []}, "/gates"),
            (None, "/gates"),
        ],
    )
    def test_with_a_gate_that_means_nothing(
        self, client: httpx.Client, gates: Json, pointer: str
    ) -> None:
        answer = client.post("/evaluate", json={"y_true": TRUE, "y_pred": GOOD, "gates": gates})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"].startswith(pointer)

    def test_a_mistake_in_a_gate_is_not_echoed(self, client: httpx.Client) -> None:
        rule = {"id": "canary-4711", "index": "accuracy", "max_drop": 0.1}
        waiver = {"rule": "canary-0815", "ceiling": 1, "reason": "r", "by": "b"}
        gates = {"rules": [rule, rule], "waivers": [waiver | {"expires": "2030-01-01"}]}
        answer = client.post("/evaluate", json={"y_true": TRUE, "y_pred": GOOD, "gates": gates})
        assert answer.status_code == 422
        assert "canary" not in answer.text


def test_a_waiver_covers_a_known_failure_until_it_expires(client: httpx.Client) -> None:
    rule = {"index": "recall", "classes": ["cat"], "max_drop": 0.05}
    waiver = {"rule": "recall.max_drop", "ceiling": 0.5, "reason": "known", "by": "ann"}
    for expires, expected in (("2999-01-01", "waived"), ("2020-01-01", "fail")):
        gates = {"rules": [rule], "waivers": [waiver | {"expires": expires}]}
        body = {"y_true": TRUE, "y_pred": BAD, "baseline": {"y_pred": GOOD}}
        assert verdicts(evaluated(client, **body, gates=gates)) == {expected}


def test_groups_widen_the_intervals(client: httpx.Client) -> None:
    alone = evaluated(client, y_true=TRUE, y_pred=BAD)
    groups = [i // 20 for i in range(120)]
    grouped = evaluated(client, y_true=TRUE, y_pred=BAD, groups=groups)
    widths = [
        report["overall"]["accuracy"]["interval"][1] - report["overall"]["accuracy"]["interval"][0]
        for report in (alone, grouped)
    ]
    assert widths[1] > 1.5 * widths[0]


def test_compare_gives_what_evaluate_gives(client: httpx.Client) -> None:
    before, after = side("table7_mnist_before"), side("table7_mnist_after")
    answer = client.post(
        "/v1/compare",
        json={"candidate": before, "baseline": after, "gates": GATE, "options": {"beta": 2}},
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["Evaluation-Verdict"] == "fail"
    report = with_cells(client, **before, baseline=after, gates=GATE, beta=2)
    compared = answer.json()["comparison"]
    for deltas in (compared["overall"], *compared["per_class"].values()):
        for delta in deltas.values():
            del delta["candidate"]  # the report has it
    assert compared == report["comparison"]
    assert answer.json()["gate"] == report["gate"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"candidate": side("table7_mnist_after")}, "/baseline"),
        ({"candidate": {"labels": ["a"]}, "baseline": {"y_pred": ["a"]}}, "/candidate"),
        (
            {"candidate": side("table7_mnist_after"), "baseline": {"y_pred": ["a"]}},
            "/baseline/y_pred",
        ),
        (
            {"candidate": {"y_true": TRUE, "y_pred": GOOD}, "baseline": {"y_pred": GOOD[1:]}},
            "/baseline/y_pred",
        ),
        (
            {
                "candidate": side("table7_mnist_after"),
                "baseline": side("table7_mnist_after"),
                "options": {"cost": [[1, 2]]},
            },
            "/options/cost",
        ),
    ],
)
def test_what_cannot_be_compared_is_named(client: httpx.Client, body: Json, pointer: str) -> None:
    answer = client.post("/v1/compare", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_lint_says_how_often_a_gate_fails_by_noise(client: httpx.Client) -> None:
    table = side("table7_mnist_after")
    noisy = {"rules": [{"index": "recall", "classes": "all", "max_drop": 0.003, "test": "none"}]}
    answers = [
        client.post("/v1/gates/lint", json={**table, "gates": gates, "pairing": "unpaired"})
        for gates in (GATE, noisy)
    ]
    calm, loud = (answer.json() for answer in answers)
    assert calm["false_fail_rate"] <= 0.01
    assert loud["false_fail_rate"] > 0.5
    assert [rule["class"] for rule in calm["rules"]] == table["labels"]
    assert loud["advice"]


def test_lint_needs_a_table_of_whole_numbers(client: httpx.Client) -> None:
    body = {"confusion_matrix": [[1.5, 0], [0, 2]], "gates": GATE}
    answer = client.post("/v1/gates/lint", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["code"] == "not_for_lint"


@pytest.mark.parametrize("action", ["lint", "plan"])
@pytest.mark.parametrize("name", ["groups", "sample_weight"])
def test_only_items_that_count_once_and_alone_are_simulated(
    client: httpx.Client, action: str, name: str
) -> None:
    body = KINDS["scores"] | {name: [1 + i // 5 for i in range(120)]}
    body |= {"gates": {"rules": [{"index": "accuracy", "max_drop": 0.1}]}}
    answer = client.post(f"/v1/gates/{action}", json=body)
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == (f"/{name}", "not_for_lint")


KINDS: dict[str, Any] = {
    "matrix": {"confusion_matrix": [[90, 10], [5, 95]], "axis": "rows_are_true"},
    "cells": {"cells": [[0, 0, 90], [0, 1, 10], [1, 1, 95]], "labels": ["cat", "dog"]},
    "labels": {"y_true": ["cat", "dog"] * 60, "y_pred": ["cat", "dog"] * 58 + ["cat"] * 4},
    "scores": {"y_true": [0, 1] * 60, "y_score": [[0.8, 0.2], [0.3, 0.7], [0.6, 0.4]] * 40},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("action", ["lint", "plan"])
def test_lint_and_plan_take_every_kind_of_evidence_that_is_published(
    client: httpx.Client, action: str, kind: str
) -> None:
    document = client.get("/openapi.json").json()
    operation = document["paths"][f"/v1/gates/{action}"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    valid = Draft202012Validator({**schema, "components": document["components"]})
    body = {"gates": {"rules": [{"index": "accuracy", "max_drop": 0.1}]}, **KINDS[kind]}
    body |= {"replicates": 200} if action == "lint" else {"drop": 0.2}
    assert not list(valid.iter_errors(body))
    answer = client.post(f"/v1/gates/{action}", json=body)
    assert answer.status_code == 200, answer.text
    wrong = body | {"dropp": 0.1}
    assert list(valid.iter_errors(wrong))
    assert client.post(f"/v1/gates/{action}", json=wrong).status_code == 422


@pytest.mark.parametrize("action", ["lint", "plan"])
def test_rules_about_scores_are_not_simulated(client: httpx.Client, action: str) -> None:
    scored, plain = {"index": "macro_roc_auc", "max_drop": 0.1}, {"index": "kappa", "max_drop": 0.1}
    answers = [
        client.post(f"/v1/gates/{action}", json={"gates": {"rules": rules}, **KINDS["scores"]})
        for rules in ([plain, scored], [scored])
    ]
    assert [answer.status_code for answer in answers] == [200, 422]
    assert answers[0].json()["advice"][0].endswith("read scores: macro_roc_auc.max_drop.")
    assert answers[1].json()["errors"][0]["pointer"] == "/gates/rules/0/index"


CONSTANT = {
    "majority": "It always predicts `cat`, the commonest class of the items.",
    "uniform": "It predicts each of the 2 classes with equal probability.",
    "prior": "It predicts each class with its share of the items.",
}
ITEMS = {"y_true": TRUE, "y_pred": GOOD}


@pytest.mark.parametrize("kind", CONSTANT)
def test_a_constant_classifier_is_a_baseline(client: httpx.Client, kind: str) -> None:
    gates = {"rules": [{"index": "accuracy", "min_gain": 0.3}]}
    report = evaluated(client, **ITEMS, baseline={"constant": kind}, gates=gates)
    comparison = report["comparison"]
    baseline = {"requested": {"constant": kind}, "resolved": None, "why": CONSTANT[kind]}
    assert comparison["baseline"] == baseline
    assert (comparison["comparability"], comparison["pairing"]) == ("same_items", "paired")
    assert comparison["overall"]["accuracy"]["baseline"] == 0.5
    assert (comparison["flips"] is None) == (kind != "majority")
    assert verdicts(report) == {"pass"}
    body = {"candidate": ITEMS, "baseline": {"constant": kind}, "gates": gates}
    compared = judged(client.post("/v1/compare", json=body))
    assert compared["gate"] == report["gate"]
    assert compared["comparison"]["baseline"] == baseline
    accept, asked = {"Accept": "text/markdown"}, {**ITEMS, "baseline": {"constant": kind}}
    page = client.post("/evaluate", json=asked, headers=accept)
    assert f"`{kind} classifier`" in page.text


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({**ITEMS, "baseline": {"constant": "median"}}, "/baseline/constant", "literal_error"),
        ({**ITEMS, "constant": "majority"}, "", "unknown_field"),
        ({**ITEMS, "baseline": {"constant": "majority", "y_pred": GOOD}}, "/baseline", None),
        (
            {**ITEMS, "baseline": {"constant": "majority", "test_set": {"id": "a"}}},
            "/baseline",
            "constant_alone",
        ),
        (
            {"confusion_matrix": [[1]], "spurious": [1], "baseline": {"constant": "prior"}},
            "/baseline/constant",
            "not_with_spurious",
        ),
        (
            {
                "cells": [[0, 0, 1]],
                "labels": [*map(str, range(1001))],
                "baseline": {"constant": "uniform"},
            },
            "/baseline/constant",
            "too_many_classes",
        ),
        (
            {
                **ITEMS,
                "item_id": [*range(120)],
                "changed_items": True,
                "baseline": {"constant": "prior"},
            },
            "/changed_items",
            "no_predictions",
        ),
    ],
)
def test_what_no_constant_classifier_can_be_is_refused(
    client: httpx.Client, body: Json, pointer: str, code: str | None
) -> None:
    answer = client.post("/evaluate", json=body)
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert error["pointer"] == pointer
    assert error["code"] == (code or "several_kinds")


def test_a_candidate_is_no_constant_classifier(client: httpx.Client) -> None:
    body = {"candidate": {"constant": "majority"}, "baseline": ITEMS}
    answer = client.post("/v1/compare", json=body)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/candidate", "unknown_field")


def test_many_classes_have_a_majority(client: httpx.Client) -> None:
    cells, labels = [[0, 0, 5], [0, 1, 1], [1, 1, 3]], [*map(str, range(5000))]
    report = evaluated(client, cells=cells, labels=labels, baseline={"constant": "majority"})
    assert report["comparison"]["overall"]["accuracy"]["baseline"] == 6 / 9


def test_changes_from_the_majority_are_named(client: httpx.Client) -> None:
    body = {**ITEMS, "item_id": [*range(120)], "changed_items": True}
    report = evaluated(client, **body, baseline={"constant": "majority"})
    assert report["changed_items"]["total"] == GOOD.count("dog")
