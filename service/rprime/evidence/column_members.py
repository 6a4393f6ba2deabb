"""Columns of a file as members of a JSON request."""

from typing import Any

from rprime.evidence.columns import Predictions
from rprime.evidence.label_columns import CodedColumn
from rprime.evidence.vocabulary import Vocabulary
from rprime.problems.problem import refuse
from rprime.schemas.document import Document

_IDS = "Ids of items have no place in JSON. Leave `item_id` out, or compare two files of columns."


def members_of(document: Document) -> dict[str, Any]:
    """Return the evidence of columns as JSON values.

    Raises
    ------
    Problem
        If the items have ids.
    """
    if "item_id" in document.arrays:
        raise refuse("/item_id", "not_with_this_evidence", _IDS)
    return {
        name: _labels(array) if isinstance(array, CodedColumn) else array
        for name, array in document.arrays.items()
    }


def predictions_of(columns: Predictions) -> dict[str, Any]:
    """Return predictions alone as JSON values."""
    return {"y_pred": _labels(columns.column)}


def _labels(column: CodedColumn) -> list[str | int | None]:
    assert isinstance(column.codes, Vocabulary)  # noqa: S101 (a file has no codes)
    texts, integers = column.codes.names(None)
    names = [int(text) if integers and text is not None else text for text in texts]
    return [names[code] for code in column.values.tolist()]
