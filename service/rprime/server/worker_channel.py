"""The worker's end of the socket between the service and a process that works for it.

The service sends a request: its size, the request, and a body in pieces, each with its size before
it. The worker may answer before the end of the body, of which it then skips the rest.
"""

import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from io import RawIOBase
from struct import Struct

SIZE = Struct("!I")
"""Before a request, and before a piece of its body."""
END, GONE = 0, 0xFFFFFFFF
"""In place of the size of a piece: the body is complete, or will never be."""
MESSAGE = Struct("!BQ")
"""From the worker: what it is, and a number of bytes."""
KEPT, ANSWER, CALL = 0, 1, 2
"""So many bytes more are kept in memory for the request; an answer of so many bytes follows; so do
those of a call, whose result the service sends back, with its size before it."""
READY = b"\0"
"""What a worker sends as soon as it has started."""
_NICENESS = 5
"""Small requests go first where there are not enough cores for all."""
_PIECE = 1 << 18
_REPORTED = 1 << 20
"""Bytes that are kept before the service is told: each message takes a turn of its event loop."""


class GoneError(Exception):
    """The body will not be complete any more, or nobody asks for anything any more."""


class Channel(RawIOBase):
    """One request: its body is read from here, as from a file."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self.received = 0
        """Bytes of the body that were read."""
        self._connection = connection
        self._left = 0
        self._open = True
        self._kept = 0

    def readable(self) -> bool:
        """Return True: the worker only reads it."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return so many bytes, fewer only at the end; `GoneError` if the other side went away."""
        content = bytearray()
        length = size if size >= 0 else 1 << 62
        while len(content) < length and self._has_more():
            part = self._connection.recv(min(self._left, length - len(content), _PIECE))
            if not part:
                raise GoneError
            self._left -= len(part)
            content += part
        self.received += len(content)
        return content  # type: ignore[return-value] # without a copy, and used as bytes are

    def _has_more(self) -> bool:
        if self._open and not self._left:
            size = SIZE.unpack(_received(self._connection, SIZE.size))[0]
            self._open = size not in {END, GONE}
            if size == GONE:
                raise GoneError
            self._left = size
        return self._open

    def keep(self, size: int) -> None:
        """Tell the service of bytes that are kept in memory until the answer."""
        self._kept += size
        if self._kept >= _REPORTED:
            self._connection.sendall(MESSAGE.pack(KEPT, self._kept))
            self._kept = 0

    def call(self, content: bytes) -> bytes:
        """Ask the service, once the body is read, and return what it answers."""
        while self.read(_PIECE):
            pass
        self._connection.sendall(MESSAGE.pack(CALL, len(content)))
        self._connection.sendall(content)
        return _received(self._connection, SIZE.unpack(_received(self._connection, SIZE.size))[0])

    def answer(self, content: bytes) -> None:
        """Answer, and skip what is left of the body."""
        self._connection.sendall(MESSAGE.pack(ANSWER, len(content)))
        self._connection.sendall(content)
        with suppress(GoneError):
            while self.read(_PIECE):
                pass


def serve(answer: Callable[[bytes, Channel], bytes]) -> None:
    """Answer requests from the socket that is the standard input, until the service closes it.

    The answer to a request and its body may let a `GoneError` pass.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    with socket.socket(fileno=os.dup(0)) as connection, suppress(GoneError, ConnectionError):
        connection.sendall(READY)
        while True:
            size = SIZE.unpack(_received(connection, SIZE.size))[0]
            request = _received(connection, size)
            channel = Channel(connection)
            try:
                content = answer(request, channel)
            except GoneError:
                content = b""
            channel.answer(content)
            del content


def _received(connection: socket.socket, size: int) -> bytes:
    content = connection.recv(size, socket.MSG_WAITALL)
    if len(content) < size:
        raise GoneError
    return content
