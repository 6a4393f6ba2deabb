"""Lines: an index of the classes over versions (Zhang, Su, Dou 2021, figure 2)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rprime.core.arrays import Array
from rprime.report.decimals import plural
from rprime.report.figures.palette import palette
from rprime.report.figures.sheet import Canvas, named
from rprime.report.figures.steps import (
    MOST_MARKED,
    ClassHistory,
    End,
    band,
    draw_classes,
    last_of,
    name_ends,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINES = 14
"""Classes up to which each has a line; of more, the worst are drawn over the band of all."""
MOST_WORST = 6


def draw_lines(histories: Sequence[ClassHistory], about: str, canvas: Canvas) -> bytes:
    """Draw indices of the classes over the same history, each in a panel of its own."""
    return draw_classes(histories, "by class", about, canvas, fill=_fill, note=_note(histories[0]))


def _note(history: ClassHistory) -> str:
    if len(history.labels) <= MOST_LINES:
        return ""
    bands = f"Bands: the middle half and all of {plural(len(history.labels), 'class')}"
    return f"{bands}, with the median. Lines: the {MOST_WORST} that are worst in the end."


def _fill(axes: "Axes", history: ClassHistory) -> None:
    many = len(history.labels) > MOST_LINES
    if many:
        band(axes, history.boxes)
    drawn = _worst(history) if many else np.arange(len(history.labels))
    ends = [_plot(axes, history, number, column) for number, column in enumerate(drawn.tolist())]
    name_ends(axes, [end for end in ends if end is not None])


def _worst(history: ClassHistory) -> Array:
    """Return the classes that are worst in the newest step."""
    down = history.index.higher_is_better is False
    order = np.argsort(history.values[-1] * (-1 if down else 1), kind="stable")
    return order[:MOST_WORST]


def _plot(axes: "Axes", history: ClassHistory, number: int, column: int) -> End | None:
    """Draw the line of a class; give its end."""
    values, look = history.values[:, column], palette().look(number)
    places = np.arange(len(values))
    marker = "osD^vP*"[number % 7] if len(values) <= MOST_MARKED else ""
    (line,) = axes.plot(places, values, **look, linewidth=1.5, marker=marker, markersize=3.6)
    line.set_gid(f"class-{column + 1}")
    last = last_of(places, values)
    return None if last is None else End(named(history.labels[column]), *last, look["color"])
