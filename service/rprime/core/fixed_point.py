"""Fixed points of slow iterations, for each table of a stack at once."""

from collections.abc import Callable

import numpy as np

from rprime.core.arrays import Array

TOLERANCE = 1e-13
MOST_ROUNDS = 150


def fixed_point(advance: Callable[[Array], Array], start: Array) -> Array:
    """Return x >= 0 with advance(x) = x, shape (..., k); NaN where none was found.

    Parameters
    ----------
    advance
        One round of the iteration. A row that becomes NaN has no solution.
    start
        Where the iteration starts.

    Notes
    -----
    SQUAREM (Varadhan and Roland 2008, scheme S3) extrapolates two rounds. Without it, tables with
    few errors need thousands of rounds. It stops after 150 extrapolations.
    """
    solution, now, going = (
        np.full(start.shape, np.nan),
        start,
        np.ones(start.shape[:-1], dtype=bool),
    )
    for _ in range(MOST_ROUNDS):
        once = advance(now)
        twice = advance(once)
        moved = np.maximum.reduce(np.abs(twice - once), axis=-1)
        done = going & (moved < TOLERANCE) & (np.minimum.reduce(twice, axis=-1) >= 0)
        solution[done] = twice[done]
        # NaN compares false, so a row without a solution ends.
        going &= moved >= TOLERANCE
        if not going.any():
            break
        now = np.where(going[..., None], _extrapolated(now, once, twice), now)
    return solution


def _extrapolated(start: Array, once: Array, twice: Array) -> Array:
    """Return where two rounds lead to, shape (..., k); the second one where that is negative."""
    step = once - start
    bend = twice - once - step
    step_length, bend_length = (np.add.reduce(x * x, axis=-1, keepdims=True) for x in (step, bend))
    length = np.maximum(np.sqrt(step_length / bend_length), 1)
    jump = start + length * (2 * step + length * bend)
    return np.where(np.minimum.reduce(jump, axis=-1, keepdims=True) >= 0, jump, twice)
