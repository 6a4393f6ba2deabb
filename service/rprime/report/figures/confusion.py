"""Confusion: the table as a heat map."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.quantities import plural
from rprime.report.figures.axes import LINE, label_classes, palette, width_of
from rprime.report.figures.sheet import Canvas, Picture, draw, named
from rprime.report.heat_map import POWERS, TINTS, ConfusionChart
from rprime.report.subject import ReportSubject
from rprime.report.text import clipped, count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SMALLEST_NUMBER = 5.0
"""Points."""
_DIGIT = 0.62
"""Width of a digit, in parts of the size of its font."""
_NARROW = 5.5
"""Inches below which the scales stand below the table, since there is no room beside it."""
_LONGEST_SLICE = 60
_AXIS, _SCALES = 0.45, 2.2
"""What the name of an axis takes, and the two scales with it, in inches."""


def draw_confusion(subject: ReportSubject, canvas: Canvas) -> bytes:
    """Draw the confusion table of an evaluation."""
    chart = ConfusionChart.of(subject.evaluation)
    columns = [*map(named, chart.labels), *["unclassified"] * chart.unclassified]
    names, totals = width_of(columns), width_of(map(count, chart.support.tolist()))
    beside, below = (_AXIS + 0.3, _SCALES) if canvas.inches < _NARROW else (_SCALES, _AXIS)
    cell = max(canvas.inches - names - totals - beside, 1.0) / len(columns)
    head = names if names > cell else LINE
    notes = [chart.left_out, "Beside the cells: items of each class; below: its predictions."]
    spurious = subject.evaluation.table.spurious
    if spurious is not None:
        notes.append(f"Not shown: {count(float(spurious.sum()))} predictions without a true class.")
    height = cell * len(chart.labels) + head + totals + below
    fill = partial(_fill, chart=chart, columns=columns, cell=cell)
    return draw(Picture("Confusion matrix", about(subject), height, fill, tuple(notes)), canvas)


def about(subject: ReportSubject) -> str:
    """Say which evaluation a figure is of."""
    classes = plural(len(subject.evaluation.labels), "class")
    names = (named(replace(subject, slice="").title), clipped(subject.slice, _LONGEST_SLICE))
    return f"{', '.join(filter(None, names))}: {plural(subject.items, 'item')}, {classes}"


def _fill(figure: "Figure", chart: ConfusionChart, columns: list[str], cell: float) -> None:
    """Draw the cells, `cell` inches wide at most."""
    axes = figure.add_subplot(aspect="equal", anchor="NW")
    shares = np.where(chart.counts > 0, chart.shares, np.nan)
    right = np.eye(*shares.shape) > 0
    _shade(figure, axes, np.where(right, np.nan, shares), "wrong", "wrong: share, root scale")
    words = "right: share of the true class"
    _shade(figure, axes, np.where(right, shares, np.nan), "right", words)
    _frame(axes, chart)
    label_classes(axes.xaxis, columns, cell, turned=width_of(columns) > cell)
    label_classes(axes.yaxis, columns[: len(chart.labels)], cell)
    _write(axes, chart.counts, cell)
    _total(axes, chart, cell)


def _shade(figure: "Figure", axes: "Axes", shares: Array, kind: str, words: str) -> None:
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm

    rows, columns = (np.arange(size + 1) - 0.5 for size in shares.shape)
    tints = LinearSegmentedColormap.from_list(kind, [_tinted(kind, part) for part in TINTS])
    style: dict[str, Any] = {"cmap": tints, "norm": PowerNorm(POWERS[kind], 0, 1)}
    mesh = axes.pcolormesh(columns, rows, np.ma.masked_invalid(shares), **style)
    mesh.set(gid=kind, edgecolor=palette()["surface"], linewidth=1.0)
    narrow = figure.get_figwidth() < _NARROW
    place: dict[str, Any] = {"location": "bottom" if narrow else "right", "aspect": 18}
    bar = figure.colorbar(mesh, ax=axes, shrink=0.9 if narrow else 0.45, pad=0.02, **place)
    bar.outline.set_visible(False)
    bar.set_label(words)


def _tinted(role: str, part: float) -> Any:  # noqa: ANN401 (a colour)
    from matplotlib.colors import to_rgb

    hue, surface = np.array(to_rgb(palette()[role])), np.array(to_rgb(palette()["surface"]))
    return tuple(surface + part * (hue - surface))


def _frame(axes: "Axes", chart: ConfusionChart) -> None:
    rows, columns = chart.counts.shape
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set(xlabel="Predicted class", ylabel="True class")
    axes.set_facecolor(_tinted("track", 0.5))
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    if chart.unclassified:
        axes.axvline(rows - 0.5, color=palette()["surface"], linewidth=4)


def _write(axes: "Axes", counts: Array, cell: float) -> None:
    """Write the items into the cells, where there is room."""
    texts = {place: count(items) for place, items in np.ndenumerate(counts) if items}
    longest = max(map(len, texts.values()), default=1)
    size = min(9.0, cell * 72 * 0.86 / (longest * _DIGIT))
    if size >= SMALLEST_NUMBER:
        for (row, column), text in texts.items():
            axes.text(column, row, text, ha="center", va="center_baseline", size=size)


def _total(axes: "Axes", chart: ConfusionChart, cell: float) -> None:
    """Write the items of each class beside its row, and its predictions below its column."""
    items, predictions = (list(map(count, n.tolist())) for n in (chart.support, chart.predicted))
    beside, below = axes.secondary_yaxis("right"), axes.secondary_xaxis("bottom")
    label_classes(beside.yaxis, items, cell)
    label_classes(below.xaxis, predictions, cell, turned=width_of(predictions) > cell)
    for margin in (beside, below):
        margin.tick_params(length=0, labelsize=7.5, labelcolor=palette()["ink-soft"])
        for side in margin.spines.values():
            side.set_visible(False)
