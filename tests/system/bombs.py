"""Bodies that cost much more than they weigh, and the memory of whoever has to read them.

`python bombs.py PORT` sends each once, then, for each line that it is sent, 32 at once.
"""

import gzip
import io
import json
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from http.client import HTTPResponse
from pathlib import Path
from threading import Event

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import zstandard

MIB = 1 << 20
ZEROS = bytes(16 * MIB)
JSON = "application/json"
CSV = "text/csv"
JSON_LINES = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
NPZ = "application/x-npz"


@dataclass(frozen=True)
class Bomb:
    """A body in pieces, as it is sent."""

    name: str
    media_type: str
    pieces: Callable[[], Iterator[bytes]]
    headers: dict[str, str] = field(default_factory=dict)
    most: int = 64 * MIB
    """Bytes that it may take before it is known to be too large."""
    most_seconds: float = 1
    """Of processor time, of the service and its workers, up to the refusal."""

    def __str__(self) -> str:
        return self.name


def whole(name: str, media_type: str, write: Callable[[], bytes], **headers: str) -> Bomb:
    """Return a bomb that is sent in one piece."""
    made = cache(write)
    return Bomb(
        name,
        media_type,
        lambda: iter([made()]),
        {k.replace("_", "-"): v for k, v in headers.items()},
    )


def _chunked() -> Iterator[bytes]:
    yield b'{"y_true":['
    piece = b"1," * (MIB // 2)
    for _ in range(200):
        yield piece


def _gzipped(before: bytes = b"") -> bytes:
    return gzip.compress(before) + gzip.compress(ZEROS) * 64


def _zstandard(before: bytes = b"") -> bytes:
    return zstandard.compress(before) + zstandard.compress(ZEROS) * 64


def _packed_arrow() -> bytes:
    """1 GiB of zeros in compressed buffers."""
    zeros = pa.array(np.zeros(1 << 23, np.int64))
    batch = pa.record_batch({"y_true": zeros, "y_pred": zeros})
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        for _ in range(8):
            writer.write_batch(batch)
    return sink.getvalue()


def _large_batch() -> bytes:
    """One batch of 1 GiB, which pyarrow would inflate before anything can be counted."""
    zeros = pa.array(np.zeros(1 << 26, np.int64))
    batch = pa.record_batch({"y_true": zeros, "y_pred": zeros})
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _modest_parquet() -> bytes:
    """400 strings of 1 MiB in pages of their own, in a file whose metadata say it is small."""
    labels = pa.array([chr(97 + i % 26) * MIB for i in range(400)])
    table, sink = pa.table({"y_true": labels, "y_pred": labels}), io.BytesIO()
    pyarrow.parquet.write_table(table, sink, compression="zstd", use_dictionary=False)
    body = sink.getvalue()
    size = int.from_bytes(body[-8:-4], "little")
    footer = body[-8 - size : -8]
    metadata = pyarrow.parquet.ParquetFile(io.BytesIO(body)).metadata.row_group(0)
    for number in (metadata.total_byte_size, metadata.column(0).total_uncompressed_size):
        true = _varint(number)
        footer = footer.replace(true, b"\x80" * (len(true) - 1) + b"\0")
    return body[: -8 - size] + footer + body[-8:]


def _varint(number: int) -> bytes:
    """Write an integer as Thrift does."""
    number, digits = number << 1, list[int]()
    while number or not digits:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits[:-1], digits[-1] & 127])


def _lying_arrow() -> bytes:
    """Say that the first message is 2 GiB long."""
    sink = io.BytesIO()
    batch = pa.record_batch({"y_true": [1], "y_pred": [1]})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()[:4] + b"\xff\xff\xff\x7f" + sink.getvalue()[8:]


def _run_length_parquet() -> bytes:
    """2.7e8 rows, all the same, which takes some bytes for each million."""
    zeros = pa.array(np.zeros(1 << 24, np.int32))
    table, sink = pa.table({"y_true": zeros, "y_pred": zeros}), io.BytesIO()
    with pyarrow.parquet.ParquetWriter(sink, table.schema) as writer:
        for _ in range(16):
            writer.write_table(table, row_group_size=1 << 24)
    return sink.getvalue()


def _dictionary_parquet() -> bytes:
    """A dictionary of a few very long labels, which many rows name."""
    names = pa.array([chr(97 + i) * (8 * MIB) for i in range(8)])
    labels = pa.DictionaryArray.from_arrays(np.arange(1 << 16, dtype=np.int32) % 8, names)
    sink = io.BytesIO()
    table = pa.table({"y_true": labels, "y_pred": labels})
    pyarrow.parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _npz() -> bytes:
    sink = io.BytesIO()
    zeros = np.zeros(1 << 28, np.uint8)
    np.savez_compressed(sink, y_true=zeros, y_pred=zeros)
    return sink.getvalue()


def _bad_cells() -> bytes:
    return (
        b'{"confusion_matrix":['
        + b",".join([b"[" + b",".join([b'"x"'] * 316) + b"]"] * 316)
        + b"]}"
    )


def _classes() -> bytes:
    row = b"[" + b",".join([b"0"] * 1000) + b"]"
    return b'{"confusion_matrix":[' + b",".join([row] * 10_000) + b"]}"


BOMBS = [
    Bomb("200 MB in chunks", JSON, _chunked, {"Transfer-Encoding": "chunked"}),
    whole("1 GiB in gzip", JSON, lambda: _gzipped(b'{"y_true":['), Content_Encoding="gzip"),
    whole("1 GiB in zstd", JSON, lambda: _zstandard(b'{"y_true":['), Content_Encoding="zstd"),
    whole(
        "1 GiB of CSV in gzip", CSV, lambda: _gzipped(b"y_true,y_pred\na,"), Content_Encoding="gzip"
    ),
    whole(
        "1 GiB of CSV in zstd",
        CSV,
        lambda: _zstandard(b"y_true,y_pred\na,"),
        Content_Encoding="zstd",
    ),
    # A stream says nothing of what follows: what may be inflated is held until it is more.
    replace(whole("Arrow, 1 GiB in its buffers", ARROW, _packed_arrow), most=256 * MIB),
    whole("Arrow, 1 GiB in one batch", ARROW, _large_batch),
    whole("Arrow, a length that lies", ARROW, _lying_arrow),
    whole("Parquet, 2.7e8 equal rows", PARQUET, _run_length_parquet),
    whole("Parquet, huge labels", PARQUET, _dictionary_parquet),
    whole("Parquet, huge labels and modest metadata", PARQUET, _modest_parquet),
    whole("NPZ, 512 MiB", NPZ, _npz),
    whole("1e5 bad cells", JSON, _bad_cells),
    whole("100 000 deep", JSON, lambda: b'{"a":' * 100_000),
    # Parsed JSON takes many times its size before anything can be counted: orjson 16 bytes for
    # each of 1e7 numbers and 8 in a list, beside the body of 20 MB. That is 260 MB; the rest is
    # the room for variation, where no memory freed before counts as idle.
    replace(whole("10 000 classes", JSON, _classes), most=320 * MIB),
    replace(
        # Four times the body, 122 MiB, and what the allocator rounds up: 126 to 129 were measured.
        whole("32 000 000 commas", JSON, lambda: b'{"y_true":[' + b"," * 32_000_000),
        most=136 * MIB,
    ),
    whole(
        "1 GiB of JSON lines in zstd",
        JSON_LINES,
        lambda: _zstandard(b'{"y_true": 1, "y_pred": 1}\n'),
        Content_Encoding="zstd",
    ),
    whole("15 MB of lines of brackets", JSON_LINES, lambda: b"[]\n" * 5_000_000),
]


def send(port: int, bomb: Bomb) -> tuple[int, float, bytes]:
    """Send a bomb; the status, how many seconds that took, and the answer.

    A service that has heard enough answers and closes before everything is sent.
    """
    pieces = iter(bomb.pieces())
    is_chunked = bomb.headers.get("Transfer-Encoding") == "chunked"
    if is_chunked:
        framed = (b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
        headers = bomb.headers
    else:
        body = b"".join(pieces)
        framed = (body[start : start + MIB] for start in range(0, len(body), MIB))
        headers = bomb.headers | {"Content-Length": str(len(body))}
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = [
        "POST /evaluate HTTP/1.1",
        "Host: localhost",
        f"Content-Type: {bomb.media_type}",
        *lines,
    ]
    start = time.perf_counter()
    # So long that a machine that does something else answers in time, too.
    with socket.create_connection(("127.0.0.1", port), timeout=300) as connection:
        try:
            connection.sendall("\r\n".join([*head, "", ""]).encode())
            for piece in framed:
                connection.sendall(piece)
            if is_chunked:
                connection.sendall(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has answered
        response = HTTPResponse(connection, method="POST")
        response.begin()
        return response.status, time.perf_counter() - start, response.read()


def resident(process: int, field: str) -> int:
    """Bytes of a process and of those that it started: `VmRSS`, its peak `VmHWM`, or `RssAnon`."""
    return sum(_memory(pid, field) for pid in _family(process))


def processor_seconds(process: int) -> float:
    """Return the processor time of a process and its children, with those that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    seconds = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return seconds + sum(map(processor_seconds, _children(process)))


def most_together(process: int, done: Event) -> int:
    """Watch the own memory of a process and of those that it started; return the most until done.

    The pages of libraries are left out: all processes share these, and each would count them.

    The peaks of the single processes add up to a third more, as they do not coincide. So does a sum
    that is read while one process frees what another takes; hence two in a row must be as large.
    """
    most = before = 0
    while not done.wait(0.002):
        # A worker may end while it is looked at.
        with suppress(FileNotFoundError, ProcessLookupError):
            now = resident(process, "RssAnon")
            most, before = max(most, min(before, now)), now
    return most


def forget_peak(process: int) -> None:
    """Begin the peak anew."""
    for pid in _family(process):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def _memory(process: int, field: str) -> int:
    match = re.search(rf"{field}:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(match[1]) * 1024 if match else 0


def _family(process: int) -> list[int]:
    return [process, *(pid for child in _children(process) for pid in _family(child))]


def _children(process: int) -> list[int]:
    # A process is the child of the thread that started it.
    threads = Path(f"/proc/{process}/task").iterdir()
    return [int(child) for thread in threads for child in (thread / "children").read_text().split()]


def at_once() -> list[Bomb]:
    """Return 32 bombs."""
    return (BOMBS * 3)[:32]


def main() -> None:
    """Send bombs to a service; the statuses of each round are printed, when it is over."""
    # Whoever measures good clients beside it needs a core, too.
    os.nice(19)
    sender = partial(send, int(sys.argv[1]))
    list(map(sender, BOMBS))
    print("ready", flush=True)  # noqa: T201 (for whoever started it)
    for _ in sys.stdin:
        with ThreadPoolExecutor(32) as pool:
            statuses = [status for status, _, _ in pool.map(sender, at_once())]
        print(json.dumps(statuses), flush=True)  # noqa: T201 (for whoever started it)


if __name__ == "__main__":
    main()
