"""Dots: a row for each class, its value a dot, its interval a line, its baseline a diamond."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array
from rprime.report.charts.axes import (
    REFERENCE,
    Scale,
    across,
    interval,
    legend,
    shown_class,
    swatch,
)
from rprime.report.charts.confusion import about
from rprime.report.charts.drawing import (
    NOTE,
    Drawing,
    Group,
    Marks,
    Paint,
    Path,
    Shape,
    Text,
    fitted,
    moved,
    widest,
)
from rprime.report.charts.sheet import Canvas, Picture, draw
from rprime.report.class_charts import ClassChart, chart_indices
from rprime.report.marks import Axis
from rprime.report.measures import Measures, class_changes
from rprime.report.subject import ReportSubject
from rprime.report.text import decimal, percent, span

ROW = 24.0
_HEAD = 40.0
_APART = 28.0
_LIMIT = Paint(stroke="ink", width=2.0)
_ZERO = Paint(stroke="ink-soft")


@dataclass(frozen=True, eq=False)
class Panel:
    """What one column of dots shows, an entry for each row; NaN where there is nothing."""

    title: str
    axis: Axis
    values: Array
    low: Array
    high: Array
    baseline: Array
    limit: Array
    """Where a rule ends."""
    tones: Sequence[str]
    """A colour for each row: the accent, or that of what is shown to be worse or better."""
    zero: bool = False
    """Whether a line stands at 0, as for changes."""


def plot_dots(
    names: Sequence[str], panels: Sequence[Panel], width: float, rows: Sequence[Mapping[str, str]]
) -> Drawing:
    """Draw panels beside each other with the same rows.

    Parameters
    ----------
    rows
        Data of each row for the script of the pages.
    """
    side = min(widest(names) + 12, 0.34 * width)
    room = (width - side) / len(panels)
    bottom = _HEAD + ROW * len(names)
    scales = [
        Scale.of(panel.axis, side + room * i + _APART / 2, side + room * (i + 1) - _APART / 2)
        for i, panel in enumerate(panels)
    ]
    shapes: list[Shape] = []
    for panel, scale in zip(panels, scales, strict=True):
        shapes += _frame(panel, scale, bottom, room)
    for number, name in enumerate(names):
        y = _HEAD + ROW * (number + 0.5)
        marks = [
            mark for pair in zip(panels, scales, strict=True) for mark in _row(*pair, number, y)
        ]
        label = Text(0, y + 4, fitted(name, side - 12))
        shapes.append(Group([label, *marks], "row", rows[number], _said(name, panels, number)))
    return Drawing(width, bottom + 8, shapes)


def _frame(panel: Panel, scale: Scale, bottom: float, room: float) -> list[Shape]:
    shapes: list[Shape] = [
        Text(scale.start, 14, fitted(panel.title, room - 8), size=NOTE, bold=True),
        *across(scale, _HEAD, bottom, labels=_HEAD - 8),
    ]
    if panel.zero:
        shapes.append(Path([[(scale(0), _HEAD), (scale(0), bottom)]], _ZERO))
    return shapes


def _row(panel: Panel, scale: Scale, row: int, y: float) -> list[Shape]:
    """Draw the marks of a panel in a row."""
    colour, shapes = panel.tones[row], list[Shape]()
    low, high = float(panel.low[row]), float(panel.high[row])
    if np.isfinite([low, high]).all():
        line = interval(scale(max(low, scale.low)), scale(min(high, scale.high)), y)
        shapes.append(Path([line], Paint(stroke=colour, width=2.0), name="whiskers"))
    if np.isfinite(panel.limit[row]):
        x = scale(float(panel.limit[row]))
        shapes.append(Path([[(x, y - 7), (x, y + 7)]], _LIMIT, name="limit"))
    if np.isfinite(panel.baseline[row]):
        point = (scale(float(panel.baseline[row])), y)
        shapes.append(Marks([point], REFERENCE, "diamond", name="baseline"))
    if np.isfinite(panel.values[row]):
        point = (scale(float(panel.values[row])), y)
        shapes.append(Marks([point], Paint(colour), name="values"))
    return shapes


def _said(name: str, panels: Sequence[Panel], row: int) -> str:
    """Say the numbers of a row."""
    words = []
    for panel in panels:
        value = float(panel.values[row])
        if not np.isfinite(value):
            continue
        low, high = float(panel.low[row]), float(panel.high[row])
        limits = f" {span(low, high)}" if np.isfinite([low, high]).all() else ""
        before = float(panel.baseline[row])
        against = f", baseline {decimal(before)}" if np.isfinite(before) else ""
        words.append(f"{panel.title} {decimal(value)}{limits}{against}")
    return f"{name}: {'; '.join(words)}"


def panels_of(chart: ClassChart, subject: ReportSubject) -> list[Panel]:
    """Return a panel for each index of a chart."""
    nothing = np.full(len(chart.labels), np.nan)
    panels = []
    for row, index in enumerate(chart.indices):
        changes = class_changes(subject.comparison, index.key)
        tones = [
            "bad" if (c := changes.get(label)) is not None and c.tone == "worse" else "accent"
            for label in chart.labels
        ]
        columns = (chart.values[row], chart.low[row], chart.high[row], chart.baseline[row])
        panels.append(Panel(index.name, chart.axis(row), *columns, nothing, tones))
    return panels


def key_of(
    confidence: float, *, intervals: bool, baseline: str, limit: bool = False, worse: bool = False
) -> list[tuple[Sequence[Shape], str]]:
    """Say what the marks mean, for `legend`."""
    dot: list[Shape] = [Marks([(14, 0)], Paint("accent"))]
    line: list[Shape] = [swatch(Paint(stroke="accent", width=2.0)), *dot]
    entries: list[tuple[Sequence[Shape], str]] = [
        (line, f"value and its {percent(confidence)} interval") if intervals else (dot, "value")
    ]
    if baseline:
        entries.append(([Marks([(14, 0)], REFERENCE, "diamond")], baseline))
    if limit:
        entries.append(([Path([[(14, -7), (14, 7)]], _LIMIT)], "limit of the rule"))
    if worse:
        entries.append(([Marks([(14, 0)], Paint("bad"))], "shown to be worse"))
    return entries


def draw_per_class(subject: ReportSubject, canvas: Canvas) -> bytes:
    """Draw a row for each class and a panel for each index."""
    chart = ClassChart.of(Measures(subject), chart_indices(subject)).as_in_table(subject)
    panels = panels_of(chart, subject)
    names = [shown_class(label) for label in chart.labels]

    def plot(width: float) -> Drawing:
        most = max(1, int(width / 150))
        rows = [panels[start : start + most] for start in range(0, len(panels), most)]
        return stacked(
            [plot_dots(names, row, width, [{}] * len(names)) for row in rows], key, width
        )

    baseline = f"baseline: {shown_class(subject.baseline or 'baseline')}" if chart.compared else ""
    key = key_of(
        subject.evaluation.options.confidence,
        intervals=bool(np.isfinite(chart.low).any()),
        baseline=baseline,
        worse=any("bad" in panel.tones for panel in panels),
    )
    return draw(Picture(chart.title, about(subject), plot, (chart.order,)), canvas)


def stacked(
    drawings: Sequence[Drawing], key: Sequence[tuple[Sequence[Shape], str]], width: float
) -> Drawing:
    """Put drawings below each other, and a legend below all."""
    shapes, top = list[Shape](), 0.0
    for drawing in drawings:
        shapes += moved(drawing.shapes, 0, top)
        top += drawing.height + 8
    words, height = legend(key, 0, top, width)
    return Drawing(width, top + height, [*shapes, *words])
