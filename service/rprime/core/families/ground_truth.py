"""The ground-truth index: recall corrected for chance as the errors show it."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import Counts
from rprime.core.index import AT_MOST_ONE, per_class, unidentifiable

TOLERANCE = 1e-12
MOST_ROUNDS = 10_000


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
    same shape; NaN where it did not converge in 10 000 rounds.
    """
    tables = (-1, row_errors.shape[-1])
    rows, columns = row_errors.reshape(tables), column_errors.reshape(tables)
    shares = np.full(columns.shape, np.nan)
    active = np.arange(len(columns))
    share = columns / np.add.reduce(columns, axis=-1, keepdims=True)
    for _ in range(MOST_ROUNDS):
        # The scale of beta is free: with sum 1, beta is the share itself.
        alpha = rows / (1 - share)
        beta = columns / (np.add.reduce(alpha, axis=-1, keepdims=True) - alpha)
        before, share = share, beta / np.add.reduce(beta, axis=-1, keepdims=True)
        change = np.maximum.reduce(np.abs(share - before), axis=-1)
        # NaN compares false, so a table that cannot be fitted ends as undefined.
        going = change >= TOLERANCE
        if not going.all():
            done = change < TOLERANCE
            shares[active[done]] = share[done]
            active, rows, columns, share = (v[going] for v in (active, rows, columns, share))
            if not active.size:
                break
    return shares.reshape(column_errors.shape)
