"""Compress JSON with zstd, and hexadecimal digests to bytes."""

import hashlib
import re
import threading
import zlib

import zstandard

_MAGIC = zstandard.FRAME_HEADER
_WORTHWHILE = 64
_PLAIN = b"\x00"
_RESIDUE = 0x2144DF1C
"""The CRC-32 of any data that its own CRC-32 follows."""
_PREFIX = "sha256:"
_SHA256 = re.compile("[0-9a-f]{64}")
_OTHER, _PREFIXED, _BARE = b"\x00", b"\x01", b"\x02"

CONTENT_KEY_BYTES = 16


class ChecksumError(ValueError):
    """Stored bytes that are not those that were written, or no bytes, as SQLite may then read."""


class _Contexts(threading.local):
    """A compressor and a decompressor for each thread, since threads must not share them."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
        self.decompressor = zstandard.ZstdDecompressor()


_contexts = _Contexts()


def deflate(data: bytes) -> bytes:
    """Compress into one frame that states its inflated size."""
    return _contexts.compressor.compress(data)


def inflate(data: bytes) -> bytes:
    """Invert `deflate`; `ChecksumError` if the frame is damaged."""
    try:
        return _contexts.decompressor.decompress(data)
    except (zstandard.ZstdError, MemoryError, TypeError) as exc:
        # The size that a frame states may be damaged, too.
        raise ChecksumError(str(exc)) from exc


def squeeze(text: bytes | None) -> bytes | None:
    """Compress JSON if that makes it smaller, and add a checksum; None stays None."""
    if text is None:
        return None
    plain = _PLAIN + sealed(text)
    if len(text) < _WORTHWHILE:
        return plain
    return min(deflate(text), plain, key=len)


def expand(data: object) -> bytes | None:
    """Invert `squeeze`: no JSON starts like a zstd frame, or with a null."""
    if data is None:
        return None
    if isinstance(data, bytes) and data.startswith(_PLAIN):
        return unsealed(data[1:])
    if isinstance(data, bytes) and data.startswith(_MAGIC):
        return inflate(data)
    raise ChecksumError("this is no JSON")


def sealed(data: bytes, identifier: str = "") -> bytes:
    """Append a checksum of the data and of the id of the row that holds it."""
    return data + zlib.crc32(data, zlib.crc32(identifier.encode())).to_bytes(4, "little")


def unsealed(data: object, identifier: str = "") -> bytes:
    """Remove the checksum of `sealed`; `ChecksumError` if the data changed or is of another row."""
    if not isinstance(data, bytes) or zlib.crc32(data, zlib.crc32(identifier.encode())) != _RESIDUE:
        raise ChecksumError("the checksum differs")
    return data[:-4]


def content_key(data: bytes) -> bytes:
    """Return the key under which equal bytes are stored once."""
    return hashlib.blake2b(data, digest_size=CONTENT_KEY_BYTES).digest()


def digest_bytes(text: str) -> bytes:
    """Halve a SHA-256 in hexadecimal, with or without "sha256:" before it; keep other text."""
    bare = text.removeprefix(_PREFIX)
    if _SHA256.fullmatch(bare):
        return (_BARE if bare == text else _PREFIXED) + bytes.fromhex(bare)
    # A filter may have a lone surrogate, although no database can store one.
    return _OTHER + text.encode(errors="surrogatepass")


def digest_text(data: bytes) -> str:
    """Invert `digest_bytes`."""
    mark, rest = data[:1], data[1:]
    if mark == _OTHER:
        return rest.decode(errors="surrogatepass")
    return (_PREFIX if mark == _PREFIXED else "") + rest.hex()
