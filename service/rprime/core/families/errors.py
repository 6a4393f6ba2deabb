"""Measures of the errors: their kinds and their cost."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import Counts
from rprime.core.index import overall, per_class
from rprime.core.table import ConfusionTable

DISAGREEMENT = {
    "source": "Pontius, Millones 2011",
    "best": 0.0,
    "universe": "classified",
    "undefined": ("no_samples",),
}


@per_class(
    symbol="share of errors",
    tex=r"\frac{m_i - a_i}{\sum_j (m_j - a_j)}",
    source="the weights of the recalls in accuracy, Zhang, Su, Dou 2021, eq. 1",
    best=None,
    undefined=("no_samples", "no_errors"),
    averaged=False,
)
def share_of_errors(c: Counts) -> Array:
    """Share of all errors that are items of the class: what it takes from accuracy."""
    return c.fn / np.add.reduce(c.fn, axis=-1)[..., None]


@per_class(
    symbol="|m_i - s_i| / w",
    name="Quantity disagreement of the class",
    tex=r"\frac{|m_i - s_i|}{w}",
    **DISAGREEMENT,
    resampled=True,
    averaged=False,
)
def class_quantity_disagreement(c: Counts) -> Array:
    """Disagreement because the class is predicted too often or too rarely."""
    return np.abs(c.support - c.predicted) / c.total


@per_class(
    symbol="2 min(FP, FN) / w",
    name="Allocation disagreement of the class",
    tex=r"\frac{2 \min(FP, FN)}{w}",
    **DISAGREEMENT,
    averaged=False,
)
def class_allocation_disagreement(c: Counts) -> Array:
    """Disagreement because the class is predicted for the wrong items."""
    return 2 * np.minimum(c.fp, c.fn) / c.total


@overall("table", symbol="Q", tex=r"\frac{\sum_i |m_i - s_i|}{2 w}", **DISAGREEMENT, resampled=True)
def quantity_disagreement(t: ConfusionTable) -> Array:
    """Share of errors because classes are predicted too often or too rarely."""
    return np.add.reduce(np.abs(t.support - t.predicted), axis=-1) / (2 * t.total)


@overall(
    "table", symbol="A", tex=r"\frac{\sum_i \min(FP_i, FN_i)}{w}", **DISAGREEMENT, resampled=True
)
def allocation_disagreement(t: ConfusionTable) -> Array:
    """Share of errors because classes are predicted for the wrong items."""
    swapped = np.minimum(t.support - t.correct, t.predicted - t.correct)
    return np.add.reduce(swapped, axis=-1) / t.total


def expected_cost_gradient(
    table: ConfusionTable, cost: Array, rows: Array, columns: Array
) -> Array:
    """Change of the expected cost with one more item in each of the given cells, shape (..., c).

    Column k stands for unclassified items; 0 where the item has no cost.
    """
    counted = columns < cost.shape[-1]
    price = cost[rows, np.where(counted, columns, 0)]
    items = priced(table, cost).total[..., None]
    mean = total_cost(table, cost)[..., None] / items
    return np.where(counted, (price - mean) / items, 0.0)


@overall(
    "table",
    symbol="E[c]",
    tex=r"\frac{\sum_{ij} c_{ij} n_{ij}}{w}",
    source="Elkan 2001",
    range=(-np.inf, np.inf),
    best=0.0,
    undefined=("no_samples",),
    interval="score",
    score_range=lambda _, cost: (float(cost.min()), float(cost.max())),
    needs="cost",
    cell_gradient=expected_cost_gradient,
)
def expected_cost(t: ConfusionTable, cost: Array) -> Array:
    """Mean cost of an item.

    A k x k cost averages over the classified items. A k x (k + 1) cost, whose last column is
    the cost of an unclassified item, averages over all real items.
    """
    return total_cost(t, cost) / priced(t, cost).total


@overall(
    "table",
    symbol="NEC",
    tex=r"\frac{\sum_{ij} c_{ij} n_{ij}}{\min_j \sum_i c_{ij} m_i}",
    source="Drummond, Holte 2006",
    range=(-np.inf, np.inf),
    best=0.0,
    undefined=("no_samples", "infinite", "chance_agreement_is_one"),
    needs="cost",
)
def normalized_expected_cost(t: ConfusionTable, cost: Array) -> Array:
    """Cost divided by that of always predicting the cheapest class: useful only below 1.

    It does not exist where that costs nothing.
    """
    constant = priced(t, cost).support @ cost[:, : t.k]
    return total_cost(t, cost) / np.minimum.reduce(constant, axis=-1)


def priced(t: ConfusionTable, cost: Array) -> ConfusionTable:
    """Select the items that have a cost: the classified ones, or all real ones."""
    return t if cost.shape[-1] > t.k else t.classified


def total_cost(t: ConfusionTable, cost: Array) -> Array:
    """Sum the cost of all items that have one, shape (...)."""
    classified = t.cells.total(t.cells.counts * t.cells.select(cost[:, : t.k]))
    if cost.shape[-1] == t.k or t.unclassified is None:
        return classified
    return classified + np.add.reduce(t.unclassified * cost[:, t.k], axis=-1)
