"""Places to work: bounded numbers of running and of waiting requests, and threads of one kind."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from math import inf
from time import monotonic, thread_time
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

from rprime.problems.problem import Problem, refuse
from rprime.server.cost import Cost, check_cost
from rprime.server.request_record import current_request
from rprime.server.worker_limits import CPU_SECONDS

RETRY_SECONDS = 2
_OUT_OF_TIME = (
    f"The request took more than {CPU_SECONDS} s of processor time. Ask for fewer evaluations, by "
    "`limit` or a filter."
)
_until = ContextVar("until", default=inf)
"""When the work of a thread has taken too much processor time, by the clock of the thread."""
Owner = str | None
P = ParamSpec("P")
T = TypeVar("T")


class Slots:
    """A bounded number of places to work, and a bounded queue before them.

    First come, first served; but one owner, a key or an address, has at most `share` of the places
    and of the queue, so that the others of the queue pass those who wait for themselves.
    Counted are those who have `taken` a place or wait for one, and those `rejected`.

    Parameters
    ----------
    seconds
        How long a request may wait; then it gets 503.
    """

    def __init__(
        self, most: int, waiting: int, *, seconds: float = inf, share: float = 1.0, what: str
    ) -> None:
        self.most = most
        self.taken = self.rejected = 0
        self._waiting, self._seconds, self._what = waiting, seconds, what
        self._share = max(1, int(most * share))
        self._queue_share = max(1, int(waiting * share))
        self._running = Counter[Owner]()
        self._queue: list[tuple[Owner, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def place(
        self, owner: Owner = None, *, seconds: float | None = None
    ) -> AsyncIterator[None]:
        """Wait for a place and hold it; 503 if too many wait already, or if it takes too long.

        `seconds` replaces how long this request may wait.
        """
        if not self._begin(owner):
            await self._wait(owner, self._seconds if seconds is None else seconds)
        try:
            yield
        finally:
            self._end(owner)

    def _begin(self, owner: Owner) -> bool:
        """Take a place if one is free for an owner."""
        if self._running.total() >= self.most or self._running[owner] >= self._share:
            return False
        self._running[owner] += 1
        self.taken += 1
        return True

    async def _wait(self, owner: Owner, seconds: float) -> None:
        waiting = sum(other == owner for other, _ in self._queue)
        if len(self._queue) >= self._waiting or waiting >= self._queue_share:
            self.rejected += 1
            raise overloaded(f"{self._what} take all the places, and more are waiting.")
        since, record = monotonic(), current_request.get()
        entry = owner, asyncio.get_running_loop().create_future()
        self._queue.append(entry)
        self.taken += 1
        try:
            async with asyncio.timeout(None if seconds == inf else seconds):
                await entry[1]
        except BaseException as failure:
            self.taken -= 1
            if entry in self._queue:
                self._queue.remove(entry)
            elif not entry[1].cancelled():
                # The place came in the moment in which the request gave up.
                self.taken += 1
                self._end(owner)
            if not isinstance(failure, TimeoutError):
                raise
            self.rejected += 1
            raise overloaded(f"{self._what} took all the places for too long.") from None
        finally:
            if record is not None:
                record.queue_seconds += monotonic() - since

    def _end(self, owner: Owner) -> None:
        """Free a place, and hand it to the first of the queue who may have it."""
        self.taken -= 1
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]
        for entry in self._queue:
            if not entry[1].done() and self._running[entry[0]] < self._share:
                self._queue.remove(entry)
                self._running[entry[0]] += 1
                entry[1].set_result(None)
                return


class Threads:
    """Threads of their own for one kind of blocking work, behind slots.

    Only for routes that declare its cost.
    """

    def __init__(self, slots: Slots, cost: Cost, cpu_seconds: float = CPU_SECONDS) -> None:
        self.slots, self._cost, self._cpu_seconds = slots, cost, cpu_seconds
        self._limiter = CapacityLimiter(slots.most)

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run in a thread when one is free; 503 where too many wait, or if it takes too long."""
        check_cost(self._cost)
        async with self.slots.place():
            timed = partial(_timed, partial(work, *args, **kwargs), self._cpu_seconds)
            return await to_thread.run_sync(timed, limiter=self._limiter)


def _timed(work: Callable[[], T], seconds: float) -> T:
    _until.set(thread_time() + seconds)
    return work()


def check_time() -> None:
    """Refuse to go on with work that has taken `worker_cpu_seconds` in a thread: 422.

    A thread cannot be ended, so what is long asks at each step; in a worker the kernel counts.
    """
    if thread_time() > _until.get():
        raise refuse("", "too_much", _OUT_OF_TIME)


def overloaded(why: str) -> Problem:
    """Return the problem of a request that comes at a bad time."""
    return Problem("overloaded", why, headers={"Retry-After": str(RETRY_SECONDS)})
