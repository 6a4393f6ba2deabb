"""Family `agreement`: further measures of agreement of truth and prediction."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rprime.core import special
from rprime.core.arrays import ROUNDING, Array
from rprime.core.families.agreement import (
    agreement_by_weight,
    chance_corrected,
    corrected,
    weighted_kappa_gradient,
)
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
        ordered=True,
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
    The equations of `aickin_alpha` are differentiated implicitly by the cell and both margins. With
    one true or one predicted class alpha is 0 whatever the cells, and so is the gradient.
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
    slope = (change - mean[..., None] / total) / (total * (1 + chance - second / first))
    fewest = np.minimum(*(np.count_nonzero(sums, axis=-1) for sums in (t.support, t.predicted)))
    return np.where(fewest[..., None] > 1, slope, 0.0)


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
    alpha, p, q = ChanceFit(true, predicted, observed).solution(above=beyond > 0)
    equal = np.abs(beyond) < ROUNDING
    if equal.any():
        alpha = np.where(equal, 0.0, alpha)
        p, q = (np.where(equal[..., None], x, y) for x, y in ((true, p), (predicted, q)))
    return alpha, p, q


HALVINGS = 100
LEAST_DISTANCE = 1e-6
SUM_TOLERANCE = 1e-7


@dataclass(frozen=True)
class ChanceFit:
    """The equations of Aickin's alpha, solved by bisection of the chance.

    Of the shares `true` and `predicted` (..., k) of the classes, and the observed agreement (...).

    Notes
    -----
    For any chance P_e, alpha follows, and with it p from a quadratic equation: the equations of p_i
    and q_i differ by (1 - alpha) (p_i - q_i) = m_i / w - s_i / w. At the right chance the sum of
    p_i q_i is P_e times that of p_i. Unlike an iteration to a fixed point, bisection depends
    neither on the order of the classes nor on the number of items.
    """

    true: Array
    predicted: Array
    observed: Array

    def solution(self, *, above: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
        """Return alpha (...), NaN without a solution, and p and q (..., k).

        `above` says where the observed agreement exceeds that of the margins: then the chance is
        below the observed agreement, elsewhere above it.
        """
        far = np.zeros(self.true.shape, dtype=bool)
        low, high = np.where(above, 0.0, self.observed), np.where(above, self.observed, 1.0)
        low, high = self._halved(low, high, far)
        solved = self._solves(high, far)
        if not above.all():
            turning, unique = self._turning()
            far = ~(above | solved)[..., None] & turning
            high = self._halved(low, np.where(far.any(-1), 1.0, high), far)[1]
            solved = self._solves(high, far) & (above | unique)
        p, q = self._shares(high, far)
        return np.where(solved, corrected(self.observed, high), np.nan), p, q

    def _turning(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the class whose equation has no root at some chances: its larger root leads on.

        And whether there is one solution alone: where the class takes part in every error, and no
        other has a right item, its larger root solves the equations at any chance.
        """
        needs = np.sqrt(self.true) + np.sqrt(self.predicted)
        turning = np.arange(needs.shape[-1]) == np.argmax(needs, axis=-1)[..., None]
        most = np.maximum.reduce(self.true + self.predicted, axis=-1)
        return turning, most < 1 + self.observed - ROUNDING

    def _halved(self, low: Array, high: Array, far: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Halve the range of the chance, a hundred times; `far` marks the larger of two roots."""
        sign = np.where(far.any(-1), -1, 1)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            # NaN, where an equation has no root, asks for more.
            larger = ~(sign * self._excess(middle, far) >= 0)
            low, high = np.where(larger, middle, low), np.where(larger, high, middle)
        return low, high

    def _solves(self, chance: Array, far: NDArray[np.bool_]) -> NDArray[np.bool_]:
        # Where alpha goes to 1 or to minus infinity without end, there is no solution.
        ended = np.where(chance < self.observed, chance, 1 - chance) < LEAST_DISTANCE
        balanced = np.abs(self._excess(chance, far)) < SUM_TOLERANCE * chance
        least = np.minimum.reduce(np.minimum(*self._shares(chance, far)), axis=-1)
        return np.asarray(balanced & ~ended & (least >= 0))

    def _excess(self, chance: Array, far: NDArray[np.bool_]) -> Array:
        """Return the sum of P_e p_i - p_i q_i, from 1 - p and 1 - q of a larger root.

        It equals P_e / alpha times what the sum of p_i exceeds 1 by, which has the smaller rounding
        error where alpha is below -1.
        """
        p, q = self._shares(chance, np.zeros_like(far))
        excess = np.add.reduce(chance[..., None] * p - p * q, axis=-1)
        beyond_one = np.add.reduce(p, axis=-1) - 1
        if far.any():
            lacks_p, lacks_q = (np.add.reduce(x * far, axis=-1) for x in self._lacking(chance))
            p, q = np.where(far, 0, p), np.where(far, 0, q)
            others = np.add.reduce(chance[..., None] * p - p * q, axis=-1)
            rest = (1 - chance) * (lacks_p - 1) + lacks_q * (1 - lacks_p)
            turned = far.any(-1)
            excess = np.where(turned, others + rest, excess)
            beyond_one = np.where(turned, np.add.reduce(p, axis=-1) - lacks_p, beyond_one)
        alpha = corrected(self.observed, chance)
        return np.where(alpha < -1, beyond_one * chance / alpha, excess)

    def _shares(self, chance: Array, far: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return p and q at a chance."""
        rate, rest, distance = self._terms(chance)
        p = _root(rate, (rest - distance) / 2, self.true)
        q = _root(rate, (rest + distance) / 2, self.predicted)
        if not far.any():
            return p, q
        lacks_p, lacks_q = self._lacking(chance)
        return np.where(far, 1 - lacks_p, p), np.where(far, 1 - lacks_q, q)

    def _lacking(self, chance: Array) -> tuple[Array, Array]:
        """Return 1 - p and 1 - q of the larger roots, which may be near 1."""
        rate, _, distance = self._terms(chance)
        shared = (self.observed / chance)[..., None]  # rate + rest
        return (
            _root(rate, (distance - shared - rate) / 2, self.true + distance - shared),
            _root(rate, -(distance + shared + rate) / 2, self.predicted - distance - shared),
        )

    def _terms(self, chance: Array) -> tuple[Array, Array, Array]:
        """Return the terms of rate p^2 + (rest - distance) p = m / w and its like for q."""
        rate = (corrected(self.observed, chance) / chance)[..., None]
        rest = ((1 - self.observed) / (1 - chance))[..., None]
        surplus = self.true - self.predicted
        distance = rate * np.divide(surplus, rest, out=np.zeros(surplus.shape), where=rest > 0)
        return rate, rest, distance


def _root(square: Array, half: Array, constant: Array) -> Array:
    """Return a root x of square x^2 + 2 half x = constant, NaN without one.

    That is the positive one for square > 0, and the one nearer to 0 for square < 0.
    """
    length = np.sqrt(half * half + square * constant)
    nearest = constant / (half + np.copysign(length, half))
    return np.where((half > 0) | (square < 0), nearest, (length - half) / square)


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
