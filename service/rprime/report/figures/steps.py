"""Steps: the evaluations of a history from left to right, and what is drawn over them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rprime.core.arrays import Array
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
MOST_STACKED = 6
"""Panels that stand one above the other; more have two columns."""
MOST_PANELS = 12
"""Classes that have a panel each: the R' paper shows ten."""
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
    """A panel of a figure: several values at each step.

    Parameters
    ----------
    title
        What the values are.
    steps
        The evaluations, oldest first; of boxes by class, the classes.
    labels
        What has a value at each step: classes, indices, or evaluations.
    values
        Shape (step, label); NaN where it is undefined, or not there.
    overall
        Values of the whole at each step, shape (step,), by the name of their index.
    falling
        Whether small values are the good ones.
    """

    title: str
    steps: tuple[FigureStep, ...]
    labels: tuple[str, ...]
    values: Array
    overall: Mapping[str, Array] = field(default_factory=dict)
    falling: bool = False

    @property
    def boxes(self) -> list[Box | None]:
        """The quartiles at each step."""
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
    about: str,
    canvas: Canvas,
    *,
    fill: "Callable[[Axes, ClassHistory], None]",
    notes: Sequence[str] = (),
) -> bytes:
    """Draw several panels over the same steps, one above the other, or beside each other."""
    steps = histories[0].steps
    titles = [history.title for history in histories]
    title = titles[0] if len(titles) == 1 else "Indices by class"
    if not steps:
        return draw_nothing(title, about, canvas)
    columns = 1 if len(titles) <= MOST_STACKED else 2

    def fill_all(figure: "Figure") -> None:
        found = panels(figure, titles, steps, canvas, columns)
        for axes, history in zip(found, histories, strict=True):
            fill(axes, history)
        if columns > 1:
            figure.legend(
                found[0].get_lines(), histories[0].labels, loc="outside lower center", ncols=3
            )

    height = height_of(steps) * -(-len(histories) // columns) / columns**0.5
    return draw(Picture(title, about, height, fill_all, tuple(notes)), canvas)


def height_of(steps: Sequence[FigureStep]) -> float:
    """Return the height of a plot with the names below it."""
    names = [named(step.name) for step in steps]
    return HEIGHT + (width_of(names) if turns(names) else 0.0)


def panels(
    figure: "Figure",
    titles: Sequence[str],
    steps: Sequence[FigureStep],
    canvas: Canvas,
    columns: int = 1,
) -> "list[Axes]":
    """Make a panel for each title, with the steps below the last one of each column."""
    grid = figure.subplots(
        -(-len(titles) // columns), columns, sharex=True, sharey=columns > 1, squeeze=False
    )
    found: list[Axes] = list(grid.ravel()[: len(titles)])
    for spare in grid.ravel()[len(titles) :]:
        spare.set_visible(False)
    for axes, title in zip(found, titles, strict=True):
        axes.grid(axis="y")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.02, y=0.08)
        number_values(axes.yaxis)
        if len(titles) > 1:
            axes.set_title(named(title))
    names = [named(step.name) for step in steps]
    for axes in found[-columns:]:
        axes.tick_params(labelbottom=True)
        label_steps(axes.xaxis, names, canvas.inches / columns - _BESIDE / columns)
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
