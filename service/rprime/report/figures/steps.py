"""Steps: the evaluations of a history from left to right, and what is drawn over them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.studies.correlation import Box, box
from rprime.report.figures.palette import palette
from rprime.report.figures.sheet import Canvas, Picture, draw, named
from rprime.report.figures.ticks import label_steps, number_values, turns, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT = 3.3
"""Of a plot, in inches, without the names below it."""
MOST_MARKED = 60
"""Evaluations up to which each value has a dot."""
MOST_PANELS = 4
_BESIDE = 2.0
_APART = 0.15
"""Between two names beside a plot, in inches."""


@dataclass(frozen=True, slots=True)
class FigureStep:
    """An evaluation of a history: what it is called, and the verdict on it."""

    name: str
    verdict: str | None = None


@dataclass(frozen=True, eq=False)
class ClassHistory:
    """An index of the classes over a history.

    Parameters
    ----------
    values
        Shape (step, class); NaN where it is undefined, or the class is not there.
    """

    index: Index
    steps: tuple[FigureStep, ...]
    labels: tuple[str, ...]
    values: Array

    @property
    def boxes(self) -> list[Box | None]:
        """The quartiles of the classes in each step."""
        return [box(row) for row in self.values]


@dataclass(frozen=True, slots=True)
class End:
    """Where a line ends, to be named there."""

    name: str
    place: float
    value: float
    colour: str


def draw_nothing(title: str, about: str, canvas: Canvas) -> bytes:
    """Draw that there is no evaluation."""

    def fill(figure: "Figure") -> None:
        look = {"ha": "center", "va": "center", "color": palette().soft}
        figure.text(0.5, 0.4, "No evaluation fits.", look)

    return draw(Picture(title, about, HEIGHT / 3, fill), canvas)


def draw_classes(
    histories: Sequence[ClassHistory],
    words: str,
    about: str,
    canvas: Canvas,
    *,
    fill: "Callable[[Axes, ClassHistory], None]",
    note: str,
) -> bytes:
    """Draw indices of the classes over one history, each in a panel of its own."""
    steps = histories[0].steps
    titles = [f"{history.index.name} {words}" for history in histories]
    if not steps:
        return draw_nothing(titles[0], about, canvas)

    def fill_all(figure: "Figure") -> None:
        found = panels(figure, titles, steps, canvas)
        for axes, history in zip(found, histories, strict=True):
            fill(axes, history)

    title = titles[0] if len(titles) == 1 else f"Indices {words}"
    height = height_of(steps) * len(histories)
    return draw(Picture(title, about, height, fill_all, (note,) if note else ()), canvas)


def height_of(steps: Sequence[FigureStep]) -> float:
    """Return the height of a plot with the names below it."""
    names = [named(step.name) for step in steps]
    return HEIGHT + (width_of(names) if turns(names) else 0.0)


def panels(
    figure: "Figure", titles: Sequence[str], steps: Sequence[FigureStep], canvas: Canvas
) -> "list[Axes]":
    """Make a panel for each title, one above the other, with the steps below the last one."""
    found: list[Axes] = list(figure.subplots(len(titles), 1, sharex=True, squeeze=False)[:, 0])
    for axes, title in zip(found, titles, strict=True):
        axes.grid(axis="y")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.02, y=0.08)
        number_values(axes.yaxis)
        if len(titles) > 1:
            axes.set_title(title)
    names = [named(step.name) for step in steps]
    label_steps(found[-1].xaxis, names, canvas.inches - _BESIDE)
    return found


def band(axes: "Axes", boxes: Sequence[Box | None]) -> None:
    """Draw the quartiles of the classes as bands: all of them, the middle half, the median."""
    nothing = Box(0, *[np.nan] * 5)
    known = [found or nothing for found in boxes]
    places, colour = np.arange(len(known)), palette().right
    parts = {name: [getattr(b, name) for b in known] for name in Box.__slots__}
    for low, high, alpha in (("minimum", "maximum", 0.13), ("lower", "upper", 0.25)):
        axes.fill_between(places, parts[low], parts[high], color=colour, alpha=alpha, linewidth=0)
    axes.plot(places, parts["median"], color=palette().ink, linewidth=1.2).pop().set_gid("median")


def name_ends(axes: "Axes", ends: Sequence[End]) -> None:
    """Name lines where they end, the names apart from each other."""
    from scipy.optimize import isotonic_regression

    ordered = sorted(ends, key=lambda end: end.value)
    if not ordered:
        return
    low, high = axes.get_ylim()
    shifts = np.arange(len(ordered)) * _APART * (high - low) / HEIGHT
    wanted = np.array([end.value for end in ordered])
    heights = isotonic_regression(wanted - shifts).x + shifts
    for end, height in zip(ordered, heights.tolist(), strict=True):
        axes.annotate(
            end.name,
            (end.place, end.value),
            (1.03, height),
            textcoords=("axes fraction", "data"),
            color=palette().ink,
            size=8.5,
            va="center_baseline",
            arrowprops=_LEADER | {"color": end.colour},
            annotation_clip=False,
        )


# From the middle of the begin of a name; from its own middle it would leave by a corner.
_LEADER = {"arrowstyle": "-", "linewidth": 0.8, "shrinkA": 2, "shrinkB": 3, "relpos": (0, 0.5)}


def last_of(places: Array, values: Array) -> tuple[float, float] | None:
    """Return the last point of a line; None where it has none."""
    known = np.flatnonzero(np.isfinite(values))
    return (float(places[known[-1]]), float(values[known[-1]])) if known.size else None
