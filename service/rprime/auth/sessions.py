"""Sessions: a browser that signed in with a key, known again by a signed cookie.

The cookie names the key by its id, so it never opens more than the key does, and ends with it.
Nothing is kept here: whoever has the secret of the service can read a session, every worker alike.
"""

import hmac
import secrets
import time
from base64 import urlsafe_b64encode
from dataclasses import dataclass

LASTS_SECONDS = 12 * 60 * 60
"""A working day. It is not prolonged, so that a cookie that got lost ends by itself."""
_NOBODY = "-"


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
