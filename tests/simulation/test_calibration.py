"""Intervals of calibration hold the values of the model, calibrated or not."""

from collections.abc import Iterator

import numpy as np
import pytest

from rprime.core.scores.scores import Scores
from tests.core.score_values import evaluated, softmax, values
from tests.simulation.populations import FloatArray

LINES = ("calibration_slope", "calibration_intercept")
AVERAGES = tuple(f"macro_{key}" for key in LINES)
BINNED = (
    *("expected_calibration_error", "root_mean_square_calibration_error"),
    *("debiased_calibration_error", "macro_class_calibration_error"),
    *("brier_reliability", "brier_resolution"),
)
MANY = 400_000


def model(random: np.random.Generator, n: int, sharpness: float, shares: FloatArray) -> Scores:
    """Draw true classes, and probabilities whose logits are too large by a factor."""
    logits = random.standard_normal((n, len(shares))) * 1.5 + np.log(shares)
    chances = np.cumsum(softmax(logits), axis=1)
    true = np.minimum((random.random(n)[:, None] > chances).sum(1), len(shares) - 1)
    return Scores(true.astype(np.uint8), softmax(sharpness * logits))


def hold(
    draws: int, n: int, sharpness: float, shares: FloatArray, *, binned: bool
) -> Iterator[tuple[str, float, float, float]]:
    """Yield how often the intervals of each index hold, the mean of its values, and its truth."""
    keys = BINNED if binned else (*LINES, *AVERAGES)
    whole = values(
        evaluated(
            model(np.random.default_rng(0), MANY, sharpness, shares), indices=keys, intervals=False
        )
    )
    truths = {key: np.asarray(value) for (_, key), value in whole.items()}
    held: dict[str, list[float]] = {key: [] for key in keys}
    means: dict[str, list[float]] = {key: [] for key in keys}
    for seed in range(draws):
        scores = model(np.random.default_rng((1, seed)), n, sharpness, shares)
        evaluation = evaluated(scores, indices=keys, intervals="all" if binned else True)
        intervals = evaluation.intervals
        assert intervals is not None
        for (scope, key), value in values(evaluation).items():
            prefix = "per_class" if scope == "class" else "overall"
            places = (
                evaluation.selection.place
                if scope == "class"
                else evaluation.selection.overall_place
            )
            low, high = (
                getattr(intervals, f"{prefix}_{end}")[places[key]] for end in ("low", "high")
            )
            inside = (low <= truths[key]) & (truths[key] <= high)
            held[key] += inside[np.isfinite(low)].ravel().tolist()
            means[key].append(float(np.nanmean(value)))
    for key in keys:
        yield (
            key,
            float(np.mean(held[key])),
            float(np.mean(means[key])),
            float(truths[key].mean()),
        )


EQUAL, RARE = np.full(3, 1 / 3), np.array([0.7, 0.2, 0.1])


@pytest.mark.slow
@pytest.mark.parametrize(("n", "sharpness", "shares"), [(100, 1.0, RARE), (300, 2.0, EQUAL)])
def test_intervals_of_slope_and_intercept_hold(
    n: int, sharpness: float, shares: FloatArray
) -> None:
    for key, covered, _, _ in hold(200, n, sharpness, shares, binned=False):
        assert covered > 0.89, key


@pytest.mark.slow
def test_intervals_of_binned_errors_hold() -> None:
    for key, covered, _, _ in hold(60, 300, 2.0, EQUAL, binned=True):
        assert covered > 0.85, key
