"""Client and AsyncClient: call a service over HTTP."""

import time
from collections.abc import Callable
from typing import Generic, Self, TypeVar

import anyio
import httpx

from rprime.client.calls import Call
from rprime.client.errors import ProblemError, ServiceUnavailableError
from rprime.client.exchange import Address, Attempts, Patience, certificates, timeouts
from rprime.client.methods import Methods

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
