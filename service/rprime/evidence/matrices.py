"""Read the options that are matrices: costs, cell weights and kappa weights."""

import numpy as np

from rprime.core.arrays import Array
from rprime.evidence import numbers
from rprime.schemas.document import Document

MATRICES = {"cost": numbers.COST, "cell_weights": numbers.WEIGHT, "kappa_weights": numbers.WEIGHT}
"""The options that may be matrices, and what their numbers mean."""


def read_matrices(document: Document, k: int) -> dict[str, Array]:
    """Read the options that are matrices for k classes."""
    found = {}
    for name, quantity in MATRICES.items():
        rows = document.arrays.get(name)
        if rows is not None:
            pointer = f"{document.pointer}/{name}"
            given = numbers.lists(rows, pointer)
            # The cost may have a further column, for unclassified items.
            width = k + 1 if name == "cost" and len(given[0]) == k + 1 else k
            found[name] = numbers.matrix(
                given, pointer, quantity, (k, width), without_booleans=document.without_booleans
            )
    if "kappa_weights" in found:
        bad = np.repeat(np.flatnonzero(np.diagonal(found["kappa_weights"]))[:, None], 2, axis=1)
        detail = "Disagreement weights must be 0 on the diagonal, which is agreement."
        numbers.raise_places(bad, f"{document.pointer}/kappa_weights", "not_zero", detail)
    return found
