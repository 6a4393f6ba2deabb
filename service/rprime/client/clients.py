"""Client and AsyncClient: call a service over HTTP."""

import gzip
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from http.client import responses
from secrets import SystemRandom
from typing import Any, Generic, NamedTuple, Self, TypeVar

import anyio
import httpx
import orjson

from rprime import __version__
from rprime.client.calls import JSON, Call
from rprime.client.errors import ProblemError, ServiceUnavailableError
from rprime.client.methods import Methods

PROBLEM = "application/problem+json"
BUSY = frozenset({429, 502, 503, 504})
"""Statuses after which the same request may succeed."""
# Errors that are safe to retry: the service cannot have answered, or repeats its answer to the key.
# Other retries, such as after a read timeout, would only add to the load.
_PASSING = (httpx.NetworkError, httpx.RemoteProtocolError, httpx.ConnectTimeout, httpx.PoolTimeout)
_CONNECT_SECONDS = 5.0
"""A reachable service accepts sooner."""
_LARGE = 64 * 1024
"""Larger JSON bodies, in bytes, are compressed."""


class Address(NamedTuple):
    """The address of a service and the headers of every request to it."""

    url: str
    headers: dict[str, str]

    @classmethod
    def of(cls, base_url: str | httpx.URL, key: str | None) -> "Address":
        """Check an address and a key; the `ValueError` does not repeat the key."""
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
            key = key.strip()
            if not key or not key.isascii() or not key.isprintable() or " " in key:
                raise ValueError("The key is empty or has characters that no key has")
            headers["Authorization"] = f"Bearer {key}"
        return cls(str(url).rstrip("/"), headers)

    def arguments(self, call: Call[Any]) -> dict[str, Any]:
        """Return the arguments of httpx for every attempt at a call."""
        path, more, content = call.sent
        headers = {**self.headers, **more}
        if content and len(content) >= _LARGE and headers["Content-Type"] == JSON:
            headers["Content-Encoding"] = "gzip"
            content = gzip.compress(content, 1)
        url = f"{self.url}{path}"
        return {"method": call.method, "url": url, "content": content, "headers": headers}


def timeouts(seconds: float) -> httpx.Timeout:
    """Return the timeouts for a connection and for each part of an answer."""
    return httpx.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))


@cache
def certificates() -> ssl.SSLContext:
    """Return what every client trusts, read once: that takes longer than a small request."""
    return httpx.create_ssl_context()


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How often to repeat a call, and how long to wait before each retry."""

    retries: int = 3
    """After the first attempt."""
    backoff: float = 0.5
    """Seconds before the first retry, doubled for each further one; the wait is random between
    half and all of it, so that clients do not return simultaneously."""
    longest: float = 60.0
    """Most seconds to wait. If a service asks for more, the call is not repeated."""

    def pause(self, retry: int, least: float | None) -> float | None:
        """Return the seconds to wait before this retry; None means no retry.

        `least` are the seconds in Retry-After.
        """
        if retry >= self.retries or (least is not None and least > self.longest):
            return None
        most = min(self.backoff * 2.0**retry, self.longest)
        waited = SystemRandom().uniform(most / 2, most)
        return waited if least is None else max(least, waited)


@dataclass
class Attempts:
    """The attempts at one call."""

    patience: Patience
    made: int = field(default=0, init=False)

    def judge(self, outcome: httpx.Response | httpx.RequestError) -> httpx.Response | float:
        """Return the answer, or the seconds to wait before the next attempt.

        Without a further attempt, a `ServiceUnavailableError` says why there is no answer.
        """
        least = None
        if isinstance(outcome, httpx.Response):
            if outcome.status_code not in BUSY:
                check(outcome)
                return outcome
            least = retry_after(outcome)
        passing = isinstance(outcome, (httpx.Response, *_PASSING))
        pause = self.patience.pause(self.made, least) if passing else None
        self.made += 1
        if pause is not None:
            return pause
        tried = "" if self.made == 1 else f" after {self.made} attempts"
        if isinstance(outcome, httpx.RequestError):
            reason = f"{_words(outcome)}{tried}"
            raise ServiceUnavailableError(f"{_place(outcome.request.url)}: {reason}") from outcome
        reason = f"it answers {_phrase(outcome.status_code)}{tried}"
        raise ServiceUnavailableError(f"{_place(outcome.url)}: {reason}") from problem_of(outcome)


_SILENT = ("PUT", "DELETE")
"""Methods whose success may have no content."""


def check(response: httpx.Response) -> None:
    """Raise the problem in an answer, or another 4xx; or that it is not from an rprime service."""
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.is_success and media_type == response.request.headers["accept"]:
        return
    if response.status_code == HTTPStatus.NO_CONTENT and response.request.method in _SILENT:
        return
    problem = problem_of(response)
    if problem is not None:
        raise problem
    if response.is_client_error:
        raise ProblemError(_stand_in(response))
    what = "" if response.is_success else f" {_phrase(response.status_code)}"
    if response.has_redirect_location:
        what += f", to {response.headers['location']}"
    raise ServiceUnavailableError(f"{_place(response.url)}: no rprime service answers there:{what}")


def problem_of(response: httpx.Response) -> ProblemError | None:
    """Return the problem in an answer; None without one."""
    if not response.headers.get("content-type", "").startswith(PROBLEM):
        return None
    try:
        return ProblemError({**_stand_in(response), **orjson.loads(response.content)})
    except (ValueError, TypeError, KeyError):
        return None


def retry_after(response: httpx.Response) -> float | None:
    """Return the seconds in Retry-After; None without the header."""
    header = response.headers.get("retry-after", "").strip()
    if header.isdecimal():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _stand_in(response: httpx.Response) -> dict[str, Any]:
    """Make a problem of a status, for an answer of a proxy."""
    return {
        "status": response.status_code,
        "code": f"http_{response.status_code}",
        "title": _phrase(response.status_code),
        "detail": f"{response.url} answers so.",
        "request_id": response.headers.get("x-request-id"),
    }


def _phrase(status: int) -> str:
    return f"{status} {responses.get(status, '')}".rstrip()


def _place(url: httpx.URL) -> str:
    return str(url.copy_with(query=None))  # which may be long


def _words(error: httpx.RequestError) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return "no connection in time"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    if "WRONG_VERSION_NUMBER" in f"{error}":
        return "the server does not speak TLS (is its address http:// in place of https://?)"
    # A system error message has its number first.
    return re.sub(r"^\[Errno -?\d+\] ", "", f"{error}") or type(error).__name__


Result = TypeVar("Result")
Connections = TypeVar("Connections", httpx.Client, httpx.AsyncClient)
Transport = TypeVar("Transport", httpx.BaseTransport, httpx.AsyncBaseTransport)

_READY = Call("GET", "/readyz", lambda *_: True)


class _HttpMethods(Methods, Generic[Connections, Transport]):
    """What both clients keep: the address of a service, and the connections to it."""

    _connections: Callable[..., Connections]

    def __init__(
        self,
        base_url: str | None = None,
        *,
        key: str | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        backoff: float = 0.5,
        transport: Transport | None = None,
        http: Connections | None = None,
    ) -> None:
        self._address = Address.of(base_url or (http.base_url if http else ""), key)
        self._patience = Patience(retries=retries, backoff=backoff)
        self._owned = http is None
        self._http: Connections = http or self._connections(
            transport=transport, timeout=timeouts(timeout), verify=certificates()
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._address.url}>"


class Client(_HttpMethods[httpx.Client, httpx.BaseTransport]):
    """A client of a service.

    Parameters
    ----------
    base_url
        The address of the service; None means that of `http`.
    key
        A key from `rprime keys create`, if the service needs one.
    timeout
        Seconds to wait for an answer, or for the next part of it.
    retries
        How often to repeat a call if the service is busy, restarting or unreachable. Each call has
        one Idempotency-Key, so none of them is counted twice.
    backoff
        Seconds before the first retry, doubled for each further one; Retry-After takes precedence.
    transport
        A transport of httpx, such as one with other certificates or proxies.
    http
        A client of httpx, instead of `timeout` and `transport`; it is not closed here.

    Raises
    ------
    ProblemError
        From every method: the service answers with a problem.
    ServiceUnavailableError
        From every method: the service does not answer.

    Examples
    --------
    >>> with Client("http://127.0.0.1:8000") as client:  # doctest: +SKIP
    ...     report = client.evaluate(["cat", "dog"], ["cat", "cat"])
    ...     report.overall["accuracy"].value
    0.5
    """

    _connections = httpx.Client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, unless they belong to the client in `http`."""
        if self._owned:
            self._http.close()

    def ready(self) -> bool:
        """Return whether the service is ready, without retries."""
        try:
            return self.ask(_READY, Patience(retries=0))
        except (ProblemError, ServiceUnavailableError):
            return False

    def ask(self, call: Call[Result], patience: Patience | None = None) -> Result:
        """Make a call of `rprime.client.calls`."""
        arguments = self._address.arguments(call)
        attempts = Attempts(patience or self._patience)
        while True:
            try:
                judged = attempts.judge(self._http.request(**arguments))
            except httpx.RequestError as error:
                judged = attempts.judge(error)
            if isinstance(judged, httpx.Response):
                return call.read(judged.content, judged.headers)
            time.sleep(judged)


class AsyncClient(_HttpMethods[httpx.AsyncClient, httpx.AsyncBaseTransport]):
    """A client of a service for coroutines of asyncio or trio.

    It has the parameters and the methods of `Client`; `transport` and `http` are the asynchronous
    ones of httpx, and every method returns a coroutine.

    Examples
    --------
    >>> async with AsyncClient("http://127.0.0.1:8000") as client:  # doctest: +SKIP
    ...     report = await client.evaluate(["cat", "dog"], ["cat", "cat"])
    """

    _connections = httpx.AsyncClient

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, unless they belong to the client in `http`."""
        if self._owned:
            await self._http.aclose()

    async def ready(self) -> bool:
        """Return whether the service is ready, without retries."""
        try:
            return await self.ask(_READY, Patience(retries=0))
        except (ProblemError, ServiceUnavailableError):
            return False

    async def ask(self, call: Call[Result], patience: Patience | None = None) -> Result:
        """Make a call of `rprime.client.calls`."""
        arguments = self._address.arguments(call)
        attempts = Attempts(patience or self._patience)
        while True:
            try:
                judged = attempts.judge(await self._http.request(**arguments))
            except httpx.RequestError as error:
                judged = attempts.judge(error)
            if isinstance(judged, httpx.Response):
                return call.read(judged.content, judged.headers)
            await anyio.sleep(judged)
