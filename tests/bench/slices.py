"""Measure what slices add to a request of 1e6 items, in every body format, as ratios.

    sh .ci/venv python tests/bench/slices.py [--items 1000000] [--rounds 5] [--only NAME]

Items: three columns of slices (5, 3 and 8 values) and their three pairs; labels and slices are all
integers, all strings, or integers and strings. CPU that the
service and its workers need for the request with slices, against the same request without; and
what reading the two bodies alone costs, by orjson, pyarrow or numpy, with the codes of each column
that a dictionary of its values gives. A body of strings has more bytes with slices, which nothing
can read for the price of the fewer bytes without: then the ratio of the reading bounds the other.
Stack: a report of 1000 slices of 10 classes, with and without intervals. Search: for
weak slices over ten columns of 1e6 items.
"""

import argparse
import io
import json
import os
import statistics
import sys
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from scale import BATCH, MIB, ROW_GROUP, post, timed
from speed import Server, interleaved, lasting, ratio, serve

from rprime.application import read_request
from rprime.application.slice_search import search_document
from rprime.evidence.formats import read_columns
from rprime.settings import Limits

WIDTHS = {"region": 5, "device": 3, "age": 8}
CROSSINGS = [list(pair) for pair in combinations(WIDTHS, 2)]
Columns = dict[str, Any]
Asked = dict[str, Callable[[], float]]


def drawn(items: int, *, texts: bool, named: bool) -> tuple[Columns, Columns]:
    """Draw labels of 10 classes, strings or integers, and three columns to slice by."""
    draw = np.random.default_rng(0)
    true = draw.integers(0, 10, items)
    predicted = np.where(draw.random(items) < 0.7, true, draw.integers(0, 10, items))
    names = np.array([f"class_{i:04d}" for i in range(10)])
    labels = {"y_true": true, "y_pred": predicted}
    if texts:
        labels = {name: names[values] for name, values in labels.items()}
    columns: Columns = {name: draw.integers(0, width, items) for name, width in WIDTHS.items()}
    if named:
        for name, width in WIDTHS.items():
            columns[name] = np.array([f"{name}_{i}" for i in range(width)])[columns[name]]
    return labels, columns


def as_json(labels: Columns, slices: Columns) -> bytes:
    """Write the request as JSON."""
    members: dict[str, Any] = {name: values.tolist() for name, values in labels.items()}
    if slices:
        members["slices"] = {name: values.tolist() for name, values in slices.items()}
        members["slice_crossings"] = CROSSINGS
    return orjson.dumps(members)


def as_columns(kind: str, labels: Columns, slices: Columns) -> bytes:
    """Write the columns of the request in another format."""
    sink = io.BytesIO()
    columns = labels | {f"slice:{name}": values for name, values in slices.items()}
    if kind == "npz":
        np.savez(sink, **columns)
        return sink.getvalue()
    table = pa.table(columns)
    if kind == "arrow":
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, BATCH)
    elif kind == "parquet":
        pyarrow.parquet.write_table(table, sink, row_group_size=ROW_GROUP)
    else:
        pyarrow.csv.write_csv(table, sink)
    return sink.getvalue()


def coded(values: pa.ChunkedArray) -> None:
    """Number the distinct values of a column, as a reader must at least."""
    if pa.types.is_string(values.type):
        values.dictionary_encode()


def read_alone(kind: str, content: bytes) -> None:
    """Read a body by the library of its format alone."""
    if kind == "json":
        orjson.loads(content)
    elif kind == "npz":
        for values in np.load(io.BytesIO(content)).values():
            np.array(values)
    else:
        pa.set_cpu_count(1)
        source = io.BytesIO(content)
        if kind == "arrow":
            table = pa.ipc.open_stream(source).read_all()
        elif kind == "parquet":
            table = pyarrow.parquet.read_table(source, use_threads=False)
        else:
            options = pyarrow.csv.ReadOptions(use_threads=False)
            table = pyarrow.csv.read_csv(source, read_options=options)
        for values in table.columns:
            coded(values)


def show(name: str, found: dict[str, list[float]]) -> None:
    """Print medians in milliseconds, and the ratios of those with slices to those without."""
    times = "  ".join(f"{key} {statistics.median(v) * 1e3:6.0f} ms" for key, v in found.items())
    ratios = f"with/without {ratio(found['with'], found['without']):5.2f}"
    if "read with" in found:
        ratios += f"  of reading {ratio(found['read with'], found['read without']):5.2f}"
        more = [a - b for a, b in zip(found["with"], found["without"], strict=True)]
        ratios += f"  more/read with {ratio(more, found['read with']):5.2f}"
    print(f"{name:24s} {times}  {ratios}", flush=True)


def items(service: Server, size: int, rounds: int, kinds: list[str]) -> None:
    """Compare requests with and without slices in every format."""
    query = "/evaluate?request=" + json.dumps({"slice_crossings": CROSSINGS}).replace(" ", "")
    for texts, named in ((False, False), (True, True), (False, True)):
        labels, slices = drawn(size, texts=texts, named=named)
        for kind in kinds:
            write = as_json if kind == "json" else partial(as_columns, kind)
            plain, sliced = write(labels, {}), write(labels, slices)
            path = "/evaluate" if kind == "json" else query
            tasks: Asked = {
                "without": partial(timed, partial(post, service, kind, plain), service.process),
                "with": partial(timed, partial(post, service, kind, sliced, path), service.process),
                "read without": partial(timed, partial(read_alone, kind, plain), os.getpid()),
                "read with": partial(timed, partial(read_alone, kind, sliced), os.getpid()),
            }
            for ask in tasks.values():
                ask()
            kinds_of = ["strings" if textual else "integers" for textual in (texts, named)]
            name = f"{kind}, {', '.join(dict.fromkeys(kinds_of))}"
            show(name, interleaved(tasks, rounds))


def stack(rounds: int) -> None:
    """Report 1000 slices of 10 classes, with and without intervals, in this process."""
    draw = np.random.default_rng(0)
    tables = draw.integers(0, 20, (1000, 10, 10)) + 100 * np.eye(10, dtype=int)
    slices = {
        "part": {str(i): {"confusion_matrix": table} for i, table in enumerate(tables.tolist())}
    }
    request = {"confusion_matrix": tables.sum(0).tolist(), "slices": slices}

    def answer(content: bytes) -> None:
        evaluation_request = read_request(content, Limits())
        evaluation_request.report(evaluation_request.evaluate())

    tasks: Asked = {
        name: partial(lasting, partial(answer, orjson.dumps(request | {"intervals": intervals})))
        for name, intervals in {"with": True, "without": False}.items()
    }
    for ask in tasks.values():
        ask()
    show("1000 slices, intervals", interleaved(tasks, rounds))


def search(rounds: int) -> None:
    """Search ten columns of 1e6 items for weak slices, in this process."""
    draw, size = np.random.default_rng(0), 1_000_000
    columns = drawn(size, texts=False, named=False)[0]
    for i in range(5):
        names = np.array([f"v{j}" for j in range(3 + 2 * i)])
        columns[f"slice:text{i}"] = names[draw.integers(0, names.size, size)]
        columns[f"slice:number{i}"] = draw.normal(size=size)
    content = as_columns("parquet", columns, {})

    def answer() -> None:
        document = read_columns("parquet", io.BytesIO(content), b"{}", Limits(), measured=True)
        search_document(document, Limits())

    times = [lasting(answer) for _ in range(rounds)]
    print(f"search, ten columns {min(times):6.2f} to {max(times):6.2f} s", flush=True)


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("items", "stack", "search"))
    parser.add_argument("--formats", nargs="+", default=["json", "csv", "arrow", "parquet", "npz"])
    chosen = parser.parse_args()
    rprime = str(Path(sys.executable).with_name("rprime"))
    if chosen.only in (None, "items"):
        with serve(rprime, "serve", RPRIME_LIMITS_JSON_BODY_BYTES=json.dumps(256 * MIB)) as service:
            items(service, chosen.items, chosen.rounds, chosen.formats)
    if chosen.only in (None, "stack"):
        stack(max(chosen.rounds, 20))
    if chosen.only in (None, "search"):
        search(chosen.rounds)


if __name__ == "__main__":
    main()
