"""AsyncClient: call a service over HTTP from coroutines."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, TypeVar, Unpack

import anyio
import httpx
from pydantic import BaseModel

from rprime.client import calls
from rprime.client.address import address, timeouts
from rprime.client.calls import Call, Version
from rprime.client.errors import ProblemError, ServiceUnavailableError
from rprime.client.exchange import Attempts, Patience
from rprime.client.report import Comparison, GateLintReport, Report
from rprime.client.request import (
    BatchRequest,
    OptionFields,
    RequestFields,
    SideFields,
    body,
    document,
    encode,
)
from rprime.schemas.report import Catalog, IndexEntry

Result = TypeVar("Result")


class AsyncClient:
    """A client of a service for coroutines of asyncio or trio.

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
    >>> async with AsyncClient("http://127.0.0.1:8000") as client:  # doctest: +SKIP
    ...     report = await client.evaluate(["cat", "dog"], ["cat", "cat"])
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        key: str | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        backoff: float = 0.5,
        transport: httpx.AsyncBaseTransport | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._address = address(base_url or (http.base_url if http else ""), key)
        self._patience = Patience(retries=retries, backoff=backoff)
        self._owned = http is None
        self._http = http or httpx.AsyncClient(transport=transport, timeout=timeouts(timeout))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._address.url}>"

    async def aclose(self) -> None:
        """Close the connections, unless they belong to the client in `http`."""
        if self._owned:
            await self._http.aclose()

    async def evaluate(
        self,
        y_true: object = None,
        y_pred: object = None,
        *,
        table: bool = False,
        idempotency_key: str | None = None,
        **request: Unpack[RequestFields],
    ) -> Report:
        """Evaluate a classifier.

        Parameters
        ----------
        y_true, y_pred
            The true and the predicted label of every item, one kind of evidence; missing in
            `y_pred` is unclassified.
        table
            Whether the report includes the table.
        idempotency_key
            Names this evaluation, so that a repetition in another run is not counted twice.
        **request
            Other evidence, and options, as `rprime.client.request.Request` lists them.
        """
        asked = body(y_true=y_true, y_pred=y_pred, **request)
        return await self.ask(calls.evaluation(asked, table=table, idempotency_key=idempotency_key))

    async def evaluate_batch(
        self,
        requests: Sequence[BatchRequest],
        *,
        table: bool = False,
        idempotency_key: str | None = None,
    ) -> list[Report | ProblemError]:
        """Evaluate many classifiers in one call, up to the limit that the service has.

        Parameters
        ----------
        requests
            The arguments of `evaluate` for each, as mappings.

        Returns
        -------
        A report or, not raised, a problem for each.
        """
        asked = encode({"requests": [document(request) for request in requests]})
        return await self.ask(calls.batch(asked, table=table, idempotency_key=idempotency_key))

    async def compare(
        self,
        candidate: SideFields,
        baseline: SideFields,
        *,
        options: OptionFields | None = None,
        gates: Mapping[str, Any] | BaseModel | None = None,
        idempotency_key: str | None = None,
    ) -> Comparison:
        """Compare a candidate with a baseline.

        Parameters
        ----------
        candidate, baseline
            Evidence; the baseline may be other predictions for the same items,
            `{"y_pred": ...}`.
        """
        asked = body(candidate=candidate, baseline=baseline, options=options, gates=gates)
        return await self.ask(calls.comparison(asked, idempotency_key))

    async def lint(
        self,
        gates: Mapping[str, Any] | BaseModel,
        confusion_matrix: object,
        *,
        labels: object = None,
        pairing: Literal["paired", "unpaired"] | None = None,
        discordance: float | None = None,
        replicates: int | None = None,
        seed: int | None = None,
    ) -> GateLintReport:
        """Compute how often gates would fail an unchanged model, and which drops they detect.

        Parameters
        ----------
        gates
            The gates of a request, as a mapping.
        confusion_matrix, labels
            The confusion matrix of the unchanged model, and its class names.
        pairing, discordance
            How candidates will be compared, and how often just one of two models is right.
        replicates, seed
            The number of simulated comparisons, and the seed.
        """
        asked = body(
            gates=gates,
            confusion_matrix=confusion_matrix,
            labels=labels,
            pairing=pairing,
            discordance=discordance,
            replicates=replicates,
            seed=seed,
        )
        return await self.ask(calls.gate_lint(asked))

    async def indices(self) -> Catalog:
        """List every index that a report can have."""
        return await self.ask(calls.indices())

    async def index(self, scope: Literal["overall", "class"], key: str) -> IndexEntry:
        """Describe one index."""
        return await self.ask(calls.index(scope, key))

    async def version(self) -> Version:
        """Return the version and the limits of the service."""
        return await self.ask(calls.version())

    async def ready(self) -> bool:
        """Return whether the service is ready, without retries."""
        try:
            return await self.ask(calls.ready(), Patience(retries=0))
        except (ProblemError, ServiceUnavailableError):
            return False

    async def ask(self, call: Call[Result], patience: Patience | None = None) -> Result:
        """Make a call of `rprime.client.calls`."""
        attempts = Attempts(patience or self._patience)
        while True:
            outcome = await self._attempt(call)
            pause = attempts.pause(outcome)
            if pause is None:
                assert isinstance(outcome, httpx.Response)  # noqa: S101 (check refused all else)
                return call.read(outcome)
            await anyio.sleep(pause)

    async def _attempt(self, call: Call[Result]) -> httpx.Response | httpx.RequestError:
        try:
            return await self._http.request(**self._address.arguments(call))
        except httpx.RequestError as error:
            return error
