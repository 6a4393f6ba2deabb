"""Joint: how often each true class met each pair of old and new predictions."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rprime.core.cells import Array
from rprime.core.counts import Row
from rprime.core.index import Index
from rprime.core.items import Items

MOST_BINS = 1 << 22
"""Up to here all combinations are counted in an array, above it the codes are sorted."""


@dataclass(frozen=True, eq=False)
class Joint:
    """Counts T[r, j1, j2] of the combinations that occur, in the order of their codes.

    Parameters
    ----------
    true, old, new
        Shape (c,): true class, baseline's and candidate's prediction; k is unclassified.
    items
        Shape (c,): how many items, as float64; every item counts once.
    k
        Number of classes.
    """

    true: Array
    old: Array
    new: Array
    items: Array
    k: int

    @classmethod
    def count(cls, baseline: Items, candidate: Items, k: int) -> "Joint":
        """Count two predictions of the same items."""
        codes = joint_codes(baseline, candidate, k)
        if k * (k + 1) ** 2 <= MOST_BINS:
            bins = np.bincount(codes)
            occurring = np.flatnonzero(bins)
            items = bins[occurring]
        else:
            occurring, items = np.unique(codes, return_counts=True)
        pairs, new = np.divmod(occurring.astype(np.int64), k + 1)
        true, old = np.divmod(pairs, k + 1)
        return cls(true, old, new, items.astype(np.float64), k)

    def combination_of(self, baseline: Items, candidate: Items) -> Array:
        """Position among the combinations of every item, shape (n,)."""
        known = (self.true * (self.k + 1) + self.old) * (self.k + 1) + self.new
        return np.searchsorted(known, joint_codes(baseline, candidate, self.k))

    @cached_property
    def total(self) -> float:
        """Number of items."""
        return float(np.add.reduce(self.items))

    @cached_property
    def support(self) -> Array:
        """Items of each class, shape (k,)."""
        return self.by_class(self.true, np.ones(self.true.shape, dtype=bool))

    @cached_property
    def moved(self) -> Array:
        """Whether the two predictions differ, shape (c,)."""
        return np.asarray(self.old != self.new)

    @cached_property
    def everyone_answered(self) -> bool:
        """Whether both sides classified every item."""
        return not ((self.old == self.k) | (self.new == self.k)).any()

    def by_class(self, classes: Array, where: Array) -> Array:
        """Sum the items of some combinations by class, shape (k,)."""
        return np.bincount(classes[where], self.items[where], self.k)

    def flips(self, row: Row, *, per_class: bool) -> tuple[Array, Array]:
        """Items that newly count, and that no longer count, in a one-vs-rest count.

        Parameters
        ----------
        row
            tp, fn, not_wrong or answered; per class tp, fn, fp, tn or predicted.
        per_class
            Of each class, shape (k,), or of all items together, shape ().
        """
        if row in COMPLEMENTS:
            return self.flips(COMPLEMENTS[row], per_class=per_class)[::-1]
        if not per_class:
            before, after = self._counts(row, self.old), self._counts(row, self.new)
            return self.items @ (after & ~before), self.items @ (before & ~after)
        if row == Row.tp:
            right_before, right_after = self.old == self.true, self.new == self.true
            return (
                self.by_class(self.true, right_after & ~right_before),
                self.by_class(self.true, right_before & ~right_after),
            )
        return self._entering(row, self.new), self._entering(row, self.old)

    def _counts(self, row: Row, predicted: Array) -> Array:
        right, answered = predicted == self.true, predicted < self.k
        return {Row.tp: right, Row.not_wrong: right | ~answered, Row.answered: answered}[row]

    def _entering(self, row: Row, predicted: Array) -> Array:
        where = self.moved & (predicted < self.k)
        if row == Row.fp:
            where &= predicted != self.true
        return self.by_class(predicted, where)


COMPLEMENTS = {Row.fn: Row.tp, Row.tn: Row.fp}
"""What counts in one does not count in the other, among the same items."""

CLASS_PROPORTIONS = frozenset(
    {
        (Row.tp, Row.support),
        (Row.fn, Row.support),
        (Row.fp, Row.negatives),
        (Row.tn, Row.negatives),
        (Row.predicted, Row.total),
    }
)
OVERALL_PROPORTIONS = {
    (Row.tp, Row.total): Row.tp,
    (Row.fn, Row.total): Row.fn,
    (Row.not_wrong, Row.total): Row.not_wrong,
    (Row.answered, Row.total): Row.answered,
    (Row.tp, Row.support): Row.tp,
    (Row.fn, Row.support): Row.fn,
}
ANSWERED_PROPORTIONS = {
    (Row.tp, Row.predicted): Row.tp,
    (Row.tp, Row.answered): Row.tp,
    (Row.fp, Row.predicted): Row.fn,
    (Row.twice_tp, Row.support_and_predicted): Row.tp,
    (Row.weighted_tp, Row.weighted_union): Row.tp,
}
"""Pooled ratios that are accuracy or its complement where every item is classified."""
NAMED_PROPORTIONS = {"weighted_recall": Row.tp, "weighted_false_negative_rate": Row.fn}
"""Averages that are accuracy or its complement: sum of m_i (a_i / m_i) over w."""


def joint_codes(baseline: Items, candidate: Items, k: int) -> Array:
    """Give each item one number for its true class and both predictions.

    In the narrowest type that holds them: at a million items memory traffic is the cost.
    """
    kind = np.min_scalar_type(k * (k + 1) ** 2)
    codes = candidate.true.astype(kind)
    for predicted in (baseline.predicted, candidate.predicted):
        codes *= kind.type(k + 1)
        codes += predicted.astype(kind, copy=False)
    return codes


def class_proportion(entry: Index) -> Row | None:
    """Count whose share a per-class index is, among items that the true classes fix."""
    rows = (Row(entry.rows[0]), Row(entry.rows[1]))
    return rows[0] if entry.reads == "ratio" and rows in CLASS_PROPORTIONS else None


def overall_proportion(entry: Index, *, everyone_answered: bool) -> Row | None:
    """Count whose share of all items an overall index is: accuracy, R' and their equals."""
    if entry.key in NAMED_PROPORTIONS:
        return NAMED_PROPORTIONS[entry.key]
    if entry.reads not in ("ratio", "micro"):
        return None
    rows = (Row(entry.rows[0]), Row(entry.rows[1]))
    known = OVERALL_PROPORTIONS.get(rows)
    return ANSWERED_PROPORTIONS.get(rows) if known is None and everyone_answered else known
