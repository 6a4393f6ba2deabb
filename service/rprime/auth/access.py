"""Authorization: every route declares the scopes it needs, and one guard enforces them."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from math import ceil
from typing import Any, TypeVar

import structlog
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from rprime.auth import keys
from rprime.auth.keys import EVERYTHING, Access, Keyring, RefusedKeyError, TooManyWrongKeysError
from rprime.auth.sessions import (
    CSRF_HEADER,
    SAFE_METHODS,
    auth_services,
    prove,
    session_of,
    to_sign_in,
)
from rprime.problems.problem import NO_PROJECT, Problem, responses
from rprime.server.cost import Cost, cost_of, costs
from rprime.server.request_record import KEY, PROJECTS, network_of_client

SCHEME = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "description": "A key that `rprime keys create` made. Its scopes: `evaluate` sends "
        "evidence and gets reports, `read` sees what is stored, `write` changes it and sees it, "
        "`admin` may do everything in all projects. A key of one project sees no other project.",
    }
}
"""The security scheme of the OpenAPI document, if the service needs keys."""

_ACCESS = "rprime.access"
_NEEDS = "rprime_needs"
_UNLESS = "rprime_unless"
_REALM = 'Bearer realm="rprime"'
_BEARER = b"bearer "
_LONGEST_NAME = 128
_OTHER_PROJECT = "The key is for another project."

NOTHING = Access(key=None, scopes=frozenset(), project=None)
"""The access of a request to a route that needs no key."""

log = structlog.get_logger(__name__)
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


def requires(
    *scopes: keys.Scope, cost: Cost, unless: Callable[[Request], Awaitable[bool]] | None = None
) -> Callable[[Endpoint], Endpoint]:
    """Declare the scopes of a route, of which a key needs one, and what it costs at most.

    A request without a key, or whose key does not open the route, is admitted if `unless` returns
    true.

    A key of one project is admitted to a path with `{project}` for that project only. If the
    project is not in the path, the endpoint calls `access_of` or `check_project`.
    """

    def declare(endpoint: Endpoint) -> Endpoint:
        declared = costs(cost)(endpoint)
        setattr(declared, _NEEDS, scopes)
        setattr(declared, _UNLESS, unless)
        return declared

    return declare


def required_scopes(route: BaseRoute) -> tuple[keys.Scope, ...]:
    """Return the scopes that a route declares; none if it declares nothing."""
    needed: tuple[keys.Scope, ...] = getattr(getattr(route, "endpoint", None), _NEEDS, ())
    return needed


def access_of(request: Request) -> Access:
    """Return the access of a request: full access if the service needs no keys."""
    if auth_services(request).keyring is None:
        return EVERYTHING
    access: Access = request.scope[_ACCESS]
    return access


def caller_of(request: Request) -> str | None:
    """Return the name of the key of a request, or its id without one; None without keys."""
    keyring, key = auth_services(request).keyring, access_of(request).key
    if keyring is None or key is None:
        return None
    with suppress(RefusedKeyError):
        return keyring.find(key).name or key
    return key


def check_project(request: Request, project: str) -> None:
    """Refuse a request that may not use a project: 404, as if there were no such project."""
    request.scope["state"].setdefault(PROJECTS, set()).add(project)
    if not (access := access_of(request)).may_use(project):
        raise _refused(request, Problem("not_found"), access.key, _OTHER_PROJECT, project)


def check_scopes(request: Request, *scopes: keys.Scope) -> None:
    """Refuse a request whose key lacks the scopes that its content needs: 403."""
    if not (access := access_of(request)).may(*scopes):
        raise _forbidden(request, access, scopes)


REFUSED = responses("unauthorized", "forbidden", "too_many_requests")
"""How the OpenAPI document describes the answers to a request without a key that may."""


def security_of(needed: Sequence[keys.Scope]) -> list[dict[str, list[keys.Scope]]]:
    """Return the security of an operation, as OpenAPI has it: any of the scopes will do."""
    return [{name: [scope]} for name in SCHEME for scope in needed]


def with_authentication(
    routes: Iterable[BaseRoute], keyring: Keyring | None, *, pages: bool = False
) -> list[BaseRoute]:
    """Put a guard before every route; a `TypeError` if one declares no scope or no cost.

    Without a keyring they stay unguarded, which costs no time per request. Visitors of pages are
    redirected to sign in.
    """
    guarded: list[BaseRoute] = []
    for route in routes:
        needed = required_scopes(route)
        if not (isinstance(route, APIRoute) and needed):
            raise TypeError(f"{route!r} does not declare the scope that it needs")
        cost_of(route)
        if keyring is None:
            guarded.append(route)
            continue
        # A copy, since another application of this process may need no keys.
        guarded_route = copy(route)
        unless = getattr(route.endpoint, _UNLESS, None)
        guarded_route.app = _Guard(route.app, needed, keyring, unless, of_page=pages)
        guarded_route.responses = route.responses | REFUSED
        security = {"security": security_of(needed)}
        guarded_route.openapi_extra = (route.openapi_extra or {}) | security
        guarded.append(guarded_route)
    return guarded


@dataclass(frozen=True, eq=False)
class _Guard:
    """ASGI middleware of a route: passes a request on or raises a problem."""

    app: ASGIApp
    needed: Sequence[keys.Scope]
    keyring: Keyring
    unless: Callable[[Request], Awaitable[bool]] | None
    of_page: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            scope[_ACCESS] = self._admitted(request)
        except Problem as problem:
            mode = request.headers.get("sec-fetch-mode", "navigate")
            # A browser navigates to the page: not a script, nor a program with a key.
            navigates = mode == "navigate" and "authorization" not in request.headers
            if problem.code == "unauthorized" and self.of_page and navigates:
                await to_sign_in(request)(scope, receive, send)
                return
            wrong_key = problem.code == "unauthorized" and _token(scope) is not None
            if self.unless is None or wrong_key or not await self.unless(request):
                raise
            scope[_ACCESS] = NOTHING
        await self.app(scope, receive, send)

    def _admitted(self, request: Request) -> Access:
        access = self._authenticate(request)
        request.scope["state"][KEY] = access.key
        if early := self.keyring.limits.take(access.key or ""):
            raise Problem("too_many_requests", headers={"Retry-After": str(ceil(early))})
        if not access.may(*self.needed):
            raise _forbidden(request, access, self.needed)
        project = request.path_params.get("project")
        if project is not None and not access.may_use(project):
            raise _refused(request, Problem("not_found", NO_PROJECT), access.key, _OTHER_PROJECT)
        return access

    def _authenticate(self, request: Request) -> Access:
        """Return the access of the key in the header, or of the session without a header."""
        try:
            if "authorization" in request.headers:
                if (token := _token(request.scope)) is not None:
                    return self.keyring.verify(token, network_of_client())
            elif (session := session_of(request)) is not None and session.key is not None:
                # The forms of pages carry their token themselves, and `read_form` checks it.
                if not self.of_page and request.method not in SAFE_METHODS:
                    prove(request, session, request.headers.get(CSRF_HEADER))
                return self.keyring.find(session.key).access
        except RefusedKeyError as exc:
            headers = {"WWW-Authenticate": f'{_REALM}, error="invalid_token"'}
            problem = Problem("unauthorized", str(exc), headers=headers)
            raise _refused(request, problem, exc.key, str(exc)) from None
        except TooManyWrongKeysError as exc:
            headers = {"Retry-After": str(ceil(exc.seconds))}
            raise Problem("too_many_requests", str(exc), headers=headers) from None
        headers = {"WWW-Authenticate": _REALM}
        raise Problem("unauthorized", "The request carries no key.", headers=headers)


def _token(scope: Scope) -> bytes | None:
    headers: list[bytes] = [value for name, value in scope["headers"] if name == b"authorization"]
    # With two headers, a proxy and the service might read different ones.
    if len(headers) != 1 or not headers[0].lower().startswith(_BEARER):
        return None
    return headers[0][len(_BEARER) :].strip()


def _forbidden(request: Request, access: Access, needed: Sequence[keys.Scope]) -> Problem:
    challenge = f'{_REALM}, error="insufficient_scope", scope="{" ".join(needed)}"'
    detail = f"The key needs the scope {' or '.join(needed)}."
    problem = Problem("forbidden", detail, headers={"WWW-Authenticate": challenge})
    return _refused(request, problem, access.key, detail)


def _refused(
    request: Request, problem: Problem, key: str | None, reason: str, project: str | None = None
) -> Problem:
    """Log why a key is refused; return the problem to raise."""
    log_refused(request, problem.status, key, reason, project)
    return problem


def log_refused(
    request: Request, status: int, key: str | None, reason: str, project: str | None = None
) -> None:
    """Log why a key is refused."""
    shown = project or request.path_params.get("project", "")[:_LONGEST_NAME] or None
    where = {"method": request.method, "route": request.scope["route"].path}
    log.info("key_refused", key=key, project=shown, **where, status=status, reason=reason)
