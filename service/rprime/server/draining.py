"""Draining: the time between being asked to stop and stopping, in which others learn of it."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType


class Draining:
    """Holds SIGTERM back for a while, from whoever ends the process by it.

    Meanwhile requests are answered as ever, but the service says that it is not ready, and
    connections end with their answers. A second signal is not held back.

    Parameters
    ----------
    seconds
        How long.
    """

    def __init__(self, seconds: float) -> None:
        self.begun = False
        self._seconds = seconds

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Wait for the signal; in a running event loop."""
        ending = signal.getsignal(signal.SIGTERM)
        if current_thread() is not main_thread() or not callable(ending):
            # Signals are none of the business of a thread.
            yield
            return
        loop = asyncio.get_running_loop()

        def begin(number: int, frame: FrameType | None) -> None:
            if self.begun:
                ending(number, frame)
                return
            self.begun = True
            loop.call_soon_threadsafe(loop.call_later, self._seconds, ending, number, frame)

        signal.signal(signal.SIGTERM, begin)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, ending)
