"""Differences of indices, candidate minus baseline, with the evidence to test them."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rprime.core import index, special
from rprime.core.arrays import Array, or_nothing
from rprime.core.comparison.compared_side import LimitSource
from rprime.core.comparison.difference_intervals import (
    NOWHERE,
    MoverLimits,
    SingleTests,
    discordance_bounds,
    sign_test_p,
    tango_interval,
    tango_z,
)
from rprime.core.intervals.proportions import one_sided_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

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
OTHER_EVIDENCE = (CODE["no_scores"], CODE["not_probabilities"])
"""Reasons of values for which the evidence must have another form, whatever its items."""
METHODS = ("", "tango", "influence", "mover")
"""tango: paired score test of a proportion; influence: paired, by the delta method per item;
mover: unpaired, from the intervals of both sides."""
MOST_EXACT = 15
"""Most changed items for the exact test of no change; with more, Tango's has more power."""
NO_METHOD, TANGO, INFLUENCE, MOVER = range(len(METHODS))


class Difference(SingleTests):
    """Candidate minus baseline of indices (and classes), with the inputs of a test.

    All arrays are parts of two, and have one shape, (indices,) or (indices, classes);
    `difference[rows, columns]` selects from all of them at once.

    Parameters
    ----------
    candidate, baseline, value
        The values of both sides and their difference D, NaN where undefined.
    reach
        The largest possible difference of the index, infinite if its range is.
    items
        Items behind the value: those of the class for a per-class index, else all.
    influence_error
        Standard error of D by the influences, positive; else NaN.
    guard
        What the guard adds to the variance of D; NaN or 0 for nothing.
    skewness
        Sum of the cubed influences by the cubed standard error: below 0 where few items lose much;
        NaN or 0 where it moves no limit.
    more_below, more_above
        How much farther from D its lower and its upper limit are than the evidence says: what half
        an effective group more, or half an item more, could change. NaN or 0 for nothing.
    effective_groups
        The effective number of groups behind D, NaN without groups. With fewer than
        `FEW_EFFECTIVE_GROUPS` of `core/intervals/groups.py` a rule must not pass.
    gains, losses
        Items that changed in favour of the index and against it; NaN except for tango. For
        grouped items both, and `trials`, are divided by the design effect.
    trials
        Items that could have changed; NaN except for tango and for known `hits`.
    baseline_hits, candidate_hits
        Numerators of unpaired proportions on one test set of `trials` items, else NaN. They
        bound the result of a paired test.
    reasons
        Codes into `REASONS`: why the difference or its interval does not exist.
    methods
        Codes into `METHODS`; 0 without evidence.
    mover
        Limits of both sides, where `methods` is mover; None for paired items.
    """

    candidate: Array
    baseline: Array
    value: Array
    reach: Array
    items: Array
    influence_error: Array
    guard: Array
    skewness: Array
    more_below: Array
    more_above: Array
    effective_groups: Array
    gains: Array
    losses: Array
    trials: Array
    baseline_hits: Array
    candidate_hits: Array
    reasons: Array
    methods: Array

    def __init__(self, numbers: Array, codes: Array, mover: MoverLimits | None = None) -> None:
        self.numbers, self.codes, self.mover = numbers, codes, mover
        vars(self).update({name: numbers[i, ...] for i, name in enumerate(NUMBERS)})
        self.reasons, self.methods = codes[0, ...], codes[1, ...]

    def __getitem__(self, position: Any) -> "Difference":  # noqa: ANN401 (a numpy index)
        """Select elements, by any numpy index."""
        every = (slice(None), *(position if isinstance(position, tuple) else (position,)))
        codes = self.codes[every]
        by_mover = self.mover is not None and (codes[1] == MOVER).any()
        mover = self.mover[position] if self.mover is not None and by_mover else None
        return Difference(self.numbers[every], codes, mover)

    @property
    def flat(self) -> "Difference":
        """The elements in one row."""
        return self[np.unravel_index(np.arange(self.value.size), self.shape)]

    @classmethod
    def unknown(cls, shape: int | tuple[int, ...]) -> "Difference":
        """Return differences of which nothing is known: all numbers are NaN."""
        shape = (shape,) if isinstance(shape, int) else shape
        return cls(np.full((len(NUMBERS), *shape), np.nan), np.zeros((2, *shape), dtype=np.uint8))

    @classmethod
    def join(cls, parts: "Sequence[Difference]") -> "Difference":
        """Concatenate differences along the last axis; all unpaired ones are of one comparison."""
        sources = [part.source for part in parts if part.source is not None]
        movers = [part.mover_of(sources[0]) for part in parts if sources]
        return cls(
            np.concatenate([part.numbers for part in parts], axis=-1),
            np.concatenate([part.codes for part in parts], axis=-1),
            MoverLimits.join(movers) if movers else None,
        )

    @property
    def standard_error(self) -> Array:
        """Standard error of D, positive; NaN without evidence.

        For mover, half the width of the interval at the level .05, in quantiles; for tango that of
        at least one item that changed.
        """
        error = np.sqrt(np.maximum(self.gains + self.losses, 1.0)) / self.trials
        error = np.where(self.tango, error, self.influence_error)
        if self.mover is None:
            return error
        return np.where(self.methods == MOVER, self.mover.standard_error, error)

    def mover_of(self, source: LimitSource) -> MoverLimits:
        """Return the limits of both sides, at no place of a source where none is used."""
        if self.mover is not None:
            return self.mover
        places = np.full(self.shape, NOWHERE)
        return MoverLimits(self.candidate, self.baseline, source, places)

    @property
    def source(self) -> LimitSource | None:
        """What the limits of unpaired differences are computed from."""
        return None if self.mover is None else self.mover.source

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of every array."""
        return self.value.shape

    @property
    def undefined(self) -> Array:
        """Whether a rule about it is `undefined`: the candidate or the comparison lost a value.

        So it is where evidence such as the candidate's can never have the value. One that is
        undefined in the baseline, or with these items on both sides, only lacks evidence.
        """
        never = np.isin(self.reasons, OTHER_EVIDENCE)
        lost = np.isnan(self.candidate) & (never | ~np.isnan(self.baseline))
        differ = self.reasons == CODE["excluded_classes_differ"]
        return lost | differ | (self.reasons == CODE["classes_differ"])

    def limits(self, level: ArrayLike) -> tuple[Array, Array]:
        """Return one-sided limits L and U of D, each at this level in (0, .5).

        They lie within the possible range of D; NaN without evidence. (L, U) is the two-sided
        interval of confidence 1 - 2 level.

        Notes
        -----
        D < t is shown at the level where U < t, that is, where `p(t)[0]` < level; D > t where
        L > t, that is, where `p(t)[1]` < level.
        """
        quantile = one_sided_quantile(level)
        below, above = self._skews
        lower = self.value - stretched(quantile, below) * self.influence_error
        upper = self.value + stretched(quantile, above) * self.influence_error
        if self.mover is not None:
            low, high = self.mover.at(quantile)
            at = self.methods == MOVER
            lower, upper = np.where(at, low, lower), np.where(at, high, upper)
        z = np.broadcast_to(quantile, self.shape)
        if (at := self.tango).any():
            pairs = tango_interval(self.gains[at], self.losses[at], self.trials[at], z[at])
            lower, upper = _replaced(lower, at, pairs[0]), _replaced(upper, at, pairs[1])
        if (at := self.bracketed).any():
            ends = tango_interval(*self._extreme_pairings(at), self.trials[at], z[at])
            lows, highs = (np.sort(side, axis=0) for side in ends)
            low = _clip_or(lower[at], lows[0], lows[1], otherwise=lows[0])
            high = _clip_or(upper[at], highs[0], highs[1], otherwise=highs[1])
            lower, upper = _replaced(lower, at, low), _replaced(upper, at, high)
        below, above = (or_nothing(more) for more in (self.more_below, self.more_above))
        lower, upper = lower - below, upper + above
        # An index without a lowest value is taken to be above -1, where it is.
        reach = np.fmax(self.reach, np.abs(self.value))
        return np.maximum(lower, -reach), np.minimum(upper, reach)

    def p(self, threshold: ArrayLike) -> tuple[Array, Array]:
        """Return the smallest levels at which D is shown to be below, and above, a threshold.

        That is, at which U < threshold, and L > threshold; in [0, 1], NaN without evidence.
        """
        below, above = (or_nothing(more) for more in (self.more_below, self.more_above))
        if not (below.any() or above.any()):
            return self._p(threshold)
        return self._p(threshold - above)[0], self._p(threshold + below)[1]

    def _p(self, threshold: ArrayLike) -> tuple[Array, Array]:
        """Return the levels of `p` from the evidence alone."""
        t = np.broadcast_to(np.asarray(threshold, dtype=np.float64), self.shape)
        distance = (self.value - t) / self.influence_error
        skews = self._skews
        below = special.ndtr(-unstretched(-distance, skews[1]))
        above = special.ndtr(-unstretched(distance, skews[0]))
        if self.mover is not None:
            of_mover, at = self.mover.p(t), self.methods == MOVER
            below, above = np.where(at, of_mover[0], below), np.where(at, of_mover[1], above)
        within = np.minimum(np.maximum(t, -1.0), 1.0)  # two proportions cannot differ by more
        if (at := self.tango).any():
            z = tango_z(self.gains[at], self.losses[at], self.trials[at], within[at])
            below = _replaced(below, at, special.ndtr(z))
            above = _replaced(above, at, special.ndtr(-z))
        if (at := self.bracketed).any():
            pairs = self._extreme_pairings(at)
            low, high = np.sort(tango_z(*pairs, self.trials[at], within[at]), axis=0)
            below = _replaced(below, at, _cautious(below[at], low, high))
            above = _replaced(above, at, _cautious(above[at], -high, -low))
        return below, above

    @property
    def _skews(self) -> tuple[Array, Array]:
        """The skewness towards losses, for lower limits, and towards gains, for upper ones."""
        skewness = or_nothing(self.skewness)
        return np.maximum(-skewness, 0.0), np.maximum(skewness, 0.0)

    @property
    def p_of_no_change(self) -> tuple[Array, Array]:
        """The smallest levels at which D is shown to be below, and above, 0.

        Of paired proportions the exact conditional test: Tango's normal approximation is wrong by
        half where few items changed.
        """
        return self._p_of_no_change(self.tango & (self.gains + self.losses <= MOST_EXACT))

    @property
    def exact_p_of_no_change(self) -> tuple[Array, Array]:
        """The same, by the exact test of every paired proportion."""
        return self._p_of_no_change(self.tango)

    def _p_of_no_change(self, exact: Array) -> tuple[Array, Array]:
        below, above = self.p(0.0)
        if exact.any():
            gains, losses = self.gains[exact], self.losses[exact]
            below = _replaced(below, exact, sign_test_p(gains, losses))
            above = _replaced(above, exact, sign_test_p(losses, gains))
        return below, above

    @property
    def tango(self) -> Array:
        """Whether the evidence is that of a paired proportion."""
        return np.asarray(self.methods == TANGO)

    @property
    def bracketed(self) -> Array:
        """Whether two tables of one test set bound the paired p-value."""
        return ~np.isnan(self.candidate_hits)

    def _extreme_pairings(self, at: Array) -> tuple[Array, Array]:
        """Return gains and losses with the fewest and with the most discordant items, (2, n)."""
        a, b, n = self.baseline_hits[at], self.candidate_hits[at], self.trials[at]
        discordant = np.stack(discordance_bounds(a, b, n))
        return (discordant + b - a) / 2, (discordant - b + a) / 2


def stretched(quantile: ArrayLike, skewness: Array) -> Array:
    """Return how many standard errors a limit is away on the side to which a sum is skewed.

    Notes
    -----
    Source: Johnson 1978; z + skewness (1 + 2 z^2) / 6. Below 0 it goes on as a straight line.
    """
    z = np.asarray(quantile)
    return np.asarray(z + skewness * (1 + 2 * np.maximum(z, 0.0) ** 2) / 6)


def unstretched(distance: Array, skewness: Array) -> Array:
    """Return the quantile that `stretched` maps to a distance."""
    rest = distance - skewness / 6
    root = np.sqrt(1 + 4 / 3 * skewness * np.maximum(rest, 0.0))
    return np.asarray(np.where(rest > 0, 2 * rest / (1 + root), rest))


def _cautious(p: Array, low: Array, high: Array) -> Array:
    """Clip p-values to those of two statistics; the larger one replaces a missing value."""
    smallest, largest = special.ndtr(low), special.ndtr(high)
    return _clip_or(p, smallest, largest, otherwise=largest)


def _clip_or(values: Array, low: Array, high: Array, *, otherwise: Array) -> Array:
    """Clip values to bounds; the cautious bound replaces a missing value."""
    return np.where(np.isnan(values), otherwise, np.clip(values, low, high))


def _replaced(values: Array, at: Array, part: Array) -> Array:
    """Return a copy with the elements `at` replaced."""
    result = np.array(values)
    result[at] = part
    return result


NUMBERS = tuple(Difference.__annotations__)[:-2]
"""The members that are numbers, in their order; the last two are codes."""
COUNTED = slice(NUMBERS.index("gains"), None)
