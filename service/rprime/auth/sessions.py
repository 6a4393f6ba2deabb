"""Sessions: a browser that signed in with a key, known again by a signed cookie.

The cookie names the key by its id, so it never opens more than the key does, and ends with it.
Nothing is kept here: whoever has the secret of the service can read a session, every worker alike.
"""

import hmac
import re
import secrets
import time
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from html import escape
from http import HTTPStatus
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rprime.auth.keys import ApiKey, Keyring, RefusedKeyError
from rprime.problems.problem import Problem
from rprime.server.body import media_type, read_body

LASTS_SECONDS = 12 * 60 * 60
"""A working day. It is not prolonged, so that a cookie that got lost ends by itself."""
CSRF_FIELD = "csrf_token"
CSRF_HEADER = "x-csrf-token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

SIGN_IN = "ui/sign-in"
"""The page, from the root of the service."""

_COOKIE = "rprime_session"
# A browser takes a cookie of this name only from this very host, and only under https.
_HOST_COOKIE = f"__Host-{_COOKIE}"
_NOBODY = "-"
_LARGEST_FORM = 64 * 1024
_MOST_FIELDS = 100
_FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Session:
    """A browser.

    Parameters
    ----------
    key
        The id of the key it signed in with; None before that, and where there are no keys.
    cookie
        What it is known by.
    """

    key: str | None
    cookie: str


class Sessions:
    """The sessions of a service.

    Parameters
    ----------
    secret
        Signs them.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def begin(self, key: str | None = None) -> Session:
        """Make a session of a key, or one that only guards the forms of who has not signed in."""
        expires = int(time.time()) + LASTS_SECONDS
        content = f"{key or _NOBODY}.{expires}.{secrets.token_urlsafe(16)}"
        return Session(key, f"{content}.{self._sign('session', content)}")

    def read(self, cookie: str) -> Session | None:
        """Give the session of a cookie; None if it is over, or not one of this service."""
        content, _, signature = cookie.rpartition(".")
        if not _same(signature, self._sign("session", content)):
            return None
        key, expires, _ = content.split(".")
        if time.time() >= int(expires):
            return None
        return Session(None if key == _NOBODY else key, cookie)

    def csrf_token(self, session: Session) -> str:
        """Give what proves that a page of this session asks for a change."""
        return self._sign("csrf", session.cookie)

    def proves(self, session: Session, token: str) -> bool:
        """Whether a token is that of the session."""
        return _same(token, self.csrf_token(session))

    def _sign(self, purpose: str, content: str) -> str:
        digest = hmac.digest(self._secret, f"{purpose}\n{content}".encode(), "sha256")
        return urlsafe_b64encode(digest).rstrip(b"=").decode()


def _same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode(), right.encode())


def session_of(request: Request) -> Session | None:
    """Give the session of a request, as long as it does not come from another site."""
    cookies = request.cookies
    cookie = cookies.get(_HOST_COOKIE) or cookies.get(_COOKIE)
    if cookie is None or is_cross_site(request.headers):
        return None
    sessions: Sessions = request.app.state.sessions
    return sessions.read(cookie)


def form_session(request: Request) -> Session:
    """Give a session for the forms of a page; a new one is to be remembered by the browser."""
    sessions: Sessions = request.app.state.sessions
    return session_of(request) or sessions.begin()


def visitor_of(request: Request) -> ApiKey | None:
    """Give the key of whoever has signed in; None if nobody has, or the key opens nothing now."""
    keyring: Keyring | None = request.app.state.keys
    session = session_of(request)
    if keyring is None or session is None or session.key is None:
        return None
    try:
        return keyring.find(session.key)
    except RefusedKeyError:
        return None


def is_cross_site(headers: Headers) -> bool:
    """Whether a browser says that a page of another site, or of another port, sent it."""
    fetch_site = headers.get("sec-fetch-site")
    if fetch_site is not None:
        return fetch_site not in {"same-origin", "none"}
    origin = headers.get("origin")
    # A proxy may have taken https off, so the scheme is not compared.
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def prove(request: Request, session: Session, token: str | None) -> None:
    """Refuse a change that no page of the session asks for.

    Raises
    ------
    Problem
        403.
    """
    sessions: Sessions = request.app.state.sessions
    if is_cross_site(request.headers) or not sessions.proves(session, token or ""):
        raise Problem("unproven_origin")


async def read_form(request: Request) -> dict[str, str]:
    """Read the form of a page, without its token; of a field that is there twice, the last one.

    Raises
    ------
    Problem
        400, 413 or 415 if it is none; 403 if it is not one of the session.
    """
    media_type(request, [_FORM])
    body = await read_body(request, _LARGEST_FORM)
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError:
        raise Problem("unreadable_body", "The body is no form.") from None
    fields = dict(pairs)
    session = session_of(request)
    if session is None:
        raise Problem("unproven_origin")
    prove(request, session, fields.pop(CSRF_FIELD, None))
    return fields


def remember(request: Request, response: Response, session: Session) -> None:
    """Have the browser keep a session."""
    name, secure = _cookie_for(request)
    response.set_cookie(
        name,
        session.cookie,
        max_age=LASTS_SECONDS,
        secure=secure,
        httponly=True,
        samesite="strict",
    )


def forget(request: Request, response: Response) -> None:
    """Have the browser drop its session, by whichever name it has it."""
    for name in (_COOKIE, _HOST_COOKIE):
        if name in request.cookies:
            secure = name == _HOST_COOKIE
            response.delete_cookie(name, secure=secure, httponly=True, samesite="strict")


def to_sign_in(request: Request) -> Response:
    """Send a browser to where it can sign in, and from there back to what it asked for."""
    headers, path = request.headers, quote(request.scope["path"])
    query = f"?{request.url.query}" if request.url.query else ""
    # Relative addresses, for the service may stand behind a prefix.
    if is_cross_site(headers) and headers.get("sec-fetch-mode") == "navigate":
        # A link on another site: the browser keeps the cookie back, but sends it with what this
        # page asks for. Nothing but showing a page comes from it.
        again = escape(f"./{path.rpartition('/')[2]}{query}")
        return HTMLResponse(_ONWARD.format(address=again), headers=_NOT_KEPT)
    root = "../" * (path.count("/") - 1) or "./"
    asked = urlencode({"next": path.lstrip("/") + query})
    return RedirectResponse(f"{root}{SIGN_IN}?{asked}", HTTPStatus.SEE_OTHER, _NOT_KEPT)


def destination(asked: str | None, first: str) -> str:
    """Give where to go after signing in, from the root: what is asked for if it is a page."""
    if asked is None or not _PAGE.fullmatch(asked) or asked.startswith(SIGN_IN):
        return first
    return asked


def _cookie_for(request: Request) -> tuple[str, bool]:
    """Give the name and whether it is kept to https: as the browser sees it, before a proxy."""
    origin = request.headers.get("origin", "")
    forwarded = request.headers.get("x-forwarded-proto", "")
    secure = request.url.scheme == "https" or "https" in {urlsplit(origin).scheme, forwarded}
    return (_HOST_COOKIE, True) if secure else (_COOKIE, False)


_PAGE = re.compile(r"(?:ui/[^\\\s]*)?(?:\?[^\\\s]*)?")
_NOT_KEPT = {"Cache-Control": "no-store"}
_ONWARD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={address}">
<title>rprime</title>
</head>
<body><main><h1>rprime</h1><p><a href="{address}">Go on to the page</a></p></main></body>
</html>
"""
