"""Turns: whose bytes are read next, where several send much at the same time."""

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic

from uvicorn.protocols.http.flow_control import FlowControl

SECONDS_PER_READ = 0.008
"""Seconds that a turn of the event loop may last for each part that is read in it."""


class ReadScheduler:
    """Those whose next part may be read, in the order in which they became ready for it.

    A part takes the loop up to a millisecond: it is received, parsed, counted and handed on. With
    a part of everyone in each turn, ten large bodies made a turn of ten milliseconds, and a small
    request needs five of them. One part a turn keeps turns short, and as a turn without other work
    is the shorter, large bodies lose nothing but what others use. Where the others make turns
    long, more parts are read in them, so that large bodies are not starved: 256 KiB in 8 ms.

    Parameters
    ----------
    clock
        Returns the seconds by which turns are measured.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._ready: deque[ScheduledFlowControl] = deque()
        self._begun = 0.0

    def stand_in(self, flow: "ScheduledFlowControl") -> None:
        """Have a flow resumed when its turn comes."""
        self._ready.append(flow)
        if len(self._ready) == 1:
            self._next(asyncio.get_running_loop())

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        self._begun = self._clock()
        loop.call_soon(self._resume, loop)

    def _resume(self, loop: asyncio.AbstractEventLoop) -> None:
        parts = 1 + int((self._clock() - self._begun) / SECONDS_PER_READ)
        turns = [self._ready.popleft() for _ in range(min(parts, len(self._ready)))]
        if self._ready:
            self._next(loop)
        for flow in turns:
            flow.go_on()


class ScheduledFlowControl(FlowControl):
    """Control of a connection whose reading, once paused, goes on when its turn comes."""

    def __init__(self, transport: asyncio.Transport, turns: ReadScheduler) -> None:
        super().__init__(transport)
        self._turns = turns
        self._stands_in = False

    def resume_reading(self) -> None:
        """Stand in for a turn."""
        if self.read_paused and not self._stands_in:
            self._stands_in = True
            self._turns.stand_in(self)

    def let_others(self) -> None:
        """Read no more until others had their turn."""
        if not self._transport.is_closing():
            self.pause_reading()
            self.resume_reading()

    def go_on(self) -> None:
        """Read on, unless the client has gone."""
        self._stands_in = False
        if not self._transport.is_closing():
            super().resume_reading()
