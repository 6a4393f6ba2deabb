"""Assign codes to the labels of a stream in the order of appearance."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rprime.core.arrays import Array
from rprime.core.label_texts import read_texts
from rprime.evidence.coding import recoded
from rprime.evidence.integer_labels import DENSE_RANGE
from rprime.evidence.names import INTEGER_RULE, NO_LABEL
from rprime.evidence.numbers import MOST, raise_places
from rprime.problems.problem import refuse

_BYTES_A_LABEL = 150
"""Bytes of a Python object with its places in a list and in a dictionary."""
_FEW = 1 << 12
"""Items among which all labels most likely occur if they are few."""


@dataclass(frozen=True)
class Where:
    """The place of a piece of a column.

    Parameters
    ----------
    pointer
        JSON pointer to the column.
    row
        Row of the first item of the piece.
    null
        Whether items without a label are allowed.
    """

    pointer: str
    row: int
    null: bool

    def refuse(self, bad: Array, code: str, detail: str) -> None:
        """Raise for the first items for which ``bad`` holds, if there are any."""
        raise_places(np.argwhere(bad) + self.row, self.pointer, code, detail)


class Names(Protocol):
    """The distinct labels that positions point to."""

    def __len__(self) -> int:
        """Return the number of labels."""

    def taken(self, positions: Array) -> Sequence[Any]:
        """Return the labels at some positions, as Python objects."""

    def same(self, other: "Names") -> bool:
        """Whether a quick check proves that both are the same."""


class Vocabulary:
    """Labels, integers or strings, and their codes in the order in which they appear.

    Code 0 is "no label". Codes never change when more labels follow, so that nothing has to be
    read a second time.

    Parameters
    ----------
    most
        Largest number of labels.
    pointer
        JSON pointer to the true labels.
    untyped
        Whether the format writes integers as texts, as CSV does.
    what
        What the labels are of, for messages.
    """

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

    def names(self, declared: tuple[str, ...] | None) -> tuple[list[str | None], bool]:
        """Return the names by code, and whether every label is an integer or the text of one.

        Parameters
        ----------
        declared
            The declared classes; None: those that occur.
        """
        if self._untyped and self.kind is str:
            texts, integers = read_texts(self.labels[1:], declared)
            return [None, *texts], integers
        return [None, *map(str, self.labels[1:])], self.kind is int

    def of_integers(self, values: Array, missing: Array | None, where: Where) -> Array:
        """Code a piece of integers.

        Parameters
        ----------
        values
            Any type of integers.
        missing
            Which of the values do not count; None: all count.
        where
            Place of the piece, for messages.
        """
        if missing is None and self._covers(values):
            return recoded(values, self._table)
        present = values if missing is None else values[~missing]
        if not present.size:
            return np.zeros(values.size, np.uint8)
        low, high = int(present.min()), int(present.max())
        if low < -MOST or high > MOST:
            bad = (values < -MOST) | (values > MOST)
            where.refuse(bad, "out_of_range", INTEGER_RULE)
        if missing is not None:
            values = np.where(missing, present[0], values)
        if not self._extend(low, high):
            return self._searched(values, missing, where)
        # Not in place, because the values may be a view of the body.
        positions = values if self._low == 0 else values.astype(np.int64) - self._low
        codes = recoded(positions, self._table)
        if not codes.all():
            new = _new_positions(self._table, positions)
            self._table = self._assigned(self._table, new, (new + self._low).tolist(), where)
            self._complete = self._low == 0 and bool(self._table.all())
            codes = recoded(positions, self._table)
        return _without_missing(codes, missing)

    def of_positions(
        self, positions: Array, names: Names, missing: Array | None, where: Where
    ) -> Array:
        """Code a piece of positions in distinct labels; see `of_integers`."""
        if missing is not None and missing.all():
            return np.zeros(positions.size, np.uint8)
        if self._names is None or not names.same(self._names):
            self._names, self._of_names = names, np.zeros(len(names), np.uint8)
        if missing is not None:
            positions = np.where(missing, positions[~missing][0], positions)
        codes = recoded(positions, self._of_names) if self._of_names.any() else None
        if codes is None or not codes.all():
            new = _new_positions(self._of_names, positions)
            self._of_names = self._assigned(self._of_names, new, names.taken(new), where)
            codes = recoded(positions, self._of_names)
        return _without_missing(codes, missing)

    @property
    def _type(self) -> Any:  # noqa: ANN401 (a dtype)
        return np.min_scalar_type(len(self.labels))

    def _searched(self, values: Array, missing: Array | None, where: Where) -> Array:
        distinct, positions = np.unique(values, return_inverse=True)
        found = distinct.tolist()
        self._add(found, where)
        codes = np.array([self._codes[value] for value in found], self._type)
        return _without_missing(codes[positions], missing)

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

    def _covers(self, values: Array) -> bool:
        """Whether all values are non-negative, within the table and have codes."""
        if not self._complete or not values.size:
            return False
        # Read as unsigned, a negative number is a large one.
        return int(values.view(f"u{values.itemsize}").max()) < self._table.size

    def _assigned(
        self, table: Array, positions: Array, labels: Sequence[Any], where: Where
    ) -> Array:
        """Return the table with codes for more positions."""
        self._add(labels, where)
        table = table.astype(np.promote_types(table.dtype, self._type), copy=False)
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
    """Codes of labels that are sent as positions in the declared classes.

    Parameters
    ----------
    size
        k, the number of declared classes.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def names(self, declared: tuple[str, ...] | None) -> tuple[list[str | None], bool]:
        """Return the names by code, and that the codes rank them."""
        return [*(declared or ()), None], False

    def of_integers(self, values: Array, missing: Array | None, where: Where) -> Array:
        """Code a piece of positions; -1 and missing ones become k."""
        out = (values < -1) | (values >= self.size)
        if missing is not None:
            out &= ~missing
        if out.any():
            detail = f"A code is a position in `labels`, 0 to {self.size - 1}; -1 is unclassified."
            where.refuse(out, "out_of_range", detail)
        without = values < 0 if missing is None else missing | (values < 0)
        if not where.null:
            where.refuse(without, "no_label", NO_LABEL)
        return np.where(without, self.size, values).astype(np.min_scalar_type(self.size))


def _new_positions(table: Array, positions: Array) -> Array:
    """Return the distinct positions without a code, ascending."""
    occurs = np.zeros(table.size, bool)
    occurs[positions[:_FEW]] = True
    if not occurs.all():
        occurs[positions] = True
    return np.flatnonzero(occurs & (table == 0))


def _without_missing(codes: Array, missing: Array | None) -> Array:
    if missing is not None:
        return np.where(missing, codes.dtype.type(0), codes)
    return codes


MAPPED = 5 << 20
"""Bytes of the smallest array, more than a worker's allocator takes from its heap: there, several
growing arrays would leave large holes. Unused pages of an array take no memory."""
_SHARE = 8
"""A full array grows by one part in this many; the kernel remaps it without a copy."""


class Growing:
    """A growing array of codes, whose type becomes wider as needed.

    Parameters
    ----------
    kind
        First type of the elements.
    """

    def __init__(self, kind: Any = np.uint8) -> None:  # noqa: ANN401 (a dtype)
        self._array = _mapped(kind, 0)
        self.size = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size * self._array.itemsize

    def extend(self, part: Array) -> None:
        """Append elements."""
        kind = np.promote_types(self._array.dtype, part.dtype)
        if kind != self._array.dtype:
            wider = _mapped(kind, self._array.size)
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

    def whole(self) -> Array:
        """Return the whole array; nothing can be appended afterwards."""
        return self._array[: self.size]


def _mapped(kind: Any, size: int) -> Array:  # noqa: ANN401 (a dtype)
    return np.empty(max(MAPPED // np.dtype(kind).itemsize, size), kind)
