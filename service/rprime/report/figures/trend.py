"""Trend: overall or per-class indices with their intervals over a history."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rprime.core.arrays import Array
from rprime.report.decimals import decimal
from rprime.report.figures.palette import palette
from rprime.report.figures.sheet import Canvas, Picture, TooMuchToDrawError, draw, named
from rprime.report.figures.steps import (
    MOST_MARKED,
    End,
    FigureStep,
    draw_nothing,
    height_of,
    last_of,
    name_ends,
    panels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_COURSES = 7
_VERDICTS = {"fail": ("X", "gate failed"), "inconclusive": ("D", "gate inconclusive")}


@dataclass(frozen=True, eq=False)
class Course:
    """An index over some steps of a history.

    Parameters
    ----------
    places
        Which steps, rising.
    values, low, high
        One for each of them; NaN where there is nothing.
    """

    name: str
    places: Array
    values: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class TrendLines:
    """Courses over the same steps."""

    title: str
    about: str
    steps: tuple[FigureStep, ...]
    courses: tuple[Course, ...]


def draw_trend(trend: TrendLines, canvas: Canvas) -> bytes:
    """Draw values with their intervals over a history.

    Raises
    ------
    TooMuchToDrawError
        If there are too many courses.
    """
    if len(trend.courses) > MOST_COURSES:
        raise TooMuchToDrawError(
            f"A trend shows at most {MOST_COURSES} lines, one for each index and model: name "
            "fewer indices, or one `model`."
        )
    if not trend.steps:
        return draw_nothing(trend.title, trend.about, canvas)
    known = any(np.isfinite(course.low).any() for course in trend.courses)
    picture = Picture(
        title=trend.title,
        about=trend.about,
        height=height_of(trend.steps),
        fill=lambda figure: _fill(figure, trend, canvas),
        notes=("Bands: the interval of each value by itself.",) if known else (),
    )
    return draw(picture, canvas)


def _fill(figure: "Figure", trend: TrendLines, canvas: Canvas) -> None:
    (axes,) = panels(figure, [trend.title], trend.steps, canvas)
    marked = len(trend.steps) <= MOST_MARKED
    ends = [_plot(axes, course, i, marked=marked) for i, course in enumerate(trend.courses)]
    _mark_verdicts(axes, trend)
    name_ends(axes, [end for end in ends if end is not None])


def _plot(axes: "Axes", course: Course, number: int, *, marked: bool) -> End | None:
    """Draw a line with its intervals; return its end."""
    look = palette().look(number)
    ends = (course.low, course.high)
    axes.fill_between(course.places, *ends, color=look["color"], alpha=0.16, linewidth=0)
    (line,) = axes.plot(course.places, course.values, **look, linewidth=1.7)
    line.set(gid=f"course-{number + 1}", marker="o" if marked else "", markersize=4)
    last = last_of(course.places, course.values)
    if last is None:
        return None
    return End(f"{named(course.name)} {decimal(last[1])}", *last, look["color"])


def _mark_verdicts(axes: "Axes", trend: TrendLines) -> None:
    """Mark the evaluations whose gate did not pass, by shape as well as by colour."""
    handles = []
    for verdict, (marker, words) in _VERDICTS.items():
        steps = {place for place, step in enumerate(trend.steps) if step.verdict == verdict}
        points = [
            (place, value)
            for course in trend.courses
            for place, value in zip(course.places.tolist(), course.values.tolist(), strict=True)
            if place in steps
        ]
        if points:
            look: dict[str, Any] = {
                "color": palette().bad,
                "edgecolor": palette().surface,
                "zorder": 5,
            }
            x, y = zip(*points, strict=True)
            handles.append(axes.scatter(x, y, 70, marker=marker, label=words, **look))
            handles[-1].set_gid(verdict)
    if handles:
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=2)
