"""Bodies that claim little and hold much: refused before memory is taken for them."""

import io
import resource
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import zstandard

from tests.evidence.thrift import I32, I64, LIST, TEXT, Fields, packed
from tests.http.column_bodies import Columns, as_arrow, as_npz, as_parquet, fault, report, send

Serve = Callable[..., AbstractContextManager[httpx.Client]]

MIB = 1 << 20
LIMIT = 4 * MIB


@pytest.fixture(scope="module")
def small(serve: Serve) -> Iterator[httpx.Client]:
    """Return a service that reads up to 4 MiB, with what it needs to start already used."""
    with serve(
        RPRIME_LIMITS_OTHER_BODY_BYTES=str(LIMIT),
        RPRIME_LIMITS_IN_FLIGHT_BYTES=str(4 * LIMIT),
        RPRIME_STORE="none",
    ) as client:
        for kind, body in (("arrow", as_arrow(FEW)), ("parquet", as_parquet(FEW))):
            assert send(client, kind, body).status_code == 200
        yield client


FEW: Columns = {"y_true": ["a", "b"] * 3, "y_pred": ["b", "b"] * 3}


def ipc(table: pa.Table, compression: str | None = None) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def zeros(items: int) -> pa.Table:
    return pa.table({name: np.zeros(items, np.int64) for name in ("y_true", "y_pred")})


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_one_batch_of_everything_is_read_within_the_limit(
    small: httpx.Client, compression: str | None
) -> None:
    most = LIMIT // 16 - 2000
    assert send(small, "arrow", ipc(zeros(most), compression)).status_code == 200
    large = send(small, "arrow", ipc(zeros(2 * most), compression))
    assert fault(large) == (413, "", "body_too_large")


def test_a_batch_that_takes_too_much_memory_says_what_to_do(small: httpx.Client) -> None:
    body = ipc(zeros(128 * MIB // 8), "zstd")
    assert len(body) < LIMIT
    response = send(small, "arrow", body)
    assert fault(response) == (413, "", "body_too_large")
    assert "Write fewer rows" in response.json()["detail"]
    assert "rprime_workers_ended_total{" not in small.get("/metrics").text


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_batches_count_inflated(small: httpx.Client, compression: str) -> None:
    sink, table = io.BytesIO(), zeros(50_000)
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        for _ in range(8):
            writer.write_table(table)
    assert len(sink.getvalue()) < LIMIT // 10
    assert fault(send(small, "arrow", sink.getvalue())) == (413, "", "body_too_large")


def test_dictionaries_that_replace_each_other_count_together(small: httpx.Client) -> None:
    kind = pa.dictionary(pa.int32(), pa.string())
    sink, schema = io.BytesIO(), pa.schema([("y_true", kind), ("y_pred", kind)])
    with pa.ipc.new_stream(sink, schema) as writer:
        for number in range(30):
            names = pa.array([f"{number} {i} {'x' * 90}" for i in range(2000)])
            part = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), names)
            writer.write_batch(pa.record_batch({"y_true": part, "y_pred": part}))
    assert fault(send(small, "arrow", sink.getvalue())) == (413, "", "body_too_large")


@pytest.mark.parametrize("length", [2**40, 2**62, -2, -(2**62)])
def test_a_buffer_that_lies_about_its_length_is_refused(small: httpx.Client, length: int) -> None:
    body = ipc(pa.table({"y_true": np.zeros(999, "i8"), "y_pred": np.ones(999, "i8")}), "zstd")
    assert body.count(struct.pack("<q", 999 * 8)) == 2
    lying = body.replace(struct.pack("<q", 999 * 8), struct.pack("<q", length))
    assert send(small, "arrow", lying).status_code in {400, 413}


@pytest.mark.parametrize("place", range(0, 700, 13))
def test_damaged_messages_are_refused_and_not_believed(small: httpx.Client, place: int) -> None:
    table = pa.table({"y_true": np.zeros(99, "i8"), "y_pred": np.ones(99, "i8")})
    body = bytearray(ipc(table, "zstd"))
    body[place : place + 4] = b"\xff\xff\xff\x7f"
    assert send(small, "arrow", bytes(body)).status_code in {200, 400, 413, 422}


def parquet(columns: Columns, **options: Any) -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def varint(number: int, size: int = 0) -> bytes:
    """Write an integer as Thrift does, with bytes that say nothing up to a size."""
    number, digits = number << 1, list[int]()
    while number or len(digits) < max(size, 1):
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits[:-1], digits[-1] & 127])


def modest(body: bytes) -> bytes:
    """Let the metadata of a file say that nothing in it has any size, inflated."""
    size = int.from_bytes(body[-8:-4], "little")
    rest, footer, tail = body[: -size - 8], body[-size - 8 : -8], body[-8:]
    metadata = pyarrow.parquet.ParquetFile(io.BytesIO(body)).metadata
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        columns = map(group.column, range(group.num_columns))
        for told in (group.total_byte_size, *(c.total_uncompressed_size for c in columns)):
            true = varint(told)
            footer = footer.replace(true, varint(0, len(true)))
    return rest + footer + tail


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "lz4", "brotli"])
def test_pages_are_measured_whatever_the_metadata_say(small: httpx.Client, codec: str) -> None:
    columns = {"y_true": np.arange(3 * LIMIT // 8) % 2, "y_pred": np.zeros(3 * LIMIT // 8, int)}
    body = modest(parquet(columns, compression=codec, use_dictionary=False, data_page_size=1 << 30))
    assert len(body) < LIMIT
    inflated = pyarrow.parquet.ParquetFile(io.BytesIO(body)).metadata.row_group(0).total_byte_size
    assert inflated == 0
    assert fault(send(small, "parquet", body)) == (413, "", "body_too_large")


@pytest.mark.parametrize("name", ["label", "my.label"])
def test_columns_with_a_dot_in_their_name_have_the_same_limits(
    small: httpx.Client, name: str
) -> None:
    request = {"columns": {"y_true": name, "y_pred": "guess"}}
    large = {name: np.zeros(LIMIT, np.int8), "guess": np.zeros(LIMIT, np.int8)}
    rows = parquet(large)  # repeated values take no bytes in the file
    assert fault(send(small, "parquet", rows, request)) == (413, "", "body_too_large")
    texts = parquet({name: ["x" * 100_000, "y"], "guess": ["y", "y"]})
    assert fault(send(small, "parquet", texts, request)) == (422, f"/{name}", "class_name")


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_encodings_of_strings_are_read(small: httpx.Client, encoding: str) -> None:
    body = parquet(FEW, use_dictionary=False, column_encoding=encoding)
    assert send(small, "parquet", body).content == report(small, "arrow", FEW)


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"])
@pytest.mark.parametrize("page", ["1.0", "2.0"])
def test_other_encodings_are_read(client: httpx.Client, encoding: str, page: str) -> None:
    columns = {"y_true": np.arange(9000) % 7, "y_pred": np.arange(9000) % 5}
    body = parquet(
        columns,
        use_dictionary=False,
        column_encoding=encoding,
        data_page_version=page,
        write_page_checksum=True,
        compression="zstd",
    )
    assert send(client, "parquet", body).content == report(client, "arrow", columns)


def test_many_row_groups_are_read_and_too_many_columns_refused(client: httpx.Client) -> None:
    many: Columns = {"y_true": [0] * 5000, "y_pred": [0] * 5000}
    assert send(client, "parquet", parquet(many, row_group_size=1)).status_code == 200
    wide: Columns = {f"score:{i}": pa.nulls(0) for i in range(5001)}
    assert fault(send(client, "parquet", parquet(wide)))[0] == 422


def test_metadata_that_claim_to_be_long_are_no_file(client: httpx.Client) -> None:
    body = parquet(FEW)
    for size in (len(body), 2**32 - 1):
        claiming = body[:-8] + size.to_bytes(4, "little") + b"PAR1"
        assert fault(send(client, "parquet", claiming)) == (400, "", "unreadable_body")


ROOT, COLUMN = {(4, TEXT): b"s", (5, I32): 1}, {(1, I32): 1, (3, I32): 0, (4, TEXT): b"y_true"}


@pytest.mark.parametrize(
    "meta",
    [
        {(2, LIST): [], (3, I64): 0, (4, LIST): []},
        {(2, LIST): [ROOT, COLUMN], (3, I64): 0, (4, LIST): [{(1, LIST): [], (3, I64): 0}]},
        {(2, LIST): [ROOT, COLUMN], (3, I64): 1, (4, LIST): []},
        {(2, LIST): [ROOT, COLUMN | {(4, TEXT): b"\xff"}], (3, I64): 0, (4, LIST): []},
        {(2, LIST): [ROOT | {(5, I32): 2}, COLUMN], (3, I64): 0, (4, LIST): []},
        {(2, LIST): [ROOT, COLUMN | {(3, I32): 2}], (3, I64): 0, (4, LIST): []},
        {(3, I64): 0},
    ],
)
def test_metadata_that_do_not_fit_together_are_unreadable(
    client: httpx.Client, meta: Fields
) -> None:
    footer = packed({(1, I32): 2} | meta)
    body = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    assert send(client, "parquet", body).status_code in {400, 422}


def test_headers_of_pages_with_long_statistics_are_read(client: httpx.Client) -> None:
    names = ["x" * 100 + name for name in "ab"]
    columns = {
        "y_true": names * 5,
        "y_pred": names[::-1] * 5,
        "item_id": ["i" * 3000 + c for c in "abcdefghij"],
    }
    body = parquet(columns, use_dictionary=False, write_statistics=True)
    assert send(client, "parquet", body).status_code == 200


def test_ids_of_a_dictionary_count_as_long_as_they_are(small: httpx.Client) -> None:
    names = pa.array(["x" * 1000, "y" * 1000])
    ids = pa.DictionaryArray.from_arrays(np.zeros(20_000, np.int8), names)
    columns: Columns = {"y_true": np.zeros(20_000), "y_pred": np.zeros(20_000), "item_id": ids}
    for kind, body in (("arrow", as_arrow(columns)), ("parquet", as_parquet(columns))):
        assert len(body) < LIMIT
        assert fault(send(small, kind, body)) == (413, "", "body_too_large")


def test_groups_count_as_much_memory_as_their_names_take(small: httpx.Client) -> None:
    columns: Columns = {"y_true": np.zeros(100_000, "u1"), "y_pred": np.zeros(100_000, "u1")}
    body = as_arrow(columns | {"group": np.arange(100_000).astype(str)})
    assert len(body) < LIMIT
    assert fault(send(small, "arrow", body)) == (413, "", "body_too_large")


def test_an_archive_of_many_members_is_refused(small: httpx.Client) -> None:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for i in range(30_000):
            archive.writestr(str(i), b"")
    response = send(small, "npz", sink.getvalue())
    assert fault(response) == (400, "", "unreadable_body")
    assert "members" in response.json()["detail"]


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': (",
        "{[]: 1}",
        "(" * 5000,
        "{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}",
    ],
)
def test_an_array_without_a_header_is_unreadable(client: httpx.Client, header: str) -> None:
    size = len(header).to_bytes(2, "little")
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name in ("y_true", "y_pred"):
            archive.writestr(f"{name}.npy", b"\x93NUMPY\1\0" + size + header.encode())
    assert fault(send(client, "npz", sink.getvalue())) == (400, "", "unreadable_body")


def test_a_body_that_inflates_too_much_is_refused_by_its_ratio(client: httpx.Client) -> None:
    # Within every limit of size; half of it would be within that of the ratio.
    for size, expected in ((64 * MIB, 413), (16 * MIB, 200)):
        sent = zstandard.compress(b"y_true,y_pred\n" + b"1,1\n" * (size // 4))
        assert len(sent) * 1000 < 16 * MIB
        assert send(client, "csv", sent, encoding="zstd").status_code == expected


def test_a_full_temporary_folder_is_told_and_passes(tmp_path: Path) -> None:
    """Let no file of a process be longer than 10 000 bytes: the same as a disk without room."""
    script = tmp_path / "full.py"
    script.write_text(FULL)
    labels = np.random.default_rng(0).integers(0, 250, 20_000)
    body = as_npz({"y_true": labels, "y_pred": labels})
    assert len(body) > 10_000
    command = [sys.executable, str(script)]
    output = subprocess.run(command, input=body, capture_output=True, check=True).stdout
    assert output.split() == [b"503", b"overloaded", b"2"]


FULL = """
import io, resource, sys
from rprime.application.evaluate import ResponseOptions, evaluate_stream
from rprime.problems.problem import Problem
from rprime.settings import Limits

class Received(io.RawIOBase):
    body = io.BytesIO(sys.stdin.buffer.read())
    received = 0
    def read(self, size=-1):
        return self.body.read(size)
    def keep(self, size):
        pass

resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    options = ResponseOptions(limits=Limits(), form=None, include=(), kind="npz")
    evaluate_stream(Received(), options)
except Problem as problem:
    print(str(problem).partition(":")[0], problem.headers["Retry-After"])
"""


def test_a_full_temporary_folder_is_logged_and_counted(
    serve: Serve, processes: dict[int, int], tmp_path: Path
) -> None:
    labels = np.random.default_rng(0).integers(0, 250, 20_000)
    columns: Columns = {"y_true": labels, "y_pred": labels}
    # Workers that start anew inherit the limit.
    variables = {"RPRIME_STORE": "none", "TEST_WORKERS": "anew"}
    with serve(log=tmp_path / "log", **variables) as client:
        process = processes[client.base_url.port or 0]
        resource.prlimit(process, resource.RLIMIT_FSIZE, (10_000, 10_000))
        refused = send(client, "npz", as_npz(columns))
        assert fault(refused) == (503, "", "overloaded")
        assert send(client, "arrow", as_arrow(columns)).status_code == 200
        counted = 'rprime_requests_rejected_total{limit="temporary_folder"} 1.0'
        assert counted in client.get("/metrics").text
    assert '"event":"temporary_folder_full"' in (tmp_path / "log").read_text()
