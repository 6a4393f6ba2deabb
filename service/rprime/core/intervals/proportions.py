"""Score and exact intervals of proportions, the exact binomial tail and normal quantiles."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rprime.core import special
from rprime.core.arrays import Array, FloatArray, broadcast
from rprime.core.thresholds import exceeds

FEW_GROUPS = 5
"""Fewer groups on a side, with errors or without, do not show how groups differ."""
TWO_SIDED = 1.959963984540054
"""The normal quantile of 95 %."""
_USUAL = 0.95
_SMALLEST: float = float(np.finfo(np.float64).tiny)
_FAR = 1e-200
_LARGEST_EXPONENT = 709.0
_TOLERANCE = 1e-6  # relative, of the tail at an exact limit
_BISECTIONS = 100
_OUTSIDE = 1e-9  # of the range; that far outside of it is rounding
_ROUNDED = 1e-14  # of the range; smaller standard errors are rounding
_NEGLIGIBLE = -40.0  # log of the largest terms left out of a series that starts with 1


def normal_quantile(confidence: ArrayLike) -> FloatArray:
    """Quantile z with P(-z < Z < z) = confidence, in (0, 1), for a standard normal Z."""
    return _floats(-special.ndtri((1 - _floats(confidence)) / 2))


@lru_cache(maxsize=64)
def quantile_of(confidence: float) -> float:
    """Return `normal_quantile` of one level as a number."""
    # The default is known, so that it takes no SciPy.
    return TWO_SIDED if confidence == _USUAL else float(normal_quantile(confidence))


def student(quantile: ArrayLike, groups: ArrayLike) -> FloatArray:
    """Quantile of Student's t with a degree of freedom less than groups; NaN for one group."""
    return _floats(-special.stdtrit(_floats(groups) - 1, special.ndtr(-_floats(quantile))))


def one_sided_quantile(alpha: ArrayLike) -> FloatArray:
    """Quantile z with P(Z > z) = alpha for a standard normal Z; tiny levels keep their accuracy."""
    return _floats(-special.ndtri(_floats(alpha)))


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Proportions (...) with what of their score limits does not depend on the quantile.

    Trials are NaN where they are invalid. `spread` is x (n - x) / n, `squares` x^2 / n, and `full`
    whether every trial succeeds; None if nowhere.
    """

    successes: FloatArray
    trials: FloatArray
    spread: FloatArray
    squares: FloatArray
    full: NDArray[np.bool_] | None

    @classmethod
    def of(cls, successes: FloatArray, trials: FloatArray) -> "ScoreCounts":
        """Prepare proportions, as for `wilson`."""
        rest = trials - successes
        valid = (np.minimum(successes, rest) >= 0) & (trials > 0)
        if np.count_nonzero(valid) < valid.size:
            trials = np.where(valid, trials, np.nan)
            rest = trials - successes
        share = successes / trials
        full = rest == 0
        some = np.count_nonzero(full)
        return cls(successes, trials, share * rest, share * successes, full if some else None)

    def limits(self, z: float | FloatArray) -> FloatArray:
        """Compute the lower and upper limits, as `wilson` does, shape (2, ...)."""
        square = z * z
        upper_sum = self.successes + square / 2 + z * np.sqrt(self.spread + square / 4)
        result = np.empty((2, *upper_sum.shape))
        lower, upper = result[0, ...], result[1, ...]
        np.divide(self.squares, upper_sum, out=lower)
        np.divide(upper_sum, self.trials + square, out=upper)
        np.minimum(upper, 1.0, out=upper)
        if self.full is not None:
            np.copyto(upper, 1.0, where=self.full)
        return result

    def exact_limits(self, z: float | FloatArray) -> FloatArray:
        """Compute the lower and upper limits, as `clopper_pearson` does, shape (2, ...)."""
        return clopper_pearson(self.successes, self.trials, 1 - 2 * special.ndtr(-_floats(z)))


@dataclass(frozen=True, eq=False)
class ScoreIntervals:
    """Score intervals of n smooth indices: Wilson's on the effective number of items.

    `shares` and `items`, shape (n, ...), are the indices as shares of their ranges, and effective
    numbers of items; NaN or infinite where there is no interval. `low` and `width`, broadcastable
    to them, are the smallest value of the range, and its width.
    """

    shares: FloatArray
    items: FloatArray
    low: FloatArray
    width: FloatArray

    @classmethod
    def of(
        cls,
        values: FloatArray,
        smoothed: FloatArray,
        variances: FloatArray,
        *,
        growth: FloatArray,
        bounds: FloatArray,
    ) -> "ScoreIntervals":
        """Find the effective numbers of items.

        Parameters
        ----------
        values, smoothed, variances
            Shape (n, ...): the observed values, and those at the pooled table with their variances.
        growth
            Items of the observed table divided by those of the pooled one.
        bounds
            Shape (2, n) or (2, n, ...): smallest and largest value of each index.
        """
        low, high = bounds.reshape(*bounds.shape, *(1,) * (values.ndim + 1 - bounds.ndim))
        width = high - low
        at, there = (values - low) / width, (smoothed - low) / width
        # What lies outside by rounding is at the end of the range.
        edge = np.minimum(np.maximum(at, 0.0), 1.0)
        inside = np.abs(at - edge) <= _OUTSIDE
        items = there * (1 - there) / variances * (width * width) * growth
        usable = inside & (items > 0) & (variances > (_ROUNDED * width) ** 2)
        return cls(edge, np.where(usable, items, np.nan), low, width)

    def take(self, places: Array) -> "ScoreIntervals":
        """Return some of the indices."""
        return ScoreIntervals(
            self.shares[places], self.items[places], self.low[places], self.width[places]
        )

    @cached_property
    def counts(self) -> ScoreCounts:
        """The shares as proportions of the effective items."""
        return ScoreCounts.of(self.shares * self.items, self.items)

    def scaled(self, limits: FloatArray) -> FloatArray:
        """Map limits (2, n, ...) of the shares to the ranges of the indices."""
        return self.low + self.width * limits


@np.errstate(all="ignore")
def wilson(successes: ArrayLike, trials: ArrayLike, z: ArrayLike) -> FloatArray:
    """Lower and upper score limits of a proportion.

    Parameters
    ----------
    successes, trials
        Broadcast together. 0 <= successes <= trials; fractions are allowed, since counts may
        have been scaled by a design effect.
    z
        Positive quantile, as `normal_quantile(.95)`; broadcasts too.

    Returns
    -------
    Shape (2, ...), in [0, 1]: exactly 0 below at no success and exactly 1 above at no failure, the
    width never 0. NaN where there are no trials or `successes` is outside [0, trials].

    Notes
    -----
    Source: Wilson 1927. The lower limit is the product of the two roots divided by the upper
    one, so that nothing cancels where successes are few.
    """
    return ScoreCounts.of(_floats(successes), _floats(trials)).limits(_floats(z))


def mover_r(shares: FloatArray, limits: FloatArray) -> FloatArray:
    """Lower and upper limits of a ratio of two proportions, shape (2, ...).

    From both shares (2, ...) and their lower and upper Wilson limits (2, 2, ...). It is 0 below
    where the numerator is 0, infinite above where the denominator is 0.

    Notes
    -----
    Source: Fagerland, Newcombe 2013.
    """
    p1, p2 = shares
    ends, opposite = limits[:, 0], limits[::-1, 1]
    product = p1 * p2
    below = opposite * (2 * p2 - opposite)
    roots = np.sqrt(np.maximum(product * product - ends * below * (2 * p1 - ends), 0.0))
    np.negative(roots[0], out=roots[0])
    result = (product + roots) / below
    empty = p2 == 0
    if empty.any():
        result[0] = np.where(empty, ends[0] / opposite[0], result[0])
        result[1, empty] = np.inf
    result[0, p1 == 0] = 0.0
    return np.asarray(result)


def clopper_pearson(successes: ArrayLike, trials: ArrayLike, confidence: ArrayLike) -> FloatArray:
    """Lower and upper exact limits of a proportion, as `wilson`; fractions interpolate.

    Parameters
    ----------
    confidence
        Two-sided, in (0, 1); broadcasts too.

    Notes
    -----
    Source: Clopper, Pearson 1934, by quantiles of the beta distribution.
    """
    x, n = _floats(successes), _floats(trials)
    valid = (n > 0) & (x >= 0) & (x <= n)
    x, n = np.where(valid, x, 0.0), np.where(valid, n, 1.0)
    tail = (1 - _floats(confidence)) / 2
    # One more success (failure) than there are only keeps the unused branch defined.
    lower = _beta_quantile(special.betaincinv, np.where(x > 0, x, 1.0), n - x + 1, tail)
    upper = _beta_quantile(special.betainccinv, x + 1, np.where(x < n, n - x, 1.0), tail)
    limits = np.array((np.where(x > 0, lower, 0.0), np.where(x < n, upper, 1.0)))
    return np.where(valid, limits, np.nan)


def _beta_quantile(inverse: np.ufunc, a: FloatArray, b: FloatArray, tail: FloatArray) -> FloatArray:
    """Invert a tail of the beta distribution, by bisection where the library is wrong.

    With 1000 successes in 7e7 trials `betaincinv` of scipy 1.17 returns half of the quantile.
    """
    a, b, tail = np.broadcast_arrays(a, b, tail)
    quantile = np.asarray(inverse(a, b, tail))
    below = inverse is special.betaincinv
    share = special.betainc if below else special.betaincc
    wrong = np.abs(share(a, b, quantile) - tail) > _TOLERANCE * tail
    if wrong.any():
        a, b, tail = a[wrong], b[wrong], tail[wrong]
        low, high = np.zeros(tail.shape), np.ones(tail.shape)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            beyond = (share(a, b, middle) > tail) == below
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        quantile = quantile.copy()
        quantile[wrong] = (low + high) / 2
    return quantile


def binomial_tail_p(successes: ArrayLike, trials: ArrayLike, share: ArrayLike) -> FloatArray:
    """Exact one-sided P(X >= successes) for X ~ Bin(trials, share), elementwise.

    Beyond `trials` it is 0, at 0 or below 1; NaN without trials. A possible event never gets 0:
    the smallest normal double, 2.2e-308, is the upper bound of smaller ones.

    Notes
    -----
    By the regularised incomplete beta function I_share(successes, trials - successes + 1), and
    in log-space where that is below 1e-200, because its factors underflow long before it does.
    The relative accuracy is 1e-10 up to a million trials and 1e-7 up to 1e12; below 1e-200 it is
    1e-9 and 1e-3.
    """
    x, n, p = _floats(successes), _floats(trials), _floats(share)
    inside = (x > 0) & (x <= n)
    if np.all(inside & (_surprise(x, n, p) > _LARGEST_EXPONENT)):
        return np.full(inside.shape, _SMALLEST)
    tail = np.asarray(
        special.betainc(np.where(inside, x, 1.0), np.where(inside, n - x + 1, 1.0), p)
    )
    far = inside & (p > 0) & (tail < _FAR)
    if far.any():
        tail[far] = _far_tail(*(part[far] for part in np.broadcast_arrays(x, n, p)))
    return np.where(inside, tail, np.where(n > 0, np.where(x > 0, 0.0, 1.0), np.nan))


def binomial_tail_exceeds(
    successes: ArrayLike, trials: ArrayLike, share: ArrayLike, level: float
) -> NDArray[np.bool_]:
    """Whether `binomial_tail_p` is above a level, as `exceeds` has it.

    It is computed only where Chernoff's bound is not below the level.
    """
    x, n, p = broadcast(successes, trials, share)
    above = np.asarray(_surprise(x, n, p) <= -np.log(level))
    if above.any():
        above[above] = exceeds(binomial_tail_p(x[above], n[above], p[above]), level)
    return above


def _surprise(x: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    """Return the exponent of Chernoff's bound, P(X >= x) <= exp(-exponent); 0 up to the mean."""
    rest = n - x
    with np.errstate(all="ignore"):
        exponent = x * np.log(x / (n * p)) + np.where(
            rest > 0, rest * np.log(rest / (n * (1 - p))), 0.0
        )
        return np.where((x > n * p) & (p > 0), exponent, 0.0)


def effective_items(quantile: ArrayLike, value: ArrayLike, limit: ArrayLike) -> FloatArray:
    """Return how many items make this the Wilson limit of a share: z^2 l (1 - l) / (v - l)^2.

    Here z is the normal quantile, v the value and l the limit, both in [0, 1]. NaN where there is
    no positive number.
    """
    z, v, bound = (_floats(part) for part in (quantile, value, limit))
    with np.errstate(all="ignore"):
        items = (z / (v - bound)) ** 2 * bound * (1 - bound)
    return np.where(np.isfinite(items) & (items > 0), items, np.nan)


def _far_tail(x: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    """P(X >= x) far above the mean: the first probability times a series.

    The ratios of successive probabilities decrease, so the omitted terms are smaller than the
    rounding error.
    """
    rest = n - x
    exponent = special.rel_entr(x, n * p) + special.rel_entr(rest, n * (1 - p))
    if np.minimum.reduce(exponent) > _LARGEST_EXPONENT:  # exp(-exponent) is Chernoff's bound
        return np.full(x.shape, _SMALLEST)
    # Of all shares, x / n makes x the most likely; the exponent leads from there to p.
    likely = special.betainc(x, rest + 1, x / n)
    likely -= np.where(rest > 0, special.betainc(x + 1, np.maximum(rest, 1.0), x / n), 0.0)
    odds = p / (1 - p)
    first = rest / (x + 1) * odds
    terms = np.ceil(_NEGLIGIBLE / np.log(first.max(initial=0.5)))
    j = np.arange(1.0, terms + 1)[:, None]
    # Counts above n are impossible: the factor 0 ends the product.
    ratios = np.maximum(rest - j + 1, 0.0) / (x + j) * odds
    series = 1 + np.add.reduce(np.multiply.accumulate(ratios, axis=0), axis=0)
    return np.maximum(np.exp(np.log(likely * series) - exponent), _SMALLEST)


def _floats(values: ArrayLike) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


POWER = 0.8
"""Share of test sets on which a test finds what it should."""


def distance_found(
    level: float | FloatArray, error: FloatArray, missed: float | FloatArray = 1 - POWER
) -> FloatArray:
    """Return the distance from a threshold that a test at a level finds, but for some `missed`.

    `level` is one-sided; the standard error `error` is to first order the same at all distances.
    """
    return np.asarray((one_sided_quantile(level) + one_sided_quantile(missed)) * error)
