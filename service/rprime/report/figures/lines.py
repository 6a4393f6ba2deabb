"""Lines: an index of the classes over versions (Zhang, Su, Dou 2021, figure 2)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rprime.core.arrays import Array
from rprime.report.decimals import plural
from rprime.report.figures.palette import palette
from rprime.report.figures.sheet import Canvas, Picture, draw, named
from rprime.report.figures.steps import (
    MOST_MARKED,
    ClassHistory,
    End,
    band,
    draw_nothing,
    height_of,
    last_of,
    name_ends,
    panels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LINES = 14
"""Classes up to which each has a line; of more, the worst are drawn over the band of all."""
MOST_WORST = 6


def draw_lines(histories: Sequence[ClassHistory], about: str, canvas: Canvas) -> bytes:
    """Draw indices of the classes over the same history, each in a panel of its own."""
    first = histories[0]
    titles = [f"{history.index.name} by class" for history in histories]
    if not first.steps:
        return draw_nothing(titles[0], about, canvas)
    picture = Picture(
        title=titles[0] if len(titles) == 1 else "Indices by class",
        about=about,
        height=height_of(first.steps) * len(histories),
        fill=lambda figure: _fill(figure, titles, histories, canvas),
        notes=_notes(first),
    )
    return draw(picture, canvas)


def _notes(history: ClassHistory) -> tuple[str, ...]:
    if len(history.labels) <= MOST_LINES:
        return ()
    bands = f"Bands: the middle half and all of {plural(len(history.labels), 'class')}"
    return (f"{bands}, with the median. Lines: the {MOST_WORST} that are worst in the end.",)


def _fill(
    figure: "Figure", titles: Sequence[str], histories: Sequence[ClassHistory], canvas: Canvas
) -> None:
    found = panels(figure, titles, histories[0].steps, canvas)
    for axes, history in zip(found, histories, strict=True):
        many = len(history.labels) > MOST_LINES
        if many:
            band(axes, history.boxes)
        drawn = _worst(history) if many else np.arange(len(history.labels))
        name_ends(
            axes, [end for i, c in enumerate(drawn.tolist()) if (end := _plot(axes, history, i, c))]
        )


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
