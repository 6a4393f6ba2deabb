"""Messages of an Arrow IPC stream, measured before pyarrow takes memory for them."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from io import RawIOBase
from struct import Struct, error
from typing import IO

from rprime.evidence.columns import Hold
from rprime.evidence.errors import TooLargeError, UnreadableBodyError

MOST_METADATA = 1 << 20
"""Bytes of the metadata of a message; those of a batch of 1000 columns are a twentieth of it."""
_CONTINUATION = b"\xff\xff\xff\xff"
_WORD = 4
_DICTIONARY, _BATCH = 2, 3
_BYTE, _SHORT, _PLACE, _OFFSET, _SIZE = (Struct(f"<{code}") for code in "BHIiq")
_BUFFER = Struct("<qq")
_NOT_COMPRESSED = -1


class Messages(RawIOBase):
    """A stream for pyarrow, which believes whatever length a message tells.

    Parameters
    ----------
    stream
        Need not be seekable.
    most
        Bytes that all messages may have, inflated.
    hold
        Asked for the bytes of the largest batch, and of all dictionaries.
    """

    def __init__(self, stream: IO[bytes], most: int, hold: Hold) -> None:
        super().__init__()
        self._stream = stream
        self._most = self._left = most
        self._hold = hold
        self._largest = 0
        self._parts: deque[bytes] = deque()

    def readable(self) -> bool:
        """Give True: it is a file to read."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Give the next bytes, at most so many; pyarrow asks for the parts of a message."""
        if not self._parts:
            self._take()
        part = self._parts.popleft()
        if 0 <= size < len(part):
            self._parts.appendleft(part[size:])
            part = part[:size]
        return part

    def _take(self) -> None:
        begin = self._stream.read(_WORD)
        length = self._stream.read(_WORD) if begin == _CONTINUATION else b""
        size = int.from_bytes(length or begin, "little", signed=True)
        self._parts += (part for part in (begin, length) if part or part is begin)
        if size <= 0:
            return
        if size > MOST_METADATA:
            raise UnreadableBodyError("A message of the stream has too much metadata.")
        metadata = self._stream.read(size)
        try:
            self._parts += (metadata, *self._body(_Message.of(metadata)))
        except error:
            raise UnreadableBodyError("A message of the stream is damaged.") from None

    def _body(self, message: "_Message") -> Iterator[bytes]:
        if message.size < 0:
            raise UnreadableBodyError("A message of the stream is damaged.")
        if not message.size:
            return
        self._charge(message.size, message)
        body = self._stream.read(message.size)
        more = sum(_inflated(body, *buffer) - buffer[1] for buffer in message.compressed)
        self._charge(max(more, 0), message, beside=message.size)
        yield body

    def _charge(self, size: int, message: "_Message", *, beside: int = 0) -> None:
        self._left -= size
        if self._left < 0:
            raise TooLargeError(self._most)
        if message.is_dictionary:
            self._hold(size)
        elif beside + size > self._largest:
            self._hold(beside + size - self._largest)
            self._largest = beside + size


@dataclass(frozen=True)
class _Message:
    """What the metadata of a message say (Message.fbs of Arrow).

    Parameters
    ----------
    size
        Of its body.
    is_dictionary
        Whether it is kept.
    compressed
        Offset and length of each compressed buffer in the body.
    """

    size: int
    is_dictionary: bool
    compressed: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, content: bytes) -> "_Message":
        message = _Table(content, *_PLACE.unpack_from(content))
        kind = message.number(1, _BYTE)
        compressed: tuple[tuple[int, int], ...] = ()
        if kind in {_DICTIONARY, _BATCH}:
            batch = message.inner(2)
            if kind == _DICTIONARY:
                batch = batch.inner(1)
            if batch.place_of(3):
                compressed = tuple(batch.buffers(2))
        return cls(message.number(3, _SIZE), kind == _DICTIONARY, compressed)


class _Table:
    """A table of a flatbuffer."""

    def __init__(self, content: bytes, place: int) -> None:
        self._content, self._place = content, place
        self._fields = place - _OFFSET.unpack_from(content, place)[0]

    def place_of(self, field: int) -> int:
        """Give where a field stands; 0 if it is not there."""
        entry = _WORD + _SHORT.size * field
        (size,) = _SHORT.unpack_from(self._content, self._fields)
        if entry >= size:
            return 0
        (offset,) = _SHORT.unpack_from(self._content, self._fields + entry)
        return self._place + offset if offset else 0

    def number(self, field: int, kind: Struct) -> int:
        place = self.place_of(field)
        return int(kind.unpack_from(self._content, place)[0]) if place else 0

    def inner(self, field: int) -> "_Table":
        return _Table(self._content, self._pointed(field))

    def buffers(self, field: int) -> Iterator[tuple[int, int]]:
        place = self._pointed(field)
        (count,) = _PLACE.unpack_from(self._content, place)
        for i in range(count):
            yield _BUFFER.unpack_from(self._content, place + _WORD + _BUFFER.size * i)

    def _pointed(self, field: int) -> int:
        place = self.place_of(field)
        if not place:
            raise error
        return place + int(_PLACE.unpack_from(self._content, place)[0])


def _inflated(body: bytes, offset: int, length: int) -> int:
    """Give the bytes of a compressed buffer, inflated: it tells them first."""
    if length < _SIZE.size:
        return length
    (size,) = _SIZE.unpack_from(body, offset)
    if size == _NOT_COMPRESSED:
        return length
    if size < 0:
        raise error
    return int(size)
