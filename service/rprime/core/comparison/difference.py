"""Differences of indices, candidate minus baseline, with the evidence to test them."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rprime.core import index
from rprime.core.arrays import Array
from rprime.core.comparison.mover import MoverLimits
from rprime.core.comparison.paired_proportions import (
    bracketed_p,
    discordance_bounds,
    discordance_psi,
    minimal_detectable_drop,
    tango_interval,
    tango_z,
)
from rprime.core.intervals.proportions import one_sided_quantile

REASONS = (
    *index.REASONS,
    "excluded_classes_differ",
    "classes_differ",
    "different_test_sets",
    "no_evidence",
)
"""Why a difference or its interval does not exist; code 0 means that both do.

excluded_classes_differ: an average leaves out different classes on the two sides;
classes_differ: the index depends on the list of declared classes, which differs; no_evidence:
the two sides do not differ in any item, so a test is impossible. The others are those of values.
"""
CODE = {reason: code for code, reason in enumerate(REASONS)}
METHODS = ("", "tango", "influence", "mover")
"""tango: paired score test of a proportion; influence: paired, by the delta method per item;
mover: unpaired, from the intervals of both sides."""
NO_METHOD, TANGO, INFLUENCE, MOVER = range(len(METHODS))


@dataclass(frozen=True, eq=False, kw_only=True)
class Difference:
    """Candidate minus baseline of indices (and classes), with the inputs of a test.

    All arrays have one shape, (indices,) or (indices, classes); `difference[rows, columns]`
    selects from all of them at once.

    Parameters
    ----------
    candidate, baseline
        The values of both sides, NaN where undefined.
    value
        The difference D, NaN where it does not exist.
    reasons
        Codes into `REASONS`: why the difference or its interval does not exist.
    methods
        Codes into `METHODS`; 0 without evidence.
    gains, losses
        Items that changed in favour of the index and against it; NaN except for tango. For
        grouped items both, and `trials`, are divided by the design effect.
    trials
        Items that could have changed; NaN except for tango and for known `hits`.
    standard_error
        Standard error of D, positive; NaN for tango and without evidence. For mover, half the
        width of the interval at the level .05, in quantiles.
    baseline_hits, candidate_hits
        Numerators of unpaired proportions on one test set of `trials` items, else NaN. They
        bound the result of a paired test.
    reach
        The largest possible difference of the index, infinite if its range is.
    items
        Items behind the value: those of the class for a per-class index, else all.
    mover
        Limits of both sides, where `methods` is mover; None for paired items.
    """

    candidate: Array
    baseline: Array
    value: Array
    reasons: Array
    methods: Array
    gains: Array
    losses: Array
    trials: Array
    standard_error: Array
    baseline_hits: Array
    candidate_hits: Array
    reach: Array
    items: Array
    mover: MoverLimits | None = None

    def __getitem__(self, position: Any) -> "Difference":  # noqa: ANN401 (a numpy index)
        """Select elements, by any numpy index."""
        arrays = (f.name for f in fields(self) if f.name != "mover")
        return Difference(
            **{name: np.asarray(getattr(self, name)[position]) for name in arrays},
            mover=None if self.mover is None else self.mover[position],
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of every array."""
        return self.value.shape

    @property
    def undefined(self) -> Array:
        """Whether a rule about it is `undefined`: the candidate or the comparison lost a value.

        A value that is undefined in the baseline, or on both sides, only lacks evidence.
        """
        lost = np.isnan(self.candidate) & ~np.isnan(self.baseline)
        differ = self.reasons == CODE["excluded_classes_differ"]
        return lost | differ | (self.reasons == CODE["classes_differ"])

    @property
    def tested(self) -> Array:
        """Whether evidence exists, so that limits and p-values are numbers."""
        return (self.methods != NO_METHOD) & ~np.isnan(self.value)

    @property
    def paired(self) -> Array:
        """Whether the evidence pairs the items of both sides."""
        return (self.methods == TANGO) | (self.methods == INFLUENCE)

    def limits(self, level: ArrayLike) -> tuple[Array, Array]:
        """Return one-sided limits L and U of D, each at this level.

        Parameters
        ----------
        level
            In (0, .5); (L, U) is the two-sided interval of confidence 1 - 2 level.

        Returns
        -------
        Two arrays within the possible range of D, NaN without evidence.

        Notes
        -----
        D > t is shown at the level where L > t, that is, where `p_above(t)` < level; D < t
        where U < t, that is, where `p_below(t)` < level.
        """
        quantile = one_sided_quantile(level)
        lower = self.value - quantile * self.standard_error
        upper = self.value + quantile * self.standard_error
        if self.mover is not None:
            low, high = self.mover.at(quantile)
            at = self.methods == MOVER
            lower, upper = np.where(at, low, lower), np.where(at, high, upper)
        z = np.broadcast_to(quantile, self.shape)
        if (at := self.tango).any():
            pairs = tango_interval(self.gains[at], self.losses[at], self.trials[at], z[at])
            lower, upper = _replaced(lower, at, pairs[0]), _replaced(upper, at, pairs[1])
        if (at := self.bracketed).any():
            ends = [
                tango_interval(gains, losses, self.trials[at], z[at])
                for gains, losses in self._extreme_pairings(at)
            ]
            lows, highs = (np.sort(side, axis=0) for side in zip(*ends, strict=True))
            low = _clip_or(lower[at], lows[0], lows[1], otherwise=lows[0])
            high = _clip_or(upper[at], highs[0], highs[1], otherwise=highs[1])
            lower, upper = _replaced(lower, at, low), _replaced(upper, at, high)
        # An index without a lowest value is taken to be above -1, where it is.
        reach = np.fmax(self.reach, np.abs(self.value))
        return np.maximum(lower, -reach), np.minimum(upper, reach)

    def p_below(self, threshold: ArrayLike) -> Array:
        """Return the smallest level at which U < threshold; a small one supports D < threshold.

        Parameters
        ----------
        threshold
            Broadcasts to the elements.

        Returns
        -------
        In [0, 1], NaN without evidence.
        """
        return self._p(threshold, 1.0)

    def p_above(self, threshold: ArrayLike) -> Array:
        """Return the smallest level at which L > threshold; a small one supports D > threshold.

        Parameters
        ----------
        threshold
            Broadcasts to the elements.

        Returns
        -------
        In [0, 1], NaN without evidence.
        """
        return self._p(threshold, -1.0)

    @property
    def tango(self) -> Array:
        """Whether the evidence is that of a paired proportion."""
        return np.asarray(self.methods == TANGO)

    @property
    def bracketed(self) -> Array:
        """Whether two tables of one test set bound the paired p-value."""
        return ~np.isnan(self.candidate_hits)

    def detectable_drop(self, level: ArrayLike, margin: ArrayLike, power: float = 0.8) -> Array:
        """Return the drop that a test at this level detects with the given power.

        Parameters
        ----------
        level
            One-sided, in (0, 1).
        margin
            The largest drop that is accepted, in (0, 1).
        power
            In (0, 1).

        Returns
        -------
        In units of the index; NaN without evidence.
        """
        paired = self.methods == TANGO
        psi = discordance_psi(self.gains, self.losses, self.trials, margin)
        variance = np.where(paired, psi, self.standard_error**2)
        trials = np.where(paired, self.trials, 1.0)
        return np.where(
            self.tested, minimal_detectable_drop(level, power, variance, trials), np.nan
        )

    def _p(self, threshold: ArrayLike, sign: float) -> Array:
        t = np.broadcast_to(np.asarray(threshold, dtype=np.float64), self.shape)
        p = np.asarray(special.ndtr(sign * (self.value - t) / self.standard_error))
        if self.mover is not None:
            found = (self.mover.p_below if sign > 0 else self.mover.p_above)(threshold)
            p = np.where(self.methods == MOVER, found, p)
        if (at := self.tango).any():
            found = _tango_p(sign, t[at])(self.gains[at], self.losses[at], self.trials[at])
            p = _replaced(p, at, found)
        if (at := self.bracketed).any():
            low, high = (end[at] for end in self._bracket(t, sign))
            p = _replaced(p, at, _clip_or(p[at], low, high, otherwise=high))
        return p

    def _bracket(self, threshold: ArrayLike, sign: float) -> tuple[Array, Array]:
        at = self.bracketed
        t = np.broadcast_to(np.asarray(threshold, dtype=np.float64), self.shape)[at]
        ends = bracketed_p(
            self.baseline_hits[at], self.candidate_hits[at], self.trials[at], _tango_p(sign, t)
        )
        empty = np.full(self.shape, np.nan)
        return _replaced(empty, at, ends[0]), _replaced(empty, at, ends[1])

    def _extreme_pairings(self, at: Array) -> list[tuple[Array, Array]]:
        """Return gains and losses with the fewest and with the most discordant items."""
        a, b, n = self.baseline_hits[at], self.candidate_hits[at], self.trials[at]
        return [((d + b - a) / 2, (d - b + a) / 2) for d in discordance_bounds(a, b, n)]


def _tango_p(sign: float, threshold: Array) -> Callable[[Array, Array, Array], Array]:
    """Return the p-value function for D below (sign 1) or above (-1) a threshold."""
    inside = np.clip(threshold, -1.0, 1.0)  # D itself cannot be outside

    def p(gains: Array, losses: Array, trials: Array) -> Array:
        return np.asarray(special.ndtr(sign * tango_z(gains, losses, trials, inside)))

    return p


def _clip_or(values: Array, low: Array, high: Array, *, otherwise: Array) -> Array:
    """Clip values to bounds; the cautious bound replaces a missing value."""
    return np.where(np.isnan(values), otherwise, np.clip(values, low, high))


def _replaced(values: Array, at: Array, part: Array) -> Array:
    """Return a copy with the elements `at` replaced."""
    result = np.array(values)
    result[at] = part
    return result
