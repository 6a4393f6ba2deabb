"""Changes of single items between two classifiers, and tests whether predictions shifted."""

from dataclasses import dataclass
from math import prod
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rprime.core import special
from rprime.core.arrays import Array, FloatArray
from rprime.core.comparison.difference_intervals import mcnemar_mid_p, probability_worse
from rprime.core.comparison.joint_counts import JointCounts
from rprime.core.counts import CountRow
from rprime.core.items import Items
from rprime.core.published import PUBLISHED, defined

MOST_MOVING_CLASSES = 1_000
"""Most classes for the tests of shift, whose cost is cubic in the classes with moves."""


ItemChange = Literal["right_to_wrong", "wrong_to_right", "wrong_to_wrong"]
ITEM_CHANGES: tuple[ItemChange, ...] = get_args(ItemChange)


@dataclass(frozen=True, slots=True)
class Move:
    """Items of one class whose prediction changed in the same way; null is unclassified."""

    __pydantic_config__: ClassVar = PUBLISHED

    true: str
    """The true class."""
    from_: str | None
    """What the baseline predicted."""
    to: str | None
    """What the candidate predicted."""
    items: int
    """How many items."""


@dataclass(frozen=True, kw_only=True)
class ClassFlips:
    """Items that one side got right and the other wrong."""

    __pydantic_config__: ClassVar = PUBLISHED

    right_to_wrong: float
    """Items that only the baseline got right."""
    wrong_to_right: float
    """Items that only the candidate got right."""
    mid_p: float | None
    """McNemar's mid-p, one-sided: small if the candidate is worse; null without a test."""
    p_worse: float | None
    """Probability of being worse; for information."""


@dataclass(frozen=True, kw_only=True)
class Flips(ClassFlips):
    """The flips of all items, and of the classes that have any."""

    moved: int
    """Items whose prediction changed, right or wrong."""
    per_class: dict[str, ClassFlips]
    """By true class, where there are any."""
    reason: str | None
    """Why there are no tests: the items are `weighted`, or `grouped`, so that they are not
    independent."""


@dataclass(frozen=True, eq=False)
class ItemChanges:
    """Items whose prediction changed: those that got worse first, then the better, then the others.

    Parameters
    ----------
    ids
        Shape (n,): numbers of 64 bits that identify the items.
    true, old, new
        Shape (n,): true class, baseline's and candidate's prediction; k is unclassified.
    counts
        How many got worse, got better, and stayed wrong.
    """

    ids: Array
    true: Array
    old: Array
    new: Array
    counts: tuple[int, int, int]

    @classmethod
    def of(cls, baseline: Items, candidate: Items, ids: Array) -> "ItemChanges":
        """Find the changes of the same items in the same order, each kind in this order."""
        true, old, new = candidate.true, baseline.predicted, candidate.predicted
        kinds = (old == true, new == true, (old != true) & (new != true) & (old != new))
        worse, better, others = (np.flatnonzero(kind & (old != new)) for kind in kinds)
        places = np.concatenate([worse, better, others])
        counts = worse.size, better.size, others.size
        return cls(ids[places], true[places], old[places], new[places], counts)

    @property
    def kinds(self) -> Array:
        """The positions in `ITEM_CHANGES`, shape (n,)."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


@dataclass(frozen=True, slots=True)
class ShiftTest:
    """A chi-square test on tables of old (rows) versus new (columns) predictions.

    Parameters
    ----------
    statistic, df, p_value
        Shape (...), as the stack of tables; df are degrees of freedom, 0 where the test does not
        exist, and p, of a larger statistic, is NaN there.
    """

    statistic: FloatArray
    df: NDArray[np.int64]
    p_value: FloatArray


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A chi-square test."""

    __pydantic_config__: ClassVar = PUBLISHED

    statistic: float | None
    """Chi-square, 0 or more; null if undefined."""
    df: int
    """Degrees of freedom."""
    p_value: float | None
    """0 to 1; null where the test does not hold."""


@dataclass(frozen=True, slots=True)
class Shift:
    """Whether the predictions shifted, right or wrong: information, never a verdict."""

    __pydantic_config__: ClassVar = PUBLISHED

    bowker: ChiSquare
    """Bowker's test of symmetry."""
    stuart_maxwell: ChiSquare
    """Stuart and Maxwell: equal shares of classes."""
    reason: str | None
    """Why there are no p-values: `grouped` items are not independent."""


def flips(joint: JointCounts, labels: tuple[str, ...], reason: str | None) -> Flips:
    """Count the items that one side got right and the other wrong; each item counts once.

    Parameters
    ----------
    reason
        Why the tests, which count independent items, do not apply, if so.
    """
    changed = joint.flips(CountRow.tp, per_class=True)
    gains, losses = (np.append(counts, np.add.reduce(counts)) for counts in changed)
    tests = [mcnemar_mid_p(gains, losses), probability_worse(gains, losses)]
    if reason is not None:
        tests = [np.full(test.shape, None) for test in tests]
    names = ("wrong_to_right", "right_to_wrong", "mid_p", "p_worse")
    rows = zip(*(column.tolist() for column in (gains, losses, *tests)), strict=True)
    *classes, total = (dict(zip(names, row, strict=True)) for row in rows)
    return Flips(
        **total,
        moved=int(np.add.reduce(joint.items[joint.moved])),
        per_class={
            label: ClassFlips(**counts)
            for label, counts in zip(labels, classes, strict=True)
            if counts["right_to_wrong"] or counts["wrong_to_right"]
        },
        reason=reason,
    )


def moves(joint: JointCounts, labels: tuple[str, ...], limit: int) -> tuple[Move, ...]:
    """Return the most frequent changes of a prediction, ties in the order of the classes."""
    candidates = np.flatnonzero(joint.moved)
    order = candidates[np.argsort(-joint.items[candidates], kind="stable")][:limit]
    names = (*labels, None)
    columns = (joint.true, joint.old, joint.new, joint.items)
    rows = zip(*(column[order].tolist() for column in columns), strict=True)
    return tuple(Move(labels[true], names[old], names[new], int(n)) for true, old, new, n in rows)


def shift(joint: JointCounts, *, grouped: bool) -> Shift | None:
    """Test old versus new predictions; return None if too many classes exchanged items.

    Grouped items are not independent, so they have no p-values.
    Unclassified is a prediction like any other. Classes that no item left or entered do not
    affect the tests and are removed.
    """
    old, new = joint.old[joint.moved], joint.new[joint.moved]
    both = np.bincount(np.concatenate([old, new])) > 0
    size = max(int(np.count_nonzero(both)), 1)
    if size > MOST_MOVING_CLASSES:
        return None
    places = np.cumsum(both) - 1
    codes = places[old] * size + places[new]
    table = np.bincount(codes, joint.items[joint.moved], size * size).reshape(size, size)
    symmetry, margins = (
        ChiSquare(
            defined(test.statistic.item()),
            int(test.df),
            None if grouped else defined(test.p_value.item()),
        )
        for test in (bowker(table), stuart_maxwell(table))
    )
    return Shift(symmetry, margins, "grouped" if grouped else None)


def bowker(table: ArrayLike) -> ShiftTest:
    """Test of symmetry: each move between two classes is as frequent as the move back.

    The table (..., k, k) has the items by old (row) and new (column) prediction. There is one
    degree of freedom for every pair of classes between which an item moved; statistic 0, df 0 and
    p NaN if none did.

    Notes
    -----
    Source: Bowker 1948: sum of (n_ij - n_ji)^2 / (n_ij + n_ji) over i < j.
    """
    counts = np.asarray(table, dtype=np.float64)
    moved, surplus = _moves(counts), counts - counts.mT
    terms = surplus * surplus / np.where(moved > 0, moved, 1.0)
    return _chi_square(terms.sum((-2, -1)) / 2, np.count_nonzero(moved, axis=(-2, -1)) // 2)


def stuart_maxwell(table: ArrayLike) -> ShiftTest:
    """Test of marginal homogeneity: each class is predicted equally often by both classifiers.

    The table is that of `bowker`. Costs k^3; the caller may remove classes that no item left or
    entered. There are as many degrees of freedom as classes with moves, minus one for each
    connected part of these classes; statistic NaN, df 0 and p NaN if nothing moved.

    Notes
    -----
    Source: Stuart 1955; Maxwell 1970: d' V^-1 d with d the differences of the margins and V
    their covariance. V is the Laplacian of the graph of moves: singular, with one null vector,
    constant, for each connected part. d is orthogonal to those, so adding their projectors
    makes V invertible without changing the statistic.
    """
    counts = np.asarray(table, dtype=np.float64)
    moves = _moves(counts)
    degree = moves.sum(-1)
    difference = counts.sum(-1) - counts.sum(-2)
    together = connected(moves > 0)
    size = together.sum(-1, keepdims=True)
    unit = np.maximum(degree.max(-1, initial=0.0), 1.0)[..., None, None]
    covariance = degree[..., None] * np.eye(counts.shape[-1]) - moves + unit * together / size
    solved = np.linalg.solve(covariance, difference[..., None])[..., 0]
    df = np.rint(counts.shape[-1] - (1 / size).sum((-2, -1))).astype(np.int64)
    statistic = np.where(df > 0, (difference * solved).sum(-1), np.nan)
    return _chi_square(statistic, df)


def _moves(counts: FloatArray) -> FloatArray:
    """Return the items that moved between two classes, in either direction, shape (..., k, k)."""
    return (counts + counts.mT) * (1 - np.eye(counts.shape[-1]))


def connected(neighbours: NDArray[np.bool_]) -> FloatArray:
    """Return 1 where two classes are in the same connected part, shape (..., k, k)."""
    k = neighbours.shape[-1]
    graphs = neighbours.reshape(prod(neighbours.shape[:-2]), k, k)
    first = np.array(list(map(_first_of_parts, graphs))).reshape(neighbours.shape[:-1])
    return (first[..., :, None] == first[..., None, :]).astype(np.float64)


def _first_of_parts(neighbours: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the first class of the connected part of each class, of a symmetric graph (k, k)."""
    rows, columns = np.nonzero(neighbours)
    first = np.arange(len(neighbours))
    while True:
        nearer = first.copy()
        np.minimum.at(nearer, rows, first[columns])
        nearer = nearer[nearer]
        if np.array_equal(nearer, first):
            return first
        first = nearer


def _chi_square(statistic: FloatArray, df: NDArray[np.int64] | int) -> ShiftTest:
    degrees = np.asarray(df, dtype=np.int64)
    p_value = np.where(degrees > 0, special.chdtrc(degrees.astype(np.float64), statistic), np.nan)
    return ShiftTest(np.asarray(statistic), degrees, p_value)
