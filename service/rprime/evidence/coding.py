"""Convert label arrays to arrays of codes without a Python object for each item."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.label_texts import integer_text
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.evidence import names
from rprime.evidence.integer_labels import integers_of, numbered
from rprime.evidence.numbers import MOST, raise_places
from rprime.evidence.spellings import AS_SENT, Spellings
from rprime.problems.problem import invalid, refuse
from rprime.schemas.document import kind_of

_ABSENT = np.uint32(2**32 - 1)
PIECE = 1 << 16
"""Items in one piece, so that intermediate arrays fit into the processor's caches."""
_BYTE_VALUES = 256


@dataclass(frozen=True, eq=False)
class Coded:
    """The labels of items as codes.

    Parameters
    ----------
    labels
        Names of the k classes.
    true, predicted
        Shape (n,), the smallest unsigned integers that hold k; k is "unclassified".
    """

    labels: tuple[str, ...]
    true: Array
    predicted: Array
    warnings: tuple[Warning, ...] = ()


@dataclass(frozen=True)
class Pointers:
    """JSON pointers to the label arrays and the declared labels."""

    true: str
    predicted: str
    labels: str


def code_labels(
    y_true: object, y_pred: object, places: Pointers, *, without_booleans: bool
) -> "Raw":
    """Code two label arrays.

    Parameters
    ----------
    y_true, y_pred
        Arrays of equal length, all strings, all integers or all booleans; null in ``y_pred`` is
        unclassified.
    places
        JSON pointers to both, and to the labels.
    without_booleans
        Whether the labels are proven to hold no booleans.
    """
    true, predicted = _items(y_true, places.true), _items(y_pred, places.predicted)
    if len(true) != len(predicted):
        detail = f"`y_true` has {len(true)} items and `y_pred` {len(predicted)}; each needs both."
        raise refuse(places.predicted, "wrong_length", detail)
    kind = type(next((label for label in true if label is not None), None))
    if kind is str:
        return _code_strings(true, predicted, places)
    if kind is bool:
        return _code_booleans(true, predicted, places)
    return _code_integers(true, predicted, places, without_booleans=without_booleans)


def recoded(values: Array, codes: Array, *, reuse: bool = False) -> Array:
    """Return ``codes[values]``; with `reuse`, overwrite the values if the types allow it."""
    if reuse and values.dtype == codes.dtype:
        for start in range(0, values.size, PIECE):
            part = values[start : start + PIECE]
            part[:] = _translated(part, codes)
        return values
    return _translated(values, codes)


def _translated(values: Array, codes: Array) -> Array:
    """Return ``codes[values]``; bytes are translated without an index for each of them."""
    if codes.dtype != np.uint8 or codes.size > _BYTE_VALUES:
        return np.take(codes, values)
    shifted = _shifted(values, codes)
    if shifted is not None:
        return shifted
    if values.dtype != np.uint8:
        return np.take(codes, values)
    # Five times faster than numpy.
    table = bytes(codes) + bytes(_BYTE_VALUES - codes.size)
    return np.frombuffer(values.tobytes().translate(table), dtype=np.uint8)


def _shifted(values: Array, codes: Array) -> Array | None:
    """Return ``codes[values]`` if the codes after the first ascend by one; else None.

    Consecutive integers from 0 or 1, the most common labels, have such codes.
    """
    if codes.size <= 1 or (np.diff(codes[1:]) != 1).any():
        return None
    step = (int(codes[1]) - 1) % _BYTE_VALUES
    shifted = values.astype(np.uint8)
    shifted += np.uint8(step)
    if codes[0] != step and not values.all():
        shifted[values == 0] = codes[0]
    return shifted


def counted(codes: Array, size: int) -> Array:
    """Count each of `size` codes, in pieces because counting widens them."""
    counts = np.zeros(size, np.int64)
    for start in range(0, codes.size, PIECE):
        counts += np.bincount(codes[start : start + PIECE], minlength=size)
    return counts


def group_codes(groups: object, size: int, pointer: str, what: str = "groups") -> Array:
    """Code the group of each item; groups are numbered in the order of appearance.

    Parameters
    ----------
    groups
        An array of strings or integers.
    size
        Number of items.
    pointer
        JSON pointer to it.
    what
        What the groups are called.
    """
    found = _items(groups, pointer)
    if len(found) != size:
        detail = f"There are {len(found)} {what} for {size} items; each item needs one."
        raise refuse(pointer, "wrong_length", detail)
    if set(map(type, found)) != {str} and not all(map(names.is_integer, found)):
        like = "" if type(found[0]) is str else 0
        raise invalid(names.mixed(found, pointer, null=False, like=like))
    codes = Codes()
    coded = np.fromiter(map(codes.__getitem__, found), np.uint32, size)
    if type(found[0]) is not str and max(map(abs, codes)) > MOST:
        bad = np.argwhere([abs(group) > MOST for group in found])
        raise_places(bad, pointer, "out_of_range", names.INTEGER_RULE)
    if "" in codes:
        bad = np.argwhere([not group for group in found])
        raise_places(bad, pointer, "no_group", "Each item needs a group; this name is empty.")
    return coded


@dataclass(frozen=True, eq=False)
class Raw:
    """Codes of the distinct labels as sent, before these are checked as names.

    Parameters
    ----------
    texts
        The labels by code; None for the code of unclassified items.
    true, predicted
        Shape (n,).
    places
        JSON pointers to both.
    rank
        Sort key of the classes; None: the codes ascend already.
    reuse
        Whether both arrays may be overwritten.
    spellings
        Which other texts are meant as classes, and what unknown ones are.
    """

    texts: list[str | None]
    true: Array
    predicted: Array
    places: Pointers
    rank: Callable[[str], Any] | None = str
    reuse: bool = False
    spellings: Spellings = AS_SENT

    def coded(self, declared: tuple[str, ...] | None, most: int, spellings: Spellings) -> Coded:
        """Return the codes of the classes.

        Parameters
        ----------
        declared
            The classes in their order; None: those that occur, strings sorted by code point and
            integers by value.
        most
            Largest number of classes.
        spellings
            What the request says about texts that are not classes.
        """
        raw = self if spellings is AS_SENT else self._spelled(spellings)
        if declared is not None:
            labels, codes = declared, raw.declared(declared)
        else:
            labels, codes = raw.sorted(most)
        if spellings.unclassified or self.texts.count(None) > 1:
            self._refuse_unlabelled(codes, len(labels))
        if spellings is AS_SENT:
            return raw.recoded(labels, codes)
        # Counted first, because the arrays may be overwritten.
        counts = counted(self.true, codes.size) + counted(self.predicted, codes.size)
        warnings = spellings.warnings(self.texts, raw.texts, codes == len(labels), counts)
        return replace(raw.recoded(labels, codes), warnings=warnings)

    def _spelled(self, spellings: Spellings) -> "Raw":
        """Put classes in the place of their aliases."""
        texts = spellings.renamed(self.texts)
        integers = all(text is None or integer_text(text) == text for text in texts)
        rank = int if integers and self.rank is not str else str
        return replace(self, texts=texts, rank=rank, spellings=spellings)

    def declared(self, labels: tuple[str, ...]) -> Array:
        """Return the declared class of each code."""
        first = self._first()
        positions = {name: code for code, name in enumerate(labels)}
        if self.spellings.unclassified:
            sent, absent = list(map(names.plain, first)), len(labels)
        else:
            sent, absent = names.normalised(list(first), self._place(first)), int(_ABSENT)
        codes = [positions.get(name, absent) for name in sent]
        found = self._of_texts(dict(zip(first, codes, strict=True)), len(labels))
        self._refuse_absent(found)
        return found

    def sorted(self, most: int) -> tuple[tuple[str, ...], Array]:
        """Return the classes that occur, and that of each code."""
        first = self._first()
        if len(first) > most:
            raise names.too_many(len(first), self.places.true, most)
        labels = dict(zip(names.distinct(list(first), self._place(first)), first, strict=True))
        order = list(labels) if self.rank is None else sorted(labels, key=self.rank)
        codes = {labels[name]: code for code, name in enumerate(order)}
        return tuple(order), self._of_texts(codes, len(order))

    def _first(self) -> dict[str, int]:
        """Return the distinct texts and their first codes: several spellings may be one class."""
        first: dict[str, int] = {}
        for code, text in enumerate(self.texts):
            if text is not None:
                first.setdefault(text, code)
        return first

    def _of_texts(self, codes: Mapping[str, int], k: int) -> Array:
        found = [k if text is None else codes[text] for text in self.texts]
        return np.array(found, dtype=np.uint32)

    def recoded(self, labels: tuple[str, ...], codes: Array) -> Coded:
        """Replace the codes of the texts by those of the classes."""
        kind = np.min_scalar_type(len(labels))
        same = (codes == np.arange(len(codes))).all()
        codes = codes.astype(kind)
        true, predicted = (
            raw.astype(kind, copy=False) if same else recoded(raw, codes, reuse=self.reuse)
            for raw in (self.true, self.predicted)
        )
        return Coded(labels, true, predicted)

    def _refuse_absent(self, codes: Array) -> None:
        absent = codes == _ABSENT
        if not absent.any():
            return
        for raw, place in ((self.true, self.places.true), (self.predicted, self.places.predicted)):
            items = np.flatnonzero(absent[raw])
            detail = f"The label is not in `labels`; this is the first of {items.size} such items."
            if raw is self.predicted:
                detail += ' `"unknown_labels": "unclassified"` counts such predictions as missing.'
            raise_places(items[:1, None], place, "undeclared_label", detail)

    def _refuse_unlabelled(self, codes: Array, k: int) -> None:
        """Refuse items whose true label is a missing value in disguise, or no declared class."""
        without = (codes == k) & (counted(self.true, codes.size) > 0)
        for code in np.flatnonzero(without)[:1]:
            items = np.flatnonzero(self.true == code)
            missing = self.texts[code] is None
            detail = names.NO_LABEL if missing else _NOT_DECLARED
            kind = "no_label" if missing else "undeclared_label"
            raise_places(items[:1, None], self.places.true, kind, detail)

    def _place(self, first: Mapping[str, int]) -> names.Place:
        """Return the function that finds the first place of a label."""
        codes = list(first.values())

        def place(i: int) -> str:
            for raw, where in (
                (self.true, self.places.true),
                (self.predicted, self.places.predicted),
            ):
                items = np.flatnonzero(raw == codes[i])
                if items.size:
                    return f"{where}/{items[0]}"
            return self.places.true

        return place


_NOT_DECLARED = "The label is not in `labels`; `unknown_labels` is about predictions alone."


class Codes(dict[Any, int]):
    """Codes in the order in which keys are first looked up."""

    def __missing__(self, key: Any) -> int:  # noqa: ANN401 (a label)
        code = self[key] = len(self)
        return code


def _items(values: object, pointer: str) -> list[Any]:
    if not isinstance(values, list):
        raise refuse(
            pointer, "not_an_array", f"An array of labels is needed, not {kind_of(values)}."
        )
    if not values:
        raise refuse(pointer, "empty", "The array is empty; there is nothing to evaluate.")
    return values


def _code_strings(y_true: list[Any], y_pred: list[Any], places: Pointers) -> Raw:
    codes = Codes()
    true = looked_up(y_true, codes)
    if true is None or set(map(type, codes)) != {str}:
        raise invalid(names.mixed(y_true, places.true, null=False, like=""))
    predicted = looked_up(y_pred, codes)
    if predicted is None or not set(map(type, codes)) <= {str, type(None)}:
        raise invalid(names.mixed(y_pred, places.predicted, null=True, like=""))
    return Raw(list(codes), true, predicted, places)


def _code_booleans(y_true: list[Any], y_pred: list[Any], places: Pointers) -> Raw:
    # The types of all items are checked, because a dictionary takes 1 for true.
    if set(map(type, y_true)) != {bool}:
        raise invalid(names.mixed(y_true, places.true, null=False, like=True))
    if not set(map(type, y_pred)) <= {bool, type(None)}:
        raise invalid(names.mixed(y_pred, places.predicted, null=True, like=True))
    texts = {True: "True", False: "False", None: None}
    return _code_strings([texts[item] for item in y_true], [texts[item] for item in y_pred], places)


def looked_up(values: list[Any], codes: Codes) -> Array | None:
    """Code values by a dictionary; None where one is an array or an object."""
    try:
        # The fastest loop; it raises ValueError at the 257th distinct label.
        return np.frombuffer(bytes(map(codes.__getitem__, values)), dtype=np.uint8)
    except ValueError:
        return np.fromiter(map(codes.__getitem__, values), np.uint32, len(values))
    except TypeError:
        return None


def _code_integers(
    y_true: list[Any], y_pred: list[Any], places: Pointers, *, without_booleans: bool
) -> Raw:
    true = integers_of(y_true, places.true, null=False, without_booleans=without_booleans)
    predicted = integers_of(y_pred, places.predicted, null=True, without_booleans=without_booleans)
    distinct, codes = numbered(true, predicted)
    texts: list[str | None] = [str(value) for value in distinct.tolist()]
    if predicted.dtype == np.float64 and np.isnan(predicted).any():
        texts.append(None)
    return Raw(texts, codes[0], codes[1], places, rank=None)
