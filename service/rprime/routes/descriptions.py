"""What the OpenAPI document says of bodies, answers and headers that several routes have."""

from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, get_args

import orjson
from pydantic import TypeAdapter

from rprime import __version__
from rprime.application.reproduction import printed_request
from rprime.core.published import Json
from rprime.evidence import MEDIA_TYPES
from rprime.problems.problem import MEDIA_TYPE, responses
from rprime.report.charts.sheet import EvaluationFigure, Form
from rprime.report.formats import BY_SUFFIX
from rprime.routes.negotiation import JSON, RENDERINGS
from rprime.schemas.provenance import PathName
from rprime.schemas.report import Report


def _matrix(name: str) -> Json:
    """Return a table of the R' paper as evidence, without names of classes."""
    return {"confusion_matrix": printed_request(name)["confusion_matrix"]}


def _example(summary: str, value: str | Json) -> Json:
    return {"summary": summary, "value": value}


MNIST = _matrix("mnist")
MNIST_BEFORE = _matrix("mnist_before")
MNIST_AFTER = _matrix("mnist_after")
GATES: Json = {"rules": [{"index": "r_prime", "classes": "all", "max_drop": 0.05}]}
SHORT = {
    "indices": ["accuracy", "r_prime", "weighted_kappa", "macro_f1", "precision"],
    "kappa_weights": "linear",
}
LABELS: Json = {
    "y_true": ["cat", "cat", "dog", "dog", "dog", "horse"],
    "y_pred": ["cat", "dog", "dog", "dog", None, "horse"],
}
_PETS = {"labels": ["cat", "dog"]}
_CELLS = [[0, 0, 50], [1, 1, 30], [1, 2, 4], [2, 2, 9]]
_SCORES = [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.8, 0.2]]
_OTHER_LABELS = {"y_pred": ["cat", "cat", "dog", "cat", "dog", "horse"]}
_OTHER_TABLE = {**_PETS, "confusion_matrix": [[460, 40], [20, 480]]}
_REGIONS = {"region": ["EU", "EU", "EU", "US", "US", "US"]}

EXAMPLES: Json = {
    "confusion_matrix": _example(
        "LeNet-5 on MNIST: table 4 of Zhang, Su, Dou 2021, some of the indices", {**MNIST, **SHORT}
    ),
    "labels": _example("The labels of six items, one of them unclassified", LABELS),
    "cells": _example("The nonzero cells of a table", {"labels": ["a", "b", "c"], "cells": _CELLS}),
    "scores": _example(
        "The scores of four items for each class, and all curves",
        {**_PETS, "y_true": ["cat", "dog", "dog", "cat"], "y_score": _SCORES, "curves": True},
    ),
    "baseline": _example("Two models on the same items", {**LABELS, "baseline": _OTHER_LABELS}),
    "gate": _example(
        "May a class have lost 0.05 of its R'?",
        {**_PETS, "confusion_matrix": [[450, 50], [90, 410]]}
        | {"baseline": _OTHER_TABLE, "gates": GATES},
    ),
    "slices": _example("The same labels by region", {**LABELS, "slices": _REGIONS}),
    "population": _example(
        "Where nine of ten items are cats",
        {**_PETS, "confusion_matrix": [[80, 20], [10, 90]]}
        | {"population": {"prevalence": {"cat": 0.9, "dog": 0.1}}},
    ),
}
CSV = {
    "labels": _example(
        "Labels; the last item is unclassified", "y_true,y_pred\ncat,cat\ncat,dog\ndog,dog\ndog,\n"
    ),
    "scores": _example(
        "Scores of each class",
        "y_true,score:cat,score:dog\ncat,0.9,0.1\ndog,0.3,0.7\ndog,0.6,0.4\n",
    ),
    "baseline": _example(
        "Two models on the same items, and a slice",
        "y_true,y_pred,y_pred_baseline,slice:region\ncat,cat,dog,EU\ndog,dog,dog,US\n",
    ),
}
JSON_LINES = {
    "labels": _example(
        "Labels; the last item is unclassified",
        '{"y_true": "cat", "y_pred": "cat"}\n{"y_true": "dog", "y_pred": null}\n',
    )
}
EVALUATION = "01k9d3hv5gw2zj4t8x6c7m1n0p"
_CHAMPION = "01k9d3hv5gw2zj4t8x6c7m1n0q"
_PARAMETERS: dict[str, tuple[str, object]] = {
    "project": ("Name of the project.", "digits"),
    "evaluation": ("Id of the evaluation: 26 letters and digits.", EVALUATION),
    "alias": ("Name of the alias in this project.", "champion"),
    "scope": ("One value for all (`overall`), or one for each class (`class`).", "overall"),
    "key": ("Key of the index, or its name in another library.", "r_prime"),
    "suffix": ("The format of the report, as a file name ends.", "md"),
    "name": ("The kind of figure.", None),
    "number": ("Number of the figure in the paper.", 1),
    "form": ("The format of the picture.", "svg"),
    "index": ("", "r_prime"),
    "If-Match": ("", "*"),
}
"""The description of each parameter of a path, and an example."""
_PATH_NAME = TypeAdapter(PathName).json_schema()
_RULES: dict[str, Json] = {
    "project": _PATH_NAME,
    "alias": _PATH_NAME,
    "evaluation": {"pattern": "^[0-9a-z]{26}$", "minLength": 26, "maxLength": 26},
    "suffix": {"enum": list(BY_SUFFIX)},
    "form": {"enum": list(get_args(Form))},
    "number": {"minimum": 1, "maximum": 5},
}
"""What a parameter of a path may be; what it is not is answered by 404."""
_NAMES: dict[str, Json] = {
    "getEvaluationFigure": {"enum": list(get_args(EvaluationFigure))},
    "getProjectFigure": {"enum": ["trend", "lines", "boxes"]},
}
_FIGURES = {"getEvaluationFigure": "confusion", "getProjectFigure": "trend"}


def _stored(evaluation: str, version: str, counts: list[list[int]]) -> Json:
    """Return an evaluation as a line of an export."""
    names = {"id": evaluation, "project": "digits", "model": "svc", "version": version}
    names |= {"branch": "main", "test_set": "digits-1", "engine_version": __version__}
    content: Json = {"waived": False, "tags": [], "input_digest": f"sha256:{version * 64}"}
    content |= {"options": {"options": {}}, "labels": ["cat", "dog"]}
    content |= {"table": {"weighted": False, "counts": counts}}
    absent = "commit verdict fingerprint submission source gate comparison extras items"
    return {"evaluation": names | content | dict.fromkeys(absent.split())}


HISTORY = "\n".join(
    orjson.dumps(line).decode()
    for line in (
        {"rprime_export": 1},
        _stored(EVALUATION, "1", [[45, 5], [4, 46]]),
        _stored(_CHAMPION, "2", [[47, 3], [4, 46]]),
        {"alias": {"project": "digits", "name": "champion", "evaluation": _CHAMPION}},
    )
)
"""An export that has what the other examples name, so that all succeed after its import."""


def add_examples(document: Json) -> None:
    """Add examples and descriptions of parameters, and answers, to an OpenAPI document.

    Computed only for the document, so that the service starts without it.
    """
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                name = parameter["name"]
                _simplify(parameter)
                if parameter["in"] == "path":
                    parameter.setdefault("description", _PARAMETERS[name][0])
                    rule = _NAMES.get(operation["operationId"], {}) if name == "name" else None
                    parameter["schema"] |= rule or _RULES.get(name, {})
                if name == "name":
                    parameter["example"] = _FIGURES[operation["operationId"]]
                elif parameter.get("required") or name == "If-Match":
                    parameter["example"] = _PARAMETERS[name][1]
            _add_answers(operation)
    document["components"]["examples"] = _shared_examples(document)


def _simplify(parameter: Json) -> None:
    """Leave one type to a parameter, which is never null.

    Generators of clients lose the type of a union, and of a reference that has a neighbour.
    """
    schema = parameter.get("schema", {})
    schema.pop("description", None)  # It stands beside the schema, too.
    for kind in schema.pop("anyOf", ()):
        schema |= {} if kind == {"type": "null"} else kind
    if "$ref" in schema:
        parameter["schema"] = {"$ref": schema["$ref"]}
        if default := schema.get("default"):
            parameter["description"] += f" Default: `{default}`."


def _shared_examples(document: Json) -> Json:
    """Refer to the answers of problems and of both paths that evaluate; return these answers."""
    shared: Json = {}
    for operations in document["paths"].values():
        for operation in operations.values():
            name = operation["operationId"]
            for status, response in operation["responses"].items():
                prefix = "" if int(status) >= HTTPStatus.BAD_REQUEST else f"evaluate_{status}_"
                if prefix and _SAME.get(name, name) != "evaluate":
                    continue
                for content in response.get("content", {}).values():
                    for code, example in content.get("examples", {}).items():
                        shared[prefix + code] = example
                        reference = f"#/components/examples/{prefix}{code}"
                        content["examples"][code] = {"$ref": reference}
    return dict(sorted(shared.items()))


def _add_answers(operation: Json) -> None:
    """Show the recorded answers of an operation, and its problems as they were answered."""
    recorded, name = _recorded(), operation["operationId"]
    for status, answers in recorded["answers"].get(_SAME.get(name, name), {}).items():
        for media, examples in answers.items():
            content = operation["responses"][status]["content"][media]
            content["examples"] = {
                key: _example(SHORTENED, value) for key, value in examples.items()
            }
    for status, response in operation["responses"].items():
        if int(status) >= HTTPStatus.BAD_REQUEST:
            for code, example in response["content"][MEDIA_TYPE]["examples"].items():
                example["value"] = recorded["problems"].get(code, example["value"])


@cache
def _recorded() -> Json:
    recorded: Json = orjson.loads(ANSWERS.read_bytes()) if ANSWERS.exists() else {}
    return {"answers": {}, "problems": {}} | recorded


_SAME = {"evaluateV1": "evaluate"}
ANSWERS = Path(__file__).parents[1] / "data" / "answers.json"
"""What a service answered to the examples; `tests/http/test_openapi_answers.py` records it."""
SHORTENED = "A real answer: lists are cut, two classes are left, numbers are rounded."


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


def json_content(schema: type | Json, **more: Any) -> Json:  # noqa: ANN401 (JSON)
    """Describe a JSON body by its model, or by a schema."""
    if not isinstance(schema, dict):
        schema = {"$ref": f"#/components/schemas/{schema.__name__}"}
    return {JSON: {"schema": schema, **more}}


def response_of(description: str, content: type | Json, headers: Json | None = None) -> Json:
    """Describe a response by its content, or by the model of its JSON body."""
    media = content if isinstance(content, dict) else json_content(content)
    more = {} if headers is None else {"headers": headers}
    return {"description": description, "content": media, **more}


def route_responses(
    description: str, content: type | Json, *problems: str, headers: Json | None = None
) -> dict[int | str, Json]:
    """Describe an answer, as `response_of`, and the problems of a route."""
    return {**responses(*problems), 200: response_of(description, content, headers)}


def json_body(schema: type | Json, **more: Any) -> Json:  # noqa: ANN401 (JSON)
    """Describe the JSON body of a request by its model, or by a schema."""
    return {"requestBody": {"required": True, "content": json_content(schema, **more)}}


TEXT: Json = {"schema": {"type": "string"}}
"""The content of a text, or a header."""
ETAG = {"ETag": TEXT}
REPORT = {**json_content(Report), **RENDERINGS}
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
_BINARY = {"schema": {"type": "string", "format": "binary"}}
IMAGES = {"image/svg+xml": TEXT, "image/png": _BINARY, "application/pdf": _BINARY}
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
    # No example: the page of the API would send it with a JSON body, too.
    "schema": {"type": "string", "contentMediaType": "application/json"},
}
