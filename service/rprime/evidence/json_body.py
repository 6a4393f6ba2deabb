"""Large JSON bodies: arrays of few distinct strings, or of integers, are read without objects."""

import re
import secrets
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from rprime.core.arrays import Array
from rprime.evidence.coding import CodedTexts, Codes, Integers, recoded
from rprime.problems.problem import Problem
from rprime.schemas.document import Document, occurrences, parse

_ITEMS = ("y_true", "y_pred", "groups", "item_id")
"""Members that are coded, besides those of `slices`."""
_MOST_ARRAYS = 100
"""So many arrays are looked at; more of them are the rows of a matrix."""
_SMALLEST = 1 << 12
"""Bytes of an array that is worth it."""
_PIECE, _PART = 1 << 18, 1 << 16
"""Bytes of strings, and of integers, that are read together."""
_MOST_DISTINCT = 1 << 17
"""Bytes of the distinct strings of an array."""
_QUOTE, _COMMA, _SPACE = ord('"'), ord(","), b" \t\n\r"
_WHITE = np.isin(np.arange(256), np.frombuffer(_SPACE, np.uint8))
_BYTE, _NINE, _LONGEST_INTEGER = 255, 9, 15
_OTHER_NUMBERS = re.compile(
    rb'"(?:sample_weight|inclusion_probability|labels|unclassified|spurious|class_items)"\s*:\s*\Z'
)
_LONGEST_MEMBER = 64
"""Bytes of the name of a member and what is between it and its array."""
_MARK = str(secrets.randbits(64))
"""Begins the string in place of an array; without letters, which could be those of `true`."""


def read_json(body: bytes, depth: int) -> Document:
    """Parse a JSON object as `parse` does, which is left to refuse what is not valid."""
    rest, arrays = _without_arrays(body)
    if not arrays:
        return parse(body, depth)
    try:
        document = parse(rest, depth)
    except Problem:
        return parse(body, depth)  # it names places in the whole body
    for part in (document, *document.inner.values()):
        slices = part.arrays.get("slices")
        _put_back(part.arrays, _ITEMS, arrays)
        if isinstance(slices, dict):
            _put_back(slices, tuple(slices), arrays)
    return parse(body, depth) if arrays else document


def _put_back(
    members: dict[str, Any], names: tuple[str, ...], arrays: dict[str, CodedTexts | Integers]
) -> None:
    for name in names:
        mark = members.get(name)
        if isinstance(mark, str) and mark in arrays:
            members[name] = arrays.pop(mark)


def _without_arrays(body: bytes) -> tuple[bytes, dict[str, CodedTexts | Integers]]:
    """Return the body with marks in place of arrays that are coded, and these by their marks."""
    arrays: dict[str, CodedTexts | Integers] = {}
    if b"\\" in body and b'\\"' in body:  # not every quotation mark begins or ends a string
        return body, arrays
    view, parts, every = memoryview(body), list[memoryview | bytes](), np.frombuffer(body, np.uint8)
    kept = end = quotes = 0
    for _ in range(_MOST_ARRAYS):
        last, start = end, body.find(b"[", end)
        end = body.find(b"]", start) + 1
        if start < 0 or not end:
            break
        letters = every[start:end]
        quotes += occurrences(every[last:start], b'"')
        within = occurrences(letters, b'"')
        # With an odd number of them, the bracket is in a string.
        if quotes % 2 == within % 2 == 0 and letters.size >= _SMALLEST:
            before = body[max(start - _LONGEST_MEMBER, 0) : start]
            coded = _coded(letters) if within else _integers(letters, before)
            if coded is not None:
                mark = f"{_MARK}{len(arrays)}"
                arrays[mark] = coded
                parts += [view[kept:start], f'"{mark}"'.encode()]
                kept = end
        quotes += within
    return b"".join([*parts, view[kept:]]) if arrays else body, arrays


def _integers(letters: Array, before: bytes) -> Integers | None:
    """Read the text of an array, from `[` to `]`; None unless it is of digits, or is not coded.

    `before` ends where the array begins: rows of a matrix and members that are no labels are left.
    """
    if not before.rstrip(_SPACE).endswith(b":") or _OTHER_NUMBERS.search(before):
        return None
    parts, start = [], 1
    while start < letters.size:
        part = letters[start : start + _PART]
        ends = np.flatnonzero(part == _COMMA)
        if start + part.size == letters.size:
            ends = np.append(ends, part.size - 1)
        values = _unsigned(part[: ends[-1] + 1], ends) if ends.size else None
        if values is None:
            return None
        parts.append(values)
        start += int(ends[-1]) + 1
    numbers = np.concatenate(parts)
    return Integers(numbers if numbers.max() > _BYTE else numbers.astype(np.uint8, copy=False))


def _unsigned(part: Array, ends: Array) -> Array | None:
    """Read integers (n,) from their text, each before its end; None if it is another text."""
    digits = part - np.uint8(ord("0"))
    starts = np.append(0, ends[:-1] + 1)
    stops = ends
    is_digit = digits <= _NINE
    white = part.size - ends.size - np.count_nonzero(is_digit)
    if white:
        if np.count_nonzero(_WHITE[part]) != white:
            return None
        changes = np.flatnonzero(np.diff(is_digit, prepend=False))
        runs = changes[::2], changes[1::2]
        if runs[0].size != ends.size or not ((runs[0] >= starts) & (runs[1] <= ends)).all():
            return None
        starts, stops = runs
    lengths = stops - starts
    longest = int(lengths.max())
    if lengths.min() < 1 or longest > _LONGEST_INTEGER:
        return None
    if longest == 1:
        return np.asarray(digits[starts])
    values = digits[starts].astype(np.int64)
    if ((values == 0) & (lengths > 1)).any():  # JSON has no leading zeros
        return None
    for place in range(1, longest):
        there = np.flatnonzero(lengths > place)
        values[there] = 10 * values[there] + digits[starts[there] + place]
    return np.asarray(values)


def _coded(letters: Array) -> CodedTexts | None:
    """Code the text of an array, from `[` to `]`; None unless it is of few distinct strings."""
    start: int = np.argmax(letters[:_PIECE] == _QUOTE).item()
    if letters[start] != _QUOTE or letters[1:start].tobytes().strip(_SPACE):
        return None
    uniques, codes = pa.array([], pa.binary()), []
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
        places = pc.index_in(strings, uniques)
        if places.null_count:
            uniques = pa.concat_arrays([uniques, strings.unique()]).unique()
            places = pc.index_in(strings, uniques)
        if ends.size == 1 or uniques.nbytes > _MOST_DISTINCT:
            return None
        codes.append(np.frombuffer(places.buffers()[1], np.int32).astype(np.uint16))
    parts = [string.partition(b'"') for string in uniques.to_pylist()]
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
