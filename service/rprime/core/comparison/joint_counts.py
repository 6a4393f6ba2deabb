"""Joint counts of true class, old prediction and new prediction."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow
from rprime.core.index import Index
from rprime.core.items import Items
from rprime.core.selection import Selection

MOST_BINS = 1 << 22
"""Most combinations that are counted in an array; with more, the codes are sorted."""


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
        """Return the position of every item's combination, shape (n,)."""
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

    def flips(self, row: CountRow, *, per_class: bool) -> tuple[Array, Array]:
        """Return the items that enter and that leave a one-vs-rest count.

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
            entering, leaving = self.changed(row)
            return self.items @ entering, self.items @ leaving
        if row == CountRow.tp:
            right_before, right_after = self.old == self.true, self.new == self.true
            return (
                self.by_class(self.true, right_after & ~right_before),
                self.by_class(self.true, right_before & ~right_after),
            )
        return self._entering(row, self.new), self._entering(row, self.old)

    def changed(self, row: CountRow) -> tuple[Array, Array]:
        """Return which combinations enter, and which leave, tp, not_wrong or answered, (c,)."""
        before, after = self._is_counted(row, self.old), self._is_counted(row, self.new)
        return after & ~before, before & ~after

    def _is_counted(self, row: CountRow, predicted: Array) -> Array:
        right, answered = predicted == self.true, predicted < self.k
        return {
            CountRow.tp: right,
            CountRow.not_wrong: right | ~answered,
            CountRow.answered: answered,
        }[row]

    def _entering(self, row: CountRow, predicted: Array) -> Array:
        where = self.moved & (predicted < self.k)
        if row == CountRow.fp:
            where &= predicted != self.true
        return self.by_class(predicted, where)


COMPLEMENTS = {CountRow.fn: CountRow.tp, CountRow.tn: CountRow.fp}
"""Counts that add up to a fixed number of items."""

OF_CLASS = {
    CountRow.tp: CountRow.support,
    CountRow.fn: CountRow.support,
    CountRow.fp: CountRow.negatives,
    CountRow.tn: CountRow.negatives,
}
"""The denominators of per-class counts; all items for the others."""
CLASS_PROPORTIONS = frozenset(
    {
        (CountRow.tp, CountRow.support),
        (CountRow.fn, CountRow.support),
        (CountRow.fp, CountRow.negatives),
        (CountRow.tn, CountRow.negatives),
        (CountRow.predicted, CountRow.total),
    }
)
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


def class_proportion(entry: Index) -> CountRow | None:
    """Return the count behind a per-class proportion whose denominator the truth fixes."""
    rows = (CountRow(entry.rows[0]), CountRow(entry.rows[1]))
    return rows[0] if entry.reads == "ratio" and rows in CLASS_PROPORTIONS else None


def overall_proportion(entry: Index, *, everyone_answered: bool) -> CountRow | None:
    """Return the count behind an overall proportion of all items: accuracy, R' and their equals."""
    if entry.key in NAMED_PROPORTIONS:
        return NAMED_PROPORTIONS[entry.key]
    if entry.reads not in ("ratio", "micro"):
        return None
    rows = (CountRow(entry.rows[0]), CountRow(entry.rows[1]))
    known = OVERALL_PROPORTIONS.get(rows)
    return ANSWERED_PROPORTIONS.get(rows) if known is None and everyone_answered else known


Rows = dict[CountRow, Array]
"""The counts behind proportions, with the places of their indices in the selection."""


@lru_cache(maxsize=256)
def overall_rows(selection: Selection, *, everyone_answered: bool) -> Rows:
    """Find the overall proportions of all items."""
    return _places(
        overall_proportion(entry, everyone_answered=everyone_answered)
        for entry in selection.overall
    )


@lru_cache(maxsize=256)
def class_rows(selection: Selection) -> Rows:
    """Find the per-class proportions whose denominators the truth fixes."""
    return _places(class_proportion(entry) for entry in selection.per_class)


def _places(rows: Iterable[CountRow | None]) -> Rows:
    found: dict[CountRow, list[int]] = {}
    for place, row in enumerate(rows):
        if row is not None:
            found.setdefault(row, []).append(place)
    return {row: np.array(places, dtype=np.intp) for row, places in found.items()}
