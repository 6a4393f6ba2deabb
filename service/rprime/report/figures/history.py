"""Figures of a history by their names."""

from collections.abc import Callable, Mapping, Sequence

from rprime.report.figures.boxes import draw_boxes
from rprime.report.figures.lines import draw_lines
from rprime.report.figures.sheet import Canvas
from rprime.report.figures.steps import ClassHistory

TREND = "trend"
OF_CLASSES: Mapping[str, Callable[[Sequence[ClassHistory], str, Canvas], bytes]] = {
    "lines": draw_lines,
    "boxes": draw_boxes,
}
FIGURES = (TREND, *OF_CLASSES)
