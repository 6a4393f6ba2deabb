"""Read confusion matrices, cells, and the options that are matrices."""

from dataclasses import replace

import numpy as np

from rprime.core.arrays import Array
from rprime.core.labels import is_total
from rprime.core.table import ConfusionTable
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.evidence import names, numbers
from rprime.problems.problem import Problem, invalid, refuse
from rprime.schemas.document import Document
from rprime.settings import Limits

LABELS = "docs/cli.md#labels"
MATRICES = {"cost": numbers.COST, "cell_weights": numbers.WEIGHT, "kappa_weights": numbers.WEIGHT}
"""The options that may be matrices, and what their numbers mean."""
_OMISSIONS = {"unclassified", "spurious"}
_ROWS_OF_TOTALS = 3
"""Two classes and their totals."""
_ITEMS_OF_TOTALS = 30
"""With so many, no counts are the sums of all others by chance."""
_ARE_TOTALS = (
    "The last row and the last column are the sums of the others: totals, not a class. Leave them "
    "out, as `pandas.crosstab` does without `margins`."
)
_MAY_BE_TOTALS = (
    "The last row and the last column are the sums of the others. If they are totals, leave them "
    "out, as `pandas.crosstab` does without `margins`."
)


def declared_labels(document: Document, most: int) -> tuple[str, ...]:
    """Read the declared classes of a request."""
    return names.declared(document.arrays["labels"], f"{document.pointer}/labels", most)


def read_matrix(document: Document, limits: Limits) -> tuple[tuple[str, ...], ConfusionTable]:
    """Read a confusion matrix and its classes."""
    arrays, pointer = document.arrays, f"{document.pointer}/confusion_matrix"
    numbers.lists(document, "confusion_matrix")
    _leave_out_totals(document)
    rows = arrays["confusion_matrix"]
    k, most = len(rows), limits.dense_classes
    if k > most:
        raise names.too_many_classes(k, pointer, most)
    if len(rows[0]) != k and len(set(map(len, rows))) == 1:
        detail = f"The matrix is {k} x {len(rows[0])}, rows x columns; it must be square."
        raise refuse(pointer, "not_square", detail)
    counts = numbers.matrix(document, "confusion_matrix", numbers.COUNT, (k, k))
    labels = (
        names.number_names(k) if arrays.get("labels") is None else declared_labels(document, most)
    )
    if len(labels) != k:
        detail = f"`labels` has length {len(labels)}; {k} is needed, one for each class."
        raise refuse(f"{document.pointer}/labels", "wrong_length", detail)
    if k >= _ROWS_OF_TOTALS and np.add.reduce(counts[-1]) == 2 * counts[-1, -1]:
        _doubt_totals(document, counts, pointer)
    _note_background(document, labels, counts)
    turned = document.rest.get("axis") == "rows_are_predicted"
    omissions = _OMISSIONS & arrays.keys()
    table = ConfusionTable.dense(
        counts.T if turned else counts,
        **{name: numbers.optional_vector(document, name, numbers.COUNT, k) for name in omissions},
        weighted=document.rest.get("weighted") is True,
    )
    return labels, _with_items(document, table) if "class_items" in document.arrays else table


def _with_items(document: Document, table: ConfusionTable) -> ConfusionTable:
    """Add the numbers of items behind the weights, if the request has them."""
    items = numbers.optional_vector(document, "class_items", numbers.COUNT, table.k)
    if items is None:
        return table
    pointer = f"{document.pointer}/class_items"
    if not table.weighted:
        detail = "Without `weighted: true` the counts are the numbers of items: leave it out."
        raise refuse(pointer, "not_weighted", detail)
    bad = np.argwhere((items != np.rint(items)) | ((items > 0) != (table.support > 0)))
    detail = "It is a whole number of items: 0 where the class weighs nothing, else 1 or more."
    numbers.raise_places(bad, pointer, "not_items", detail)
    return replace(table, items=items.astype(np.float64))


def _note_background(document: Document, labels: tuple[str, ...], counts: Array) -> None:
    """Say of a class `background` that detectors write their omissions so."""
    for place, label in enumerate(labels):
        if label.casefold() == "background" and counts[place, place] == 0:
            detail = (
                f"`{label}` counts as a class. If its row and column are detections without an "
                "object and objects without one, send these as `spurious` and `unclassified`."
            )
            document.warnings.append(Warning("label_is_background", "/labels", detail, LABELS))


def _leave_out_totals(document: Document) -> None:
    """Leave out a last row and column of totals that are called so, and say it."""
    labels, rows = document.arrays.get("labels"), document.arrays["confusion_matrix"]
    if not isinstance(labels, list) or len(labels) != len(rows) or not is_total(labels[-1]):
        return
    if {len(row) for row in rows} != {len(rows)} or len(rows) < _ROWS_OF_TOTALS:
        return
    values = numbers.flat(rows, numbers.COUNT, without_booleans=document.without_booleans)
    if values is None or not _has_totals(values.reshape(len(rows), -1)):
        return
    document.arrays["labels"] = labels[:-1]
    document.arrays["confusion_matrix"] = [row[:-1] for row in rows[:-1]]
    detail = f"The row and the column `{labels[-1]}` hold totals and were left out."
    pointer = f"{document.pointer}/confusion_matrix"
    document.warnings.append(Warning("totals_left_out", pointer, detail, LABELS))


def _has_totals(counts: Array) -> bool:
    """Whether the last row and column are the sums of the others."""
    return all(np.allclose(side[-1], np.add.reduce(side[:-1])) for side in (counts, counts.T))


def _doubt_totals(document: Document, counts: Array, pointer: str) -> None:
    """Refuse a last row and column that are the sums of the others, as `crosstab` adds them.

    Say it of few items, whose sums may be equal by chance.
    """
    if counts[-1, -1] == 0 or not _has_totals(counts):
        return
    if counts[-1, -1] >= _ITEMS_OF_TOTALS:
        raise refuse(pointer, "totals", _ARE_TOTALS)
    document.warnings.append(Warning("totals_suspected", pointer, _MAY_BE_TOTALS, LABELS))


def read_cells(document: Document, limits: Limits) -> tuple[tuple[str, ...], ConfusionTable]:
    """Read the non-empty cells of a confusion matrix, and its classes."""
    if document.arrays.get("labels") is None:
        detail = "`cells` need `labels`, which define the number of classes."
        raise refuse(f"{document.pointer}/labels", "required", detail)
    labels = declared_labels(document, limits.sparse_classes)
    k = len(labels)
    shape = (len(numbers.lists(document, "cells")), 3)
    detail = f"A cell is [true, predicted, count] with class numbers from 0 to {k - 1}."
    try:
        cells = numbers.matrix(document, "cells", numbers.COUNT, shape)
    except Problem as problem:
        raise invalid(
            replace(violation, code="class_number", detail=detail)
            if violation.code in numbers.FAULTS and violation.pointer.endswith(("/0", "/1"))
            else violation
            for violation in problem.errors
        ) from None
    places, counts = cells[:, :2], cells[:, 2]
    bad = np.argwhere((places >= k) | (places != np.rint(places)))
    numbers.raise_places(bad, f"{document.pointer}/cells", "class_number", detail)
    rows, columns = places.T.astype(np.int64)
    if document.rest.get("axis") == "rows_are_predicted":
        rows, columns = columns, rows
    omissions = _OMISSIONS & document.arrays.keys()
    table = ConfusionTable.of_cells(
        rows * (k + 1) + columns,
        counts,
        k,
        dense=k <= limits.dense_classes,
        **{name: numbers.optional_vector(document, name, numbers.COUNT, k) for name in omissions},
        weighted=document.rest.get("weighted") is True,
    )
    return labels, _with_items(document, table) if "class_items" in document.arrays else table


def read_matrices(document: Document, k: int) -> dict[str, Array]:
    """Read the options that are matrices for k classes."""
    matrices = {}
    for name, quantity in MATRICES.items():
        if document.arrays.get(name) is not None:
            rows = numbers.lists(document, name)
            # The cost may have a further column, for unclassified items.
            width = k + 1 if name == "cost" and len(rows[0]) == k + 1 else k
            matrices[name] = numbers.matrix(document, name, quantity, (k, width))
    if "kappa_weights" in matrices:
        bad = np.repeat(np.flatnonzero(np.diagonal(matrices["kappa_weights"]))[:, None], 2, axis=1)
        detail = "Disagreement weights must be 0 on the diagonal, which is agreement."
        numbers.raise_places(bad, f"{document.pointer}/kappa_weights", "not_zero", detail)
    return matrices
