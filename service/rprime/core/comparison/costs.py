"""The gain of indices if the items of an error cell had been classified correctly."""

from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.intervals.delta import class_gradient, overall_gradient
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import Values, compute

TP, FN, FP, TN = range(4)


@dataclass(frozen=True, eq=False)
class Costs:
    """The cost of one item in a cell, to first order: n items cost n times as much.

    Parameters
    ----------
    overall, per_class
        The n overall and m per-class indices.
    right, wrong
        Shape (n, k): an item of class i that is predicted as j costs right[i] - wrong[j].
    silent
        Shape (n, k): cost of an unclassified item of a class.
    missed, taken
        Shape (m, k): cost of a misclassified item for the index of its true class, and for the
        index of the class that it is predicted as.
    """

    overall: tuple[Index, ...]
    per_class: tuple[Index, ...]
    right: Array
    wrong: Array
    silent: Array
    missed: Array
    taken: Array


def costs(table: ConfusionTable, keys: tuple[str, ...]) -> Costs:
    """Differentiate smooth indices, in both scopes, at a single table with weights applied."""
    options = Options(indices=keys)
    values = compute(table, options, select(options))
    with np.errstate(invalid="ignore"):  # slopes that are infinite in both directions
        return _costs(values)


def _costs(values: Values) -> Costs:
    of_classes = class_gradient(values)
    gradient = overall_gradient(values, of_classes)
    diagonal, row, column = gradient.factors
    right = column + diagonal
    lost = row if gradient.unclassified is None else gradient.unclassified
    kinds = of_classes.kinds[:, : values.selection.reported]
    return Costs(
        overall=values.selection.overall,
        per_class=values.selection.per_class,
        right=right,
        wrong=column,
        silent=row + right - lost,
        missed=np.asarray(kinds[TP] - kinds[FN]),
        taken=np.asarray(kinds[TN] - kinds[FP]),
    )
