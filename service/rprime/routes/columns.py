"""The description of bodies of columns in the OpenAPI document."""

from typing import Any

from rprime.evidence import MEDIA_TYPES
from rprime.routes.examples import CSV

CONTENT: dict[str, Any] = {
    media: {"schema": {"type": "string", "format": "binary"}} for media in MEDIA_TYPES
} | {"text/csv": {"schema": {"type": "string"}, "example": CSV}}
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
    "of the items are positions in `labels`, and -1 is unclassified.",
    "content": {
        "application/json": {
            "schema": {"type": "object"},
            "example": {"codes": True, "labels": ["cat", "dog"], "indices": ["r_prime"]},
        }
    },
}
