"""Axes: scales with round numbers, and names beside them that never cover each other."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from rprime.report.charts.drawing import (
    Paint,
    Path,
    Point,
    Shape,
    Text,
    fitted,
    moved,
    rectangle,
    widest,
    width_of,
)
from rprime.report.marks import Axis, round_step
from rprime.report.styles import SeriesStyle
from rprime.report.text import bound, shortened, shown

LONGEST_NAME = 24
"""Characters of a class name that stand beside a plot."""
LINE = 15.0
"""Height of a name."""
GAP = 6.0
"""Between an axis and what stands beside it."""
NUMBER = 36.0
"""Width of a number at an axis with the space around it."""
GRID = Paint(stroke="line")
FRAME = Paint(stroke="ink-soft")
REFERENCE = Paint("surface", "ink-soft", 1.5)
"""Of a baseline: hollow and grey, always."""


def shown_class(label: str, most: int = LONGEST_NAME) -> str:
    """Return the name of a class as a plot shows it."""
    return shortened(shown(label), most)


def stroke_of(style: SeriesStyle, width: float = 2.0) -> Paint:
    """Return how the line of a series is painted."""
    return Paint("", style.colour, width, style.dash)


@dataclass(frozen=True, slots=True)
class Scale:
    """Where numbers stand between two places."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def of(cls, axis: Axis, start: float, end: float) -> "Scale":
        """Place the ends of an axis."""
        return cls(axis.low, axis.high, start, end)

    def __call__(self, value: float) -> float:
        """Place a number."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """Place round numbers, at most so many, each as it is written."""
        if not self.high > self.low:
            return [(self(self.low), bound(self.low))]
        smallest = round_step(self.high - self.low)
        power = 10.0 ** floor(log10(smallest) + 1e-9)
        steps = [f * power for f in (1, 2, 5, 10, 20, 50, 100) if f * power >= 0.99 * smallest]
        sets = (self._multiples(step) for step in steps)
        numbers = next((some for some in sets if len(some) <= most), [self.low, self.high])
        return [(self(number), bound(number)) for number in numbers]

    def _multiples(self, step: float) -> list[float]:
        """Return the multiples of a step within the ends."""
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        return [n * step for n in range(first, last + 1)]


def across(scale: Scale, top: float, bottom: float, *, labels: float | None = None) -> list[Shape]:
    """Draw a horizontal axis: a line at each round number, and the numbers at a height."""
    ticks = scale.ticks(max(2, int((scale.end - scale.start) / NUMBER)))
    grid = Path([[(x, top), (x, bottom)] for x, _ in ticks], GRID)
    height = top - GAP if labels is None else labels
    return [grid, *(Text(x, height, text, "middle", colour="ink-soft") for x, text in ticks)]


def upright(scale: Scale, left: float, right: float, most: int = 6) -> list[Shape]:
    """Draw a vertical axis: a line at each round number, and the numbers on its left."""
    ticks = scale.ticks(most)
    grid = Path([[(left, y), (right, y)] for y, _ in ticks], GRID)
    texts = (Text(left - GAP, y + 4, text, "end", colour="ink-soft") for y, text in ticks)
    return [grid, *texts]


def room_of(scale: Scale, most: int = 6) -> float:
    """Return the width of the numbers of a vertical axis."""
    return widest(text for _, text in scale.ticks(most)) + 2 * GAP


def names_across(
    names: Sequence[str], places: Sequence[float], y: float, room: float
) -> list[Text]:
    """Name places from left to right: beside each other, else turned, of too many every nth."""
    if not names:
        return []
    longest = widest(names)
    if longest + 8 <= room:
        return [Text(x, y + LINE, name, "middle") for name, x in zip(names, places, strict=True)]
    step = max(1, ceil(LINE / room))
    pairs = list(zip(names, places, strict=True))[::step]
    return [Text(x + 4, y + GAP, name, "end", turn=-90) for name, x in pairs]


def height_of(names: Sequence[str], room: float) -> float:
    """Return the height of `names_across`."""
    longest = widest(names)
    return LINE + GAP if longest + 8 <= room else longest + 2 * GAP


def names_down(names: Sequence[str], places: Sequence[float], x: float, room: float) -> list[Text]:
    """Name places from above downwards, on the left of x; of too many every nth."""
    step = max(1, ceil(LINE / room)) if names else 1
    pairs = list(zip(names, places, strict=True))[::step]
    return [Text(x, y + 4, name, "end") for name, y in pairs]


def apart(places: Sequence[float], gap: float, end: float) -> list[float]:
    """Keep places at least a gap apart: from the first downwards, then from the end back."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    spread = list(places)
    last = -float("inf")
    for i in order:
        spread[i] = last = max(spread[i], last + gap)
    last = end + gap
    for i in reversed(order):
        spread[i] = last = min(spread[i], last - gap)
    return spread


def interval(low: float, high: float, y: float) -> list[Point]:
    """Return the line of an interval in a row."""
    return [(low, y), (high, y)]


def legend(
    entries: Sequence[tuple[Sequence[Shape], str]], x: float, y: float, width: float
) -> tuple[list[Shape], float]:
    """Write what marks mean, from left to right in lines; return it and its height.

    Each mark is drawn in 28 pixels from 0 on, around the height 0.
    """
    shapes: list[Shape] = []
    left, top = x, y + LINE
    for marks, words in entries:
        name = fitted(words, width - 40)
        needed = 36 + width_of(name) + 16
        if left > x and left + needed > x + width + 16:
            left, top = x, top + LINE + GAP
        shapes += moved(marks, left, top - 4)
        shapes.append(Text(left + 36, top, name))
        left += needed
    return shapes, top - y + GAP


def swatch(paint: Paint) -> Path:
    """Return a line for a legend."""
    return Path([[(0, 0), (28, 0)]], paint)


def cells(rectangles: Iterable[tuple[float, float, float, float]], paint: Paint, name: str) -> Path:
    """Return rectangles that are painted alike, as one path."""
    return Path([rectangle(*r) for r in rectangles], paint, closed=True, name=name)
