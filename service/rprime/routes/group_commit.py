"""Store the evaluations of one turn of the event loop together, and answer them together."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from rprime.store import Outcome, Packed, Store, Stored
from rprime.store.writer import resolve

Waiting = tuple[Packed, "asyncio.Future[Stored]"]
Known = tuple["asyncio.Future[Stored]", Outcome]

LONGEST_WAIT = 0.004
"""Seconds that an answer waits for the others of its group: about one commit."""


class GroupCommit:
    """Passes the evaluations of one turn of the loop to the store, and its answers back together.

    The store commits evaluations that arrive together as one group, and the engine evaluates them
    as one stack: sixteen tables in a stack cost a quarter of sixteen single tables. Without this
    class the first of a group would be committed and answered before the rest, and after a while
    every request would arrive, be evaluated and be committed alone. A lone client never waits.
    """

    def __init__(self) -> None:
        self._waiting: list[Waiting] = []
        self._known: list[Known] = []
        self._entered = 0
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Count a request that will store an evaluation."""
        self._entered += 1
        try:
            yield
        finally:
            self._entered -= 1
            self._answer_if_complete()

    def put(self, store: Store, packed: Packed) -> "asyncio.Future[Stored]":
        """Store an evaluation in the next turn of the loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Stored] = loop.create_future()
        self._waiting.append((packed, future))
        if len(self._waiting) == 1:
            loop.call_soon(self._flush, store, loop)
        return future

    def _flush(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        waiting, self._waiting = self._waiting, []
        futures = [future for _, future in waiting]
        try:
            outcomes = store.put_many([packed for packed, _ in waiting])
        except Exception as error:  # noqa: BLE001 (every request of the group gets the error)
            for future in futures:
                resolve(future, error)
            return
        outcomes.add_done_callback(
            lambda task: loop.call_soon_threadsafe(
                self._arrive, list(zip(futures, task.result(), strict=True))
            )
        )

    def _arrive(self, outcomes: list[Known]) -> None:
        self._known += outcomes
        self._answer_if_complete()
        if self._known and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LONGEST_WAIT, self._answer)

    def _answer_if_complete(self) -> None:
        if self._known and len(self._known) >= self._entered:
            self._answer()

    def _answer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        outcomes, self._known = self._known, []
        for future, outcome in outcomes:
            resolve(future, outcome)
