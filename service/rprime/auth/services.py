"""The services of authentication, added to those of the server."""

from dataclasses import dataclass
from typing import cast

from starlette.requests import Request

from rprime.auth.keys import Keyring
from rprime.auth.sessions import RevokedSessions, Sessions
from rprime.server.services import ServerServices


@dataclass(frozen=True, kw_only=True)
class AuthServices(ServerServices):
    """The services of the server, with keys and sessions.

    Parameters
    ----------
    keyring
        The API keys; None if the service needs none.
    sessions
        Signs and reads the cookies of browsers.
    revoked_sessions
        The sessions that ended before they expired.
    """

    keyring: Keyring | None
    sessions: Sessions
    revoked_sessions: RevokedSessions


def auth_services(request: Request) -> AuthServices:
    """Return the services that authentication uses."""
    return cast("AuthServices", request.app.state.services)
