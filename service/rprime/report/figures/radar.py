"""Radar: the values of the classes around a circle (Zhang, Su, Dou 2021, figure 1)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from rprime.core.arrays import Array
from rprime.report.figures.class_values import ClassValueArrays
from rprime.report.figures.confusion import about
from rprime.report.figures.palette import palette
from rprime.report.figures.sheet import Canvas, Picture, draw, named
from rprime.report.figures.ticks import number_values
from rprime.report.subject import ReportSubject

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.projections.polar import PolarAxes

MOST_SPOKES = 60
MOST_UPRIGHT = 16
"""Spokes up to which names stand upright."""
_MARKED = 24
"""Spokes up to which every value has a dot."""


def draw_radar(subject: ReportSubject, canvas: Canvas) -> bytes:
    """Draw the per-class indices of an evaluation, and its baseline where it has one."""
    values = ClassValueArrays.of(subject).worst(MOST_SPOKES)
    picture = Picture(
        title=values.title,
        about=about(subject),
        height=0.72 * canvas.inches,
        fill=lambda figure: _fill(figure, values, _outlines(values, subject)),
        notes=(*_notes(values), "The circles are labelled: their centre is not zero."),
    )
    return draw(picture, canvas)


def _outlines(values: ClassValueArrays, subject: ReportSubject) -> list[tuple[str, Array]]:
    """Return the lines of the radar: every index or, for one index, candidate and baseline.

    Overall indices follow, each as a regular polygon.
    """
    evaluation, k = subject.evaluation, len(values.labels)
    overall = zip(evaluation.overall_indices, evaluation.overall.tolist(), strict=True)
    regular = {index.key: (index.name, np.full(k, value)) for index, value in overall}
    of_classes = {index.key for index in values.indices}
    asked = [key for key in evaluation.options.indices or () if key not in of_classes]
    polygons = [regular[key] for key in asked if key in regular]
    if len(values.indices) > 1 or not values.compared:
        found = zip(values.indices, values.values, strict=True)
        return [*((index.name, row) for index, row in found), *polygons]
    before = named(subject.baseline or "baseline")
    both = [(named(subject.title), values.values[0]), (before, values.baseline[0])]
    return [*both, *polygons]


def _notes(values: ClassValueArrays) -> list[str]:
    notes = [values.left_out] if values.left_out else []
    undefined = int(np.isnan(values.values).sum())
    if undefined:
        notes.append(f"Where a line is open, the value is undefined ({undefined:,} times).")
    return notes


def _fill(figure: "Figure", values: ClassValueArrays, outlines: list[tuple[str, Array]]) -> None:
    axes: Any = figure.add_subplot(projection="polar")
    k = len(values.labels)
    angles = np.arange(k) * 2 * np.pi / max(k, 1)
    for number, (_, row) in enumerate(outlines):
        _outline(axes, angles, row, number)
    _scale(axes, outlines)
    _name_spokes(axes, angles, values)
    handles = axes.get_lines()[: len(outlines)]
    if len(outlines) > 1:
        # Named afterwards, since a legend leaves out what is called _x.
        legend = figure.legend(handles, ["x"] * len(handles), loc="outside right upper")
        for text, (name, _) in zip(legend.get_texts(), outlines, strict=True):
            text.set_text(name)


def _outline(axes: "PolarAxes", angles: Array, row: Array, number: int) -> None:
    closed = (np.append(part, part[:1]) for part in (angles, row))
    look = palette().look(number)
    marker = "osD^v"[number % 5] if len(angles) <= _MARKED else ""
    (line,) = axes.plot(
        *closed, **look, linewidth=1.7, marker=marker, markersize=3.6, zorder=4 - 0.1 * number
    )
    line.set_gid(f"outline-{number + 1}")
    if number == 0 and np.isfinite(row).all():
        axes.fill(angles, row, color=look["color"], alpha=0.07, linewidth=0)


def _scale(axes: "PolarAxes", outlines: list[tuple[str, Array]]) -> None:
    """Choose the stretch of values that the spokes show."""
    rows = np.concatenate([row for _, row in outlines])
    known = rows[np.isfinite(rows)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
    width = max(high - low, 1e-3)
    number_values(axes.yaxis, 5)
    axes.set_ylim(low - 0.15 * width, high + 0.02 * width)
    axes.yaxis.set_tick_params(labelsize=7.5, labelcolor=palette().soft)


def _name_spokes(axes: "PolarAxes", angles: Array, values: ClassValueArrays) -> None:
    """Name the classes around the circle, along their spokes where they are many."""
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_rlabel_position(float(np.degrees(np.pi / max(len(angles), 1))))
    axes.set_xticks(angles, [""] * len(angles))
    axes.spines["polar"].set_color(palette().line)
    inner, outer = axes.get_ylim()
    beyond = outer + 0.05 * (outer - inner)
    turned = len(angles) > MOST_UPRIGHT
    for angle, label in zip(angles.tolist(), values.labels, strict=True):
        axes.text(angle, beyond, named(label), size=8.5, **_turn(angle, turned=turned))


def _turn(angle: float, *, turned: bool) -> dict[str, Any]:
    """Let a name begin, or end, at the circle; clockwise from the top."""
    side = round(np.sin(angle), 6)
    if turned:
        degrees = 90 - np.degrees(angle)
        look = {"rotation": degrees + 180 if side < 0 else degrees, "rotation_mode": "anchor"}
        return look | {"ha": "right" if side < 0 else "left", "va": "center_baseline"}
    height = round(np.cos(angle), 6)
    upright = "bottom" if height > 0 else "top"
    return {
        "ha": "left" if side > 0 else "right" if side < 0 else "center",
        "va": "center_baseline" if side else upright,
    }
