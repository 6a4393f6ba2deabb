"""Page: what all pages have in common: where they are, who looks at them, what they may load."""

from collections.abc import Callable, Coroutine
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple

import orjson
from starlette.requests import Request
from starlette.responses import Response

from rprime.auth.sessions import session_of, visitor_of
from rprime.dashboard.templates_environment import render
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

NAVIGATION = (
    ("Projects", "ui/projects"),
    ("Evaluate", "ui/evaluate"),
    ("Indices", "ui/indices"),
    ("Papers", "ui/reproduced"),
    ("API", "docs"),
)
"""Names and paths, in the order in which they are shown."""
OF_HISTORY = "ui/projects"
"""Of use only where evaluations are kept."""
_BELOW = {"ui/evaluations/": OF_HISTORY, "ui/compare": OF_HISTORY}
"""What stands below another page for a reader, though not in its address."""

Kind = int | type[Exception]
Handler = Callable[[Request, Any], Coroutine[Any, Any, Response]]


class Account(NamedTuple):
    """The signed-in user; the token proves that a page of this session sends the request."""

    name: str
    token: str


class Page:
    """What every page has around its content, for the template of the layout."""

    def __init__(self, request: Request, title: str) -> None:
        services = get_services(request)
        self.title = title
        self.path = request.url.path
        self.history = services.store.is_open
        self.keys = services.keyring is not None
        self.guide = services.guide is not None
        self.account: Account | None = None
        key, session = visitor_of(request), session_of(request)
        if key is not None and session is not None:
            self.account = Account(key.name or key.id, services.sessions.csrf_token(session))

    @property
    def root(self) -> str:
        """The way to the root of the service, which may stand behind a prefix."""
        return _root(self.path)

    @property
    def navigation(self) -> list[tuple[str, str, bool]]:
        """The names and paths that can be visited, and whether the reader is there."""
        path = self.path.removeprefix("/")
        here = next((above for start, above in _BELOW.items() if path.startswith(start)), path)
        return [
            (name, path, here == path or here.startswith(f"{path}/"))
            for name, path in NAVIGATION
            if self.history or path != OF_HISTORY
        ]


def root_of(request: Request) -> str:
    """Return the way from a page to the root of the service."""
    return _root(request.url.path)


def _root(path: str) -> str:
    return "../" * (path.count("/") - 1) or "./"


def show(
    request: Request, template: str, title: str, /, *, status: int = HTTPStatus.OK, **more: object
) -> Response:
    """Answer with a page; every foreign text is escaped by the template."""
    page = Page(request, title)
    return part(render(f"pages/{template}", page.root, page=page, **more), status)


def part(content: str | bytes, status: int = HTTPStatus.OK) -> Response:
    """Answer with a page or a part of one that is rendered already."""
    return Response(content, status, HEADERS, media_type="text/html; charset=utf-8")


def for_browsers(handlers: dict[Kind, Handler]) -> dict[Kind, Handler]:
    """Have problems of pages shown as pages."""
    return {kind: partial(_as_page, handler) for kind, handler in handlers.items()}


async def _as_page(handler: Handler, request: Request, exc: Exception) -> Response:
    response = await handler(request, exc)
    if not _is_page(request):
        return response
    problem = {"errors": [], **orjson.loads(response.body)}
    title, kind = problem["title"], KINDS.get(problem["code"])
    cure = kind.cure if kind else ""
    if problem["status"] == HTTPStatus.NOT_FOUND:
        # Readers know pages; resources and routes are words of the API.
        title, cure = "Page not found", ""
        if problem["detail"] == KINDS["not_found"].meaning:
            problem["detail"] = NOT_FOUND
    status = response.status_code
    answer = show(request, "problem.html", title, status=status, problem=problem, cure=cure)
    for name in set(response.headers) - {"content-type", "content-length"}:
        answer.headers[name] = response.headers[name]
    return answer


def _is_page(request: Request) -> bool:
    """Whether a browser asks for a page, or for an address that is none of the API."""
    path = request.url.path
    takes_html = "text/html" in request.headers.get("accept", "")
    unknown = request.method == "GET" and "route" not in request.scope
    return takes_html and (path == "/" or path.startswith("/ui/") or unknown)
