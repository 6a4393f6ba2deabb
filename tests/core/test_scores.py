"""Indices of scores are what scikit-learn and their definitions say."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from rprime.core.catalog import INDICES
from rprime.core.index import REASONS
from rprime.core.scores.calibration import are_probabilities
from rprime.core.scores.ranking import ClassRanking
from rprime.core.scores.scores import Scores
from tests.core.score_values import drawn, evaluated, softmax, values

CASES = json.loads((Path(__file__).parents[1] / "reference" / "scores.json").read_text())["cases"]
CALIBRATION = [e for e in INDICES if e.family == "calibration" and e.scope == "overall"]


def scores_of(case: dict[str, Any]) -> Scores:
    return Scores(np.array(case["y_true"], dtype=np.uint8), np.array(case["y_score"]))


@pytest.mark.parametrize("name", CASES)
def test_reference_scores_give_their_values(name: str) -> None:
    case = CASES[name]
    indices = values(evaluated(scores_of(case), **case["options"]))
    for scope in ("per_class", "overall"):
        for key, expected in case[scope].items():
            got = np.atleast_1d(indices["class" if scope == "per_class" else scope, key])
            reference = np.array(np.atleast_1d(np.array(expected, object)), dtype=np.float64)
            where = f"{name} {key}"
            np.testing.assert_allclose(got, reference, rtol=1e-9, atol=1e-9, err_msg=where)


def test_every_index_of_scores_has_a_reference_value() -> None:
    keys = {("class", key) for case in CASES.values() for key in case["per_class"]}
    keys |= {("overall", key) for case in CASES.values() for key in case["overall"]}
    assert {(entry.scope, entry.key) for entry in INDICES if entry.scored} == keys


@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize("digits", [None, 2])
def test_values_are_those_of_scikit_learn(k: int, digits: int | None) -> None:
    rng = np.random.default_rng(k)
    drawn_scores = drawn(rng, 3000, k)
    probabilities = drawn_scores.values
    if digits is not None:  # many equal scores, still probabilities
        probabilities = rng.multinomial(10**digits, probabilities) / 10**digits
    scores = Scores(drawn_scores.true, probabilities)
    y, indices = scores.true, values(evaluated(scores, top_k=2))
    for i in range(k):
        of_class = (y == i, probabilities[:, i])
        assert indices["class", "roc_auc"][i] == pytest.approx(
            metrics.roc_auc_score(*of_class), abs=1e-9
        )
        assert indices["class", "average_precision"][i] == pytest.approx(
            metrics.average_precision_score(*of_class), abs=1e-9
        )
    expected = {
        "macro_roc_auc": metrics.roc_auc_score(y, probabilities, multi_class="ovr"),
        "weighted_roc_auc": metrics.roc_auc_score(
            y, probabilities, multi_class="ovr", average="weighted"
        ),
        "hand_till_auc": metrics.roc_auc_score(y, probabilities, multi_class="ovo"),
        # scikit-learn puts the class with the highest index first among equal scores.
        "top_k_accuracy": metrics.top_k_accuracy_score(k - 1 - y, probabilities[:, ::-1], k=2),
        "brier_score": metrics.brier_score_loss(y, probabilities, scale_by_half=False),
    }
    if probabilities[np.arange(len(y)), y].min() > 0:
        expected["log_loss"] = metrics.log_loss(y, probabilities)
    for key, value in expected.items():
        assert indices["overall", key] == pytest.approx(value, abs=1e-9), key


@pytest.mark.parametrize("digits", [None, 1])
def test_weighted_values_are_those_of_scikit_learn(digits: int | None) -> None:
    rng = np.random.default_rng(13)
    plain, k = drawn(rng, 400, 3), 3
    shares = plain.values
    if digits is not None:  # many equal scores, still probabilities, none 0
        shares = (rng.multinomial(10**digits, shares) + 1) / (10**digits + 3)
    weights = rng.uniform(0, 3, 400) * (rng.random(400) > 0.1)
    y, indices = plain.true, values(evaluated(Scores(plain.true, shares, weights=weights), top_k=2))
    for i in range(k):
        positive = y == i
        for key, of_class in (
            ("roc_auc", metrics.roc_auc_score),
            ("average_precision", metrics.average_precision_score),
        ):
            expected = of_class(positive, shares[:, i], sample_weight=weights)
            assert indices["class", key][i] == pytest.approx(expected, abs=1e-9)
    expected = {
        "log_loss": metrics.log_loss(y, shares, sample_weight=weights),
        "brier_score": metrics.brier_score_loss(
            y, shares, sample_weight=weights, scale_by_half=False
        ),
        "top_k_accuracy": metrics.top_k_accuracy_score(
            k - 1 - y, shares[:, ::-1], k=2, sample_weight=weights
        ),
    }
    for key, value in expected.items():
        assert indices["overall", key] == pytest.approx(value, abs=1e-9), key


def test_whole_weights_repeat_the_items() -> None:
    rng = np.random.default_rng(14)
    scores = drawn(rng, 60, 3)
    times = rng.integers(1, 4, 60)
    weighted = values(evaluated(Scores(scores.true, scores.values, weights=times.astype(float))))
    repeated = values(
        evaluated(Scores(np.repeat(scores.true, times), np.repeat(scores.values, times, axis=0)))
    )
    for name, value in repeated.items():
        # It ranks the items one by one; what chance adds depends on the number of the items.
        if name[1] != "area_under_risk_coverage" and "debiased" not in name[1]:
            np.testing.assert_allclose(weighted[name], value, atol=1e-12, err_msg=str(name))


def test_the_brier_score_of_two_classes_is_twice_that_of_scikit_learn() -> None:
    scores = drawn(np.random.default_rng(1), 200, 2)
    half = metrics.brier_score_loss(scores.true, scores.values[:, 1])
    indices = values(evaluated(scores))
    assert indices["overall", "brier_score"] == pytest.approx(2 * half, abs=1e-12)


def test_scores_that_are_no_probabilities_still_rank() -> None:
    rng = np.random.default_rng(2)
    scores = Scores(rng.integers(0, 3, 90).astype(np.uint8), rng.standard_normal((90, 3)))
    evaluation = evaluated(scores)
    codes = evaluation.values.overall_reasons
    assert codes is not None
    reasons = {
        entry.key: REASONS[code]
        for entry, code in zip(evaluation.selection.overall, codes, strict=True)
        if entry.scored and code
    }
    measured = (
        "conditional_log_likelihood",
        "log_loss",
        "brier_score",
        "expected_calibration_error",
        "mean_absolute_probability_error",
        "d2_log_loss",
        "d2_brier_score",
        "scored_auc",
        "probabilistic_auc",
        *(e.key for e in CALIBRATION if e.reads != "macro"),
        "ranked_probability_score",
    )
    averages = (e.key for e in CALIBRATION if e.reads == "macro")
    expected = dict.fromkeys(measured, "not_probabilities")
    assert reasons == expected | dict.fromkeys(averages, "no_class_defined")
    assert "not_probabilities" in {warning.code for warning in evaluation.warnings}


@pytest.mark.parametrize(
    ("row", "are"), [([0.5, 0.5], True), ([0.5, 0.5 + 2e-6], False), ([1.5, -0.5], False)]
)
def test_probabilities_are_non_negative_and_sum_to_one(row: list[float], are: bool) -> None:
    scores = Scores(np.array([0, 1], dtype=np.uint8), np.array([[0.4, 0.6], row]))
    assert scores.are_probabilities is are


def test_a_probability_of_zero_is_clipped_and_counted() -> None:
    scores = Scores(np.array([0, 1], dtype=np.uint8), np.array([[0.0, 1.0], [0.0, 1.0]]))
    indices = values(evaluated(scores))
    assert scores.clipped == 1
    assert indices["overall", "conditional_log_likelihood"] == pytest.approx(np.log(1e-15))
    assert "clipped" in {warning.code for warning in evaluated(scores).warnings}


def test_classes_without_items_have_a_reason_and_are_left_out() -> None:
    rng = np.random.default_rng(3)
    true = rng.choice([0, 1, 3], 60).astype(np.uint8)
    evaluation = evaluated(Scores(true, softmax(rng.standard_normal((60, 4)))))
    indices, codes = values(evaluation), evaluation.values.class_reasons
    assert codes is not None
    place = [entry.key for entry in evaluation.selection.per_class].index("roc_auc")
    assert [REASONS[code] for code in codes[place]] == ["", "", "no_true_samples", ""]
    auc = indices["class", "roc_auc"]
    assert indices["overall", "macro_roc_auc"] == pytest.approx(np.nanmean(auc))
    assert np.isfinite(indices["overall", "hand_till_auc"])


def test_one_class_alone_cannot_be_ranked() -> None:
    true = np.zeros(9, dtype=np.uint8)
    scores = Scores(true, softmax(np.random.default_rng(4).standard_normal((9, 2))))
    evaluation = evaluated(scores)
    indices = values(evaluation)
    assert np.isnan(indices["class", "roc_auc"]).all()
    assert np.isnan(indices["overall", "hand_till_auc"])
    codes = evaluation.values.class_reasons
    assert codes is not None
    place = [entry.key for entry in evaluation.selection.per_class].index("roc_auc")
    assert [REASONS[code] for code in codes[place]] == ["single_class", "no_true_samples"]


def test_the_top_score_ties_to_the_lowest_class_as_the_prediction_does() -> None:
    scores = Scores(np.zeros(10, dtype=np.uint8), np.full((10, 3), 1 / 3))
    for most in (1, 2):
        assert values(evaluated(scores, top_k=most))["overall", "top_k_accuracy"] == 1.0
    last = Scores(np.full(10, 2, dtype=np.uint8), np.full((10, 3), 1 / 3))
    assert values(evaluated(last, top_k=2))["overall", "top_k_accuracy"] == 0.0


@pytest.mark.parametrize("k", [2, 3, 5])
def test_top_one_accuracy_is_the_accuracy_of_the_prediction(k: int) -> None:
    rng = np.random.default_rng(6)
    rounded = rng.multinomial(4, np.full(k, 1 / k), size=300) / 4
    scores = Scores(rng.integers(0, k, 300).astype(np.uint8), rounded)
    evaluation = evaluated(scores, top_k=1)
    accuracy = evaluation.overall[evaluation.selection.overall_place["accuracy"]]
    assert values(evaluation)["overall", "top_k_accuracy"] == accuracy


def test_the_default_of_top_k_leaves_one_class_out() -> None:
    scores = drawn(np.random.default_rng(5), 100, 4)
    expected = metrics.top_k_accuracy_score(scores.true, scores.values, k=3)
    assert values(evaluated(scores))["overall", "top_k_accuracy"] == pytest.approx(expected)


def close(n: int) -> Any:
    """Scores that differ in their last bits alone, each with its neighbour and itself again."""
    rng = np.random.default_rng(8)
    base = rng.standard_normal(n)
    return np.concatenate((base, np.nextafter(base, 9), base))


COLUMNS = {
    "distinct": np.random.default_rng(9).standard_normal(300),
    "close": close(100),
    "rounded": np.round(np.random.default_rng(10).standard_normal(300), 1),
    "single_precision": np.random.default_rng(11).random(300).astype(np.float32),
    "signed_zeros": np.tile([0.0, -0.0, 1.0], 100),
    "extreme": np.tile([-9e15, 9e15, 5e-324, -5e-324, 0.0, 1e-300], 50),
    "equal": np.ones(300),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_sorting_scores_with_their_classes_is_sorting_their_positions(name: str) -> None:
    column, true = COLUMNS[name], np.random.default_rng(12).integers(0, 5, 300).astype(np.uint8)
    for code in range(5):
        quick = ClassRanking.without_order(column, true, code, 5)
        plain = ClassRanking.of(column, true, code)
        support = np.bincount(true).astype(float)
        np.testing.assert_array_equal(quick.wins(support), plain.wins(support))
        assert quick.average_precision == pytest.approx(plain.average_precision, rel=1e-14)
        area = metrics.roc_auc_score(true == code, column)
        wins = plain.wins(support).sum()
        assert wins / (plain.positives * plain.negatives) == pytest.approx(area, abs=1e-12)


@pytest.mark.parametrize("decimals", [2, 3, 4, 6])
def test_scores_as_printed_are_probabilities(decimals: int) -> None:
    values = np.random.default_rng(0).dirichlet(np.ones(7), 500).round(decimals)
    assert not np.allclose(values.sum(-1), 1, rtol=0, atol=1e-7)
    assert are_probabilities(values)
    assert not are_probabilities(values * 1.1)
    values[0, 0] += 8 * 10.0**-decimals
    assert not are_probabilities(values)
