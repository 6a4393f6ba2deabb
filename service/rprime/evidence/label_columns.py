"""Columns of labels, coded piece by piece in the order in which labels appear."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.labels import read_texts
from rprime.evidence.coding import DENSE_RANGE, Raw, count_codes, recoded
from rprime.evidence.names import INTEGER_RULE, NO_LABEL
from rprime.evidence.numbers import MOST, raise_places
from rprime.problems.problem import refuse

_BYTES_A_LABEL = 150
"""Bytes of a Python object with its places in a list and in a dictionary."""
_FEW = 1 << 12
"""Items among which all labels most likely occur if they are few."""
MAPPED = 5 << 20
"""Bytes of the smallest array, more than a worker's allocator takes from its heap: there, several
growing arrays would leave large holes. Unused pages of an array take no memory."""
_SHARE = 8
"""A full array grows by one part in this many; the kernel remaps it without a copy."""


@dataclass(frozen=True)
class Where:
    """The place of a piece of a column: its pointer and first row; whether labels may be null."""

    pointer: str
    row: int
    null: bool

    def refuse(self, bad: Array, code: str, detail: str) -> None:
        """Raise for the first items for which ``bad`` holds, if there are any."""
        raise_places(np.argwhere(bad) + self.row, self.pointer, code, detail)


class Names:
    """The distinct labels that positions point to."""

    def __init__(self, values: Any) -> None:  # noqa: ANN401 (an array of labels of any library)
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def taken(self, positions: Array) -> Sequence[Any]:
        """Return the labels at some positions, as Python objects."""
        return [self.values[place] for place in positions.tolist()]

    def same(self, other: "Names") -> bool:
        """Whether a quick check proves that both are the same."""
        return other is self


BOOLEANS = Names(["False", "True"])
"""The names of booleans."""


class Vocabulary:
    """Labels, integers or strings, and their codes in the order in which they appear.

    Codes never change when more labels follow, so that nothing has to be read a second time. An
    untyped format writes integers as texts, as CSV does; `what` the labels are of is for messages.
    """

    without = 0
    """The code of "no label"."""

    def __init__(
        self, most: int, pointer: str, *, untyped: bool = False, what: str = "classes"
    ) -> None:
        self.labels: list[Any] = [None]
        self._what = what
        self._untyped = untyped
        self._most = most
        self._pointer = pointer
        self._codes: dict[Any, int] = {}
        self._low = 0
        self._table = np.zeros(0, np.uint8)
        self._complete = False
        self._characters = 0
        self._names: Names | None = None
        self._of_names = np.zeros(0, np.uint8)

    @property
    def nbytes(self) -> int:
        """Bytes of memory of the labels."""
        return _BYTES_A_LABEL * len(self.labels) + self._characters

    @property
    def kind(self) -> type | None:
        """`int` or `str`; None before the first label."""
        return type(self.labels[1]) if len(self.labels) > 1 else None

    def code_of(self, label: str) -> int:
        """Return the code of a label; that of "no label" if it does not occur."""
        return self._codes.get(label, self.without)

    def names(self, declared: tuple[str, ...] | None) -> tuple[list[str | None], bool]:
        """Return the names by code, and whether every label is an integer or the text of one."""
        if self._untyped and self.kind is str:
            texts, integers = read_texts(self.labels[1:], declared)
            return [None, *texts], integers
        return [None, *map(str, self.labels[1:])], self.kind is int

    def of_integers(self, values: Array, where: Where) -> Array:
        """Code a piece of integers of any type."""
        # Read as unsigned, a negative number is a large one.
        if self._complete and values.view(f"u{values.itemsize}").max() < self._table.size:
            return recoded(values, self._table)
        low, high = int(values.min()), int(values.max())
        if low < -MOST or high > MOST:
            bad = (values < -MOST) | (values > MOST)
            where.refuse(bad, "out_of_range", INTEGER_RULE)
        if not self._extend(low, high):
            distinct, positions = np.unique(values, return_inverse=True)
            codes = np.zeros(distinct.size, np.uint8)
            return self._assigned(codes, slice(None), distinct.tolist(), where)[positions]
        # Not in place, because the values may be a view of the body.
        positions = values if self._low == 0 else values.astype(np.int64) - self._low
        codes = recoded(positions, self._table)
        if not codes.all():
            new = _new_positions(self._table, positions)
            self._table = self._assigned(self._table, new, (new + self._low).tolist(), where)
            self._complete = self._low == 0 and bool(self._table.all())
            codes = recoded(positions, self._table)
        return codes

    def of_positions(self, positions: Array, names: Names, where: Where) -> Array:
        """Code a piece of positions in distinct labels."""
        if self._names is None or not names.same(self._names):
            self._names, self._of_names = names, np.zeros(len(names), np.uint8)
        codes = recoded(positions, self._of_names) if self._of_names.any() else None
        if codes is None or not codes.all():
            new = _new_positions(self._of_names, positions)
            self._of_names = self._assigned(self._of_names, new, names.taken(new), where)
            codes = recoded(positions, self._of_names)
        return codes

    def _extend(self, low: int, high: int) -> bool:
        """Extend the table of the integers to this range, unless it is too large."""
        if self._table.size:
            low = min(low, self._low)
            high = max(high, self._low + self._table.size - 1)
        elif 0 <= low < DENSE_RANGE:
            low = 0
        if high - low >= DENSE_RANGE:
            return False
        if (low, high - low + 1) != (self._low, self._table.size):
            table = np.zeros(high - low + 1, self._table.dtype)
            start = self._low - low if self._table.size else 0
            table[start : start + self._table.size] = self._table
            self._low, self._table, self._complete = low, table, False
        return True

    def _assigned(
        self, table: Array, positions: Array | slice, labels: Sequence[Any], where: Where
    ) -> Array:
        """Return the table with codes for more positions."""
        self._add(labels, where)
        kind = np.min_scalar_type(len(self.labels))
        table = table.astype(np.promote_types(table.dtype, kind), copy=False)
        table[positions] = [self._codes[label] for label in labels]
        return table

    def _add(self, labels: Iterable[Any], where: Where) -> None:
        new = [label for label in labels if label not in self._codes]
        if not new:
            return
        kind = self.kind
        if kind is not None and kind is not type(new[0]):
            detail = "The labels are all strings or all integers, in every column of labels."
            raise refuse(where.pointer, "mixed_labels", detail)
        for label in new:
            self._codes[label] = len(self.labels)
            self.labels.append(label)
            self._characters += len(label) if isinstance(label, str) else 0
        if len(self.labels) - 1 > self._most:
            detail = f"There are more than {self._most} {self._what}, the largest number allowed."
            raise refuse(self._pointer, f"too_many_{self._what}", detail)


class Positions:
    """Codes of labels that are sent as positions in the k declared classes; k is "no label"."""

    def __init__(self, k: int) -> None:
        self.without = k

    def names(self, declared: tuple[str, ...] | None) -> tuple[list[str | None], bool]:
        """Return the names by code, and that the codes rank them."""
        return [*(declared or ()), None], False

    def of_integers(self, values: Array, where: Where) -> Array:
        """Code a piece of positions; -1 becomes k."""
        rule = f"A code is a position in `labels`, 0 to {self.without - 1}; -1 is unclassified."
        where.refuse((values < -1) | (values >= self.without), "out_of_range", rule)
        if not where.null:
            where.refuse(values < 0, "no_label", NO_LABEL)
        codes = np.where(values < 0, self.without, values)
        return codes.astype(np.min_scalar_type(self.without))


def _new_positions(table: Array, positions: Array) -> Array:
    """Return the distinct positions without a code, ascending."""
    occurs = np.zeros(table.size, bool)
    occurs[positions[:_FEW]] = True
    if not occurs.all():
        occurs[positions] = True
    return np.flatnonzero(occurs & (table == 0))


class Growing:
    """A growing array of codes, whose type becomes wider as needed."""

    def __init__(self, kind: Any = np.uint8) -> None:  # noqa: ANN401 (a dtype)
        self._array = np.empty(MAPPED // np.dtype(kind).itemsize, kind)
        self.size = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size * self._array.itemsize

    def extend(self, part: Array) -> None:
        """Append elements."""
        kind = np.promote_types(self._array.dtype, part.dtype)
        if kind != self._array.dtype:
            wider = np.empty(self._array.size, kind)
            wider[: self.size] = self._array[: self.size]
            self._array = wider
        self.room(part.size)[:] = part

    def room(self, size: int) -> Array:
        """Append `size` elements and return them, for the caller to fill before the next call."""
        start, end = self.size, self.size + size
        if end > self._array.size:
            # The kernel may move the array: the caller has filled all earlier elements.
            self._array.resize(end + end // _SHARE, refcheck=False)
        self.size = end
        return self._array[start:end]

    @property
    def values(self) -> Array:
        """The whole array; nothing can be appended afterwards."""
        return self._array[: self.size]

    def sort(self, order: Array) -> None:
        """Reorder the elements."""
        self._array[: self.size] = self._array[: self.size][order]


@dataclass(frozen=True, eq=False)
class Piece:
    """A piece of a column."""

    values: Array
    """Integers or other numbers; or positions in the distinct labels, its ``names``."""
    missing: Array | None = None
    """Which of the items are null; None: none of them."""
    names: Names | None = None

    def coded(self, codes: Vocabulary | Positions, where: Where) -> Array:
        """Return the codes of the labels."""
        missing, values = self._whole(where)
        if missing is not None and not where.null:
            where.refuse(missing, "no_label", NO_LABEL)
        if self.names is not None and isinstance(codes, Positions):
            raise refuse(where.pointer, "not_codes", "With `codes`, a label is an integer.")
        if missing is not None:
            if missing.all():
                return np.full(values.size, codes.without, np.min_scalar_type(codes.without))
            values = np.where(missing, values[~missing][0], values)
        if self.names is None or isinstance(codes, Positions):
            coded = codes.of_integers(values, where)
        else:
            coded = codes.of_positions(values, self.names, where)
        if missing is None:
            return coded
        return np.where(missing, coded.dtype.type(codes.without), coded)

    def _whole(self, where: Where) -> tuple[Array | None, Array]:
        """Return which values are missing, and all as integers: 2.0 is one, NaN is missing."""
        if self.values.dtype.kind != "f":
            return self.missing, self.values
        missing = np.isnan(self.values)
        if self.missing is not None:
            missing |= self.missing
        values = np.where(missing, 0.0, self.values.astype(np.float64, copy=False))
        bad = ~(np.abs(values) <= MOST) | (np.rint(values) != values)
        detail = "A number as a label must be an integer from -(2^53-1) to 2^53-1."
        where.refuse(bad, "mixed_labels", detail)
        return missing if missing.any() else None, values.astype(np.int64)


class CodedColumn(Growing):
    """A column of labels, coded; the codes are shared by all columns of labels."""

    def __init__(self, codes: Vocabulary | Positions, pointer: str, *, null: bool) -> None:
        super().__init__()
        self.codes = codes
        self.shared = False
        self._pointer, self._null = pointer, null

    def add(self, piece: Piece, row: int) -> None:
        """Append items."""
        self.extend(piece.coded(self.codes, Where(self._pointer, row, self._null)))


def combined(
    true: CodedColumn, predicted: CodedColumn, declared: tuple[str, ...] | None, pointer: str
) -> Raw:
    """Return the labels of two columns, whose codes may be overwritten unless they are shared."""
    texts, integers = true.codes.names(declared)
    if true.shared:
        # Some labels may occur only in the other predictions.
        counts = count_codes(true.values, len(texts)) + count_codes(predicted.values, len(texts))
        texts = [text if count else None for text, count in zip(texts, counts, strict=True)]
    first, second = (
        column.values.copy() if column.shared else column.values for column in (true, predicted)
    )
    return Raw(texts, first, second, pointer, rank=int if integers else str, reuse=True)
