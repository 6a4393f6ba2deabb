"""Power: the drop at which a gate fails a model with a given probability."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rprime.core.comparison.difference import Difference
from rprime.core.comparison.paired import minimal_detectable_drop, tango_z
from rprime.core.gates.rehearsal import Rehearsal
from rprime.core.gates.rules import Rule
from rprime.core.gates.verdict import Array
from rprime.core.intervals.proportions import one_sided_quantile

POWER = 0.8
ROUNDS = 40


def detectable_drops(rule: Rule, expected: Rehearsal, level: float, together: int) -> Array:
    """Change of each value at which the rule fails with 80 % power, from the expected counts.

    Parameters
    ----------
    expected
        Of an unchanged model, stack shape ().
    level
        One-sided.
    together
        How many results are tested together: where one class alone got worse, it must stand out
        from all of them (Holm's first step).

    Returns
    -------
    Shape (k,) or (1,): drops, or rises for what must not rise; NaN where no possible one is seen.
    """
    own = level / together
    if not rule.compares:
        found = _beyond_floor(rule, expected, own)
        value = expected.estimate(rule).value
    else:
        known = expected.difference(rule)
        value = known.baseline
        found = _beyond_margin(rule, expected, known, own)
    return np.where(found <= _room(rule, value), found, np.nan)


def _room(rule: Rule, value: Array) -> Array:
    """How far a value can move in the direction that the rule forbids."""
    low, high = rule.entry.range
    return np.asarray(value - low if rule.guards_below else high - value)


def _beyond_floor(rule: Rule, expected: Rehearsal, level: float) -> Array:
    known = expected.estimate(rule)
    distance = known.value - rule.limit
    needed = known.detectable(0.5 if rule.test == "none" else level, POWER)
    return np.maximum(distance if rule.guards_below else -distance, 0.0) + needed


def _beyond_margin(rule: Rule, expected: Rehearsal, known: Difference, level: float) -> Array:
    if rule.test == "none":
        return rule.limit + known.detectable_drop(0.5, min(rule.limit, 1.0), POWER)
    counted = expected.flips(rule.entry)
    if counted is None:
        # To first order: the variance is that of the unchanged model.
        variance = known.standard_error**2
        return np.asarray(rule.limit + minimal_detectable_drop(level, POWER, variance, 1.0))
    if expected.paired:
        return _seen_from(rule, partial(_tango_errors, *counted, rule.limit), counted[-1], level)
    share = known.baseline if rule.guards_below else 1 - known.baseline
    return _seen_from(rule, partial(_binomial_errors, share, counted[-1]), counted[-1], level)


Errors = Callable[[Array], tuple[Array, Array]]
"""Of drops: the standard error that the test uses, and the true one of the difference."""


def _seen_from(rule: Rule, errors: Errors, trials: Array, level: float) -> Array:
    """Smallest drop of a proportion that mostly comes out beyond what the test asks for."""
    reach, strength = one_sided_quantile(level), one_sided_quantile(1 - POWER)
    margin = np.full(trials.shape, rule.limit)
    fails_from = _smallest(margin, lambda drop: drop - margin >= reach * errors(drop)[0])
    return _smallest(margin, lambda drop: drop - fails_from >= strength * errors(drop)[1])


def _smallest(low: Array, holds: Callable[[Array], NDArray[np.bool_]]) -> Array:
    """Smallest number up to 1 from which on a condition holds, by bisection; NaN for none."""
    high = np.ones(low.shape)
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        there = holds(middle)
        low, high = np.where(there, low, middle), np.where(there, middle, high)
    return np.where(high < 1, high, np.nan)


def _tango_errors(
    gains: Array, losses: Array, trials: Array, margin: float, drop: Array
) -> tuple[Array, Array]:
    """Errors of a paired difference: of Tango's statistic under its hypothesis, and the true one.

    The drop comes as losses on top of the discordance of unchanged models.
    """
    more = np.minimum(losses + drop * trials, trials - gains)
    z = tango_z(gains, more, trials, -margin)
    psi = (gains + more) / trials
    return (margin - drop) / z, np.sqrt(np.maximum(psi - drop * drop, 0.0) / trials)


def _binomial_errors(share: Array, trials: Array, drop: Array) -> tuple[Array, Array]:
    """Errors of an unpaired difference of a share from a smaller one; both are the same."""
    left = np.maximum(share - drop, 0.0)
    error = np.sqrt((share * (1 - share) + left * (1 - left)) / trials)
    return error, error
