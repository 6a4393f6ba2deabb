"""Convert the groups that an engine has counted to the cells of a confusion table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.cells import DenseCells
from rprime.core.labels import read_texts
from rprime.core.slices.slices import SliceColumn, Slices

Label = str | None

_LABELS = "a label is a text or an integer"
_MOST_NAMED = 5
_MISSING = {"NAType", "NaTType"}


class TallyError(ValueError):
    """The predictions cannot be read or counted; the message says why, for people."""


@dataclass(frozen=True, eq=False)
class Tally:
    """The non-empty cells of a confusion table."""

    labels: tuple[str, ...]
    """The declared classes, else those that occur: integers by value, other names by code point."""
    cells: Array
    """Shape (c, 3): numbers of the true and the predicted class, and items."""
    unclassified: Array
    """Shape (k,): items of each class without a prediction."""
    items: Array | None
    """Shape (k,): items of each true class, where counts are weights; None if these are items."""
    slices: Slices | None = None

    def evidence(self) -> dict[str, Any]:
        """Return the table as members of a request."""
        return {
            "labels": list(self.labels),
            "cells": self.cells,
            "unclassified": self.unclassified,
            "weighted": self.items is not None,
            **({} if self.items is None else {"class_items": self.items}),
            **({} if self.slices is None else {"slices": slice_tables(self.slices)}),
        }


def slice_tables(slices: Slices) -> list[dict[str, Any]]:
    """Return the tables of slices as the member `slices` of a request with a table."""
    cells, silent = slices.tables.cells, slices.tables.unclassified
    assert isinstance(cells, DenseCells)  # noqa: S101 (the type)
    sliced: list[dict[str, Any]] = [{"slice": dict(name), "cells": []} for name in slices.names]
    places = np.nonzero(cells.counts)
    for place, *cell in zip(*(a.tolist() for a in (*places, cells.counts[places])), strict=True):
        sliced[place]["cells"].append(cell)
    for i, table in enumerate(sliced):
        table["cells"] = table["cells"] or [[0, 0, 0]]  # all of its items are unclassified
        if silent is not None:
            table["unclassified"] = silent[i].tolist()
    return sliced


def tables(
    columns: dict[str, list[Any]],
    items: Array,
    *,
    weights: Array | None,
    labels: Sequence[str] | None,
    slices: Mapping[str, SliceColumn],
    crossings: Sequence[tuple[str, ...]],
) -> list[Tally]:
    """Convert the counts of an engine to the table of the first column with each of the others.

    Given are the labels of the groups as Python values, by column, that of the true classes first;
    the items of each group, and their weight if they do not count once; the declared classes in
    their order; the slices of the groups, and the names whose values are combined. A `TallyError`
    says that a label is neither a text nor an integer, both kinds occur, or one is not declared.
    """
    kinds: set[type] = set()
    (true, rows), *others = [_encoded(column, name, kinds) for name, column in columns.items()]
    # Declared classes are looked up by name, whatever the kind of the labels.
    if labels is None and len(kinds) > 1:
        raise TallyError("the labels are all texts or all integers, in every column of labels")
    tallies = []
    for predicted, places in others:
        names = {label for label in (*true, *predicted) if label is not None}
        ordered = sorted(names, key=int if kinds == {int} else str)
        classes = tuple(ordered if labels is None else labels)
        if undeclared := names.difference(classes):
            named = ", ".join(sorted(map(repr, undeclared))[:_MOST_NAMED])
            raise TallyError(
                f"{len(undeclared):,} of the labels that occur are not among the declared ones: "
                f"{named}{', ...' if len(undeclared) > _MOST_NAMED else ''}"
            )
        k = len(classes)
        cells = _codes(true, classes)[rows] * (k + 1) + _codes(predicted, classes)[places]
        tally = _table(cells, classes, items, weights)
        if slices:
            tally = replace(tally, slices=Slices.of_items(slices, crossings, cells, k, items))
        tallies.append(tally)
    return tallies


def _codes(column: list[Label], labels: tuple[str, ...]) -> Array:
    """Return the positions of labels; behind all of them for no label."""
    codes: dict[Label, int] = {label: code for code, label in enumerate((*labels, None))}
    return np.fromiter(map(codes.__getitem__, column), np.int64, len(column))


def _table(cells: Array, labels: tuple[str, ...], items: Array, weights: Array | None) -> Tally:
    """Return the table of groups by their cells."""
    k = len(labels)
    joint, group = np.unique(cells, return_inverse=True)
    rows, places = np.divmod(joint, k + 1)
    numbers = np.rint(np.bincount(group, items, joint.size)).astype(np.int64)
    counts = numbers if weights is None else np.bincount(group, weights, joint.size)
    classified = places < k
    unclassified = np.zeros(k, counts.dtype)
    unclassified[rows[~classified]] = counts[~classified]
    cells = np.stack((rows[classified], places[classified], counts[classified]), axis=-1)
    class_items = np.bincount(rows, numbers, k).astype(np.int64)
    return Tally(labels, cells, unclassified, None if weights is None else class_items)


def typed(columns: dict[str, list[Any]], labels: Sequence[str] | None) -> dict[str, list[Any]]:
    """Return columns of a format without types as what their texts mean."""
    texts = sorted(
        {text for column in columns.values() for text in column if isinstance(text, str)}
    )
    classes, numeric = read_texts(texts, labels)
    meant: dict[str, Any] = dict(zip(texts, classes, strict=True))
    if numeric and labels is None:
        meant = {text: name and int(name) for text, name in meant.items()}
    return {
        column: [meant[item] if isinstance(item, str) else item for item in items]
        for column, items in columns.items()
    }


def slice_column(values: list[Any], name: str) -> SliceColumn:
    """Return the slices of groups by their values, integers by value and texts by code point."""
    kinds: set[type] = set()
    texts, places = _encoded(values, name, kinds)
    if len(kinds) > 1:
        raise TallyError(f"the slices {name} are all texts or all integers")
    distinct = sorted(
        {text for text in texts if text is not None}, key=int if int in kinds else str
    )
    if not distinct:
        raise TallyError(f"no item has a value of the slices {name}; leave them out")
    return SliceColumn(tuple(distinct), _codes(texts, tuple(distinct))[places])


def is_missing(value: Any) -> bool:  # noqa: ANN401 (of any library)
    """Whether a value is null, NA or NaN."""
    if value is None or type(value).__name__ in _MISSING:
        return True
    return bool(value != value)  # noqa: PLR0124 (NaN)


def _encoded(column: Sequence[Any], name: str, kinds: set[type]) -> tuple[list[Label], Array]:
    """Return the distinct labels of a column, whose kinds are added, and its positions in them."""
    codes: dict[Any, int] = {}
    try:
        places = np.array([codes.setdefault(value, len(codes)) for value in column])
    except TypeError:
        raise TallyError(f"the column {name} holds lists; {_LABELS}") from None
    labels = [_label(value, name) for value in codes]
    kinds |= {type(label) for label in labels if label is not None}
    return [None if label is None else str(label) for label in labels], places


def _label(value: Any, name: str) -> str | int | None:  # noqa: ANN401 (of any library)
    if is_missing(value):
        return None
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool | np.bool):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return int(value)
    raise TallyError(f"the column {name} holds a {type(value).__name__}; {_LABELS}")
