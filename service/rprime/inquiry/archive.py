"""Archive: the history, as far as the caller of a comparison may see it."""

from collections.abc import Callable
from dataclasses import dataclass

from rprime.core.comparison.alignment import Side
from rprime.inquiry.history import opposed, side_of_kept
from rprime.inquiry.review import Review
from rprime.store import BaselineQuery, Evaluation, EvaluationMissingError, Store, is_id


@dataclass(frozen=True)
class Archive:
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

    def find(self, identifier: str) -> Evaluation | None:
        """Read an evaluation; None where there is none for the caller."""
        store = self.open()
        try:
            kept = store.get(identifier) if is_id(identifier) else None
        except EvaluationMissingError:
            return None
        return kept if kept is not None and self.may_use(kept.project) else None

    def side(self, kept: Evaluation) -> Side:
        """Give an evaluation as a side of a comparison."""
        return side_of_kept(kept, self.open())

    def opposed(self, review: Review, project: str, query: BaselineQuery) -> Review:
        """Give a candidate the baseline that is named in a project, or say why there is none."""
        return opposed(review, self.open(), project, query)
