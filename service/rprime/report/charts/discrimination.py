"""Discrimination: where indices cannot tell two classifiers apart (Labatut, Cherifi 2011)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Literal

import numpy as np

from rprime.core.arrays import Array
from rprime.core.catalog import find
from rprime.core.studies import DiscriminationLine
from rprime.report.charts.axes import FRAME, GAP, LINE, Scale, across, stroke_of, swatch, upright
from rprime.report.charts.drawing import AXIS, NOTE, Drawing, Path, Shape, Text, moved
from rprime.report.charts.sheet import (
    MARGIN,
    Canvas,
    Form,
    Picture,
    TooMuchToDrawError,
    draw,
    wrapped,
)
from rprime.report.marks import Axis
from rprime.report.styles import series_style

MOST_PANELS = 16
"""As many as pairs of k = 3 to 10 and p = 0 and 1, which figure 5 of the paper shows."""
MOST_CURVES = 16
MOST_NAMES = 60
"""That are looked through for lines that coincide."""
COLUMNS = 3
WIDTH = 440
"""Of a panel with what is beside it."""
_AXES = 360.0
"""Width and height of the axes."""
_LEFT, _TOP = 56.0, 28.0
Panels = Literal["condition", "index", "class", "imbalance"]
_SHARED: dict[Panels, tuple[str, ...]] = {
    "condition": ("k", "p"),
    "index": ("index",),
    "class": ("class",),
    "imbalance": ("p",),
}
"""What the lines of one panel have in common."""
_TOO_MANY = (
    f"A figure shows at most {MOST_PANELS} panels, and at most {MOST_CURVES} lines that differ."
)
_ACROSS = "c_x: probability of being right, every class"
_UP = "c_y: the same, class 1; the others always right"
_ABOUT = (
    "Each point is a pair of classifiers, x and y. On a line the index gives both the same value; "
    "above it the index prefers series y, below it series x."
)


@dataclass(frozen=True, eq=False)
class _Curve:
    """Lines that are drawn as one: the branches of an index, and what coincides with it."""

    names: tuple[str, ...]
    branches: tuple[Array, ...]
    style: int = 0
    """Number of its colour and dashes: the same for one name in all panels."""


@dataclass(frozen=True, eq=False)
class _Panel:
    """One plot: its title, its curves, and in words what has none."""

    title: str
    curves: tuple[_Curve, ...]
    notes: tuple[str, ...]

    @property
    def legend(self) -> list[str]:
        """What stands below the plot: the names of its curves, then the notes."""
        parts = [("; ".join(curve.names[:-1]), curve.names[-1]) for curve in self.curves]
        texts = [" and ".join(filter(None, part)) for part in parts]
        return [*texts, *self.notes]


def draw_discrimination(
    lines: Sequence[DiscriminationLine],
    *,
    title: str = "",
    by: Panels = "condition",
    columns: int = COLUMNS,
    form: Form = "svg",
) -> bytes:
    """Draw the lines of `discriminate`.

    Parameters
    ----------
    by
        What has a panel of its own: each pair of k and p, each index, of a class or overall, each
        class, or each p.
    columns
        Panels beside each other, at most.

    Raises
    ------
    TooMuchToDrawError
        If there are too many panels, or too many curves in one.
    """
    panels = _panels(lines, by)
    styles = {curve.style for panel in panels for curve in panel.curves}
    if len(styles) > MOST_CURVES:
        raise TooMuchToDrawError(_TOO_MANY)
    columns = min(columns, len(panels))

    def plot(width: float) -> Drawing:
        shapes, top = list[Shape](), 0.0
        for start in range(0, len(panels), columns):
            row = [_plot(panel) for panel in panels[start : start + columns]]
            for number, drawing in enumerate(row):
                shapes += moved(drawing.shapes, WIDTH * number, top)
            top += max(drawing.height for drawing in row) + 24
        return Drawing(width, top, shapes)

    picture = Picture(title or "Discrimination lines", _ABOUT, plot)
    return draw(picture, Canvas(form, round(WIDTH * columns + 2 * MARGIN)))


def _panels(lines: Sequence[DiscriminationLine], by: Panels) -> list[_Panel]:
    parts, shared = [_parts(line, by) for line in lines], _SHARED[by]
    kept = [name for name in ("index", "k", "p") if name not in shared]
    told = [name for name in kept if len({part[name] for part in parts}) > 1] or kept
    named = [
        (_joined(part, shared), _joined(part, told), line)
        for part, line in zip(parts, lines, strict=True)
    ]
    titles = dict.fromkeys(panel for panel, _, _ in named)
    # Before lines are compared with each other, which takes long for very many.
    if len(titles) > MOST_PANELS or len({name for _, name, _ in named}) > MOST_NAMES:
        raise TooMuchToDrawError(_TOO_MANY)
    panels = [
        _panel(title, [(name, line) for panel, name, line in named if panel == title])
        for title in titles
    ]
    first = dict.fromkeys(curve.names[0] for panel in panels for curve in panel.curves)
    styles = {name: style for style, name in enumerate(first)}
    return [
        replace(panel, curves=tuple(replace(c, style=styles[c.names[0]]) for c in panel.curves))
        for panel in panels
    ]


def _parts(line: DiscriminationLine, by: Panels) -> dict[str, str]:
    """Say what a line is of, part by part."""
    class_ = line.class_
    entry = find("overall" if class_ is None else "class", line.index)
    name = line.index if entry is None else entry.name
    whole = class_ is None or by == "class"
    return {
        "index": name if whole else f"{name} of class {class_}",
        "class": "All classes" if class_ is None else f"Class {class_}",
        "k": f"k = {line.k}",
        "p": f"p = {line.p:g}",
    }


def _joined(parts: dict[str, str], names: Sequence[str]) -> str:
    return ", ".join(parts[name] for name in names)


def _panel(title: str, lines: Sequence[tuple[str, DiscriminationLine]]) -> _Panel:
    curves: list[_Curve] = []
    notes: dict[str, list[str]] = {}
    for name, group in groupby(lines, key=itemgetter(0)):
        branches = [line for _, line in group]
        if len(branches[0].points):
            _add(curves, _Curve((name,), tuple(line.coordinates for line in branches)))
        else:
            notes.setdefault(_why(branches[0]), []).append(name)
    return _Panel(title, tuple(curves), tuple(f"{why}: {'; '.join(n)}" for why, n in notes.items()))


def _add(curves: list[_Curve], new: _Curve) -> None:
    """Add a curve, or its name to the one that it coincides with."""
    for place, curve in enumerate(curves):
        shapes = [[branch.shape for branch in member.branches] for member in (curve, new)]
        pairs = zip(curve.branches, new.branches, strict=False)
        if shapes[0] == shapes[1] and all(np.allclose(*pair, rtol=0, atol=1e-6) for pair in pairs):
            curves[place] = replace(curve, names=(*curve.names, *new.names))
            return
    curves.append(new)


def _why(line: DiscriminationLine) -> str:
    if line.prefers is not None:
        return f"Always prefers {line.prefers}"
    return "Same for both" if line.reason == "indifferent" else "Undefined"


def _plot(panel: _Panel) -> Drawing:
    right, bottom = _LEFT + _AXES, _TOP + _AXES
    x, y = (Scale.of(Axis(0.0, 1.0), *ends) for ends in ((_LEFT, right), (bottom, _TOP)))
    shapes: list[Shape] = [
        Text(_LEFT, 16, panel.title, size=NOTE, bold=True),
        *upright(y, _LEFT, right),
        *across(x, _TOP, bottom, labels=bottom + LINE + 2),
        Path([[(_LEFT, _TOP), (_LEFT, bottom), (right, bottom)]], FRAME),
        Text(_LEFT + _AXES / 2, bottom + 2 * LINE + GAP, _ACROSS, "middle"),
        Text(11, _TOP + _AXES / 2, _UP, "middle", turn=-90),
    ]
    for number, curve in enumerate(panel.curves, 1):
        points = [[(x(float(a)), y(float(b))) for a, b in branch] for branch in curve.branches]
        paint = stroke_of(series_style(curve.style))
        shapes.append(Path(points, paint, name=f"curve-{number}"))
    # Below the axes the legend never hides a line; notes have no line.
    paints = [stroke_of(series_style(curve.style)) for curve in panel.curves]
    top = bottom + 2 * LINE + 3 * GAP
    for number, text in enumerate(panel.legend):
        for line, words in enumerate(wrapped(text, _AXES - 40, AXIS)):
            top += LINE + 3
            if not line and number < len(paints):
                shapes += moved([swatch(paints[number])], _LEFT, top - 4)
            shapes.append(Text(_LEFT + 36, top, words))
    return Drawing(WIDTH, top + GAP, shapes)
