"""Calibration errors, the parts of the Brier score, and recalibration are what others compute."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import stdtrit

from rprime.core.options import Options
from rprime.core.scores.calibration import Binning, Reliability
from rprime.core.scores.curves import ScoreSummary
from rprime.core.scores.recalibration import GRID, LogitCells, logits_of
from rprime.core.scores.scores import Scores
from rprime.core.selection import BY_OPTION, SUMMARY, select
from tests.core.score_values import drawn, evaluated, values

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "calibration.json").read_text())
ERRORS = BY_OPTION["calibration"]


def drawn_of(case: dict[str, Any]) -> Scores:
    """Draw the scores that the other programs were given."""
    return drawn(np.random.default_rng(case["seed"]), case["items"], case["classes"], 2.0)


@pytest.mark.parametrize("case", REFERENCE["cases"], ids=lambda case: str(case["options"]))
def test_each_number_of_bins_and_kind_gives_the_values_of_other_tools(case: dict[str, Any]) -> None:
    evaluation = evaluated(
        drawn_of(case), families=("all",), calibration=Binning(**case["options"]), intervals=False
    )
    indices = values(evaluation)
    for scope in ("class", "overall"):
        for key, expected in case[scope].items():
            np.testing.assert_allclose(indices[scope, key], expected, atol=1e-12, err_msg=key)


def test_the_parts_of_the_brier_score_add_up_to_it() -> None:
    for binning in (None, Binning(bins=4), Binning(bins=7, binning="equal_mass")):
        indices = values(evaluated(drawn(np.random.default_rng(3), 90, 4), calibration=binning))
        parts = [indices["overall", f"brier_{part}"] for part in ("reliability", "uncertainty")]
        total = sum(parts) - indices["overall", "brier_resolution"]
        assert total == pytest.approx(indices["overall", "brier_score"], abs=1e-14)


def test_the_resolution_is_that_of_murphy_where_probabilities_of_a_bin_are_equal() -> None:
    rng = np.random.default_rng(4)
    first = rng.choice([0.05, 0.25, 0.55, 0.85], 200)
    true = (rng.random(200) > first).astype(np.uint8)
    indices = values(evaluated(Scores(true, np.array([first, 1 - first]).T)))
    murphy = sum(
        np.mean(p == first) * ((true == i)[first == p].mean() - np.mean(true == i)) ** 2
        for i in (0, 1)
        for p in np.unique(first)
    )
    for p in np.unique(first):
        assert np.count_nonzero(first == p) > 20
    # The sum above is over values; each of them has its share of the items.
    assert indices["overall", "brier_resolution"] == pytest.approx(murphy, abs=1e-12)


def test_bins_of_equal_mass_hold_as_many_items_and_keep_equal_scores_together() -> None:
    confidence = np.random.default_rng(5).random(120)
    right = np.ones(120, dtype=bool)
    bins = Reliability.of(confidence, right, None, Binning(bins=8, binning="equal_mass"))
    assert bins.items.tolist() == [15] * 8
    tied = Reliability.of(
        np.repeat([0.2, 0.7], 60), right, None, Binning(bins=8, binning="equal_mass")
    )
    assert tied.items[tied.items > 0].tolist() == [60, 60]
    weighted = Reliability.of(
        confidence,
        right,
        np.where(confidence > 0.5, 3.0, 1.0),
        Binning(bins=4, binning="equal_mass"),
    )
    assert np.ptp(weighted.items) <= 6
    alone = Reliability.of(confidence[:1], right[:1], None, Binning(bins=4, binning="equal_mass"))
    assert alone.items.sum() == 1


def test_calibrated_probabilities_have_about_the_error_that_is_said_beside_it() -> None:
    rng = np.random.default_rng(6)
    for n, k, bins in ((60, 3, 15), (400, 2, 15), (2000, 5, 30)):
        errors, expected = [], []
        for _ in range(150):
            shares = rng.dirichlet(np.ones(k), n)
            true = (rng.random(n)[:, None] > np.cumsum(shares, axis=1)).sum(1).astype(np.uint8)
            reliability = Scores(np.minimum(true, k - 1), shares).reliability(Binning(bins=bins))
            errors.append(reliability.error)
            expected.append(reliability.error_if_calibrated)
        assert np.mean(expected) == pytest.approx(np.mean(errors), rel=0.08), (n, k)


def test_the_debiased_error_of_calibrated_probabilities_is_0_on_average() -> None:
    rng, squares = np.random.default_rng(7), []
    for _ in range(300):
        p = rng.random(200)
        squares.append(Reliability.of(p, rng.random(200) < p).debiased_square_error)
    assert abs(np.mean(squares)) < 4 * np.std(squares) / np.sqrt(len(squares))


def test_a_fit_of_many_items_is_that_of_every_item() -> None:
    scores = drawn(np.random.default_rng(8), 3 * GRID, 3)
    weights = np.random.default_rng(9).integers(1, 4, 3 * GRID).astype(float)
    for column, sizes in ((0, None), (1, weights)):
        logits, positive = logits_of(scores.values[:, column]), scores.true == column
        mass = np.ones(len(logits)) if sizes is None else sizes
        single = LogitCells(
            logits, np.array([mass, 0 * mass, 0 * mass]), np.array([mass * positive, 0 * mass])
        )
        for slope in (True, False):
            fitted = LogitCells.of(logits, positive, sizes).fit(slope=slope)
            assert fitted == pytest.approx(single.fit(slope=slope), abs=1e-9)


@pytest.mark.parametrize(("stretched", "moved"), [(1.0, 0.0), (2.0, 0.0), (0.5, 0.0), (1.0, 1.5)])
def test_slope_and_intercept_undo_what_was_done_to_calibrated_logits(
    stretched: float, moved: float
) -> None:
    rng = np.random.default_rng(10)
    logits = rng.normal(0, 2, 100_000)
    positive = rng.random(100_000) < 1 / (1 + np.exp(-logits))
    shifted = 1 / (1 + np.exp(-(logits * stretched + moved)))
    scores = Scores((~positive).astype(np.uint8), np.array([shifted, 1 - shifted]).T)
    indices = values(evaluated(scores, families=("calibration",), intervals=False))
    slopes, intercepts = (indices["class", f"calibration_{n}"] for n in ("slope", "intercept"))
    assert slopes == pytest.approx([1 / stretched] * 2, rel=0.03)
    if stretched == 1:
        assert intercepts == pytest.approx([-moved, moved], abs=0.05)


def test_a_class_that_a_threshold_separates_has_no_slope_but_an_intercept() -> None:
    true = np.repeat([0, 1], 6).astype(np.uint8)
    first = np.linspace(0.95, 0.05, 12)
    scores = Scores(true, np.array([first, 1 - first]).T)
    evaluation = evaluated(scores, families=("calibration",))
    assert np.isnan(values(evaluation)["class", "calibration_slope"]).all()
    assert np.isfinite(values(evaluation)["class", "calibration_intercept"]).all()


def test_the_option_adds_the_family_to_the_summary_and_nothing_else_does() -> None:
    plain = select(Options(), scored=True)
    asked = select(Options(calibration=Binning()), scored=True)
    keys = [{e.key for e in (*s.per_class, *s.overall)} for s in (plain, asked)]
    assert keys[1] - keys[0] == {*ERRORS}
    assert keys[0] <= {*SUMMARY}


def test_the_diagram_has_the_bins_that_were_asked_for() -> None:
    scores = drawn(np.random.default_rng(11), 200, 3)
    summary = ScoreSummary.of(scores, Binning(bins=6, binning="equal_mass"))
    bins = summary.calibration
    assert bins is not None
    summary.check(3)
    assert len(bins.items) == 6
    assert bins.items.sum() == 200
    np.testing.assert_array_equal(
        bins.edges, Binning(bins=6, binning="equal_mass").edges(scores.confidence)
    )


@pytest.mark.parametrize("over", [None, (0, 2)])
def test_intervals_of_averages_are_as_wide_as_the_jackknife_says(
    over: tuple[int, ...] | None,
) -> None:
    scores, n = drawn(np.random.default_rng(12), 200, 3), 200
    keys = ("macro_calibration_slope", "weighted_calibration_slope")
    options: dict[str, Any] = {"indices": keys, "average_over": over}
    evaluation = evaluated(scores, **options)
    intervals = evaluation.intervals
    assert intervals is not None
    without = []
    for i in range(n):
        rest = np.arange(n) != i
        left = evaluated(Scores(scores.true[rest], scores.values[rest]), intervals=False, **options)
        without.append(left.overall)
    errors = np.sqrt(np.var(without, axis=0) * (n - 1))
    widths = intervals.overall_high - intervals.overall_low
    np.testing.assert_allclose(widths, 2 * stdtrit(n - 2, 0.975) * errors, rtol=0.03)
