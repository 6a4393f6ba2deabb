"""Pack the slices of an evaluation into rows, to read all of them or one of many evaluations."""

from collections.abc import Iterable
from typing import Any

import orjson

from rprime.core.slices.slices import SliceName, Slices
from rprime.store import packed_table
from rprime.store.compression import content_key

MOST_BYTES = 2 << 20
"""Names and tables of the slices of one evaluation, before compression."""


def fits(slices: Slices) -> bool:
    """Whether the store keeps so many slices."""
    names = sum(len(part) for name in slices.names for pair in name.items() for part in pair)
    return names + packed_table.most_bytes(slices.tables) <= MOST_BYTES


def key_of(name: SliceName) -> bytes:
    """Return the key of a slice, the same for its columns in any order."""
    return content_key(orjson.dumps(sorted(name.items())))


def identifier_of(evaluation: str, key: bytes) -> str:
    """Return what the checksum of a table covers besides."""
    return evaluation + key.hex()


def pack_slices(slices: Slices, evaluation: str) -> list[dict[str, Any]]:
    """Return a row for each slice."""
    return [
        {
            "evaluation": evaluation,
            "key": (key := key_of(name)),
            "place": place,
            "name": orjson.dumps(name),
            "content": packed_table.pack(slices.tables[place], identifier_of(evaluation, key)),
        }
        for place, name in enumerate(slices.names)
    ]


def unpack_slices(rows: Iterable[Any], k: int) -> Slices:
    """Read the rows of at least one slice, in order of their places; `ValueError` if damaged."""
    found = list(rows)
    names = tuple(orjson.loads(row.name) for row in found)
    if any(key_of(name) != row.key for name, row in zip(names, found, strict=True)):
        raise ValueError("a slice has another name")
    identifiers = [identifier_of(row.evaluation, row.key) for row in found]
    tables = packed_table.unpack_stack([row.content for row in found], identifiers, k)
    return Slices(names, tables)
