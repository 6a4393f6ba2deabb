"""Steps: the evaluations of a history from left to right, and what is drawn over them."""

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from rprime.core.arrays import Array
from rprime.core.studies.correlation import Box
from rprime.report.figures.palette import MARKERS, line_style, palette
from rprime.report.figures.sheet import Canvas, Picture, draw, named
from rprime.report.figures.ticks import label_steps, number_values, width_of
from rprime.report.history_charts import MOST_MARKED, ClassHistory, FigureStep, union
from rprime.report.styles import Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT = 3.3
"""Of a plot, in inches, without the names below it."""
MOST_STACKED = 6
"""Panels that stand one above the other; more have two columns."""
MOST_PANELS = 12
"""Classes that have a panel each: the R' paper shows ten."""
_BESIDE = 2.0
_APART = 0.15
"""Between two names beside a plot, in inches."""


def draw_nothing(title: str, about: str, canvas: Canvas) -> bytes:
    """Draw that there is no evaluation."""

    def fill(figure: "Figure") -> None:
        centred = {"ha": "center", "va": "center", "color": palette()["ink-soft"]}
        figure.text(0.5, 0.4, "No evaluation fits.", centred)

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
        ends = [(history.axis.low, history.axis.high) for history in histories]
        for axes, history, own in zip(found, histories, ends, strict=True):
            # Panels beside each other have one axis.
            axes.set_ylim(union(ends) if columns > 1 else own)
            fill(axes, history)
        if columns > 1:
            figure.legend(
                found[0].get_lines(), histories[0].labels, loc="outside lower center", ncols=3
            )

    height = height_of(steps) * -(-len(histories) // columns) / columns**0.5
    return draw(Picture(title, about, height, fill_all, tuple(notes)), canvas)


def height_of(steps: Sequence[FigureStep]) -> float:
    """Return the height of a plot with the names below it."""
    return HEIGHT + width_of(named(step.name) for step in steps)


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
        axes.margins(x=0.02)
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
    places, colour = np.arange(len(known)), palette()["ink-soft"]
    parts = {name: [getattr(b, name) for b in known] for name in Box.__slots__}
    for low, high in (("minimum", "maximum"), ("lower", "upper")):
        axes.fill_between(places, parts[low], parts[high], color=colour, alpha=0.14, linewidth=0)
    axes.plot(places, parts["median"], color=colour, linewidth=1.5).pop().set_gid("median")


def plot_line(
    axes: "Axes", series: Series, places: Array, gid: str
) -> "tuple[str, float, float, str] | None":
    """Draw a line over the steps; return the name, place and colour of its end."""
    style = line_style(series.style)
    marker = MARKERS[series.style.symbol] if len(places) <= MOST_MARKED else ""
    (line,) = axes.plot(places, series.values, **style, linewidth=1.6, clip_on=False)
    line.set(gid=gid, marker=marker, markersize=3.8, zorder=3)
    known = np.flatnonzero(np.isfinite(series.values))
    if not known.size:
        return None
    last = known[-1]
    end = float(places[last]), float(series.values[last])
    return named(series.end), *end, style["color"]


def name_ends(axes: "Axes", ends: "Iterable[tuple[str, float, float, str] | None]") -> None:
    """Name lines where they end, the names apart from each other."""
    from scipy.optimize import isotonic_regression

    ordered = sorted((end for end in ends if end is not None), key=itemgetter(2))
    if not ordered:
        return
    low, high = axes.get_ylim()
    shifts = np.arange(len(ordered)) * _APART * (high - low) / HEIGHT
    wanted = np.array([value for _, _, value, _ in ordered])
    heights = isotonic_regression(wanted - shifts).x + shifts
    for (name, place, value, colour), height in zip(ordered, heights.tolist(), strict=True):
        axes.annotate(
            name,
            (place, value),
            (1.03, height),
            textcoords=("axes fraction", "data"),
            color=palette()["ink"],
            size=8.5,
            va="center_baseline",
            arrowprops=_LEADER | {"color": colour},
            annotation_clip=False,
        )


# From the middle of the begin of a name; from its own middle it would leave by a corner.
_LEADER = {"arrowstyle": "-", "linewidth": 0.8, "shrinkA": 2, "shrinkB": 3, "relpos": (0, 0.5)}
