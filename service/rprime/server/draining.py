"""Draining: the time between SIGTERM and the shutdown, for load balancers to notice."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Thread, Timer, current_thread, main_thread
from types import FrameType

import structlog

from rprime.store.use import is_waiting

ENDED_STATUS = 75
"""Of sysexits.h, a temporary failure: the process ended before all of its work had."""
_CLOSING_SECONDS = 0.9
_LOGGING_SECONDS = 0.2

_log = structlog.get_logger(__name__)


class Draining:
    """Delays SIGTERM, and ends a process that does not end in time.

    Meanwhile requests are answered as before, but the service reports that it is not ready, and
    each connection closes after its next response. A second signal is not delayed.
    """

    def __init__(self, seconds: float, stop_seconds: float) -> None:
        self.has_started = False
        self._seconds = seconds
        self._stop_seconds = stop_seconds

    @contextmanager
    def handle_signals(self) -> Iterator[None]:
        """Handle the signals, in a running event loop."""
        stopping, interrupting = map(signal.getsignal, (signal.SIGTERM, signal.SIGINT))
        in_main = current_thread() is main_thread()
        if not (in_main and callable(stopping) and callable(interrupting)):
            # Only the main thread can handle signals.
            yield
            return
        loop = asyncio.get_running_loop()

        def begin(number: int, frame: FrameType | None) -> None:
            if self.has_started:
                stopping(number, frame)
                return
            self.has_started = True
            _end_after(self._seconds + self._stop_seconds)
            loop.call_soon_threadsafe(loop.call_later, self._seconds, stopping, number, frame)

        def interrupt(number: int, frame: FrameType | None) -> None:
            _end_after(self._stop_seconds)
            interrupting(number, frame)

        signal.signal(signal.SIGTERM, begin)
        signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, stopping)
            signal.signal(signal.SIGINT, interrupting)


def _end_after(seconds: float) -> None:
    """End the process after a while, if it has not ended: a thread may compute or wait."""
    timer = Timer(seconds + _CLOSING_SECONDS, _end)
    timer.daemon = True
    timer.start()


def _end() -> None:
    if is_waiting():
        detail = "The disk or the network of the store hangs. What was acknowledged is stored."
        status, tell = ENDED_STATUS, partial(_log.error, "stopped_unfinished", detail=detail)
    else:
        detail = "A request was still computed; it has a 503. What was acknowledged is stored."
        status, tell = 0, partial(_log.warning, "stopped_computing", detail=detail)
    # In a thread: what reads the log may not read any more.
    telling = Thread(target=tell, daemon=True)
    telling.start()
    telling.join(_LOGGING_SECONDS)
    os._exit(status)
