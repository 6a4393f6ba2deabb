"""Correlations of differences, from the influences of the items or of the cells."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.guard import TN, SideGradients
from rprime.core.comparison.paired_variance import PairedItems, parts_of
from rprime.core.intervals.delta import classified_entries
from rprime.core.table import coordinates

Target = tuple[int, int | None]
"""Position of an index among the overall or the reported per-class ones, and of the class."""


def correlation(
    pairs: PairedItems | None, sides: tuple[SideGradients, SideGradients], targets: Sequence[Target]
) -> Array:
    """Correlate differences.

    Those of two independent single tables where there are no pairs; the sides are baseline and
    candidate. Shape (m, m): rows and columns of NaN where an index has no influences, because it
    has no derivative or reads scores. A difference without variance correlates with no other.

    Notes
    -----
    With the influence phi of each paired item on the differences the covariance is
    sum T phi phi' - (sum T phi)(sum T phi)' / w; influences are summed within groups first. For
    two independent tables the covariances of the sides add up.
    """
    with np.errstate(all="ignore"):
        if pairs is not None:
            covariance = _paired(pairs, *sides, targets)
        else:
            covariance = np.add(*(_of_table(side, targets) for side in sides))
        deviation = np.sqrt(np.diag(covariance))
        result = covariance / np.outer(deviation, deviation)
    for places, value in ((deviation == 0, 0.0), (np.isnan(deviation), np.nan)):
        result[places] = result[:, places] = value
    np.fill_diagonal(result, np.where(np.isnan(deviation), np.nan, 1.0))
    return np.clip(result, -1.0, 1.0)


def _paired(
    pairs: PairedItems, old: SideGradients, new: SideGradients, targets: Sequence[Target]
) -> Array:
    joint = pairs.joint

    def influences(part: slice) -> Array:
        true = joint.true[part]
        after = _influences(new, true, joint.new[part], targets)
        return after - _influences(old, true, joint.old[part], targets)

    if pairs.groups is None:
        return _covariance(influences, joint.items, len(targets))
    groups, combination = pairs.grouping
    phi = influences(slice(None))
    centred = phi - (joint.items @ phi) / joint.total
    sums = np.array([np.bincount(groups, column[combination]) for column in centred.T])
    return np.asarray(sums @ sums.T)


def _of_table(side: SideGradients, targets: Sequence[Target]) -> Array:
    # A spurious prediction has no true class, so it is no item.
    codes, items = coordinates(replace(side.values.table, spurious=None))
    true, predicted = np.divmod(codes, side.values.table.k + 1)
    return _covariance(
        lambda part: _influences(side, true[part], predicted[part], targets), items, len(targets)
    )


def _covariance(influences: Callable[[slice], Array], items: Array, count: int) -> Array:
    sums, products = np.zeros(count), np.zeros((count, count))
    for part in parts_of(len(items), count):
        phi = influences(part)
        weighted = phi * items[part, None]
        sums += np.add.reduce(weighted, axis=0)
        products += phi.T @ weighted
    return np.asarray(products - np.outer(sums, sums) / np.add.reduce(items))


def _influences(
    side: SideGradients, true: Array, predicted: Array, targets: Sequence[Target]
) -> Array:
    """Return the influence of an item of each given cell on each target, shape (cells, m)."""
    influences = np.empty((true.size, len(targets)))
    of_class = np.array([label is not None for _, label in targets])
    for i in np.flatnonzero(~of_class).tolist():
        influences[:, i] = side.overall.only(targets[i][0]).at(true, predicted)[0]
    if of_class.any():
        place, label = np.array([target for target in targets if target[1] is not None]).T
        influences[:, of_class] = _of_classes(side, true[:, None], predicted[:, None], place, label)
    return influences


def _of_classes(
    side: SideGradients, true: Array, predicted: Array, place: Array, label: Array
) -> Array:
    """Return the influence of items of each cell (c, 1) on per-class indices (m), as (c, m)."""
    kinds = TN - 2 * (true == label) - (predicted == label)  # TP, FN, FP or TN of the class
    table = side.of_classes.kinds[:, place, label]
    influences = table.ravel().take(kinds * len(label) + np.arange(len(label)))
    unclassified = predicted == side.values.table.k
    if unclassified.any():
        silent = unclassified & classified_entries(side.values.selection)[place]
        influences = np.where(silent, 0.0 * influences, influences)
    return np.asarray(influences)
