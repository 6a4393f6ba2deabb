"""Paired proportions: two classifiers on the same items, compared by gains and losses.

A gain is an item that only the new classifier predicts correctly, a loss the reverse.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rprime.core.arrays import FloatArray
from rprime.core.intervals.proportions import binomial_tail_p, one_sided_quantile

_ROUNDS = 100
_TOLERANCE = 1e-13
_TINY = 1e-300


def tango_z(
    gains: ArrayLike, losses: ArrayLike, trials: ArrayLike, difference: ArrayLike
) -> FloatArray:
    """Score statistic of the hypothesis that new minus old equals `difference`.

    Parameters
    ----------
    gains, losses, trials
        Broadcast together; gains + losses <= trials. Fractions are allowed, since counts may
        have been scaled by a design effect.
    difference
        The hypothetical D0 in [-1, 1]; broadcasts too.

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
    x, y, n, d0 = _broadcast(gains, losses, trials, difference)
    # A missing count must not become an infinite statistic, whose p-value is 0.
    valid = (n > 0) & (np.abs(d0) <= 1) & np.isfinite(x + y)
    n, d0 = np.where(valid, n, 1.0), np.where(valid, d0, 0.0)
    surplus = x - y - n * d0
    deviation = np.sqrt(n * _item_variance(x, y, n, d0))
    certain = np.where(surplus == 0, 0.0, np.copysign(np.inf, surplus))
    z = np.where(deviation > 0, surplus / np.where(deviation > 0, deviation, 1.0), certain)
    return np.where(valid, z, np.nan)


def tango_interval(
    gains: ArrayLike, losses: ArrayLike, trials: ArrayLike, z: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper limits of new minus old: the differences where `tango_z` is z and -z.

    Parameters
    ----------
    gains, losses, trials
        Broadcast together; gains + losses <= trials.
    z
        Positive quantile: of the two-sided confidence for an interval, of a one-sided level
        for a single limit; broadcasts too.

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
    x, y, n, quantile = _broadcast(gains, losses, trials, z)
    valid = n > 0
    safe_n = np.where(valid, n, 1.0)
    # Exchanging gains and losses mirrors the interval, so both limits are one computation.
    below, above = _distance_to_lower(
        np.stack([x, y]), np.stack([y, x]), np.stack([safe_n] * 2), np.stack([quantile] * 2)
    )
    observed = (x - y) / safe_n
    lower, upper = np.maximum(observed - below, -1.0), np.minimum(observed + above, 1.0)
    return np.where(valid, lower, np.nan), np.where(valid, upper, np.nan)


def mcnemar_mid_p(gains: ArrayLike, losses: ArrayLike) -> FloatArray:
    """One-sided p-value of "is it worse": P(X < gains) + P(X = gains) / 2.

    Parameters
    ----------
    gains, losses
        Non-negative whole numbers, broadcast together; the relative accuracy is 1e-8 up to 1e9.

    Returns
    -------
    Small where losses outweigh gains; X ~ Bin(gains + losses, 1/2). With no discordant item it
    is 1/2, no evidence either way, and never 0. Exchanging the arguments gives 1 minus it; the
    two-sided mid-p is twice the smaller one.

    Notes
    -----
    Source: Fagerland et al. 2013. As the losses are Bin(gains + losses, 1/2) too, it is the mean
    of their two upper tails, a sum in which nothing cancels.
    """
    x, y = _broadcast(gains, losses)
    discordant = x + y
    some = np.where(discordant > 0, discordant, 1.0)
    tails = binomial_tail_p(y, some, 0.5) + binomial_tail_p(y + 1, some, 0.5)
    return np.where(discordant > 0, tails / 2, np.where(discordant == 0, 0.5, np.nan))


def probability_worse(gains: ArrayLike, losses: ArrayLike) -> FloatArray:
    """Posterior probability that losses are more probable than gains.

    Parameters
    ----------
    gains, losses
        Non-negative, broadcast together.

    Returns
    -------
    In [0, 1], 1/2 where gains equal losses. For information, not for a verdict.

    Notes
    -----
    With a Dirichlet(1/2, 1/2, 1/2) prior on (gain, loss, same) the share of gains among the
    discordant is Beta(gains + 1/2, losses + 1/2) a posteriori, whose distribution function at
    1/2 this is.
    """
    x, y = _broadcast(gains, losses)
    return np.asarray(special.betainc(x + 0.5, y + 0.5, 0.5))


def discordance_bounds(
    correct_old: ArrayLike, correct_new: ArrayLike, trials: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest gains + losses that two tables of the same test set allow.

    Parameters
    ----------
    correct_old, correct_new, trials
        Items that each classifier predicts correctly, and all items; broadcast together.

    Notes
    -----
    Both are correct for max(0, a + b - n) to min(a, b) items (Frechet bounds), so abs(a - b) to
    min(a + b, 2n - a - b) items are discordant.
    """
    a, b, n = _broadcast(correct_old, correct_new, trials)
    return np.abs(a - b), np.minimum(a + b, 2 * n - a - b)


def bracketed_p(
    correct_old: ArrayLike,
    correct_new: ArrayLike,
    trials: ArrayLike,
    p_value: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest paired p-value that two tables of the same test set allow.

    Parameters
    ----------
    correct_old, correct_new, trials
        Items that each classifier predicts correctly, and all items; broadcast together.
    p_value
        Of gains, losses and trials; monotone in the discordant total at a given difference.

    Returns
    -------
    Two arrays; a verdict on which both agree holds for the unknown pairing too. NaN where
    `p_value` is.
    """
    a, b, n = _broadcast(correct_old, correct_new, trials)
    at_ends = [
        p_value((total + b - a) / 2, (total - b + a) / 2, n)
        for total in discordance_bounds(a, b, n)
    ]
    return np.minimum(*at_ends), np.maximum(*at_ends)


def discordance_psi(
    gains: ArrayLike, losses: ArrayLike, trials: ArrayLike, margin: ArrayLike
) -> FloatArray:
    """Variance of one item's difference to plan with: the larger of observed and at the margin.

    Parameters
    ----------
    gains, losses, trials
        Broadcast together; gains + losses <= trials.
    margin
        The largest drop that is accepted, in (0, 1); broadcasts too.

    Returns
    -------
    max(observed discordance, 2q + D0 (1 - D0) at D0 = -margin), in (0, 1]: positive even where
    the two classifiers agree on every item. NaN without trials.

    Notes
    -----
    Source: q as in Tango 1998, see `tango_z`.
    """
    x, y, n, delta = _broadcast(gains, losses, trials, margin)
    valid = n > 0
    n = np.where(valid, n, 1.0)
    return np.where(valid, np.maximum((x + y) / n, _item_variance(x, y, n, -delta)), np.nan)


def minimal_detectable_drop(
    alpha: ArrayLike, power: ArrayLike, psi: ArrayLike, trials: ArrayLike
) -> FloatArray:
    """Drop that a one-sided test at `alpha` detects with probability `power`.

    Parameters
    ----------
    alpha, power
        In (0, 1), as .05 and .8; broadcast with the others.
    psi
        Variance of one item's difference, as from `discordance_psi`. For two unpaired tables:
        the variance of the difference itself, with 1 for `trials`.
    trials
        Number of compared items.

    Returns
    -------
    (z_{1-alpha} + z_{power}) sqrt(psi / trials); above 1 if no drop can be detected. NaN
    without trials.
    """
    level, strength, variance, n = _broadcast(alpha, power, psi, trials)
    valid = n > 0
    quantiles = one_sided_quantile(level) + one_sided_quantile(1 - strength)
    return np.where(valid, quantiles * np.sqrt(variance / np.where(valid, n, 1.0)), np.nan)


def _item_variance(x: FloatArray, y: FloatArray, n: FloatArray, d0: FloatArray) -> FloatArray:
    """Variance 2q + D0 (1 - D0) of one item's difference, estimated under the hypothesis D0.

    For a negative D0 the roles of gains and losses are exchanged, which leaves the variance as
    it is; with D0 >= 0 every term under the root is positive, so nothing cancels.
    """
    gains, losses = np.where(d0 < 0, y, x), np.where(d0 < 0, x, y)
    d = np.abs(d0)
    b = (2 * n - gains + losses) * d - gains - losses
    c = losses * d * (1 - d)
    root = np.sqrt(b * b + 8 * n * c)
    q = np.where(b > 0, 2 * c / np.where(b > 0, b + root, 1.0), (root - b) / (4 * n))
    return np.asarray(2 * q + d * (1 - d))


def _distance_to_lower(x: FloatArray, y: FloatArray, n: FloatArray, z: FloatArray) -> FloatArray:
    """Distance t from the observed difference down to the lower Tango limit.

    The equation n t^2 = z^2 V(D - t), V the variance of one item, is solved in log t, where
    both sides are almost straight lines. V is at most 1 - D0^2: that gives the upper end of
    the bracket, a Wilson limit. The lower end is half of the distance for the least variance.
    """
    observed = (x - y) / n
    room = 1 + observed
    z2 = z * z

    def excess(log_t: FloatArray) -> FloatArray:
        variance = _item_variance(x, y, n, np.maximum(observed - np.exp(log_t), -1.0))
        return np.asarray(2 * log_t + np.log(n / z2) - np.log(np.maximum(variance, _TINY)))

    least = z2 * room / (n + z2) / 2
    ends = (n - x + y) / n * room
    root = z * np.sqrt(z2 * observed**2 + (n + z2) * ends) + z2 * np.abs(observed)
    most = np.where(observed > 0, root / (n + z2), z2 * ends / root)
    # Slightly wider: where the variance is the largest possible, the end is the solution.
    bracket = (np.log(np.maximum(end, _TINY)) for end in (least, 1.001 * most))
    return np.where(room > 0, np.exp(_increasing_root(excess, *bracket)), 0.0)


def _increasing_root(
    function: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray
) -> FloatArray:
    """Root of an increasing function between `low` and `high`, elementwise (Ridders 1979)."""
    at_low, at_high = function(low), function(high)
    root = high
    for _ in range(_ROUNDS):  # pragma: no branch (about ten rounds converge)
        middle = (low + high) / 2
        at_middle = function(middle)
        spread = np.sqrt(np.maximum(at_middle**2 - at_low * at_high, _TINY))
        previous, root = root, middle - (middle - low) * at_middle / spread
        if not np.any(np.abs(root - previous) > _TOLERANCE):
            break
        for point, value in ((middle, at_middle), (root, function(root))):
            above, below = (value >= 0) & (point < high), (value < 0) & (point > low)
            high, at_high = np.where(above, point, high), np.where(above, value, at_high)
            low, at_low = np.where(below, point, low), np.where(below, value, at_low)
    return root


def _broadcast(*values: ArrayLike) -> tuple[FloatArray, ...]:
    return np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in values))
