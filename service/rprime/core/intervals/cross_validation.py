"""Intervals of means over the splits of repeated cross-validation or random subsampling."""

import numpy as np

from rprime.core import special
from rprime.core.arrays import Array


def corrected_interval(
    values: Array, *, test_share: float, confidence: float = 0.95
) -> tuple[Array, Array, Array]:
    """Compute the mean of one value per split, with its interval.

    The training sets of the splits overlap, so that their values are clusters of the same items
    and not independent: the variance of the mean is not s²/J but (1/J + n_test/n_train) s², and
    the mean has a t-distribution with J - 1 degrees of freedom (Nadeau, Bengio 2003, Inference for
    the generalization error, section 3; Bouckaert, Frank 2004 for repeated cross-validation). The
    correction is approximate: no unbiased estimate of that variance exists (Bengio, Grandvalet
    2004).

    Parameters
    ----------
    values
        Shape (..., J): a value, or the difference of two models, for each of J splits.
    test_share
        n_test/n_train, the ratio of the sizes of the two parts of a split; above 0.

    Returns
    -------
    mean, low, high
        Shape (...); the limits are NaN for a single split, all three if a value is.
    """
    numbers = np.asarray(values, dtype=float)
    splits = numbers.shape[-1]
    mean = numbers.mean(axis=-1)
    if splits < 2:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    variance = (1 / splits + test_share) * numbers.var(axis=-1, ddof=1)
    margin = special.stdtrit(splits - 1, (1 + confidence) / 2) * np.sqrt(variance)
    return mean, mean - margin, mean + margin
