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
    MOST_STACKED,
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
    """Draw lines over the same evaluations: a panel for each index, or for each class."""
    note = _note(histories[0])
    apart = len(histories) > MOST_STACKED

    def fill(axes: "Axes", history: ClassHistory) -> None:
        ends = _fill(axes, history)
        if not apart:
            name_ends(axes, ends)

    return draw_classes(histories, about, canvas, fill=fill, notes=[note] if note else [])


def _note(history: ClassHistory) -> str:
    if len(history.labels) <= MOST_LINES:
        return ""
    bands = f"Bands: the middle half and all of {plural(len(history.labels), 'class')}"
    return f"{bands}, with the median. Lines: the {MOST_WORST} that are worst in the end."


def _fill(axes: "Axes", history: ClassHistory) -> list[End]:
    """Draw the lines of a panel; give their ends."""
    many = len(history.labels) > MOST_LINES
    if many:
        band(axes, history.boxes)
    drawn = worst_columns(history)[:MOST_WORST] if many else np.arange(len(history.labels))
    lines = [(history.labels[column], history.values[:, column]) for column in drawn.tolist()]
    ends = [
        plot_line(axes, number, name, values)
        for number, (name, values) in enumerate([*lines, *history.overall.items()])
    ]
    return [end for end in ends if end is not None]


def worst_columns(history: ClassHistory) -> Array:
    """Order the classes from the worst in the newest step."""
    return np.argsort(history.values[-1] * (-1 if history.falling else 1), kind="stable")


def plot_line(axes: "Axes", number: int, name: str, values: Array) -> End | None:
    """Draw a line over the steps; give its end."""
    look = palette().look(number)
    places = np.arange(len(values))
    marker = "osD^vP*"[number % 7] if len(values) <= MOST_MARKED else ""
    (line,) = axes.plot(places, values, **look, linewidth=1.5, marker=marker, markersize=3.6)
    line.set(gid=f"line-{number + 1}", zorder=3)
    last = last_of(places, values)
    return None if last is None else End(named(name), *last, look["color"])
