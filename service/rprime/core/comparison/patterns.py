"""What a class is to a pair of predictions: 18 patterns, which are all that its indices see."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.joint_counts import JointCounts

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
        np.where(predicted == joint.k, MISSING, np.where(predicted == classes, THIS, OTHER))
        for predicted in (joint.old, joint.new)
    )
    return ((joint.true == classes) * 3 + old) * 3 + new
