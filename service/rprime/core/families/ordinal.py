"""Measures of ordered classes: how far, in ranks, predictions are from the truth."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.cells import DenseCells, SparseCells
from rprime.core.families.agreement import mean_weight
from rprime.core.index import NON_NEGATIVE, SIGNED, UNIT, mean_of_items, overall, per_class
from rprime.core.scores.scores import PROBABILITIES, Scores
from rprime.core.table import ConfusionTable

ERRORS = {
    "range": NON_NEGATIVE,
    "best": 0.0,
    "universe": "classified",
    "range_note": "at most k - 1",
    "ordered": True,
}
"""The fields that errors in ranks share."""
ASSOCIATION = {
    "range": SIGNED,
    "universe": "classified",
    "undefined": ("no_samples", "single_class"),
    "interval": "score",
    "ordered": True,
}
"""The fields that rank correlations share."""


def _ranks(k: int, *_: object) -> tuple[float, float]:
    """Return the smallest and the largest error."""
    return 0.0, float(max(k - 1, 1))


def _distances(rows: Array, columns: Array) -> Array:
    return np.abs(np.subtract(rows, columns, dtype=np.float64))


@per_class(
    reads="table",
    symbol="MAE_i",
    tex=r"\frac{\sum_j |i - j| n_{ij}}{m_i}",
    source="Baccianella, Esuli, Sebastiani 2009",
    undefined=("no_true_samples",),
    resampled=True,
    **ERRORS,
)
def absolute_rank_error(t: ConfusionTable) -> Array:
    """Mean distance of the predictions of the items of the class, in ranks."""
    distance = _distances(*t.cells.positions())
    return t.cells.row_totals(t.cells.counts * distance) / t.support


def mean_error_gradient(t: ConfusionTable, rows: Array, columns: Array) -> Array:
    """Change of the mean error in ranks with one more item in each given cell, shape (..., c)."""
    mean = mean_weight(t, "linear")[..., None]
    return (_distances(rows, columns) - mean) / t.total[..., None]


@overall(
    "table",
    symbol="MAE",
    tex=r"\frac{\sum_{ij} |i - j| n_{ij}}{w}",
    source="Baccianella, Esuli, Sebastiani 2009",
    undefined=("no_samples",),
    interval="score",
    score_range=_ranks,
    cell_gradient=mean_error_gradient,
    **ERRORS,
)
def mean_absolute_rank_error(t: ConfusionTable) -> Array:
    """Mean distance of the predictions from the true classes, in ranks."""
    return mean_weight(t, "linear")


def near_gradient(t: ConfusionTable, rows: Array, columns: Array) -> Array:
    """Change of the off-by-one accuracy with one more item in each given cell, shape (..., c)."""
    near = off_by_one_accuracy.formula(t)[..., None]
    return ((_distances(rows, columns) <= 1) - near) / t.total[..., None]


@overall(
    "table",
    symbol="ACC_1",
    name="Off-by-one accuracy",
    tex=r"\frac{\sum_{|i - j| \le 1} n_{ij}}{w}",
    source="Gaudette, Japkowicz 2009",
    range=UNIT,
    universe="classified",
    undefined=("no_samples",),
    interval="score",
    cell_gradient=near_gradient,
    ordered=True,
)
def off_by_one_accuracy(t: ConfusionTable) -> Array:
    """Share of the items whose prediction is the true class or one next to it."""
    near = _distances(*t.cells.positions()) <= 1
    return t.cells.total(t.cells.counts * near) / t.total


@mean_of_items(
    symbol="RPS",
    tex=r"\frac{1}{w (k - 1)} \sum_x \sum_{j < k} "
    r"\left(\sum_{i \le j} p_i(x) - [t(x) \le j]\right)^2",
    source="Epstein 1969; Murphy 1971, divided by k - 1",
    range=(0.0, 1.0),
    best=0.0,
    undefined=(*PROBABILITIES, "single_class"),
    ordered=True,
)
def ranked_probability_score(s: Scores) -> Array:
    """Mean squared distance of the cumulated probabilities of ordered classes to the truth."""
    return s.ranked_probability_scores


def _surplus(cells: DenseCells | SparseCells) -> Array:
    """Concordant less discordant items for an item of each cell, shape of the cells."""
    if isinstance(cells, DenseCells):
        return _beyond(_beyond(cells.counts, -1), -2)
    return _surplus_at(cells, cells.rows, cells.columns)


def _beyond(counts: Array, axis: int) -> Array:
    """Sum of the counts before each place less that of those behind it, along an axis."""
    through = np.cumsum(counts, axis=axis)
    return 2 * through - counts - np.take(through, [-1], axis=axis)


def _surplus_of(t: ConfusionTable, rows: Array, columns: Array) -> Array:
    """Concordant less discordant items for an item of each of the given cells, shape (..., c)."""
    if isinstance(t.cells, DenseCells):
        return _surplus(t.cells)[..., rows, columns]
    return _surplus_at(t.cells, rows, columns)


def _surplus_at(cells: SparseCells, rows: Array, columns: Array) -> Array:
    """Return the same from stored coordinates, without a k x k matrix.

    Notes
    -----
    The columns of two cells differ first in one binary digit. For each digit, the cells that agree
    in all higher ones are sorted by row, and sums of those with the other digit are taken.
    """
    every = np.concatenate([cells.rows, rows]).astype(np.int64)
    places = np.concatenate([cells.columns, columns]).astype(np.int64)
    none = np.zeros((*cells.stack_shape, len(rows)))
    weights = np.concatenate([cells.counts, none], axis=-1)
    surplus = np.zeros(weights.shape)
    for digit in range(int(cells.k).bit_length()):
        groups, ones = places >> (digit + 1), (places >> digit & 1).astype(bool)
        keys = groups * (cells.k + 1) + every
        order = np.argsort(keys, kind="stable")
        for upper in (False, True):
            others = np.where(ones[order] == upper, 0.0, weights[..., order])
            sums = np.concatenate([none[..., :1] * 0, np.cumsum(others, axis=-1)], axis=-1)
            sought = keys[ones == upper]
            group = sought // (cells.k + 1) * (cells.k + 1)
            first, start, stop, last = (
                np.searchsorted(keys[order], ends)
                for ends in (group, sought, sought + 1, group + cells.k + 1)
            )
            behind, before = sums[..., last] - sums[..., stop], sums[..., start] - sums[..., first]
            surplus[..., ones == upper] += (before - behind) * (1 if upper else -1)
    return surplus[..., len(cells.rows) :]


def _concordance(t: ConfusionTable) -> Array:
    """Concordant less discordant pairs of items, shape (...)."""
    return t.cells.total(t.cells.counts * _surplus(t.cells)) / 2


def _untied(t: ConfusionTable, margin: Array) -> Array:
    """Pairs of items of different classes, shape (...)."""
    return (t.total * t.total - np.add.reduce(margin * margin, axis=-1)) / 2


def somers_gradient(t: ConfusionTable, rows: Array, columns: Array) -> Array:
    """Change of Somers' D with one more item in each given cell, shape (..., c)."""
    value = somers_d.formula(t)[..., None]
    more = t.total[..., None] - t.support[..., rows]
    return (_surplus_of(t, rows, columns) - value * more) / _untied(t, t.support)[..., None]


@overall(
    "table",
    symbol="D",
    name="Somers' D",
    tex=r"\frac{P - Q}{(w^2 - \sum_i m_i^2) / 2}",
    source="Somers 1962; P concordant and Q discordant pairs of items",
    cell_gradient=somers_gradient,
    **ASSOCIATION,
)
def somers_d(t: ConfusionTable) -> Array:
    """Concordant less discordant pairs, as a share of the pairs of different true classes."""
    return _concordance(t) / _untied(t, t.support)


def tau_gradient(t: ConfusionTable, rows: Array, columns: Array) -> Array:
    """Change of Kendall's tau-b with one more item in each given cell, shape (..., c)."""
    true, predicted = (_untied(t, part)[..., None] for part in (t.support, t.predicted))
    value, total = kendall_tau_b.formula(t)[..., None], t.total[..., None]
    ties = (total - t.support[..., rows]) / true + (total - t.predicted[..., columns]) / predicted
    return _surplus_of(t, rows, columns) / np.sqrt(true * predicted) - value / 2 * ties


@overall(
    "table",
    symbol=r"\tau_b",
    name="Kendall's tau-b",
    tex=r"\frac{P - Q}{\sqrt{(w^2 - \sum_i m_i^2)(w^2 - \sum_j s_j^2)} / 2}",
    source="Kendall 1945; P concordant and Q discordant pairs of items",
    cell_gradient=tau_gradient,
    **ASSOCIATION,
)
def kendall_tau_b(t: ConfusionTable) -> Array:
    """Concordant less discordant pairs, by the pairs of different true and predicted classes."""
    both = np.sqrt(_untied(t, t.support)) * np.sqrt(_untied(t, t.predicted))
    return np.clip(_concordance(t) / both, -1.0, 1.0)
