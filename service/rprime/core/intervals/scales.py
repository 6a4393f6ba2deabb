"""Transformations on which limits are symmetric or proportional to their quantile."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import AT_MOST_ONE, NON_NEGATIVE, SIGNED, UNIT, Index

ScaleDistance = Callable[[Array, Array], Array]
"""Maps a threshold and a value to a number proportional to the quantile of that limit."""

# e^700 is the largest power of ten (304) with room for the odds; beyond, limits are 0 and 1.
LARGEST_EXPONENT = 700.0


def score(at: Array, share: Array) -> Array:
    """Return the score statistic of a share for one item; it is the quantile at Wilson limits."""
    return np.asarray((at - share) / np.sqrt(at * (1 - at)))


def dice_score(at: Array, value: Array) -> Array:
    """Return the score of j = a / (a + FP + FN) for F1 = 2 j / (1 + j)."""
    return score(at / (2 - at), value / (2 - value))


def _log_odds(share: Array) -> Array:
    return np.asarray(np.log(share / (1 - share)))


def _log_ratio(value: Array) -> Array:
    """Return twice Fisher's z; minus infinity at or below -1."""
    return np.asarray(np.log(np.maximum(1 + value, 0.0) / (1 - value)))


def _difference_on(scale: Callable[[Array], Array]) -> ScaleDistance:
    """Return the distance on a scale; untransformed where the value is at most -1."""
    return lambda at, value: np.where(value > -1, scale(at) - scale(value), at - value)


logit = _difference_on(_log_odds)
DELTA_SCALES: Mapping[str, ScaleDistance] = {
    "delta_logit": logit,
    "delta_fisher_z": _difference_on(_log_ratio),
    "delta_log": _difference_on(np.log),
    "delta": np.subtract,
}
"""The scales of delta limits, by the reported method."""


def delta_method(entry: Index) -> str:
    """Choose the scale of an entry with delta limits by its range."""
    if _chance_corrected(entry):
        return "delta_fisher_z"
    scales = {UNIT: "delta_logit", SIGNED: "delta_fisher_z", NON_NEGATIVE: "delta_log"}
    return scales.get(entry.range, "delta")


def _chance_corrected(entry: Index) -> bool:
    """Whether an overall index of agreement beyond chance has no lowest value."""
    return entry.range == AT_MOST_ONE and entry.reads in ("moments", "table")


@dataclass(frozen=True, eq=False)
class DeltaScales:
    """The scales of the delta limits of n indices.

    Parameters
    ----------
    low, slope
        Shape (n,). The odds (v - low) / (1 - slope v) are those of the logit for low 0 and of
        Fisher's z for low -1, both with slope 1; with slope 0 and low 0 they are v itself, and
        the scale its logarithm.
    plain
        Positions of the untransformed indices.
    fallback
        Positions of the indices that are untransformed if the value is at most -1.
    """

    low: Array
    slope: Array
    plain: Array
    fallback: Array

    @classmethod
    def of(cls, entries: Sequence[Index]) -> "DeltaScales":
        """Choose the scale of every entry by its range."""
        names = [delta_method(entry) for entry in entries]
        return cls(
            np.array([-1.0 if name == "delta_fisher_z" else 0.0 for name in names]),
            np.array([0.0 if name == "delta_log" else 1.0 for name in names]),
            np.flatnonzero([name == "delta" for name in names]),
            np.flatnonzero([_chance_corrected(entry) for entry in entries]),
        )


def delta_limits(scales: DeltaScales, values: Array, half: Array) -> Array:
    """Return limits that are symmetric on the scale of every index.

    Parameters
    ----------
    values
        Shape (n, ...).
    half
        Standard deviation times the normal quantile, the shape of the values.

    Returns
    -------
    Shape (2, n, ...). Equal limits or NaN where the deviation is 0 or the value is at an end of
    its scale.
    """
    limits = _transformed_limits(scales, values, half)
    if scales.plain.size:
        limits[:, scales.plain] = _plain_limits(values[scales.plain], half[scales.plain])
    if scales.fallback.size:
        own = values[scales.fallback]
        if (beyond := own <= -1).any():
            plain = _plain_limits(own, half[scales.fallback])
            limits[:, scales.fallback] = np.where(beyond, plain, limits[:, scales.fallback])
    return limits


def _plain_limits(values: Array, half: Array) -> Array:
    return np.array((values - half, values + half))


def _transformed_limits(scales: DeltaScales, values: Array, half: Array) -> Array:
    """Divide and multiply the odds by exp(half times the derivative of their logarithm).

    In place where possible: the arrays of a stack are large.
    """
    column = (-1, *(1,) * (values.ndim - 1))
    low, slope = scales.low.reshape(column), scales.slope.reshape(column)
    above, below = values - low, 1 - slope * values
    # The derivative of the log odds: 1 / above + slope / below in one fraction.
    exponent = half * (1 - low) / (above * below)
    factor = np.exp(np.minimum(exponent, LARGEST_EXPONENT))
    limits = np.empty((2, *values.shape))
    odds = np.divide(above, below, out=above)
    np.divide(odds, factor, out=limits[0])
    np.multiply(odds, factor, out=limits[1])
    below = 1 + slope * limits
    limits += low
    limits /= below
    return limits
