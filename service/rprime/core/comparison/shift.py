"""Tests whether predictions shifted between two classifiers on the same items."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from rprime.core.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class ShiftTest:
    """A chi-square test on tables of old (rows) versus new (columns) predictions.

    Parameters
    ----------
    statistic
        Shape (...): the shape of the stack of tables.
    df
        Shape (...), degrees of freedom; 0 where the test does not exist.
    p_value
        Shape (...), of a larger statistic; NaN where `df` is 0.
    """

    statistic: FloatArray
    df: NDArray[np.int64]
    p_value: FloatArray


def bowker(table: ArrayLike) -> ShiftTest:
    """Test of symmetry: each move between two classes is as frequent as the move back.

    Parameters
    ----------
    table
        Shape (..., k, k), non-negative: items by old (row) and new (column) prediction.

    Returns
    -------
    The test, with one degree of freedom for every pair of classes between which an item moved;
    statistic 0, df 0 and p NaN if none did.

    Notes
    -----
    Source: Bowker 1948: sum of (n_ij - n_ji)^2 / (n_ij + n_ji) over i < j.
    """
    counts = np.asarray(table, dtype=np.float64)
    moved, surplus = _moves(counts), counts - counts.mT
    terms = surplus * surplus / np.where(moved > 0, moved, 1.0)
    return _chi_square(terms.sum((-2, -1)) / 2, np.count_nonzero(moved, axis=(-2, -1)) // 2)


def stuart_maxwell(table: ArrayLike) -> ShiftTest:
    """Test of marginal homogeneity: each class is predicted equally often by both classifiers.

    Parameters
    ----------
    table
        Shape (..., k, k), non-negative: items by old (row) and new (column) prediction. Costs
        k^3; the caller may remove classes that no item left or entered.

    Returns
    -------
    The test, with as many degrees of freedom as classes with moves, minus one for each connected
    part of these classes. Statistic NaN, df 0 and p NaN if nothing moved.

    Notes
    -----
    Source: Stuart 1955; Maxwell 1970: d' V^-1 d with d the differences of the margins and V
    their covariance. V is the Laplacian of the graph of moves: singular, with one null vector,
    constant, for each connected part. d is orthogonal to those, so adding their projectors
    makes V invertible without changing the statistic.
    """
    counts = np.asarray(table, dtype=np.float64)
    moves = _moves(counts)
    degree = moves.sum(-1)
    difference = counts.sum(-1) - counts.sum(-2)
    together = _connected(moves > 0)
    size = together.sum(-1, keepdims=True)
    unit = np.maximum(degree.max(-1, initial=0.0), 1.0)[..., None, None]
    covariance = degree[..., None] * np.eye(counts.shape[-1]) - moves + unit * together / size
    solved = np.linalg.solve(covariance, difference[..., None])[..., 0]
    df = np.rint(counts.shape[-1] - (1 / size).sum((-2, -1))).astype(np.int64)
    statistic = np.where(df > 0, (difference * solved).sum(-1), np.nan)
    return _chi_square(statistic, df)


def _moves(counts: FloatArray) -> FloatArray:
    """Return the items that moved between two classes, in either direction, shape (..., k, k)."""
    return (counts + counts.mT) * (1 - np.eye(counts.shape[-1]))


def _connected(neighbours: NDArray[np.bool_]) -> FloatArray:
    """Return 1 where two classes are in the same connected part, shape (..., k, k)."""
    reach = (neighbours | np.eye(neighbours.shape[-1], dtype=bool)).astype(np.float64)
    while True:
        farther = np.minimum(reach @ reach, 1.0)
        if np.array_equal(farther, reach):
            return reach
        reach = farther


def _chi_square(statistic: FloatArray, df: NDArray[np.int64] | int) -> ShiftTest:
    degrees = np.asarray(df, dtype=np.int64)
    p_value = np.where(degrees > 0, special.chdtrc(degrees.astype(np.float64), statistic), np.nan)
    return ShiftTest(np.asarray(statistic), degrees, p_value)
