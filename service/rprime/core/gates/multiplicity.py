"""Multiplicity: adjusting p-values over many results, and a level over many looks."""

import numpy as np
from numpy.typing import ArrayLike

from rprime.core.arrays import FloatArray


def holm(p: ArrayLike) -> FloatArray:
    """Adjust p-values for the family-wise error rate, each last axis one family.

    Parameters
    ----------
    p
        Shape (..., m), in [0, 1]. NaN marks a result without a test: it stays NaN and does not
        enlarge the family.

    Returns
    -------
    Shape (..., m): the smallest family-wise level at which each would be rejected, at most 1.

    Notes
    -----
    Source: Holm 1979. Valid under any dependence between the results.
    """
    values = np.asarray(p, dtype=np.float64)
    rows = np.atleast_1d(values)
    order = np.argsort(rows, axis=-1)  # NaN comes last
    tested = np.count_nonzero(~np.isnan(rows), axis=-1, keepdims=True)
    still_standing = np.maximum(tested - np.arange(rows.shape[-1]), 1)
    stepped = np.take_along_axis(rows, order, axis=-1) * still_standing
    adjusted = np.empty_like(rows)
    np.put_along_axis(
        adjusted, order, np.minimum(np.maximum.accumulate(stepped, axis=-1), 1.0), axis=-1
    )
    return adjusted.reshape(values.shape)


def spent_alpha(alpha: ArrayLike, look: ArrayLike) -> FloatArray:
    """Level for one of an unlimited number of looks at the same test set: 6 alpha/(pi^2 t^2).

    Parameters
    ----------
    alpha
        Level of all looks together, in (0, 1).
    look
        Number t of this look, from 1; broadcasts with `alpha`.

    Returns
    -------
    Levels that sum to `alpha` over all looks; NaN for a look before the first.

    Notes
    -----
    The sum of 1/t^2 is pi^2/6 (Euler), so the union bound holds however many looks follow.
    """
    level, turn = np.broadcast_arrays(
        np.asarray(alpha, dtype=np.float64), np.asarray(look, dtype=np.float64)
    )
    counted = turn >= 1
    spent = 6 * level / (np.pi * np.where(counted, turn, 1.0)) ** 2
    return np.where(counted, spent, np.nan)
