"""Per class: a row for each class, a panel for each index, intervals as whiskers."""

from typing import TYPE_CHECKING, Any

import numpy as np

from rprime.report.class_charts import ClassChart
from rprime.report.decimals import percent
from rprime.report.figures.confusion import about
from rprime.report.figures.palette import line_style, palette
from rprime.report.figures.sheet import Canvas, Picture, draw, named
from rprime.report.figures.ticks import number_values
from rprime.report.styles import series_style
from rprime.report.subject import ReportSubject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW = 0.2
"""Height of a class, in inches."""
_NUMBER = 0.45
"""Width of a number below a panel, in inches."""


def draw_per_class(subject: ReportSubject, canvas: Canvas) -> bytes:
    """Draw the per-class indices of an evaluation, each in a panel of its own."""
    chart = ClassChart.ordered(subject)
    picture = Picture(
        title=chart.title,
        about=about(subject),
        height=max(len(chart.labels), 3) * _ROW + 0.75,
        fill=lambda figure: _fill(figure, chart),
        notes=(chart.order, _marks(chart, subject)),
    )
    return draw(picture, canvas)


def _marks(chart: ClassChart, subject: ReportSubject) -> str:
    marks = ["Dots are values"]
    if np.isfinite(chart.low).any():
        marks.append(f"whiskers {percent(subject.evaluation.options.confidence)} intervals")
    if chart.compared:
        marks.append(f"rings what it was compared with, {named(subject.baseline or 'baseline')}")
    return "; ".join(marks) + "."


def _fill(figure: "Figure", chart: ClassChart) -> None:
    panels = figure.subplots(1, len(chart.indices), sharey=True, squeeze=False)[0]
    room = figure.get_figwidth() / len(panels)
    for number, (index, axes) in enumerate(zip(chart.indices, panels, strict=True)):
        axes.set_title(index.name)
        _plot(axes, chart, number)
        number_values(axes.xaxis, min(5, max(2, int(room / _NUMBER))))
    first: Axes = panels[0]
    first.set_yticks(range(len(chart.labels)), [named(label) for label in chart.labels])
    first.set_ylim(len(chart.labels) - 0.4, -0.6)


def _plot(axes: "Axes", chart: ClassChart, number: int) -> None:
    """Draw one index of all classes."""
    rows, axis, colours = np.arange(len(chart.labels)), chart.axis(number), palette()
    colour = line_style(series_style(0))["color"]
    # A dot at the end of the axis is whole.
    mark: dict[str, Any] = {"clip_on": False, "zorder": 4}
    axes.grid(axis="x")
    axes.set_xlim(axis.low, axis.high)
    across = axes.get_yaxis_transform()
    axes.hlines(rows, 0, 1, color=colours["line"], linewidth=0.5, transform=across)
    whiskers = axes.hlines(rows, chart.low[number], chart.high[number], color=colour)
    whiskers.set(gid="whiskers", linewidth=2.2, alpha=0.45, clip_on=False)
    before = axes.scatter(chart.baseline[number], rows, 26, facecolor="none", **mark)
    before.set(gid="baseline", edgecolor=colours["ink"], linewidth=1.0)
    values = axes.scatter(chart.values[number], rows, 16, color=colour, linewidth=0, **mark)
    values.set_gid("values")
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
