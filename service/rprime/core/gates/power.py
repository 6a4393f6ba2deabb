"""Power: the drop that makes a gate fail a model with a given probability."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import FloatArray
from rprime.core.comparison.difference import Difference
from rprime.core.comparison.paired_proportions import minimal_detectable_drop, tango_z
from rprime.core.gates.rules import Rule
from rprime.core.gates.simulation import Simulation
from rprime.core.intervals.proportions import one_sided_quantile, wilson

POWER = 0.8
ROUNDS = 40


def detectable_drops(rule: Rule, expected: Simulation, level: float, together: int) -> FloatArray:
    """Change of each value at which the rule fails with 80 % power, from the expected counts.

    Parameters
    ----------
    expected
        Of an unchanged model, stack shape ().
    level
        One-sided.
    together
        How many results are tested together: if only one class got worse, its p-value must pass
        Holm's first step among all of them.

    Returns
    -------
    Shape (k,) or (1,): drops, or rises for upper bounds; NaN where no possible
    change is detectable.
    """
    own = level / together
    if not rule.compares:
        found = _value_drop(rule, expected, own)
        value = expected.estimate(rule).value
    else:
        known = expected.difference(rule)
        value = known.baseline
        found = _difference_drop(rule, expected, known, own)
    return np.where(found <= _room(rule, value), found, np.nan)


def _room(rule: Rule, value: FloatArray) -> FloatArray:
    """Return how far a value can move in the direction that the rule forbids."""
    low, high = rule.entry.range
    return np.asarray(value - low if rule.guards_below else high - value)


def _value_drop(rule: Rule, expected: Simulation, level: float) -> FloatArray:
    known = expected.estimate(rule)
    distance = known.value - rule.limit
    needed = known.detectable(0.5 if rule.test == "none" else level, POWER)
    return np.maximum(distance if rule.guards_below else -distance, 0.0) + needed


def _difference_drop(
    rule: Rule, expected: Simulation, known: Difference, level: float
) -> FloatArray:
    if rule.test == "none":
        return rule.limit + known.detectable_drop(0.5, min(rule.limit, 1.0), POWER)
    if known.tango.all():
        errors = partial(_tango_errors, known.gains, known.losses, known.trials, rule.limit)
        return _detectable_from(rule, errors, known.trials, level)
    trials = expected.trials(rule)
    if trials is None:
        # To first order: the variance is that of the unchanged model.
        variance = known.standard_error**2
        return np.asarray(rule.limit + minimal_detectable_drop(level, POWER, variance, 1.0))
    share = known.baseline if rule.guards_below else 1 - known.baseline
    errors = partial(_binomial_errors, share, trials, one_sided_quantile(level))
    return _detectable_from(rule, errors, trials, level)


Errors = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Map drops to the standard error that the test uses and to the true standard error."""


def _detectable_from(rule: Rule, errors: Errors, trials: FloatArray, level: float) -> FloatArray:
    """Return the smallest drop of a proportion that the test finds with probability `POWER`."""
    reach, strength = one_sided_quantile(level), one_sided_quantile(1 - POWER)
    margin = np.full(trials.shape, rule.limit)
    fails_from = _smallest(margin, lambda drop: drop - margin >= reach * errors(drop)[0])
    return _smallest(margin, lambda drop: drop - fails_from >= strength * errors(drop)[1])


def _smallest(low: FloatArray, holds: Callable[[FloatArray], NDArray[np.bool_]]) -> FloatArray:
    """Find by bisection the smallest number up to 1 from which a condition holds; else NaN."""
    high = np.ones(low.shape)
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        found = holds(middle)
        low, high = np.where(found, low, middle), np.where(found, middle, high)
    return np.where(high < 1, high, np.nan)


def _tango_errors(
    gains: FloatArray, losses: FloatArray, trials: FloatArray, margin: float, drop: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Errors of a paired difference: of Tango's statistic under its hypothesis, and the true one.

    The drop comes as losses on top of the discordance of unchanged models.
    """
    more = np.minimum(losses + drop * trials, trials - gains)
    z = tango_z(gains, more, trials, -margin)
    psi = (gains + more) / trials
    return (margin - drop) / z, np.sqrt(np.maximum(psi - drop * drop, 0.0) / trials)


def _binomial_errors(
    share: FloatArray, trials: FloatArray, reach: FloatArray, drop: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Errors of an unpaired difference: of its limit at the quantile `reach`, and the true one."""
    left = np.maximum(share - drop, 0.0)
    low, _ = wilson(share * trials, trials, reach)
    _, high = wilson(left * trials, trials, reach)
    error = np.sqrt((share * (1 - share) + left * (1 - left)) / trials)
    return np.hypot(high - left, share - low) / reach, error
