"""The ground-truth index: recall corrected for chance as the errors show it."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import Counts
from rprime.core.fixed_point import fixed_point
from rprime.core.index import AT_MOST_ONE, per_class, unidentifiable


@per_class(
    symbol="GT_j",
    name="Ground-truth index",
    tex=r"\frac{TPR_j - b_j}{1 - b_j}",
    source="Tuerk 1979",
    range=AT_MOST_ONE,
    universe="classified",
    undefined=("no_true_samples", "not_identifiable", "did_not_converge"),
)
def gt_index(c: Counts) -> Array:
    """Recall beyond the rate at which the class attracts errors by chance.

    b_j is the class's share under quasi-independence, fitted to the off-diagonal cells alone.
    Without errors the index is 1. It cannot be identified for fewer than three classes, or if
    every error involves the same class.
    """
    recall = c.tp / c.support
    unfittable = unidentifiable(c)
    # Where no fit exists, 0/0 ends the iteration in the first round.
    chance = chance_shares(c.fn, np.where(unfittable[..., None], np.nan, c.fp))
    error_free = np.add.reduce(c.fp, axis=-1) == 0
    identifiable = c.fp.shape[-1] > 2
    index = (recall - chance) / (1 - chance)
    return np.where((error_free & identifiable)[..., None], recall, index)


def chance_shares(row_errors: Array, column_errors: Array) -> Array:
    """Fit alpha_i beta_j to the off-diagonal cells by iterative proportional fitting.

    Of errors (..., k) of each true and each predicted class, return b = beta / sum(beta), of the
    same shape; NaN where it was not found.
    """

    def advance(share: Array) -> Array:
        # The scale of beta is free: with sum 1, beta is the share itself.
        alpha = row_errors / (1 - share)
        beta = column_errors / (np.add.reduce(alpha, axis=-1, keepdims=True) - alpha)
        return beta / np.add.reduce(beta, axis=-1, keepdims=True)

    shares = column_errors / np.add.reduce(column_errors, axis=-1, keepdims=True)
    return fixed_point(advance, shares)
