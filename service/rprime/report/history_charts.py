"""History charts: indices over the evaluations of a project, as a page and a file draw them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

import numpy as np

from rprime.core.arrays import Array
from rprime.core.studies import Quartiles, box
from rprime.report.marks import Axis, Ends
from rprime.report.styles import VERDICT_STYLES, Series, SeriesStyle, series_style
from rprime.report.text import decimal

MOST_LINES = 14
"""Classes up to which each has a line; of more, some are drawn over the bands of all."""
MOST_WEAKEST = 5
MOST_FALLEN = 3
MOST_BOXES = 40
"""Evaluations up to which each has a box; of more, the quartiles become bands."""
MOST_DOTS = 50
"""Classes up to which each has a dot beside its box."""
MOST_NAMED = 12
"""Evaluations up to which the worst class of each is named."""
MOST_MARKED = 60
"""Evaluations up to which each value of a line is marked."""
Point = tuple[float | None, float | None, float | None]


@dataclass(frozen=True, slots=True)
class FigureStep:
    """An evaluation of a history: what it is called, and the verdict on it."""

    name: str
    verdict: str | None = None

    @property
    def mark(self) -> SeriesStyle | None:
        """What marks it where its gate did not pass."""
        return VERDICT_STYLES.get(self.verdict or "")


@dataclass(frozen=True, eq=False)
class TrendChart:
    """Indices over the same steps, whose values lie `within` their ranges."""

    title: str
    about: str
    steps: tuple[FigureStep, ...]
    courses: tuple[Series, ...]
    within: Ends = (-inf, inf)

    @property
    def axis(self) -> Axis:
        """The ends of the vertical axis."""
        parts = [
            part for course in self.courses for part in (course.values, course.low, course.high)
        ]
        return Axis.around(np.concatenate(parts), self.within)


def course_of(
    name: str, number: int, places: Array, points: Iterable[Point], *, lone: bool
) -> Series:
    """Return a line with intervals; it ends with its newest value, unless `lone` with its name."""
    values, low, high = np.array([*points], np.float64).reshape(-1, 3).T
    finite = values[np.isfinite(values)]
    end = f"{'' if lone else name} {decimal(float(finite[-1]))}".strip() if finite.size else ""
    return Series(name, series_style(number), values, end, places, low, high)


@dataclass(frozen=True, eq=False)
class ClassHistory:
    """A panel of a figure: several values at each step.

    Parameters
    ----------
    steps
        The evaluations, oldest first; of boxes by class, the classes.
    labels
        What has a value at each step: classes, indices, or evaluations.
    values
        Shape (step, label); NaN where it is undefined, or not there.
    overall
        Values of the whole at each step, shape (step,), by the name of their index.
    falling
        Whether small values are the good ones.
    """

    title: str
    steps: tuple[FigureStep, ...]
    labels: tuple[str, ...]
    values: Array
    overall: Mapping[str, Array] = field(default_factory=dict)
    falling: bool = False
    within: Ends = (-inf, inf)

    @cached_property
    def boxes(self) -> list[Quartiles | None]:
        """The quartiles at each step."""
        return [box(row) for row in self.values]

    @property
    def good(self) -> Array:
        """The values, larger ones better."""
        return -self.values if self.falling else self.values

    @property
    def worst(self) -> list[int | None]:
        """The number of the worst label at each step; None where there is no value."""
        return [int(np.nanargmin(row)) if np.isfinite(row).any() else None for row in self.good]

    @property
    def banded(self) -> bool:
        """Whether only some of the labels have a line, over the bands of all."""
        return len(self.labels) > MOST_LINES

    @cached_property
    def drawn(self) -> list[int]:
        """The labels that have a line: all, or the weakest and those that fell most."""
        if not self.banded or not self.steps:
            return list(range(len(self.labels)))
        weakest = self.weakest[:MOST_WEAKEST]
        fallen = np.argsort(self.good[-1] - self.good[-2 % len(self.good)], kind="stable").tolist()
        return [*weakest, *[i for i in fallen if i not in weakest][:MOST_FALLEN]]

    @property
    def weakest(self) -> list[int]:
        """The labels from the worst in the newest step."""
        order: list[int] = np.argsort(self.good[-1], kind="stable").tolist()
        return order

    @property
    def series(self) -> list[Series]:
        """The lines: those of labels, then those of the whole."""
        lines = [(self.labels[i], self.values[:, i]) for i in self.drawn]
        lines += self.overall.items()
        return [Series(name, series_style(i), row, name) for i, (name, row) in enumerate(lines)]

    @property
    def axis(self) -> Axis:
        """The ends of the vertical axis."""
        return Axis.around(
            np.concatenate([self.values.ravel(), *self.overall.values()]), self.within
        )
