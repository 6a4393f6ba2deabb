"""Columns of scores, one for each class, gathered into one array."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import numpy as np

from rprime.core.arrays import Array
from rprime.evidence import names
from rprime.evidence.errors import refuse
from rprime.evidence.label_columns import Piece
from rprime.evidence.numbers import MOST, raise_places
from rprime.evidence.scores import SCORE, TWO
from rprime.evidence.vocabulary import Growing

PREFIX = "score:"
"""Before the name of the class whose scores a column has."""


def is_score(name: str) -> bool:
    """Whether a column has scores."""
    return name.startswith(PREFIX)


class ScoreColumns:
    """The scores of the items, filled column by column; no other copy of them is made.

    Parameters
    ----------
    places
        Which column of the array each column of the body is.
    numbers
        Which column of the body each is, from 1, for what is refused.
    """

    def __init__(self, places: Mapping[str, int], numbers: Mapping[str, int]) -> None:
        self._places = places
        self._numbers = numbers
        self._kept = Growing(np.float64)

    @classmethod
    def of(cls, found: Sequence[str], declared: tuple[str, ...] | None) -> Self | None:
        """Take the columns of a body that have scores; None if there are none.

        Parameters
        ----------
        found
            The names of all columns.
        declared
            The classes in their order; None: those of the columns, in theirs.

        Raises
        ------
        InvalidEvidenceError
            If a class has no column, or a column no class.
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
        """The classes, as the names of the columns have them."""
        return _labels_of(self._places)

    @property
    def nbytes(self) -> int:
        """Bytes that they take."""
        return self._kept.nbytes

    def add(self, batch: Mapping[str, Piece], row: int) -> None:
        """Add items at the end; the first of them is in this row."""
        size = batch["y_true"].values.size
        room = self._kept.room(size * len(self._places)).reshape(size, -1)
        for name, place in self._places.items():
            room[:, place] = self._numbers_of(batch[name], name, row)

    def _numbers_of(self, piece: Piece, name: str, row: int) -> Array:
        values = piece.values
        if values.dtype == np.float16:  # which has no number as large as the bounds
            values = values.astype(np.float64)
        if piece.missing is not None:
            self._refuse(piece.missing, name, row, "not_a_number", "Each item needs a score.")
        if piece.names is not None or piece.texts is not None:
            self._refuse(np.ones(1, bool), name, row, "not_a_number", SCORE.rule)
        if not (values.min() >= SCORE.low and values.max() <= MOST):
            bad = ~((values >= SCORE.low) & (values <= MOST))
            self._refuse(bad, name, row, "out_of_range", SCORE.rule)
        return values

    def _refuse(self, bad: Array, name: str, row: int, code: str, rule: str) -> None:
        rows = np.flatnonzero(bad) + row
        places = np.stack((rows, np.full(rows.size, self._places[name])), axis=-1)
        detail = f"{rule} It stands in column {self._numbers[name]} of the body."
        raise_places(places, "/y_score", code, detail)

    def array(self, order: Array | None) -> Array:
        """Give them, shape (n, k), in an order of the items; nothing can be added any more."""
        found = self._kept.whole().reshape(-1, len(self._places))
        return found if order is None else ordered(found, order)


def _labels_of(columns: Iterable[str]) -> list[str]:
    return [name.removeprefix(PREFIX) for name in columns]


def ordered(scores: Array, order: Array) -> Array:
    """Bring the rows into an order, in place: with a copy of no more than one column."""
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
