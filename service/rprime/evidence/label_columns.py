"""Columns of labels, coded piece by piece."""

from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array
from rprime.evidence.coding import Pointers, Raw, counted
from rprime.evidence.names import NO_LABEL
from rprime.evidence.numbers import MOST
from rprime.evidence.vocabulary import Growing, Names, Positions, Vocabulary, Where
from rprime.problems.problem import refuse


class Listed:
    """Labels in a list; see `Names`."""

    def __init__(self, *labels: str) -> None:
        self._labels = labels

    def __len__(self) -> int:
        return len(self._labels)

    def taken(self, positions: Array) -> list[str]:
        """Return the labels at some positions."""
        return [self._labels[place] for place in positions.tolist()]

    def same(self, other: Names) -> bool:
        """Whether both are one object."""
        return other is self


BOOLEANS = Listed("False", "True")
"""The names of booleans."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A piece of a column.

    Parameters
    ----------
    values
        Integers or other numbers; or positions in ``names``.
    missing
        Which of the items are null; None: none of them.
    names
        The distinct labels.
    """

    values: Array
    missing: Array | None = None
    names: Names | None = None

    def coded(self, codes: "Vocabulary | Positions", where: Where) -> Array:
        """Return the codes of the labels."""
        missing, values = self._whole(where)
        if missing is not None and not where.null:
            where.refuse(missing, "no_label", NO_LABEL)
        if isinstance(codes, Vocabulary):
            if self.names is not None:
                return codes.of_positions(values, self.names, missing, where)
        elif self.names is not None:
            raise refuse(where.pointer, "not_codes", "With `codes`, a label is an integer.")
        return codes.of_integers(values, missing, where)

    def _whole(self, where: Where) -> tuple[Array | None, Array]:
        """Return which values are missing, and all as integers: 2.0 is one, NaN is missing."""
        if self.values.dtype.kind != "f":
            return self.missing, self.values
        missing = np.isnan(self.values)
        if self.missing is not None:
            missing |= self.missing
        values = np.where(missing, 0.0, self.values.astype(np.float64, copy=False))
        bad = ~(np.abs(values) <= MOST)
        where.refuse(bad | (np.rint(values) != values), "mixed_labels", _NO_INTEGER)
        return missing if missing.any() else None, values.astype(np.int64)


_NO_INTEGER = "A number as a label must be an integer from -(2^53-1) to 2^53-1."


class CodedColumn(Growing):
    """A column of labels, coded.

    Parameters
    ----------
    codes
        The coder, shared by all columns of labels.
    pointer
        JSON pointer to the column.
    null
        Whether items without a label are allowed.
    """

    def __init__(self, codes: Vocabulary | Positions, pointer: str, *, null: bool) -> None:
        super().__init__()
        self.codes = codes
        self.shared = False
        self._where = Where(pointer, 0, null)

    def add(self, piece: Piece, row: int) -> None:
        """Append items."""
        where = Where(self._where.pointer, row, self._where.null)
        self.extend(piece.coded(self.codes, where))

    @property
    def values(self) -> Array:
        """Return the codes of all items; none can be appended afterwards."""
        return self.whole()

    def sort(self, order: Array) -> None:
        """Reorder the items."""
        self.values[:] = self.values[order]


def combined(
    true: CodedColumn, predicted: CodedColumn, declared: tuple[str, ...] | None, places: Pointers
) -> Raw:
    """Return the labels of two columns, whose codes may be overwritten unless they are shared.

    Parameters
    ----------
    true, predicted
        Columns of one body.
    declared
        The classes in their order; None: those that occur.
    places
        JSON pointers to the columns and the labels.
    """
    texts, integers = true.codes.names(declared)
    if true.shared:
        # Some labels may occur only in the other predictions.
        counts = counted(true.values, len(texts)) + counted(predicted.values, len(texts))
        texts = [text if count else None for text, count in zip(texts, counts, strict=True)]
    kept = [
        column.values.copy() if column.shared else column.values for column in (true, predicted)
    ]
    return Raw(texts, kept[0], kept[1], places, rank=int if integers else str, reuse=True)
