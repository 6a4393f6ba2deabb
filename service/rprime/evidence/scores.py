"""Read scores: of JSON as rows of numbers, of a body as columns, one for each class."""

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from rprime.core.arrays import Array
from rprime.evidence import names, numbers
from rprime.evidence.label_columns import Growing, Piece
from rprime.evidence.numbers import MOST, SCORE, raise_places
from rprime.problems.problem import refuse
from rprime.schemas.document import Document

PREFIX = "score:"
"""Prefix of a column of scores, before the name of the class."""
_TWO = 2
"""Number of classes for which one column of scores is enough."""


def read_scores(document: Document, shape: tuple[int, int]) -> Array:
    """Convert the scores of n items for k classes to float64, shape (n, k).

    The request has n rows of k numbers, as lists or as an array; for two classes it may have n
    numbers, or n rows of one: the scores of the second class.
    """
    scores, pointer, (n, k) = document.arrays["y_score"], f"{document.pointer}/y_score", shape
    if isinstance(scores, np.ndarray):
        return _checked(scores, pointer, shape)
    if k == _TWO and isinstance(scores, list) and scores and not isinstance(scores[0], list):
        return two_columns(numbers.vector(document, "y_score", SCORE, n))
    rows = numbers.lists(document, "y_score")
    width = len(rows[0])
    if k == _TWO and width == 1:
        return two_columns(numbers.matrix(document, "y_score", SCORE, (n, 1))[:, 0])
    if width != k and all(len(row) == width for row in rows):
        detail = (
            f"The rows have {width} scores for {k} classes; name the class of every column in "
            "`labels`."
        )
        raise refuse(pointer, "wrong_length", detail)
    return numbers.matrix(document, "y_score", SCORE, shape)


def _checked(scores: Array, pointer: str, shape: tuple[int, int]) -> Array:
    n, k = shape
    if scores.shape == (n, 1) and k == _TWO:
        return two_columns(_checked(scores, pointer, (n, 1))[:, 0])
    if scores.shape != shape:
        detail = f"{n} rows of {k} scores are needed; name the class of every column in `labels`."
        raise refuse(pointer, "wrong_length", detail)
    if not (SCORE.low <= scores.min() and scores.max() <= MOST):
        # Negated, so that NaN, for which no comparison holds, is bad as well.
        bad = ~((scores >= SCORE.low) & (scores <= MOST))
        raise_places(np.argwhere(bad), pointer, "out_of_range", SCORE.rule)
    return scores


def two_columns(second: Array) -> Array:
    """Complete the scores (n,) of the second of two classes to shape (n, 2).

    The first column is 1 - second if all scores are probabilities, else -second.
    """
    low, high = second.min(), second.max()
    first = 1 - second if low >= 0 and high <= 1 else -second
    return np.stack((first, second), axis=-1)


def is_score(name: str) -> bool:
    """Whether a column name is that of scores."""
    return name.startswith(PREFIX)


class ScoreColumns(Growing):
    """The scores of the items in one array, filled column by column without another copy.

    Each column of the body has a place in the array, and a number in the body for messages.
    """

    def __init__(self, places: Mapping[str, int], sources: Mapping[str, int]) -> None:
        super().__init__(np.float64)
        self._places = places
        self._sources = sources

    @classmethod
    def of(cls, columns: Sequence[str], declared: tuple[str, ...] | None) -> Self | None:
        """Select the columns of scores among all of a body; None if there are none.

        Every class needs a column, and every column a class. Without declared classes, these are
        those of the columns, in their order.
        """
        sources = {name: number for number, name in enumerate(columns, 1) if is_score(name)}
        if not sources:
            return None
        suffixes = [name.removeprefix(PREFIX) for name in sources]
        labels = names.distinct(suffixes, lambda i: f"/labels/{i}")
        if declared is None:
            if len(labels) == 1:
                detail = (
                    "One column of scores is enough for the second of two classes; name both in "
                    "`labels`."
                )
                raise refuse("/labels", "required", detail)
            return cls({name: place for place, name in enumerate(sources)}, sources)
        classes = declared[1:] if len(declared) == _TWO and len(labels) == 1 else declared
        for label, number in zip(labels, sources.values(), strict=True):
            if label not in classes:
                detail = f"Column {number} has the scores of a class that is not in `labels`."
                raise refuse("", "undeclared_label", detail)
        for place, label in enumerate(classes):
            if label not in labels:
                detail = f"The class has no column `{PREFIX}<label>`; each one needs its own."
                raise refuse(f"/labels/{place}", "missing_column", detail)
        places = [classes.index(label) for label in labels]
        return cls(dict(zip(sources, places, strict=True)), sources)

    @property
    def labels(self) -> list[str]:
        """The classes named by the columns."""
        return [name.removeprefix(PREFIX) for name in self._places]

    def add(self, batch: Mapping[str, Piece], row: int) -> None:
        """Append items, the first of them in this row."""
        size = batch["y_true"].values.size
        room = self.room(size * len(self._places)).reshape(size, -1)
        for name, place in self._places.items():
            room[:, place] = self._checked(batch[name], name, row)

    def _checked(self, piece: Piece, name: str, row: int) -> Array:
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
        detail = f"{rule} See column {self._sources[name]} of the body."
        raise_places(places, "/y_score", code, detail)

    @property
    def values(self) -> Array:
        """The scores, shape (n, k); none can be appended later."""
        return super().values.reshape(-1, len(self._places))

    def sort(self, order: Array) -> None:
        """Reorder the items."""
        sort_rows(self.values, order)


def sort_rows(scores: Array, order: Array) -> None:
    """Reorder the rows in place, copying one column at a time."""
    for column in scores.T:
        column[:] = column[order]
