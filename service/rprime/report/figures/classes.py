"""Classes: their values in rows with whiskers, or around a circle."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rprime.core.arrays import Array
from rprime.report.class_charts import ClassChart, RadarChart, asked_indices
from rprime.report.figures.axes import MARKERS, line_style, number_values, palette
from rprime.report.figures.confusion import about
from rprime.report.figures.sheet import Canvas, Picture, draw, named
from rprime.report.measures import Measures
from rprime.report.styles import series_style
from rprime.report.subject import ReportSubject
from rprime.report.text import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.projections.polar import PolarAxes

_ROW = 0.2
"""Height of a class, or of a bar, in inches."""
_NUMBER = 0.45
"""Width of a number below a panel, in inches."""
LONGEST_SPOKE = 14
"""Characters of a name at a spoke."""
MOST_UPRIGHT = 16
"""Spokes up to which names stand upright."""
_BARS = 0.8
"""Height of the bars of a class, in parts of that of its row."""


def draw_per_class(subject: ReportSubject, canvas: Canvas) -> bytes:
    """Draw a row for each class and a panel for each index, intervals as whiskers."""
    chart = ClassChart.of(Measures(subject), asked_indices(subject)).as_in_table(subject)
    marks = ["Dots are values"]
    if np.isfinite(chart.low).any():
        marks.append(f"whiskers {percent(subject.evaluation.options.confidence)} intervals")
    if chart.compared:
        marks.append(f"rings what it was compared with, {named(subject.baseline or 'baseline')}")
    height, fill = max(len(chart.labels), 3) * _ROW + 0.75, partial(_fill_panels, chart=chart)
    notes = (chart.order, f"{'; '.join(marks)}.")
    return draw(Picture(chart.title, about(subject), height, fill, notes), canvas)


def _fill_panels(figure: "Figure", chart: ClassChart) -> None:
    panels = figure.subplots(1, len(chart.indices), sharey=True, squeeze=False)[0]
    room = figure.get_figwidth() / len(panels)
    for number, (index, axes) in enumerate(zip(chart.indices, panels, strict=True)):
        axes.set_title(index.name)
        _plot(axes, chart, number)
        number_values(axes.xaxis, min(5, max(2, int(room / _NUMBER))))
    panels[0].set_yticks(range(len(chart.labels)), [named(label) for label in chart.labels])
    panels[0].set_ylim(len(chart.labels) - 0.4, -0.6)


def _plot(axes: "Axes", chart: ClassChart, number: int) -> None:
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


def draw_radar(subject: ReportSubject, canvas: Canvas) -> bytes:
    """Draw the classes and a baseline around a circle (Zhang, Su, Dou 2021, figure 1)."""
    chart = RadarChart.of(subject, asked_indices(subject), subject.evaluation.options.indices or ())
    height, fill, missing = 0.72 * canvas.inches, _fill_circle, "line is open"
    if chart.bars:
        height = _ROW / _BARS * len(chart.outlines) * len(chart.labels) + 0.6
        fill, missing = _fill_bars, "bar is missing"
    notes, undefined = (
        [chart.order],
        sum(np.isnan(outline.values).sum() for outline in chart.outlines),
    )
    if undefined:
        notes.append(f"Where a {missing}, the value is undefined ({undefined:,} times).")
    if not chart.bars:
        notes.append("The circles are labelled: their centre is not zero.")
    picture = Picture(chart.title, about(subject), height, partial(fill, chart=chart), tuple(notes))
    return draw(picture, canvas)


def _name_outlines(figure: "Figure", handles: list[Any], chart: RadarChart) -> None:
    """Name the outlines, if there are several, in their order from the top."""
    if len(handles) > 1:
        # Named afterwards, since a legend leaves out what is called _x.
        legend = figure.legend(handles, ["x"] * len(handles), loc="outside right upper")
        for text, outline in zip(legend.get_texts(), chart.outlines, strict=True):
            text.set_text(named(outline.name))


def _fill_bars(figure: "Figure", chart: RadarChart) -> None:
    axes: Axes = figure.add_subplot()
    rows, each = np.arange(len(chart.labels)), _BARS / len(chart.outlines)
    handles = []
    for number, outline in enumerate(chart.outlines):
        places = rows + (number - (len(chart.outlines) - 1) / 2) * each
        colour = line_style(outline.style)["color"]
        handles.append(axes.barh(places, outline.values, 0.9 * each, color=colour))
        for bar in handles[-1]:
            bar.set_gid(f"outline-{number + 1}")
    axes.set(xlim=(chart.axis.low, chart.axis.high), ylim=(len(rows) - 0.5, -0.5))
    axes.set_yticks(rows, [named(label) for label in chart.labels])
    axes.grid(axis="x")
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
    number_values(axes.xaxis)
    _name_outlines(figure, handles, chart)


def _fill_circle(figure: "Figure", chart: RadarChart) -> None:
    axes: Any = figure.add_subplot(projection="polar")
    angles = np.arange(len(chart.labels)) * 2 * np.pi / len(chart.labels)
    handles = []
    for number, outline in enumerate(chart.outlines):
        closed = (np.append(part, part[:1]) for part in (angles, outline.values))
        style, order = line_style(outline.style), 4 - 0.1 * number
        handles += axes.plot(*closed, **style, linewidth=1.7, zorder=order, clip_on=False)
        marked = {"marker": MARKERS[outline.style.symbol], "markersize": 3.6}
        handles[-1].set(**marked, gid=f"outline-{number + 1}")
    number_values(axes.yaxis, 5)
    axes.set_ylim(chart.axis.low, chart.axis.high)
    axes.yaxis.set_tick_params(labelsize=7.5, labelcolor=palette()["ink-soft"])
    _name_spokes(axes, angles, chart)
    _name_outlines(figure, handles, chart)


def _name_spokes(axes: "PolarAxes", angles: Array, chart: RadarChart) -> None:
    """Name the classes around the circle, along their spokes where they are many."""
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_rlabel_position(float(np.degrees(np.pi / len(angles))))
    axes.set_xticks(angles, [""] * len(angles))
    axes.spines["polar"].set_color(palette()["line"])
    inner, outer = axes.get_ylim()
    beyond = outer + 0.05 * (outer - inner)
    turned = len(angles) > MOST_UPRIGHT
    for angle, label in zip(angles.tolist(), chart.labels, strict=True):
        turn = _turn(angle, turned=turned)
        axes.text(angle, beyond, named(label, LONGEST_SPOKE), size=8.5, **turn)


def _turn(angle: float, *, turned: bool) -> dict[str, Any]:
    """Let a name begin, or end, at the circle; clockwise from the top."""
    side = round(np.sin(angle), 6)
    if turned:
        degrees = 90 - np.degrees(angle)
        placed = {"rotation": degrees + 180 if side < 0 else degrees, "rotation_mode": "anchor"}
        return placed | {"ha": "right" if side < 0 else "left", "va": "center_baseline"}
    height = round(np.cos(angle), 6)
    upright = "bottom" if height > 0 else "top"
    return {
        "ha": "left" if side > 0 else "right" if side < 0 else "center",
        "va": "center_baseline" if side else upright,
    }
