"""The limits of the indices of scores."""

from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.intervals.delong import (
    ItemMean,
    influence_of_items,
    influence_on_class,
    ranked_key,
    scores_of,
)
from rprime.core.intervals.proportions import FEW_GROUPS, student, wilson
from rprime.core.scores.ranking import effective_number
from rprime.core.scores.scores import Scores
from rprime.core.values import Values

ROUNDS = 60
"""Most steps to a root; Newton's method needs about seven."""


def of_ranking(values: Values, entry: Index, _: Array, quantile: float | Array) -> Array:
    """Limits of an area or average precision of the classes, or of an average of them."""
    ranked = Ranked.of(values, ranked_key(entry) or entry.key)
    if entry.scope == "class":
        return ranked.limits(quantile)
    return _averaged(values, entry, ranked, quantile)


def of_mean(values: Values, entry: Index, observed: Array, quantile: float | Array) -> Array:
    """Limits of a mean over the items, or of a sum."""
    mean = ItemMean.of(values, entry)
    return np.full((2, *observed.shape), np.nan) if mean is None else mean.limits(quantile)


def of_fit(values: Values, entry: Index, observed: Array, quantile: float | Array) -> Array:
    """Limits of a smooth index of the classes, or of an average of it, by its influences."""
    if entry.scope == "overall":
        influences = [influence_of_items(values, entry, values.options.sampling)]
    else:
        influences = [
            influence_on_class(values, entry, label, values.options.sampling) if exists else None
            for label, exists in enumerate(np.isfinite(observed).tolist())
        ]
    halves = [_half(scores_of(values), influence) for influence in influences]
    errors, degrees = np.array(halves).T.reshape(2, *observed.shape)
    half = student(quantile, degrees + 1) * errors
    return np.array([observed - half, observed + half])


def _half(scores: Scores, influence: Array | None) -> tuple[float, float]:
    """Return the standard error, NaN without influences, and its degrees of freedom."""
    if influence is None:
        return np.nan, 1.0
    degrees = min(scores.degrees(influence), effective_number(scores.item_weights) - LINE)
    return float(np.sqrt(scores.square(influence))), max(degrees, 1.0)


LINE = 2
"""The parameters of a line, which take a degree of freedom each."""


def newcombe(
    area: Array,
    positives: Array,
    negatives: Array,
    quantile: float | Array,
    inflation: Array | float = 1.0,
) -> Array:
    """Score limits of areas under ROC curves (...), from effective numbers of items: (2, ...).

    The limits 0 and 1 belong to an area of 0 or 1; NaN to one of NaN. The variance is multiplied by
    the inflation.

    Notes
    -----
    Source: Newcombe 2006, method 5. The limits t solve |area - t| = quantile root(V(t)), V the
    variance of Hanley, McNeil 1982 with (m + n) / 2 items on both sides.
    """
    extra = (positives + negatives) / 2 - 1
    spread = quantile**2 * inflation / (positives * negatives)
    area = np.asarray(area)
    inner = np.array([area, area])
    outer = np.array([np.zeros_like(area), np.ones_like(area)])
    at = outer.copy()
    for _ in range(ROUNDS):
        gap, half = area - at, at * (1 - at)
        variance = half * (1 + extra * (1 + 2 * half) / (2 + half))
        slope = (1 + extra * (2 - 6 / (2 + half) ** 2)) * (1 - 2 * at)
        excess = gap * gap - spread * variance
        outer, inner = np.where(excess >= 0, at, outer), np.where(excess >= 0, inner, at)
        step = at + excess / (2 * gap + spread * slope)
        between = (step - inner) * (step - outer) <= 0
        new = np.where(between, step, (inner + outer) / 2)
        if not (np.abs(new - at) > 1e-15).any():
            break
        at = new
    return np.where(np.isnan(area), np.nan, at)


def hanley_mcneil(area: Array, positives: Array, negatives: Array) -> Array:
    """Return the variance V of `newcombe`."""
    half = area * (1 - area)
    extra = (positives + negatives) / 2 - 1
    factor = 1 + extra * (1 + 2 * half) / (2 + half)
    return np.asarray(half * factor / (positives * negatives))


@dataclass(frozen=True, eq=False)
class Ranked:
    """An index of the rankings of the classes, with what its limits and averages need.

    Parameters
    ----------
    key
        Of `RANKED`.
    values, variances, bias
        Shape (k,), NaN where a class has no value; and how much the values exceed what they
        estimate on average.
    positives, negatives
        Shape (k,): effective numbers of items.
    alike, degrees
        Shape (k,): the least design effect of the groups, 1 without groups; and the degrees of
        freedom of the variances of grouped or weighted items, else infinite.
    """

    key: str
    values: Array
    variances: Array
    bias: Array
    positives: Array
    negatives: Array
    alike: Array
    degrees: Array

    @classmethod
    def of(cls, values: Values, key: str) -> "Ranked":
        """Collect an index of `RANKED`."""
        scores, fixed = scores_of(values), values.options.sampling == "fixed_rows"
        rankings = scores.ranking(influences=True, fixed_rows=fixed)
        support, effective = scores.support, scores.effective
        variances = rankings.variances[key]
        with np.errstate(all="ignore"):
            if key == "hand_till_auc":  # every other class has the same say
                inverse = np.where(effective > 0, 1 / effective, 0.0)
                others = np.count_nonzero(effective) - 1
                negatives = others**2 / (np.add.reduce(inverse) - inverse)
            else:
                squares = np.where(effective > 0, support**2 / effective, 0.0)
                rest = np.add.reduce(support) - support
                negatives = rest**2 / (np.add.reduce(squares) - squares)
        of_classes = (rankings.of_classes(key), variances.classes, variances.bias)
        return cls(key, *of_classes, effective, negatives, least_effects(scores), variances.degrees)

    @property
    def guards(self) -> Array:
        """Variance of half an item on the wrong side, which a small sample may miss."""
        if self.key == "average_precision":
            return np.asarray(self.alike / self.positives**2)
        return np.asarray(self.alike * (self.positives**-2.0 + self.negatives**-2.0) / 4)

    def limits(self, quantile: float | Array) -> Array:
        """Compute the limits of the classes at a normal quantile, shape (2, k)."""
        if not np.isinf(self.degrees).all():
            quantile = student(quantile, np.maximum(self.degrees, 1) + 1)
        if self.key == "average_precision":
            centre = (self.positives * self.values + 0.5) / (self.positives + 1)
            number = centre * (1 - centre) / (self.variances + self.guards)
            unbiased = np.maximum(self.values - self.bias, 0.0)
            low = wilson(unbiased * number, number, quantile)[0]
            return np.array([low, wilson(self.values * number, number, quantile)[1]])
        sizes = (self.positives, self.negatives)
        expected = hanley_mcneil(self.values, *sizes)
        larger = np.where(expected > 0, self.variances / expected, 1.0)
        inflation = np.fmax(self.alike, larger)
        return newcombe(self.values, *sizes, quantile, inflation)

    def average(
        self, quantile: float | Array, shares: Array, mean: float, variance: float
    ) -> Array:
        """Compute the limits of a weighted mean of the classes, shape (2,).

        The shares (k,) are the weights, 0 where a class has no value.

        Notes
        -----
        The limits of the classes are averaged at a smaller quantile, by which independent errors
        of the classes average out (Yan, Su 2010). The area of one of two classes is that of the
        other one: its guard is the same one.
        """
        taking = shares > 0
        shares, guards = shares[taking], self.guards[taking]
        errors = np.sqrt(np.nan_to_num(self.variances[taking]) + guards)
        apart = float(shares * shares @ guards)
        together = float(shares @ np.sqrt(guards)) ** 2 - apart
        alike = 0.0 if self.key == "average_precision" else 2 / ((len(self.values) - 1) ** 2 + 1)
        error = np.sqrt(variance + apart + alike * together)
        steps = self.limits(quantile * error / float(shares @ errors)) - self.values
        return np.asarray(mean + steps[:, taking] @ shares)


def _averaged(values: Values, entry: Index, ranked: Ranked, quantile: float | Array) -> Array:
    """Limits of an average over the classes: macro, weighted, or of Hand and Till."""
    scores = scores_of(values)
    mean = float(values.overall[values.selection.overall_place[entry.key]])
    influence = influence_of_items(values, entry, values.options.sampling)
    there, support = np.isfinite(ranked.values), scores.support
    if entry.reads != "scores" and values.averaged_classes is not None:
        there, support = there & values.averaged_classes, support * values.averaged_classes
    shares = np.where(there, 1.0, 0.0)
    if entry.reads == "weighted":
        shares = np.where(there, support, 0.0)
        shares /= np.add.reduce(support)
    elif entry.reads == "macro":
        shares /= np.count_nonzero(values.defined[values.selection.averaged(entry)])
    else:
        shares /= np.count_nonzero(there)
    variance = np.nan if influence is None else float(scores.square(influence))
    if np.isnan(mean) or np.isnan(variance):
        return np.full(2, np.nan)
    return ranked.average(quantile, shares, mean, variance)


def least_effects(scores: Scores) -> Array:
    """Return the least design effect of an area of every class, shape (k,).

    It is that of groups whose items never differ (Kish 1965) if fewer than five groups hold an item
    that is ranked wrongly against another one, or rightly: too few to show how groups differ. Else
    it is 1.
    """
    result = np.ones(scores.k)
    if scores.groups is None:
        return result
    for label in np.flatnonzero(np.isfinite(scores.ranking().auc)):
        column, positive = scores.values[:, label], scores.true == label
        inside, outside = column[positive], column[~positive]
        wrong = np.where(positive, column <= outside.max(), column >= inside.min())
        right = np.where(positive, column >= outside.min(), column <= inside.max())
        if min(len(np.unique(scores.groups[items])) for items in (wrong, right)) < FEW_GROUPS:
            sizes = np.bincount(scores.groups).astype(np.float64)
            result[label] = sizes @ sizes / len(scores.true)
    return result
