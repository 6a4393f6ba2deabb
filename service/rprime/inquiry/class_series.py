"""Class series: per-class indices over a history, computed from its tables as stacks."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from rprime.core.cells import Array
from rprime.core.index import Index
from rprime.core.options import Options
from rprime.core.values import compute
from rprime.inquiry.series import lean_selection, parts_of
from rprime.problems import Problem, Violation
from rprime.store import Filters, Stack, Store

MOST_VALUES = 2_000_000
"""Of all classes and evaluations together, for each index."""


class ClassSeries:
    """Per-class indices over the newest evaluations of a project, oldest first. It reads.

    Parameters
    ----------
    store, project, filters, newest
        Which evaluations.
    indices
        What is computed of them.

    Attributes
    ----------
    stacks
        The evaluations, without order.
    labels
        Every class that occurs, those of the newest evaluation first.
    values
        For each index, shape (evaluation, class) by `ids`; NaN where there is nothing.

    Raises
    ------
    Problem
        422 if there are too many values.
    """

    def __init__(
        self,
        store: Store,
        project: str,
        filters: Filters,
        *,
        newest: int,
        indices: Sequence[Index],
    ) -> None:
        self.stacks = list(store.tables(project, filters, newest=newest))
        self.ids = sorted(identifier for stack in self.stacks for identifier in stack.ids)
        self.labels = _labels(self.stacks)
        if len(self.ids) * len(self.labels) > MOST_VALUES:
            detail = "There are too many classes for so many evaluations: give a smaller `limit`."
            raise Problem("invalid_request", errors=[Violation("/query/limit", "too_much", detail)])
        self.values = [self._placed(index) for index in indices]

    def _placed(self, index: Index) -> Array:
        found = np.full((len(self.ids), len(self.labels)), np.nan)
        row = {identifier: i for i, identifier in enumerate(self.ids)}
        column = {label: i for i, label in enumerate(self.labels)}
        for stack in self.stacks:
            rows = np.array([row[identifier] for identifier in stack.ids])
            columns = np.array([column[label] for label in stack.labels])
            found[rows[:, None], columns] = np.concatenate(list(_measured(stack, index)))
        return np.where(np.isfinite(found), found, np.nan)


def _labels(stacks: Iterable[Stack]) -> tuple[str, ...]:
    newest_first = sorted(stacks, key=lambda stack: max(stack.ids), reverse=True)
    return tuple(dict.fromkeys(label for stack in newest_first for label in stack.labels))


def _measured(stack: Stack, index: Index) -> Iterator[Array]:
    """Give the values of an index, shape (n, k), in parts."""
    selection = lean_selection(index.key)
    for table in parts_of(stack.table):
        values = compute(table, Options(indices=(index.key,)), selection)
        yield values.per_class[selection.place[index.key]]
