"""Requests that nobody should send: valid ones cut, flipped and spliced, and a grammar.

Everything follows from the seed, so a failure can be sent again.
"""

import gzip
import io
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import zstandard

JSON = "application/json"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
NPZ = "application/x-npz"
MEDIA_TYPES = [
    JSON,
    CSV,
    ARROW,
    PARQUET,
    NPZ,
    "text/plain",
    "application/json; charset=latin-1",
    "",
]
ENCODINGS = ["gzip", "zstd", "deflate", "br", "gzip, gzip", "identity", "\x7f"]
TRUE, PREDICTED = ["a", "b", "a", "c"], ["a", "a", None, "c"]
PATHS = [
    "/evaluate",
    "/v1/evaluate",
    "/v1/evaluate/batch",
    "/v1/compare",
    "/v1/gates/lint",
    "/v1/studies/discrimination",
    "/v1/studies/agreement",
    "/v1/import",
]
EXPECTATIONS = ["", "", "", "100-continue", "100-Continue, 100-continue", "102-processing", "200"]
EXTENSIONS = [
    *(b"", b"", b";a=b", b";a", b';a="quoted; text"', b";" + b"e" * 9000, b";\x00", b"; a = b")
]
TRAILERS = [
    *(b"X-Trailer: 1\r\n", b"Host: elsewhere\r\n", b"Content-Length: 0\r\n", b"a:b\r\n" * 999),
    *(b"Transfer-Encoding: chunked\r\n", b"Authorization: Bearer rp_a\r\n", b"no field\r\n"),
    *(b": empty\r\n", b"X: " + b"v" * 9000 + b"\r\n", b" folded\r\n", b"\x00: 1\r\n"),
]
TOKENS = [
    *(
        b"NaN",
        b"Infinity",
        b"-0",
        b"1e999",
        b"1e-999",
        b"9007199254740993",
        b"18446744073709551616",
    ),
    *(b"-1", b"0.1", b"null", b"true", b'""', b"[]", b"{}", b"[[", b"]]", b"{", b"}", b",", b":"),
    *(b'"\\ud800"', b'"\\u0000"', b'"\\u202e"', b"\xff", b"\xef\xbb\xbf", b"\x00", b"\r\n", b'"'),
    *(b"[" * 2000, b'{"a":' * 500, b"'", b"\\", b"=cmd()", b"\xed\xa0\x80", b"1" * 400),
]
KEYS = [
    *("confusion_matrix", "cells", "y_true", "y_pred", "y_score", "labels", "unclassified"),
    *("spurious", "axis", "sample_weight", "indices", "intervals", "confidence", "groups", "cost"),
    *("baseline", "gates", "rules", "index", "scope", "max_drop", "min", "classes", "beta"),
    *("top_confusions", "project", "model", "version", "branch", "test_set", "item_id", "curves"),
    *("candidate", "evaluations", "k", "p", "resolution", "values", "policy", "waivers", "exact"),
]


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it goes over the wire, framed by its length or in chunks.

    A chunked one may have an extension in each chunk, and trailers.
    """

    path: str
    media_type: str
    encoding: str
    body: bytes
    chunked: bool = False
    expect: str = ""
    extension: bytes = b""
    trailers: bytes = b""

    def wire(self) -> bytes:
        """Return the bytes to send on a connection that stays open."""
        head = [f"POST {self.path} HTTP/1.1", "Host: 127.0.0.1"]
        if self.media_type:
            head.append(f"Content-Type: {self.media_type}")
        if self.encoding:
            head.append(f"Content-Encoding: {self.encoding}")
        if self.expect:
            head.append(f"Expect: {self.expect}")
        if self.chunked:
            head.append("Transfer-Encoding: chunked")
            chunks = (_chunk(piece, self.extension) for piece in _pieces(self.body))
            body = b"".join(chunks) + b"0" + self.extension + b"\r\n" + self.trailers + b"\r\n"
        else:
            head.append(f"Content-Length: {len(self.body)}")
            body = self.body
        return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def requests(seed: int, count: int) -> Iterator[Request]:
    """Return `count` requests: bytes mutated, documents grafted, documents grown from a grammar."""
    random = Random(seed)  # noqa: S311 (no secret, but the same each time)
    seeds = valid()
    documents = [seed for seed in seeds if seed.media_type == JSON and not seed.encoding]
    for _ in range(count):
        kind = random.random()
        if kind < 0.5:
            request = _mutated(random, seeds)
        elif kind < 0.85:
            request = _grafted(random, random.choice(documents))
        else:
            request = _grown(random)
        yield _framed(random, request) if random.random() < 0.1 else request


def valid() -> list[Request]:
    """Return a valid request of every kind of body."""
    table = {"confusion_matrix": [[5, 1], [2, 7]], "labels": ["a", "b"]}
    arrays = {"y_true": TRUE, "y_pred": PREDICTED}
    scores = {"y_true": ["a", "b"], "y_score": [[0.7, 0.3], [0.4, 0.6]], "curves": True}
    gates = {
        "rules": [{"index": "accuracy", "max_drop": 0.05}, {"index": "r_prime", "min_value": 0.5}]
    }
    documents = [
        ("/evaluate", table | {"unclassified": [1, 0], "spurious": [0, 2]}),
        ("/evaluate", {"cells": [[0, 1, 5], [1, 1, 7]], "labels": ["a", "b"]}),
        ("/evaluate", arrays | {"groups": [1, 1, 2, 2], "sample_weight": [1, 2, 1, 0.5]}),
        ("/evaluate", scores),
        ("/evaluate", arrays | {"baseline": {"y_pred": TRUE}, "gates": gates}),
        ("/v1/evaluate/batch", {"requests": [table, arrays]}),
        ("/v1/compare", {"candidate": arrays, "baseline": table}),
        ("/v1/gates/lint", table | {"gates": gates, "replicates": 100}),
        ("/v1/studies/discrimination", {"indices": ["kappa"], "k": [2], "p": [0], "resolution": 5}),
        ("/v1/studies/agreement", {"values": {"a": [1, 2, 3], "kappa": [0.1, 0.3, 0.2]}}),
    ]
    bodies = [
        Request(path, JSON, "", json.dumps(document).encode()) for path, document in documents
    ]
    columns = [Request("/evaluate", kind, "", write()) for kind, write in WRITERS.items()]
    return [*bodies, *columns, *(_encoded(request) for request in [*bodies[:3], *columns])]


def _csv() -> bytes:
    return b"y_true,y_pred\na,a\nb,a\na,\nc,c\n"


def _arrow() -> bytes:
    table, sink = _table(), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _parquet() -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(_table(), sink)
    return sink.getvalue()


def _npz() -> bytes:
    sink = io.BytesIO()
    np.savez_compressed(sink, y_true=np.array([0, 1, 2]), y_pred=np.array([0, 1, 1]))
    return sink.getvalue()


def _table() -> pa.Table:
    return pa.table({"y_true": pa.array(TRUE).dictionary_encode(), "y_pred": PREDICTED})


WRITERS: dict[str, Callable[[], bytes]] = {CSV: _csv, ARROW: _arrow, PARQUET: _parquet, NPZ: _npz}


def _encoded(request: Request) -> Request:
    packed = gzip.compress(request.body), zstandard.compress(request.body)
    encoding, body = ("gzip", packed[0]) if len(request.body) % 2 else ("zstd", packed[1])
    return Request(request.path, request.media_type, encoding, body)


def _mutated(random: Random, seeds: list[Request]) -> Request:
    request = random.choice(seeds)
    body = request.body
    for _ in range(random.choice([1, 1, 1, 2, 3, 8])):
        body = random.choice(MUTATIONS)(random, body, random.choice(seeds).body)
    return Request(
        path=random.choice(PATHS) if random.random() < 0.05 else request.path,
        media_type=random.choice(MEDIA_TYPES) if random.random() < 0.05 else request.media_type,
        encoding=random.choice(ENCODINGS) if random.random() < 0.05 else request.encoding,
        body=body,
        chunked=random.random() < 0.2,
    )


def _framed(random: Random, request: Request) -> Request:
    """Add what HTTP allows around a body: an expectation, chunk extensions, trailers."""
    return replace(
        request,
        chunked=random.random() < 0.8,
        expect=random.choice(EXPECTATIONS),
        extension=random.choice(EXTENSIONS),
        trailers=b"".join(random.choices(TRAILERS, k=random.choice([0, 0, 1, 3]))),
    )


def _flip(random: Random, body: bytes, _: bytes) -> bytes:
    at = random.randrange(len(body) + 1)
    return body[:at] + bytes([random.randrange(256)]) + body[at + 1 :]


def _flip_bit(random: Random, body: bytes, _: bytes) -> bytes:
    at = random.randrange(len(body) + 1)
    return (
        body[:at]
        + bytes(b ^ (1 << random.randrange(8)) for b in body[at : at + 1])
        + body[at + 1 :]
    )


def _insert(random: Random, body: bytes, _: bytes) -> bytes:
    at = random.randrange(len(body) + 1)
    return body[:at] + random.choice(TOKENS) + body[at:]


def _replace(random: Random, body: bytes, _: bytes) -> bytes:
    low, high = sorted(random.randrange(len(body) + 1) for _ in "..")
    return body[:low] + random.choice(TOKENS) + body[min(high, low + 12) :]


def _cut(random: Random, body: bytes, _: bytes) -> bytes:
    return body[: random.randrange(len(body) + 1)]


def _drop(random: Random, body: bytes, _: bytes) -> bytes:
    low, high = sorted(random.randrange(len(body) + 1) for _ in "..")
    return body[:low] + body[high:]


def _repeat(random: Random, body: bytes, _: bytes) -> bytes:
    low, high = sorted(random.randrange(len(body) + 1) for _ in "..")
    return body[:high] + body[low:high] * random.choice([1, 2, 30]) + body[high:]


def _splice(random: Random, body: bytes, other: bytes) -> bytes:
    return body[: random.randrange(len(body) + 1)] + other[random.randrange(len(other) + 1) :]


def _huge(random: Random, body: bytes, _: bytes) -> bytes:
    """Lie about a length: four or eight bytes that say a very large number."""
    at = random.randrange(len(body) + 1)
    lie = random.choice(
        [b"\xff\xff\xff\x7f", b"\xff" * 4, b"\x00\x00\x00\x40", b"\xff" * 7 + b"\x7f"]
    )
    return body[:at] + lie + body[at + len(lie) :]


MUTATIONS = [_flip, _flip_bit, _insert, _replace, _cut, _drop, _repeat, _splice, _huge]


def _grafted(random: Random, request: Request) -> Request:
    """Put something else in some places of a valid document."""
    document = json.loads(request.body)
    for _ in range(random.choice([1, 1, 2, 4])):
        _graft(random, document)
    body = json.dumps(document).encode("utf-8", "surrogatepass")
    return Request(request.path, JSON, "", body, random.random() < 0.2)


def _graft(random: Random, content: Any) -> None:
    """Walk down to some place, and change what is there."""
    place = random.choice(_places(content))
    while random.random() < 0.6 and _places(content[place]):
        content = content[place]
        place = random.choice(_places(content))
    kind = random.random()
    if kind < 0.7:
        content[place] = _value(random, 2)
    elif kind < 0.85 and len(content) > 1:
        del content[place]
    elif isinstance(content, dict):
        content[random.choice(KEYS)] = deepcopy(content[place])
    else:
        content.append(deepcopy(content[place]))


def _places(content: Any) -> list[Any]:
    if isinstance(content, dict):
        return list(content)
    return list(range(len(content))) if isinstance(content, list) else []


def _grown(random: Random) -> Request:
    """Make a JSON document of the contract's own words, in places where they do not belong."""
    members = {random.choice(KEYS): _value(random, 0) for _ in range(random.randrange(1, 6))}
    if random.random() < 0.5:
        members |= {"y_true": [0, 1, 1], "y_pred": [0, 1, 0]}
    body = json.dumps(members).encode("utf-8", "surrogatepass")
    return Request(random.choice(PATHS), JSON, "", body, random.random() < 0.2)


def _value(random: Random, depth: int) -> object:
    if depth < 4 and random.random() < 0.5:
        inner = [_value(random, depth + 1) for _ in range(random.randrange(5))]
        if random.random() < 0.5:
            return inner
        return {random.choice([*KEYS, "a", ""]): value for value in inner}
    return deepcopy(random.choice(ATOMS))


ATOMS: list[object] = [
    *(0, 1, 2, -1, 0.5, 1.5, 1e308, -1e308, 1e-320, 2**53, 2**53 + 1, 2**64, -(2**63), 10**30),
    *(
        None,
        True,
        False,
        "",
        "a",
        "b",
        "accuracy",
        "r_prime",
        "kappa",
        "overall",
        "class",
        "\ud800",
    ),
    *("\x00", "\u202e", "é", "e\u0301", "a" * 5000, "=cmd()", "<script>", "2026-01-01T00:00:00Z"),
    *([1, 2, 3], [[1, 2], [3, 4]], [["a"]], [0.5, 0.5], [[1, 0], [0]], list(range(300))),
]


def _pieces(body: bytes) -> Iterator[bytes]:
    size = max(1, len(body) // 3)
    yield from (body[start : start + size] for start in range(0, len(body), size))


def _chunk(piece: bytes, extension: bytes) -> bytes:
    return f"{len(piece):x}".encode() + extension + b"\r\n" + piece + b"\r\n"
