"""Strip: a row for each class and a column for each version, shaded by the change since one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array
from rprime.report.charts.axes import GAP, cells, height_of, names_across, shown_class
from rprime.report.charts.confusion import ramp, shade_of
from rprime.report.charts.drawing import Drawing, Group, Marks, Paint, Shape, Text, fitted, widest
from rprime.report.heat_map import LEVELS

ROW = 20.0
_DARKEST = 0.1
"""At least this change is the darkest."""
_SHOWN = Paint("ink")


@dataclass(frozen=True, eq=False)
class Strip:
    """Changes of classes since a version, shape (class, version); NaN where there is no value.

    Parameters
    ----------
    shown
        Whether a change is shown by its interval, of the same shape.
    reference
        The column that others are compared with.
    """

    labels: Sequence[str]
    steps: Sequence[str]
    changes: Array
    shown: Array
    reference: int
    upward: bool
    """Whether large values are the good ones."""
    beside: Sequence[str] = ()
    """The newest values, behind the rows."""


def plot_strip(
    strip: Strip,
    width: float,
    *,
    tips: Sequence[str] = (),
    links: Sequence[str] = (),
    data: Sequence[Mapping[str, str]] = (),
) -> Drawing:
    """Draw a strip.

    Parameters
    ----------
    tips, links, data
        Of each row, for the pages.
    """
    names = [shown_class(label) for label in strip.labels]
    side = min(widest(names) + 2 * GAP, 0.3 * width)
    right = widest(strip.beside) + 2 * GAP if strip.beside else 0.0
    cell = (width - side - right) / max(len(strip.steps), 1)
    shapes: list[Shape] = []
    levels = levels_of(strip)
    corners: dict[int, list[tuple[float, float, float, float]]] = {}
    for (row, column), level in np.ndenumerate(levels):
        if np.isfinite(strip.changes[row, column]):
            place = (side + cell * column, ROW * row + 1, cell - 2, ROW - 2)
            corners.setdefault(int(level), []).append(place)
    for level, places in sorted(corners.items()):
        name = "better" if level > 0 else "worse" if level else "same"
        shapes.append(cells(places, shade_of(level), name))
    dots = [
        (side + cell * (column + 0.5) - 1, ROW * (row + 0.5))
        for row, column in np.argwhere(strip.shown).tolist()
    ]
    if dots:
        shapes.append(Marks(dots, _SHOWN, radius=2.5, name="shown"))
    for row, name in enumerate(names):
        label = Text(side - GAP, ROW * (row + 0.5) + 4, fitted(name, side - GAP), "end")
        about = data[row] if data else {}
        tip, link = tips[row] if tips else "", links[row] if links else ""
        shapes.append(Group([label], "class", about, tip, link))
        if strip.beside:
            value = Text(width, ROW * (row + 0.5) + 4, strip.beside[row], "end")
            shapes.append(value)
    bottom = ROW * len(names)
    places_ = [side + cell * (i + 0.5) for i in range(len(strip.steps))]
    steps = [shown_class(step) for step in strip.steps]
    shapes += names_across(steps, places_, bottom, cell)
    return Drawing(width, bottom + height_of(steps, cell) + 4, shapes)


def levels_of(strip: Strip) -> Array:
    """Return the shade of each cell: better above 0, worse below it."""
    good = strip.changes if strip.upward else -strip.changes
    finite = np.abs(good[np.isfinite(good)])
    darkest = max(float(finite.max(initial=0.0)), _DARKEST)
    levels = np.sign(good) * np.ceil(np.round(LEVELS * np.abs(good) / darkest, 9))
    shades: Array = np.nan_to_num(levels)
    return shades


KEYS = ramp("better", "worse, larger changes darker")
