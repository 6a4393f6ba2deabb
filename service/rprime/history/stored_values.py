"""Compute overall and per-class indices over the stored tables of a project."""

from collections.abc import Iterable, Sequence

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.options import Options
from rprime.core.selection import Selection, select
from rprime.history.series import estimates_of
from rprime.history.stored_populations import extras_of, kinds_of
from rprime.problems.problem import refuse
from rprime.report.measures import finite
from rprime.store import Filters, Stack, Store

MOST_VALUES = 2_000_000
"""Most values over all classes and evaluations, for each index."""


class StoredValues:
    """Indices over stored evaluations, oldest first.

    Parameters
    ----------
    stacks
        The evaluations, in any order.
    uniform
        Whether at equal shares of the classes; else each at the population that it was stored with.

    Attributes
    ----------
    labels
        All classes, those of the newest evaluation first.
    overall
        Shape (overall, evaluation) by `ids`; NaN for undefined values.
    per_class
        Shape (reported, evaluation, class); NaN for undefined values.
    """

    def __init__(
        self, stacks: Sequence[Stack], selection: Selection, *, uniform: bool = False
    ) -> None:
        self.stacks = stacks
        self.selection = selection
        self.ids = sorted(identifier for stack in stacks for identifier in stack.ids)
        self.labels = _labels(stacks)
        count = len(self.ids)
        self.overall = np.full((len(selection.overall), count), np.nan)
        self.per_class = np.full((selection.reported, count, len(self.labels)), np.nan)
        row = {identifier: i for i, identifier in enumerate(self.ids)}
        column = {label: i for i, label in enumerate(self.labels)}
        for stack in stacks:
            rows = np.array([row[identifier] for identifier in stack.ids])
            columns = np.array([column[label] for label in stack.labels])
            self._place(stack, rows, columns, uniform=uniform)

    def of_classes(self, index: Index) -> Array:
        """Return one index of the classes, shape (evaluation, class)."""
        found: Array = self.per_class[self.selection.place[index.key]]
        return found

    def _place(self, stack: Stack, rows: Array, columns: Array, *, uniform: bool) -> None:
        for kind in kinds_of(stack, extras_of(stack), uniform=uniform):
            for places, found in estimates_of(stack.table, kind, Options(), self.selection):
                part, values = rows[places], found.values
                self.overall[:, part] = finite(values.overall)
                per_class = values.per_class[: self.selection.reported]
                self.per_class[:, part[:, None], columns] = finite(per_class)


def values_of_classes(
    store: Store,
    project: str,
    filters: Filters,
    *,
    newest: int,
    indices: Sequence[Index],
    uniform: bool = False,
) -> StoredValues:
    """Compute per-class indices over the newest evaluations of a project. Reads the store."""
    stacks = list(store.tables(project, filters, newest=newest))
    if sum(len(stack.ids) for stack in stacks) * len(_labels(stacks)) > MOST_VALUES:
        detail = "Too many classes for so many evaluations: lower `limit`."
        raise refuse("/query/limit", "too_much", detail)
    selection = select(Options(indices=tuple(index.key for index in indices)))
    return StoredValues(stacks, selection, uniform=uniform)


def _labels(stacks: Iterable[Stack]) -> tuple[str, ...]:
    newest_first = sorted(stacks, key=lambda stack: max(stack.ids), reverse=True)
    return tuple(dict.fromkeys(label for stack in newest_first for label in stack.labels))
