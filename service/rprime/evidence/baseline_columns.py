"""The columns of the file of a baseline."""

from collections.abc import Iterable, Mapping
from typing import Any

from rprime.core.arrays import Array
from rprime.evidence.column_members import members_of, predictions_of
from rprime.evidence.columns import Columns, Identities, Predictions, selected
from rprime.evidence.label_columns import Piece
from rprime.problems.problem import refuse
from rprime.schemas.document import Document


class BaselineColumns:
    """The columns of a second body: evidence of its own, or predictions for the first one's items.

    Parameters
    ----------
    first
        The columns of the first body.
    own
        Receives evidence of its own.
    """

    def __init__(self, first: Columns, own: Columns) -> None:
        self._first = first
        self._own = own
        self._receiver: Columns = own
        self.hold = own.hold

    def begin(self, columns: Iterable[str]) -> dict[str, int]:
        """Find out which of the two it is, and check the names of the columns."""
        found = list(columns)
        names = [name for name, _ in selected(found, self._own.chosen, optional=True)]
        if self._first.has_baseline:
            detail = "The column `y_pred_baseline` is a baseline, too; send one of the two."
            raise refuse("/baseline", "several_kinds", detail)
        if "y_pred_baseline" in names:
            detail = "A baseline has no column `y_pred_baseline` of its own."
            raise refuse("/baseline", "several_kinds", detail)
        if "y_true" not in names:
            self._receiver = self._first.beside()
        return self._receiver.begin(found)

    @property
    def are_positions(self) -> bool:
        """Whether the labels are positions in the declared classes."""
        return self._receiver.are_positions

    def add(self, batch: Mapping[str, Piece]) -> None:
        """Append items."""
        self._receiver.add(batch)

    def matrix(self, items: int, width: int) -> Array:
        """Return an array for all scores, which the caller fills."""
        return self._receiver.matrix(items, width)

    def identify(self, ids: Identities) -> None:
        """Set the ids of the items."""
        self._receiver.identify(ids)

    def members(self) -> dict[str, Any]:
        """Return it as members of a JSON request."""
        if isinstance(self._receiver, Predictions):
            return predictions_of(self._receiver)
        return members_of(self._own.document())

    def document(self) -> Document:
        """Return the request of the first body with this baseline."""
        if isinstance(self._receiver, Predictions):
            self._first.take(self._receiver)
            return self._first.document()
        found, other = self._first.document(), self._own.document()
        other.pointer = "/baseline"
        found.names += ("baseline",)
        found.rest["baseline"] = {}
        found.inner["baseline"] = other
        return found
