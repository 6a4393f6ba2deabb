"""The description of bodies of columns in the OpenAPI document."""

from typing import Any

from rprime.evidence import MEDIA_TYPES
from rprime.routes.examples import CSV

_WRITTEN = {
    "application/vnd.apache.arrow.stream": "`with pyarrow.ipc.new_stream(file, table.schema) as "
    "stream: stream.write_table(table)`",
    "application/vnd.apache.parquet": "`pyarrow.parquet.write_table(table, file)`",
    "application/x-npz": '`numpy.savez(file, y_true=["cat", "dog"], y_pred=["cat", "cat"])`',
}
_TABLE = ', of `table = pyarrow.table({"y_true": ["cat", "dog"], "y_pred": ["cat", None]})`'


def _binary(media: str) -> dict[str, Any]:
    """Describe a format that cannot be shown as text by what writes it in Python."""
    description = f"As {_WRITTEN[media]} writes it{_TABLE if '(table' in _WRITTEN[media] else ''}."
    return {"schema": {"type": "string", "format": "binary", "description": description}}


CONTENT: dict[str, Any] = {media: _binary(media) for media in MEDIA_TYPES if media in _WRITTEN} | {
    "text/csv": {"schema": {"type": "string"}, "examples": CSV}
}
"""Media types of column bodies, for the OpenAPI document."""
PARAMETER: dict[str, Any] = {
    "name": "request",
    "in": "query",
    "description": "For column bodies: every other member of the request, as the JSON object that "
    "a JSON body would be without its items. Columns are `y_true`, `y_pred`, and optionally "
    "`y_pred_baseline` (the baseline, on the same items), `sample_weight`, `item_id` (items are "
    "compared in the order of their ids, whatever the order of the rows) and `group`; scores are "
    "columns `score:<label>`, one for each class, or in NPZ an array `y_score` with a column for "
    "each of `labels`, and `y_pred` may be missing beside them. Labels are integers, strings, "
    "booleans or dictionary-encoded; null or, in CSV, an empty field or NaN is unclassified. "
    "Other columns are not read. `columns` says what the columns are called in the body, as "
    '`{"y_true": "label"}`; then only those are read. In CSV, labels are integers if all of '
    'them are written as such. With `"codes": true` the labels '
    "of the items are positions in `labels`, and -1 is unclassified. For example "
    '`{"indices": ["r_prime"], "confidence": 0.9}`.',
    # No example: Swagger UI would send it with a JSON body, too.
    "schema": {"type": "string", "contentMediaType": "application/json"},
}
