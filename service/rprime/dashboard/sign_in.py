"""Sign-in: a browser shows a key once, and is known by a cookie from then on."""

from http import HTTPStatus
from math import ceil

import structlog
from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from rprime.auth import sessions as browser
from rprime.auth.access import log_refused
from rprime.auth.keys import RefusedKeyError, TooManyWrongKeysError
from rprime.dashboard.page import show
from rprime.problems.problem import Problem
from rprime.routes.negotiation import CompressedRoute
from rprime.routes.services import get_services
from rprime.server.cost import costs
from rprime.server.request_record import network_of_client

public = APIRouter(route_class=CompressedRoute, include_in_schema=False)
"""The user of this page has not signed in yet."""

TOO_OLD = "This form was open for too long, or in another browser. Send it once more."

log = structlog.get_logger(__name__)


@public.get("/ui/sign-in")
@costs("store")
async def sign_in_page(request: Request) -> Response:
    """Ask for a key, unless there is nothing to ask for."""
    if get_services(request).keyring is None or browser.visitor_of(request) is not None:
        return _onward(request)
    return _ask(request)


@public.post("/ui/sign-in")
@costs("store")
async def sign_in(request: Request) -> Response:
    """Begin a session of the key, and go to where the browser came from."""
    keyring = get_services(request).keyring
    if keyring is None:
        return _onward(request)
    try:
        fields = await browser.read_form(request)
        access = keyring.verify(fields.get("key", "").strip().encode(), network_of_client())
    except RefusedKeyError as exc:
        log_refused(request, HTTPStatus.FORBIDDEN, exc.key, str(exc))
        return _ask(request, str(exc))
    except TooManyWrongKeysError as exc:
        response = _ask(
            request, f"{exc} Try again in {ceil(exc.seconds)} s.", HTTPStatus.TOO_MANY_REQUESTS
        )
        response.headers["Retry-After"] = str(ceil(exc.seconds))
        return response
    except Problem as problem:
        if problem.code != "unproven_origin":
            raise
        return _ask(request, TOO_OLD)
    log.info("signed_in", key=access.key)
    sessions = get_services(request).sessions
    response = _onward(request)
    browser.remember(request, response, sessions.begin(access.key))
    return response


@public.post("/ui/sign-out")
@costs("store")
async def sign_out(request: Request) -> Response:
    """End the session, and have the browser forget it."""
    await browser.read_form(request)
    await browser.end_session(request)
    # Else a browser shows the pages again that it left by its button Back.
    headers = {"Clear-Site-Data": '"cache"', "Cache-Control": "no-store"}
    response = RedirectResponse("../", HTTPStatus.SEE_OTHER, headers)
    browser.forget(request, response)
    return response


def _ask(
    request: Request, refused: str | None = None, status: HTTPStatus = HTTPStatus.FORBIDDEN
) -> Response:
    sessions = get_services(request).sessions
    session = browser.form_session(request)
    token = sessions.csrf_token(session)
    status = HTTPStatus.OK if refused is None else status
    response = show(request, "sign_in.html", "Sign in", status=status, token=token, refused=refused)
    response.headers["Cache-Control"] = "no-store"
    browser.remember(request, response, session)
    return response


def _onward(request: Request) -> Response:
    # Without a store there are no projects; the evaluator is always there.
    first = "ui/projects" if get_services(request).store.is_kept else ""
    where = browser.destination(request.query_params.get("next"), first)
    return RedirectResponse(f"../{where}", HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})
