"""Confusion: the table as a heat map, and the difference of two tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rprime.core.arrays import Array
from rprime.core.quantities import plural
from rprime.report.charts.axes import (
    GAP,
    LINE,
    cells,
    height_of,
    legend,
    names_across,
    names_down,
    shown_class,
)
from rprime.report.charts.drawing import (
    AXIS,
    Drawing,
    Paint,
    Shape,
    Text,
    fitted,
    tinted,
    widest,
    width_of,
)
from rprime.report.charts.sheet import Canvas, Picture, draw
from rprime.report.heat_map import LEVELS, POWERS, TINTS, ConfusionChart
from rprime.report.subject import ReportSubject
from rprime.report.text import count, cut_text

Mode = Literal["count", "row", "column"]
SMALLEST_NUMBER = 8.0
LARGEST_CELL = 48.0
LEAST_WORST = 0.05
"""At least this share of wrong items is the darkest, so that no small one is."""
_LONGEST_SLICE = 60
_EMPTY = Paint(tinted("track", 0.45))
_HEAD = 20.0
"""Height of the name of the columns."""
_SIDE = 18.0
"""Width of the name of the rows, which is turned."""


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Cells with shades and texts, shape (row, column) each.

    Parameters
    ----------
    levels
        From 0, without a shade, to `LEVELS`; negative ones have the second hue.
    beside, below
        Texts behind each row and under each column.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    levels: Array
    texts: Sequence[Sequence[str]]
    beside: Sequence[str] = ()
    below: Sequence[str] = ()
    across: str = "Predicted class"
    down: str = "True class"
    apart: bool = False
    """Whether the last column stands apart."""


def map_of(chart: ConfusionChart, mode: Mode = "count") -> HeatMap:
    """Return the heat map of a confusion table, whose cells say items or shares."""
    whole = chart.support[:, None]
    if mode == "column":
        silent = chart.counts[:, len(chart.labels) :].sum(axis=0)
        whole = np.append(chart.predicted, silent)[None, :]
    with np.errstate(all="ignore"):
        shares = np.nan_to_num(chart.counts / whole)
    right = np.eye(*shares.shape) > 0
    # Errors are rare: the largest one has the darkest shade.
    worst = max(float(np.where(right, 0.0, shares).max(initial=0.0)), LEAST_WORST)
    parts = np.where(right, shares, shares / worst)
    powers = np.where(right, parts ** POWERS["right"], parts ** POWERS["wrong"])
    levels = np.ceil(LEVELS * powers) * np.where(right, 1, -1)
    say: Callable[[float, float], str] = (
        (lambda items, _: count(items)) if mode == "count" else (lambda _, share: _percent(share))
    )
    texts = [
        [say(items, share) if items else "" for items, share in zip(*row, strict=True)]
        for row in zip(chart.counts.tolist(), shares.tolist(), strict=True)
    ]
    columns = [*map(shown_class, chart.labels), *["unclassified"] * chart.unclassified]
    beside, below = (
        [count(n) for n in numbers.tolist()] for numbers in (chart.support, chart.predicted)
    )
    rows = list(map(shown_class, chart.labels))
    return HeatMap(rows, columns, levels, texts, beside, below, apart=chart.unclassified)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def plot_map(heat: HeatMap, width: float, data: Mapping[str, str] | None = None) -> Drawing:
    """Draw cells of equal shade as one path each, with names and totals around them."""
    side = min(widest(heat.rows) + GAP, 0.28 * width) + _SIDE
    margin = widest(heat.beside) + 2 * GAP
    cell = min((width - side - margin) / max(len(heat.columns), 1), LARGEST_CELL)
    columns = [fitted(name, 120) for name in heat.columns]
    top = _HEAD + height_of(columns, cell)
    places = [side + cell * (i + 0.5) for i in range(len(columns))]
    rows = [top + cell * (i + 0.5) for i in range(len(heat.rows))]
    bottom = top + cell * len(heat.rows)
    shapes: list[Shape] = [
        Text(side, 13, heat.across, colour="ink-soft"),
        Text(13, bottom, heat.down, colour="ink-soft", turn=-90),
        *_columns(columns, places, top, cell),
        *names_down([fitted(n, side - _SIDE - GAP) for n in heat.rows], rows, side - GAP, cell),
        *_shades(heat, side, top, cell),
        *_texts(heat, places, rows, cell),
    ]
    step = max(1, int(-(-LINE // cell)))
    right = side + cell * len(columns) + GAP
    shapes += [
        Text(right, y + 4, text, colour="ink-soft")
        for y, text in list(zip(rows, heat.beside, strict=False))[::step]
    ]
    under = names_across(list(heat.below), places[: len(heat.below)], bottom, cell)
    shapes += [replace(text, colour="ink-soft") for text in under]
    height = bottom + (height_of(list(heat.below), cell) if heat.below else 0) + GAP
    place = {"left": f"{side:.1f}", "top": f"{top:.1f}", "cell": f"{cell:.2f}"}
    return Drawing(right + margin, height, shapes, data={**(data or {}), **place})


def _columns(names: Sequence[str], places: Sequence[float], top: float, cell: float) -> list[Text]:
    """Name the columns above them: upright, else turned, of too many every nth."""
    if widest(names) + 8 <= cell:
        return [Text(x, top - GAP, n, "middle") for n, x in zip(names, places, strict=True)]
    step = max(1, int(-(-LINE // cell)))
    pairs = list(zip(names, places, strict=True))[::step]
    return [Text(x + 4, top - GAP, name, turn=-90) for name, x in pairs]


def _shades(heat: HeatMap, left: float, top: float, cell: float) -> list[Shape]:
    gap = min(2.0, cell / 8)
    corners: dict[int, list[tuple[float, float, float, float]]] = {}
    if cell < LARGEST_CELL / 2:
        # Of many small cells the empty ones are one.
        corners[0] = [(left, top, cell * len(heat.columns), cell * len(heat.rows))]
    for (row, column), level in np.ndenumerate(heat.levels):
        if not level and cell < LARGEST_CELL / 2:
            continue
        aside = gap if heat.apart and column == len(heat.columns) - 1 else 0
        place = (left + cell * column + aside, top + cell * row, cell - gap - aside, cell - gap)
        corners.setdefault(int(level), []).append(place)
    # What is empty lies below the others.
    return [
        cells(places, shade_of(level), "right" if level > 0 else "wrong" if level else "empty")
        for level, places in sorted(corners.items(), key=lambda pair: (pair[0] != 0, pair[0]))
    ]


def shade_of(level: int) -> Paint:
    """Return how a cell of a level is painted: the second hue below 0."""
    if not level:
        return _EMPTY
    low, high = TINTS
    share = low + (high - low) * abs(level) / LEVELS
    return Paint(tinted("right" if level > 0 else "wrong", share))


def _texts(
    heat: HeatMap, places: Sequence[float], rows: Sequence[float], cell: float
) -> list[Shape]:
    """Write into the cells, where there is room."""
    longest = max((width_of(t, 1) for row in heat.texts for t in row), default=1.0)
    size = min(AXIS, (cell - 5) / max(longest, 1e-9))
    if size < SMALLEST_NUMBER:
        return []
    return [
        Text(x - 1, y + size / 3 - 1, text, "middle", size)
        for y, row in zip(rows, heat.texts, strict=True)
        for x, text in zip(places, row, strict=True)
        if text
    ]


def ramp(right: str, wrong: str) -> list[tuple[Sequence[Shape], str]]:
    """Say what the shades mean, for `legend`."""
    entries: list[tuple[Sequence[Shape], str]] = []
    for sign, words in ((1, right), (-1, wrong)):
        steps = range(1, LEVELS + 1, 3)
        boxes = [
            cells([(7 * i, -5, 7, 10)], shade_of(sign * level), "ramp")
            for i, level in enumerate(steps)
        ]
        entries.append((boxes, words))
    return entries


RAMP = ("right: share of the class", "wrong: share, the largest is darkest")


def draw_confusion(subject: ReportSubject, canvas: Canvas) -> bytes:
    """Draw the confusion table of an evaluation."""
    chart = ConfusionChart.of(subject.evaluation)
    notes = [chart.left_out] if chart.left_out else []
    beside = "weight" if chart.weighted else "items"
    notes.append(f"Beside the cells: {beside} of each class; below: its predictions.")
    spurious = subject.evaluation.table.spurious
    if spurious is not None:
        notes.append(f"Not shown: {count(float(spurious.sum()))} predictions without a true class.")

    def plot(width: float) -> Drawing:
        drawing = plot_map(map_of(chart), width)
        words, height = legend(ramp(*RAMP), 0, drawing.height, width)
        return Drawing(width, drawing.height + height, [*drawing.shapes, *words])

    return draw(Picture("Confusion matrix", about(subject), plot, tuple(notes)), canvas)


def about(subject: ReportSubject) -> str:
    """Say which evaluation a figure is of."""
    classes = plural(len(subject.evaluation.labels), "class")
    names = (shown_class(replace(subject, slice="").title), cut_text(subject.slice, _LONGEST_SLICE))
    return f"{', '.join(filter(None, names))}: {subject.size}, {classes}"
