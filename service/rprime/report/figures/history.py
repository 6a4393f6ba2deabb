"""History: indices over the evaluations of a project, as trends, as lines and as boxes."""

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.quantities import plural
from rprime.core.studies import Quartiles
from rprime.report.figures.axes import (
    MARKERS,
    label_steps,
    line_style,
    number_values,
    palette,
    width_of,
)
from rprime.report.figures.sheet import Canvas, Picture, TooMuchToDrawError, draw, named
from rprime.report.history_charts import (
    MOST_BOXES,
    MOST_DOTS,
    MOST_MARKED,
    MOST_NAMED,
    ClassHistory,
    FigureStep,
    TrendChart,
)
from rprime.report.marks import union
from rprime.report.styles import VERDICT_STYLES, Series, series_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Fill = Callable[[Axes, ClassHistory], None]

HEIGHT = 3.3
"""Of a plot, in inches, without the names below it."""
MOST_COURSES = 7
MOST_STACKED = 6
"""Panels that stand one above the other; more have two columns."""
MOST_PANELS = 12
"""Classes that have a panel each: the R' paper shows ten."""
_BESIDE = 2.0
_APART = 0.15
"""Between two names beside a plot, in inches."""
_LETTER = 0.085
"""Width of one, in inches."""
_NEAR = 0.08
"""Part of an axis within which there is no room for a name."""
# From the middle of the begin of a name; from its own middle it would leave by a corner.
_LEADER = {"arrowstyle": "-", "linewidth": 0.8, "shrinkA": 2, "shrinkB": 3, "relpos": (0, 0.5)}


def draw_trend(trend: TrendChart, canvas: Canvas) -> bytes:
    """Draw overall or per-class indices with their intervals.

    Raises
    ------
    TooMuchToDrawError
        If there are too many courses.
    """
    if len(trend.courses) > MOST_COURSES:
        raise TooMuchToDrawError(
            f"A trend shows at most {MOST_COURSES} lines, one for each index and model: name "
            "fewer indices, or one `model`."
        )
    if not trend.steps:
        return _draw_nothing(trend.title, trend.about, canvas)

    def fill(figure: "Figure") -> None:
        (axes,) = _panels(figure, [trend.title], trend.steps, canvas.inches, 1)
        axes.set_ylim(trend.axis.low, trend.axis.high)
        ends = []
        for number, course in enumerate(trend.courses, 1):
            colour = line_style(course.style)["color"]
            axes.fill_between(
                course.places, course.low, course.high, color=colour, alpha=0.16, linewidth=0
            )
            ends.append(_plot_line(axes, course, course.places, f"course-{number}"))
        _mark_verdicts(axes, trend)
        _name_ends(axes, ends)

    banded = any(np.isfinite(course.low).any() for course in trend.courses)
    notes = ("Bands: the interval of each value by itself.",) if banded else ()
    return draw(Picture(trend.title, trend.about, _height(trend.steps), fill, notes), canvas)


def _mark_verdicts(axes: "Axes", trend: TrendChart) -> None:
    """Mark the evaluations whose gate did not pass, by shape as well as by colour."""
    handles = []
    for verdict, mark in VERDICT_STYLES.items():
        points = [
            (place, value)
            for course in trend.courses
            for place, value in zip(course.places.tolist(), course.values.tolist(), strict=True)
            if trend.steps[place].mark is mark
        ]
        if points:
            x, y = zip(*points, strict=True)
            dots = axes.scatter(x, y, 60, marker=MARKERS[mark.symbol], color=palette()[mark.colour])
            dots.set(gid=verdict, label=mark.words, zorder=5, clip_on=False)
            handles.append(dots)
    if handles:
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=2)


def draw_lines(histories: Sequence[ClassHistory], about: str, canvas: Canvas) -> bytes:
    """Draw a panel for each index, or for each class (Zhang, Su, Dou 2021, figure 2)."""

    def fill(axes: "Axes", history: ClassHistory) -> None:
        if history.banded:
            _band(axes, history.boxes)
        places = np.arange(len(history.steps))
        lines = enumerate(history.series, 1)
        ends = [_plot_line(axes, series, places, f"line-{number}") for number, series in lines]
        if len(histories) <= MOST_STACKED:
            _name_ends(axes, ends)

    bands = f"Bands: the middle half and all of {plural(len(histories[0].labels), 'class')}"
    note = f"{bands}, with the median. Lines: the weakest in the end, and those that fell most."
    return _draw_classes(histories, about, canvas, fill, note if histories[0].banded else "")


def draw_boxes(histories: Sequence[ClassHistory], about: str, canvas: Canvas) -> bytes:
    """Draw quartiles over classes or over evaluations, a panel an index (R' paper, figure 3)."""

    def fill(axes: "Axes", history: ClassHistory) -> None:
        if len(history.steps) > MOST_BOXES:
            _band(axes, history.boxes)
        else:
            _plot_boxes(axes, history.boxes)
            _name_values(axes, history)
        places = np.arange(len(history.steps))
        lines = enumerate(history.series[len(history.drawn) :], 1)
        _name_ends(axes, [_plot_line(axes, series, places, f"line-{i}") for i, series in lines])

    steps, labels = len(histories[0].steps), len(histories[0].labels)
    dots = " Dots are values." if labels <= MOST_DOTS else ""
    names = " The worst is named." if steps <= MOST_NAMED else ""
    note = f"Boxes are quartiles, whiskers end at the lowest and the highest value.{dots}{names}"
    if steps > MOST_BOXES:
        note = "Bands: the middle half of the values, and all of them; the line is the median."
    return _draw_classes(histories, about, canvas, fill, note)


def _plot_boxes(axes: "Axes", boxes: Sequence[Quartiles | None]) -> None:
    by_place = {place: b for place, b in enumerate(boxes) if b is not None}
    stats: list[dict[str, Any]] = [
        {"med": b.median, "q1": b.lower, "q3": b.upper, "whislo": b.minimum, "whishi": b.maximum}
        for b in by_place.values()
    ]
    colour = line_style(series_style(0))["color"]
    line = {"color": colour, "linewidth": 1.3}
    box = {"facecolor": palette()["track"], "edgecolor": colour, "linewidth": 1.3}
    style: dict[str, Any] = {"boxprops": box, "whiskerprops": line, "capprops": line}
    style |= {"medianprops": {"color": colour, "linewidth": 2.0}, "patch_artist": True}
    axes.bxp(stats, list(by_place), widths=0.5, showfliers=False, manage_ticks=False, **style)


def _name_values(axes: "Axes", history: ClassHistory) -> None:
    """Draw the values beside their boxes, and name the worst of each, where there is room."""
    steps, labels = len(history.steps), len(history.labels)
    if labels <= MOST_DOTS:
        places = np.repeat(np.arange(steps), labels)
        dots = axes.scatter(places, history.values.ravel(), 10, color=palette()["ink"])
        dots.set(alpha=0.45, linewidth=0, zorder=3, gid="classes")
    figure: Any = axes.get_figure()
    room = max(int(figure.get_figwidth() / steps / _LETTER), 3)
    low, high = axes.get_ylim()
    outside = ((0, 4), "center", "bottom") if history.falling else ((0, -4), "center", "top")
    style: dict[str, Any] = {"size": 8, "color": palette()["ink-soft"]}
    style["textcoords"] = "offset points"
    for place, (worst, row) in enumerate(zip(history.worst, history.values, strict=True)):
        if worst is None or steps > MOST_NAMED:
            continue
        # Beyond its mark, but beside one at the end of the axis.
        near = min(row[worst] - low, high - row[worst]) < _NEAR * (high - low)
        shift, across, down = ((5, 0), "left", "center") if near else outside
        name = named(history.labels[worst], room)
        axes.annotate(name, (place, row[worst]), shift, ha=across, va=down, **style)


def _draw_nothing(title: str, about: str, canvas: Canvas) -> bytes:
    def fill(figure: "Figure") -> None:
        centred = {"ha": "center", "va": "center", "color": palette()["ink-soft"]}
        figure.text(0.5, 0.4, "No evaluation fits.", centred)

    return draw(Picture(title, about, HEIGHT / 3, fill), canvas)


def _draw_classes(
    histories: Sequence[ClassHistory], about: str, canvas: Canvas, fill: "Fill", note: str
) -> bytes:
    """Draw several panels over the same steps, one above the other, or beside each other."""
    steps = histories[0].steps
    titles = [history.title for history in histories]
    title = titles[0] if len(titles) == 1 else "Indices by class"
    if not steps:
        return _draw_nothing(title, about, canvas)
    columns = 1 if len(titles) <= MOST_STACKED else 2

    def fill_all(figure: "Figure") -> None:
        panels = _panels(figure, titles, steps, canvas.inches, columns)
        ends = [(history.axis.low, history.axis.high) for history in histories]
        for axes, history, limits in zip(panels, histories, ends, strict=True):
            # Panels beside each other have one axis.
            axes.set_ylim(union(ends) if columns > 1 else limits)
            fill(axes, history)
        if columns > 1:
            lines, labels = panels[0].get_lines(), histories[0].labels
            figure.legend(lines, labels, loc="outside lower center", ncols=3)

    height = _height(steps) * -(-len(histories) // columns) / columns**0.5
    return draw(Picture(title, about, height, fill_all, (note,) if note else ()), canvas)


def _height(steps: Sequence[FigureStep]) -> float:
    return HEIGHT + width_of(named(step.name) for step in steps)


def _panels(
    figure: "Figure", titles: Sequence[str], steps: Sequence[FigureStep], width: float, columns: int
) -> "list[Axes]":
    """Make a panel for each title, with the steps below the last one of each column."""
    rows = -(-len(titles) // columns)
    grid = figure.subplots(rows, columns, sharex=True, sharey=columns > 1, squeeze=False)
    panels: list[Axes] = list(grid.ravel()[: len(titles)])
    for spare in grid.ravel()[len(titles) :]:
        spare.set_visible(False)
    for axes, title in zip(panels, titles, strict=True):
        axes.grid(axis="y")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.02)
        number_values(axes.yaxis)
        if len(titles) > 1:
            axes.set_title(named(title))
    names = [named(step.name) for step in steps]
    for axes in panels[-columns:]:
        axes.tick_params(labelbottom=True)
        label_steps(axes.xaxis, names, width / columns - _BESIDE / columns)
    return panels


def _band(axes: "Axes", boxes: Sequence[Quartiles | None]) -> None:
    """Draw the quartiles of the classes as bands: all of them, the middle half, the median."""
    nothing = Quartiles(0, *[np.nan] * 5)
    padded = [box or nothing for box in boxes]
    places, colour = np.arange(len(padded)), palette()["ink-soft"]
    parts = {name: [getattr(b, name) for b in padded] for name in Quartiles.__slots__}
    for low, high in (("minimum", "maximum"), ("lower", "upper")):
        axes.fill_between(places, parts[low], parts[high], color=colour, alpha=0.14, linewidth=0)
    axes.plot(places, parts["median"], color=colour, linewidth=1.5).pop().set_gid("median")


def _plot_line(
    axes: "Axes", series: Series, places: Array, gid: str
) -> "tuple[str, float, float, str] | None":
    """Draw a line over the steps; return the name, place and colour of its end."""
    style = line_style(series.style)
    marker = MARKERS[series.style.symbol] if len(places) <= MOST_MARKED else ""
    (line,) = axes.plot(places, series.values, **style, linewidth=1.6, clip_on=False)
    line.set(gid=gid, marker=marker, markersize=3.8, zorder=3)
    finite = np.flatnonzero(np.isfinite(series.values))
    if not finite.size:
        return None
    last = finite[-1]
    end = float(places[last]), float(series.values[last])
    return named(series.end), *end, style["color"]


def _name_ends(axes: "Axes", ends: "Iterable[tuple[str, float, float, str] | None]") -> None:
    """Name lines where they end, the names apart from each other."""
    from scipy.optimize import isotonic_regression

    ordered = sorted((end for end in ends if end is not None), key=itemgetter(2))
    if not ordered:
        return
    low, high = axes.get_ylim()
    shifts = np.arange(len(ordered)) * _APART * (high - low) / HEIGHT
    targets = np.array([value for _, _, value, _ in ordered])
    heights = isotonic_regression(targets - shifts).x + shifts
    style: dict[str, Any] = {"color": palette()["ink"], "size": 8.5, "va": "center_baseline"}
    style |= {"textcoords": ("axes fraction", "data"), "annotation_clip": False}
    for (name, place, value, colour), height in zip(ordered, heights.tolist(), strict=True):
        arrow = _LEADER | {"color": colour}
        axes.annotate(name, (place, value), (1.03, height), arrowprops=arrow, **style)
