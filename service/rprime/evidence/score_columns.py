"""Collect columns of scores, one for each class, in one array."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import numpy as np

from rprime.core.arrays import Array
from rprime.evidence import names
from rprime.evidence.label_columns import Piece
from rprime.evidence.numbers import MOST, raise_places
from rprime.evidence.scores import SCORE, TWO
from rprime.evidence.vocabulary import Growing
from rprime.problems.problem import refuse

PREFIX = "score:"
"""Prefix of a column of scores, before the name of the class."""


def is_score(name: str) -> bool:
    """Whether a column name is that of scores."""
    return name.startswith(PREFIX)


class ScoreColumns(Growing):
    """The scores of the items in one array, filled column by column without another copy.

    Parameters
    ----------
    places
        Column of the array for each column of the body.
    numbers
        Number of each column in the body, from 1, for messages.
    """

    def __init__(self, places: Mapping[str, int], numbers: Mapping[str, int]) -> None:
        super().__init__(np.float64)
        self._places = places
        self._numbers = numbers

    @classmethod
    def of(cls, found: Sequence[str], declared: tuple[str, ...] | None) -> Self | None:
        """Select the columns of scores of a body; None if there are none.

        Parameters
        ----------
        found
            The names of all columns.
        declared
            The classes in their order; None: those of the columns, in the order of the body.

        Raises
        ------
        Problem
            If a class has no column, or a column has no class.
        """
        numbers = {name: number for number, name in enumerate(found, 1) if is_score(name)}
        if not numbers:
            return None
        labels = names.distinct(_labels_of(numbers), lambda i: f"/labels/{i}")
        if declared is None:
            if len(labels) == 1:
                raise refuse("/labels", "required", _ONE_COLUMN)
            return cls({name: place for place, name in enumerate(numbers)}, numbers)
        wanted = declared[1:] if len(declared) == TWO and len(labels) == 1 else declared
        _check_classes(labels, wanted, list(numbers.values()))
        places = {label: place for place, label in enumerate(wanted)}
        return cls(
            {name: places[label] for name, label in zip(numbers, labels, strict=True)}, numbers
        )

    @property
    def labels(self) -> list[str]:
        """The classes named by the columns."""
        return _labels_of(self._places)

    def add(self, batch: Mapping[str, Piece], row: int) -> None:
        """Append items, the first of them in this row."""
        size = batch["y_true"].values.size
        room = self.room(size * len(self._places)).reshape(size, -1)
        for name, place in self._places.items():
            room[:, place] = self._numbers_of(batch[name], name, row)

    def _numbers_of(self, piece: Piece, name: str, row: int) -> Array:
        values = piece.values
        if values.dtype == np.float16:  # float16 cannot hold the bounds
            values = values.astype(np.float64)
        if piece.missing is not None:
            self._refuse(piece.missing, name, row, "not_a_number", "Each item needs a score.")
        if piece.names is not None:
            self._refuse(np.ones(1, bool), name, row, "not_a_number", SCORE.rule)
        if not (values.min() >= SCORE.low and values.max() <= MOST):
            bad = ~((values >= SCORE.low) & (values <= MOST))
            self._refuse(bad, name, row, "out_of_range", SCORE.rule)
        return values

    def _refuse(self, bad: Array, name: str, row: int, code: str, rule: str) -> None:
        rows = np.flatnonzero(bad) + row
        places = np.stack((rows, np.full(rows.size, self._places[name])), axis=-1)
        detail = f"{rule} See column {self._numbers[name]} of the body."
        raise_places(places, "/y_score", code, detail)

    def array(self, order: Array | None) -> Array:
        """Return the scores, shape (n, k), in the given order; none can be appended later."""
        found = self.whole().reshape(-1, len(self._places))
        return found if order is None else ordered(found, order)


def _labels_of(columns: Iterable[str]) -> list[str]:
    return [name.removeprefix(PREFIX) for name in columns]


def ordered(scores: Array, order: Array) -> Array:
    """Reorder the rows in place, copying one column at a time."""
    for column in scores.T:
        column[:] = column[order]
    return scores


_ONE_COLUMN = "One column of scores is enough for the second of two classes; name both in `labels`."


def _check_classes(labels: tuple[str, ...], wanted: tuple[str, ...], numbers: list[int]) -> None:
    for label, number in zip(labels, numbers, strict=True):
        if label not in wanted:
            detail = f"Column {number} has the scores of a class that is not in `labels`."
            raise refuse("", "undeclared_label", detail)
    for place, label in enumerate(wanted):
        if label not in labels:
            detail = f"The class has no column `{PREFIX}<label>`; each one needs its own."
            raise refuse(f"/labels/{place}", "missing_column", detail)
