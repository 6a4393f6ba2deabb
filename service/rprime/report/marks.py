"""Marks: where an interval, a value and its baseline stand on an axis, in percent of its width."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, inf, isfinite, log10
from typing import Self

from rprime.report.measures import Measure
from rprime.report.text import bound, decimal, span

MOST_STEPS = 5
NARROWEST = 0.8
"""Percent: what is narrower could not be seen."""
Ends = tuple[float, float]
Interval = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class Axis:
    """A stretch of numbers between two round ones."""

    low: float
    high: float

    @classmethod
    def around(cls, numbers: Iterable[float | None], within: Ends = (-inf, inf)) -> Self:
        """Choose round ends around numbers, but none beyond what is possible."""
        finite = [number for number in numbers if number is not None and isfinite(number)]
        if not finite:
            return cls(0.0, 1.0)
        low, high = min(finite), max(finite)
        step = round_step(high - low or abs(low) or 1.0)
        low, high = floor(low / step) * step, ceil(high / step) * step
        low, high = (low, high) if low < high else (low - step, high + step)
        return cls(max(low, within[0]), min(high, within[1]))

    @property
    def ends(self) -> tuple[str, str]:
        """Both ends in words."""
        return bound(self.low), bound(self.high)

    def at(self, number: float) -> float:
        """Place a number, in percent, held within the axis."""
        share = (number - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(100 * min(max(share, 0.0), 1.0), 2)


def union(ranges: Iterable[Ends]) -> Ends:
    """Return the range of several indices together; of none, all numbers."""
    ends = list(ranges) or [(-inf, inf)]
    return min(low for low, _ in ends), max(high for _, high in ends)


def round_step(width: float) -> float:
    """Return the smallest round step that divides a width into few parts."""
    power = 10.0 ** floor(log10(width / MOST_STEPS))
    return next(f * power for f in (1, 2, 5, 10) if width / (f * power) <= MOST_STEPS)


@dataclass(frozen=True, slots=True)
class Mark:
    """A value and an interval in percent; what is drawn is said in words, too."""

    at: float
    start: float
    width: float
    """Of the interval; 0 where there is none."""
    against: float | None
    """A baseline or a limit."""
    words: str

    @classmethod
    def of(
        cls, axis: Axis, value: float, interval: Interval, against: float | None, words: str
    ) -> Self:
        """Place everything on an axis."""
        start, width = axis.at(value), 0.0
        low, high = interval
        if low is not None and high is not None:
            start = axis.at(low)
            width = max(axis.at(high) - start, NARROWEST)
        other = None if against is None else axis.at(against)
        return cls(axis.at(value), start, round(width, 2), other, words)


def common_axis(measures: Iterable[Measure]) -> Axis:
    """Choose the axis on which measures are compared with each other."""
    every = list(measures)
    numbers = [
        number
        for m in every
        for number in (m.value, m.low, m.high, m.change.baseline if m.change else None)
    ]
    return Axis.around(numbers, union(m.index.range for m in every))


def mark_of(measure: Measure, axis: Axis) -> Mark | None:
    """Draw a measure; None where it has no value."""
    if measure.value is None:
        return None
    baseline = measure.change.baseline if measure.change else None
    words = f"{measure.index.name} {decimal(measure.value)}"
    if measure.low is not None:
        words += f", interval {span(measure.low, measure.high)}"
    if baseline is not None:
        words += f", baseline {decimal(baseline)}"
    return Mark.of(axis, measure.value, (measure.low, measure.high), baseline, words)
