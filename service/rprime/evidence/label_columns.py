"""Columns of labels, coded piece by piece."""

from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array
from rprime.evidence.coding import Coded, Pointers, Raw, occurring
from rprime.evidence.numbers import MOST
from rprime.evidence.vocabulary import NO_LABEL, Growing, Names, Positions, Vocabulary, Where
from rprime.problems.problem import refuse


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
    texts
        The labels themselves, instead of the other three.
    """

    values: Array
    missing: Array | None = None
    names: Names | None = None
    texts: list[str] | None = None

    def coded(self, codes: "Vocabulary | Positions", where: Where) -> Array:
        """Return the codes of the labels."""
        missing, values = self._whole(where)
        if missing is not None and not where.null:
            where.refuse(missing, "no_label", NO_LABEL)
        if isinstance(codes, Vocabulary):
            if self.texts is not None:
                return codes.of_texts(self.texts, where)
            if self.names is not None:
                return codes.of_positions(values, self.names, missing, where)
        elif self.names is not None or self.texts is not None:
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


class CodedColumn:
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
        self.codes = codes
        self.shared = False
        self._where = Where(pointer, 0, null)
        self._kept = Growing()

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._kept.nbytes

    def add(self, piece: Piece, row: int) -> None:
        """Append items."""
        where = Where(self._where.pointer, row, self._where.null)
        self._kept.extend(piece.coded(self.codes, where))

    @property
    def values(self) -> Array:
        """Return the codes of all items; none can be appended afterwards."""
        return self._kept.whole()

    def sort(self, order: Array) -> None:
        """Reorder the items."""
        ordered = Growing(self.values.dtype)
        ordered.extend(self.values[order])
        self._kept = ordered


def combined(
    true: CodedColumn,
    predicted: CodedColumn,
    declared: tuple[str, ...] | None,
    places: Pointers,
    most: int,
) -> Coded:
    """Recode two columns by the classes, overwriting them unless their memory is shared.

    Parameters
    ----------
    true, predicted
        Columns of one body.
    declared
        The classes in their order; None: those that occur.
    places
        JSON pointers to the columns and the labels.
    most
        Largest number of classes.
    """
    codes = true.codes
    if isinstance(codes, Positions):
        assert declared is not None  # noqa: S101 (see `Columns`)
        return Coded(declared, true.values, predicted.values)
    texts, integers = codes.names(declared)
    if true.shared:
        # Some labels may occur only in the other predictions.
        occurs = occurring(true.values, len(texts)) | occurring(predicted.values, len(texts))
        texts = [text if here else None for text, here in zip(texts, occurs, strict=True)]
    kept = [
        column.values.copy() if column.shared else column.values for column in (true, predicted)
    ]
    same = _merged(texts)
    if same is not None:
        kept = [same[values] for values in kept]
    rank = int if integers else str
    raw = Raw(texts, kept[0], kept[1], places, rank=rank, reuse=True)
    return raw.sorted(most) if declared is None else raw.declared(declared)


def _merged(names: list[str | None]) -> Array | None:
    """Return, by code, the first code of the same name, and drop the name from the other codes.

    Returns
    -------
    None where no name has two codes.
    """
    first: dict[str, int] = {}
    codes = [i if name is None else first.setdefault(name, i) for i, name in enumerate(names)]
    if codes == list(range(len(names))):
        return None
    for code, same in enumerate(codes):
        names[code] = names[code] if code == same else None
    return np.array(codes, np.min_scalar_type(len(names)))
