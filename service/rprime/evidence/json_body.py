"""Large JSON bodies: arrays of few distinct strings are coded without a Python object for each."""

import secrets
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from rprime.core.arrays import Array
from rprime.evidence.coding import CodedTexts, Codes, recoded
from rprime.problems.problem import Problem
from rprime.schemas.document import Document, parse

_ITEMS = ("y_true", "y_pred", "groups")
"""Members that are coded, besides those of `slices`."""
_MOST_ARRAYS = 100
"""So many arrays are looked at; more of them are the rows of a matrix."""
_SMALLEST = 1 << 12
"""Bytes of an array that is worth it."""
_PIECE = 1 << 18
_MOST_DISTINCT = 1 << 17
"""Bytes of the distinct strings of an array."""
_QUOTE, _SPACE = ord('"'), b" \t\n\r"
_MARK = str(secrets.randbits(64))
"""Begins the string in place of an array; without letters, which could be those of `true`."""


def read_json(body: bytes, depth: int) -> Document:
    """Parse a JSON object as `parse` does, which is left to refuse what is not valid."""
    rest, found = _without_texts(body)
    if not found:
        return parse(body, depth)
    try:
        document = parse(rest, depth)
    except Problem:
        return parse(body, depth)  # it names places in the whole body
    for part in (document, *document.inner.values()):
        slices = part.arrays.get("slices")
        _put_back(part.arrays, _ITEMS, found)
        if isinstance(slices, dict):
            _put_back(slices, tuple(slices), found)
    return parse(body, depth) if found else document


def _put_back(
    members: dict[str, Any], names: tuple[str, ...], found: dict[str, CodedTexts]
) -> None:
    for name in names:
        mark = members.get(name)
        if isinstance(mark, str) and mark in found:
            members[name] = found.pop(mark)


def _without_texts(body: bytes) -> tuple[bytes, dict[str, CodedTexts]]:
    """Return the body with marks in place of arrays of strings, and these by their marks."""
    found: dict[str, CodedTexts] = {}
    if b"\\" in body and b'\\"' in body:  # not every quotation mark begins or ends a string
        return body, found
    view, parts = memoryview(body), list[memoryview | bytes]()
    kept = end = quotes = 0
    for _ in range(_MOST_ARRAYS):
        last, start = end, body.find(b"[", end)
        end = body.find(b"]", start) + 1
        if start < 0 or not end:
            break
        quotes += body.count(b'"', last, start)
        letters = np.frombuffer(body, np.uint8, end - start, start)
        pieces = (letters[i : i + _PIECE] for i in range(0, letters.size, _PIECE))
        within = sum(int(np.count_nonzero(piece == _QUOTE)) for piece in pieces)
        # With an odd number of them, the bracket is in a string.
        if within and quotes % 2 == within % 2 == 0 and letters.size >= _SMALLEST:
            coded = _coded(letters)
            if coded is not None:
                mark = f"{_MARK}{len(found)}"
                found[mark] = coded
                parts += [view[kept:start], f'"{mark}"'.encode()]
                kept = end
        quotes += within
    return b"".join([*parts, view[kept:]]) if found else body, found


def _coded(letters: Array) -> CodedTexts | None:
    """Code the text of an array, from `[` to `]`; None unless it is of few distinct strings."""
    start: int = np.argmax(letters[:_PIECE] == _QUOTE).item()
    if letters[start] != _QUOTE or letters[1:start].tobytes().strip(_SPACE):
        return None
    known, codes = pa.array([], pa.binary()), []
    while start < letters.size:
        part = letters[start : start + _PIECE]
        # A string, and what follows it up to the next one: `a","` or, the last time, `a"]`.
        ends = np.flatnonzero(part == _QUOTE)[::2] + 1
        is_last = start + part.size == letters.size
        if is_last:
            ends = np.append(ends, part.size)
        start += int(ends[-1]) - (not is_last)
        buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(part)]
        strings = pa.Array.from_buffers(pa.binary(), ends.size - 1, buffers)
        places = pc.index_in(strings, known)
        if places.null_count:
            known = pa.concat_arrays([known, strings.unique()]).unique()
            places = pc.index_in(strings, known)
        if ends.size == 1 or known.nbytes > _MOST_DISTINCT:
            return None
        codes.append(np.frombuffer(places.buffers()[1], np.int32).astype(np.uint16))
    parts = [string.partition(b'"') for string in known.to_pylist()]
    if any(after.translate(None, _SPACE) not in (b',"', b"]") for _, _, after in parts):
        return None
    try:
        texts = orjson.loads(b'["' + b'","'.join(text for text, _, _ in parts) + b'"]')
    except orjson.JSONDecodeError:
        return None
    distinct = Codes()
    table = np.array([distinct[text] for text in texts])
    kind = np.min_scalar_type(len(distinct))
    return CodedTexts(list(distinct), recoded(np.concatenate(codes), table.astype(kind)))
