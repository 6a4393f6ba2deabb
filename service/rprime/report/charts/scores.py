"""Scores: curves of a score on square axes, with bands, and the lines of discrimination."""

from collections.abc import Sequence
from functools import partial

from rprime.core.arrays import Array
from rprime.report.charts.axes import (
    FRAME,
    GAP,
    LINE,
    Scale,
    across,
    legend,
    room_of,
    shown_class,
    stroke_of,
    swatch,
    upright,
)
from rprime.report.charts.confusion import about
from rprime.report.charts.drawing import (
    NOTE,
    Drawing,
    Marks,
    Paint,
    Path,
    Point,
    Shape,
    Text,
    fitted,
    moved,
    width_of,
)
from rprime.report.charts.sheet import Canvas, NothingToDrawError, Picture, draw
from rprime.report.marks import Axis
from rprime.report.score_charts import CHARTS, NO_SCORES, Chart, Line, Panel, chart_of_scores
from rprime.report.styles import series_style
from rprime.report.subject import ReportSubject

NO_CHART = "These scores give no such chart: all items are of one class, or are no probabilities."
HEIGHT = 270.0
"""Of axes that are no squares."""
LARGEST = 360.0
"""Width of the axes."""
_NARROWEST = 230.0
"""Of a panel beside another one."""
_DIAGONAL = Paint(stroke="ink-soft", dash=(1, 3))


def paint_of(line: Line) -> Paint:
    """Return how a line is painted."""
    return (
        Paint(stroke="ink", width=2) if line.style is None else stroke_of(series_style(line.style))
    )


def plot_panel(panel: Panel, width: float, height: float = 0.0) -> Drawing:
    """Draw lines on axes; without a height, equal units of both axes have equal lengths."""
    up, top = Axis(panel.bottom, panel.top), 28.0 if panel.title else 10.0
    left = room_of(Scale.of(up, 1, 0)) + LINE
    room = min(width - left - 12, LARGEST)
    height = height or (room if panel.square else min(HEIGHT, 0.8 * room))
    x = Scale(*panel.ends, left, left + room)
    y = Scale.of(up, top + height, top)
    bottom = top + height
    shapes: list[Shape] = [
        *upright(y, left, left + room),
        *across(x, top, bottom, labels=bottom + LINE + 2),
        Path([[(left, top), (left, bottom), (left + room, bottom)]], FRAME),
        Text(left + room / 2, bottom + 2 * LINE + GAP, panel.x_label, "middle"),
        Text(11, top + height / 2, panel.y_label, "middle", turn=-90),
    ]
    if panel.title:
        shapes.append(Text(left, 16, fitted(shown_class(panel.title), room), size=NOTE, bold=True))
    if panel.diagonal:
        shapes.append(Path([[(left, bottom), (left + room, top)]], _DIAGONAL, name="diagonal"))
    for line in panel.lines:
        shapes += _line(line, x, y)
    return Drawing(left + room + 12, bottom + 2 * LINE + 2 * GAP, shapes)


def _line(line: Line, x: Scale, y: Scale) -> list[Shape]:
    paint, points = paint_of(line), _points(line.x, line.y, x, y)
    shapes: list[Shape] = []
    if line.band is not None:
        low, high = (_points(line.x, limits, x, y) for limits in line.band)
        area = Paint(paint.stroke, opacity=0.18)
        shapes.append(Path([[*high, *reversed(low)]], area, closed=True, name="band"))
    if line.filled:
        ground = [(points[-1][0], y(0.0)), (points[0][0], y(0.0))]
        area = Paint(paint.stroke, opacity=0.14)
        shapes.append(Path([[*points, *ground]], area, closed=True, name="area"))
    shapes.append(Path([points], paint, name="curve"))
    if line.dotted:
        shapes.append(Marks(points, Paint(paint.stroke), radius=3.5, name="dots"))
    return shapes


def _points(across_: Array, up: Array, x: Scale, y: Scale) -> list[Point]:
    return [(x(float(a)), y(float(b))) for a, b in zip(across_, up, strict=True)]


def plot_scores(chart: Chart, width: float) -> Drawing:
    """Draw all panels of a chart, with what their lines mean below or beside them."""
    columns = min(len(chart.panels), max(1, int(width / _NARROWEST)))
    room = width / columns
    shapes, top, height, right = list[Shape](), 0.0, 0.0, 0.0
    for number, panel in enumerate(chart.panels):
        if number and not number % columns:
            top, height = top + height + 12, 0.0
        drawing = plot_panel(panel, room)
        shapes += moved(drawing.shapes, room * (number % columns), top)
        height, right = max(height, drawing.height), drawing.width
    keys = keys_of(chart)
    longest = max((36 + width_of(words) for _, words in keys), default=0.0)
    if len(chart.panels) == 1 and keys and width - right > longest + 16:
        for number, (marks, words) in enumerate(keys):
            y = 20 + 20 * number
            shapes += [*moved(marks, right + 16, y), Text(right + 52, y + 4, words)]
        return Drawing(width, top + height, shapes)
    texts, below = legend(keys, 0, top + height, width)
    return Drawing(width, top + height + below, [*shapes, *texts])


def keys_of(chart: Chart) -> list[tuple[Sequence[Shape], str]]:
    """Say what the lines of a chart mean, for `legend`."""
    lines = chart.lines
    return [
        (
            [swatch(paint_of(lines[name]) if name in lines else _DIAGONAL)],
            ", ".join(filter(None, (shown_class(name), value))),
        )
        for name, value in chart.keys.items()
    ]


def draw_scores(name: str, subject: ReportSubject, canvas: Canvas) -> bytes:
    """Draw a chart of the scores; raises NothingToDrawError if there are none that it shows."""
    chart = chart_of_scores(name, subject)
    if chart is None:
        raise NothingToDrawError(NO_SCORES if subject.scores is None else NO_CHART)
    plot = partial(plot_scores, chart)
    return draw(Picture(chart.title, about(subject), plot, (chart.lead,)), canvas)


DRAWN = {name: partial(draw_scores, name) for name in CHARTS}
"""What draws each of the charts."""
