"""Radar: the values of the classes around a circle (Zhang, Su, Dou 2021, figure 1)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from rprime.core.arrays import Array
from rprime.report.class_charts import RadarChart, asked_indices
from rprime.report.figures.confusion import about
from rprime.report.figures.palette import MARKERS, line_style, palette
from rprime.report.figures.sheet import Canvas, Picture, draw, named
from rprime.report.figures.ticks import number_values
from rprime.report.styles import Series
from rprime.report.subject import ReportSubject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.projections.polar import PolarAxes

LONGEST_SPOKE = 14
"""Characters of a name at a spoke."""
MOST_UPRIGHT = 16
"""Spokes up to which names stand upright."""
_BAR = 0.2
"""Height of a bar, in inches."""
_BARS = 0.8
"""Height of the bars of a class, in parts of that of its row."""


def draw_radar(subject: ReportSubject, canvas: Canvas) -> bytes:
    """Draw the per-class indices of an evaluation, and its baseline where it has one."""
    chart = RadarChart.of(subject, asked_indices(subject), subject.evaluation.options.indices or ())
    height, fill = 0.72 * canvas.inches, _fill
    if chart.bars:
        height, fill = _BAR / _BARS * len(chart.outlines) * len(chart.labels) + 0.6, _fill_bars
    picture = Picture(
        title=chart.title,
        about=about(subject),
        height=height,
        fill=lambda figure: fill(figure, chart),
        notes=tuple(_notes(chart)),
    )
    return draw(picture, canvas)


def _notes(chart: RadarChart) -> list[str]:
    notes = [chart.order] if chart.order else []
    undefined = int(sum(np.isnan(one.values).sum() for one in chart.outlines))
    if undefined:
        missing = "bar is missing" if chart.bars else "line is open"
        notes.append(f"Where a {missing}, the value is undefined ({undefined:,} times).")
    return notes if chart.bars else [*notes, "The circles are labelled: their centre is not zero."]


def _name_outlines(figure: "Figure", handles: list[Any], chart: RadarChart) -> None:
    """Name the outlines, if there are several, in their order from the top."""
    if len(handles) > 1:
        # Named afterwards, since a legend leaves out what is called _x.
        legend = figure.legend(handles, ["x"] * len(handles), loc="outside right upper")
        for text, one in zip(legend.get_texts(), chart.outlines, strict=True):
            text.set_text(named(one.name))


def _fill_bars(figure: "Figure", chart: RadarChart) -> None:
    axes: Axes = figure.add_subplot()
    rows, each = np.arange(len(chart.labels)), _BARS / len(chart.outlines)
    handles = []
    for number, one in enumerate(chart.outlines):
        places = rows + (number - (len(chart.outlines) - 1) / 2) * each
        colour = line_style(one.style)["color"]
        handles.append(axes.barh(places, one.values, 0.9 * each, color=colour))
        for bar in handles[-1]:
            bar.set_gid(f"outline-{number + 1}")
    axes.set(xlim=(chart.axis.low, chart.axis.high), ylim=(len(rows) - 0.5, -0.5))
    axes.set_yticks(rows, [named(label) for label in chart.labels])
    axes.grid(axis="x")
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
    number_values(axes.xaxis)
    _name_outlines(figure, handles, chart)


def _fill(figure: "Figure", chart: RadarChart) -> None:
    axes: Any = figure.add_subplot(projection="polar")
    angles = np.arange(len(chart.labels)) * 2 * np.pi / len(chart.labels)
    handles = [_outline(axes, angles, one, i) for i, one in enumerate(chart.outlines)]
    number_values(axes.yaxis, 5)
    axes.set_ylim(chart.axis.low, chart.axis.high)
    axes.yaxis.set_tick_params(labelsize=7.5, labelcolor=palette()["ink-soft"])
    _name_spokes(axes, angles, chart)
    _name_outlines(figure, handles, chart)


def _outline(axes: "PolarAxes", angles: Array, one: Series, number: int) -> Any:  # noqa: ANN401 (matplotlib is an extra)
    closed = (np.append(part, part[:1]) for part in (angles, one.values))
    style, order = line_style(one.style), 4 - 0.1 * number
    (line,) = axes.plot(*closed, **style, linewidth=1.7, zorder=order, clip_on=False)
    line.set(marker=MARKERS[one.style.symbol], markersize=3.6, gid=f"outline-{number + 1}")
    return line


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
        axes.text(
            angle, beyond, named(label, LONGEST_SPOKE), size=8.5, **_turn(angle, turned=turned)
        )


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
