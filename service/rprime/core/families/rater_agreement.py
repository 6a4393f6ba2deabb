"""Family `agreement`: further measures of agreement of truth and prediction."""

import numpy as np
from scipy import special

from rprime.core.arrays import Array
from rprime.core.families.agreement import corrected
from rprime.core.index import AT_MOST_ONE, NON_NEGATIVE, SIGNED, overall
from rprime.core.table import ConfusionTable

TOLERANCE = 1e-13
MOST_ROUNDS = 10_000


@overall(
    "table",
    symbol="B",
    name="Bangdiwala's B",
    tex=r"\frac{\sum_i a_i^2}{\sum_i m_i s_i}",
    source="Bangdiwala 1985",
    universe="classified",
    undefined=("no_samples", "infinite"),
)
def bangdiwala_b(t: ConfusionTable) -> Array:
    """Area of agreement in the agreement chart, as a share of the largest possible one."""
    products = np.add.reduce(t.support * t.predicted, axis=-1)
    return np.add.reduce(t.correct * t.correct, axis=-1) / products


@overall(
    "table",
    symbol="BA_{adj}",
    name="Adjusted balanced accuracy",
    tex=r"\frac{\frac{1}{c} \sum_i TPR_i - 1/c}{1 - 1/c}",
    source="scikit-learn 1.9; Youden 1950 for two classes",
    range=SIGNED,
    undefined=("no_samples", "single_class"),
)
def adjusted_balanced_accuracy(t: ConfusionTable) -> Array:
    """Macro recall beyond that of guessing, over the c classes with items."""
    recalls = np.divide(t.correct, t.support, out=np.zeros(t.support.shape), where=t.support > 0)
    classes = np.add.reduce(t.support > 0, axis=-1, dtype=np.float64)
    return corrected(np.add.reduce(recalls, axis=-1) / classes, 1 / classes)


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
)
def aickin_alpha(t: ConfusionTable) -> Array:
    """Share of the items on which truth and prediction agree for a cause, not by chance.

    Chance follows from the margins p and q of the other items, which are fitted by iteration.
    """
    total = t.total[..., None]
    true, predicted = t.support / total, t.predicted / total
    observed = np.add.reduce(t.correct, axis=-1) / t.total
    alpha, going = np.zeros(observed.shape), np.ones(observed.shape, dtype=bool)
    p, q = true, predicted
    for _ in range(MOST_ROUNDS):
        chance = np.add.reduce(p * q, axis=-1)
        found = np.where(going, corrected(observed, chance), alpha)
        going &= np.abs(found - alpha) >= TOLERANCE
        alpha = found
        if not going.any():
            break
        share, rate = (1 - alpha)[..., None], (alpha / chance)[..., None]
        p = true / (share + rate * q)
        q = predicted / (share + rate * p)
    return np.where(going, np.nan, alpha)


BOWKER = {
    "source": "McNemar 1947; Bowker 1948",
    "best": None,
    "universe": "classified",
    "undefined": ("no_samples",),
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
