"""Styles: series with their colours, dashes and symbols, for the browser and for files alike."""

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from rprime.core.arrays import Array

DIGITS = 7
"""Pages show four decimals; what they add up has some more."""
_nothing = partial(np.empty, 0)
_COLOURS = tuple(f"series-{number}" for number in range(1, 8))
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.5), (1.2, 1.2), (6, 1.5, 1.2, 1.5))
_SYMBOLS = ("circle", "rect", "diamond", "triangle")


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """How a series is drawn."""

    colour: str
    """A name of tokens.css."""
    dash: tuple[float, ...]
    """Lengths of dashes and gaps in widths of the line; none where it is solid."""
    symbol: str
    """What marks its values, by the names of `SYMBOLS` and circle."""
    words: str = ""
    """What a symbol says that stands for something."""


def series_style(number: int) -> SeriesStyle:
    """Return the style of a series: two that share a colour differ in dashes and symbol."""
    colours = len(_COLOURS)
    turn = number + 2 * (number // colours)
    dash, symbol = _DASHES[turn % len(_DASHES)], _SYMBOLS[turn % len(_SYMBOLS)]
    return SeriesStyle(_COLOURS[number % colours], dash, symbol)


VERDICT_STYLES = {
    "fail": SeriesStyle("bad", (), "diamond", "gate failed"),
    "inconclusive": SeriesStyle("open", (), "triangle", "gate inconclusive"),
    "no_baseline": SeriesStyle("open", (), "triangle", "gate without a baseline"),
}
"""Marks of the evaluations whose gate did not pass."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values that are drawn alike with their intervals, shape (n,); NaN where there is nothing."""

    name: str
    style: SeriesStyle
    values: Array
    end: str = ""
    """What stands where a line ends."""
    places: Array = field(default_factory=_nothing)
    """Which steps of a history have them, rising."""
    low: Array = field(default_factory=_nothing)
    high: Array = field(default_factory=_nothing)


def rounded(numbers: Array) -> list[float]:
    """Return numbers as a page needs them; NaN stays."""
    values: list[float] = np.round(numbers, DIGITS).tolist()
    return values
