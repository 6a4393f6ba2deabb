"""Parquet files, taken apart into their pages, mutated there, and put together again."""

import io
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import cycle, product
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from tests.evidence.thrift import I32, I64, LIST, STRUCT, TEXT, Fields, Reader, Shape, Whole, packed

_NAME = (4, TEXT)
_SCHEMA, _GROUPS, _CHUNKS, _META = (2, LIST), (4, LIST), (1, LIST), (3, STRUCT)
_VALUES, _SENT, _DATA, _DICTIONARY = (5, I64), (7, I64), (9, I64), (11, I64)
_FILE: Shape = {
    _SCHEMA: Whole(),
    (3, I64): None,
    _GROUPS: {
        _CHUNKS: {_META: dict.fromkeys(((1, I32), (4, I32), _VALUES, _SENT, _DATA, _DICTIONARY))},
        (3, I64): None,
    },
}
_PAGE_SENT = (3, I32)
_OF_DATA, _OF_DICTIONARY = ((5, STRUCT), (8, STRUCT)), (7, STRUCT)
_NUMBERS = [*range(-2, 12), 127, 255, 256, 1 << 16, 1 << 22, (1 << 31) - 1, -(1 << 31)]
_LIES = [b"\xff\xff\xff\x7f", b"\xff" * 4, b"\0\0\0\x80", b"\x80\x80\x80\x80\x10", b""]


@dataclass
class Page:
    """A page with its header."""

    header: Fields
    content: bytes


@dataclass
class Parts:
    """A file: its metadata, and the pages of its columns, one row group after the other."""

    meta: Fields
    columns: list[list[Page]]

    @classmethod
    def of(cls, body: bytes) -> "Parts":
        size = int.from_bytes(body[-8:-4], "little")
        meta = Reader(body[-8 - size : -8], 1 << 20).struct(_FILE)
        return cls(meta, [list(_pages(body, chunk[_META])) for chunk in _chunks(meta)])

    def whole(self) -> bytes:
        """Put it together; only where its pages stand is told as it is."""
        body, meta = bytearray(b"PAR1"), deepcopy(self.meta)
        for chunk, pages in zip(_chunks(meta), self.columns, strict=False):
            start, places = len(body), dict[bool, int]()
            for page in pages:
                places.setdefault(_OF_DICTIONARY in page.header, len(body))
                body += packed(page.header) + page.content
            told = chunk[_META]
            told |= {_SENT: len(body) - start, _DATA: places.get(False, start)}
            if True in places:
                told[_DICTIONARY] = places[True]
        footer = packed({(1, I32): 2} | meta)
        return bytes(body) + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _chunks(meta: Fields) -> Iterator[Fields]:
    _, *columns = meta[_SCHEMA]
    for group in meta[_GROUPS]:
        for chunk, column in zip(group[_CHUNKS], cycle(columns), strict=False):
            chunk[2, I64] = 0
            path = [column[_NAME]]
            chunk[_META] |= {(2, LIST): [], (3, LIST): path, (6, I64): 0}
            group[2, I64] = 0
            yield chunk


def _pages(body: bytes, told: Fields) -> Iterator[Page]:
    place, left = told[_DICTIONARY if _DICTIONARY in told else _DATA], told[_VALUES]
    while left > 0:
        reader = Reader(body[place:], 1000)
        header = reader.struct(Whole())
        start = place + reader.place
        place = start + header[_PAGE_SENT]
        yield Page(header, body[start:place])
        left -= sum(header[kind][1, I32] for kind in _OF_DATA if kind in header)


def mutant(chance: Random) -> bytes:
    """Return a file in which something is wrong."""
    parts = deepcopy(chance.choice(FILES))
    for _ in range(chance.choice([1, 1, 2, 3])):
        pages = chance.choice(parts.columns)
        page = chance.choice(pages)
        chance.choice(_WRONGS)(chance, parts, pages, page)
    return parts.whole()


def _renumber(chance: Random, _parts: Parts, _pages: list[Page], page: Page) -> None:
    fields = chance.choice([page.header, *(v for v in page.header.values() if isinstance(v, dict))])
    _change(chance, fields)


def _lie(chance: Random, parts: Parts, _pages: list[Page], _page: Page) -> None:
    chunks = [chunk[_META] for chunk in _chunks(parts.meta)]
    _change(chance, chance.choice([*chunks, *parts.meta[_SCHEMA], *parts.meta[_GROUPS]]))


def _change(chance: Random, fields: Fields) -> None:
    integers = [key for key in fields if key[1] in {I32, I64}]
    if integers:
        fields[chance.choice(integers)] = chance.choice(_NUMBERS)


def _damage(chance: Random, _parts: Parts, _pages: list[Page], page: Page) -> None:
    # Most of what says how the rest is to be read stands at the begin.
    at = chance.randrange(min(len(page.content), chance.choice([8, 1000])) + 1)
    cut = chance.choice([0, 1, 4, len(page.content)])
    lie = chance.choice([*_LIES, bytes([chance.randrange(256)])])
    page.content = page.content[:at] + lie + page.content[at + cut :]
    if chance.random() < 0.8:
        page.header[_PAGE_SENT] = len(page.content)


def _misplace(chance: Random, parts: Parts, pages: list[Page], page: Page) -> None:
    other = chance.choice(chance.choice(parts.columns))
    pages[pages.index(page)] = deepcopy(other)


def _recount(chance: Random, parts: Parts, _pages: list[Page], _page: Page) -> None:
    groups = parts.meta[_GROUPS]
    entries = chance.choice([parts.meta[_SCHEMA], groups, *(group[_CHUNKS] for group in groups)])
    if entries:
        entry = entries.pop(chance.randrange(len(entries)))
        entries += chance.choice([[], [entry, entry]])


_WRONGS = [_renumber, _renumber, _damage, _damage, _misplace, _lie, _recount]


def _files() -> Iterator[Parts]:
    draw = np.random.default_rng(0)
    names = np.array(["ab", "c", "d" * 30])[draw.integers(0, 3, 200)]
    holes = draw.random(200) < 0.2
    columns = {
        "texts": {"y_true": pa.array(names), "y_pred": pa.array(names[::-1], mask=holes)},
        "numbers": {
            "y_true": draw.integers(0, 4, 200).astype(np.uint8),
            "y_pred": pa.array(draw.integers(0, 4, 200), mask=holes),
            "sample_weight": draw.random(200),
        },
    }
    for kind, version, codec, dictionary in product(
        columns, ("1.0", "2.0"), ("none", "snappy", "zstd"), (True, False)
    ):
        sink = io.BytesIO()
        pyarrow.parquet.write_table(
            pa.table(columns[kind]),
            sink,
            row_group_size=120,
            data_page_size=100,
            write_batch_size=30,
            data_page_version=version,
            compression=codec,
            use_dictionary=dictionary,
        )
        yield Parts.of(sink.getvalue())


FILES = list(_files())
