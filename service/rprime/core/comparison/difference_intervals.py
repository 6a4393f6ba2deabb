"""Intervals of differences: MOVER for independent samples, and paired proportions.

A gain is an item that only the new classifier predicts correctly, a loss the reverse.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rprime.core import special
from rprime.core.arrays import Array, FloatArray, broadcast, chosen
from rprime.core.comparison.compared_side import LimitSource
from rprime.core.intervals.proportions import binomial_tail_p, effective_items, one_sided_quantile

FARTHEST = 12.0
"""Largest quantile of the search; the p-value beyond it is 0."""
NOWHERE = -1
"""The place of an element without limits, as one of another method has none."""
REFERENCE = 1.6448536269514722
"""Where the search begins: the one-sided level .05."""
ROUNDS = 80
STEP = 1e-5
"""The search ends with a secant as short as this: the error is smaller by orders."""
NOTHING = 1e-14
"""A threshold this close to D is D."""


class SingleTests:
    """Statistics about the candidate's values, each of which is one test."""

    candidate: Array

    @property
    def centre(self) -> Array:
        """The values of the candidate."""
        return self.candidate

    @property
    def pairs(self) -> Array:
        """The number of tests that each p-value is adjusted for by itself: 1."""
        return np.ones(self.candidate.shape)


@dataclass(frozen=True, eq=False)
class MoverLimits(SingleTests):
    """Limits of candidate minus baseline, or of the candidate alone, at any quantile.

    Parameters
    ----------
    candidate, baseline
        Values, of any shape; the baseline is 0 for the candidate alone.
    source, places
        Limits of the sides, and positions among these, in the shape of the values.

    Notes
    -----
    Source: Zou, Donner 2008. With limits (l, u) of each side, the lower limit of D = c - b is
    D - sqrt((c - l_c)^2 + (u_b - b)^2) and the upper one D + sqrt((u_c - c)^2 + (b - l_b)^2).
    For proportions with Wilson's limits that is Newcombe's hybrid score method (Newcombe 1998).
    """

    candidate: Array
    baseline: Array
    source: LimitSource
    places: Array

    def __getitem__(self, position: Any) -> "MoverLimits":  # noqa: ANN401 (a numpy index)
        """Select elements, by any numpy index."""
        candidate, baseline, places = (
            np.asarray(part[position]) for part in (self.candidate, self.baseline, self.places)
        )
        return MoverLimits(candidate, baseline, self.source, places)

    @classmethod
    def join(cls, parts: "Sequence[MoverLimits]") -> "MoverLimits":
        """Concatenate elements of one source along the last axis, without its other indices."""
        candidate, baseline, places = (
            np.concatenate([getattr(part, name) for part in parts], axis=-1)
            for name in ("candidate", "baseline", "places")
        )
        there, source = places != NOWHERE, parts[0].source
        if there.any():
            source, places[there] = source.only(places[there])
        return cls(candidate, baseline, source, places)

    @property
    def value(self) -> Array:
        """The differences."""
        return np.asarray(self.candidate - self.baseline)

    def at(self, quantile: ArrayLike) -> tuple[Array, Array]:
        """Return the lower and the upper limits at a positive normal quantile.

        It broadcasts to the elements. NaN where a side has no interval.
        """
        with np.errstate(all="ignore"):
            below, above = self._distances(np.asarray(quantile))
        return self.value - below, self.value + above

    def limits(self, level: ArrayLike) -> tuple[Array, Array]:
        """Return the one-sided limits, each at this level."""
        return self.at(one_sided_quantile(level))

    def _distances(self, quantile: Array) -> tuple[Array, Array]:
        """Return how far the limits are from the values, below and above."""
        (low, high), *other = self._limits_of_sides(quantile)
        below, above = self.candidate - low, high - self.candidate
        for low, high in other:
            below, above = (
                np.hypot(below, high - self.baseline),
                np.hypot(above, self.baseline - low),
            )
        return below, above

    def _limits_of_sides(self, quantile: Array) -> Array:
        """Return the limits of each side, shape (sides, 2, ...), at a quantile for each element."""
        if quantile.ndim == 0:
            return self.source.at(float(quantile))[..., self.places]
        quantile, turns = np.broadcast_to(quantile, self.places.shape), self._turns
        first = turns == 0
        limits = self._limits_at(quantile[first], self.places[first])[..., self.places]
        for turn in range(1, turns.max(initial=0) + 1):
            now = turns == turn
            places = self.places[now]
            limits[..., now] = self._limits_at(quantile[now], places)[..., places]
        return limits

    @cached_property
    def _turns(self) -> Array:
        """How many elements before each have its place, as two rules about one index have.

        A place has one quantile at a time. That of elements without a place is -1.
        """
        order = np.argsort(self.places, axis=None, kind="stable")
        ranked = self.places.ravel()[order]
        turns = np.empty(order.size, dtype=np.intp)
        turns[order] = np.arange(order.size) - np.searchsorted(ranked, ranked, side="left")
        return np.where(self.places == NOWHERE, -1, turns.reshape(self.places.shape))

    def _limits_at(self, quantile: Array, places: Array) -> Array:
        """Return all limits of the source, those at some places at quantiles of their own."""
        every = np.full(sum(int(np.prod(shape)) for shape in self.source.shapes), REFERENCE)
        every[places] = quantile
        return self.source.at(every)

    @property
    def standard_error(self) -> Array:
        """Half the width of the interval at the level .05, in quantiles; NaN without limits."""
        lower, upper = self.at(REFERENCE)
        return np.asarray((upper - lower) / (2 * REFERENCE))

    def p(self, threshold: ArrayLike) -> tuple[Array, Array]:
        """Return the smallest one-sided levels at which D is shown to be below, or above, it."""
        threshold = np.broadcast_to(threshold, self.value.shape)
        goal, upward = np.abs(threshold - self.value), threshold > self.value

        def distance(z: Array) -> Array:
            below, above = self._distances(z)
            return np.where(upward, above, below)

        with np.errstate(all="ignore"):
            reached = _reached(distance, goal)
        # That of the upper limit at the threshold; minus that of the lower one.
        quantile = np.where(upward, reached, -reached)
        return np.asarray(special.ndtr(-quantile)), np.asarray(special.ndtr(quantile))

    @property
    def p_of_no_change(self) -> tuple[Array, Array]:
        """The smallest levels at which D is shown to be below, and above, 0."""
        return self.p(0.0)

    @property
    def exact_p_of_no_change(self) -> tuple[Array, Array]:
        """The same: two samples have no exact test here."""
        return self.p_of_no_change

    def tails(self, threshold: Array, span: Array) -> tuple[Array, Array]:
        """Return exact p-values of the candidate alone below, and above, a threshold (m,).

        The lowest and the highest possible value are the span (2, m). NaN where the range is
        infinite, or where no number of items is behind it.

        Notes
        -----
        The binomial tail with the effective number of items. The normal distribution is too light
        in the tails that decide among many results.
        """
        at, value = unit_scale(threshold, span), unit_scale(self.candidate, span)
        low, high = (unit_scale(limit, span) for limit in self.at(REFERENCE))
        fewer, more = (effective_items(REFERENCE, value, limit) for limit in (high, low))
        below = binomial_tail_p((1 - value) * fewer, fewer, 1 - at)
        return below, binomial_tail_p(value * more, more, at)


def unit_scale(values: Array, span: Array) -> Array:
    """Map values from their possible range to [0, 1]; NaN where that is infinite."""
    with np.errstate(all="ignore"):
        return np.clip((values - span[0]) / (span[1] - span[0]), 0.0, 1.0)


def _reached(distance: Callable[[Array], Array], goal: Array) -> Array:
    """Find where an increasing function from (0, 0) reaches its goal.

    Infinite where it does not up to `FARTHEST`, NaN where it is not a number.

    Inverse parabolas within a bracket, at first a secant: where one leaves it, the far end is tried
    once, then the middle.
    """
    low, high = np.zeros(goal.shape), np.full(goal.shape, FARTHEST)
    older = at_older = before = at_before = low
    tried = low > 0
    z, at = np.full(goal.shape, REFERENCE), distance(np.asarray(REFERENCE))
    none, lost = goal <= NOTHING, np.isnan(at)
    done = none | lost
    for _ in range(ROUNDS):
        short = at < goal
        tried = tried | (z >= FARTHEST)
        low, high = np.where(short, z, low), np.where(short, high, z)
        slope, rest = (z - before) / (at - at_before), goal - at
        bend = (slope - (before - older) / (at_before - at_older)) / (at - at_older)
        turn = rest * (goal - at_before) * bend
        guess = z + rest * slope + np.where(np.isfinite(turn), turn, 0.0)
        inside = (guess >= low) & (guess <= high)
        other = np.where(short & ~tried, FARTHEST, (low + high) / 2)
        following = np.where(done, z, np.where(inside, guess, other))
        step = np.where(inside, np.abs(guess - z), np.inf)
        done = done | (np.fmin(step, high - low) <= STEP)
        older, at_older, before, at_before, z = before, at_before, z, at, following
        if done.all():
            break
        at = distance(z)
    reached = np.where(low >= FARTHEST, np.inf, z)
    return np.where(lost, np.nan, np.where(none, 0.0, reached))


_ROUNDS = 100
_TOLERANCE = 1e-7
"""A step of Newton's method this short leaves an error of its square."""
_TINY = 1e-300


def tango_z(
    gains: ArrayLike, losses: ArrayLike, trials: ArrayLike, difference: ArrayLike
) -> FloatArray:
    """Score statistic of the hypothesis that new minus old equals `difference`, D0 in [-1, 1].

    All broadcast together; gains + losses <= trials. Fractions are allowed, since counts may have
    been scaled by a design effect.

    Returns
    -------
    Approximately standard normal under the hypothesis, decreasing in `difference`, 0 where
    that is the observed difference, infinite where it is an end that the data exclude. NaN
    without trials or outside [-1, 1].

    Notes
    -----
    Source: Tango 1998: Z = (x - y - n D0) / sqrt(n (2q + D0 (1 - D0))), with q the
    probability of a loss, estimated under the hypothesis.
    """
    x, y, n, d0 = broadcast(gains, losses, trials, difference)
    # A missing count must not become an infinite statistic, whose p-value is 0.
    valid = (n > 0) & (np.abs(d0) <= 1) & np.isfinite(x + y)
    complete = np.count_nonzero(valid) == valid.size
    if not complete:
        n, d0 = np.where(valid, n, 1.0), np.where(valid, d0, 0.0)
    surplus = x - y - n * d0
    deviation = np.sqrt(n * _variance_and_slope(x, y, n, d0)[0])
    varies = deviation > 0
    if complete and np.count_nonzero(varies) == varies.size:
        return np.asarray(surplus / deviation)
    certain = np.where(surplus == 0, 0.0, np.copysign(np.inf, surplus))
    z = np.where(varies, surplus / np.where(varies, deviation, 1.0), certain)
    return np.where(valid, z, np.nan)


def tango_interval(
    gains: ArrayLike, losses: ArrayLike, trials: ArrayLike, z: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper limits of new minus old: the differences where `tango_z` is z and -z.

    All broadcast together; gains + losses <= trials. The positive quantile z is that of the
    two-sided confidence for an interval, of a one-sided level for a single limit.

    Returns
    -------
    Two arrays in [-1, 1], exactly -1 below where every item is a loss and 1 above where every
    item is a gain. They enclose (gains - losses) / trials and are never of width 0. NaN
    without trials.

    Notes
    -----
    Source: Tango 1998; recommended by Fagerland et al. 2013. The distance to the observed
    difference is found to a relative 1e-12.
    """
    x, y, n, quantile = broadcast(gains, losses, trials, z)
    valid = n > 0
    complete = np.count_nonzero(valid) == valid.size
    safe_n = n if complete else np.where(valid, n, 1.0)
    # Exchanging gains and losses mirrors the interval, so both limits are one computation.
    below, above = _distance_to_lower(np.array((x, y)), np.array((y, x)), safe_n, quantile)
    observed = (x - y) / safe_n
    lower, upper = np.maximum(observed - below, -1.0), np.minimum(observed + above, 1.0)
    if complete:
        return np.asarray(lower), np.asarray(upper)
    return np.where(valid, lower, np.nan), np.where(valid, upper, np.nan)


def mcnemar_mid_p(gains: ArrayLike, losses: ArrayLike) -> FloatArray:
    """One-sided p-value of "is it worse": P(X < gains) + P(X = gains) / 2.

    Here X ~ Bin(gains + losses, 1/2), of whole numbers; the relative accuracy is 1e-8 up to 1e9.
    With no discordant item it is 1/2, no evidence either way, and never 0. Exchanging the arguments
    gives 1 minus it; the two-sided mid-p is twice the smaller one.

    Notes
    -----
    Source: Fagerland et al. 2013. As the losses are Bin(gains + losses, 1/2) too, it is the mean
    of their two upper tails, a sum in which nothing cancels.
    """
    x, y = broadcast(gains, losses)
    discordant = x + y
    some = np.where(discordant > 0, discordant, 1.0)
    tail, other = binomial_tail_p(np.stack((y, y + 1)), some, 0.5)
    return np.where(discordant > 0, (tail + other) / 2, np.where(discordant == 0, 0.5, np.nan))


def sign_test_p(gains: ArrayLike, losses: ArrayLike) -> FloatArray:
    """Exact one-sided p-value of "is it worse", given the items that changed: P(X >= losses).

    Here X ~ Bin(gains + losses, 1/2); fractions, of grouped items, interpolate. 1 without losses.

    Notes
    -----
    Source: McNemar 1947 in its exact form; Fagerland et al. 2013.
    """
    x, y = broadcast(gains, losses)
    some = np.maximum(x + y, 1.0)
    p = special.betainc(np.maximum(y, 1.0), some - y + 1, 0.5)
    return np.where(y > 0, np.where(y < 1, 1 - y / 2, p), np.where(np.isnan(x + y), np.nan, 1.0))


def probability_worse(gains: ArrayLike, losses: ArrayLike) -> FloatArray:
    """Posterior probability that losses are more probable than gains, 1/2 where they are equal.

    For information, not for a verdict.

    Notes
    -----
    With a Dirichlet(1/2, 1/2, 1/2) prior on (gain, loss, same) the share of gains among the
    discordant is Beta(gains + 1/2, losses + 1/2) a posteriori, whose distribution function at
    1/2 this is.
    """
    x, y = broadcast(gains, losses)
    return np.asarray(special.betainc(x + 0.5, y + 0.5, 0.5))


def discordance_bounds(
    correct_old: ArrayLike, correct_new: ArrayLike, trials: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest gains + losses that two tables of the same test set allow.

    Notes
    -----
    Both are correct for max(0, a + b - n) to min(a, b) items (Frechet bounds), so abs(a - b) to
    min(a + b, 2n - a - b) items are discordant.
    """
    a, b, n = broadcast(correct_old, correct_new, trials)
    return np.abs(a - b), np.minimum(a + b, 2 * n - a - b)


def _variance_and_slope(
    x: FloatArray, y: FloatArray, n: FloatArray, d0: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the variance of one item's difference and its derivative by D0.

    For a negative D0 the roles of gains and losses are exchanged, which leaves the variance as
    it is; with D0 >= 0 every term under the root is positive, so nothing cancels.
    """
    below, d = d0 < 0, np.abs(d0)
    gains, losses = chosen(below, y, x), chosen(below, x, y)
    rise, straight = 2 * n - gains + losses, 1 - 2 * d
    b, spread = rise * d - gains - losses, d * (1 - d)
    c = losses * spread
    root = np.sqrt(b * b + 8 * n * c)
    # The share q of losses solves 2 n q^2 + b q = c, and so does its derivative by D0.
    far, total = b > 0, root + np.abs(b)
    near = total / (4 * n)
    q = np.where(far, 2 * c / np.where(far, total, 1.0), near) if np.count_nonzero(far) else near
    steep = root if np.count_nonzero(root) == root.size else np.where(root > 0, root, 1.0)
    slope = 2 * (losses * straight - rise * q) / steep + straight
    return 2 * q + spread, chosen(below, -slope, slope)


def _distance_to_lower(x: FloatArray, y: FloatArray, n: FloatArray, z: FloatArray) -> FloatArray:
    """Distance t from the observed difference down to the lower Tango limit.

    The equation n t^2 = z^2 V(D - t), V the variance of one item, is solved in log t, where
    both sides are almost straight lines, by Newton's method within a bracket. V is at most
    1 - D0^2: that gives the upper end of the bracket, a Wilson limit. The lower end is half of the
    distance for the least variance.
    """
    observed = (x - y) / n
    room = 1 + observed
    z2 = z * z
    offset = np.log(n / z2)
    least = z2 * room / (n + z2) / 2
    ends = (n - x + y) / n * room
    root = z * np.sqrt(z2 * observed**2 + (n + z2) * ends) + z2 * np.abs(observed)
    most = np.where(observed > 0, root / (n + z2), z2 * ends / root)
    # Slightly wider: where the variance is the largest possible, the end is the solution.
    low, high = (np.log(np.maximum(end, _TINY)) for end in (least, 1.001 * most))
    log_t = np.clip(np.log(z2 * (x + y + z2)) / 2 - np.log(n), low, high)
    for _ in range(_ROUNDS):  # pragma: no branch (about five rounds converge)
        t = np.exp(log_t)
        d0 = observed - t
        variance, slope = _variance_and_slope(x, y, n, np.maximum(d0, -1.0))
        variance = np.maximum(variance, _TINY)
        excess = 2 * log_t + offset - np.log(variance)
        short = excess < 0
        low, high = chosen(short, log_t, low), chosen(short, high, log_t)
        step = excess / (2 + (d0 > -1.0) * slope * t / variance)
        following, close = log_t - step, np.abs(step) <= _TOLERANCE
        if np.count_nonzero(close) == close.size:
            log_t = following
            break
        within = close | ((following > low) & (following < high))
        log_t = chosen(within, following, (low + high) / 2)
        if not np.count_nonzero(~close & (high - low > _TOLERANCE)):
            break
    return np.where(room > 0, np.exp(log_t), 0.0)
