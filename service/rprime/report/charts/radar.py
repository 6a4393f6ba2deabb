"""Radar: the classes around a circle, as the papers draw them; of very few, as bars."""

from collections.abc import Sequence
from math import cos, degrees, pi, sin

import numpy as np

from rprime.report.charts.axes import GRID, Scale, across, legend, shown_class, stroke_of
from rprime.report.charts.confusion import about
from rprime.report.charts.drawing import (
    Anchor,
    Drawing,
    Group,
    Marks,
    Paint,
    Path,
    Point,
    Shape,
    Text,
    rectangle,
    widest,
)
from rprime.report.charts.sheet import Canvas, Picture, draw
from rprime.report.class_charts import RadarChart, chart_indices
from rprime.report.subject import ReportSubject

LONGEST_SPOKE = 14
"""Characters of a name at a spoke."""
MOST_UPRIGHT = 16
"""Spokes up to which names stand upright."""
_BAR = 14.0
_RADIUS = 190.0
"""Largest one."""


def draw_radar(subject: ReportSubject, canvas: Canvas) -> bytes:
    """Draw the classes and a baseline around a circle (Zhang, Su, Dou 2021, figure 1)."""
    chart = RadarChart.of(subject, chart_indices(subject), subject.evaluation.options.indices or ())
    missing = "bar is missing" if chart.bars else "line is open"
    undefined = sum(int(np.isnan(outline.values).sum()) for outline in chart.outlines)
    notes = [chart.order]
    if undefined:
        notes.append(f"Where a {missing}, the value is undefined ({undefined:,} times).")
    if not chart.bars:
        notes.append("The circles are labelled: their centre is not zero.")

    def plot(width: float) -> Drawing:
        drawing = _bars(chart, width) if chart.bars else _circle(chart, width)
        keys = _keys(chart) if len(chart.outlines) > 1 else []
        words, height = legend(keys, 0, drawing.height, width)
        return Drawing(width, drawing.height + height, [*drawing.shapes, *words])

    return draw(Picture(chart.title, about(subject), plot, tuple(notes)), canvas)


def _keys(chart: RadarChart) -> list[tuple[Sequence[Shape], str]]:
    return [
        (
            [
                Path([[(0, 0), (28, 0)]], stroke_of(outline.style)),
                Marks([(14, 0)], Paint(outline.style.colour), outline.style.symbol),
            ],
            shown_class(outline.name),
        )
        for outline in chart.outlines
    ]


def _bars(chart: RadarChart, width: float) -> Drawing:
    names = [shown_class(label) for label in chart.labels]
    side, count, top = widest(names) + 12, len(chart.outlines), 24.0
    scale = Scale.of(chart.axis, side, width - 20)
    row = _BAR * count + 12
    bottom = top + row * len(names)
    shapes = across(scale, top, bottom, labels=top - 8)
    for number, name in enumerate(names):
        shapes.append(Text(0, top + row * (number + 0.5) + 4, name))
    for number, outline in enumerate(chart.outlines):
        boxes = [
            rectangle(
                scale(0.0), top + row * i + 6 + _BAR * number, scale(value) - scale(0.0), _BAR - 2
            )
            for i, value in enumerate(outline.values.tolist())
            if np.isfinite(value)
        ]
        fill = Paint(outline.style.colour)
        shapes.append(Path(boxes, fill, closed=True, name=f"outline-{number + 1}"))
    return Drawing(width, bottom + 8, shapes)


def _circle(chart: RadarChart, width: float) -> Drawing:
    names = [shown_class(label, LONGEST_SPOKE) for label in chart.labels]
    turned = len(names) > MOST_UPRIGHT
    room = widest(names) + 14
    radius = min(_RADIUS, width / 2 - room)
    above = room if turned else 30.0
    x, y = width / 2, above + radius
    scale = Scale.of(chart.axis, 0, radius)
    angles = [2 * pi * i / len(names) for i in range(len(names))]
    shapes = _web(scale, angles, (x, y))
    for number, outline in enumerate(chart.outlines, 1):
        points = [
            _place(angle, scale(value), (x, y)) if np.isfinite(value) else None
            for angle, value in zip(angles, outline.values.tolist(), strict=True)
        ]
        line = Path(_runs([*points, points[0]]), stroke_of(outline.style), name=f"line-{number}")
        dots = [point for point in points if point is not None]
        paint = Paint(outline.style.colour)
        marks = Marks(dots, paint, outline.style.symbol, 3.5, f"outline-{number}")
        shapes.append(Group([line, marks], f"series-{number}"))
    for angle, name in zip(angles, names, strict=True):
        shapes.append(_spoke(angle, name, radius + 8, (x, y), turned=turned))
    return Drawing(width, y + radius + above, shapes)


def _place(angle: float, radius: float, centre: Point) -> Point:
    return centre[0] + radius * sin(angle), centre[1] - radius * cos(angle)


def _web(scale: Scale, angles: Sequence[float], centre: Point) -> list[Shape]:
    ticks = [tick for tick in scale.ticks(6) if tick[0] > 0]
    spokes = [[centre, _place(angle, scale.end, centre)] for angle in angles]
    rings = [Marks([centre], GRID, "circle", radius) for radius, _ in ticks if radius > 0]
    numbers = [
        Text(*_place(pi / len(angles), r, centre), t, "middle", 10, "ink-soft") for r, t in ticks
    ]
    return [Path(spokes, GRID), *rings, *numbers]


def _runs(points: Sequence[Point | None]) -> list[list[Point]]:
    """Return the lines between points, open where one is missing."""
    runs: list[list[Point]] = [[]]
    for point in points:
        if point is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [run for run in runs if run]


def _spoke(angle: float, name: str, radius: float, centre: Point, *, turned: bool) -> Text:
    """Name a class at its spoke, along it where they are many."""
    x, y = _place(angle, radius, centre)
    side, up = round(sin(angle), 6), round(cos(angle), 6)
    anchor: Anchor = "start" if side > 0 else "end" if side < 0 else "middle"
    if turned:
        turn = degrees(angle) - 90 + (180 if side < 0 else 0)
        down = 4.0
        across_, below = -down * sin(turn * pi / 180), down * cos(turn * pi / 180)
        return Text(x + across_, y + below, name, "end" if side < 0 else "start", turn=turn)
    return Text(x, y + (0 if up > 0 else 10 if up < 0 else 4), name, anchor)
