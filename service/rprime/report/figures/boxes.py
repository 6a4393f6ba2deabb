"""Boxes: the spread of an index over the classes, or over the models (R' paper, figure 3)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rprime.core.studies.correlation import Box
from rprime.report.figures.lines import plot_line
from rprime.report.figures.palette import palette
from rprime.report.figures.sheet import Canvas, named
from rprime.report.figures.steps import ClassHistory, band, draw_classes, name_ends

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BOXES = 40
"""Evaluations up to which each has a box; of more, the quartiles become bands."""
MOST_DOTS = 50
"""Classes up to which each has a dot."""
MOST_NAMED = 12
"""Evaluations up to which the worst class of each is named."""


def draw_boxes(histories: Sequence[ClassHistory], about: str, canvas: Canvas) -> bytes:
    """Draw quartiles over classes or over evaluations, each index in a panel of its own."""
    return draw_classes(histories, about, canvas, fill=_fill, notes=[_note(histories[0])])


def _note(history: ClassHistory) -> str:
    if len(history.steps) > MOST_BOXES:
        return "Bands: the middle half of the values, and all of them; the line is the median."
    dots = " Dots are values." if len(history.labels) <= MOST_DOTS else ""
    names = " The lowest is named." if len(history.steps) <= MOST_NAMED else ""
    return f"Boxes are quartiles, whiskers end at the lowest and the highest value.{dots}{names}"


def _fill(axes: "Axes", history: ClassHistory) -> None:
    boxes = history.boxes
    if len(boxes) > MOST_BOXES:
        band(axes, boxes)
    else:
        _plot(axes, boxes)
        _name_values(axes, history)
    lines = enumerate(history.overall.items(), 1)
    ends = [plot_line(axes, number, name, values) for number, (name, values) in lines]
    name_ends(axes, [end for end in ends if end is not None])


def _name_values(axes: "Axes", history: ClassHistory) -> None:
    steps, labels = len(history.steps), len(history.labels)
    if labels <= MOST_DOTS:
        places = np.repeat(np.arange(steps), labels)
        dots = axes.scatter(places, history.values.ravel(), 10, color=palette().ink)
        dots.set(alpha=0.45, linewidth=0, zorder=3, gid="classes")
    if steps <= MOST_NAMED:
        _name_lowest(axes, history)


def _plot(axes: "Axes", boxes: Sequence[Box | None]) -> None:
    colours = palette()
    places = [place for place, found in enumerate(boxes) if found is not None]
    stats: list[dict[str, Any]] = [
        {"med": b.median, "q1": b.lower, "q3": b.upper, "whislo": b.minimum, "whishi": b.maximum}
        for b in boxes
        if b is not None
    ]
    line = {"color": colours.right, "linewidth": 1.3}
    axes.bxp(
        stats,
        places,
        widths=0.5,
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": "#dcebf5", "edgecolor": colours.right, "linewidth": 1.3},
        whiskerprops=line,
        capprops=line,
        medianprops={"color": colours.ink, "linewidth": 2.0},
    )


def _name_lowest(axes: "Axes", history: ClassHistory) -> None:
    for place, row in enumerate(history.values):
        if np.isfinite(row).any():
            lowest = int(np.nanargmin(row))
            look: dict[str, Any] = {"size": 8, "color": palette().soft, "ha": "center", "va": "top"}
            axes.annotate(
                named(history.labels[lowest]),
                (place, row[lowest]),
                (0, -4),
                textcoords="offset points",
                **look,
            )
