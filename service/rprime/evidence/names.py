"""Check and normalise class names."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from rprime.core.naming import HIDDEN, JOINERS, LONGEST_NAME
from rprime.evidence.numbers import MOST
from rprime.problems.problem import Problem, Violation, invalid, refuse
from rprime.schemas.document import kind_of

_HIDDEN = re.compile(rf"[{HIDDEN}\ud800-\udfff]")
_VISIBLE = re.compile(rf"[^\s{JOINERS}]")

Place = Callable[[int], str]
"""Returns the JSON pointer of the label with a number; called only for faults."""

RULE = (
    f"A class name has 1 to {LONGEST_NAME} characters, not only spaces, none of them a control or "
    "bidirectional-override character or, but for joiners, invisible."
)

NO_LABEL = "The item has no label. Only predictions may be missing; leave the item out."
INTEGER_RULE = "An integer label lies between -(2^53-1) and 2^53-1."


@lru_cache(maxsize=64)
def numbered(k: int) -> tuple[str, ...]:
    """Return the names "0", "1", ... for classes without names."""
    return tuple(map(str, range(k)))


def declared(labels: object, pointer: str, most: int) -> tuple[str, ...]:
    """Read the labels of a request.

    Parameters
    ----------
    labels
        An array of strings; or of integers, whose decimal texts are the names; or of booleans,
        for the names "False" and "True".
    pointer
        JSON pointer to it.
    most
        Largest number of classes.

    Returns
    -------
    The names in the order given, in NFC and without surrounding white space.
    """
    if not isinstance(labels, list) or not labels:
        found = "an empty one" if labels == [] else kind_of(labels)
        raise refuse(pointer, "not_an_array", f"An array of class names is needed, not {found}.")
    if len(labels) > most:
        raise too_many(len(labels), pointer, most)
    kinds = set(map(type, labels))
    if kinds == {bool}:
        labels = list(map(str, labels))
    elif kinds != {str}:
        labels = _decimal_texts(labels, pointer)
    return distinct(labels, lambda i: f"{pointer}/{i}")


def too_many(k: int, pointer: str, most: int) -> Problem:
    """Return the problem of more classes than the limit."""
    detail = f"There are {k} classes; at most {most} are allowed."
    return refuse(pointer, "too_many_classes", detail)


def distinct(labels: Sequence[str], place: Place) -> tuple[str, ...]:
    """Normalise names that must differ from each other.

    Parameters
    ----------
    labels
        The names as sent.
    place
        Returns the JSON pointer of each.
    """
    names = normalised(labels, place)
    if len(set(names)) < len(names):
        raise invalid(_duplicates(names, place))
    return tuple(names)


def normalised(labels: Sequence[str], place: Place) -> list[str]:
    """Check names and return them in NFC and without surrounding white space."""
    whole = "".join(labels)
    names = list(map(str.strip, labels))
    if whole.isascii():
        visible = all(names)
    else:
        visible = all(map(_VISIBLE.search, names))
        names = [unicodedata.normalize("NFC", name) for name in names]
    if not visible or max(map(len, labels)) > LONGEST_NAME or _HIDDEN.search(whole):
        raise invalid(_forbidden(labels, place))
    return names


def is_name(label: str) -> bool:
    """Whether a text can be a class name."""
    return len(label) <= LONGEST_NAME and bool(_VISIBLE.search(label)) and not _HIDDEN.search(label)


def plain(label: str) -> str:
    """Return a text, which need not be a name, in NFC and without surrounding white space."""
    return unicodedata.normalize("NFC", label.strip())


def is_integer(label: object) -> bool:
    """Whether a JSON value is an integer: 1.0 is one, true is not."""
    return type(label) is int or (type(label) is float and label.is_integer())


def mixed(values: list[Any], pointer: str, *, null: bool, like: object) -> Iterator[Violation]:
    """Yield a fault for each label that is not of the wanted kind."""
    fits: Callable[[object], bool] = is_integer
    if type(like) is not int:
        fits = type(like).__instancecheck__
    wanted = kind_of(like) if type(like) is not int else "an integer"
    for i, value in enumerate(values):
        if not fits(value) and not (null and value is None):
            detail = f"Every label is {wanted} here; this is {_kind_of(value)}."
            yield Violation(f"{pointer}/{i}", "mixed_labels", detail)


def _kind_of(value: object) -> str:
    return "null, which only `y_pred` may have" if value is None else kind_of(value)


def _decimal_texts(labels: list[Any], pointer: str) -> list[str]:
    if not all(map(is_integer, labels)):
        # The type of the first label decides.
        like: object = 0 if is_integer(labels[0]) else ""
        raise invalid(mixed(labels, pointer, null=False, like=like))
    for i, label in enumerate(labels):
        if abs(label) > MOST:
            raise refuse(f"{pointer}/{i}", "out_of_range", INTEGER_RULE)
    return [str(int(label)) for label in labels]


def _forbidden(labels: Sequence[str], place: Place) -> Iterator[Violation]:
    for i, label in enumerate(labels):
        if not is_name(label):
            yield Violation(place(i), "class_name", RULE)


def _duplicates(names: list[str], place: Place) -> Iterator[Violation]:
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if name in first:
            detail = (
                f"The same class as at {place(first[name])}, once both are in Unicode form NFC "
                "and without surrounding spaces. Use a single spelling."
            )
            yield Violation(place(i), "twin_labels", detail)
        first.setdefault(name, i)
