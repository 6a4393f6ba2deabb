"""Ask the service of this container whether it lives, where its variables say that it listens."""

# ruff: noqa: INP001 - a program of the image, in no package

import os
import socket
from http.client import HTTPConnection

_SECONDS = 9
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (asked, not listened on)


def connection() -> HTTPConnection:
    """Return a connection to the Unix socket or the address of the service."""
    path = os.environ.get("RPRIME_UDS")
    if path:
        found = HTTPConnection("localhost", timeout=_SECONDS)
        found.sock = socket.socket(socket.AF_UNIX)
        found.sock.settimeout(_SECONDS)
        found.sock.connect(path)
        return found
    host = os.environ.get("RPRIME_HOST") or "127.0.0.1"
    port = os.environ.get("RPRIME_PORT") or os.environ.get("PORT") or 8000
    return HTTPConnection(_ANY.get(host, host), int(port), timeout=_SECONDS)


if __name__ == "__main__":
    asked = connection()
    asked.request("GET", "/livez")
    raise SystemExit(asked.getresponse().status != 200)  # noqa: PLR2004 (of HTTP)
