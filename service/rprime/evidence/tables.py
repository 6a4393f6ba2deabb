"""Read confusion matrices and cells."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.table import ConfusionTable
from rprime.evidence import names, numbers
from rprime.problems.problem import refuse
from rprime.schemas.document import Document
from rprime.settings import Limits

_OMISSIONS = ("unclassified", "spurious")


def labels_of(document: Document, most: int) -> tuple[str, ...]:
    """Read the declared classes of a request."""
    return names.declared(document.arrays["labels"], f"{document.pointer}/labels", most)


def vector_of(document: Document, name: str, quantity: numbers.Quantity, size: int) -> Array | None:
    """Read an array of numbers of a request; None if it has none."""
    given = document.arrays.get(name)
    if given is None or isinstance(given, np.ndarray):
        return given
    pointer, proven = f"{document.pointer}/{name}", document.without_booleans
    return numbers.vector(given, pointer, quantity, size, without_booleans=proven)


def read_matrix(document: Document, limits: Limits) -> tuple[tuple[str, ...], ConfusionTable]:
    """Read a confusion matrix and its classes."""
    arrays, pointer = document.arrays, f"{document.pointer}/confusion_matrix"
    rows = numbers.lists(arrays["confusion_matrix"], pointer)
    k, most = len(rows), limits.dense_classes
    if k > most:
        raise names.too_many(k, pointer, most)
    if len(rows[0]) != k and len(set(map(len, rows))) == 1:
        detail = f"The matrix is {k} x {len(rows[0])}, rows x columns; it must be square."
        raise refuse(pointer, "not_square", detail)
    proven = document.without_booleans
    counts = numbers.matrix(rows, pointer, numbers.COUNT, (k, k), without_booleans=proven)
    labels = names.numbered(k) if arrays.get("labels") is None else labels_of(document, most)
    if len(labels) != k:
        detail = f"`labels` has length {len(labels)}; {k} is needed, one for each class."
        raise refuse(f"{document.pointer}/labels", "wrong_length", detail)
    table = ConfusionTable.dense(
        counts.T if document.rest.get("axis") == "rows_are_predicted" else counts,
        **{
            name: vector_of(document, name, numbers.COUNT, k)
            for name in _OMISSIONS
            if name in arrays
        },
        weighted=document.rest.get("weighted") is True,
    )
    return labels, table


def read_cells(document: Document, limits: Limits) -> tuple[tuple[str, ...], ConfusionTable]:
    """Read the non-empty cells of a confusion matrix, and its classes."""
    if document.arrays.get("labels") is None:
        detail = "`cells` need `labels`, which define the number of classes."
        raise refuse(f"{document.pointer}/labels", "required", detail)
    labels = labels_of(document, limits.sparse_classes)
    k = len(labels)
    rows, columns, counts = _cells(document, k)
    if document.rest.get("axis") == "rows_are_predicted":
        rows, columns = columns, rows
    table = counted_table(
        rows * (k + 1) + columns,
        counts,
        k,
        limits,
        **{name: vector_of(document, name, numbers.COUNT, k) for name in _OMISSIONS},
        weighted=document.rest.get("weighted") is True,
    )
    return labels, table


def _cells(document: Document, k: int) -> tuple[Array, Array, Array]:
    pointer, proven = f"{document.pointer}/cells", document.without_booleans
    triples = numbers.lists(document.arrays["cells"], pointer)
    shape = (len(triples), 3)
    cells = numbers.matrix(triples, pointer, numbers.COUNT, shape, without_booleans=proven)
    bad = np.argwhere((cells[:, :2] >= k) | (cells[:, :2] != np.rint(cells[:, :2])))
    detail = f"A cell is [true, predicted, count] with class numbers from 0 to {k - 1}."
    numbers.raise_places(bad, pointer, "class_number", detail)
    return cells[:, 0].astype(np.int64), cells[:, 1].astype(np.int64), cells[:, 2]


def counted_table(
    joint: Array,
    counts: Array | None,
    k: int,
    limits: Limits,
    *,
    unclassified: Array | None = None,
    spurious: Array | None = None,
    weighted: bool = False,
) -> ConfusionTable:
    """Count cells given as row * (k + 1) + column, where column k is "unclassified"."""
    if k <= limits.dense_classes:
        table = np.bincount(joint, counts, k * (k + 1)).reshape(k, k + 1)
        omitted = table[:, k] if unclassified is None else unclassified
        return ConfusionTable.dense(table[:, :k], omitted, spurious, weighted=weighted)
    if counts is None:
        joint, counts = np.unique(joint, return_counts=True)
    rows, columns = np.divmod(joint, k + 1)
    in_table = columns < k
    if unclassified is None and not in_table.all():
        unclassified = np.bincount(rows[~in_table], counts[~in_table], k)
    return ConfusionTable.sparse(
        rows[in_table],
        columns[in_table],
        counts[in_table],
        k,
        unclassified=unclassified,
        spurious=spurious,
        weighted=weighted,
    )
