"""Read scheduler: which connection is read next where several send large bodies."""

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic

from uvicorn.protocols.http.flow_control import FlowControl

SECONDS_PER_READ = 0.008
"""Seconds of an iteration of the event loop for each part that is read in it."""


class ReadScheduler:
    """Resumes the reading of paused connections, first in, first out.

    A part takes the loop up to a millisecond: it is received, parsed, counted and handed on. With
    a part of every connection in each iteration, ten large bodies made an iteration of ten
    milliseconds, and a small request needs five of them. One part per iteration keeps iterations
    short. Where other work makes them long, more parts are read in each, so that large bodies do
    not starve: 256 KiB in 8 ms.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._queue: deque[ScheduledFlowControl] = deque()
        self._begun = 0.0

    def schedule(self, flow: "ScheduledFlowControl") -> None:
        """Resume a connection when it is the first of the queue."""
        self._queue.append(flow)
        if len(self._queue) == 1:
            self._call_soon(asyncio.get_running_loop())

    def _call_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        self._begun = self._clock()
        loop.call_soon(self._resume, loop)

    def _resume(self, loop: asyncio.AbstractEventLoop) -> None:
        parts = 1 + int((self._clock() - self._begun) / SECONDS_PER_READ)
        flows = [self._queue.popleft() for _ in range(min(parts, len(self._queue)))]
        if self._queue:
            self._call_soon(loop)
        for flow in flows:
            flow.resume_now()


class ScheduledFlowControl(FlowControl):
    """Flow control of a connection that a scheduler resumes."""

    def __init__(self, transport: asyncio.Transport, scheduler: ReadScheduler) -> None:
        super().__init__(transport)
        self._scheduler = scheduler
        self._is_scheduled = False

    def resume_reading(self) -> None:
        """Schedule the next read."""
        if self.read_paused and not self._is_scheduled:
            self._is_scheduled = True
            self._scheduler.schedule(self)

    def yield_turn(self) -> None:
        """Pause until the scheduler has resumed the connections before this one."""
        if not self._transport.is_closing():
            self.pause_reading()
            self.resume_reading()

    def resume_now(self) -> None:
        """Read on, unless the client has disconnected."""
        self._is_scheduled = False
        if not self._transport.is_closing():
            super().resume_reading()
