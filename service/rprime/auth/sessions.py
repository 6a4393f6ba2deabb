"""Sessions of browsers that signed in with a key, carried by signed cookies.

The cookie names the key by its id, so it never opens more than the key does, and ends with it.
Nothing is stored here: every worker reads sessions with the shared secret of the service.
"""

import hmac
import secrets
import time
from base64 import urlsafe_b64encode
from dataclasses import dataclass

LASTS_SECONDS = 12 * 60 * 60
"""A working day. It is never prolonged, so that a stolen cookie expires."""
_NOBODY = "-"


@dataclass(frozen=True)
class Session:
    """A session of a browser.

    Parameters
    ----------
    key
        The id of the key it signed in with; None before that, or if the service needs no keys.
    cookie
        The content of the signed cookie.
    """

    key: str | None
    cookie: str


class Sessions:
    """Creates and reads the sessions of a service.

    Parameters
    ----------
    secret
        The secret that signs the cookies.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def begin(self, key: str | None = None) -> Session:
        """Make a session of a key, or an anonymous one that only protects forms."""
        expires = int(time.time()) + LASTS_SECONDS
        content = f"{key or _NOBODY}.{expires}.{secrets.token_urlsafe(16)}"
        return Session(key, f"{content}.{self._sign('session', content)}")

    def read(self, cookie: str) -> Session | None:
        """Return the session of a cookie; None if it has expired or is not from this service."""
        content, _, signature = cookie.rpartition(".")
        if not _same(signature, self._sign("session", content)):
            return None
        key, expires, _ = content.split(".")
        if time.time() >= int(expires):
            return None
        return Session(None if key == _NOBODY else key, cookie)

    def csrf_token(self, session: Session) -> str:
        """Return the CSRF token of a session."""
        return self._sign("csrf", session.cookie)

    def proves(self, session: Session, token: str) -> bool:
        """Whether a CSRF token belongs to the session."""
        return _same(token, self.csrf_token(session))

    def _sign(self, purpose: str, content: str) -> str:
        digest = hmac.digest(self._secret, f"{purpose}\n{content}".encode(), "sha256")
        return urlsafe_b64encode(digest).rstrip(b"=").decode()


def _same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode(), right.encode())
