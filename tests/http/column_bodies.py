"""Bodies of columns in every form, and how the service answers them."""

import io
import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

Columns = dict[str, Any]
Json = dict[str, Any]

MEDIA_TYPES = {
    "csv": "text/csv",
    "jsonl": "application/x-ndjson",
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
    "npz": "application/x-npz",
}


def as_csv(columns: Columns) -> bytes:
    sink = io.BytesIO()
    pyarrow.csv.write_csv(pa.table(columns), sink)
    return sink.getvalue()


def as_jsonl(columns: Columns) -> bytes:
    rows = pa.table(columns).to_pylist()
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def as_arrow(columns: Columns) -> bytes:
    table, sink = pa.table(columns), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, 10_000)
    return sink.getvalue()


def as_parquet(columns: Columns) -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(columns), sink, row_group_size=70_000)
    return sink.getvalue()


def as_npz(columns: Columns) -> bytes:
    sink = io.BytesIO()
    arrays: dict[str, Any] = {name: np.asarray(values) for name, values in columns.items()}
    np.savez_compressed(sink, **arrays)
    return sink.getvalue()


WRITERS: dict[str, Callable[[Columns], bytes]] = {
    "csv": as_csv,
    "jsonl": as_jsonl,
    "arrow": as_arrow,
    "parquet": as_parquet,
    "npz": as_npz,
}


def send(
    client: httpx.Client, kind: str, body: bytes, request: Json | None = None, encoding: str = ""
) -> httpx.Response:
    query = {} if request is None else {"request": json.dumps(request)}
    sent = {"Content-Type": MEDIA_TYPES[kind]} | (
        {"Content-Encoding": encoding} if encoding else {}
    )
    return client.post("/evaluate", content=body, params=query, headers=sent)


def report(client: httpx.Client, kind: str, columns: Columns, request: Json | None = None) -> bytes:
    response = send(client, kind, WRITERS[kind](columns), request)
    assert response.status_code == 200, response.text
    return response.content


def posted(client: httpx.Client, **members: object) -> bytes:
    body = orjson.dumps(members, option=orjson.OPT_SERIALIZE_NUMPY)
    response = client.post("/evaluate", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 200, response.text
    return response.content


def fault(response: httpx.Response) -> tuple[int, str, str]:
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    errors = problem.get("errors", [{"pointer": "", "code": problem["code"]}])
    return response.status_code, errors[0]["pointer"], errors[0]["code"]
