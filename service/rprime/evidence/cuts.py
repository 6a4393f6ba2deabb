"""Cut columns of numbers into slices."""

from collections.abc import Sequence

import numpy as np

from rprime.core.arrays import Array
from rprime.core.slices.slices import SliceColumn
from rprime.problems.problem import refuse

PARTS = 4
"""Parts of equal size into which a column is cut by default."""
FEW = 10
"""So many numbers are names, as those of a scale, unless their cut is asked for."""


def as_numbers(texts: Sequence[str | None], codes: Array) -> Array | None:
    """Return the numbers that texts are, shape (n,), NaN without one; None if one is no number.

    Parameters
    ----------
    texts
        The distinct texts.
    codes
        Shape (n,): positions in them.
    """
    try:
        return np.array([np.nan if text is None else float(text) for text in texts])[codes]
    except ValueError:
        return None


def are_few(numbers: Array) -> bool:
    """Whether there are few different numbers."""
    known = numbers[np.isfinite(numbers)]
    # A thousand most likely tell.
    return len(np.unique(known[:1000])) <= FEW and len(np.unique(known)) <= FEW


def cut_column(numbers: Array, cut: int | list[float], pointer: str) -> SliceColumn:
    """Cut numbers into slices.

    Parameters
    ----------
    numbers
        Shape (n,); an item whose number is not finite is in no slice.
    cut
        The numbers at which slices begin, ascending, or how many slices of about equal size there
        are. Equal numbers stay together, so that there may be fewer.
    pointer
        JSON pointer to the column.
    """
    finite = np.isfinite(numbers)
    known = numbers[finite]
    if not known.size:
        raise refuse(pointer, "empty", "No item has a number; leave this name out.")
    edges = np.asarray(cut, dtype=float) if isinstance(cut, list) else _quantiles(known, cut)
    if (np.diff(edges) <= 0).any():
        raise refuse(pointer, "not_ascending", "The numbers of a cut ascend.")
    codes = np.searchsorted(edges, numbers, side="right").astype(np.uint16)
    found = np.where(finite, codes, np.uint16(edges.size + 1))
    return SliceColumn.cut(edges.tolist(), found)


def _quantiles(known: Array, parts: int) -> Array:
    """Return the numbers at which parts of about equal size begin."""
    found = np.unique(np.quantile(known, np.arange(1, parts) / parts, method="higher"))
    lowest = known.min()
    found = found[found > lowest]
    if found.size or known.max() == lowest:
        return found if found.size else np.array([lowest])
    return np.array([known[known > lowest].min()])  # nearly all are the lowest
