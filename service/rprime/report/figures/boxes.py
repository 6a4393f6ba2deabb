"""Boxes: the spread of an index over the classes, version by version (the R' paper, figure 3)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rprime.core.studies.correlation import Box
from rprime.report.figures.palette import palette
from rprime.report.figures.sheet import Canvas, named
from rprime.report.figures.steps import ClassHistory, band, draw_classes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BOXES = 40
"""Evaluations up to which each has a box; of more, the quartiles become bands."""
MOST_DOTS = 50
"""Classes up to which each has a dot."""
MOST_NAMED = 12
"""Evaluations up to which the worst class of each is named."""


def draw_boxes(histories: Sequence[ClassHistory], about: str, canvas: Canvas) -> bytes:
    """Draw the quartiles of indices over the classes, each index in a panel of its own."""
    note = _note(histories[0])
    return draw_classes(histories, "of the classes", about, canvas, fill=_fill, note=note)


def _note(history: ClassHistory) -> str:
    if len(history.steps) > MOST_BOXES:
        return "Bands: the middle half of the classes, and all of them; the line is the median."
    dots = " Dots are classes." if len(history.labels) <= MOST_DOTS else ""
    names = " The lowest class is named." if len(history.steps) <= MOST_NAMED else ""
    return f"Boxes are quartiles, whiskers end at the lowest and the highest class.{dots}{names}"


def _fill(axes: "Axes", history: ClassHistory) -> None:
    boxes = history.boxes
    if len(boxes) > MOST_BOXES:
        band(axes, boxes)
        return
    _plot(axes, boxes)
    if len(history.labels) <= MOST_DOTS:
        places = np.repeat(np.arange(len(boxes)), len(history.labels))
        dots = axes.scatter(places, history.values.ravel(), 10, color=palette().ink)
        dots.set(alpha=0.45, linewidth=0, zorder=3, gid="classes")
    if len(boxes) <= MOST_NAMED:
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
