"""What the store keeps of scores: overall indices with their intervals, shown as they were."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from rprime.core.catalog import OVERALL_INDICES
from rprime.core.evaluate import KEPT
from rprime.core.selection import SUMMARY
from tests.history_service import LABELS, Json, ServeApp, keep, keeping, matrix

SUMMARISED = [key for key in SUMMARY if key in OVERALL_INDICES and OVERALL_INDICES[key].scored]
N = 400
NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
def client(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


def scored(sharpness: float = 1.0, seed: int = 0, **more: Any) -> Json:
    """Return the probabilities of N items, nearer to the truth the sharper they are."""
    true = np.random.default_rng(7).integers(0, 3, N)
    draw = np.random.default_rng(seed)
    logits = draw.normal(size=(N, 3)) + sharpness * 2 * np.eye(3)[true]
    shares = np.exp(logits)
    shares /= shares.sum(1, keepdims=True)
    content = {"y_true": [LABELS[i] for i in true], "y_score": shares.tolist(), "labels": LABELS}
    return {name: v for name, v in ({**content, "project": "pets"} | more).items() if v is not ...}


def stored(client: httpx.Client, report: Json, **query: Any) -> Json:
    answer = client.get(report["links"]["self"], params=query)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def kept(value: Json) -> Json:
    """Return a value without what only the scores themselves show."""
    return {
        name: v for name, v in value.items() if name not in {"bins", "clipped", "if_calibrated"}
    }


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"families": ["all"]},
        {"calibration": {"bins": 6, "binning": "equal_mass"}},
        {"confidence": 0.8, "intervals": "all"},
        {"groups": [str(i // 4) for i in range(N)]},
        {"sample_weight": (np.arange(N) % 5 + 1.0).tolist()},
    ],
    ids=["summary", "all", "calibration", "bootstrap", "groups", "weights"],
)
def test_a_stored_report_has_the_indices_of_scores(client: httpx.Client, more: Json) -> None:
    report = keep(client, scored(version="1", **more))
    found = stored(client, report)["overall"]
    keys = [key for key in report["overall"] if OVERALL_INDICES[key].scored]
    assert set(SUMMARISED) <= set(keys)
    for key in keys:
        assert kept(found[key]) == kept(report["overall"][key]), key


def test_bins_are_stored_drawn_and_named_where_values_are_not_comparable(
    client: httpx.Client,
) -> None:
    wanted = {"bins": 6, "binning": "equal_mass"}
    keep(client, scored(version="1"))
    report = keep(client, scored(version="2", calibration=wanted, curves=True))
    found = stored(client, report, include="curves")
    assert found["options"]["calibration"] == wanted
    assert [bucket["items"] for bucket in found["curves"]["reliability"]] == [
        67,
        67,
        66,
        67,
        67,
        66,
    ]
    assert found["curves"]["reliability"] == report["curves"]["reliability"]
    trend = client.get(
        "/v1/projects/pets/trend", params={"index": "expected_calibration_error"}
    ).json()
    assert [item.get("options") for item in trend["items"]] == [None, "6 bins of equal mass"]


def test_indices_that_the_report_did_not_show_are_kept_too(client: httpx.Client) -> None:
    whole = client.post("/evaluate", json=scored(families=["all"], project=...))
    assert whole.status_code == 200, whole.text
    report = keep(client, scored(version="1", indices=["accuracy"]))
    found = stored(client, report, index=list(KEPT))["overall"]
    expected = {key: kept(whole.json()["overall"][key]) for key in KEPT}
    assert {key: kept(found[key]) for key in KEPT} == expected
    missing = stored(client, report, index=["d2_log_loss"])["overall"]["d2_log_loss"]
    assert missing == {"value": None, "interval": None, "reason": "no_scores"}


def test_scores_that_are_no_probabilities_keep_their_reason(client: httpx.Client) -> None:
    content = scored(version="1")
    content["y_score"] = (10 * np.array(content["y_score"])).tolist()
    report = keep(client, content)
    found = stored(client, report)["overall"]
    assert found["log_loss"]["reason"] == "not_probabilities"
    assert found["macro_roc_auc"] == report["overall"]["macro_roc_auc"]


def test_an_export_carries_them(client: httpx.Client, serve_app: ServeApp, tmp_path: Path) -> None:
    report = keep(client, scored(version="1"))
    (tmp_path / "other").mkdir()
    with keeping(serve_app, tmp_path / "other") as other:
        export = client.get("/v1/export")
        assert export.status_code == 200
        lines = [json.loads(line) for line in export.text.splitlines()]
        [document] = [line["evaluation"]["score_values"] for line in lines if "evaluation" in line]
        assert len(json.dumps(document)) < 4000
        error = document["overall"]["log_loss"]["standard_error"]
        low, high = document["overall"]["log_loss"]["interval"]
        assert error == pytest.approx((high - low) / 2 / document["quantile"])
        assert other.post("/v1/import", content=export.content, headers=NDJSON).status_code == 200
        assert stored(other, report)["overall"] == stored(client, report)["overall"]


def test_an_evaluation_without_scores_has_none(client: httpx.Client) -> None:
    report = keep(client, matrix(1, version="1"))
    assert not set(SUMMARISED) & set(stored(client, report)["overall"])
    found = stored(client, report, index=["log_loss"])["overall"]["log_loss"]
    assert found == {"value": None, "interval": None, "reason": "no_scores"}


def test_a_trend_follows_the_area_over_three_versions(client: httpx.Client) -> None:
    reports = [keep(client, scored(sharp, version=str(sharp))) for sharp in (0.5, 1.0, 2.0)]
    keep(client, matrix(1, version="unscored"))
    for index in SUMMARISED:
        answer = client.get("/v1/projects/pets/trend", params={"index": index})
        assert answer.status_code == 200, answer.text
        *points, last = answer.json()["items"]
        for point, report in zip(points, reports, strict=True):
            value = report["overall"][index]
            assert (point["value"], point["interval"]) == (value["value"], value["interval"])
            assert point.get("reason") == value.get("reason")
        assert (last["value"], last["interval"], last["reason"]) == (None, None, "no_scores")
    listed = client.get(
        "/v1/projects/pets/evaluations", params={"index": ["accuracy", "macro_roc_auc"]}
    ).json()["items"]
    areas = [one["values"]["macro_roc_auc"]["value"] for one in listed]
    assert areas == [None, *(r["overall"]["macro_roc_auc"]["value"] for r in reversed(reports))]


@pytest.mark.parametrize("keep_items", [True, False])
@pytest.mark.parametrize(
    "index", ["macro_roc_auc", "log_loss", "expected_calibration_error", "brier_score"]
)
def test_a_leaderboard_orders_by_an_index_of_scores(
    client: httpx.Client, index: str, keep_items: bool
) -> None:
    reports = {
        str(sharp): keep(client, scored(sharp, version=str(sharp), keep_items=keep_items))
        for sharp in (0.3, 2.0, 0.9)
    }
    answer = client.get("/v1/projects/pets/leaderboard", params={"index": index})
    assert answer.status_code == 200, answer.text
    tiers = answer.json()["tiers"]
    order = [one["version"] for tier in tiers for one in tier["versions"]]
    values = {version: r["overall"][index]["value"] for version, r in reports.items()}
    better = OVERALL_INDICES[index].higher_is_better
    assert order == sorted(values, key=values.__getitem__, reverse=bool(better))
    if OVERALL_INDICES[index].interval is not None:
        assert len(tiers) == 3, tiers


@pytest.mark.parametrize("keep_items", [True, False])
def test_two_stored_evaluations_are_compared_as_independent(
    client: httpx.Client, keep_items: bool
) -> None:
    old, new = (
        keep(client, scored(sharp, i, version=str(i), keep_items=keep_items))
        for i, sharp in enumerate((1.0, 1.2))
    )
    sides = {"candidate": {"evaluation": new["id"]}, "baseline": {"evaluation": old["id"]}}
    answer = client.post("/v1/compare", json=sides)
    assert answer.status_code == 200, answer.text
    for key in set(SUMMARISED) - {"expected_calibration_error"}:
        comparison = answer.json()["comparison"]
        difference = comparison["overall"][key]
        values = [report["overall"][key] for report in (new, old)]
        point = values[0]["value"] - values[1]["value"]
        assert difference["value"] == pytest.approx(point)
        assert difference.get("method", comparison["method"]) == "mover"
        widths = [high - low for low, high in (value["interval"] for value in values)]
        low, high = difference["interval"]
        assert high - low == pytest.approx(float(np.hypot(*widths)), rel=0.05)
        assert (low + high) / 2 == pytest.approx(point, abs=0.1 * (high - low))


@pytest.mark.parametrize(
    ("sharpness", "verdict"), [(2.0, "pass"), (0.2, "fail"), (0.98, "undecided")]
)
def test_a_gate_on_the_log_loss_is_judged_against_a_stored_baseline(
    client: httpx.Client, sharpness: float, verdict: str
) -> None:
    keep(client, scored(1.0, version="1"))
    rule = {"index": "log_loss", "max_gain": 0.03}
    asked: Json = {"baseline": {"version": "1"}, "gates": {"rules": [rule]}}
    report = keep(client, scored(sharpness, version="2", **asked))
    [result] = report["gate"]["results"]
    assert result["verdict"] == verdict
    found = client.get(report["links"]["self"]).json()
    assert found["gate"]["results"] == report["gate"]["results"]


def test_a_baseline_without_scores_is_not_comparable_in_them(client: httpx.Client) -> None:
    content = scored()
    best = np.argmax(content["y_score"], axis=1)
    names = {"y_true": content["y_true"], "y_pred": [LABELS[i] for i in best], "labels": LABELS}
    keep(client, {**names, "project": "pets", "version": "1"})
    rules = [{"index": "log_loss", "max_gain": 0.1}, {"index": "accuracy", "max_drop": 0.3}]
    asked: Json = {"baseline": {"version": "1"}, "gates": {"rules": rules}}
    report = keep(client, scored(version="2", **asked))
    verdicts = {r["rule"]: (r["verdict"], r["reason"]) for r in report["gate"]["results"]}
    assert verdicts["log_loss.max_gain"] == ("not_comparable", "no_scores")
    assert verdicts["accuracy.max_drop"][0] == "pass"
    assert "has no scores" in report["gate"]["message"] + str(report["gate"]["results"])
