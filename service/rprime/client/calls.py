"""The calls of the API: what each sends, and how to read its answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Generic, TypeVar
from urllib.parse import quote, urlencode
from uuid import uuid4

import numpy as np
import orjson
from pydantic import BaseModel

from rprime.client.errors import ProblemError
from rprime.client.report import Comparison, Report, SliceSearch
from rprime.client.request import encode, split
from rprime.core.published import Json
from rprime.schemas.history import AliasEntry

Result = TypeVar("Result")
Model = TypeVar("Model", bound=BaseModel)
Read = Callable[[bytes, Mapping[str, str]], Result]
"""Reads the body and the headers of an answer."""

JSON, NPZ = "application/json", "application/x-npz"
EVALUATE = "/v1/evaluate"


class Version(BaseModel):
    """The version of a service and its limits."""

    name: str
    version: str
    engine_version: str
    limits: dict[str, int | None]


class CurrentAlias(AliasEntry):
    """An alias as it is now; a change names its `etag`."""

    etag: str


@dataclass(frozen=True)
class Call(Generic[Result]):
    """One logical call of a path below the address of a service, and how its answer is read.

    Its headers, besides those of the client, are the same in every attempt.
    """

    method: str
    path: str
    read: Read[Result]
    content: bytes | Json | None = None
    """The body, or the JSON object in it."""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def sent(self) -> tuple[str, Mapping[str, str], bytes | None]:
        """The path, the headers and the body as they are sent.

        Many items in arrays are columns in NPZ, with the other members in the address.
        """
        if not isinstance(self.content, dict):
            return self.path, self.headers, self.content
        path, _, query = self.path.partition("?")
        parts = split(self.content) if path == EVALUATE else None
        if parts is None:
            return self.path, self.headers, encode(self.content)
        columns, members = parts
        file = BytesIO()
        np.savez(file, **columns)
        query = "&".join(filter(None, (query, urlencode({"request": members}, quote_via=quote))))
        return f"{path}?{query}", {**self.headers, "Content-Type": NPZ}, file.getvalue()


def evaluation(
    body: bytes | Json,
    *,
    include: Sequence[str] = (),
    idempotency_key: str | None = None,
    media_type: str = JSON,
    request: bytes | None = None,
) -> Call[Report]:
    """Evaluate a request; or columns of items, with the other members in `request`, JSON."""
    path = path_of("evaluate", query={"include": ",".join(include) or None, "request": request})
    return post(path, body, Report.of, idempotency_key, media_type)


def included(table: bool) -> tuple[str, ...]:  # noqa: FBT001 (as the option of the methods)
    """Return what an answer has besides, with the table or without."""
    return ("table", "cells") if table else ()


def comparison(body: bytes | Json) -> Call[Comparison]:
    """Compare a candidate with a baseline."""
    return post("/v1/compare", body, Comparison.of)


def slice_search(
    body: bytes | Json, media_type: str = JSON, request: bytes | None = None
) -> Call[SliceSearch]:
    """Search for weak slices; `media_type` and `request` are those of `evaluation`."""
    path = path_of("studies", "slices", query={"request": request})
    return post(path, body, SliceSearch.of, media_type=media_type)


def path_of(*parts: str, query: Mapping[str, object] | None = None) -> str:
    """Return the path of a resource; None in its query means absent, a mapping becomes JSON."""
    path = "/v1/" + "/".join(quote(part, safe="") for part in parts)
    parameters = {
        name: orjson.dumps(value) if isinstance(value, Mapping) else value
        for name, value in (query or {}).items()
        if value is not None
    }
    return (
        f"{path}?{urlencode(parameters, doseq=True, quote_via=quote, safe='')}"
        if parameters
        else path
    )


def document(
    kind: type[Model], *parts: str, query: Mapping[str, object] | None = None
) -> Call[Model]:
    """Get the resource with this path as a model."""
    return Call("GET", path_of(*parts, query=query), validated(kind))


def post(
    path: str,
    body: bytes | Json,
    read: Read[Result],
    key: str | None = None,
    media_type: str = JSON,
) -> Call[Result]:
    """Send a body; `key` names the call in all its attempts, by default a random one."""
    headers = {"Content-Type": media_type, "Idempotency-Key": key or uuid4().hex}
    return Call("POST", path, read, body, headers)


def current_alias(content: bytes, headers: Mapping[str, str]) -> CurrentAlias:
    """Read an alias with its ETag."""
    return CurrentAlias.model_validate(orjson.loads(content) | {"etag": headers["etag"]})


def validated(kind: type[Model]) -> Read[Model]:
    """Return how to read an answer as a model."""
    return lambda content, _: kind.model_validate_json(content)


def raw(content: bytes, _: Mapping[str, str]) -> bytes:
    """Read an answer that is a file."""
    return content


def text(content: bytes, _: Mapping[str, str]) -> str:
    """Read an answer that is a text."""
    return content.decode()


def nothing(_: bytes, __: Mapping[str, str]) -> None:
    """Read an answer without content."""


def batch_results(content: bytes, headers: Mapping[str, str]) -> list[Report | ProblemError]:
    """Read the answer to a batch."""
    # The service writes with orjson, too, so each report gets its original bytes.
    return [
        Report.of(orjson.dumps(result["report"]), headers)
        if "report" in result
        else ProblemError(result["problem"])
        for result in orjson.loads(content)["results"]
    ]
