"""Read the slices of a request: values or cut numbers of the items, or tables of their own."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from rprime.core.arrays import Array
from rprime.core.cells import DenseCells
from rprime.core.labels import integer_text
from rprime.core.quantities import plural
from rprime.core.slices import slices
from rprime.core.slices.slices import SliceColumn, Slices, TooManySlicesError
from rprime.core.table import ConfusionTable
from rprime.evidence import coding, names, numbers
from rprime.evidence.coding import CodedTexts, Codes, Integers
from rprime.evidence.label_columns import CodedColumn, Piece, Vocabulary
from rprime.problems.problem import pointer, refuse
from rprime.schemas.document import Document, kind_of
from rprime.schemas.request import Cuts

PREFIX = "slice:"
"""Prefix of a column of slices, before its name."""
_TABLE = frozenset({"slice", "confusion_matrix", "cells", "unclassified"})
"""Members of the table of a slice; its classes and its axis are those of the whole table."""
_MOST_CROSSED = 3
"""Columns of one slice."""
_PARTS = 4
"""Parts of equal size into which a column is cut by default."""
_FEW = 10
"""So many numbers are names, as those of a scale, unless their cut is asked for."""
_MERGE = "There are {}: merge values, or leave crossings out."
_MEMBERS = "Beside its values, a slice has `confusion_matrix` or `cells`, and `unclassified`."
_OF_TABLES = (
    'Beside a table, `slices` has tables: `{"region": {"EU": {"confusion_matrix": ...}}}`, or '
    '`[{"slice": {"region": "EU"}, "confusion_matrix": ...}]`.'
)
_CUTS: TypeAdapter[dict[str, int | list[float]]] = TypeAdapter(Cuts)


def is_slice(name: str) -> bool:
    """Whether a column name is that of slices."""
    return name.startswith(PREFIX)


class SliceValues(CodedColumn):
    """A column of slices; measured numbers, untyped if they are texts, are kept to be cut."""

    def __init__(self, name: str, *, measured: bool, untyped: bool) -> None:
        codes = Vocabulary(slices.MOST_SLICES, f"/{name}", what="slices")
        super().__init__(codes, f"/{name}", null=True)
        self._measured = measured
        self.untyped = untyped

    def add(self, piece: Piece, row: int) -> None:
        """Append items."""
        if not self._measured or piece.names is not None:
            super().add(piece, row)
            return
        missing = False if piece.missing is None else piece.missing
        self.extend(np.where(missing, np.nan, piece.values.astype(np.float64)))


def slices_of_items(
    document: Document, cells: Array, k: int, kept: Array | None = None, size: int = 0
) -> Slices | None:
    """Read the slices of items, given the cell of each, true (k + 1) + predicted, shape (n,).

    `kept` are their positions where some of the items of the request, `size`, are left out.
    """
    place = f"{document.pointer}/slices"
    if "slices" not in document.arrays:
        for name in ("slice_crossings", "slice_cuts"):
            if document.rest.get(name) is not None:
                raise refuse(place, "required", f"`{name}` needs `slices`.")
        return None
    try:
        cuts = _CUTS.validate_python(document.rest.get("slice_cuts") or {})
    except ValidationError:  # what is malformed is refused with the options
        cuts = {}
    columns = slice_columns(document, size or len(cells), cuts, kept=kept)
    try:
        return Slices.of_items(columns, _crossings(document, columns), cells, k)
    except TooManySlicesError as error:
        raise refuse(place, "too_many_slices", _MERGE.format(error)) from None


def slice_columns(
    document: Document,
    size: int,
    cuts: Mapping[str, int | list[float]],
    *,
    measured: bool = False,
    kept: Array | None = None,
) -> dict[str, SliceColumn]:
    """Read the slices of the n items of a request by their names, or of those that are `kept`.

    `cuts` says at which numbers a column is cut, or into how many parts of equal size; if
    `measured`, other columns of more than a few numbers are cut, too.
    """
    place = f"{document.pointer}/slices"
    weighing = ("sample_weight", "inclusion_probability", "groups")
    for name in (member for member in weighing if member in document.arrays):
        detail = (
            f"Slices cannot be combined with `{name}`: leave one of the two out, or send the items "
            "of each slice, with theirs, as a request of their own."
        )
        raise refuse(place, "not_with_slices", detail)

    def column(name: str, values: object, at: str) -> SliceColumn:
        cut = cuts.get(name, _PARTS if measured else None)
        floats = None if cut is None else _numbers(values, size)
        if floats is None and name in cuts:
            raise refuse(at, "not_a_number", "Only a column of numbers can be cut.")
        if cut is not None and floats is not None:
            floats = floats if kept is None else floats[kept]
            finite_numbers = floats[np.isfinite(floats)]
            # A thousand most likely tell.
            if name in cuts or any(
                len(np.unique(sample)) > _FEW for sample in (finite_numbers[:1000], finite_numbers)
            ):
                return _cut(floats, cut, at, f"{document.pointer}/slice_cuts{pointer(name)}")
        return _column(values, size, at, kept, without_booleans=document.without_booleans)

    content = document.arrays["slices"]
    if not isinstance(content, dict) or not content:
        kind = "an empty one" if content == {} else kind_of(content)
        raise refuse(place, "not_an_object", f"An object by name is needed, not {kind}.")
    places = [f"{place}{pointer(name)}" for name in content]
    column_names = names.distinct(list(content), places.__getitem__)
    members = zip(column_names, content.values(), places, strict=True)
    columns = {name: column(name, values, at) for name, values, at in members}
    if unknown := [name for name in cuts if name not in columns]:
        detail = f"{len(unknown)} of the names are not in `slices`."
        raise refuse(f"{document.pointer}/slice_cuts", "unknown_slices", detail)
    return columns


def _column(
    values: object, size: int, place: str, kept: Array | None, *, without_booleans: bool
) -> SliceColumn:
    """Code one column, its values sorted; an item without a value is in no slice of it."""
    if isinstance(values, CodedColumn):
        texts, codes = values.codes.names(None)[0], values.values
    else:
        texts, codes = _coded(values, size, place, without_booleans=without_booleans)
    if kept is not None:
        codes = codes[kept]
        counts = coding.count_codes(codes, len(texts))
        texts = [text if count else None for text, count in zip(texts, counts, strict=True)]
    there = [i for i, text in enumerate(texts) if text is not None]
    if not there:
        raise refuse(place, "empty", "No item has a value; leave this name out.")

    def first(i: int) -> str:
        return f"{place}/{int(np.argmax(codes == there[i]))}"

    distinct = names.distinct([texts[i] or "" for i in there], first)
    integers = all(integer_text(name) == name for name in distinct)
    order = sorted(
        range(len(distinct)), key=lambda i: int(distinct[i]) if integers else distinct[i]
    )
    moved = np.full(len(texts), len(distinct), np.min_scalar_type(len(distinct)))
    moved[np.array(there)[order]] = np.arange(len(distinct))
    return SliceColumn(tuple(distinct[i] for i in order), coding.recoded(codes, moved))


def _numbers(values: object, size: int) -> Array | None:
    """Return the numbers of a column, NaN without one; None if it has other values."""
    if isinstance(values, SliceValues):
        if values.values.dtype.kind == "f":
            return values.values
        if not values.untyped:
            return None
        texts = values.codes.names(None)[0]
        try:
            floats = np.array([np.nan if text is None else float(text) for text in texts])
        except ValueError:
            return None
        return floats[values.values]
    if isinstance(values, Integers):
        return np.array(values.values, dtype=np.float64) if len(values) == size else None
    kinds = set(map(type, values)) if isinstance(values, list) and len(values) == size else {str}
    return np.array(values, dtype=np.float64) if kinds <= {int, float, type(None)} else None


def _cut(numbers: Array, cut: int | list[float], place: str, cut_place: str) -> SliceColumn:
    """Cut numbers (n,) into slices; an item whose number is not finite is in none.

    `place` and `cut_place` are where the numbers and the cut stand.
    `cut`: the numbers at which slices begin, ascending, or how many slices of about equal size
    there are. Equal numbers stay together, so that there may be fewer.
    """
    finite = np.isfinite(numbers)
    finite_numbers = numbers[finite]
    if not finite_numbers.size:
        raise refuse(place, "empty", "No item has a number; leave this name out.")
    edges = (
        np.asarray(cut, dtype=float) if isinstance(cut, list) else _quantiles(finite_numbers, cut)
    )
    if (np.diff(edges) <= 0).any():
        raise refuse(cut_place, "not_ascending", "The numbers of a cut ascend.")
    codes = np.searchsorted(edges, numbers, side="right").astype(np.uint16)
    positions = np.where(finite, codes, np.uint16(edges.size + 1))
    return SliceColumn.cut(edges.tolist(), positions)


def _quantiles(values: Array, parts: int) -> Array:
    """Return the numbers at which parts of about equal size begin."""
    edges = np.unique(np.quantile(values, np.arange(1, parts) / parts, method="higher"))
    lowest = values.min()
    edges = edges[edges > lowest]
    if edges.size or values.max() == lowest:
        return edges if edges.size else np.array([lowest])
    return np.array([values[values > lowest].min()])  # nearly all are the lowest


def _coded(
    values: object, size: int, place: str, *, without_booleans: bool
) -> tuple[list[str | None], Array]:
    """Return the distinct values of a JSON array as texts, and their codes."""
    if not isinstance(values, list | CodedTexts | Integers):
        raise refuse(place, "not_an_array", f"An array of values is needed, not {kind_of(values)}.")
    if len(values) != size:
        mismatch = f"There are {len(values)} values for {plural(size, 'item')}"
        raise refuse(place, "wrong_length", f"{mismatch}; each needs one, or null.")
    integers = coding.plain_integers(values, without_booleans=without_booleans)
    if integers is not None:
        uniques, (positions,) = coding.renumbered(integers)
        return list(map(str, uniques.tolist())), positions
    distinct = Codes()
    codes = coding.looked_up(values, distinct)
    kinds = {type(value) for value in distinct} - {type(None)}
    if kinds - {str}:  # a dictionary takes 1 for true
        kinds = set(map(type, values)) - {type(None)}
    whole = all(value is None or names.is_integer(value) for value in distinct)
    if codes is None or not (kinds <= {str} or kinds == {bool} or (whole and bool not in kinds)):
        detail = "The values are all strings, all integers or all booleans, or null."
        raise refuse(place, "mixed_labels", detail)
    texts = {None: None} | {v: str(int(v) if whole else v) for v in distinct if v is not None}
    return [texts[value] for value in distinct], codes


def _crossings(document: Document, columns: Mapping[str, SliceColumn]) -> list[tuple[str, ...]]:
    """Return the columns to combine; other types are refused with the options."""
    crossings: list[tuple[str, ...]] = []
    content = document.rest.get("slice_crossings") or ()
    for i, chosen in enumerate(content if isinstance(content, list) else ()):
        listed = chosen if isinstance(chosen, list) else ()
        place = f"{document.pointer}/slice_crossings/{i}"
        crossing = [names.normalised_text(name) for name in listed if isinstance(name, str)]
        if unknown := [name for name in crossing if name not in columns]:
            shown = ", ".join(f"`{name}`" for name in columns)
            detail = f"{len(unknown)} of the names are not in `slices`, which has {shown}."
            raise refuse(place, "unknown_slices", detail)
        if len(set(crossing)) < len(crossing) or set(crossing) in map(set, crossings):
            raise refuse(place, "duplicate_name", "Each crossing combines other columns.")
        if crossing:
            crossings.append(tuple(crossing))
    return crossings


def slices_of_tables(
    document: Document,
    whole: ConfusionTable,
    labels: Sequence[str],
    read: Callable[[Document], ConfusionTable],
) -> Slices:
    """Read slices that have tables of their own, each a document; together they fit the whole."""
    place, content = f"{document.pointer}/slices", document.arrays["slices"]
    if whole.spurious is not None or whole.weighted:
        what = "weights" if whole.weighted else "`spurious` predictions, which are in no slice"
        raise refuse(place, "not_with_slices", f"Slices cannot be combined with {what}.")
    entries = _entries(content, place)
    try:
        slices.check_size(len(entries), whole.k)
    except TooManySlicesError as error:
        raise refuse(place, "too_many_slices", _MERGE.format(error)) from None
    slice_names: dict[frozenset[tuple[str, str]], dict[str, str]] = {}
    stack = _matrices([part for _, _, part in entries], whole.k, document)
    tables: list[ConfusionTable] = []
    of_columns: dict[frozenset[str], list[int]] = {}
    for i, (at, name_at, entry) in enumerate(entries):
        name = _slice_name(entry, at, name_at)
        values = frozenset(name.items())
        if values in slice_names:
            raise refuse(name_at, "duplicate_name", "This slice stands twice.")
        if empty := [member for member, content in entry.items() if content is None]:
            detail = f"Leave `{empty[0]}` out instead of sending null."
            raise refuse(f"{at}{pointer(empty[0])}", "null", detail)
        slice_names[values] = name
        of_columns.setdefault(frozenset(name), []).append(i)
        if stack is None:
            if unknown := entry.keys() - _TABLE:
                raise refuse(f"{at}{pointer(min(unknown))}", "unknown_field", _MEMBERS)
            arrays = {name: member for name, member in entry.items() if name != "slice"}
            arrays["labels"] = list(labels)
            axis = {"axis": document.rest["axis"]} if "axis" in document.rest else {}
            tables.append(read(Document(axis, arrays, tuple(arrays), at)))
    stack = stack or ConfusionTable.stack(tables)
    for places in of_columns.values():
        if _exceeds(stack[places], whole):
            detail = "The slices of these columns have more items in a cell than the whole table."
            raise refuse(entries[places[0]][0], "slices_exceed_table", detail)
    return Slices(tuple(slice_names.values()), stack)


def _entries(content: object, place: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Return each slice with its place and that of its name: listed, or by column and value."""
    if isinstance(content, list) and content:
        return [(f"{place}/{i}", f"{place}/{i}/slice", entry) for i, entry in enumerate(content)]
    if not isinstance(content, dict) or not content:
        raise refuse(place, "not_an_object", _OF_TABLES)
    entries = []
    for column, by_value in content.items():
        column_at = f"{place}{pointer(column)}"
        if not isinstance(by_value, dict) or not by_value:
            raise refuse(column_at, "not_an_object", _OF_TABLES)
        for value, table in by_value.items():
            at = f"{column_at}{pointer(value)}"
            if not isinstance(table, dict) or "slice" in table:
                raise refuse(at, "not_an_object", _OF_TABLES)
            entries.append((at, place, {**table, "slice": {column: value}}))
    return entries


def _slice_name(entry: object, place: str, name_at: str) -> dict[str, str]:
    """Read of which value of each column a slice is."""
    parts = entry.get("slice") if isinstance(entry, dict) else None
    if not isinstance(parts, dict) or not parts or set(map(type, parts.values())) != {str}:
        detail = 'A slice has its values, `{"slice": {"region": "EU"}}`, and its table.'
        raise refuse(place, "not_an_object", detail)
    if len(parts) > _MOST_CROSSED:
        detail = f"A slice is of at most {_MOST_CROSSED} columns."
        raise refuse(name_at, "too_long", detail)
    sent = list(parts)

    def at(i: int) -> str:
        return f"{name_at}{pointer(sent[i])}"

    columns = names.distinct(sent, at)
    return dict(zip(columns, names.normalised(list(parts.values()), at), strict=True))


def _matrices(contents: list[Any], k: int, document: Document) -> ConfusionTable | None:
    """Read the tables together; None if one has cells or a fault: each is then read alone."""
    if not all(
        isinstance(content, dict) and content.keys() <= _TABLE - {"cells"} for content in contents
    ):
        return None
    matrices = [content.get("confusion_matrix") for content in contents]
    if set(map(type, matrices)) != {list} or set(map(len, matrices)) != {k}:
        return None
    silent = [content.get("unclassified", [0] * k) for content in contents]
    rows = [*chain(*matrices), *silent]
    if set(map(type, rows)) != {list} or set(map(len, rows)) != {k}:
        return None
    values = numbers.flat(rows, numbers.COUNT, without_booleans=False)
    if values is None:
        return None
    counts, unclassified = np.split(values.reshape(-1, k), [len(matrices) * k])
    counts = counts.reshape(-1, k, k)
    turned = document.rest.get("axis") == "rows_are_predicted"
    return ConfusionTable.dense(counts.swapaxes(1, 2) if turned else counts, unclassified)


def _exceeds(slices: ConfusionTable, whole: ConfusionTable) -> bool:
    assert isinstance(slices.cells, DenseCells) and isinstance(whole.cells, DenseCells)  # noqa: S101, PT018 (the readers)
    silent = [0.0 if t.unclassified is None else t.unclassified for t in (slices, whole)]
    more = np.add.reduce(np.broadcast_to(silent[0], slices.support.shape)) > silent[1]
    return bool((slices.cells.counts.sum(0) > whole.cells.counts).any() or more.any())
