"""Scores in requests: what is read, what is refused, and what the report says of them."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest

from rprime import evidence
from rprime.problems.problem import Problem
from rprime.schemas.document import parse
from rprime.settings import Limits
from tests.services import NO_TLS

TRUE = ["a", "b", "c", "a", "b", "c"]
ROWS = [
    [0.7, 0.2, 0.1],
    [0.1, 0.8, 0.1],
    [0.3, 0.3, 0.4],
    [0.2, 0.5, 0.3],
    [0.3, 0.6, 0.1],
    [0.1, 0.1, 0.8],
]
Json = dict[str, Any]


def read(**content: Any) -> evidence.Evidence:
    return evidence.read(parse(json.dumps(content).encode()), Limits())


def refused(**content: Any) -> tuple[str, str]:
    with pytest.raises(Problem) as caught:
        read(**content)
    return caught.value.errors[0].pointer, caught.value.errors[0].code


def predicted(content: evidence.Evidence) -> list[int]:
    assert content.items is not None
    return [int(code) for code in content.items.predicted]


def test_the_highest_score_is_predicted() -> None:
    content = read(y_true=TRUE, y_score=ROWS)
    assert content.kind == "scores"
    assert content.labels == ("a", "b", "c")
    assert predicted(content) == [0, 1, 2, 1, 1, 2]
    assert content.scores is not None
    assert content.scores.shape == (6, 3)
    assert content.scores.dtype == np.float64


def test_of_equal_scores_the_first_class_is_predicted() -> None:
    content = read(y_true=[0, 1], y_score=[[0.5, 0.5], [0.4, 0.6]])
    assert predicted(content) == [0, 1]


def test_predictions_beside_scores_are_kept() -> None:
    content = read(y_true=TRUE, y_score=ROWS, y_pred=[*TRUE[:5], None])
    assert predicted(content) == [0, 1, 2, 0, 1, 3]


def test_low_scores_leave_items_unclassified() -> None:
    content = read(y_true=TRUE, y_score=ROWS, reject_below=0.5)
    assert predicted(content) == [0, 1, 3, 1, 1, 2]
    assert content.table.unclassified is not None
    assert content.table.unclassified.tolist() == [0, 0, 1]


@pytest.mark.parametrize("column", [[0.2, 0.9, 0.5], [[0.2], [0.9], [0.5]]])
def test_one_column_is_enough_for_two_classes(column: Any) -> None:
    content = read(y_true=["n", "y", "n"], y_score=column)
    assert content.scores is not None
    np.testing.assert_allclose(content.scores, [[0.8, 0.2], [0.1, 0.9], [0.5, 0.5]])
    assert predicted(content) == [0, 1, 0]


def test_one_column_of_other_scores_is_mirrored() -> None:
    content = read(y_true=["n", "y"], y_score=[-1.5, 2])
    assert content.scores is not None
    np.testing.assert_array_equal(content.scores, [[1.5, -1.5], [-2, 2]])


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"y_score": ROWS[:5]}, "/y_score", "wrong_length"),
        ({"y_score": [row[:2] for row in ROWS]}, "/y_score", "wrong_length"),
        ({"y_score": [*ROWS[:5], [0.5, 0.5]]}, "/y_score/5", "wrong_length"),
        ({"y_score": [*ROWS[:5], [0.5, "x", 0]]}, "/y_score/5/1", "not_a_number"),
        ({"y_score": [*ROWS[:5], [0.5, True, 0]]}, "/y_score/5/1", "not_a_number"),
        ({"y_score": [*ROWS[:5], [0.5, None, 0]]}, "/y_score/5/1", "not_a_number"),
        ({"y_score": [*ROWS[:5], [0.5, 1e300, 0]]}, "/y_score/5/1", "out_of_range"),
        ({"y_score": [0.5] * 6}, "/y_score/0", "not_an_array"),
        ({"y_score": 1}, "/y_score", "not_an_array"),
        ({"y_score": []}, "/y_score", "empty"),
        ({"labels": ["a", "b"]}, "/y_true/2", "undeclared_label"),
        ({"labels": ["a", "b", "c", "d"]}, "/y_score", "wrong_length"),
        ({"y_pred": TRUE[:3]}, "/y_pred", "wrong_length"),
        ({"groups": [1]}, "/groups", "wrong_length"),
        ({"sample_weight": [1] * 5}, "/sample_weight", "wrong_length"),
        ({"sample_weight": [-1] * 6}, "/sample_weight/0", "out_of_range"),
        ({"cells": [[0, 0, 1]]}, "", "several_kinds"),
    ],
)
def test_bad_scores_are_refused_with_their_place(change: Json, pointer: str, code: str) -> None:
    assert refused(**{"y_true": TRUE, "y_score": ROWS, **change}) == (pointer, code)


def test_weights_beside_scores_weigh_the_table_and_the_scores() -> None:
    weights = [1, 2, 0.5, 1, 3, 1]
    content = read(y_true=TRUE, y_score=ROWS, sample_weight=weights)
    assert content.table.weighted
    assert content.table.total == sum(weights)
    assert content.ranked is not None
    assert content.ranked.weights is not None
    assert content.ranked.weights.tolist() == weights
    plain = read(y_true=TRUE, y_score=ROWS, sample_weight=[1] * 6)
    assert plain.ranked is not None
    assert plain.ranked.weights is None
    assert plain.input_digest != content.input_digest


def test_scores_need_the_truth() -> None:
    assert refused(y_score=ROWS) == ("", "no_evidence")


@pytest.mark.parametrize("name", ["reject_below", "curves", "reject", "thresholds"])
def test_options_of_scores_need_scores(name: str) -> None:
    place = (f"/{name}", "not_with_this_evidence")
    assert refused(**{"confusion_matrix": [[1]], name: 1}) == place


def test_the_digest_knows_the_scores() -> None:
    content = read(y_true=TRUE, y_score=ROWS)
    other = read(y_true=TRUE, y_score=[[0.6, 0.3, 0.1], *ROWS[1:]])
    labels = read(y_true=TRUE, y_pred=["a", "b", "c", "b", "b", "c"])
    digests = {side.input_digest for side in (content, other, labels)}
    assert len(digests) == 3
    assert content.fingerprint == other.fingerprint == labels.fingerprint


def post(client: httpx.Client, **content: Any) -> Json:
    answer = client.post("/evaluate", json={"y_true": TRUE, "y_score": ROWS} | content)
    assert answer.status_code == 200, answer.text
    report: Json = answer.json()
    return report


def test_a_report_has_the_indices_of_scores(client: httpx.Client) -> None:
    padded = [[*row, 0] for row in ROWS]
    report = post(client, labels=["a", "b", "c", "d"], y_score=padded, families=["core"])
    overall, of_class = report["overall"], report["per_class"]
    probabilities = [0.7, 0.8, 0.4, 0.2, 0.6, 0.8]
    assert overall["log_loss"]["value"] == pytest.approx(-np.log(probabilities).mean())
    assert overall["log_loss"]["clipped"] == 0
    assert overall["log_loss"]["interval"] is not None
    left_out = [{"class": "d", "reason": "no_true_samples"}]
    assert overall["hand_till_auc"]["excluded"] == left_out
    assert overall["macro_roc_auc"]["excluded"] == left_out
    assert sum(bucket["items"] for bucket in overall["expected_calibration_error"]["bins"]) == 6
    assert of_class["d"]["indices"]["roc_auc"]["reason"] == "no_true_samples"
    assert "curves" not in report


def test_curves_rejection_and_thresholds_come_when_asked_for(client: httpx.Client) -> None:
    report = post(client, curves=True, reject="sweep", thresholds={"b": 0.5}, top_k=2)
    assert list(report["curves"]["roc"]) == ["a", "b", "c"]
    assert report["curves"]["risk_coverage"]["coverage"][-1] == 1
    assert report["rejection"]["threshold"][0] is None
    assert report["rejection"]["r_prime"][0] == 1
    view = report["thresholds"]["b"]
    assert view["table"] == [[2, 0], [1, 3]]
    assert view["values"]["recall"] == 1
    assert report["options"]["top_k"] == 2
    assert report["overall"]["top_k_accuracy"]["value"] == pytest.approx(5 / 6)


def test_rejected_items_inflate_r_prime(client: httpx.Client) -> None:
    plain, rejected = post(client), post(client, reject_below=0.55)
    assert rejected["counts"]["unclassified"] == 2
    assert rejected["overall"]["r_prime"]["value"] > plain["overall"]["r_prime"]["value"]
    codes = {warning["code"] for warning in rejected["warnings"]}
    assert "omission_inflates_r_prime" in codes


def extreme(n: int, sharpness: float) -> Json:
    """Return probabilities whose logits are too large by a factor."""
    draw = np.random.default_rng(3)
    logits = draw.normal(size=(n, 3)) * 2
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    true = (draw.random(n)[:, None] > np.cumsum(shares, axis=1)).sum(1).clip(max=2)
    sharp = np.exp(sharpness * logits)
    sharp /= sharp.sum(1, keepdims=True)
    return {"y_true": [TRUE[i] for i in true], "y_score": sharp.tolist()}


def test_calibration_is_added_where_it_is_asked_for(client: httpx.Client) -> None:
    plain, report = post(client), post(client, calibration={})
    added = report["overall"].keys() - plain["overall"].keys()
    assert {"debiased_calibration_error", "brier_reliability"} < added
    assert report["options"]["calibration"] == {"bins": 15, "binning": "equal_width"}
    assert "calibration" not in plain["options"]
    error = report["overall"]["expected_calibration_error"]
    assert 0 < error["if_calibrated"] < error["value"]
    few = post(client, calibration={"bins": 2})["overall"]["expected_calibration_error"]
    assert [bucket["high"] for bucket in few["bins"]] == [0.5, 1]
    answer = client.post(
        "/evaluate",
        json={"y_true": TRUE, "y_score": ROWS, "calibration": {}},
        headers={"Accept": "text/markdown"},
    )
    assert f"| Expected calibration error | **{error['value']:.4f}**§ |" in answer.text
    assert f"about {error['if_calibrated']:.4f} on average if every probability" in answer.text


def test_gates_on_calibration_fail_pass_or_stay_undecided(client: httpx.Client) -> None:
    rules = [
        {"id": "slope", "index": "macro_calibration_slope", "min_value": 0.8},
        {"id": "classes", "index": "calibration_slope", "min_value": 0.8, "classes": "all"},
        {"id": "error", "index": "expected_calibration_error", "max_value": 0.05},
    ]
    verdicts = {}
    for name, (n, sharpness) in {"bad": (500, 2.0), "good": (500, 1.0), "few": (60, 1.2)}.items():
        content = extreme(n, sharpness) | {"gates": {"rules": rules}, "intervals": "all"}
        answer = client.post("/evaluate", json=content)
        assert answer.status_code == 200, answer.text
        results = answer.json()["gate"]["results"]
        verdicts[name] = [result["verdict"] for result in results]
    assert verdicts["bad"] == ["fail"] * 5
    assert verdicts["good"][0] == "pass"
    assert verdicts["few"][0] == verdicts["few"][-1] == "undecided"


def test_a_rule_about_a_calibration_error_without_an_interval_says_what_to_write(
    client: httpx.Client,
) -> None:
    content: Json = {"y_true": TRUE, "y_score": ROWS}
    for index, cure in (
        ("maximum_calibration_error", "test: none"),
        ("debiased_calibration_error", '"intervals": "all"'),
    ):
        rules = [{"index": index, "max_value": 0.2}]
        answer = client.post("/evaluate", json=content | {"gates": {"rules": rules}})
        assert answer.status_code == 422
        (error,) = answer.json()["errors"]
        assert error["pointer"] == "/gates/rules/0/index"
        assert cure in error["detail"]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"thresholds": {"z": 0.5}}, "/thresholds"),
        ({"thresholds": None}, "/thresholds"),
        ({"reject": "all"}, "/reject"),
        ({"reject_below": "0.5"}, "/reject_below"),
        ({"top_k": 0}, "/top_k"),
        ({"curves": 1}, "/curves"),
        ({"calibration": {"bins": 0}}, "/calibration/bins"),
        ({"calibration": {"bins": 1001}}, "/calibration/bins"),
        ({"calibration": {"binning": "equal_bins"}}, "/calibration/binning"),
        ({"calibration": {"norm": "l2"}}, "/calibration"),
        ({"calibration": 10}, "/calibration"),
    ],
)
def test_bad_options_of_scores_are_refused(
    client: httpx.Client, change: Json, pointer: str
) -> None:
    answer = client.post("/evaluate", json={"y_true": TRUE, "y_score": ROWS, **change})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"].startswith(pointer)


def test_asked_for_without_scores_an_index_is_null(client: httpx.Client) -> None:
    body = {"confusion_matrix": [[5, 1], [1, 5]], "indices": ["roc_auc", "log_loss"]}
    report = client.post("/evaluate", json=body).json()
    nothing = {"value": None, "interval": None, "reason": "no_scores"}
    assert report["overall"] == {"log_loss": nothing}
    assert report["per_class"]["0"]["indices"]["roc_auc"] == nothing


def many(rng: np.random.Generator, n: int, sharp: float, true: list[int]) -> list[list[float]]:
    values = rng.standard_normal((n, 3))
    values[np.arange(n), true] += sharp
    shares = np.exp(values)
    rows: list[list[float]] = (shares / shares.sum(-1, keepdims=True)).tolist()
    return rows


def test_gates_on_scores_pass_and_fail(client: httpx.Client) -> None:
    rng = np.random.default_rng(7)
    true = rng.integers(0, 3, 900).tolist()
    good, bad = many(rng, 900, 2.5, true), many(rng, 900, 1.0, true)
    rules = [
        {"index": "macro_roc_auc", "max_drop": 0.05},
        {"index": "log_loss", "max_gain": 0.1},
        {"index": "brier_score", "max_value": 1.0},
        {"index": "roc_auc", "classes": "all", "max_drop": 0.05},
        {"index": "roc_auc", "classes": ["0"], "min_value": 0.6},
        {"index": "conditional_log_likelihood", "max_drop": 90},
    ]
    for new, old, verdict in ((good, bad, "pass"), (bad, good, "fail")):
        report = post(
            client, y_true=true, y_score=new, baseline={"y_score": old}, gates={"rules": rules}
        )
        assert report["comparison"]["pairing"] == "paired"
        assert report["gate"]["verdict"] == verdict
        verdicts = {r["rule"]: r["verdict"] for r in report["gate"]["results"]}
        assert verdicts["log_loss.max_gain"] == verdict
        assert verdicts["conditional_log_likelihood.max_drop"] == verdict
        assert verdicts["brier_score.max_value"] == verdicts["roc_auc.min_value"] == "pass"


def test_a_gate_on_scores_that_were_not_sent_never_passes(client: httpx.Client) -> None:
    body: Json = {
        "confusion_matrix": [[50, 1], [1, 50]],
        "baseline": {"confusion_matrix": [[50, 1], [1, 50]]},
        "gates": {"rules": [{"index": "log_loss", "max_gain": 0.1}]},
    }
    report = client.post("/evaluate", json=body).json()
    assert (report["gate"]["verdict"], report["gate"]["judged"]) == ("fail", False)
    assert report["gate"]["results"][0]["reason"] == "no_scores"
    del body["baseline"]
    body["gates"] = {"rules": [{"index": "log_loss", "max_value": 1.0}]}
    assert client.post("/evaluate", json=body).json()["gate"]["verdict"] == "fail"


def test_two_sides_with_scores_are_compared(client: httpx.Client) -> None:
    body = {
        "candidate": {"y_true": TRUE, "y_score": ROWS},
        "baseline": {"y_score": ROWS[::-1], "reject_below": 0.45},
    }
    answer = client.post("/v1/compare", json=body)
    assert answer.status_code == 200
    comparison = answer.json()["comparison"]
    assert comparison["pairing"] == "paired"
    assert comparison["overall"]["log_loss"]["interval"] is not None


def test_the_catalog_says_which_indices_need_scores(client: httpx.Client) -> None:
    entry = client.get("/v1/indices/class/roc_auc").json()
    assert entry["scores"] is True
    assert entry["properties"] is None
    assert client.get("/v1/indices/class/recall").json()["scores"] is False


def test_intervals_drawn_from_scores_delay_no_other_request(client: httpx.Client) -> None:
    draw = np.random.default_rng(3)
    scores = draw.dirichlet(np.ones(4), 1000).round(3)
    slow = {"y_true": draw.integers(4, size=1000).tolist(), "y_score": scores.tolist()}
    slow |= {"intervals": "all", "families": ["all"]}
    quick = {"confusion_matrix": [[9, 1], [2, 8]]}

    def send(content: Json) -> tuple[float, Json]:
        begun = time.monotonic()
        with httpx.Client(base_url=client.base_url, timeout=60, verify=NO_TLS) as alone:
            answer = alone.post("/v1/evaluate", json=content)
        assert answer.status_code == 200
        return time.monotonic() - begun, answer.json()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(send, slow)
        meanwhile = []
        while not future.done():
            meanwhile.append(send(quick)[0])
        took, report = future.result()
    assert report["overall"]["expected_calibration_error"]["interval"] is not None
    assert len(meanwhile) > 3
    assert sorted(meanwhile)[len(meanwhile) // 2] < took / 4


def test_a_batch_draws_nothing_from_scores(client: httpx.Client) -> None:
    slow = {"y_true": TRUE, "y_score": ROWS, "labels": ["a", "b", "c"], "intervals": "all"}
    answer = client.post(
        "/v1/evaluate/batch", json={"requests": [slow, {**slow, "intervals": True}]}
    )
    refused, result = answer.json()["results"]
    (error,) = refused["problem"]["errors"]
    assert (error["pointer"], error["code"]) == ("/intervals", "misplaced")
    assert result["status"] == 200
