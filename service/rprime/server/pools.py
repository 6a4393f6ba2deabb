"""Slots for heavy work: bounded numbers of running and of waiting requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

from rprime.problems.problem import Problem
from rprime.server.request_record import current_request

RETRY_SECONDS = 2


class Slots:
    """A bounded number of places to work, and a bounded queue before them.

    Counted are those who have `taken` a place or wait for one, and those `rejected`.
    """

    def __init__(self, most: int, waiting: int) -> None:
        self.most = most
        self._waiting = waiting
        self.taken = self.rejected = 0
        self._queue = asyncio.Semaphore(most)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place and hold it; 503 if too many wait already."""
        if self.taken >= self.most + self._waiting:
            self.rejected += 1
            raise overloaded("Other large requests take all the places, and more are waiting.")
        self.taken += 1
        try:
            since = monotonic()
            async with self._queue:
                if (record := current_request.get()) is not None:
                    record.queue_seconds += monotonic() - since
                yield
        finally:
            self.taken -= 1


def overloaded(why: str) -> Problem:
    """Return the problem of a request that comes at a bad time."""
    return Problem("overloaded", why, headers={"Retry-After": str(RETRY_SECONDS)})
