"""Per class: a row for each class, a panel for each index, intervals as whiskers."""

from typing import TYPE_CHECKING, Any

import numpy as np

from rprime.core.arrays import Array
from rprime.report.decimals import percent
from rprime.report.figures.class_values import ClassValueArrays
from rprime.report.figures.confusion import about
from rprime.report.figures.palette import palette
from rprime.report.figures.sheet import Canvas, Picture, draw, named
from rprime.report.figures.ticks import number_values
from rprime.report.subject import ReportSubject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 60
_ROW = 0.2
"""Height of a class, in inches."""
_NUMBER = 0.45
"""Width of a number below a panel, in inches."""


def draw_per_class(subject: ReportSubject, canvas: Canvas) -> bytes:
    """Draw the per-class indices of an evaluation, each in a panel of its own."""
    values = _ordered(ClassValueArrays.of(subject))
    picture = Picture(
        title=values.title,
        about=about(subject),
        height=max(len(values.labels), 3) * _ROW + 0.75,
        fill=lambda figure: _fill(figure, values),
        notes=tuple(_notes(values, subject)),
    )
    return draw(picture, canvas)


def _ordered(values: ClassValueArrays) -> ClassValueArrays:
    """Keep the labels' order where all classes fit; else put the worst ones first."""
    kept = values.worst(MOST_ROWS)
    if len(kept.labels) == kept.total:
        return kept
    order = np.argsort(kept.values[0], kind="stable")
    return kept.taken(order[::-1] if kept.indices[0].higher_is_better is False else order)


def _notes(values: ClassValueArrays, subject: ReportSubject) -> list[str]:
    notes = [values.left_out] if values.left_out else []
    marks = ["Dots are values"]
    if np.isfinite(values.low).any():
        marks.append(f"whiskers {percent(subject.evaluation.options.confidence)} intervals")
    if values.compared:
        marks.append(f"rings what it was compared with, {named(subject.baseline or 'baseline')}")
    return [*notes, "; ".join(marks) + "."]


def _fill(figure: "Figure", values: ClassValueArrays) -> None:
    panels = figure.subplots(1, len(values.indices), sharey=True, squeeze=False)[0]
    rows = np.arange(len(values.labels))
    room = figure.get_figwidth() / len(panels)
    for number, (index, axes) in enumerate(zip(values.indices, panels, strict=True)):
        axes.set_title(index.name)
        _plot(axes, rows, values, number)
        number_values(axes.xaxis, min(5, max(2, int(room / _NUMBER))))
    first: Axes = panels[0]
    first.set_yticks(rows, [named(label) for label in values.labels])
    first.set_ylim(len(rows) - 0.4, -0.6)


def _plot(axes: "Axes", rows: Array, values: ClassValueArrays, number: int) -> None:
    """Draw one index of all classes."""
    row, low, high = (part[number] for part in (values.values, values.low, values.high))
    colours = palette()
    axes.grid(axis="x")
    axes.margins(x=0.08)
    axes.hlines(rows, 0, 1, color=colours.line, linewidth=0.5, transform=axes.get_yaxis_transform())
    axes.hlines(rows, low, high, color=colours.right, linewidth=2.2, alpha=0.45).set_gid("whiskers")
    before: dict[str, Any] = {
        "facecolor": "none",
        "edgecolor": colours.ink,
        "linewidth": 1.0,
        "zorder": 3,
    }
    axes.scatter(values.baseline[number], rows, 26, **before).set_gid("baseline")
    axes.scatter(row, rows, 16, color=colours.right, zorder=4, linewidth=0).set_gid("values")
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
