"""Trend: overall or per-class indices with their intervals over a history."""

from typing import TYPE_CHECKING

import numpy as np

from rprime.report.figures.palette import MARKERS, line_style, palette
from rprime.report.figures.sheet import Canvas, Picture, TooMuchToDrawError, draw
from rprime.report.figures.steps import draw_nothing, height_of, name_ends, panels, plot_line
from rprime.report.history_charts import TrendChart
from rprime.report.styles import VERDICT_STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_COURSES = 7


def draw_trend(trend: TrendChart, canvas: Canvas) -> bytes:
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


def _fill(figure: "Figure", trend: TrendChart, canvas: Canvas) -> None:
    (axes,) = panels(figure, [trend.title], trend.steps, canvas)
    axes.set_ylim(trend.axis.low, trend.axis.high)
    ends = []
    for number, one in enumerate(trend.courses, 1):
        colour = line_style(one.style)["color"]
        axes.fill_between(one.places, one.low, one.high, color=colour, alpha=0.16, linewidth=0)
        ends.append(plot_line(axes, one, one.places, f"course-{number}"))
    _mark_verdicts(axes, trend)
    name_ends(axes, ends)


def _mark_verdicts(axes: "Axes", trend: TrendChart) -> None:
    """Mark the evaluations whose gate did not pass, by shape as well as by colour."""
    handles = []
    for verdict, mark in VERDICT_STYLES.items():
        points = [
            (place, value)
            for course in trend.courses
            for place, value in zip(course.places.tolist(), course.values.tolist(), strict=True)
            if trend.steps[place].mark is mark
        ]
        if points:
            x, y = zip(*points, strict=True)
            dots = axes.scatter(x, y, 60, marker=MARKERS[mark.symbol], color=palette()[mark.colour])
            dots.set(gid=verdict, label=mark.words, zorder=5, clip_on=False)
            handles.append(dots)
    if handles:
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=2)
