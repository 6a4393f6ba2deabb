"""Exception handlers: render problems, and turn errors of the framework into problems."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from http import HTTPStatus
from typing import Any

import orjson
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from rprime.problems.problem import MEDIA_TYPE, Problem, from_errors

# The kind of problem for each status that the framework raises.
_BY_STATUS = {400: "bad_request", 404: "not_found", 405: "method_not_allowed"}
_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")


def respond(problem: Problem, request_id: str | None = None) -> Response:
    """Render a problem as a response."""
    return _response(problem.document(request_id), problem.headers)


def stopping() -> Problem:
    """Return the problem of a request while the service stops."""
    return Problem("stopping", headers={"Retry-After": "1"})


async def _on_problem(request: Request, exc: Problem | RequestValidationError) -> Response:
    """Render a raised `Problem`, or what FastAPI found wrong with a request."""
    problem = exc if isinstance(exc, Problem) else from_errors(exc.errors())
    return respond(problem, request_id_of(request))


async def _on_http_exception(request: Request, exc: HTTPException) -> Response:
    """Render HTTP errors of the framework, 404 and 405 included, as problems."""
    if exc.status_code not in _BY_STATUS:
        # Of only a status (RFC 9457, 4.2.1).
        status = HTTPStatus(exc.status_code)
        document = {"type": "about:blank", "title": status.phrase, "status": exc.status_code}
        document |= {"detail": status.phrase, "code": status.name.lower()}
        if (request_id := request_id_of(request)) is not None:
            document["request_id"] = request_id
        return _response(document, exc.headers)
    headers = dict(exc.headers or {})
    detail = None
    if exc.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(_allowed_methods(request))
        detail = f"This path answers to: {headers['Allow']}."
    problem = Problem(_BY_STATUS[exc.status_code], detail, headers=headers)
    return respond(problem, request_id_of(request))


HANDLERS: dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]] = {
    **dict.fromkeys((Problem, RequestValidationError), _on_problem),
    HTTPException: _on_http_exception,
}


def _allowed_methods(request: Request) -> Iterator[str]:
    """Yield the methods of the path of a request, for the header Allow."""
    for method in _METHODS:
        # HEAD is answered as GET.
        scope = {**request.scope, "method": "GET" if method == "HEAD" else method}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
            yield method


def request_id_of(request: Request) -> str | None:
    """Return the id of a request in the log."""
    return getattr(request.state, "request_id", None)


def _response(document: dict[str, Any], headers: Mapping[str, str] | None) -> Response:
    content, status = orjson.dumps(document), document["status"]
    return Response(content, status, dict(headers or {}), media_type=MEDIA_TYPE)
