"""The columns of the file of a baseline."""

from collections.abc import Iterable, Mapping
from typing import Any

from rprime.core.arrays import Array
from rprime.evidence.columns import Columns, Identities, Predictions, selected
from rprime.evidence.label_columns import CodedColumn, Piece
from rprime.evidence.vocabulary import Vocabulary
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
        """Return it as members of a JSON request.

        Raises
        ------
        Problem
            422 if the items have ids.
        """
        if isinstance(self._receiver, Predictions):
            return {"y_pred": _labels(self._receiver.column)}
        arrays = self._own.document().arrays
        if "item_id" in arrays:
            raise refuse("/item_id", "not_with_this_evidence", _IDS)
        return {
            name: _labels(array) if isinstance(array, CodedColumn) else array
            for name, array in arrays.items()
        }

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


_IDS = "Ids of items have no place in JSON. Leave `item_id` out, or compare two files of columns."


def _labels(column: CodedColumn) -> list[str | int | None]:
    assert isinstance(column.codes, Vocabulary)  # noqa: S101 (a file has no codes)
    texts, integers = column.codes.names(None)
    names = [int(text) if integers and text is not None else text for text in texts]
    return [names[code] for code in column.values.tolist()]
