"""Thrift's compact protocol, in which Parquet has its metadata: read within bounds, and written."""

from collections.abc import Mapping
from typing import Any, Self

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, TEXT, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
Key = tuple[int, int]
"""The number and the kind of a field; others, too, skip what is not of the kind they want."""
Fields = dict[Key, Any]
"""A struct: integers, texts as bytes, lists of structs, structs; None for true and false."""
Shape = Mapping[Key, Any]
"""The fields that are kept of a struct, with the shapes of the structs in them."""
_BITS = {I16: 16, I32: 32, I64: 64}
_FIXED = {BYTE: 1, DOUBLE: 8}
_DEEPEST = 8
_MORE, _LONG, _WIDEST = 0x80, 15, 70
"""A bit that says that bytes follow, a size or a step that needs bytes of its own, most bits."""


class BrokenError(ValueError):
    """The bytes are no struct, or a larger one than is read."""


class Whole(dict[Key, Any]):
    """The shape of a struct of which every field is kept."""

    def __contains__(self, key: object) -> bool:
        """Return True."""
        return True

    def __missing__(self, key: Key) -> Self:
        """Return itself: every field of a struct in it is kept, too."""
        return self


class Reader:
    """Reads structs as long as they are not too large; an IndexError where the bytes end before.

    Parameters
    ----------
    content
        The bytes, and what may follow them.
    most
        How many fields and elements of lists there may be.
    """

    def __init__(self, content: bytes, most: int) -> None:
        self._content = content
        self._left = most
        self.place = 0

    def struct(self, shape: Shape, depth: int = 0) -> Fields:
        """Read a struct.

        Raises
        ------
        BrokenError
            If it is none.
        """
        if depth > _DEEPEST:
            raise BrokenError
        content, fields, number = self._content, dict[Key, Any](), 0
        # With as few calls as can be: pages of a file have hundreds of thousands of fields.
        while kind := (head := content[self.place]) & 15:
            self.place += 1
            self._left -= 1
            if self._left < 0:
                raise BrokenError
            number = number + (head >> 4) if head >> 4 else self._integer(I16)
            key = number, kind
            if key in fields:
                raise BrokenError
            if key in shape:
                fields[key] = self._value(kind, shape[key], depth + 1)
            else:
                self._skip(kind, depth + 1)
        self.place += 1
        return fields

    def _value(self, kind: int, shape: Shape, depth: int) -> Any:
        if kind in _BITS:
            return self._integer(kind)
        if kind == BYTE:
            return self._byte()
        if kind == TEXT:
            size = self._varint()
            self.place += size
            return self._content[self.place - size : self.place]
        if kind == STRUCT:
            return self.struct(shape, depth)
        if kind == LIST:
            inner, size = self._list()
            if inner != STRUCT:
                raise BrokenError
            return [self.struct(shape, depth) for _ in range(size)]
        return self._skip(kind, depth)

    def _skip(self, kind: int, depth: int) -> None:
        if kind in _BITS:
            self._varint()
        elif kind in _FIXED:
            self.place += _FIXED[kind]
        elif kind == TEXT:
            size = self._varint()
            self.place += size
        elif kind == STRUCT:
            self.struct({}, depth)
        elif kind == LIST and depth <= _DEEPEST:
            inner, size = self._list()
            for _ in range(size):
                # In a list, true and false have a byte each.
                self._skip(BYTE if inner in {TRUE, FALSE} else inner, depth + 1)
        elif kind not in {TRUE, FALSE}:
            raise BrokenError

    def _list(self) -> tuple[int, int]:
        """Read the kind of the elements and their number."""
        head = self._byte()
        size = head >> 4
        if size == _LONG:
            size = self._varint()
        self._count(size)
        return head & 15, size

    def _count(self, number: int) -> None:
        self._left -= number
        if self._left < 0:
            raise BrokenError

    def _byte(self) -> int:
        byte = self._content[self.place]
        self.place += 1
        return byte

    def _varint(self) -> int:
        content, place, value, shift = self._content, self.place, 0, 0
        while (byte := content[place]) >= _MORE:
            value |= (byte - _MORE) << shift
            place, shift = place + 1, shift + 7
            if shift >= _WIDEST:
                raise BrokenError
        self.place = place + 1
        return value | byte << shift

    def _integer(self, kind: int) -> int:
        """Read an integer; one too large for its kind is another one elsewhere."""
        value = self._varint()
        if value >> _BITS[kind]:
            raise BrokenError
        return value >> 1 ^ -(value & 1)


def packed(fields: Fields) -> bytes:
    """Write a struct; lists may be of texts here, too."""
    written = bytearray()
    last = 0
    for (number, kind), value in fields.items():
        step, last = number - last, number
        if 0 < step <= _LONG:
            written.append(step << 4 | kind)
        else:
            written.append(kind)
            written += _varint(_zigzag(number))
        written += _packed(kind, value)
    return bytes(written) + b"\0"


def _packed(kind: int, value: Any) -> bytes:
    if kind in _BITS:
        return _varint(_zigzag(value))
    if kind == BYTE:
        return bytes([value])
    if kind == TEXT:
        return _varint(len(value)) + bytes(value)
    if kind == STRUCT:
        return packed(value)
    if kind == LIST:
        inner = TEXT if value and isinstance(value[0], bytes) else STRUCT
        head = bytes([_LONG << 4 | inner]) + _varint(len(value))
        return head + b"".join(_packed(inner, element) for element in value)
    return b""


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _varint(value: int) -> bytes:
    written = bytearray()
    while value >= _MORE:
        written.append((value % _MORE) | _MORE)
        value >>= 7
    written.append(value)
    return bytes(written)
