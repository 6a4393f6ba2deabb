"""Lines: an index of the classes over versions (Zhang, Su, Dou 2021, figure 2)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rprime.report.decimals import plural
from rprime.report.figures.sheet import Canvas
from rprime.report.figures.steps import MOST_STACKED, band, draw_classes, name_ends, plot_line
from rprime.report.history_charts import ClassHistory

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_lines(histories: Sequence[ClassHistory], about: str, canvas: Canvas) -> bytes:
    """Draw lines over the same evaluations: a panel for each index, or for each class."""
    apart = len(histories) > MOST_STACKED

    def fill(axes: "Axes", history: ClassHistory) -> None:
        if history.banded:
            band(axes, history.boxes)
        places = np.arange(len(history.steps))
        lines = enumerate(history.series, 1)
        ends = [plot_line(axes, one, places, f"line-{number}") for number, one in lines]
        if not apart:
            name_ends(axes, ends)

    return draw_classes(histories, about, canvas, fill=fill, notes=_notes(histories[0]))


def _notes(history: ClassHistory) -> list[str]:
    if not history.banded:
        return []
    bands = f"Bands: the middle half and all of {plural(len(history.labels), 'class')}"
    return [f"{bands}, with the median. Lines: the weakest in the end, and those that fell most."]
