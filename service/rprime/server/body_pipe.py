"""Inlet: a body that is received by the event loop and read by a thread, with little in between."""

import asyncio
from collections import deque
from io import RawIOBase
from threading import Condition

_MOST = 1 << 20
"""Bytes that wait for the thread; if it wants more at once, they wait until they are complete."""


class ReaderGoneError(Exception):
    """The body will not be complete any more."""


class BodyPipe(RawIOBase):
    """A file for the thread, filled by the event loop in which it was made."""

    def __init__(self) -> None:
        super().__init__()
        self.received = 0
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Event()
        self._changed = Condition()
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._wanted = 1
        self._complete = self._gone = self._left = False

    async def feed(self, piece: bytes) -> bool:
        """Hand over some bytes; wait while the thread has enough.

        Returns
        -------
        Whether the thread still reads.
        """
        self.received += len(piece)
        with self._changed:
            self._pieces.append(piece)
            self._size += len(piece)
            self._room.clear()
            full = self._size >= max(self._wanted, _MOST)
            if self._size >= self._wanted:
                self._changed.notify()
        if full and not self._left:
            await self._room.wait()
        return not self._left

    def finish(self, *, gone: bool = False) -> None:
        """Say that nothing follows; gone: though something is missing."""
        with self._changed:
            self._complete, self._gone = True, gone
            self._changed.notify()

    def leave(self) -> None:
        """Say that the thread reads no more."""
        self._left = True
        self._loop.call_soon_threadsafe(self._room.set)

    def readable(self) -> bool:
        """Give True: it is a file to read."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Give so many bytes, fewer only at the end."""
        wanted = size if size >= 0 else 1 << 62
        with self._changed:
            self._wanted = wanted
            if self._size < wanted:
                # The event loop may wait for room, though there is less than is wanted here.
                self._loop.call_soon_threadsafe(self._room.set)
            self._changed.wait_for(lambda: self._size >= wanted or self._complete)
            if self._gone:
                raise ReaderGoneError
            parts = self._taken(wanted)
            if self._size < _MOST:
                self._loop.call_soon_threadsafe(self._room.set)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _taken(self, wanted: int) -> list[bytes]:
        parts = []
        while wanted and self._pieces:
            piece = self._pieces.popleft()
            if len(piece) > wanted:
                self._pieces.appendleft(piece[wanted:])
                piece = piece[:wanted]
            parts.append(piece)
            wanted -= len(piece)
            self._size -= len(piece)
        return parts
