"""Joint counts of true class, old prediction and new prediction, and what each class sees of them.

A pair of predictions is one of 18 patterns to a class, which are all that its indices see.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow
from rprime.core.items import Items
from rprime.core.selection import Selection

MOST_BINS = 1 << 22
"""Most combinations that are counted in an array; with more, the codes are sorted."""


def distinct(codes: Array, size: int) -> tuple[Array, Array]:
    """Return the distinct codes below a size, ascending, and how often each occurs."""
    if size > MOST_BINS:
        return np.unique(codes, return_counts=True)
    counts = np.bincount(codes, minlength=1)
    occurring = np.flatnonzero(counts)
    return occurring, counts[occurring]


@dataclass(frozen=True, eq=False)
class JointCounts:
    """Counts T[r, j1, j2] of the observed combinations, in the order of their codes.

    Parameters
    ----------
    true, old, new
        Shape (c,): true class, baseline's and candidate's prediction; k is unclassified.
    items
        Shape (c,): number of items, as float64; every item counts once.
    k
        Number of classes.
    """

    true: Array
    old: Array
    new: Array
    items: Array
    k: int

    @classmethod
    def count(cls, baseline: Items, candidate: Items, k: int) -> "JointCounts":
        """Count two predictions of the same items."""
        occurring, items = distinct(joint_codes(baseline, candidate, k), k * (k + 1) ** 2)
        pairs, new = np.divmod(occurring.astype(np.int64), k + 1)
        true, old = np.divmod(pairs, k + 1)
        return cls(true, old, new, items.astype(np.float64), k)

    def combination_of(self, baseline: Items, candidate: Items) -> Array:
        """Return the position of every item's combination, shape (n,)."""
        codes = (self.true * (self.k + 1) + self.old) * (self.k + 1) + self.new
        return np.searchsorted(codes, joint_codes(baseline, candidate, self.k))

    @cached_property
    def total(self) -> float:
        """Number of items."""
        return float(np.add.reduce(self.items))

    @cached_property
    def support(self) -> Array:
        """Items of each class, shape (k,)."""
        return np.bincount(self.true, self.items, self.k)

    @cached_property
    def moved(self) -> Array:
        """Whether the two predictions differ, shape (c,)."""
        return np.asarray(self.old != self.new)

    def flips(self, row: CountRow, *, per_class: bool) -> tuple[Array, Array]:
        """Return the items that enter and that leave a count, (k,) of each class, else ().

        The row is tp, fn, not_wrong or answered; per class tp, fn, fp, tn or predicted.
        """
        flips = _flipping(row) @ self.by_pattern
        entering, leaving = flips if per_class else np.add.reduce(flips, axis=-1)
        return entering, leaving

    @cached_property
    def by_pattern(self) -> Array:
        """Items of each pattern, shape (PATTERNS, k)."""
        return pattern_counts(self)

    def changed(self, row: CountRow) -> tuple[Array, Array]:
        """Return which combinations enter, and which leave, tp, not_wrong or answered, (c,)."""

        def counted(predicted: Array) -> Array:
            right, answered = predicted == self.true, predicted < self.k
            kinds = {CountRow.tp: right, CountRow.not_wrong: right | ~answered}
            return kinds.get(row, answered)

        before, after = counted(self.old), counted(self.new)
        return after & ~before, before & ~after


OF_CLASS = {
    CountRow.tp: CountRow.support,
    CountRow.fn: CountRow.support,
    CountRow.fp: CountRow.negatives,
    CountRow.tn: CountRow.negatives,
    CountRow.predicted: CountRow.total,
}
"""The denominators that make a per-class count a proportion; the truth fixes them."""
OVERALL_PROPORTIONS = {
    (CountRow.tp, CountRow.total): CountRow.tp,
    (CountRow.fn, CountRow.total): CountRow.fn,
    (CountRow.not_wrong, CountRow.total): CountRow.not_wrong,
    (CountRow.answered, CountRow.total): CountRow.answered,
    (CountRow.tp, CountRow.support): CountRow.tp,
    (CountRow.fn, CountRow.support): CountRow.fn,
}
ANSWERED_PROPORTIONS = {
    (CountRow.tp, CountRow.predicted): CountRow.tp,
    (CountRow.tp, CountRow.answered): CountRow.tp,
    (CountRow.fp, CountRow.predicted): CountRow.fn,
    (CountRow.twice_tp, CountRow.support_and_predicted): CountRow.tp,
    (CountRow.weighted_tp, CountRow.weighted_union): CountRow.tp,
}
"""Pooled ratios that equal accuracy or its complement if every item is classified."""
NAMED_PROPORTIONS = {"weighted_recall": CountRow.tp, "weighted_false_negative_rate": CountRow.fn}
"""Averages that equal accuracy or its complement: sum of m_i (a_i / m_i) over w."""


def joint_codes(baseline: Items, candidate: Items, k: int) -> Array:
    """Return one number for the true class and both predictions of each item.

    They have the narrowest type possible: for a million items, memory traffic dominates.
    """
    kind = np.min_scalar_type(k * (k + 1) ** 2)
    codes = candidate.true.astype(kind)
    for predicted in (baseline.predicted, candidate.predicted):
        codes *= kind.type(k + 1)
        codes += predicted.astype(kind, copy=False)
    return codes


Rows = dict[CountRow, Array]
"""The counts behind proportions, with the places of their indices in the selection."""


@lru_cache(maxsize=256)
def class_rows(selection: Selection) -> Rows:
    """Find the per-class proportions whose denominators the truth fixes."""
    rows = [(CountRow(entry.rows[0]), entry.rows[1]) for entry in selection.per_class]
    ratios = (entry.reads == "ratio" for entry in selection.per_class)
    return _places(
        above if ratio and OF_CLASS.get(above) == below else None
        for ratio, (above, below) in zip(ratios, rows, strict=True)
    )


@lru_cache(maxsize=256)
def overall_rows(selection: Selection, *, everyone_answered: bool, averages_all: bool) -> Rows:
    """Find the overall proportions of all items: accuracy, R' and their equals.

    Averages are among these where they are over all classes.
    """
    proportions = OVERALL_PROPORTIONS | (ANSWERED_PROPORTIONS if everyone_answered else {})
    ratios = {"ratio", "micro"} if averages_all else {"ratio"}
    return _places(
        proportions.get((CountRow(entry.rows[0]), CountRow(entry.rows[1])))
        if entry.reads in ratios
        else NAMED_PROPORTIONS.get(entry.key if averages_all else "")
        for entry in selection.overall
    )


def _places(rows: Iterable[CountRow | None]) -> Rows:
    by_row: dict[CountRow, list[int]] = {}
    for place, row in enumerate(rows):
        if row is not None:
            by_row.setdefault(row, []).append(place)
    return {row: np.array(places, dtype=np.intp) for row, places in by_row.items()}


PATTERNS = 18
# Fewer items than this share of all are rounding, where weights are summed in another order.
ROUNDED = 1e-12
OTHER, THIS, MISSING = range(3)
TP, FN, FP, TN = range(4)
TRUE_IS, OLD_IS, NEW_IS = (np.array(part) for part in np.unravel_index(range(PATTERNS), (2, 3, 3)))
"""True class (this one or not), old and new prediction of each pattern."""
UNINVOLVED = np.flatnonzero((TRUE_IS == 0) & (OLD_IS != THIS) & (NEW_IS != THIS))
"""The patterns in which the class does not occur."""
WITHOUT = np.ravel_multi_index(
    (0 * TRUE_IS, np.where(OLD_IS == THIS, OTHER, OLD_IS), np.where(NEW_IS == THIS, OTHER, NEW_IS)),
    (2, 3, 3),
)
"""For each pattern, the pattern of the same item if the class did not occur."""


@lru_cache(maxsize=16)
def _flipping(row: CountRow) -> Array:
    """Whether an item of each pattern enters, and leaves, the count of a class, (2, PATTERNS)."""

    def counted(seen: Array) -> Array:
        positive, hit, missed = TRUE_IS == 1, seen == THIS, seen == MISSING
        kinds = {CountRow.tp: positive & hit, CountRow.fn: positive & ~hit, CountRow.predicted: hit}
        kinds |= {CountRow.fp: ~positive & hit, CountRow.tn: ~positive & ~hit}
        kinds |= {
            CountRow.not_wrong: positive & (hit | missed),
            CountRow.answered: positive & ~missed,
        }
        return np.asarray(kinds[row])

    before, after = counted(OLD_IS), counted(NEW_IS)
    return np.stack((after & ~before, before & ~after)).astype(np.float64)


def at_patterns(patterns: Array, kinds: Array, classified: Array, predicted: Array) -> Array:
    """G of per-class indices at each pattern, shape (index, p, ..., k)."""
    true, hit = TRUE_IS[patterns] == 1, predicted[patterns] == THIS
    kind = np.where(true, np.where(hit, TP, FN), np.where(hit, FP, TN))
    g = kinds[kind].swapaxes(0, 1)
    g[np.ix_(classified, predicted[patterns] == MISSING)] = 0.0
    return g


def pattern_counts(joint: JointCounts) -> Array:
    """Items of each pattern, shape (PATTERNS, k)."""
    counts = np.zeros((joint.k, PATTERNS))
    for classes, where, patterns in involvements(joint):
        codes = classes[where] * PATTERNS + patterns[where]
        counts += np.bincount(codes, joint.items[where], counts.size).reshape(counts.shape)
    missing = patterns_seen_by(joint, np.full(joint.true.shape, -1))
    for pattern in UNINVOLVED:
        where = missing == pattern
        if not where.any():
            continue
        every = joint.items @ where
        others = every - counts[:, pattern == WITHOUT].sum(-1)
        counts[:, pattern] = np.where(others > ROUNDED * every, others, 0.0)
    return np.ascontiguousarray(counts.T)


def involvements(joint: JointCounts) -> list[tuple[Array, Array, Array]]:
    """Each class that occurs in a combination, once: classes, where they count, patterns."""
    true, old, new, k = joint.true, joint.old, joint.new, joint.k
    masks = [
        (true, np.ones(true.shape, dtype=bool)),
        (old, (old != true) & (old < k)),
        (new, (new != true) & (new != old) & (new < k)),
    ]
    return [(classes, where, patterns_seen_by(joint, classes)) for classes, where in masks]


def patterns_seen_by(joint: JointCounts, classes: Array) -> Array:
    """Pattern of each combination as seen from one class each."""
    old, new = (
        THIS * (predicted == classes) + MISSING * (predicted == joint.k)
        for predicted in (joint.old, joint.new)
    )
    return ((joint.true == classes) * 3 + old) * 3 + new
