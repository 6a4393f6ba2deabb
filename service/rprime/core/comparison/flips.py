"""Changes of single items between the predictions of two classifiers."""

from dataclasses import dataclass, replace

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.joint_counts import JointCounts
from rprime.core.comparison.paired_proportions import mcnemar_mid_p, probability_worse
from rprime.core.comparison.shift import ShiftTest, bowker, stuart_maxwell
from rprime.core.counts import CountRow

MOST_MOVING_CLASSES = 1_000
"""Most classes for the tests of shift, whose cost is cubic in the classes with moves."""


@dataclass(frozen=True, slots=True)
class Move:
    """Items of one true class whose prediction changed in the same way.

    Parameters
    ----------
    true
        True class of the items.
    before, after
        What the baseline and the candidate predict; None for unclassified.
    items
        Number of items.
    """

    true: str
    before: str | None
    after: str | None
    items: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Flips:
    """Items that only one side predicts correctly; each item counts once.

    Parameters
    ----------
    labels
        Names of the classes, candidate's first.
    right_to_wrong, wrong_to_right
        Shape (k + 1,): items of each true class, then of all classes.
    mid_p
        Shape (k + 1,): one-sided mid-p of McNemar's test, small if the candidate is worse; 1/2
        if nothing flipped, NaN for weighted and for grouped items.
    p_worse
        Shape (k + 1,): posterior probability that the candidate is worse; NaN as above.
    moves
        The most frequent changes of a prediction, most frequent first.
    moved
        Items whose prediction changed, right or wrong.
    reason
        Why there are no tests: the items are `weighted`, or `grouped`, not independent.
    """

    labels: tuple[str, ...]
    right_to_wrong: Array
    wrong_to_right: Array
    mid_p: Array
    p_worse: Array
    moves: tuple[Move, ...]
    moved: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Shift:
    """Tests of a shift of the predictions, correct or not: information, never a verdict.

    Parameters
    ----------
    bowker
        Symmetry of the moves between each two classes.
    stuart_maxwell
        Equality of the numbers of predictions of each class.
    reason
        Why there are no p-values: `grouped` items are not independent.
    """

    bowker: ShiftTest
    stuart_maxwell: ShiftTest
    reason: str | None = None


def flips(
    joint: JointCounts, labels: tuple[str, ...], limit: int, reason: str | None = None
) -> Flips:
    """Count the flips.

    Parameters
    ----------
    joint
        Old and new predictions.
    labels
        Names of its classes.
    limit
        Most moves to return.
    reason
        Why the tests, which count independent items, do not apply, if so.
    """
    changed = joint.flips(CountRow.tp, per_class=True)
    gains, losses = (np.append(part, np.add.reduce(part)) for part in changed)
    tests = [mcnemar_mid_p(gains, losses), probability_worse(gains, losses)]
    if reason is not None:
        tests = [np.full_like(test, np.nan) for test in tests]
    return Flips(
        labels=labels,
        right_to_wrong=losses,
        wrong_to_right=gains,
        mid_p=tests[0],
        p_worse=tests[1],
        moves=moves(joint, labels, limit),
        moved=int(np.add.reduce(joint.items[joint.moved])),
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
    tests = bowker(table), stuart_maxwell(table)
    if not grouped:
        return Shift(*tests)
    symmetry, margins = (replace(test, p_value=test.p_value * np.nan) for test in tests)
    return Shift(symmetry, margins, "grouped")
