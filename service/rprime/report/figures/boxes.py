"""Boxes: the spread of an index over the classes, or over the models (R' paper, figure 3)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rprime.core.studies.correlation import Box
from rprime.report.figures.palette import line_style, palette
from rprime.report.figures.sheet import Canvas, named
from rprime.report.figures.steps import band, draw_classes, name_ends, plot_line
from rprime.report.history_charts import MOST_BOXES, MOST_DOTS, MOST_NAMED, ClassHistory
from rprime.report.styles import series_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_LETTER = 0.085
"""Width of one, in inches."""
_NEAR = 0.08
"""Part of an axis within which there is no room for a name."""


def draw_boxes(histories: Sequence[ClassHistory], about: str, canvas: Canvas) -> bytes:
    """Draw quartiles over classes or over evaluations, each index in a panel of its own."""
    return draw_classes(histories, about, canvas, fill=_fill, notes=[_note(histories[0])])


def _note(history: ClassHistory) -> str:
    if len(history.steps) > MOST_BOXES:
        return "Bands: the middle half of the values, and all of them; the line is the median."
    dots = " Dots are values." if len(history.labels) <= MOST_DOTS else ""
    names = " The worst is named." if len(history.steps) <= MOST_NAMED else ""
    return f"Boxes are quartiles, whiskers end at the lowest and the highest value.{dots}{names}"


def _fill(axes: "Axes", history: ClassHistory) -> None:
    boxes = history.boxes
    if len(boxes) > MOST_BOXES:
        band(axes, boxes)
    else:
        _plot(axes, boxes)
        _name_values(axes, history)
    places = np.arange(len(boxes))
    overall = history.series[len(history.drawn) :]
    name_ends(axes, [plot_line(axes, one, places, f"line-{i}") for i, one in enumerate(overall, 1)])


def _name_values(axes: "Axes", history: ClassHistory) -> None:
    steps, labels = len(history.steps), len(history.labels)
    if labels <= MOST_DOTS:
        places = np.repeat(np.arange(steps), labels)
        dots = axes.scatter(places, history.values.ravel(), 10, color=palette()["ink"])
        dots.set(alpha=0.45, linewidth=0, zorder=3, gid="classes")
    if steps <= MOST_NAMED:
        _name_worst(axes, history)


def _plot(axes: "Axes", boxes: Sequence[Box | None]) -> None:
    colours = palette()
    places = [place for place, found in enumerate(boxes) if found is not None]
    stats: list[dict[str, Any]] = [
        {"med": b.median, "q1": b.lower, "q3": b.upper, "whislo": b.minimum, "whishi": b.maximum}
        for b in boxes
        if b is not None
    ]
    colour = line_style(series_style(0))["color"]
    line = {"color": colour, "linewidth": 1.3}
    axes.bxp(
        stats,
        places,
        widths=0.5,
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colours["track"], "edgecolor": colour, "linewidth": 1.3},
        whiskerprops=line,
        capprops=line,
        medianprops={"color": colour, "linewidth": 2.0},
    )


def _name_worst(axes: "Axes", history: ClassHistory) -> None:
    figure: Any = axes.get_figure()
    room = int(figure.get_figwidth() / len(history.steps) / _LETTER)
    style: dict[str, Any] = {"size": 8, "color": palette()["ink-soft"]}
    low, high = axes.get_ylim()
    outside = ((0, 4), "center", "bottom") if history.falling else ((0, -4), "center", "top")
    for place, (worst, row) in enumerate(zip(history.worst, history.values, strict=True)):
        if worst is None:
            continue
        # Beyond its mark, but beside one at the end of the axis.
        near = min(row[worst] - low, high - row[worst]) < _NEAR * (high - low)
        shift, across, down = ((5, 0), "left", "center") if near else outside
        axes.annotate(
            named(history.labels[worst], max(room, 3)),
            (place, row[worst]),
            shift,
            textcoords="offset points",
            ha=across,
            va=down,
            **style,
        )
