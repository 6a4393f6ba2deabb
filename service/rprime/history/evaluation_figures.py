"""Draw figures of stored evaluations."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from rprime.core.index import Index
from rprime.history.stored_report import NOTHING, StoredReport
from rprime.problems.problem import Problem, refuse
from rprime.report.class_charts import default_indices
from rprime.report.figures.evaluation import FIGURES, shown_indices
from rprime.report.figures.sheet import (
    Canvas,
    NoFiguresError,
    NothingToDrawError,
    TooMuchToDrawError,
)

_PLACE = "/query/index"


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
    except NothingToDrawError as error:
        raise refuse("", "no_scores", str(error)) from None
    except TooMuchToDrawError as error:
        raise refuse("", "too_much", str(error)) from None


def figure_of(name: str, report: StoredReport, indices: tuple[str, ...], canvas: Canvas) -> bytes:
    """Draw a figure of a stored evaluation; no indices means the default ones. Blocks.

    Raises
    ------
    Problem
        422 or 501.
    """
    figure_indices(indices, mixed=name == "radar")
    compared = report.stored.comparison not in {None, NOTHING}
    shown = indices or default_indices(name, compared=compared)
    subject = replace(report, indices=shown).subject
    return drawn(lambda: FIGURES[name](subject, canvas))


def figure_indices(keys: Sequence[str], *, mixed: bool) -> list[Index]:
    """Look up indices that a stored table can have, as `shown_indices`.

    Raises
    ------
    Problem
        422 if an index is unknown, does not fit the figure, or cannot be computed from the table.
    """
    try:
        found = shown_indices(keys, mixed=mixed)
    except ValueError as error:
        raise refuse(_PLACE, "unknown_index", str(error)) from None
    for entry in found:
        if entry.scored:
            raise refuse(_PLACE, "no_scores", "The index reads scores, which are not stored.")
        if entry.needs is not None:
            detail = f"The index needs the option `{entry.needs}`, which a figure does not take."
            raise refuse(_PLACE, "unknown_index", detail)
    return found
