"""Plots of scores in a page: the lines of a chart as places in an SVG."""

from math import ceil
from typing import Any

import numpy as np

from rprime.core.arrays import Array
from rprime.report.decimals import bound
from rprime.report.marks import round_step
from rprime.report.score_charts import Chart, Line, Panel

WIDTH, HEIGHT = 360.0, 270.0
"""Of the axes, in the units of the SVG."""


def plots(charts: list[Chart]) -> list[dict[str, Any]]:
    """Return what a template draws of charts."""
    return [
        {
            "name": chart.name,
            "title": chart.title,
            "lead": chart.lead,
            "panels": [_panel(panel, chart) for panel in chart.panels],
            "legend": [
                (_css(chart.lines.get(name)), name, value) for name, value in chart.keys.items()
            ],
            "columns": chart.columns,
            "rows": chart.rows,
        }
        for chart in charts
    ]


def _panel(panel: Panel, chart: Chart) -> dict[str, Any]:
    low, high = panel.ends
    return {
        "title": panel.title,
        "words": f"{panel.title or chart.title}: {panel.y_label} by {panel.x_label}",
        "x_label": panel.x_label,
        "y_label": panel.y_label,
        "x_ticks": [(_x(panel, tick), bound(tick)) for tick in _ticks(low, high)],
        "y_ticks": [(_y(panel, tick), bound(tick)) for tick in _ticks(0.0, panel.top)],
        "lines": [_line(panel, line) for line in panel.lines],
        "diagonal": panel.diagonal,
    }


def _line(panel: Panel, line: Line) -> dict[str, Any]:
    points = _points(panel, line.x, line.y)
    return {
        "css": _css(line),
        "points": " ".join(points),
        "filled": line.filled,
        "dots": [point.split(",") for point in points] if line.dotted else [],
        "band": "" if line.band is None else " ".join(_around(panel, line.x, line.band)),
    }


def _css(line: Line | None) -> str:
    """Return the class of a line; None is the diagonal."""
    if line is None:
        return "diagonal"
    return "line" if line.style is None else f"line style{line.style}"


def _around(panel: Panel, x: Array, band: Array) -> list[str]:
    """Go along the upper limits and back along the lower ones."""
    low, high = band
    return _points(panel, np.append(x, x[::-1]), np.append(high, low[::-1]))


def _points(panel: Panel, x: Array, y: Array) -> list[str]:
    across, down = _x(panel, x), _y(panel, y)
    return [f"{a:g},{b:g}" for a, b in zip(across.tolist(), down.tolist(), strict=True)]


def _x(panel: Panel, x: Array | float) -> Array:
    low, high = panel.ends
    return np.round((np.asarray(x) - low) / ((high - low) or 1.0) * WIDTH, 1)


def _y(panel: Panel, y: Array | float) -> Array:
    return np.round(HEIGHT - np.asarray(y) / panel.top * HEIGHT, 1)


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers within an axis."""
    step = round_step((high - low) or 1.0)
    return [n * step for n in range(ceil(low / step - 1e-9), int(high / step + 1e-9) + 1)]
