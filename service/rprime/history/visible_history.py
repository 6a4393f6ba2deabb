"""Archive: the history, as far as the caller of a comparison may see it."""

from collections.abc import Callable
from dataclasses import dataclass

from rprime.application.assessment import Assessment
from rprime.core.comparison.alignment import Side
from rprime.history.pending_evaluation import side_of_stored, with_baseline
from rprime.store import BaselineQuery, EvaluationMissingError, Store, StoredEvaluation, is_id


@dataclass(frozen=True)
class VisibleHistory:
    """The history of a caller. Its methods block.

    Parameters
    ----------
    open
        Gives the store, or raises the problem that there is none.
    may_use
        Whether the caller may see a project.
    """

    open: Callable[[], Store]
    may_use: Callable[[str], bool]

    def find(self, identifier: str) -> StoredEvaluation | None:
        """Read an evaluation; None where there is none for the caller."""
        store = self.open()
        try:
            stored = store.get(identifier) if is_id(identifier) else None
        except EvaluationMissingError:
            return None
        return stored if stored is not None and self.may_use(stored.project) else None

    def side(self, stored: StoredEvaluation) -> Side:
        """Give an evaluation as a side of a comparison."""
        return side_of_stored(stored, self.open())

    def with_baseline(
        self, assessment: Assessment, project: str, query: BaselineQuery
    ) -> Assessment:
        """Give a candidate the baseline that is named in a project, or say why there is none."""
        return with_baseline(assessment, self.open(), project, query)
