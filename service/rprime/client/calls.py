"""The calls of the API: what each sends, and how to read its answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Protocol, TypeVar
from urllib.parse import quote, urlencode
from uuid import uuid4

import orjson
from pydantic import BaseModel

from rprime.client.errors import ProblemError
from rprime.client.report import Comparison, GateLintReport, GatePlanReport, Report, SliceSearch

Result = TypeVar("Result")
Model = TypeVar("Model", bound=BaseModel)


JSON = "application/json"


class Version(BaseModel):
    """The version of a service and its limits."""

    name: str
    version: str
    engine_version: str
    limits: dict[str, int | None]


class Answered(Protocol):
    """An answer: a response of httpx, or one from this process."""

    @property
    def content(self) -> bytes:
        """The body."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""


@dataclass(frozen=True)
class Call(Generic[Result]):
    """One logical call; its headers are the same in every attempt.

    Parameters
    ----------
    method, path
        The path below the address of the service.
    read
        Reads the answer.
    content
        The body; None without one.
    headers
        Further headers, besides those of the client.
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
    """Evaluate a classifier.

    Parameters
    ----------
    body, media_type
        The request, or the columns of its items.
    request
        The other members of a request of columns, a JSON object.
    """
    query = ["include=table"] * table
    query += [] if request is None else [f"request={quote(request, safe='')}"]
    path = f"/v1/evaluate{'?' * bool(query)}{'&'.join(query)}"
    return post(path, body, partial(received, Report), idempotency_key, media_type)


def comparison(body: bytes) -> Call[Comparison]:
    """Compare a candidate with a baseline."""
    return post("/v1/compare", body, partial(received, Comparison))


def gate_lint(body: bytes) -> Call[GateLintReport]:
    """Simulate a gate on an unchanged model."""
    return post("/v1/gates/lint", body, partial(received, GateLintReport))


def gate_plan(body: bytes) -> Call[GatePlanReport]:
    """Plan the items that a gate needs."""
    return post("/v1/gates/plan", body, partial(received, GatePlanReport))


def slice_search(
    body: bytes, media_type: str = JSON, request: bytes | None = None
) -> Call[SliceSearch]:
    """Search for weak slices; `media_type` and `request` are those of `evaluation`."""
    query = "" if request is None else f"?request={quote(request, safe='')}"
    read = partial(received, SliceSearch)
    return post(f"/v1/studies/slices{query}", body, read, media_type=media_type)


def of_project(
    project: str, what: str, kind: type[Model], query: Mapping[str, object]
) -> Call[Model]:
    """Get a document about the history of a project; None in `query` means absent."""
    return document(kind, f"/v1/projects/{quote(project, safe='')}/{what}{query_of(query)}")


def query_of(given: Mapping[str, object]) -> str:
    """Write a query with its question mark; None means absent."""
    found = {
        name: orjson.dumps(value).decode() if isinstance(value, Mapping) else value
        for name, value in given.items()
        if value is not None
    }
    return f"?{urlencode(found)}" if found else ""


READY = Call("GET", "/readyz", lambda _: True)
"""Check the readiness of the service."""


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


Received = TypeVar("Received", Report, Comparison, GateLintReport, GatePlanReport, SliceSearch)


def received(kind: type[Received], response: Answered) -> Received:
    """Read an answer as a document with a lazy model."""
    return kind(response.content, _request_id(response))


def validated(model: type[Model], response: Answered) -> Model:
    """Read an answer as a model."""
    return model.model_validate_json(response.content)


def batch_results(response: Answered) -> list[Report | ProblemError]:
    """Read the answer to a batch."""
    # The service writes with orjson, too, so each report gets its original bytes.
    return [
        Report(orjson.dumps(result["report"]), _request_id(response))
        if "report" in result
        else ProblemError(result["problem"])
        for result in orjson.loads(response.content)["results"]
    ]


def _request_id(response: Answered) -> str | None:
    return response.headers.get("x-request-id")
