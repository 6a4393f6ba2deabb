"""Discrimination: where indices cannot tell two classifiers apart (Labatut, Cherifi 2011)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from textwrap import fill
from typing import TYPE_CHECKING, Literal

import numpy as np

from rprime.core.arrays import Array
from rprime.core.studies import Line
from rprime.report.figures.axes import line_style, number_values
from rprime.report.figures.sheet import PIXELS, Canvas, Form, Picture, TooMuchToDrawError, draw
from rprime.report.styles import series_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 16
"""As many as pairs of k = 3 to 10 and p = 0 and 1, which figure 5 of the paper shows."""
MOST_CURVES = 16
MOST_NAMES = 60
"""That are looked through for lines that coincide."""
COLUMNS = 3
WIDTH = 4.6
"""Of a panel with what is beside it, in inches."""
HEIGHT = 4.85
"""Of one with what is above and below it but its legend."""
LEGEND_LINE = 0.19
LEGEND_WIDTH = 52
"""Characters of a line of a legend."""
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
        return [fill(text, LEGEND_WIDTH) for text in (*texts, *self.notes)]


def draw_discrimination(
    lines: Sequence[Line],
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
    NoFiguresError
        If matplotlib is not installed.
    TooMuchToDrawError
        If there are too many panels, or too many curves in one.
    """
    panels = _panels(lines, by)
    styles = {curve.style for panel in panels for curve in panel.curves}
    if len(styles) > MOST_CURVES:
        raise TooMuchToDrawError(_TOO_MANY)
    columns = min(columns, len(panels))
    rows = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    lengths = [max("\n".join(panel.legend).count("\n") + 1 for panel in row) for row in rows]

    def fill_all(figure: "Figure") -> None:
        for number, panel in enumerate(panels, 1):
            _plot(figure.add_subplot(len(rows), columns, number), panel)

    height = sum(HEIGHT + LEGEND_LINE * length for length in lengths)
    picture = Picture(title or "Discrimination lines", _ABOUT, height, fill_all)
    return draw(picture, Canvas(form, round(PIXELS * WIDTH * columns)))


def _panels(lines: Sequence[Line], by: Panels) -> list[_Panel]:
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


def _parts(line: Line, by: Panels) -> dict[str, str]:
    """Say what a line is of, part by part."""
    name, class_ = line.subject.index.name, line.subject.class_
    whole = class_ is None or by == "class"
    return {
        "index": name if whole else f"{name} of class {class_}",
        "class": "All classes" if class_ is None else f"Class {class_}",
        "k": f"k = {line.k}",
        "p": f"p = {line.p:g}",
    }


def _joined(parts: dict[str, str], names: Sequence[str]) -> str:
    return ", ".join(parts[name] for name in names)


def _panel(title: str, lines: Sequence[tuple[str, Line]]) -> _Panel:
    curves: list[_Curve] = []
    notes: dict[str, list[str]] = {}
    for name, group in groupby(lines, key=itemgetter(0)):
        branches = [line for _, line in group]
        if len(branches[0].points):
            _add(curves, _Curve((name,), tuple(line.points for line in branches)))
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


def _why(line: Line) -> str:
    if line.prefers is not None:
        return f"Always prefers {line.prefers}"
    return "Same for both" if line.reason == "indifferent" else "Undefined"


def _plot(axes: "Axes", panel: _Panel) -> None:
    axes.set(xlim=(0, 1), ylim=(0, 1), title=panel.title, box_aspect=1, anchor="NW")
    axes.set_xlabel("$c_x$: probability of being right, every class", parse_math=True)
    axes.set_ylabel("$c_y$: the same, class 1; the others always right", parse_math=True)
    for axis in (axes.xaxis, axes.yaxis):
        number_values(axis)
    axes.grid()
    for curve in panel.curves:
        for points in curve.branches:
            style = line_style(series_style(curve.style))
            axes.plot(*points.T, **style, linewidth=1.8, clip_on=False)
    # Below the axes the legend never hides a line; notes have no line.
    styles = [line_style(series_style(curve.style)) for curve in panel.curves]
    styles += [{"linestyle": "none"}] * len(panel.notes)
    handles = [axes.plot([], [], **style, linewidth=1.8)[0] for style in styles]
    axes.legend(
        handles, panel.legend, loc="upper left", bbox_to_anchor=(-0.03, -0.14), handlelength=2.6
    )
