"""Sessions of browsers that signed in with a key, carried by signed cookies.

The cookie names the key by its id, so it never opens more than the key does, and ends with it.
Every worker reads sessions with the shared secret of the service; only ended ones are stored.
"""

import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol, cast

from itsdangerous import BadSignature, Signer, TimestampSigner
from starlette.requests import Request

from rprime.auth.keys import Keyring
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
