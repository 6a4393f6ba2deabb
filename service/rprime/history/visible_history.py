"""The stored evaluations that a caller may see."""

from collections.abc import Callable
from dataclasses import dataclass

from rprime.application.assessment import Assessment
from rprime.application.stored_options import CandidateOrigin
from rprime.core.comparison.alignment import Side
from rprime.history.pending_evaluation import side_of_stored, with_side
from rprime.store import BaselineQuery, EvaluationMissingError, Store, StoredEvaluation, is_id


@dataclass(frozen=True)
class VisibleHistory:
    """The stored evaluations of the projects that a caller may use. Its methods block.

    To open the store raises a problem without one.
    """

    open: Callable[[], Store]
    may_use: Callable[[str], bool]

    def find(self, identifier: str) -> StoredEvaluation | None:
        """Read an evaluation; None if the caller may not see it."""
        store = self.open()
        try:
            stored = store.get(identifier) if is_id(identifier) else None
        except EvaluationMissingError:
            return None
        return stored if stored is not None and self.may_use(stored.project) else None

    def side(self, stored: StoredEvaluation) -> Side:
        """Return an evaluation as a side of a comparison."""
        return side_of_stored(stored, self.open())

    def with_side(
        self,
        assessment: Assessment,
        origin: CandidateOrigin,
        query: BaselineQuery,
        *,
        anchor: bool = False,
    ) -> Assessment:
        """Add the baseline or the anchor that a request names, or the reason why there is none."""
        return with_side(assessment, self.open(), origin, query, anchor=anchor)
