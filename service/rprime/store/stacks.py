"""Read a whole history as stacks of tables, for trends and leaderboards."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from typing import Any

from sqlalchemy import bindparam, select

from rprime.store.database import Database
from rprime.store.errors import decoding
from rprime.store.evaluations import conditions, document, is_slice_of, labels_of, options_of
from rprime.store.packing import form_of, slice_identifier, slice_key, unpack_stack
from rprime.store.records import Filters, Stack
from rprime.store.schema import evaluations, shared, slices

MOST_CELLS = 1 << 23
"""Numbers in one stack, 64 MiB; a longer history needs several stacks."""

_of = evaluations.c
_COLUMNS = ("id", "model", "version", "test_set", "verdict", "labels", "cells", "extras", "options")
_LABELS, _CELLS, _EXTRAS, _OPTIONS, _REST = 5, 6, 7, 8, 9
_Kind = tuple[bytes, bool, bool]
_CONTENT = select(shared.c.content).where(shared.c.key == bindparam("key"))


@dataclass
class _Gathered:
    """Collects rows for a stack; `key` is that of the slice that they are of.

    Asked is the content of the options by their key.
    """

    labels: tuple[str, ...]
    sparse: bool
    key: bytes
    asked: Mapping[bytes, bytes]
    rows: list[Any] = field(default_factory=list)

    def add(self, rows: Iterable[Any]) -> Iterator[Stack]:
        """Add rows; yield the stacks that are then large enough."""
        self.rows += rows
        while len(self.rows) >= (most := self._most()):
            rest = self.rows[most:]
            del self.rows[most:]
            yield self.stack()
            self.rows = rest

    def _most(self) -> int:
        """Return how many rows fill a stack."""
        if self.sparse:
            # At most one cell per two inflated bytes, typically far fewer.
            sizes = accumulate(len(row[_CELLS]) for row in self.rows)
            large = (n for n, size in enumerate(sizes, start=1) if size * n >= MOST_CELLS)
            return next(large, len(self.rows) + 1)
        k = len(self.labels)
        return max(1, -(-MOST_CELLS // (k * (k + 2))))

    @decoding()
    def stack(self) -> Stack:
        """Return all of the rows as one stack."""
        columns = tuple(zip(*self.rows, strict=True))
        ids, extras = columns[0], tuple(document("extras", content) for content in columns[_EXTRAS])
        sealed_by = [slice_identifier(i, self.key) for i in ids] if self.key else ids
        table = unpack_stack(columns[_CELLS], sealed_by, len(self.labels))
        options = tuple(map(self.asked.__getitem__, columns[_OPTIONS]))
        kept = tuple(
            document("score_values", stored) for part in columns[_REST:] for stored in part
        )
        shown = (*columns[:_LABELS], extras, options, kept)
        return Stack(self.labels, table, *shown)


def stacks(
    database: Database, project: str, filters: Filters, *, newest: int | None, scored: bool
) -> Iterator[Stack]:
    """Read the tables of matching evaluations, grouped by their classes, as `Store.tables`."""
    gathered: dict[_Kind, _Gathered] = {}
    options: dict[bytes, bytes] = {}
    with database.streaming() as connection:
        fits = list(conditions(project, filters))
        if newest is not None:
            # Found by an index alone, so that rows stay in order.
            newest_first = select(_of.id).where(*fits).order_by(_of.id.desc())
            oldest = connection.scalar(newest_first.offset(newest - 1).limit(1))
            fits.append(_of.id >= (oldest or ""))
        sliced = slice_key(dict(filters.slice)) if filters.slice else b""
        cells = slices.c.content if sliced else _of.cells
        columns = (*_COLUMNS, "score_values") if scored and not sliced else _COLUMNS
        query = select(*(cells if name == "cells" else _of[name] for name in columns))
        if sliced:
            query = query.join(slices, is_slice_of(filters.slice))
        rows = connection.execute(query.where(*fits).order_by(_of.id))
        for part in rows.partitions():
            for key in {row[_OPTIONS] for row in part} - options.keys():
                options[key] = options_of(connection.scalar(_CONTENT, {"key": key}))
            # Consecutive rows often belong to one stack.
            for kind, run in groupby(part, _kind):
                if kind not in gathered:
                    names = labels_of(connection.scalar(_CONTENT, {"key": kind[0]}))
                    gathered[kind] = _Gathered(names, kind[1], sliced, options)
                yield from gathered[kind].add(run)
    for group in gathered.values():
        if group.rows:
            yield group.stack()


@decoding()
def _kind(row: Any) -> _Kind:  # noqa: ANN401 - a row of the driver
    return row[_LABELS], *form_of(row[_CELLS])
