"""Small JSON bodies, entity tags, If-Match and If-None-Match."""

import hashlib
import re
from typing import Literal, TypeVar

from fastapi import Request
from pydantic import BaseModel

from rprime.problems.problem import Problem
from rprime.routes.negotiation import JSON
from rprime.server.body import media_type, read_body
from rprime.store import Expected

Model = TypeVar("Model", bound=BaseModel)

SMALL_BODY = 64 * 1024
_TAG = re.compile(r'(W/)?"([^"]*)"')


async def read_model(request: Request, model: type[Model]) -> Model:
    """Read a small JSON body; a `ValidationError` if it does not fit the model."""
    media_type(request, [JSON])
    return model.model_validate_json(await read_body(request, SMALL_BODY))


def etag_of(*parts: object) -> str:
    """Make a strong entity tag from the parts that determine every byte of a representation."""
    text = "\n".join(map(str, parts)).encode()
    return f'"{hashlib.blake2b(text, digest_size=12).hexdigest()}"'


def is_known(request: Request, etag: str) -> bool:
    """Whether the client has the representation already (If-None-Match, RFC 9110, 13.1.2)."""
    given = ",".join(request.headers.getlist("if-none-match"))
    return given.strip() == "*" or etag.strip('"') in {tag for _, tag in _TAG.findall(given)}


def expected(request: Request, *, required: bool) -> Expected:
    """Return the state of an alias that the request expects; 428 without a required header."""
    match = ",".join(request.headers.getlist("if-match")).strip()
    absent = ",".join(request.headers.getlist("if-none-match")).strip() == "*"
    if required and not match and not absent:
        raise Problem("precondition_required", "The request needs If-Match or If-None-Match: *.")
    etags: set[str] | Literal["*"] | None = None
    if match:
        # Weak tags never match here (RFC 9110, 13.1.1).
        etags = "*" if match == "*" else {tag for weak, tag in _TAG.findall(match) if not weak}
    return Expected(etags=etags, absent=absent)
