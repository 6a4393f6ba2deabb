"""Figures of scores, drawn as `rprime.report.score_charts` says."""

from functools import partial
from typing import TYPE_CHECKING, Any

from rprime.report.figures.axes import line_style, number_values, palette
from rprime.report.figures.confusion import about
from rprime.report.figures.sheet import Canvas, NothingToDrawError, Picture, draw, named
from rprime.report.score_charts import CHARTS, NO_SCORES, Line, Panel, chart_of_scores
from rprime.report.styles import series_style
from rprime.report.subject import ReportSubject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT = 3.9
"""Of a row of panels, in inches."""
_SMALL = 2.6
"""Of one of several rows."""
_PANEL = 2.4
"""Least width of a panel."""
_LEAST = 3.4
"""Least height of a panel beside its legend."""
_KEY = 0.2
_TALLEST = 0.66
"""Height of a square panel beside its legend, in widths of the figure, at most."""
_LETTER = 0.075
_AROUND = 0.9
"""Inches for a letter of the legend, and for the lines, labels and margins beside a panel."""


def draw_scores(name: str, subject: ReportSubject, canvas: Canvas) -> bytes:
    """Draw a chart of the scores; raises NothingToDrawError if there are none that it shows."""
    chart = chart_of_scores(name, subject)
    if chart is None:
        raise NothingToDrawError(NO_SCORES if subject.scores is None else NO_CHART)
    columns = min(len(chart.panels), max(1, int(canvas.inches / _PANEL)))
    rows = -(-len(chart.panels) // columns)
    height = _HEIGHT if rows == 1 else _SMALL * rows
    keys = {name: f"{value}  {named(name)}".strip() for name, value in chart.keys.items()}
    room = canvas.inches - _AROUND - _LETTER * max(map(len, keys.values()), default=0)
    beside = rows == columns == 1 and room > _LEAST
    if not beside:
        height += _KEY * len(keys)
    elif chart.panels[0].square:
        height = min(room, _TALLEST * canvas.inches)

    def fill_all(figure: "Figure") -> None:
        grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axes in grid.flat:
            axes.set_axis_off()
        handles: dict[str, Any] = {}
        for panel, axes in zip(chart.panels, grid.flat, strict=False):
            axes.set_axis_on()
            handles |= _plot(axes, panel)
        place = (1.04, 1) if beside else (0, -0.24 if rows == 1 else -0.4)
        placed: dict[str, Any] = {"bbox_to_anchor": place, "handlelength": 3, "borderaxespad": 0}
        if keys:
            lines = [handles[name] for name in keys]
            grid[-1][0].legend(lines, list(keys.values()), loc="upper left", **placed)

    picture = Picture(chart.title, about(subject), height, fill_all, (chart.lead,))
    return draw(picture, canvas)


NO_CHART = "These scores give no such chart: all items are of one class, or are no probabilities."
DRAWN = {name: partial(draw_scores, name) for name in CHARTS}
"""What draws each of the charts."""


def _plot(axes: "Axes", panel: Panel) -> dict[str, Any]:
    """Draw a panel; return its lines by their names in the legend."""
    axes.set(xlim=panel.ends, ylim=(0, panel.top), title=named(panel.title))
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label)
    axes.grid()
    axes.label_outer()
    if panel.square:
        axes.set(box_aspect=1, anchor="NW")
    for axis in (axes.xaxis, axes.yaxis):
        number_values(axis)
    handles = {line.name: _draw(axes, line) for line in panel.lines}
    if panel.diagonal:
        ends = ([panel.ends[0], panel.ends[1]], [0, panel.top])
        (handles[panel.diagonal],) = axes.plot(
            *ends, color=palette()["ink-soft"], linestyle=(0, (1, 3))
        )
    return handles


def _draw(axes: "Axes", line: Line) -> Any:  # noqa: ANN401 (matplotlib is an extra)
    style = (
        {"color": palette()["ink"]} if line.style is None else line_style(series_style(line.style))
    )
    (drawn,) = axes.plot(line.x, line.y, **style, linewidth=1.7, clip_on=False, zorder=3)
    if line.dotted:
        drawn.set(marker="o", markersize=4.5)
    if line.band is not None:
        axes.fill_between(line.x, *line.band, color=style["color"], alpha=0.18, linewidth=0)
    if line.filled:
        axes.fill_between(line.x, line.y, color=style["color"], alpha=0.14, linewidth=0)
    return drawn
