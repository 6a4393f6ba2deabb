"""Sessions of browsers that signed in with a key, carried by signed cookies.

The cookie names the key by its id, so it never opens more than the key does, and ends with it.
Every worker reads sessions with the shared secret of the service; only ended ones are stored.
"""

import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from http import HTTPStatus
from typing import Any, Protocol, cast
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from itsdangerous import BadSignature, Signer, TimestampSigner
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from rprime.auth.keys import ApiKey, Keyring, RefusedKeyError
from rprime.problems.problem import Problem
from rprime.server.body import media_type, read_body
from rprime.server.services import ServerServices
from rprime.store.revoked_sessions import LASTS_SECONDS

_NOBODY = "-"


@dataclass(frozen=True)
class Session:
    """A session of a browser, with the content of its signed cookie and a random id."""

    key: str | None
    """The id of the key it signed in with; None before that, or if the service needs no keys."""
    cookie: str
    id: str = ""
    expires: int = 0
    """Seconds since 1970."""


class RevokedSessions(Protocol):
    """The sessions that ended before they expired. Its methods block."""

    def revoke_session(self, session: str, expires: int) -> None:
        """Record that a session has ended."""

    def is_session_revoked(self, session: str, expires: int) -> bool:
        """Whether a session has ended."""


class Sessions:
    """Creates and reads the sessions of a service, whose secret signs the cookies."""

    def __init__(self, secret: str) -> None:
        how: dict[str, Any] = {"key_derivation": "hmac", "digest_method": sha256}
        self._cookies = TimestampSigner(secret, salt=b"rprime.session", **how)
        self._tokens = Signer(secret, salt=b"rprime.csrf", **how)

    def begin(self, key: str | None = None) -> Session:
        """Make a session of a key, or an anonymous one that only protects forms."""
        content = f"{key or _NOBODY}.{secrets.token_urlsafe(16)}"
        return Session(key, self._cookies.sign(content).decode())

    def read(self, cookie: str) -> Session | None:
        """Return the session of a cookie; None if it has expired or is not from this service."""
        try:
            content, begun = self._cookies.unsign(cookie, LASTS_SECONDS, return_timestamp=True)
        except BadSignature:
            return None
        key, identifier = content.decode().split(".")
        expires = int(begun.timestamp()) + LASTS_SECONDS
        return Session(None if key == _NOBODY else key, cookie, identifier, expires)

    def csrf_token(self, session: Session) -> str:
        """Return the CSRF token of a session."""
        return self._tokens.get_signature(session.cookie).decode()

    def proves(self, session: Session, token: str) -> bool:
        """Whether a CSRF token belongs to the session."""
        return self._tokens.verify_signature(session.cookie, token)


@dataclass(frozen=True, kw_only=True)
class AuthServices(ServerServices):
    """The services of the server, with keys and sessions; without a keyring no keys are needed."""

    keyring: Keyring | None
    sessions: Sessions
    revoked_sessions: RevokedSessions


def auth_services(request: Request) -> AuthServices:
    """Return the services that authentication uses."""
    return cast("AuthServices", request.app.state.services)


CSRF_FIELD = "csrf_token"
CSRF_HEADER = "x-csrf-token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

SIGN_IN = "ui/sign-in"
"""The page, from the root of the service."""

_SESSION = "rprime.session"
_FAILURE = "rprime.session_failure"
"""Why it is not known whether the session has ended. Who asks for it first gets it raised: inside
the handlers, which show a browser a page."""
_COOKIE = "rprime_session"
# Browsers accept the prefix __Host- only from this host and only over https.
_HOST_COOKIE = f"__Host-{_COOKIE}"
_LARGEST_FORM = 64 * 1024
_MOST_FIELDS = 100
_FORM = "application/x-www-form-urlencoded"


class SessionMiddleware:
    """ASGI middleware that reads the session of a request, and looks whether it has ended."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on the request with its session."""
        if scope["type"] == "http" and any(name == b"cookie" for name, _ in scope["headers"]):
            request = Request(scope)
            session = _signed_session(request)
            if session is not None and session.key is not None:
                services = auth_services(request)
                revoked = services.revoked_sessions.is_session_revoked
                try:
                    if await services.store_threads.run(revoked, session.id, session.expires):
                        session = None
                except Problem as problem:
                    scope[_FAILURE], session = problem, None
            scope[_SESSION] = session
        await self.app(scope, receive, send)


def _signed_session(request: Request) -> Session | None:
    """Read the session of the cookie; it may have been ended."""
    cookies = request.cookies
    cookie = cookies.get(_HOST_COOKIE) or cookies.get(_COOKIE)
    if cookie is None or is_cross_site(request.headers):
        return None
    return auth_services(request).sessions.read(cookie)


async def end_session(request: Request) -> None:
    """End the session of a request on the server, in all its processes."""
    session = session_of(request)
    if session is not None and session.key is not None:
        services = auth_services(request)
        revoke = services.revoked_sessions.revoke_session
        await services.store_threads.run(revoke, session.id, session.expires)


def session_of(request: Request) -> Session | None:
    """Return the session of a request; None if it has ended or comes from another site."""
    scope = request.scope
    if _FAILURE in scope:
        raise scope.pop(_FAILURE)
    if _SESSION not in scope:
        # Without keys there is no middleware: such a session only protects forms, and never ends.
        signed_session = _signed_session(request)
        scope[_SESSION] = (
            signed_session if signed_session is not None and signed_session.key is None else None
        )
    session: Session | None = scope[_SESSION]
    return session


def form_session(request: Request) -> Session:
    """Return a session for the forms of a page; a new one needs `remember`."""
    return session_of(request) or auth_services(request).sessions.begin()


def visitor_of(request: Request) -> ApiKey | None:
    """Return the key of the signed-in visitor; None without one or with an inactive key."""
    keyring = auth_services(request).keyring
    session = session_of(request)
    if keyring is not None and session is not None and session.key is not None:
        with suppress(RefusedKeyError):
            return keyring.find(session.key)
    return None


def is_cross_site(headers: Headers) -> bool:
    """Whether a browser says that a page of another site, or of another port, sent it."""
    fetch_site = headers.get("sec-fetch-site")
    if fetch_site is not None:
        return fetch_site not in {"same-origin", "none"}
    origin = headers.get("origin")
    # A proxy may terminate https, so the scheme is not compared.
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def prove(request: Request, session: Session, token: str | None) -> None:
    """Refuse a change without the CSRF token of the session: 403."""
    sessions = auth_services(request).sessions
    if is_cross_site(request.headers) or not sessions.proves(session, token or ""):
        raise Problem("unproven_origin")


async def read_form(request: Request) -> dict[str, str]:
    """Read the form of a page, without its token, which must be of the session: else 403."""
    media_type(request, [_FORM])
    body = await read_body(request, _LARGEST_FORM)
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError:
        raise Problem("unreadable_body", "The body is not a form.") from None
    fields = dict(pairs)
    session = session_of(request)
    if session is None:
        raise Problem("unproven_origin")
    prove(request, session, fields.pop(CSRF_FIELD, None))
    return fields


def remember(request: Request, response: Response, session: Session) -> None:
    """Set the session cookie, which is Secure if the browser sees https."""
    origin = request.headers.get("origin", "")
    forwarded = request.headers.get("x-forwarded-proto", "")
    secure = request.url.scheme == "https" or "https" in {urlsplit(origin).scheme, forwarded}
    response.set_cookie(
        _HOST_COOKIE if secure else _COOKIE,
        session.cookie,
        max_age=LASTS_SECONDS,
        secure=secure,
        httponly=True,
        samesite="strict",
    )


def forget(request: Request, response: Response) -> None:
    """Delete the session cookie, under both of its names."""
    for name in (_COOKIE, _HOST_COOKIE):
        if name in request.cookies:
            secure = name == _HOST_COOKIE
            response.delete_cookie(name, secure=secure, httponly=True, samesite="strict")


def to_sign_in(request: Request) -> Response:
    """Redirect a browser to sign in, and from there back to the requested page."""
    headers, path = request.headers, quote(request.scope["path"])
    query = f"?{request.url.query}" if request.url.query else ""
    # Relative addresses, since the service may be behind a path prefix.
    if is_cross_site(headers) and headers.get("sec-fetch-mode") == "navigate":
        # After a link on another site the browser withholds the cookie, but sends it with requests
        # of this page. They only show a page.
        again = escape(f"./{path.rpartition('/')[2]}{query}")
        return HTMLResponse(_ONWARD.format(address=again), headers=_NOT_KEPT)
    root = "../" * (path.count("/") - 1) or "./"
    parameters = urlencode({"next": path.lstrip("/") + query})
    return RedirectResponse(f"{root}{SIGN_IN}?{parameters}", HTTPStatus.SEE_OTHER, _NOT_KEPT)


def destination(path: str | None, first: str) -> str:
    """Return where to go after signing in, from the root: the requested path if it is a page."""
    if path is None or not _PAGE.fullmatch(path) or path.startswith(SIGN_IN):
        return first
    return path


_PAGE = re.compile(r"(?:ui/[^\\\s]*)?(?:\?[^\\\s]*)?")
_NOT_KEPT = {"Cache-Control": "no-store"}
_ONWARD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={address}">
<title>rprime</title>
</head>
<body><main><h1>rprime</h1><p><a href="{address}">Continue to the page</a></p></main></body>
</html>
"""
