"""Family `agreement`: further measures of agreement of truth and prediction."""

from typing import Literal

import numpy as np

from rprime.core import special
from rprime.core.arrays import ROUNDING, Array
from rprime.core.families.agreement import (
    agreement_by_weight,
    chance_corrected,
    corrected,
    weighted_kappa_gradient,
)
from rprime.core.fixed_point import fixed_point
from rprime.core.index import AT_MOST_ONE, NON_NEGATIVE, SIGNED, Declaration, overall
from rprime.core.table import ConfusionTable


def bangdiwala_gradient(t: ConfusionTable, rows: Array, columns: Array) -> Array:
    """Change of Bangdiwala's B with one more item in each of the given cells, shape (..., c)."""
    products = np.add.reduce(t.support * t.predicted, axis=-1)[..., None]
    area = bangdiwala(t)[..., None]
    change = 2 * t.correct[..., rows] * (rows == columns)
    return (change - area * (t.predicted[..., rows] + t.support[..., columns])) / products


@overall(
    "table",
    symbol="B",
    name="Bangdiwala's B",
    interval="score",
    cell_gradient=bangdiwala_gradient,
    tex=r"\frac{\sum_i a_i^2}{\sum_i m_i s_i}",
    source="Bangdiwala 1985",
    universe="classified",
    undefined=("no_samples",),
)
def bangdiwala_b(t: ConfusionTable) -> Array:
    """Area of agreement in the agreement chart, as a share of the largest possible one; 0 if no
    class has both items and predictions.
    """
    return bangdiwala(t)


def bangdiwala(t: ConfusionTable) -> Array:
    """Compute Bangdiwala's B, shape (...): 0, its limit, where both areas are 0."""
    products = np.add.reduce(t.support * t.predicted, axis=-1)
    agreed = np.add.reduce(t.correct * t.correct, axis=-1)
    return np.where(t.total > 0, agreed / np.where(products > 0, products, 1.0), np.nan)


@overall(
    "means",
    of=("recall", "prevalence"),
    symbol="BA_{adj}",
    tex=r"\frac{\frac{1}{c} \sum_i TPR_i - 1/c}{1 - 1/c}",
    source="scikit-learn 1.9; Youden 1950 for two classes",
    range=SIGNED,
    undefined=("no_samples", "single_class"),
    interval="average",
    score_range=lambda k, *_: (-1 / max(k - 1, 1), 1.0),
)
def adjusted_balanced_accuracy(recall: Array, share: Array) -> Array:
    """Macro recall beyond that of guessing, over the c classes with items."""
    return corrected(recall, share)  # the mean prevalence is 1 / c


def ordinal_kappa(weights: Literal["linear", "quadratic"], power: str = "") -> Declaration:
    """Declare a weighted kappa of fixed weights, a power of the distance of the labels."""
    distance = f"|i - j|{power}"
    return chance_corrected(
        reads="table",
        symbol=f"K_{{{weights}}}",
        name=f"{weights.capitalize()} weighted kappa",
        tex=rf"1 - \frac{{w \sum_{{ij}} {distance} n_{{ij}}}}{{\sum_{{ij}} {distance} m_i s_j}}",
        source="Cohen 1968",
        universe="classified",
        cell_gradient=lambda t, *cells: weighted_kappa_gradient(t, weights, *cells),
    )


@ordinal_kappa("linear")
def linear_weighted_kappa(t: ConfusionTable) -> Array:
    """Agreement beyond chance, where a confusion counts by the distance of its labels.

    It depends on the order of the labels.
    """
    return agreement_by_weight(t, "linear")


@ordinal_kappa("quadratic", power="^2")
def quadratic_weighted_kappa(t: ConfusionTable) -> Array:
    """Agreement beyond chance, where a confusion counts by the squared distance of its labels.

    It depends on the order of the labels.
    """
    return agreement_by_weight(t, "quadratic")


def aickin_gradient(t: ConfusionTable, rows: Array, columns: Array) -> Array:
    """Change of Aickin's alpha with one more item in each of the given cells, shape (..., c).

    Notes
    -----
    The equations of `aickin_alpha` are differentiated implicitly by the cell and both margins.
    """
    alpha, p, q = _aickin(t)
    both, products = p + q, p * q
    chance = np.add.reduce(products, axis=-1)[..., None]
    size = (1 - alpha)[..., None] + alpha[..., None] / chance * both
    share = np.divide(1.0, size, out=np.zeros(size.shape), where=both > 0)
    first, second = (
        np.add.reduce(sums * share, axis=-1)[..., None] for sums in (products, products * both)
    )
    rate = chance / first
    by_row, by_column = rate * q * share, rate * p * share
    change = (rows == columns) - by_row[..., rows] - by_column[..., columns]
    mean = np.add.reduce(t.correct - by_row * t.support - by_column * t.predicted, axis=-1)
    total = t.total[..., None]
    return (change - mean[..., None] / total) / (total * (1 + chance - second / first))


@overall(
    "table",
    symbol=r"\alpha_A",
    name="Aickin's alpha",
    tex=r"\frac{P_o - P_e}{1 - P_e},\ P_e = \sum_i p_i q_i,\ "
    r"p_i = \frac{m_i / w}{1 - \alpha_A + \alpha_A q_i / P_e},\ "
    r"q_i = \frac{s_i / w}{1 - \alpha_A + \alpha_A p_i / P_e}",
    source="Aickin 1990",
    range=AT_MOST_ONE,
    universe="classified",
    undefined=("no_samples", "single_class", "did_not_converge"),
    interval="score",
    cell_gradient=aickin_gradient,
)
def aickin_alpha(t: ConfusionTable) -> Array:
    """Share of the items on which truth and prediction agree for a cause, not by chance.

    Chance follows from the margins p and q of the other items, which are fitted by iteration.
    """
    return _aickin(t)[0]


def _aickin(t: ConfusionTable) -> tuple[Array, Array, Array]:
    """Return Aickin's alpha (...), NaN where it was not found, and p and q (..., k).

    Some tables have no solution: p or q would be negative, or chance falls to 0 without end.
    """
    total = t.total[..., None]
    true, predicted = t.support / total, t.predicted / total
    observed = np.add.reduce(t.correct, axis=-1) / t.total
    beyond = observed - np.add.reduce(true * predicted, axis=-1)
    alpha, p, q = _aickin_above_chance(true, predicted, observed)
    if (beyond < ROUNDING).any():  # a few tables: models better than chance are the usual ones
        below = _aickin_below_chance(true, predicted, observed)
        worse = beyond <= -ROUNDING
        alpha = np.where(worse, below[0], alpha)
        p, q = (np.where(worse[..., None], b, a) for a, b in ((p, below[1]), (q, below[2])))
        equal = np.abs(beyond) < ROUNDING
        alpha = np.where(equal, 0.0, alpha)
        p, q = (np.where(equal[..., None], x, y) for x, y in ((true, p), (predicted, q)))
    return alpha, p, q


HALVINGS = 100


def _aickin_above_chance(
    true: Array, predicted: Array, observed: Array
) -> tuple[Array, Array, Array]:
    """Fit alpha > 0, p and q by bisection of the chance between 0 and the observed agreement.

    For any chance, alpha follows, and with it p from a quadratic equation: the equations of p_i and
    q_i differ by (1 - alpha) (p_i - q_i) = m_i / w - s_i / w. At the right one, p sums to 1.
    """
    wrong, surplus = 1 - observed, true - predicted

    def fitted(chance: Array) -> tuple[Array, Array, Array]:
        alpha = corrected(observed, chance)
        rest, rate = (wrong / (1 - chance))[..., None], (alpha / chance)[..., None]
        distance = rate * np.divide(surplus, rest, out=np.zeros(surplus.shape), where=rest > 0)
        return (
            alpha,
            _positive_root(rate, rest - distance, true),
            _positive_root(rate, rest + distance, predicted),
        )

    low, high = np.zeros(observed.shape), observed
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        larger = np.add.reduce(fitted(middle)[1], axis=-1) < 1
        low, high = np.where(larger, middle, low), np.where(larger, high, middle)
    alpha, p, q = fitted(high)
    # Where the chance falls to 0, or rises to the observed agreement, there is no solution.
    solved = (np.abs(np.add.reduce(p, axis=-1) - 1) < SUM_TOLERANCE) & (high > LEAST_CHANCE)
    return np.where(solved, alpha, np.nan), p, q


LEAST_CHANCE = 1e-6
SUM_TOLERANCE = 1e-9


def _positive_root(square: Array, linear: Array, constant: Array) -> Array:
    """Return the positive root x of square x^2 + linear x = constant."""
    half = linear / 2
    length = np.sqrt(half * half + square * constant)
    return np.where(half > 0, constant / (half + length), (length - half) / square)


def _aickin_below_chance(
    true: Array, predicted: Array, observed: Array
) -> tuple[Array, Array, Array]:
    """Fit alpha < 0, p and q by iteration, which need not find them."""
    k = true.shape[-1]

    def advance(fitted: Array) -> Array:
        p, q = fitted[..., :k], fitted[..., k:]
        chance = np.add.reduce(p * q, axis=-1)
        alpha = corrected(observed, chance)
        share, rate = (1 - alpha)[..., None], (alpha / chance)[..., None]
        p = true / (share + rate * q)
        return np.concatenate([p, predicted / (share + rate * p)], axis=-1)

    fitted = fixed_point(advance, np.concatenate([true, predicted], axis=-1))
    p, q = fitted[..., :k], fitted[..., k:]
    return corrected(observed, np.add.reduce(p * q, axis=-1)), p, q


BOWKER = {
    "source": "McNemar 1947; Bowker 1948",
    "best": None,
    "universe": "classified",
    "undefined": ("no_samples", "weighted"),
    "scale_invariant": False,
}


@overall(
    "table",
    symbol=r"\chi^2_B",
    name="Bowker's chi-square",
    tex=r"\sum_{i < j} \frac{(n_{ij} - n_{ji})^2}{n_{ij} + n_{ji}}",
    range=NON_NEGATIVE,
    **BOWKER,
)
def bowker_chi2(t: ConfusionTable) -> Array:
    """Asymmetry of the confusions; for two classes McNemar's, without continuity correction."""
    return _symmetry(t)[0]


@overall(
    "table", symbol="p_B", name="p-value of Bowker's test", tex=r"P(\chi^2 \ge \chi^2_B)", **BOWKER
)
def bowker_p_value(t: ConfusionTable) -> Array:
    """Probability of such an asymmetry if confusions of two classes go both ways equally often.

    Each pair of classes with a confusion is one degree of freedom; 1 without confusions.
    """
    statistic, pairs = _symmetry(t)
    return np.where(pairs > 0, special.chdtrc(pairs, statistic), statistic + 1)


def _symmetry(t: ConfusionTable) -> tuple[Array, Array]:
    """Return Bowker's statistic and its degrees of freedom, shape (...)."""
    cells, (rows, columns) = t.cells, t.cells.positions()
    both = np.where(rows == columns, 0.0, cells.counts + cells.mirrored)
    # Each of two mirrored cells takes its share of their pair: an empty one need not be stored.
    share = np.divide(cells.counts, both, out=np.zeros(both.shape), where=both > 0)
    surplus = cells.counts - cells.mirrored
    ratio = np.divide(surplus * surplus, both, out=np.zeros(both.shape), where=both > 0)
    statistic = np.where(t.total > 0, cells.total(share * ratio), np.nan)
    return statistic, np.rint(cells.total(share))
