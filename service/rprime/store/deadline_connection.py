"""Connections to PostgreSQL that wait for the network no longer than their timeout."""

from collections.abc import Mapping
from math import inf
from time import monotonic
from typing import Any, Self

import psycopg
from psycopg.abc import RV, PQGen

from rprime.store.errors import StoreUrlError, refusal_state
from rprime.store.postgresql import CircuitBreaker

_INTERVAL_SECONDS = 0.1
_ROLLBACK_SECONDS = 2.0
"""Seconds for a rollback, which is instant; a closed connection is rolled back by the server."""


class AnswerTimeoutError(psycopg.OperationalError, TimeoutError):
    """The server did not answer in time. It may have run the statement all the same."""


class DeadlineConnection(psycopg.Connection[Any]):
    """A connection that is closed when the server is silent for too long, or at its deadline.

    The server ends a slow statement, and the kernel a connection whose packets are not
    acknowledged; neither helps if a proxy acknowledges packets and holds them back.
    """

    breaker: CircuitBreaker
    seconds: float
    deadline = inf

    @classmethod
    def bounded(
        cls, parameters: Mapping[str, Any], *, breaker: CircuitBreaker, seconds: float
    ) -> Self:
        """Connect; an answer, also to a statement, has to come within so many seconds."""
        try:
            connection = cls.connect(**parameters)
        except psycopg.errors.ConnectionTimeout as exc:
            breaker.trip()
            raise AnswerTimeoutError from exc
        except psycopg.ProgrammingError as exc:
            raise StoreUrlError(f"RPRIME_STORE: {exc}") from exc
        except psycopg.OperationalError as exc:
            # Refused at once, so another attempt costs no time.
            breaker.reset()
            exc.sqlstate = exc.sqlstate or refusal_state(str(exc))
            raise
        connection.breaker, connection.seconds = breaker, seconds
        return connection

    def wait(
        self,
        gen: PQGen[RV],
        interval: float = _INTERVAL_SECONDS,
        timeout: float | None = None,  # noqa: ARG002 - the timeout of the connection applies
    ) -> RV:
        """Wait for the answer of the server; close the connection on timeout."""
        now = monotonic()
        end = min(now + self.seconds, self.deadline)
        try:
            answer = super().wait(gen, interval, max(0.0, end - now))
        except psycopg.Error as exc:
            if exc.sqlstate is not None or monotonic() < end:
                self.breaker.reset()
                raise
            self.pgconn.finish()
            self.breaker.trip()
            raise AnswerTimeoutError from exc
        self.breaker.reset()
        return answer

    def rollback(self) -> None:
        """Roll back, without waiting long for a server that is silent."""
        seconds, deadline = self.seconds, self.deadline
        self.seconds, self.deadline = min(seconds, _ROLLBACK_SECONDS), inf
        try:
            super().rollback()
        finally:
            self.seconds, self.deadline = seconds, deadline
