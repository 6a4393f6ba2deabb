"""Figures of one evaluation by their names, and the indices that they show unless told which."""

from collections.abc import Callable, Mapping, Sequence

from rprime.core.catalog import find
from rprime.core.index import Index
from rprime.core.index_names import canonical, unknown_index
from rprime.report.charts.card import draw_card
from rprime.report.charts.confusion import draw_confusion
from rprime.report.charts.dots import draw_per_class
from rprime.report.charts.radar import draw_radar
from rprime.report.charts.scores import DRAWN
from rprime.report.charts.sheet import Canvas
from rprime.report.class_charts import default_indices
from rprime.report.score_charts import NO_SCORES
from rprime.report.subject import ReportSubject

FIGURES: Mapping[str, Callable[[ReportSubject, Canvas], bytes]] = {
    "confusion": draw_confusion,
    "radar": draw_radar,
    "per_class": draw_per_class,
    "card": draw_card,
    **DRAWN,
}
MIXED = frozenset({"radar", "card"})
"""Figures that show overall indices, too."""
WITHOUT_INDEX = frozenset({"confusion", "card", *DRAWN})
"""Figures that have indices of their own, or none."""


def draw_figure(
    name: str,
    subject: Callable[[tuple[str, ...]], ReportSubject],
    indices: tuple[str, ...],
    *,
    compared: bool,
) -> Callable[[Canvas], bytes]:
    """Return what draws a figure of `FIGURES` on a canvas.

    Parameters
    ----------
    subject
        Returns what is drawn, evaluated with these indices.
    indices
        Keys or aliases; none: the usual ones.

    Raises
    ------
    ValueError
        If the figure does not show one of them, or there are no scores that it shows.
    """
    keys = tuple(map(canonical, indices)) or default_indices(name, compared=compared)
    shown_indices(keys, mixed=name in MIXED)
    if indices and name in WITHOUT_INDEX:
        raise ValueError(f"The figure `{name}` has no index.")
    report_subject = subject(keys)
    if name in DRAWN and report_subject.scores is None:
        raise ValueError(NO_SCORES)
    return lambda canvas: FIGURES[name](report_subject, canvas)


def shown_indices(keys: Sequence[str], *, mixed: bool) -> list[Index]:
    """Look up the indices of a figure, per class if both scopes have one.

    In a `mixed` figure overall indices may stand beside at least one per-class one.

    Raises
    ------
    ValueError
        If an index is unknown or does not fit the figure.
    """
    entries = []
    for key in keys:
        entry = find("class", key) or find("overall", key)
        if entry is None:
            raise ValueError(unknown_index(key))
        entries.append(entry)
    overall = [index.scope == "overall" for index in entries]
    if mixed and entries and all(overall):
        raise ValueError("The figure shows classes: name a per-class index, too.")
    if not mixed and any(overall):
        raise ValueError("The index is overall; this figure shows classes.")
    return entries
