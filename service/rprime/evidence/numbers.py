"""Check and convert arrays of numbers without a Python loop over the elements."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from rprime.core.arrays import Array
from rprime.problems.problem import MOST_COUNTED, Violation, invalid, refuse
from rprime.schemas.document import Document, kind_of

MOST = 2**53 - 1
"""Largest integer that every JSON parser reads exactly."""
FAULTS = ("not_a_number", "out_of_range")
"""Codes of what may be wrong with one number."""


@dataclass(frozen=True)
class Quantity:
    """The meaning of the numbers of an array."""

    name: str
    """With its article, to begin a sentence."""
    low: float = 0.0
    """Smallest allowed number; the largest is 2^53-1."""

    @property
    def rule(self) -> str:
        """The rule as a sentence."""
        return f"{self.name} is a number: {self.low:,.0f} or more, and at most {MOST:,}."


COUNT = Quantity("A count")
WEIGHT = Quantity("A weight")
PROBABILITY = Quantity("An inclusion probability")
SMALLEST_PROBABILITY = 1e-9
PROBABILITY_RULE = "An inclusion probability is a number from 1e-9 to 1."
COST = Quantity("A cost", low=-float(MOST))
SCORE = Quantity("A score", low=-float(MOST))


def matrix(document: Document, name: str, quantity: Quantity, shape: tuple[int, int]) -> Array:
    """Convert an array of arrays, which `lists` has checked, to float64 of a given shape."""
    rows, pointer = document.arrays[name], f"{document.pointer}/{name}"
    height, width = shape
    if len(rows) != height:
        detail = f"There are {len(rows)} rows; {height} are needed."
        raise refuse(pointer, "wrong_length", detail)
    if set(map(len, rows)) != {width}:
        detail = f"The row has length {{}}; {width} is needed."
        raise invalid(
            Violation(f"{pointer}/{i}", "wrong_length", detail.format(len(row)))
            for i, row in enumerate(rows)
            if len(row) != width
        )
    values = flat(rows, quantity, without_booleans=document.without_booleans)
    if values is None:
        faults = (_faults(row, f"{pointer}/{i}", quantity) for i, row in enumerate(rows))
        raise invalid(chain.from_iterable(faults))
    return values.reshape(shape)


def optional_vector(document: Document, name: str, quantity: Quantity, size: int) -> Array | None:
    """Convert an array as `vector` does; None if the request has none."""
    return None if document.arrays.get(name) is None else vector(document, name, quantity, size)


def vector(document: Document, name: str, quantity: Quantity, size: int) -> Array:
    """Convert an array of numbers to float64 of shape (size,)."""
    numbers, pointer = document.arrays[name], f"{document.pointer}/{name}"
    if not isinstance(numbers, list | np.ndarray):
        raise refuse(pointer, "not_an_array", f"An array is needed, not {kind_of(numbers)}.")
    if len(numbers) != size:
        detail = f"There are {len(numbers)} numbers; {size} are needed."
        raise refuse(pointer, "wrong_length", detail)
    if isinstance(numbers, np.ndarray):
        if _in_range(numbers, quantity):
            return numbers
        raise invalid(_faults(numbers.tolist(), pointer, quantity))
    values = flat([numbers], quantity, without_booleans=document.without_booleans)
    if values is None:
        raise invalid(_faults(numbers, pointer, quantity))
    return values


def lists(document: Document, name: str) -> list[list[Any]]:
    """Check that an array of a request is a non-empty array of arrays."""
    rows, pointer = document.arrays[name], f"{document.pointer}/{name}"
    if not isinstance(rows, list):
        raise refuse(pointer, "not_an_array", f"An array of arrays is needed, not {kind_of(rows)}.")
    if not rows:
        raise refuse(pointer, "empty", "The array is empty; there is nothing to evaluate.")
    if set(map(type, rows)) != {list}:
        raise invalid(
            Violation(f"{pointer}/{i}", "not_an_array", f"An array is needed, not {kind_of(row)}.")
            for i, row in enumerate(rows)
            if not isinstance(row, list)
        )
    return rows


def raise_places(places: Array, pointer: str, code: str, detail: str) -> None:
    """Raise for the first of the places, shape (places, axes), if there are any."""
    if len(places):
        raise invalid(
            Violation("/".join((pointer, *map(str, place))), code, detail)
            for place in places[:MOST_COUNTED].tolist()
        )


def flat(parts: Sequence[list[Any]], quantity: Quantity, *, without_booleans: bool) -> Array | None:
    """Join lists of numbers into one array; None if an element is no number or out of range.

    `array` accepts only numbers (and booleans), and is faster than numpy, which would guess a
    type and read "7" as a number.
    """
    if not without_booleans and bool in set(map(type, chain.from_iterable(parts))):
        return None
    for code in "qd":
        values = array(code)
        try:
            for part in parts:
                values.fromlist(part)
        except (TypeError, OverflowError):
            continue
        numbers = np.array(values, dtype=np.float64)
        return numbers if _in_range(numbers, quantity) else None
    return None


def _in_range(numbers: Array, quantity: Quantity) -> bool:
    return not numbers.size or bool(quantity.low <= numbers.min() and numbers.max() <= MOST)


def _faults(numbers: list[Any], pointer: str, quantity: Quantity) -> Iterator[Violation]:
    for i, number in enumerate(numbers):
        if type(number) not in (int, float):
            detail = f"{quantity.name} is a number, not {kind_of(number)}."
            yield Violation(f"{pointer}/{i}", "not_a_number", detail)
        elif not quantity.low <= number <= MOST:
            yield Violation(f"{pointer}/{i}", "out_of_range", quantity.rule)
