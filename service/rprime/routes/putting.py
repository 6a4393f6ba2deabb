"""Putting: evaluations of one turn of the event loop go to the store, and come back, together."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future  # noqa: TC003 - as rprime.store has it
from contextlib import contextmanager
from threading import Lock

from rprime.store import Stored

Put = Callable[[], "Future[Stored]"]
Member = tuple["Future[Stored]", "asyncio.Future[Stored]"]

LONGEST_WAIT = 0.004
"""Seconds that an answer waits for those that are nearly there: about one commit."""


class Putting:
    """Gives the store what one turn of the loop has made, and gives its answers back together.

    The store commits what waits as one group, and the engine evaluates as one stack what arrives
    together: sixteen tables in a stack cost a quarter of what they cost alone. Without this, the
    first of a group would be committed while the next ones are being rendered, come back earlier,
    and after a while everybody would come, be evaluated and be committed alone. A client that is
    alone waits for nobody.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Put, asyncio.Future[Stored]]] = []
        self._ready: list[Member] = []
        self._entered = 0
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Count a request that will put something."""
        self._entered += 1
        try:
            yield
        finally:
            self._entered -= 1
            self._answer_if_complete()

    async def put(self, put: Put) -> Stored:
        """Store an evaluation; `put` gives it to the store."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Stored] = loop.create_future()
        self._waiting.append((put, future))
        if len(self._waiting) == 1:
            loop.call_soon(self._flush, loop)
        return await future

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting, self._waiting = self._waiting, []
        members: list[Member] = []
        for put, future in waiting:
            try:
                members.append((put(), future))
            except Exception as error:  # noqa: BLE001 (whatever it is, it is the answer)
                _fail(future, error)
        if members:
            _Group(members, lambda: loop.call_soon_threadsafe(self._arrive, members))

    def _arrive(self, members: list[Member]) -> None:
        self._ready += members
        self._answer_if_complete()
        if self._ready and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LONGEST_WAIT, self._answer)

    def _answer_if_complete(self) -> None:
        if self._ready and len(self._ready) >= self._entered:
            self._answer()

    def _answer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        ready, self._ready = self._ready, []
        for stored, future in ready:
            error = stored.exception()
            if error is not None:
                _fail(future, error)
            elif not future.done():
                future.set_result(stored.result())


class _Group:
    """Evaluations on their way to the disk: when the last one is there, it is said once."""

    def __init__(self, members: list[Member], complete: Callable[[], object]) -> None:
        self._complete = complete
        self._missing = len(members)
        self._lock = Lock()
        for stored, _ in members:
            stored.add_done_callback(self._count)

    def _count(self, _: "Future[Stored]") -> None:
        with self._lock:
            self._missing -= 1
            complete = not self._missing
        if complete:
            self._complete()


def _fail(future: "asyncio.Future[Stored]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
