"""What the OpenAPI document says of bodies, answers and headers that several routes have."""

from typing import Any

from rprime.evidence import MEDIA_TYPES
from rprime.problems.problem import responses
from rprime.routes.examples import CSV, JSON_LINES, Json
from rprime.routes.negotiation import JSON, RENDERINGS

PROBLEMS = ("no_store", "invalid_request", "internal_error", "store_unavailable")
"""Problems of all routes that read the store."""
_UNREAD = (
    *("unreadable_body", "body_too_large", "unsupported_media_type", "unsupported_encoding"),
    "overloaded",
)
BODY_PROBLEMS = (*_UNREAD, "invalid_request", "internal_error")
"""Problems of all routes that read a body."""
CHANGE_PROBLEMS = (*_UNREAD, "store_full")
"""Problems, besides, of a body that changes what is stored."""


def json_content(schema: str | Json, **more: Any) -> Json:  # noqa: ANN401 (JSON)
    """Describe a JSON body by its schema, or by the name of one."""
    definition = {"$ref": f"#/components/schemas/{schema}"} if isinstance(schema, str) else schema
    return {JSON: {"schema": definition, **more}}


def response_of(description: str, content: str | Json, headers: Json | None = None) -> Json:
    """Describe a response by its content, or by the name of the schema of its JSON body."""
    media = json_content(content) if isinstance(content, str) else content
    more = {} if headers is None else {"headers": headers}
    return {"description": description, "content": media, **more}


def route_responses(
    description: str, content: str | Json, *problems: str, headers: Json | None = None
) -> dict[int | str, Json]:
    """Describe an answer, as `response_of`, and the problems of a route."""
    return {**responses(*problems), 200: response_of(description, content, headers)}


def json_body(schema: str | Json, **more: Any) -> Json:  # noqa: ANN401 (JSON)
    """Describe the JSON body of a request by its schema, or by the name of one."""
    return {"requestBody": {"required": True, "content": json_content(schema, **more)}}


TEXT: Json = {"schema": {"type": "string"}}
"""The content of a text, or a header."""
ETAG = {"ETag": TEXT}
REPORT = {**json_content("Report"), **RENDERINGS}
"""The content of a report, in JSON and in all other formats."""
VERDICT = {
    "Evaluation-Verdict": {
        "description": "The verdict of the gate, if the request has `gates`.",
        "schema": {
            "type": "string",
            "enum": ["pass", "fail", "inconclusive", "no_rules", "no_baseline"],
        },
    }
}
"""The header of `verdict_header`."""
IMAGES = {"image/svg+xml": TEXT, "image/png": {"schema": {"type": "string", "format": "binary"}}}
UNCHANGED = "The {} equals the one that If-None-Match names."
"""What 304 says."""
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


COLUMNS: dict[str, Any] = {media: _binary(media) for media in MEDIA_TYPES if media in _WRITTEN} | {
    "text/csv": TEXT | {"examples": CSV},
    "application/x-ndjson": TEXT | {"examples": JSON_LINES},
}
"""Media types of column bodies."""
REQUEST_PARAMETER: dict[str, Any] = {
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
