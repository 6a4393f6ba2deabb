"""Arrow and Parquet, read by pyarrow batch by batch."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rprime.core.arrays import Array
from rprime.core.items import PIECE
from rprime.core.labels import LONGEST_NAME
from rprime.evidence.columns import COUNT, LABELS, Columns, Hold, columns_too_large
from rprime.evidence.label_columns import BOOLEANS, Names, Piece
from rprime.evidence.names import TOO_LONG
from rprime.evidence.scores import is_score
from rprime.problems.problem import refuse
from rprime.schemas.document import unreadable

_BLOCK = 1 << 19
_BYTES_A_PLACE = 8
_MOST_KNOWN = 4096
"""Distinct texts of a column that are looked up."""
_ITEMS_A_TEXT = 16
"""So many items are worth a table of the known texts, for each of them."""
_RAW = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
_TEXTS = {*_RAW, pa.string_view()}
_SLACK = 1 << 16
_LONGEST_LABEL = 4 * LONGEST_NAME + _BYTES_A_PLACE
"""Bytes of the longest class name in UTF-8, with the length before it."""


def read_stream(stream: IO[bytes], columns: Columns, most: int) -> None:
    """Read an Arrow IPC stream; see `read_parquet`."""
    # Threads would need memory for their stacks.
    options = pa.ipc.IpcReadOptions(use_threads=False)
    with pa.ipc.open_stream(pa.PythonFile(stream, mode="r"), options=options) as reader:
        positions = columns.begin(reader.schema.names)
        gather(columns, positions, reader.schema, _checked(reader, most))


def read_parquet(file: IO[bytes], columns: Columns, most: int) -> None:
    """Read a seekable Parquet file by its row groups.

    The columns receive the items; they have at most as many bytes after decompression.
    """
    metadata = pq.read_metadata(file)
    names = metadata.schema.to_arrow_schema().names
    selection = sorted(columns.begin(names).items(), key=itemgetter(1))
    chosen = [names[place] for _, place in selection]
    texts = _check_metadata(metadata, chosen, most)
    options: dict[str, Any] = {"pre_buffer": False, "buffer_size": _BLOCK}
    with pq.ParquetFile(file, metadata=metadata, read_dictionary=texts, **options) as source:
        batches = source.iter_batches(PIECE, columns=chosen, use_threads=False)
        # That of a source which reads texts as dictionaries does not say that these are ordered.
        stored = pq.ParquetFile(file, metadata=metadata).schema_arrow
        schema = pa.schema([stored.field(place) for _, place in selection])
        positions = {name: number for number, (name, _) in enumerate(selection)}
        gather(columns, positions, schema, _checked(batches, most))


def _check_metadata(metadata: Any, chosen: Sequence[str], most: int) -> list[str]:
    """Refuse a file that is too large by its metadata; wrong metadata are found while reading.

    Return the chosen columns of strings that can be read as dictionaries.
    """
    parts = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    read = [
        i for i, part in enumerate(parts) if {part.path, part.path.partition(".")[0]} & {*chosen}
    ]
    if any(parts[i].max_repetition_level or parts[i].path != parts[i].name for i in read):
        detail = "The columns of a Parquet file must be plain, without lists or structs."
        raise unreadable(detail)
    # Repeated values take no bytes in the file, but a code of each is stored here.
    if metadata.num_rows * len(read) > most:
        raise columns_too_large(most)
    texts = {i for i in read if parts[i].physical_type == "BYTE_ARRAY"}
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        if group.num_columns != len(parts):
            raise unreadable("The metadata of the Parquet file are damaged.")
        for i in read:
            chunk = group.column(i)
            too_long = chunk.total_uncompressed_size > _SLACK + chunk.num_values * _LONGEST_LABEL
            if too_long and not is_score(parts[i].name):
                raise refuse(f"/{chunk.path_in_schema}", "class_name", f"{TOO_LONG} more.")
            # pyarrow cannot read strings in these encodings as a dictionary.
            if any(encoding.startswith("DELTA") for encoding in chunk.encodings):
                texts.discard(i)
    return [parts[i].name for i in read if i in texts]


def _checked(batches: Iterable[Any], most: int) -> Iterator[Any]:
    """Validate batches before their offsets and positions are used, and limit their bytes.

    An unchanged dictionary counts once. Whether texts are UTF-8 is seen where they are decoded,
    equal ones once.
    """
    left, dictionaries = most, dict[int, int]()
    for batch in batches:
        batch.validate()
        for number, column in enumerate(batch.columns):
            (column.view(raw) if (raw := _RAW.get(column.type)) else column).validate(full=True)
            left -= _size(column, dictionaries, number)
        if left < 0:
            raise columns_too_large(most)
        yield batch
        # Free the batch before the next one is read.
        del batch, column


def _size(column: Any, dictionaries: dict[int, int], number: int) -> int:
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    values = column.dictionary
    place = next((buffer.address for buffer in values.buffers()[1:] if buffer is not None), 0)
    size = 0 if dictionaries.get(number) == place else values.nbytes
    dictionaries[number] = place
    return int(column.indices.nbytes + size)


def gather(
    columns: Columns, positions: Mapping[str, int], schema: Any, batches: Iterable[Any]
) -> None:
    """Take columns out of batches of Arrow.

    `positions` are their positions in the schema, by the names that they get.
    """
    for name, place in positions.items():
        _check_type(schema.field(place).type, name, place + 1)
    places = {name: (_Column(), place) for name, place in positions.items() if name != "item_id"}
    ids = columns.ids = Identities(columns.hold) if "item_id" in positions else None
    ordered = [
        name for name in LABELS if name in positions and _is_ordered(schema, positions[name])
    ]
    for batch in batches:
        for name in ordered:
            _note_order(columns, name, batch.column(positions[name]))
        if ids is not None:
            ids.add(batch.column(positions["item_id"]))
        for start in range(0, batch.num_rows, PIECE):
            part = batch.slice(start, PIECE)
            columns.add(
                {name: column.piece(part.column(at)) for name, (column, at) in places.items()}
            )
            del part
        del batch


def _is_ordered(schema: Any, place: int) -> bool:
    kind = schema.field(place).type
    return pa.types.is_dictionary(kind) and kind.ordered is True


def _note_order(columns: Columns, name: str, column: Any) -> None:
    """Keep the order of the categories of a column, if all of its dictionaries have the same."""
    names: list[Any] = []
    if pa.types.is_dictionary(column.type) and len(column.dictionary) <= columns.most:
        names = _plain(column.dictionary).to_pylist()
    columns.orders[name] = names if columns.orders.get(name, names) == names else []


def _check_type(kind: Any, name: str, number: int) -> None:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    numeric = name in {"sample_weight", COUNT} or is_score(name)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    is_label = kind in _TEXTS or pa.types.is_boolean(kind)
    if not (is_number or pa.types.is_null(kind) or (is_label and not numeric)):
        what = "numbers" if numeric else "integers, strings or booleans"
        place = "/y_score" if is_score(name) else f"/{name}"
        raise refuse(place, "column_type", f"Column {number} must hold {what}.")


class _Column:
    """A column in pieces.

    Few distinct texts are looked up, which is faster than to number those of each piece anew.
    """

    def __init__(self) -> None:
        self._few = True
        self._known: _Dictionary | None = None

    def piece(self, column: Any) -> Piece:
        kind = column.type
        if pa.types.is_dictionary(kind) and column.dictionary.null_count:
            column, kind = column.dictionary_decode(), kind.value_type
        missing = _missing(column)
        if pa.types.is_null(kind):
            return Piece(np.zeros(len(column), np.uint8), missing)
        if pa.types.is_boolean(kind):
            return Piece(_numbers(column.cast(pa.uint8())), missing, BOOLEANS)
        if kind in _TEXTS:
            return self._texts(column, missing)
        if pa.types.is_dictionary(kind):
            return Piece(_numbers(column.indices), missing, _Dictionary(_plain(column.dictionary)))
        return Piece(_numbers(column), missing)

    def _texts(self, column: Any, missing: Array | None) -> Piece:
        dictionary = self._known
        if dictionary is not None and len(dictionary) <= len(column) / _ITEMS_A_TEXT:
            places = pc.index_in(column, dictionary.values)
            if places.null_count == column.null_count:
                return Piece(_numbers(places), missing, dictionary)
        coded = column.dictionary_encode()
        names = _Dictionary(_plain(coded.dictionary))
        if self._few and names.values.type == column.type:
            every = [names.values] if dictionary is None else [dictionary.values, names.values]
            union = _Dictionary(pa.concat_arrays(every).unique())
            self._few = len(union) <= _MOST_KNOWN
            self._known = union if self._few else None
        return Piece(_numbers(coded.indices), missing, names)


def _plain(values: Any) -> Any:
    """Return distinct labels in a form that Arrow can select from: it cannot from views."""
    if not pa.types.is_string_view(values.type):
        return values
    # Many views may show the same bytes, so that a short body has long labels.
    if len(values) and _view_lengths(values).max() > _LONGEST_LABEL:
        raise refuse("", "class_name", f"{TOO_LONG} more.")
    return values.cast(pa.large_string())


def _view_lengths(values: Any) -> Array:
    """Return the bytes of each string: the first of the four numbers of its view."""
    views = np.frombuffer(values.buffers()[1], np.int32).reshape(-1, 4)
    return views[values.offset : values.offset + len(values), 0].astype(np.int64)


def _missing(column: Any) -> Array | None:
    return _numbers(column.is_null().cast(pa.uint8())).view(bool) if column.null_count else None


def _numbers(column: Any) -> Array:
    # pyarrow's own conversion imports pandas if it is installed, which takes half a second.
    kind = np.dtype(column.type.to_pandas_dtype())
    if not len(column):
        return np.zeros(0, kind)
    values = np.frombuffer(column.buffers()[1], kind, len(column), column.offset * kind.itemsize)
    missing = _missing(column)
    return values if missing is None else np.where(missing, kind.type(0), values)


class _Dictionary(Names):
    def taken(self, positions: Array) -> Sequence[Any]:
        # Without `pa.array`, because it imports pandas (see `_numbers`).
        buffers = [None, pa.py_buffer(np.ascontiguousarray(positions, np.int64))]
        places = pa.Array.from_buffers(pa.int64(), len(positions), buffers)
        texts: list[Any] = self.values.take(places).to_pylist()
        return texts

    def same(self, other: Names) -> bool:
        return isinstance(other, _Dictionary) and bool(self.values.equals(other.values))


class Identities:
    """The distinct ids of all items."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self._chunks: list[Any] = []

    def add(self, column: Any) -> None:
        """Append ids."""
        if column.null_count:
            row = sum(map(len, self._chunks)) + int(pc.index(column.is_null(), True).as_py())
            raise refuse(f"/item_id/{row}", "no_id", "Each item needs an id, or none has one.")
        column.validate(full=True)
        size = column.nbytes
        if pa.types.is_string_view(column.type):
            size = int(_view_lengths(column).sum())
        if pa.types.is_dictionary(column.type) and column.type.value_type in _TEXTS:
            lengths = pc.binary_length(column.dictionary).take(column.indices)
            size = pc.sum(lengths).as_py() or 0
        # Decoded, and twice because the ids are sorted.
        self._hold(2 * (size + _BYTES_A_PLACE * len(column)))
        self._chunks.append(column.cast(pa.large_string()).cast(pa.large_binary()))

    @property
    def column(self) -> Any:
        """The ids as an Arrow column."""
        return pa.chunked_array(self._chunks).cast(pa.large_string())

    def some(self, places: Array) -> "Identities":
        """Return the ids at these places as those of all items."""
        identities = Identities(self._hold)
        identities._chunks = [pa.concat_arrays(self._chunks).take(pa.array(places))]
        return identities

    def texts(self, places: Array) -> Sequence[str]:
        """Return the ids at these places."""
        return _Dictionary(pa.concat_arrays(self._chunks).cast(pa.large_string())).taken(places)

    def order(self, pointer: str) -> Array:
        """Sort the ids by their UTF-8 bytes and return the order; refuse ids that are equal."""
        ids = pa.concat_arrays(self._chunks)
        order = pc.sort_indices(ids)
        ids = ids.take(order)
        self._chunks = [ids]
        positions: Array = order.to_numpy()
        if len(ids) > 1:
            equal = pc.index(pc.equal(ids[1:], ids[:-1]), True).as_py()
            if equal >= 0:
                detail = "Two items have this id; each item needs its own id."
                raise refuse(f"{pointer}/{positions[equal + 1]}", "duplicate_id", detail)
        return positions

    def pieces(self) -> Iterable[tuple[Array, Array]]:
        """Yield the lengths of many ids in bytes, and their UTF-8 bytes one after another."""
        for chunk in self._chunks:
            for start in range(0, len(chunk), PIECE):
                ids = chunk.slice(start, PIECE)
                end = ids.offset + len(ids) + 1
                offsets = np.frombuffer(ids.buffers()[1], np.int64)[ids.offset : end]
                letters = np.frombuffer(ids.buffers()[2] or b"", np.uint8)
                yield np.diff(offsets), letters[offsets[0] : offsets[-1]]
