"""Exception handlers: render problems, and turn errors of the framework into problems."""

from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any

import orjson
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from rprime.problems.problem import MEDIA_TYPE, Problem, blank, from_errors

# The kind of problem for each status that the framework raises.
_BY_STATUS = {400: "bad_request", 404: "not_found", 405: "method_not_allowed"}
_METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")


def respond(problem: Problem, request_id: str | None = None) -> Response:
    """Render a problem as a response."""
    return _response(problem.document(request_id), problem.headers)


def stopping() -> Problem:
    """Return the problem of a request while the service stops."""
    return Problem("stopping", headers={"Retry-After": "1"})


async def on_problem(request: Request, exc: Problem) -> Response:
    """Render the raised `Problem`."""
    return respond(exc, request_id_of(request))


async def on_validation_error(
    request: Request, exc: RequestValidationError | ValidationError
) -> Response:
    """Render the validation errors of Pydantic as a problem."""
    return respond(from_errors(exc.errors()), request_id_of(request))


async def on_http_exception(request: Request, exc: HTTPException) -> Response:
    """Render HTTP errors of the framework, 404 and 405 included, as problems."""
    if exc.status_code not in _BY_STATUS:
        return _response(blank(exc.status_code, request_id_of(request)), exc.headers)
    headers = dict(exc.headers or {})
    detail = None
    if exc.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = allowed_methods(request)
        detail = f"This path answers to: {headers['Allow']}."
    problem = Problem(_BY_STATUS[exc.status_code], detail, headers=headers)
    return respond(problem, request_id_of(request))


HANDLERS: dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]] = {
    Problem: on_problem,
    HTTPException: on_http_exception,
    RequestValidationError: on_validation_error,
    ValidationError: on_validation_error,
}


def allowed_methods(request: Request) -> str:
    """List the methods of the path of a request, for the header Allow."""
    allowed = set()
    for method in _METHODS:
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
            allowed.add(method)
    return ", ".join(sorted(allowed | ({"HEAD"} if "GET" in allowed else set())))


def request_id_of(request: Request) -> str | None:
    """Return the id of a request in the log."""
    return getattr(request.state, "request_id", None)


def _response(document: dict[str, Any], headers: Mapping[str, str] | None) -> Response:
    return Response(
        orjson.dumps(document), document["status"], dict(headers or {}), media_type=MEDIA_TYPE
    )
