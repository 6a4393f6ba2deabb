"""Page: what all pages have in common as responses: where they are, and what they may load."""

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from rprime.auth.browser_sessions import session_of, visitor_of
from rprime.dashboard.templates_environment import Account, PageContext, render
from rprime.problems.kinds import KINDS
from rprime.routes.services import get_services

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    # Without it forms would be sent as from nowhere, and their origin is checked.
    "Referrer-Policy": "same-origin",
    # What one may see another may not.
    "Cache-Control": "private, no-cache",
}
NOT_FOUND = "It may have been deleted, or your key may not open it."
Kind = int | type[Exception]


def page_of(request: Request, title: str) -> PageContext:
    """Return the frame of the requested page."""
    services = get_services(request)
    return PageContext(
        title,
        request.url.path,
        history=services.store.is_open,
        keys=services.keyring is not None,
        guide=services.guide is not None,
        account=_account(request),
    )


def _account(request: Request) -> Account | None:
    key, session = visitor_of(request), session_of(request)
    if key is None or session is None:
        return None
    sessions = get_services(request).sessions
    return Account(key.name or key.id, sessions.csrf_token(session))


def shown(content: str | bytes, status: int = HTTPStatus.OK) -> Response:
    """Answer with a page or a part of one."""
    return Response(content, status, HEADERS, media_type="text/html; charset=utf-8")


Handler = Callable[[Request, Any], Coroutine[Any, Any, Response]]


def for_browsers(handlers: dict[Kind, Handler]) -> dict[Kind, Handler]:
    """Have problems of pages shown as pages."""
    return {kind: _for_browsers(handler) for kind, handler in handlers.items()}


def _for_browsers(handler: Handler) -> Handler:
    async def handle(request: Request, exc: Any) -> Response:  # noqa: ANN401 - as declared beside it
        response = await handler(request, exc)
        if not _is_page(request):
            return response
        problem = {"errors": [], **orjson.loads(response.body)}
        page = page_of(request, problem["title"])
        mend = KINDS[problem["code"]].mend if problem["code"] in KINDS else ""
        if problem["status"] == HTTPStatus.NOT_FOUND:
            # Readers know pages; resources and routes are words of the API.
            page, mend = page_of(request, "Page not found"), ""
            if problem["detail"] == KINDS["not_found"].meaning:
                problem["detail"] = NOT_FOUND
        explained = render("pages/problem.html", page, problem=problem, mend=mend)
        answer = shown(explained, response.status_code)
        for name in set(response.headers) - {"content-type", "content-length"}:
            answer.headers[name] = response.headers[name]
        return answer

    return handle


def _is_page(request: Request) -> bool:
    """Whether a browser asks for a page, or for an address that is none of the API."""
    path = request.url.path
    wanted = "text/html" in request.headers.get("accept", "")
    unknown = request.method == "GET" and "route" not in request.scope
    return wanted and (path == "/" or path.startswith("/ui/") or unknown)
