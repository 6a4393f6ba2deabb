"""Texts of columns, numbered piece by piece, against those of the same labels in JSON."""

import io
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest

from rprime import evidence
from rprime.evidence import Evidence
from rprime.evidence.formats import read_columns
from rprime.problems.problem import Problem
from rprime.schemas.document import parse
from rprime.settings import Limits
from tests.http.column_bodies import as_csv

ITEMS = 140_000
ROWS = [1000, ITEMS]
"""Rows of a batch."""


def stream(columns: dict[str, Any], rows: int) -> bytes:
    table, sink = pa.table(columns), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, rows)
    return sink.getvalue()


def read(kind: evidence.Kind, body: bytes) -> Evidence:
    return evidence.read(read_columns(kind, io.BytesIO(body), b"", Limits()), Limits())


def drawn(kinds: int) -> tuple[list[str], list[str | None]]:
    """Draw labels of which ever more appear, and predictions of which some are missing."""
    draw = np.random.default_rng(kinds)
    most = 1 + np.arange(ITEMS) * kinds // ITEMS
    true = [f"klasse ä {i}" for i in (draw.random(ITEMS) ** 3 * most).astype(int).tolist()]
    missing = draw.random(ITEMS) < 0.01
    return true, [None if gone else label for gone, label in zip(missing, true[::-1], strict=True)]


@pytest.mark.parametrize("kinds", [3, 900, 6000])
def test_texts_of_pieces_are_those_of_json(kinds: int) -> None:
    true, predicted = drawn(kinds)
    columns: dict[str, Any] = {"y_true": true, "y_pred": predicted}
    body = dict(columns)
    if kinds == 3:  # more are too many classes for slices
        columns["slice:part"] = predicted
        body["slices"] = {"part": predicted}
    whole = evidence.read(parse(orjson.dumps(body)), Limits())
    views = {n: pa.array(v, pa.string_view()) for n, v in columns.items()}
    assert read("csv", as_csv(columns)).input_digest == whole.input_digest
    assert read("arrow", stream(views, ITEMS)).input_digest == whole.input_digest
    for rows in ROWS:
        assert read("arrow", stream(columns, rows)).input_digest == whole.input_digest


@pytest.mark.parametrize("name", ["y_true", "y_pred", "slice:part", "item_id", "group"])
@pytest.mark.parametrize("place", [0, 70_000])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_texts_that_are_not_utf8_are_refused(name: str, place: int, kind: pa.DataType) -> None:
    size = place + 1
    columns: dict[str, Any] = {"y_true": ["a"] * size, "y_pred": ["a"] * size}
    values = [str(i).encode() if name == "item_id" else b"a" for i in range(size)]
    values[place] = b"caf\xe9"
    raw = pa.binary() if kind == pa.string() else pa.large_binary()
    columns[name] = pa.array(values, raw).view(kind)
    with pytest.raises(Problem, match="unreadable_body"):
        read("arrow", stream(columns, size))
