"""Confusion: the table as a heat map, in blocks of classes where there are very many."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.evaluate import Evaluation
from rprime.report.decimals import count, plural
from rprime.report.figures.palette import palette
from rprime.report.figures.sheet import Canvas, Picture, draw, named
from rprime.report.figures.ticks import LINE, label_classes, turns, width_of
from rprime.report.heat_map import DARKEST_ERROR
from rprime.report.subject import ReportSubject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_CELLS = 100
"""In a row; more classes than that are drawn in blocks."""
MOST_VECTORS = 50
"""In a row; more cells than that are an image within an SVG."""
SMALLEST_NUMBER = 5.0
"""Points."""
_DIGIT = 0.62
"""Width of a digit, in parts of the size of its font."""
_DARK_RIGHT, _DARK_WRONG = 0.55, 0.85
"""Shades from here on take white numbers."""
_NARROW = 5.5
_AXIS, _SCALES = 0.45, 2.2
"""What the name of an axis takes, and the two scales with it, in inches."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """A table whose classes are taken together, `size` neighbours at a time.

    Parameters
    ----------
    counts
        Shape (n, n), or (n, n + 1) with unclassified items.
    correct, support, predicted
        Shape (n,).
    """

    size: int
    labels: tuple[str, ...]
    counts: Array
    correct: Array
    support: Array
    predicted: Array

    @classmethod
    def of(cls, evaluation: Evaluation) -> "Blocks":
        """Add up the cells of every two blocks."""
        table, labels = evaluation.table, evaluation.labels
        size = -(-len(labels) // MOST_CELLS)
        n = -(-len(labels) // size)
        rows, columns, items = table.cells.coordinates()
        cells = np.bincount(rows // size * n + columns // size, items, n * n).reshape(n, n)
        starts = np.arange(0, len(labels), size)

        def summed(margin: Array) -> Array:
            return np.add.reduceat(margin, starts)

        if table.unclassified is not None:
            cells = np.column_stack((cells, summed(table.unclassified)))
        margins = (summed(margin) for margin in (table.correct, table.support, table.predicted))
        return cls(size, tuple(labels[start] for start in starts), cells, *margins)

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are called."""
        unclassified = self.counts.shape[1] > len(self.labels)
        return (*map(named, self.labels), *(("unclassified",) if unclassified else ()))

    @property
    def shares(self) -> tuple[Array, Array]:
        """Parts of the true class that are right and wrong; NaN where there is nothing to show."""
        n = len(self.labels)
        diagonal = np.eye(n, self.counts.shape[1], dtype=bool)
        with np.errstate(all="ignore"):
            wrong = np.where(diagonal, np.nan, self.counts / self.support[:, None])
            right = np.where(diagonal, (self.correct / self.support)[:, None], np.nan)
        return right, np.where(wrong > 0, wrong, np.nan)

    @property
    def within(self) -> float:
        """Items that are confused with a class of the same block."""
        return float(np.trace(self.counts) - self.correct.sum())


def draw_confusion(subject: ReportSubject, canvas: Canvas) -> bytes:
    """Draw the confusion table of an evaluation."""
    blocks = Blocks.of(subject.evaluation)
    names = width_of(blocks.names)
    beside, below = (_AXIS + 0.3, _SCALES) if _is_narrow(canvas.inches) else (_SCALES, _AXIS)
    cell = max(canvas.inches - names - beside, 1.0) / len(blocks.names)
    picture = Picture(
        title="Confusion matrix",
        about=about(subject),
        height=cell * len(blocks.labels) + (names if turns(blocks.names) else LINE) + below,
        fill=lambda figure: _fill(figure, blocks, cell),
        notes=tuple(_notes(blocks, subject)),
    )
    return draw(picture, canvas)


def _is_narrow(width: float) -> bool:
    """Whether the scales stand below the table, since there is no room beside it."""
    return width < _NARROW


def about(subject: ReportSubject) -> str:
    """Say which evaluation a figure is of."""
    classes = plural(len(subject.evaluation.labels), "class")
    return f"{named(subject.title)}: {count(subject.items)} items, {classes}"


def _notes(blocks: Blocks, subject: ReportSubject) -> list[str]:
    notes = []
    if blocks.size > 1:
        notes.append(
            f"Each cell stands for {blocks.size} by {blocks.size} classes in the order of the "
            f"labels. Not shown: {count(blocks.within)} items that were confused with another "
            "class of the same block."
        )
    spurious = subject.evaluation.table.spurious
    if spurious is not None:
        notes.append(f"Not shown: {count(float(spurious.sum()))} predictions without a true class.")
    return notes


def _fill(figure: "Figure", blocks: Blocks, cell: float) -> None:
    """Draw the cells, `cell` inches wide at most."""
    from matplotlib.colors import Normalize, PowerNorm

    axes = figure.add_subplot(aspect="equal", anchor="NW")
    right, wrong = blocks.shares
    darkest = float(np.nanmax(wrong, initial=DARKEST_ERROR))
    colours = palette()
    # Errors are rare: by the square root the small ones are seen beside the largest.
    root = PowerNorm(0.5, 0, darkest)
    _shade(figure, axes, wrong, root, colours.wrong, "wrong: share, root scale")
    _shade(figure, axes, right, Normalize(0, 1), colours.right, "right: share of the true class")
    _frame(axes, blocks)
    rows = blocks.names[: len(blocks.labels)]
    label_classes(axes.xaxis, blocks.names, cell, turned=turns(blocks.names))
    label_classes(axes.yaxis, rows, cell)
    _write(axes, blocks, (right, wrong / darkest), cell)


def _shade(  # noqa: PLR0917 (what a scale has)
    figure: "Figure",
    axes: "Axes",
    shares: Array,
    norm: Any,  # noqa: ANN401 (matplotlib is an extra)
    colour: str,
    words: str,
) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list(words, _tints(colour))
    rows, columns = shares.shape
    vectors = max(rows, columns) <= MOST_VECTORS
    mesh = axes.pcolormesh(
        np.arange(columns + 1) - 0.5,
        np.arange(rows + 1) - 0.5,
        np.ma.masked_invalid(shares),
        norm=norm,
        cmap=shades,
        edgecolor=palette().surface if vectors else "none",
        linewidth=1.0 if vectors else 0.0,
        rasterized=not vectors,
    )
    mesh.set_gid(words.partition(":")[0])
    narrow = _is_narrow(figure.get_figwidth())
    place: dict[str, Any] = {"location": "bottom" if narrow else "right", "aspect": 18}
    bar = figure.colorbar(mesh, ax=axes, shrink=0.9 if narrow else 0.45, pad=0.02, **place)
    bar.outline.set_visible(False)
    bar.set_label(words)


def _tints(colour: str) -> list[Any]:
    from matplotlib.colors import to_rgb

    hue, surface = np.array(to_rgb(colour)), np.array(to_rgb(palette().surface))
    return [tuple(surface + part * (hue - surface)) for part in (0.06, 1.0)]


def _frame(axes: "Axes", blocks: Blocks) -> None:
    rows, columns = len(blocks.labels), blocks.counts.shape[1]
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    axes.set(xlabel="Predicted class", ylabel="True class")
    axes.set_facecolor(palette().track)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    if columns > rows:
        axes.axvline(rows - 0.5, color=palette().surface, linewidth=4)


def _write(axes: "Axes", blocks: Blocks, shares: tuple[Array, Array], cell: float) -> None:
    """Write the items into the cells, where there is room."""
    if blocks.size > 1:
        return
    texts = {place: count(items) for place, items in np.ndenumerate(blocks.counts) if items}
    longest = max(map(len, texts.values()), default=1)
    size = min(9.0, cell * 72 * 0.86 / (longest * _DIGIT))
    if size < SMALLEST_NUMBER:
        return
    right, wrong = shares
    for (row, column), text in texts.items():
        on_diagonal = row == column
        shade = right[row, column] if on_diagonal else np.sqrt(wrong[row, column])
        dark = shade > (_DARK_RIGHT if on_diagonal else _DARK_WRONG)
        colour = palette().surface if dark else palette().ink
        axes.text(column, row, text, ha="center", va="center_baseline", size=size, color=colour)
