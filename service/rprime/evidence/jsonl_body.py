"""JSON lines: an object for each item, read block by block."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import IO, Any, NamedTuple

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.evidence.arrow_body import Identities
from rprime.evidence.coding import Codes
from rprime.evidence.columns import COUNT, Columns, columns_too_large
from rprime.evidence.csv_body import whole_lines
from rprime.evidence.item_ids import column_of
from rprime.evidence.label_columns import BOOLEANS, Names, Piece
from rprime.evidence.names import INTEGER_RULE
from rprime.evidence.scores import is_score
from rprime.problems.problem import UnknownMember, invalid, refuse
from rprime.schemas.document import kind_of, unreadable

_BOM = b"\xef\xbb\xbf"
_NUMBERS = {int, float}


class _Block(NamedTuple):
    """Objects, and the lines of the body on which they stand."""

    objects: list[dict[str, Any]]
    lines: Sequence[int]


def read_jsonl(stream: IO[bytes], columns: Columns, most: int) -> None:
    """Read lines with an object each, whose members are the columns; an absent one is null."""
    blocks = _blocks(stream, most)
    first = next(blocks, None)
    if first is None:
        raise refuse("/y_true", "empty", "There are no lines; each of them is an object, an item.")
    names = list(dict.fromkeys(chain.from_iterable(first.objects)))
    places = columns.begin(names)
    titles = {name: names[place] for name, place in places.items()}
    identifier = titles.pop("item_id", "")
    ids = columns.ids = Identities(columns.hold) if "item_id" in places else None
    row = 0
    for block in chain([first], blocks):
        _refuse_late(block, set(names), columns)
        if ids is not None:
            values = [item.get(identifier) for item in block.objects]
            ids.add(column_of(values, "/item_id", row))
        columns.add(
            {
                name: _piece([item.get(title) for item in block.objects], name, row, block.lines)
                for name, title in titles.items()
            }
        )
        row += len(block.objects)


def _blocks(stream: IO[bytes], most: int) -> Iterator[_Block]:
    """Yield the objects of whole lines; empty lines are left out."""
    line = 1
    for block in whole_lines(stream):
        most -= len(block)
        if most < 0:
            raise columns_too_large(most)
        texts = block.removeprefix(_BOM if line == 1 else b"").split(b"\n")
        if block.endswith(b"\n"):
            texts.pop()
        lines: Sequence[int] = range(line, line + len(texts))
        if not all(map(bytes.strip, texts)):
            lines = [number for number, text in zip(lines, texts, strict=True) if text.strip()]
            texts = [text for text in texts if text.strip()]
        line += block.count(b"\n")
        if texts:
            yield _Block(_objects(texts, lines), lines)


def _objects(texts: list[bytes], lines: Sequence[int]) -> list[dict[str, Any]]:
    try:
        objects = orjson.loads(b"[" + b",".join(texts) + b"]")
    except orjson.JSONDecodeError:
        objects = []
    # A line may hold several values, or a part of one.
    if len(objects) != len(texts) or set(map(type, objects)) != {dict}:
        objects = [_object(text, line) for text, line in zip(texts, lines, strict=True)]
    return list(objects)


def _object(text: bytes, line: int) -> dict[str, Any]:
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        detail = f"Line {line} of the JSON lines is not valid JSON: see column {error.colno}."
        raise unreadable(detail) from None
    if not isinstance(content, dict):
        raise unreadable(f"Line {line} of the JSON lines is {kind_of(content)}, not an object.")
    return content


def _refuse_late(block: _Block, names: set[str], columns: Columns) -> None:
    """Refuse a column that begins after the first lines: their items would lack it."""
    for name in set().union(*block.objects) - names:
        if columns.reads(name):
            line = next(
                line for line, item in zip(block.lines, block.objects, strict=True) if name in item
            )
            detail = f"Line {line} has a column that the first lines lack: write null there."
            raise invalid([UnknownMember("", "unknown_column", detail, name)])


def _piece(values: list[Any], name: str, row: int, lines: Sequence[int]) -> Piece:
    """Return the values of a column, all of one type."""
    numeric = name in {"sample_weight", COUNT} or is_score(name)
    kinds = set(map(type, values)) - {type(None)}
    missing = np.array([value is None for value in values]) if None in values else None
    if not kinds:
        return Piece(np.zeros(len(values), np.uint8), missing)
    if kinds <= _NUMBERS:
        return Piece(_numbers(values, f"/{name}"), missing)
    if kinds == {str} and not numeric:
        codes = Codes()
        positions = np.fromiter(map(codes.__getitem__, values), np.uint32, len(values))
        return Piece(positions, missing, Names(list(codes)))
    if kinds == {bool} and not numeric:
        return Piece(np.array([value is True for value in values], np.uint8), missing, BOOLEANS)
    first = next(value for value in values if value is not None)
    fits = _NUMBERS if numeric else {type(first)} - {list, dict}
    bad = next(i for i, value in enumerate(values) if value is not None and type(value) not in fits)
    what = "a number" if numeric else "the same type on every line, as a string"
    detail = f"Line {lines[bad]}: this is {kind_of(values[bad])}; write {what}."
    raise refuse(f"/{name}/{row + bad}", "mixed_labels", detail)


def _numbers(values: list[Any], pointer: str) -> Array:
    try:
        if set(map(type, values)) == {int}:
            return np.array(values, np.int64)
        return np.array([np.nan if value is None else value for value in values], np.float64)
    except OverflowError:
        raise refuse(pointer, "out_of_range", INTEGER_RULE) from None
