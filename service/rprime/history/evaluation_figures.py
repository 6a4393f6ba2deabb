"""Draw figures of stored evaluations."""

from collections.abc import Callable
from dataclasses import replace

from rprime.core.catalog import find
from rprime.core.index import Index
from rprime.core.suggestions import unknown_index
from rprime.history.stored_report import NOTHING, stored_report
from rprime.problems.problem import Problem, refuse
from rprime.report.figures.evaluation import FIGURES, default_indices
from rprime.report.figures.sheet import Canvas, NoFiguresError, TooMuchToDrawError
from rprime.store import Store, StoredEvaluation


def drawn(draw: Callable[[], bytes]) -> bytes:
    """Draw, and turn the errors of drawing into problems.

    Raises
    ------
    Problem
        501 without matplotlib, 422 if the data do not fit a figure.
    """
    try:
        return draw()
    except NoFiguresError as error:
        raise Problem("not_installed", str(error)) from None
    except TooMuchToDrawError as error:
        raise refuse("", "too_much", str(error)) from None


def figure_of(
    name: str, stored: StoredEvaluation, store: Store, indices: tuple[str, ...], canvas: Canvas
) -> bytes:
    """Draw a figure of a stored evaluation; no indices means the default ones. Blocks.

    Raises
    ------
    Problem
        422 or 501.
    """
    for key in indices:
        class_index(key)
    compared = stored.comparison not in {None, NOTHING}
    shown = indices or default_indices(name, compared=compared)
    # Listing options do not matter here.
    subject = replace(stored_report(stored, store, 0), indices=shown).subject
    return drawn(lambda: FIGURES[name](subject, canvas))


def class_index(key: str) -> Index:
    """Look up a per-class index that a stored table can have.

    Raises
    ------
    Problem
        422 if the index is unknown or cannot be computed.
    """
    entry = find("class", key)
    if entry is None:
        detail = _OVERALL if find("overall", key) else unknown_index(key)
        raise refuse("/query/index", "unknown_index", detail)
    if entry.scored:
        raise refuse("/query/index", "no_scores", "The index reads scores, which are not stored.")
    return entry


_OVERALL = "The index is overall; this figure shows classes."
