"""Variances of indices of scores, and of their differences, from the influences of the items."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.intervals.groups import GroupSpread
from rprime.core.intervals.proportions import TWO_SIDED, student
from rprime.core.scores.ranking import RANKED, effective_number, item_share
from rprime.core.scores.scores import Scores
from rprime.core.values import Values, taken

Sampling = Literal["random", "fixed_rows"]


def scores_of(values: Values) -> Scores:
    """Return the scores of values that have some."""
    assert values.scores is not None  # noqa: S101 (the callers have checked)
    return values.scores


def ranked_key(entry: Index) -> str | None:
    """Return the index of `RANKED` that an overall index averages; None for means of items."""
    key = entry.of[0] if entry.of else entry.key
    return key if key in RANKED else None


def influence_of_items(values: Values, entry: Index, sampling: Sampling) -> Array | None:
    """Return the influence of every item on an overall index, shape (n,); None if none exists.

    Notes
    -----
    Source: DeLong, DeLong, Clarke-Pearson 1988 for areas under ROC curves; of average precision it
    is the derivative by the weight of an item. Items of a group are summed before they are squared
    (Obuchowski 1997).
    """
    place = values.selection.overall_place[entry.key]
    if entry.interval is None or not np.isfinite(values.overall[place]):
        return None
    scores, key = scores_of(values), ranked_key(entry)
    if key is None:
        of_items = _of_mean if entry.item_influence is None else _of_classes
        return of_items(values, entry, sampling)
    fixed = sampling == "fixed_rows"
    over = None if entry.reads == "scores" else values.options.average_over
    rankings = scores.ranking(influences=True, fixed_rows=fixed, over=over)
    variances = rankings.variances[key]
    if entry.reads == "scores":
        return variances.mean / np.count_nonzero(np.isfinite(rankings.of_classes(key)))
    if entry.reads == "macro":
        return variances.mean / np.count_nonzero(values.defined[values.selection.averaged(entry)])
    if fixed:
        return variances.weighted
    # The classes of the items are random, too, and so are the weights.
    moved = rankings.of_classes(key) - values.overall[place]
    moved, items = moved[scores.true], scores.item_weights
    if values.averaged_classes is not None:
        inside = values.averaged_classes[scores.true]
        moved, items = np.where(inside, moved, 0.0), items * inside
    return np.asarray(variances.weighted + moved * items / np.add.reduce(items))


def influence_on_class(values: Values, entry: Index, label: int, sampling: Sampling) -> Array:
    """Return the influence (n,) of every item on a smooth index of a class that has a value."""
    assert entry.item_influence is not None  # noqa: S101 (the callers have checked)
    scores = scores_of(values)
    influence = entry.item_influence(scores, label)
    return scores.within_classes(influence) if sampling == "fixed_rows" else influence


def _of_classes(values: Values, entry: Index, sampling: Sampling) -> Array:
    """Influence on an average of such an index over the classes."""
    scores, row = scores_of(values), values.selection.averaged(entry)
    averaged = np.ones(scores.k) if values.averaged_classes is None else values.averaged_classes
    shares = scores.support * averaged if entry.reads == "weighted" else values.defined[row]
    shares = shares / np.add.reduce(shares)
    influence = np.zeros(len(scores.true))
    for label in np.flatnonzero(shares).tolist():
        influence += shares[label] * influence_on_class(values, entry, label, sampling)
    if entry.reads == "weighted" and sampling == "random":
        place = values.selection.overall_place[entry.key]
        moved = np.nan_to_num(values.per_class[row] - values.overall[place]) * averaged
        items = scores.item_weights * averaged[scores.true]
        influence += moved[scores.true] * items / np.add.reduce(items)
    return influence


def _of_mean(values: Values, entry: Index, sampling: Sampling) -> Array:
    """Influence on a mean over the items, or on their sum."""
    scores = scores_of(values)
    assert entry.of_items is not None  # noqa: S101 (see influence_of_items)
    items = np.asarray(entry.of_items(scores, *taken(values.options, entry)), dtype=np.float64)
    weights = scores.item_weights
    centre: Array = np.full(1, scores.mean(items))
    if sampling == "fixed_rows":
        sums = np.bincount(scores.true, items * weights, scores.k)
        centre = (sums / np.where(scores.support > 0, scores.support, 1.0))[scores.true]
    share = item_share(weights)
    if not entry.scale_invariant:
        share *= np.add.reduce(weights)
    # A single item does not show how items vary.
    return np.asarray((items - centre) * weights * (share or np.nan))


@dataclass(frozen=True, eq=False)
class ItemMean:
    """A mean over the items, or a sum, with half an error more.

    An error that a sample does not hold may cost more than all that it holds. So half an item more
    has what an error costs at the largest confidence of the items, when the runner-up is right.

    Parameters
    ----------
    mean, variance
        Of the items alone, the variance that of the mean.
    number
        The effective number of items.
    error
        The value of the error.
    scale
        What a mean is multiplied with: the sum of the weights for a sum, else 1.
    spread
        How groups differ, in units of the mean; None without groups.
    influences
        Of the items on the mean, shape (n,).
    """

    mean: float
    variance: float
    number: float
    error: float
    scale: float
    spread: GroupSpread | None
    influences: Array

    @classmethod
    def of(cls, values: Values, entry: Index) -> "ItemMean | None":
        """Measure an index of the values; None without an interval."""
        scores, sampling = scores_of(values), values.options.sampling
        influence = influence_of_items(values, entry, sampling)
        if influence is None:
            return None
        scale = 1.0 if entry.scale_invariant else float(np.add.reduce(scores.item_weights))
        influence = influence / scale
        number = effective_number(scores.item_weights)
        mean = float(values.overall[values.selection.overall_place[entry.key]]) / scale
        variance, spread = scores.square(influence), scores.group_spread(influence)
        if number <= 2 or not np.isfinite(variance):
            return None
        error = error_of(values, entry)
        return cls(mean, variance, number, error, scale, spread, influence)

    @property
    def share(self) -> float:
        """The share of half an item more."""
        return 0.5 / (self.number + 0.5)

    def variance_with(self, value: float, mean: float) -> float:
        """Return the variance of a mean of such items, and of half an item more with a value."""
        number, moved = self.number, self.share * (value - mean)
        squares = self.variance * number * (number - 1) + number * moved**2
        squares += 0.5 * (value - mean - moved) ** 2
        return float(squares / ((number - 0.5) * (number + 0.5)))

    def limits(self, quantile: float | Array) -> Array:
        """Compute the limits, shape (2, ...): the wider ones of those with and without the error.

        Those of groups also have half an effective group more.
        """
        if self.spread is None:
            degrees = np.array([self.number - 1, self.number - 0.5])
        else:
            degrees = np.full(2, self.spread.degrees)
        variances = self.variance, self.variance_with(self.error, self.mean)
        centres = self.mean, self.mean + self.share * (self.error - self.mean)
        halves = [
            student(quantile, np.asarray(number + 1)) * np.sqrt(variance)
            for number, variance in zip(degrees, variances, strict=True)
        ]
        sides = list(zip(centres, halves, strict=True))
        low = np.minimum.reduce([centre - half for centre, half in sides])
        high = np.maximum.reduce([centre + half for centre, half in sides])
        if self.spread is not None:
            low, high = low + self.spread.low, high + self.spread.high
        return np.array([low, high]) * self.scale

    @property
    def contributing(self) -> float:
        """The number of items that the variance rests on, (sum phi^2)^2 / sum phi^4."""
        moved = self.share * (self.error - self.mean)
        shares = self.influences - moved / self.number
        squares = shares * shares
        half = ((self.error - self.mean - moved) / (self.number + 0.5)) ** 2 / 2
        fourth = float(squares @ squares) + 2 * half * half
        return (float(np.add.reduce(squares)) + half) ** 2 / fourth if fourth > 0 else 0.0


def error_of(values: Values, entry: Index) -> float:
    """Return the value of a mean over the items for the runner-up at the largest confidence."""
    scores = scores_of(values)
    assert entry.of_items is not None  # noqa: S101 (see influence_of_items)
    row = scores.values[[int(np.argmax(scores.confidence))]]
    second = row.argsort(axis=-1, kind="stable")[:, -2] if row.shape[-1] > 1 else np.zeros(1)
    item = type(scores)(second.astype(scores.true.dtype), row)
    error = entry.of_items(item, *taken(values.options, entry))
    return float(np.asarray(error, dtype=np.float64)[0])


class PairedEvidence(NamedTuple):
    """What a paired difference of an index of scores rests on, shape (k,) or ().

    Its variance, how much farther its limits lie from it, and the effective number of groups, NaN
    without groups.
    """

    variance: Array
    more_below: Array
    more_above: Array
    effective_groups: Array


def paired_evidence(new: Values, old: Values, entry: Index) -> PairedEvidence:
    """Measure the difference of an index of scores, of the same items.

    Shape (k,) or (); NaN where no variance exists.

    Notes
    -----
    The variance is that of the differences of the items' influences: DeLong's structural
    components for areas under ROC curves (DeLong, DeLong, Clarke-Pearson 1988), with a guard, the
    squared span of the influences of one side, that of one item between the extremes. That of a
    mean over the items has half an item more, in which one side errs as in `ItemMean`.
    """
    ours, theirs = scores_of(new), scores_of(old)
    if entry.interval is None:
        return _paired(np.full(ours.k if entry.scope == "class" else (), np.nan), None)
    if entry.scope == "class":
        fitted = entry.item_influence is not None
        areas = [
            _fitted(new, old, entry, i) if fitted else _area(ours, theirs, entry.key, i)
            for i in range(ours.k)
        ]
        return PairedEvidence(*(np.array(part) for part in zip(*areas, strict=True)))
    if ranked_key(entry) is None and entry.item_influence is None:
        return _paired_mean(new, old, entry)
    sides = [influence_of_items(values, entry, "random") for values in (new, old)]
    if sides[0] is None or sides[1] is None:
        return _paired(np.asarray(np.nan), None)
    variance = np.asarray(_variance(sides[0], sides[1], ours))
    return _paired(variance, ours.group_spread(sides[0] - sides[1]))


def _paired(variance: Array, spread: GroupSpread | None) -> PairedEvidence:
    nothing = np.zeros(variance.shape)
    if spread is None:
        return PairedEvidence(variance, nothing, nothing, nothing + np.nan)
    ratio = student(TWO_SIDED, spread.degrees + 1) / TWO_SIDED
    return PairedEvidence(variance * ratio**2, -spread.low, spread.high, spread.effective)


def _paired_mean(new: Values, old: Values, entry: Index) -> PairedEvidence:
    sides = [ItemMean.of(values, entry) for values in (new, old)]
    if sides[0] is None or sides[1] is None:
        return _paired(np.asarray(np.nan), None)
    ours, other, scores = sides[0], sides[1], scores_of(new)
    moved = ours.influences - other.influences
    error = max(abs(ours.error), abs(other.error))
    difference, spread = ours.mean - other.mean, scores.group_spread(moved)
    variance = _with_kish(moved, scores)
    both = replace(ours, mean=difference, variance=variance, spread=spread, influences=moved)
    evidence = _paired(
        np.maximum.reduce([both.variance_with(sign * error, difference) for sign in (1, -1)]),
        spread,
    )
    below, above = (both.share * (error + sign * difference) for sign in (1, -1))
    scale = ours.scale
    return PairedEvidence(
        np.asarray(evidence.variance * scale**2),
        np.asarray((below + evidence.more_below) * scale),
        np.asarray((above + evidence.more_above) * scale),
        evidence.effective_groups,
    )


def _with_kish(moved: Array, scores: Scores) -> float:
    """Return the variance of differences of influences (n,).

    Of weighted items the larger of the linearised variance and that of Kish's effective number.
    """
    variance, weights = scores.square(moved), scores.weights
    if weights is not None and scores.groups is None:
        there = weights > 0
        squares = moved[there] ** 2 / weights[there]
        variance = max(variance, float(squares.sum() * (weights @ weights) / weights.sum()))
    return variance


def _variance(new: Array, old: Array, scores: Scores) -> float:
    """Return the variance of a difference, and the guard."""
    guard = max(float(np.ptp(side)) for side in (new, old)) ** 2
    return _with_kish(new - old, scores) + guard


def _area(ours: Scores, theirs: Scores, key: str, label: int) -> tuple[Array, ...]:
    ranked = [(side, side.ranking()) for side in (ours, theirs)]
    if any(np.isnan(rankings.of_classes(key)[label]) for _, rankings in ranked):
        return _paired(np.asarray(np.nan), None)
    new, old = (
        side.influence(key, side.class_ranking(label, ordered=True), rankings)
        for side, rankings in ranked
    )
    # The components of a perfect ranking are all equal: there, an item can fall by all of it.
    least = 1 / min(ours.support[label], len(ours.true) - ours.support[label])
    perfect = max(np.ptp(new), np.ptp(old)) == 0
    variance = _variance(new, old, ours) + (least * least if perfect else 0.0)
    return _paired(np.asarray(variance), ours.group_spread(new - old))


def _fitted(new: Values, old: Values, entry: Index, label: int) -> tuple[Array, ...]:
    sides = (new, old)
    values = [v.per_class[v.selection.place[entry.key], label] for v in sides]
    if not np.isfinite(values).all():
        return _paired(np.asarray(np.nan), None)
    ours, theirs = (influence_on_class(side, entry, label, "random") for side in sides)
    scores = scores_of(new)
    variance = np.asarray(_variance(ours, theirs, scores))
    return _paired(variance, scores.group_spread(ours - theirs))
