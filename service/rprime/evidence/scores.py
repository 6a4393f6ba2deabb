"""Read scores from JSON: n rows of k numbers, or one number per item for two classes."""

import numpy as np

from rprime.core.arrays import Array
from rprime.evidence import numbers
from rprime.problems.problem import refuse

TWO = 2
"""Number of classes for which one column of scores is enough."""
SCORE = numbers.Quantity("A score", low=-float(numbers.MOST))


def read_scores(
    given: object, pointer: str, shape: tuple[int, int], *, without_booleans: bool
) -> Array:
    """Convert the scores of n items for k classes.

    Parameters
    ----------
    given
        n rows of k numbers, as lists or as an array; for two classes also n numbers, or n rows of
        one: the scores of the second class.
    pointer
        JSON pointer to it.
    shape
        (n, k).
    without_booleans
        Whether the numbers are proven to hold no booleans.

    Returns
    -------
    Shape (n, k), float64.

    Raises
    ------
    Problem
        With up to 20 places.
    """
    n, k = shape
    if isinstance(given, np.ndarray):
        return _checked(given, pointer, shape)
    if k == TWO and isinstance(given, list) and given and not isinstance(given[0], list):
        column = numbers.vector(given, pointer, SCORE, n, without_booleans=without_booleans)
        return two_columns(column)
    rows = numbers.lists(given, pointer)
    if k == TWO and len(rows[0]) == 1:
        single = numbers.matrix(rows, pointer, SCORE, (n, 1), without_booleans=without_booleans)
        return two_columns(single[:, 0])
    width = len(rows[0])
    if width != k and all(len(row) == width for row in rows):
        detail = (
            f"The rows have {width} scores for {k} classes; name the class of every column in "
            "`labels`."
        )
        raise refuse(pointer, "wrong_length", detail)
    return numbers.matrix(rows, pointer, SCORE, shape, without_booleans=without_booleans)


def _checked(given: Array, pointer: str, shape: tuple[int, int]) -> Array:
    n, k = shape
    if given.shape == (n, 1) and k == TWO:
        return two_columns(_checked(given, pointer, (n, 1))[:, 0])
    if given.shape != shape:
        detail = f"{n} rows of {k} scores are needed; name the class of every column in `labels`."
        raise refuse(pointer, "wrong_length", detail)
    if not (SCORE.low <= given.min() and given.max() <= numbers.MOST):
        # Negated, so that NaN, for which no comparison holds, is bad as well.
        bad = ~((given >= SCORE.low) & (given <= numbers.MOST))
        numbers.raise_places(np.argwhere(bad), pointer, "out_of_range", SCORE.rule)
    return given


def two_columns(second: Array) -> Array:
    """Complete the scores (n,) of the second of two classes.

    Returns
    -------
    Shape (n, 2): the first column is 1 - second if all scores are probabilities, else -second.
    """
    low, high = second.min(), second.max()
    first = 1 - second if low >= 0 and high <= 1 else -second
    return np.stack((first, second), axis=-1)
