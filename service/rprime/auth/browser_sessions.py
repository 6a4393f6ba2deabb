"""The session of a request: cookies, forms and redirects of a browser that signed in."""

import re
from html import escape
from http import HTTPStatus
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rprime.auth.keys import ApiKey, RefusedKeyError
from rprime.auth.services import auth_services
from rprime.auth.sessions import LASTS_SECONDS, Session
from rprime.problems.problem import Problem
from rprime.server.body import media_type, read_body

CSRF_FIELD = "csrf_token"
CSRF_HEADER = "x-csrf-token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

SIGN_IN = "ui/sign-in"
"""The page, from the root of the service."""

_COOKIE = "rprime_session"
# A browser takes a cookie of this name only from this very host, and only under https.
_HOST_COOKIE = f"__Host-{_COOKIE}"
_LARGEST_FORM = 64 * 1024
_MOST_FIELDS = 100
_FORM = "application/x-www-form-urlencoded"


def session_of(request: Request) -> Session | None:
    """Give the session of a request, as long as it does not come from another site."""
    cookies = request.cookies
    cookie = cookies.get(_HOST_COOKIE) or cookies.get(_COOKIE)
    if cookie is None or is_cross_site(request.headers):
        return None
    return auth_services(request).sessions.read(cookie)


def form_session(request: Request) -> Session:
    """Give a session for the forms of a page; a new one is to be remembered by the browser."""
    return session_of(request) or auth_services(request).sessions.begin()


def visitor_of(request: Request) -> ApiKey | None:
    """Give the key of whoever has signed in; None if nobody has, or the key opens nothing now."""
    keyring = auth_services(request).keyring
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
    sessions = auth_services(request).sessions
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
