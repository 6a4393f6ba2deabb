"""Agreement corrected for chance."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import Array
from rprime.core.counts import CountRow, Counts
from rprime.core.index import (
    AT_MOST_ONE,
    SIGNED,
    Declaration,
    Parts,
    overall,
    per_class,
    unidentifiable,
)
from rprime.core.table import ConfusionTable
from rprime.core.thresholds import reaches

KappaWeights = Literal["linear", "quadratic"] | Array
BANDS = (
    (0.8, "almost perfect"),
    (0.6, "substantial"),
    (0.4, "moderate"),
    (0.2, "fair"),
    (0.0, "slight"),
)


def landis_koch(kappa: float) -> str:
    """Return the name of the band of a kappa, lower bounds included (Landis, Koch 1977).

    The bands are conventions, not results.
    """
    return next((name for bound, name in BANDS if reaches(kappa, bound)), "poor")


def corrected(observed: Array, chance: Array | float) -> Array:
    """Agreement beyond chance, as a share of the largest possible one."""
    return (observed - chance) / (1 - chance)


@dataclass(frozen=True)
class Moments:
    """Sums over the k classes of a stack of classified tables; each of shape (...).

    `total` is w, `correct` the sum of a_i, `products` of m_i s_i, `support_squares` of m_i^2,
    `predicted_squares` of s_i^2, and `attainable` of min(m_i, s_i).
    """

    k: int
    total: Array
    correct: Array
    products: Array
    support_squares: Array
    predicted_squares: Array
    attainable: Array

    @classmethod
    def of(cls, table: ConfusionTable) -> "Moments":
        """Sum up the margins of the tables."""
        support, predicted = table.support, table.predicted
        squares = (support * predicted, support * support, predicted * predicted)
        parts = (table.correct, *squares, np.minimum(support, predicted))
        return cls(table.k, table.total, *(np.add.reduce(part, axis=-1) for part in parts))

    @cached_property
    def chance(self) -> Array:
        """P_e of Cohen: sum of m_i s_i / w^2."""
        return self.products / self.square

    @cached_property
    def square(self) -> Array:
        """w^2."""
        return self.total * self.total

    @cached_property
    def pooled_squares(self) -> Array:
        """Sum of ((m_i + s_i) / 2)^2."""
        return (self.support_squares + 2 * self.products + self.predicted_squares) / 4

    def beyond(self, expected: Array) -> Array:
        """Agreement beyond chance w^2 P_e, as a share of the largest possible one.

        Above and below the line stand whole numbers: a kappa of exactly 1/5 is 0.2, and one of
        predictions that ignore the truth is 0.
        """
        return (self.total * self.correct - expected) / (self.square - expected)


def chance_corrected(**fields: Any) -> Declaration:  # noqa: ANN401 (the fields of Index)
    """Declare an index, of `Moments` unless it `reads` others, with defaults of Cohen's kappa."""
    undefined = ("no_samples", "chance_agreement_is_one")
    defaults = {"range": SIGNED, "undefined": undefined, "interval": "score"}
    return overall(fields.pop("reads", "moments"), **defaults | fields)


@chance_corrected(
    symbol="CKC",
    name="Cohen's kappa",
    tex=r"\frac{P_o - P_e}{1 - P_e},\ P_e = \sum_i \frac{m_i s_i}{w^2}",
    source="Cohen 1960; bands of Landis, Koch 1977 are conventions",
    band=landis_koch,
)
def kappa(t: Moments) -> Array:
    """Agreement beyond chance, where chance follows from both margins."""
    return t.beyond(t.products)


@chance_corrected(
    symbol=r"\kappa_{max}",
    name="Largest attainable kappa",
    tex=r"\frac{\sum_i \min(m_i, s_i)/w - P_e}{1 - P_e}",
    source="Cohen 1960",
    range=AT_MOST_ONE,
    best=None,
    interval=None,
)
def kappa_max(t: Moments) -> Array:
    """Largest kappa of any table with these margins."""
    return (t.total * t.attainable - t.products) / (t.square - t.products)


def weighted_kappa_gradient(
    t: ConfusionTable, weights: KappaWeights, rows: Array, columns: Array
) -> Array:
    """Change of the weighted kappa with one more item in each given cell, shape (..., c)."""
    total = t.total[..., None]
    weight = confusion_weights(rows, columns, weights)
    observed = mean_weight(t, weights)[..., None]
    transposed = weights if isinstance(weights, str) else weights.T
    by_row = weighted_by_column(t.predicted / total, weights)
    by_column = weighted_by_column(t.support / total, transposed)
    expected = np.add.reduce(t.support / total * by_row, axis=-1)[..., None]
    chance = by_row[..., rows] + by_column[..., columns] - 2 * expected
    return (observed / expected * chance - (weight - observed)) / (expected * total)


@overall(
    "table",
    symbol="K_w",
    tex=r"1 - \frac{\sum_{ij} v_{ij} n_{ij} / w}{\sum_{ij} v_{ij} m_i s_j / w^2}",
    source="Cohen 1968",
    range=AT_MOST_ONE,
    range_note="at least -1 with linear or quadratic weights",
    universe="classified",
    undefined=("no_samples", "chance_agreement_is_one"),
    interval="score",
    needs="kappa_weights",
    cell_gradient=weighted_kappa_gradient,
)
def weighted_kappa(t: ConfusionTable, weights: KappaWeights) -> Array:
    """Agreement beyond chance if some confusions weigh more than others.

    `linear` and `quadratic` weights depend on the order of the labels.
    """
    return agreement_by_weight(t, weights)


def agreement_by_weight(t: ConfusionTable, weights: KappaWeights) -> Array:
    """Agreement beyond chance, as 1 minus the observed mean weight by that expected by chance."""
    true, predicted = (margin / t.total[..., None] for margin in (t.support, t.predicted))
    # The mean weight of confusions drawn from the margins.
    expected = np.add.reduce(true * weighted_by_column(predicted, weights), axis=-1)
    return 1 - mean_weight(t, weights) / expected


def mean_weight(t: ConfusionTable, weights: KappaWeights) -> Array:
    """Mean weight of the confusions of the items, shape (...)."""
    weight = confusion_weights(*t.cells.positions(), weights)
    return t.cells.total(t.cells.counts * weight) / t.total


def confusion_weights(rows: Array, columns: Array, weights: KappaWeights) -> Array:
    """Weight of the confusion of a row with a column, elementwise."""
    if not isinstance(weights, str):
        return weights[rows, columns]
    distance = np.abs(np.subtract(rows, columns, dtype=np.float64))
    return distance if weights == "linear" else distance * distance


def weighted_by_column(shares: Array, weights: KappaWeights) -> Array:
    """Sum over j of v_ij x_j for every i, without a k x k matrix for the named weights."""
    if not isinstance(weights, str):
        return shares @ weights.T
    numbers = np.arange(shares.shape[-1], dtype=np.float64)
    sums = [np.add.reduce(shares * numbers**power, axis=-1)[..., None] for power in (0, 1, 2)]
    if weights == "quadratic":
        return numbers**2 * sums[0] - 2 * numbers * sums[1] + sums[2]
    below = np.cumsum(shares, axis=-1)
    moment = np.cumsum(shares * numbers, axis=-1)
    return numbers * (2 * below - sums[0]) + sums[1] - 2 * moment


@chance_corrected(
    symbol=r"\pi",
    name="Scott's pi",
    tex=r"\frac{P_o - P_e}{1 - P_e},\ P_e = \sum_i \left(\frac{m_i + s_i}{2w}\right)^2",
    source="Scott 1955",
)
def scott_pi(t: Moments) -> Array:
    """Agreement beyond chance, if truth and prediction follow the same distribution."""
    return t.beyond(t.pooled_squares)


@chance_corrected(
    symbol="SPC",
    name="Scott's pi, true margin",
    tex=r"\frac{P_o - P_e}{1 - P_e},\ P_e = \sum_i \mu_i^2",
    source="the form used by Labatut, Cherifi 2011",
    range=AT_MOST_ONE,
)
def scott_pi_true_margin(t: Moments) -> Array:
    """Agreement beyond chance, if chance depends only on the true classes."""
    return t.beyond(t.support_squares)


@chance_corrected(
    symbol="MRE",
    name="Maxwell's random error coefficient",
    tex=r"\frac{P_o - 1/k}{1 - 1/k}",
    source="Maxwell 1977; Bennett, Alpert, Goldstein 1954 (S)",
    interval="proportion",
    parts=Parts(((CountRow.tp, CountRow.answered),), lambda agreement: agreement),
    score_range=lambda k, *_: (-1 / (k - 1) if k > 1 else -1.0, 1.0),
)
def maxwell_re(t: Moments) -> Array:
    """Agreement beyond chance, if all k declared classes are equally likely."""
    return t.beyond(t.square / t.k)


@chance_corrected(
    symbol="AC1",
    name="Gwet's AC1",
    tex=r"\frac{P_o - P_e}{1 - P_e},\ P_e = \frac{1}{k-1} \sum_i \pi_i (1 - \pi_i)",
    source="Gwet 2008",
    undefined=("no_samples", "single_class"),
)
def gwet_ac1(t: Moments) -> Array:
    """Agreement beyond chance that stays stable when one class dominates."""
    return t.beyond((t.square - t.pooled_squares) / np.float64(t.k - 1))


@chance_corrected(
    symbol=r"\alpha",
    name="Krippendorff's alpha",
    tex=r"1 - (2w - 1) \frac{w - \sum_i a_i}{w \left(2w - \sum_i (m_i+s_i)^2 / 2w\right)}",
    source="Krippendorff 1970; nominal, two raters",
    undefined=("no_samples", "weighted", "chance_agreement_is_one"),
    scale_invariant=False,
)
def krippendorff_alpha(t: Moments) -> Array:
    """Scott's pi with a correction for small samples."""
    return 1 - (2 * t.total - 1) * (t.total - t.correct) / (2 * (t.square - t.pooled_squares))


@chance_corrected(
    symbol="PSS",
    tex=r"\frac{P_o - P_e}{1 - \sum_i \mu_i^2},\ P_e = \sum_i \frac{m_i s_i}{w^2}",
    source="Peirce 1884; Hanssen, Kuipers 1965",
    undefined=("no_samples", "single_class"),
    interval="average",
)
def peirce_skill_score(t: Moments) -> Array:
    """Agreement beyond chance, as a share of what a perfect forecast of these classes reaches."""
    skill = (t.total * t.correct - t.products) / (t.square - t.support_squares)
    # With one item in 10^9 of another class, rounding goes 3e-8 beyond the range.
    return np.maximum(skill, -1.0)


@chance_corrected(
    symbol="R_k",
    name="Matthews correlation coefficient",
    tex=r"\frac{w \sum a_i - \sum m_i s_i}{\sqrt{(w^2 - \sum s_i^2)(w^2 - \sum m_i^2)}}",
    source="Gorodkin 2004",
    undefined=("no_samples", "single_class"),
)
def mcc(t: Moments) -> Array:
    """Correlation between truth and prediction over all classes."""
    # All three are equal, and so divide to 1 or -1, for a perfect classifier and for one of two
    # classes that is always wrong. Divided by w, the product stays in the float64 range.
    agreement = (t.total * t.correct - t.products) / t.total
    predicted = (t.square - t.predicted_squares) / t.total
    true = (t.square - t.support_squares) / t.total
    return agreement / np.sqrt(predicted * true)


@per_class(
    symbol="GT_j",
    name="Ground-truth index",
    tex=r"\frac{TPR_j - b_j}{1 - b_j}",
    source="Tuerk 1979",
    range=AT_MOST_ONE,
    universe="classified",
    undefined=("no_true_samples", "not_identifiable", "did_not_converge"),
    averaged=False,
)
def gt_index(c: Counts) -> Array:
    """Recall beyond the rate at which the class attracts errors by chance.

    b_j is the class's share under quasi-independence, fitted only to the off-diagonal cells.
    Without errors the index is 1. It cannot be identified for fewer than three classes, or if
    every error involves the same class.
    """
    recall = c.tp / c.support
    unfittable = unidentifiable(c)
    # Where no fit exists, 0/0 ends the iteration in the first round.
    chance = chance_shares(c.fn, np.where(unfittable[..., None], np.nan, c.fp))
    error_free = np.add.reduce(c.fp, axis=-1) == 0
    identifiable = c.fp.shape[-1] > 2
    index = corrected(recall, chance)
    return np.where((error_free & identifiable)[..., None], recall, index)


HALVINGS = 100
LEAST_ELSEWHERE = 1e-6


def chance_shares(row_errors: Array, column_errors: Array) -> Array:
    """Fit alpha_i beta_j, with the sums of the errors of each class, to the off-diagonal cells.

    Of errors (..., k) of each true and each predicted class, return b = beta / sum(beta), of the
    same shape; NaN where fewer than `LEAST_ELSEWHERE` of the errors do without some class, as
    nothing else tells the shares of two classes that are confused with each other.

    Notes
    -----
    With A = sum(alpha), b_i is a root of A b^2 - (A - r_i + c_i) b + c_i, of errors r_i and c_i,
    and A is found by bisection: b sums to 1. All b_i are the smaller roots but for at most one,
    that of the class that needs the largest A for its root to exist. Unlike iterative proportional
    fitting, this depends neither on the order of the classes nor on the number of items.
    """
    needs = np.square(np.sqrt(row_errors) + np.sqrt(column_errors))
    least = np.maximum.reduce(needs, axis=-1)
    low, high = np.zeros(least.shape), np.ones(least.shape)  # of least / A
    largest = np.zeros(needs.shape, dtype=bool)
    excess = _share_excess(row_errors, column_errors, least, largest)
    turned = excess < 0
    if turned.any():
        largest = np.arange(needs.shape[-1]) == np.argmax(needs, axis=-1)[..., None]
        largest &= turned[..., None]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        excess = _share_excess(row_errors, column_errors, least / middle, largest)
        further = (excess < 0) ^ turned
        low, high = np.where(further, middle, low), np.where(further, high, middle)
    total = least / high
    small, rest = (
        _smaller_root(total, a, b)
        for a, b in ((row_errors, column_errors), (column_errors, row_errors))
    )
    errors = np.add.reduce(row_errors, axis=-1, keepdims=True)
    elsewhere = errors - row_errors - column_errors
    fitted = (elsewhere >= LEAST_ELSEWHERE * errors).all(-1, keepdims=True)
    return np.where(fitted, np.where(largest, 1 - rest, small), np.nan)


def _share_excess(
    row_errors: Array, column_errors: Array, total: Array, largest: NDArray[np.bool_]
) -> Array:
    """Return by how much the shares sum to more than 1 at a sum of alpha, shape (...)."""
    shares = _smaller_root(total, row_errors, column_errors)
    if not largest.any():
        return np.add.reduce(shares, axis=-1) - 1
    # 1 minus the larger root is the smaller root of the mirrored equation.
    rest = _smaller_root(total, column_errors, row_errors)
    taken = np.where(largest, -rest, shares)
    return np.add.reduce(taken, axis=-1) - np.where(largest.any(-1), 0, 1)


def _smaller_root(total: Array, row_errors: Array, column_errors: Array) -> Array:
    """Return the smaller root b of A b^2 - (A - r + c) b + c, shape (..., k)."""
    linear = total[..., None] - row_errors + column_errors
    # As a product, the discriminant is exactly 0 where both roots are one.
    rows, columns = np.sqrt(row_errors), np.sqrt(column_errors)
    above = total[..., None] - np.square(rows + columns)
    discriminant = above * (total[..., None] - np.square(rows - columns))
    return 2 * column_errors / (linear + np.sqrt(np.maximum(discriminant, 0)))
