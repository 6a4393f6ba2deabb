"""Columns of items, coded batch by batch."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.items import PIECE
from rprime.core.labels import LONGEST_NAME, common_order, is_count, long_form
from rprime.core.quantities import plural
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.evidence import names
from rprime.evidence.label_columns import CodedColumn, Growing, Piece, Positions, Vocabulary, Where
from rprime.evidence.names import is_name
from rprime.evidence.numbers import COUNT as COUNTED
from rprime.evidence.numbers import MOST, WEIGHT
from rprime.evidence.pasted import LONG_FORM, oriented, reading
from rprime.evidence.scores import PREFIX, ScoreColumns, is_score, sort_rows
from rprime.evidence.slices import PREFIX as SLICE_PREFIX
from rprime.evidence.slices import SliceValues, is_slice
from rprime.problems.problem import Problem, UnknownMember, invalid, refuse
from rprime.schemas.document import EVIDENCE, Document

if TYPE_CHECKING:
    from rprime.evidence.arrow_body import Identities


LABELS = ("y_true", "y_pred", "y_pred_baseline")
NAMES = (*LABELS, "sample_weight", "item_id", "group")
"""The allowed columns, besides those of scores and slices."""
COUNT = "count"
"""The column of a table in long form: the number of items of each pair of classes."""
LONGEST_LINE = 1 << 20
"""Bytes of the CSV lines that are parsed in one piece."""
MATRIX = "y_score"
"""The name of one array with all scores, in formats that allow it."""
_MEMBERS = {"sample_weight": "sample_weight", "group": "groups", COUNT: COUNT}
_IN_JSON = {"y_score": "score:<label>", "groups": "group", "slices": "slice:<name>"}
"""Members of a JSON request that are columns of another name."""
_SHORT = {"true": "y_true", "pred": "y_pred"}
_NEAR = 0.85
"""How near an unknown name is to a known one that is meant."""
_MOST_GROUPS = 2**32 - 2
_MOST_SHOWN = 20
_PAIR = ("y_true", "y_pred")
_LONG_FORM = (*_PAIR, COUNT)
_OF_PREDICTIONS = re.compile("pred|guess|output|answer|^estimate$|y_?hat|classified", re.IGNORECASE)
_OF_TRUTH = re.compile(
    "true|truth|label|target|actual|gold|expected|^obs(?:erved)?$|reference|^y(?:_?test)?$|^class$",
    re.IGNORECASE,
)
_ONE_LINE = (
    "a name begins with `{}`. Has the body only one line? curl takes out the line ends: send it by "
    "`--data-binary`."
)
_ONE_HOT = (
    "Several columns of true classes and as many of predictions look like a column for each class: "
    "write the name of the class into one column, as by `idxmax(axis=1)` of pandas."
)
_LIKELY = {
    "item_id": re.compile("(?:.+[_ ])?(?:ids?|uuid|guid)", re.IGNORECASE),
    "sample_weight": re.compile("w|wts?|weights?", re.IGNORECASE),
}
"""What columns that are not read may be."""
_NAME_COUNT = "`count` in `columns`, or the option `--count`."
_GRID = (
    "Each pair of classes stands there once, so `{}` may hold counts. If it does, name it: "
    f"{_NAME_COUNT} If each row is an item, leave the column out."
)
_ITEMS_OR_PAIRS = (
    "A pair of classes stands there twice, or a count is no integer: each row may be an item. If "
    f"the column holds counts, name it: {_NAME_COUNT} If each row is an item, leave the column out."
)
FILES = "docs/cli.md#files"
_OF_SCORES = re.compile(r"(?:y_)?(?:scores?|prob(?:a|ability)?)[_. -](.+)", re.IGNORECASE)
"""What columns are usually called."""

Label = str | int
Hold = Callable[[int], None]
"""Reserves bytes until the request ends; raises if none are left."""


def columns_too_large(most: int) -> Problem:
    """Return the problem of columns over a limit of bytes after decompression."""
    detail = f"The columns of the body have more than {most} bytes after decompression."
    return Problem("body_too_large", detail)


def two_baselines() -> Problem:
    """Return the problem of a column of predictions of a baseline beside another baseline."""
    detail = "The column `y_pred_baseline` is a baseline, too; send one of the two."
    return refuse("/baseline", "several_kinds", detail)


def missing(name: str, columns: list[str]) -> str:
    """Say that a column is missing, and what the body may be or which column may be meant."""
    if columns[:1] and columns[0].lstrip().startswith(("{", "[")):
        return f"The column `{name}` is missing; the body looks like JSON: send it as such."
    if "confusion_matrix" in columns:
        return f"The column `{name}` is missing. Send a confusion matrix as JSON."
    predicted = [column for column in columns if _OF_PREDICTIONS.search(column)]
    true = [c for c in columns if _OF_TRUTH.search(c) and c not in predicted]
    likely = {"y_true": true, "y_pred": predicted}
    meant = [
        f"{key}={matches[0]}" for key, matches in likely.items() if matches and key not in columns
    ]
    if name not in columns and any(re.fullmatch(f"{name}\\S+", column) for column in columns):
        return f"The column `{name}` is missing; {_ONE_LINE.format(name)}"
    if len(predicted) > 1 and len(true) == len(predicted) and not set(columns) & set(_PAIR):
        return f"The column `{name}` is missing. {_ONE_HOT}"
    scored = [(c, match[1]) for c in columns if (match := _OF_SCORES.fullmatch(c))]
    if name == "y_pred" and scored and not predicted:
        meant += [f"{PREFIX}{label}={column}" for column, label in scored[:_MOST_SHOWN]]
    helps = (likely[name] or meant) and all(map(is_name, columns))
    example = f", as in `{','.join(meant)}`" if helps else ""
    scores = f"; scores are columns `{PREFIX}<label>`" if scored else ""
    unnamed = any(column.replace(".", "").isdecimal() for column in columns)
    header = " A CSV begins with a line of column names." if unnamed else ""
    return (
        f"The column `{name}` is missing; the body has {_listed(columns)}{scores}. If one of "
        f"them holds it, say so in `columns`{example}.{header}"
    )


class _Weights(Growing):
    def add(self, piece: Piece, row: int) -> None:
        where = Where("/sample_weight", row, null=False)
        if piece.missing is not None:
            where.refuse(piece.missing, "not_a_number", "Each item needs a weight.")
        if piece.names is not None:
            raise refuse("/sample_weight", "not_a_number", WEIGHT.rule)
        values = piece.values.astype(np.float64)
        where.refuse(~((values >= WEIGHT.low) & (values <= MOST)), "out_of_range", WEIGHT.rule)
        self.extend(values)


class _Counts(Growing):
    def add(self, piece: Piece, row: int) -> None:
        where = Where(f"/{COUNT}", row, null=False)
        if piece.missing is not None:
            where.refuse(
                piece.missing, "not_a_number", "Each pair needs a count; write 0 for none."
            )
        values = piece.values.astype(np.float64)
        where.refuse(~((values >= COUNTED.low) & (values <= MOST)), "out_of_range", COUNTED.rule)
        self.extend(values)


class _Groups(CodedColumn):
    def __init__(self) -> None:
        self._groups = Vocabulary(_MOST_GROUPS, "/group")
        super().__init__(self._groups, "/group", null=False)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._groups.nbytes

    def add(self, piece: Piece, row: int) -> None:
        if piece.missing is not None:
            where = Where("/group", row, null=False)
            where.refuse(piece.missing, "no_group", "Each item needs a group.")
        super().add(piece, row)

    @property
    def values(self) -> Array:
        """The groups, numbered in the order of appearance, as in JSON."""
        values, size = super().values, len(self._groups.labels)
        first = np.full(size, values.size)
        for end in range(values.size, 0, -PIECE):
            start = max(end - PIECE, 0)
            # Written backwards, so that the first item of each group is written last.
            first[values[start:end][::-1]] = np.arange(start, end)[::-1]
        numbers = np.empty(size, np.uint32)
        numbers[np.argsort(first)] = np.arange(size)
        return numbers[values]


class Columns:
    """The columns of one body.

    Given are the other members of the request, the largest number of classes, what reserves the
    bytes of the columns (None: there is memory for all), whether the format writes integers as
    texts and may have all scores in one array, and whether slices may be numbers, to be cut.
    """

    def __init__(
        self,
        request: Document,
        most: int,
        hold: Hold | None,
        *,
        untyped: bool = False,
        matrix: bool = False,
        measured: bool = False,
    ) -> None:
        self._request = request
        self._untyped, self._measured = untyped, measured
        how = ("slice_cuts", "slice_crossings", "missing_true")
        self.reading = {name: request.rest[name] for name in how if name in request.rest}
        cuts = request.rest.get("slice_cuts")
        self.cut = {f"{SLICE_PREFIX}{name}" for name in cuts} if isinstance(cuts, dict) else set()
        self.chosen = _chosen(request)
        self.most = most
        self.codes: Vocabulary | Positions = (
            Positions(len(request.arrays["labels"]))
            if _are_positions(request)
            else Vocabulary(most, "/y_true", untyped=untyped)
        )
        # A search, whose columns are measured, compares with no baseline.
        keys = tuple(n for n in NAMES if not (measured and n == "y_pred_baseline"))
        self._known = (*keys, MATRIX) if matrix else keys
        self.hold = hold or (lambda _size: None)
        self._held = 0
        self._rows = 0
        self._other: str | None = None
        """The column that is not read, if there are three columns and the others are labels."""
        self.labels: dict[str, CodedColumn] = {}
        self.orders: dict[str, list[Label]] = {}
        """Ordered categories by column; empty where its batches order them differently."""
        self.others: frozenset[str] = frozenset()
        """Labels of a baseline with codes of its own."""
        self._slices: dict[str, SliceValues] = {}
        self._others: dict[str, _Weights | _Groups | _Counts] = {}
        self._table: dict[str, object] | None = None
        self._scores: ScoreColumns | None = None
        self._matrix: Array | None = None
        self.ids: Identities | None = None

    def begin(self, columns: list[str]) -> dict[str, int]:
        """Check the names of the columns; return the positions of those to read, by name."""
        places = self.selected(columns)
        self._ignore(columns, places)
        self._check_names(places, columns)
        keys = [name for name, _ in places]
        for name in keys:
            if name in LABELS:
                null = name != "y_true" or self.reading.get("missing_true") == "spurious"
                self.labels[name] = CodedColumn(self.codes, f"/{name}", null=null)
            elif is_slice(name):
                measured = self._measured or name in self.cut
                self._slices[name] = SliceValues(name, measured=measured, untyped=self._untyped)
        if "sample_weight" in keys:
            self._others["sample_weight"] = _Weights(np.float64)
        if "group" in keys:
            self._others["group"] = _Groups()
        if COUNT in keys:
            self._refuse_beside_counts(keys)
            self._others[COUNT] = _Counts(np.float64)
        labels = self._request.arrays.get("labels")
        declared = None if labels is None else names.declared(labels, "/labels", self.most)
        self._scores = ScoreColumns.of(keys, declared)
        if "y_pred_baseline" in keys and "baseline" in self._request.names:
            raise two_baselines()
        return dict(places)

    def may_be_table(self, columns: list[str]) -> bool:
        """Whether a body with these names in its first line may be a matrix."""
        return not self.chosen and not any(map(self._is_known, columns))

    def reads(self, name: str) -> bool:
        """Whether a column of this name in the body would be read."""
        return name in self.chosen.values() if self.chosen else self._is_known(name)

    def take_table(self, table: dict[str, object] | None) -> bool:
        """Use a matrix, if there is one, in place of columns; return whether there is."""
        self._table = table
        return table is not None

    def selected(self, columns: list[str], *, optional: bool = False) -> list[tuple[str, int]]:
        """Return the names and positions of the columns to read; `optional`: some may be missing.

        They are chosen by what they are called there. Where these are slices or counts alone, the
        known names, all scores and all slices are read, too, by their own names.
        """
        places = []
        chosen = self._long_form(columns) or self.chosen
        if all(is_slice(name) or name == COUNT for name in chosen):
            places = [(name, i) for i, name in enumerate(columns) if self._is_known(name)]
        for name, source in chosen.items():
            number = columns.count(source)
            if number > 1 or not (number or optional):
                what = "Two columns have" if number else "No column has"
                detail = f"{what} the name chosen for `{name}`; the body has {_listed(columns)}."
                raise invalid([UnknownMember("", "missing_column", detail, source)])
            if number:
                places.append((name, columns.index(source)))
        return places

    def _long_form(self, columns: list[str]) -> dict[str, str]:
        """Return the columns of a table in long form; none of another one.

        It has a column of counts and two of labels, whose names say which of them is true.
        """
        if self.chosen.keys() <= {COUNT}:
            return long_form(columns, self.chosen.get(COUNT))
        others = [name for name in columns if name not in self.chosen.values()]
        is_long = self.chosen.keys() == set(_PAIR) and len(columns) == len(_LONG_FORM)
        return {**self.chosen, COUNT: others[0]} if is_long and any(map(is_count, others)) else {}

    def _is_known(self, name: str) -> bool:
        return name in self._known or is_score(name) or is_slice(name)

    @staticmethod
    def _refuse_beside_counts(keys: list[str]) -> None:
        """Refuse what is about single items beside their counts."""
        if more := [name for name in keys if name not in _LONG_FORM]:
            detail = f"Beside `{COUNT}` there are `y_true` and `y_pred` only: leave out {{}}."
            raise refuse(f"/{COUNT}", "not_with_counts", detail.format(_listed(more)))

    def _note_counts(self) -> None:
        """Say that a table in long form was read as such; refuse what may be items."""
        counts = self._others[COUNT].values
        true, predicted = (self.labels[name].values.astype(np.int64) for name in _PAIR)
        pairs = true * (int(predicted.max()) + 1) + predicted
        if len(np.unique(pairs)) < pairs.size or (counts != np.rint(counts)).any():
            raise refuse("", "long_table", _ITEMS_OR_PAIRS)
        self._request.warnings.append(Warning("table_read", "", LONG_FORM, FILES))

    def _refuse_grid(self) -> None:
        """Refuse two columns that hold each pair of classes once, beside a column not read."""
        if self._other is None or set(self.labels) != set(_PAIR) or self._scores is not None:
            return
        true, predicted = (self.labels[name].values.astype(np.int64) for name in _PAIR)
        sizes = [np.unique(codes).size for codes in (true, predicted)]
        pairs = true * (int(predicted.max()) + 1) + predicted
        if min(sizes) > 1 and pairs.size == sizes[0] * sizes[1] == np.unique(pairs).size:
            raise refuse("", "long_table", _GRID.format(self._other))

    def _ignore(self, columns: list[str], places: list[tuple[str, int]]) -> None:
        """Note the columns that are not read; refuse what seems to be a known name, misspelt."""
        read = {place for _, place in places}
        others = [(place, name) for place, name in enumerate(columns) if place not in read]
        counts = [name for _, name in others if is_count(name) and is_name(name)]
        if len(columns) == len(_LONG_FORM) and len(others) == 1 and is_name(others[0][1]):
            self._other = others[0][1]
        of_counts = f" If `{counts[0]}` counts items, name it: {_NAME_COUNT}" if counts else ""
        if not others or (self.chosen and not counts):
            return
        names = () if self.chosen else self._known
        free = [name for name in names if name not in columns]
        for place, name in others:
            near = get_close_matches(name[:LONGEST_NAME].lower(), free, n=1, cutoff=_NEAR)
            meant = _IN_JSON.get(name) or next(iter(near), None)
            if meant and not self.chosen:
                detail = f"Column {place + 1} is not known here. Did you mean `{meant}`?"
                raise invalid([UnknownMember("", "unknown_column", detail, name)])
        likely = [
            (name, next((key for key, form in _LIKELY.items() if form.fullmatch(name)), None))
            for _, name in others
            if is_name(name)
        ]
        of_counts += "".join(
            f" `{name}` may be `{meant}`: rename it, or say so in `columns`."
            for name, meant in likely
            if meant and meant not in columns and not self.chosen
        )
        detail = f"These columns are not read: {_listed([name for _, name in others])}.{of_counts}"
        self._request.warnings.append(Warning("columns_ignored", "", detail, FILES))

    def _check_names(self, places: list[tuple[str, int]], columns: list[str]) -> None:
        every = (*self._known, COUNT, f"{PREFIX}<label>", f"{SLICE_PREFIX}<name>")
        choices = ", ".join(f"`{name}`" for name in every)
        for name, _ in places:
            if not self._is_known(name) and name != COUNT:
                detail = f"`columns` chooses what is no column here; columns are: {choices}."
                raise invalid([UnknownMember("/columns", "unknown_column", detail, name)])
        keys = [name for name, _ in places]
        if len(set(keys)) < len(keys):
            twice = next(name for name in keys if keys.count(name) > 1)
            detail = f"Two columns have the name {_listed([twice])}; keep one of them."
            raise refuse("", "duplicate_column", detail)
        if len({place for _, place in places}) < len(places):
            raise refuse("/columns", "duplicate_column", "`columns` reads a column twice.")
        scored = [MATRIX in keys, any(map(is_score, keys))]
        if all(scored):
            detail = f"Put the scores into `{MATRIX}` or into columns of their own, not both."
            raise refuse("", "several_kinds", detail)
        for name in ("y_true",) if any(scored) else ("y_true", "y_pred"):
            if name not in keys:
                raise refuse("", "missing_column", missing(name, columns))

    def add(self, batch: Mapping[str, Piece]) -> None:
        """Append items to all columns."""
        for name, gatherer in (self.labels | self._slices | self._others).items():
            gatherer.add(batch[name], self._rows)
        if self._scores is not None:
            self._scores.add(batch, self._rows)
        self._rows += next(iter(batch.values())).values.size
        size = sum(part.nbytes for part in self._parts())
        if size > self._held:
            self.hold(size - self._held)
            self._held = size

    def _parts(self) -> Iterator[Growing]:
        yield from (*self.labels.values(), *self._slices.values(), *self._others.values())
        if self._scores is not None:
            yield self._scores

    def matrix(self, items: int, width: int) -> Array:
        """Return an array for all scores, which the caller fills."""
        self.hold(items * width * np.dtype(np.float64).itemsize)
        self._matrix = np.empty((items, width))
        return self._matrix

    def _sort(self) -> None:
        """Bring the items into the order of their ids, if they have some."""
        if self.ids is None:
            return
        order = self.ids.order("/item_id")
        for part in self._parts():
            part.sort(order)
        if self._matrix is not None:
            sort_rows(self._matrix, order)

    def take(self, predictions: CodedColumn) -> None:
        """Use the predictions of another body as the baseline."""
        if self._table is not None or COUNT in self._others:
            detail = "The candidate is a table, so the baseline needs one: true classes and counts."
            raise refuse("/baseline", "no_items", detail)
        if self.ids is not None:
            detail = "The items have ids, so the baseline needs `item_id` and `y_true`, too."
            raise refuse("/baseline", "no_id", detail)
        size = predictions.values.size
        if size != self._rows:
            detail = f"It has {plural(size, 'item')} and the candidate {self._rows:,}."
            raise refuse("/baseline/y_pred", "wrong_length", detail)
        self.labels["y_pred_baseline"] = predictions

    def _of_table(self, table: dict[str, object]) -> Document:
        """Return the request with a matrix."""
        document = self._request
        stated = document.rest.get("axis")
        detail = reading(table, stated)
        if stated is None and "axis" not in table and "cells" not in table:
            detail += ' If rows are predictions, say `"axis": "rows_are_predicted"`.'
        arrays = {name: value for name, value in oriented(table, stated).items() if name != "axis"}
        labels = document.arrays.get("labels")
        if labels is not None and arrays.setdefault("labels", labels) != labels:
            raise refuse("/labels", "names_differ", "`labels` are not the names in the table.")
        document.arrays |= arrays
        document.names += tuple(arrays)
        if "axis" in table:
            document.rest["axis"] = table["axis"]
        document.warnings.append(Warning("table_read", "", detail, FILES))
        return document

    def occurring(self) -> frozenset[str]:
        """Return the names of the labels that occur."""
        return frozenset(text for text in self.codes.names(None)[0] if text is not None)

    def _order(self) -> dict[str, list[Label]]:
        """Return the `labels` in the order of ordered categories, if these are all that occur.

        Columns of scores have an order of their own.
        """
        orders = {name: order for name, order in self.orders.items() if order}
        scored = self._scores is not None or self._matrix is not None
        if not orders or scored or "labels" in self._request.arrays:
            return {}
        try:
            order = common_order(orders)
        except ValueError as error:
            raise refuse("/labels", "orders_differ", f"{error}.") from None
        occurring = self.occurring() | self.others
        return {"labels": order} if order and occurring <= frozenset(map(str, order)) else {}

    def document(self) -> Document:
        """Return the request, with the columns in place of the JSON arrays."""
        if self._table is not None:
            return self._of_table(self._table)
        if not self._rows:
            raise refuse("/y_true", "empty", "There are no items, so there is nothing to evaluate.")
        if COUNT in self._others and COUNT not in self.chosen:
            self._note_counts()
        self._refuse_grid()
        self._sort()
        document, other = self._request, self.labels.pop("y_pred_baseline", None)
        arrays: dict[str, object] = {**self.labels, **self._order()}
        arrays |= {_MEMBERS[name]: column.values for name, column in self._others.items()}
        if self.ids is not None:
            arrays["item_id"] = self.ids
        if self._slices:
            slices = self._slices.items()
            arrays["slices"] = {name.removeprefix(SLICE_PREFIX): values for name, values in slices}
        if self._matrix is not None:
            arrays[MATRIX] = self._matrix
        elif self._scores is not None:
            arrays[MATRIX] = self._scores.values
            if "labels" not in document.arrays:
                arrays["labels"] = self._scores.labels
        document.arrays |= arrays
        document.names += tuple(arrays)
        if other is not None:
            self.labels["y_true"].shared = True
            document.rest["baseline"] = {}
            document.inner["baseline"] = Document(
                {}, {"y_pred": other}, ("y_pred",), "/y_pred_baseline"
            )
        return document


def _listed(columns: list[str]) -> str:
    """Name columns of a body, and count those beyond the first ones."""
    unnamed = "one without a name (the index of pandas?)"
    shown = [f"`{name}`" if name else unnamed for name in columns if is_name(name) or not name]
    del shown[_MOST_SHOWN:]
    more = [f"{len(columns) - len(shown)} more"] if len(columns) > len(shown) else []
    return ", ".join(shown + more) or "none"


def _chosen(request: Document) -> dict[str, str]:
    """Take the columns to read, and what they are called in the body, out of a request."""
    mapping = request.rest.pop("columns", None) or dict[str, str]()
    if not isinstance(mapping, dict) or set(map(type, mapping.values())) - {str}:
        detail = "`columns` is an object: the name of each column here, and its name in the body."
        raise refuse("/columns", "dict_type", detail)
    if set(_SHORT) & set(mapping) and {_SHORT.get(name) for name in mapping} & set(mapping):
        raise refuse("/columns", "duplicate_column", "`columns` names a column twice.")
    return {_SHORT.get(name, name): source for name, source in mapping.items()}


def _are_positions(document: Document) -> bool:
    """Whether the labels of the items are positions in the declared classes.

    Refuse a request that has evidence of its own, or positions but no classes.
    """
    for name in EVIDENCE:
        if name in document.names and name not in ("labels", "unclassified", "spurious"):
            detail = "The items are in the columns of the body; give the evidence once."
            raise refuse(f"/{name}", "several_kinds", detail)
    positions = document.rest.pop("codes", False)
    if type(positions) is not bool:
        raise refuse("/codes", "bool_type", "`codes` is true or false.")
    if positions and not isinstance(document.arrays.get("labels"), list):
        detail = "With `codes`, a label is a position in `labels`, which are missing."
        raise refuse("/labels", "required", detail)
    return positions


_NO_LONG_FORM = (
    "Beside a candidate in JSON, a baseline in long form is not read: write it as a matrix, or the "
    "candidate as CSV, too."
)


class BaselineColumns(Columns):
    """The columns of a second body: evidence, or predictions for the items of the first one."""

    def __init__(self, first: Columns, *, untyped: bool, matrix: bool) -> None:
        request = Document({"columns": first.chosen, **first.reading})
        super().__init__(request, first.most, first.hold, untyped=untyped, matrix=matrix)
        self._first = first
        self._predictions: CodedColumn | None = None

    def begin(self, columns: Iterable[str]) -> dict[str, int]:
        """Find out which of the two it is, and check the names of the columns."""
        names = list(columns)
        places = dict(self.selected(names, optional=True))
        if "y_pred_baseline" in self._first.labels:
            raise two_baselines()
        if "y_pred_baseline" in places:
            detail = "A baseline has no column `y_pred_baseline` of its own."
            raise refuse("/baseline", "several_kinds", detail)
        if "y_true" in places:
            return super().begin(names)
        if list(places) != ["y_pred"]:
            detail = (
                "Without `y_true`, a baseline has the column `y_pred` alone, for the same items."
            )
            if "y_pred" not in places:
                detail = f"{missing('y_pred', names)} {detail}"
            raise refuse("/baseline", "unknown_column", detail)
        # Labels have the same codes as in the first body.
        self.codes = self._first.codes
        self._predictions = CodedColumn(self.codes, "/baseline/y_pred", null=True)
        self.labels["y_pred"] = self._predictions
        return places

    def members(self) -> dict[str, Any]:
        """Return it as members of a JSON request."""
        if self._predictions is not None:
            return {"y_pred": _values(self._predictions)}
        document = super().document()
        arrays = document.arrays
        if self._table is not None:
            return arrays | ({"axis": self._table["axis"]} if "axis" in self._table else {})
        if COUNT in arrays:
            raise refuse("/baseline", "long_table", _NO_LONG_FORM)
        if self.ids is not None:
            arrays["item_id"] = self.ids.column.to_pylist()
        slices = {name: _values(column) for name, column in arrays.pop("slices", {}).items()}
        members = {n: _values(a) if isinstance(a, CodedColumn) else a for n, a in arrays.items()}
        return {**members, "slices": slices} if slices else members

    def document(self) -> Document:
        """Return the request of the first body with this baseline."""
        if self._predictions is not None:
            self._first.take(self._predictions)
            return self._first.document()
        if self._table is None:
            self._first.others = self.occurring()
        document = self._first.document()
        with in_baseline():
            other = super().document()
        other.pointer = "/baseline"
        document.names += ("baseline",)
        document.rest["baseline"] = {}
        document.inner["baseline"] = other
        return document


@contextmanager
def in_baseline() -> Iterator[None]:
    """Say of a problem with a second body that it is in the baseline."""
    try:
        yield
    except Problem as problem:
        errors = [
            replace(violation, pointer=f"/baseline{violation.pointer.removeprefix('/baseline')}")
            for violation in problem.errors
        ]
        detail = problem.detail if errors else f"In the baseline: {problem.detail}"
        raise Problem(problem.code, detail, errors=errors, headers=problem.headers) from None


def _values(column: CodedColumn) -> list[Any]:
    """Return the labels of a column, or the numbers of slices that are cut."""
    if column.values.dtype.kind == "f":
        return [None if number != number else number for number in column.values.tolist()]  # noqa: PLR0124 (NaN)
    assert isinstance(column.codes, Vocabulary)  # noqa: S101 (a file has no codes)
    texts, integers = column.codes.names(None)
    names = [int(text) if integers and text is not None else text for text in texts]
    return [names[code] for code in column.values.tolist()]
