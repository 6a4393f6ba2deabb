"""Figures of one evaluation by their names, and the indices that they show unless told which."""

from collections.abc import Callable, Mapping

from rprime.report.figures.confusion import draw_confusion
from rprime.report.figures.per_class import draw_per_class
from rprime.report.figures.radar import draw_radar
from rprime.report.figures.sheet import Canvas
from rprime.report.subject import ReportSubject

FIGURES: Mapping[str, Callable[[ReportSubject, Canvas], bytes]] = {
    "confusion": draw_confusion,
    "radar": draw_radar,
    "per_class": draw_per_class,
}
_LONE = ("r_prime",)
_SOME = ("r_prime", "recall", "precision", "f1")


def default_indices(name: str, *, compared: bool) -> tuple[str, ...]:
    """Return what a figure shows: around the circle, of a comparison, both sides of one index."""
    return _LONE if name == "confusion" or (name == "radar" and compared) else _SOME
