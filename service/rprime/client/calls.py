"""The calls of the API: what each sends, and how to read its answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar
from urllib.parse import quote, urlencode
from uuid import uuid4

import orjson
from pydantic import BaseModel

from rprime.client.errors import ProblemError
from rprime.client.report import (
    Answered,
    Comparison,
    GateLintReport,
    GatePlanReport,
    Report,
    SliceSearch,
)

Result = TypeVar("Result")
Model = TypeVar("Model", bound=BaseModel)

JSON = "application/json"


class Version(BaseModel):
    """The version of a service and its limits."""

    name: str
    version: str
    engine_version: str
    limits: dict[str, int | None]


@dataclass(frozen=True)
class Call(Generic[Result]):
    """One logical call of a path below the address of a service, and how its answer is read.

    Its headers, besides those of the client, are the same in every attempt.
    """

    method: str
    path: str
    read: Callable[[Answered], Result]
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def evaluation(
    body: bytes,
    *,
    table: bool = False,
    idempotency_key: str | None = None,
    media_type: str = JSON,
    request: bytes | None = None,
) -> Call[Report]:
    """Evaluate a request; or columns of items, with the other members in `request`, JSON."""
    path = path_of("evaluate", query={"include": "table" if table else None, "request": request})
    return post(path, body, Report.of, idempotency_key, media_type)


def comparison(body: bytes) -> Call[Comparison]:
    """Compare a candidate with a baseline."""
    return post("/v1/compare", body, Comparison.of)


def gate_lint(body: bytes) -> Call[GateLintReport]:
    """Simulate a gate on an unchanged model."""
    return post("/v1/gates/lint", body, GateLintReport.of)


def gate_plan(body: bytes) -> Call[GatePlanReport]:
    """Plan the items that a gate needs."""
    return post("/v1/gates/plan", body, GatePlanReport.of)


def slice_search(
    body: bytes, media_type: str = JSON, request: bytes | None = None
) -> Call[SliceSearch]:
    """Search for weak slices; `media_type` and `request` are those of `evaluation`."""
    path = path_of("studies", "slices", query={"request": request})
    return post(path, body, SliceSearch.of, media_type=media_type)


READY = Call("GET", "/readyz", lambda _: True)
"""Check the readiness of the service."""


def path_of(*parts: str, query: Mapping[str, object] | None = None) -> str:
    """Return the path of a resource; None in its query means absent, a mapping becomes JSON."""
    path = "/v1/" + "/".join(quote(part, safe="") for part in parts)
    found = {
        name: orjson.dumps(value) if isinstance(value, Mapping) else value
        for name, value in (query or {}).items()
        if value is not None
    }
    return f"{path}?{urlencode(found, doseq=True, quote_via=quote, safe='')}" if found else path


def document(kind: type[Model], path: str) -> Call[Model]:
    """Get a document as a model."""
    return Call("GET", path, partial(validated, kind))


def post(
    path: str,
    body: bytes,
    read: Callable[[Answered], Result],
    idempotency_key: str | None = None,
    media_type: str = JSON,
) -> Call[Result]:
    """Send a body."""
    key = idempotency_key or uuid4().hex
    return Call("POST", path, read, body, {"Content-Type": media_type, "Idempotency-Key": key})


def validated(model: type[Model], response: Answered) -> Model:
    """Read an answer as a model."""
    return model.model_validate_json(response.content)


def batch_results(response: Answered) -> list[Report | ProblemError]:
    """Read the answer to a batch."""
    # The service writes with orjson, too, so each report gets its original bytes.
    return [
        Report(orjson.dumps(result["report"]), response.headers.get("x-request-id"))
        if "report" in result
        else ProblemError(result["problem"])
        for result in orjson.loads(response.content)["results"]
    ]
