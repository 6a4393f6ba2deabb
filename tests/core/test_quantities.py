"""Quantities: a number, its noun and its verb fit."""

import pytest

from rprime.core.quantities import conditions, plural


@pytest.mark.parametrize(
    ("number", "noun", "verb", "said"),
    [
        (1, "item", "are", "1 item is"),
        (1.0, "class", "", "1 class"),
        (0, "class", "have", "0 classes have"),
        (6000, "item", "", "6,000 items"),
        (2.5, "item", "need", "2.5000 items need"),
    ],
)
def test_the_words_fit_the_number(number: float, noun: str, verb: str, said: str) -> None:
    assert plural(number, noun, verb) == said


def test_slices_of_numbers_read_as_people_write_them() -> None:
    name = {"region": "EU", "age": "[30, 50)", "bright": "< 250", "length": ">= 63"}
    assert conditions(name) == "region=EU, 30 <= age < 50, bright < 250, length >= 63"
