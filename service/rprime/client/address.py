"""The address of a service, and the headers of requests to it."""

import gzip
from typing import Any, NamedTuple

import httpx

from rprime import __version__
from rprime.client.calls import JSON, Call

CONNECT_SECONDS = 5.0
"""Seconds to connect; a reachable service accepts sooner."""
_LARGE = 64 * 1024
"""Larger JSON bodies, in bytes, are compressed."""


class Address(NamedTuple):
    """The address of a service and the headers of every request to it."""

    url: str
    headers: dict[str, str]

    def arguments(self, call: Call[Any]) -> dict[str, Any]:
        """Return the arguments of httpx for every attempt at a call."""
        headers, content = {**self.headers, **call.headers}, call.content
        if content and len(content) >= _LARGE and headers["Content-Type"] == JSON:
            headers["Content-Encoding"] = "gzip"
            content = gzip.compress(content, 1)
        url = f"{self.url}{call.path}"
        return {"method": call.method, "url": url, "content": content, "headers": headers}


def address(base_url: str | httpx.URL, key: str | None) -> Address:
    """Check an address and a key.

    Raises
    ------
    ValueError
        If one of them is malformed; the message does not repeat the key.
    """
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise ValueError(f"{base_url!r} is not an address of a service: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        named = str(base_url) and "://" not in str(base_url)
        meant = f"http://{base_url}" if named else "https://rprime.example"
        raise ValueError(f"{str(base_url)!r} is not an address such as {meant}")
    if url.query or url.fragment:
        raise ValueError(f"{str(base_url)!r} must end with the path, without ? and #")
    headers = {"Accept": JSON, "User-Agent": f"rprime/{__version__}"}
    if key is not None:
        headers["Authorization"] = f"Bearer {_checked(key.strip())}"
    return Address(str(url).rstrip("/"), headers)


def timeouts(seconds: float) -> httpx.Timeout:
    """Return the timeouts for a connection and for each part of an answer."""
    return httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))


def _checked(key: str) -> str:
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError("The key is empty or has characters that no key has")
    return key
