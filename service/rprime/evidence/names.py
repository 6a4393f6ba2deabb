"""Check and normalise class names."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from rprime.core.labels import HIDDEN, JOINERS, LONGEST_NAME
from rprime.evidence.numbers import MOST
from rprime.problems.problem import Problem, Violation, invalid, refuse
from rprime.schemas.document import kind_of

_HIDDEN = re.compile(rf"[{HIDDEN}\ud800-\udfff]")
_VISIBLE = re.compile(rf"[^\s{JOINERS}]")

Place = Callable[[int], str]
"""Returns the JSON pointer of the label with a number; called only for faults."""

TOO_LONG = f"The name of a class or slice has at most {LONGEST_NAME} characters; this has"

SPURIOUS = 'count its prediction as spurious by `"missing_true": "spurious"`.'
NEITHER = "The item has neither a true label nor a prediction: leave it out."
NO_LABEL = f"The item has no label. Only predictions may be missing; leave it out, or {SPURIOUS}"
NESTED = (
    "A label is a string, an integer or a boolean. Send a column as a flat array, the position of "
    "the 1 in place of a one-hot row, and probabilities as `y_score`."
)
INTEGER_RULE = "An integer label lies between -(2^53-1) and 2^53-1."


@lru_cache(maxsize=64)
def number_names(k: int) -> tuple[str, ...]:
    """Return the names "0", "1", ... for classes without names."""
    return tuple(map(str, range(k)))


def declared(labels: object, pointer: str, most: int) -> tuple[str, ...]:
    """Read the labels of a request, in NFC and without surrounding white space.

    They are strings; or integers, whose decimal texts are the names; or booleans, for the names
    "False" and "True".
    """
    if not isinstance(labels, list) or not labels:
        kind = "an empty one" if labels == [] else kind_of(labels)
        raise refuse(pointer, "not_an_array", f"An array of class names is needed, not {kind}.")
    if len(labels) > most:
        raise too_many_classes(len(labels), pointer, most)
    kinds = set(map(type, labels))
    if kinds == {bool}:
        labels = list(map(str, labels))
    elif kinds != {str}:
        if not all(map(is_integer, labels)):
            # The type of the first label decides.
            like: object = 0 if is_integer(labels[0]) else ""
            raise invalid(mixed(labels, pointer, null=False, like=like))
        bad = [i for i, label in enumerate(labels) if abs(label) > MOST]
        if bad:
            raise refuse(f"{pointer}/{bad[0]}", "out_of_range", INTEGER_RULE)
        labels = [str(int(label)) for label in labels]
    return distinct(labels, lambda i: f"{pointer}/{i}")


def too_many_classes(k: int, pointer: str, most: int) -> Problem:
    """Return the problem of more classes than the limit."""
    detail = f"There are {k} classes; at most {most} are allowed."
    return refuse(pointer, "too_many_classes", detail)


def distinct(labels: Sequence[str], place: Place) -> tuple[str, ...]:
    """Normalise names that must differ from each other."""
    names = normalised(labels, place)
    if len(set(names)) < len(names):
        first: dict[str, int] = {}
        twins = [(first.setdefault(name, i), i) for i, name in enumerate(names)]
        raise invalid(
            Violation(place(i), "twin_labels", _twins(labels[i], labels[earlier], place(earlier)))
            for earlier, i in twins
            if earlier != i
        )
    return tuple(names)


def _twins(label: str, other: str, place: str) -> str:
    """Say what two spellings of one name differ by, without the name."""
    if label == other:
        return f"The same name stands at {place}. Name each class once."
    if label.strip() == other.strip():
        return f"The name at {place} differs from this only by surrounding spaces: remove them."
    return f"The name at {place} is the same in Unicode form NFC. Use a single spelling."


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
        raise invalid(
            Violation(place(i), "class_name", fault)
            for i, label in enumerate(labels)
            if (fault := _fault(label))
        )
    return names


def is_name(label: str) -> bool:
    """Whether a text can be a class name."""
    return not _fault(label)


def _fault(label: str) -> str:
    """Say why a text cannot be a class name; empty if it can."""
    if len(label) > LONGEST_NAME:
        return f"{TOO_LONG} {len(label):,}."
    if match := _HIDDEN.search(label):
        kind = "a control" if unicodedata.category(match[0]) == "Cc" else "an invisible"
        name = unicodedata.name(match[0], "").lower()
        code = f"U+{ord(match[0]):04X}{f' ({name})' if name else ''}"
        return f"Character {match.start() + 1} of the name is {kind} character, {code}: remove it."
    if _VISIBLE.search(label):
        return ""
    return "The name is empty." if not label else "The name has nothing but spaces or joiners."


def normalised_text(label: str) -> str:
    """Return a text, which need not be a name, in NFC and without surrounding white space."""
    return unicodedata.normalize("NFC", label.strip())


def is_integer(label: object) -> bool:
    """Whether a JSON value is an integer: 1.0 is one, true is not."""
    return type(label) is int or (type(label) is float and label.is_integer())


def mixed(values: Sequence[Any], pointer: str, *, null: bool, like: object) -> Iterator[Violation]:
    """Yield a fault for each label that is not of the wanted kind."""
    integers = type(like) is int
    expected_kind = "an integer" if integers else kind_of(like)
    for i, value in enumerate(values):
        fits = is_integer(value) if integers else isinstance(value, type(like))
        if not fits and not (null and value is None):
            kind = "null, which only `y_pred` may have" if value is None else kind_of(value)
            nested = isinstance(value, list | dict)
            detail = NESTED if nested else f"Every label is {expected_kind} here; this is {kind}."
            if isinstance(value, float) and 0 <= value <= 1 and not value.is_integer():
                detail += " Send scores as `y_score`, with a column for each class."
            if value is None and pointer.endswith("/y_true"):
                detail += f" Leave the item out, or {SPURIOUS}"
            if isinstance(like, bool) or isinstance(value, bool):
                detail += " Make all of them integers, as by `.astype(int)`, or all strings."
            yield Violation(f"{pointer}/{i}", "mixed_labels", detail)
