"""Overall accuracy, related indices, and the averages with a name of their own."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow, RatioRows
from rprime.core.index import SIGNED, overall, overall_ratio
from rprime.core.intervals.proportions import binomial_tail_exceeds, binomial_tail_p
from rprime.core.table import ConfusionTable


@overall_ratio(
    symbol="AP, OSR, P_o",
    tex=r"\frac{\sum_i a_i}{w}",
    source="equation (1) of Zhang, Su, Dou 2021 calls it AP",
)
def accuracy(row: type[CountRow]) -> RatioRows:
    """Share of all real items that are predicted correctly; an unclassified item is an error."""
    return row.tp, row.total


@overall_ratio(
    symbol="1 - P_o", tex=r"1 - \frac{\sum_i a_i}{w}", source="complement of accuracy", best=0.0
)
def error_rate(row: type[CountRow]) -> RatioRows:
    """Share of all real items that are not predicted correctly."""
    return row.fn, row.total


@overall_ratio(
    symbol="R'",
    name="R'",
    tex=r"\frac{\sum_i a_i}{w} + \frac{m - s}{w}",
    source="Zhang, Su, Dou 2021, eq. 23",
    range=(-np.inf, 1.0),
    range_note="at least 0 if there are no spurious items",
)
def r_prime(row: type[CountRow]) -> RatioRows:
    """1 minus (wrong + spurious predictions) / items.

    It equals accuracy if every item is classified and none is spurious. Unclassified items
    count as not wrong, so read it together with `coverage`.
    """
    return row.not_wrong, row.total


@overall_ratio(
    symbol="coverage", tex=r"\frac{\sum_{ij} n_{ij}}{w}", source="Chow 1970; El-Yaniv, Wiener 2010"
)
def coverage(row: type[CountRow]) -> RatioRows:
    """Share of the real items that have a prediction."""
    return row.answered, row.total


@overall_ratio(
    symbol="P_o | answered",
    name="Accuracy on answered items",
    tex=r"\frac{\sum_i a_i}{\sum_{ij} n_{ij}}",
    source="Chow 1970; El-Yaniv, Wiener 2010",
)
def accuracy_on_answered(row: type[CountRow]) -> RatioRows:
    """Share of the classified items that are predicted correctly."""
    return row.tp, row.answered


@overall(
    "macro",
    of=("recall",),
    symbol="BA",
    tex=r"\frac{1}{k} \sum_i TPR_i",
    source="Brodersen et al. 2010; the same value as macro recall",
    undefined=("no_class_defined",),
    interval="average",
)
def balanced_accuracy(macro: Array) -> Array:
    """Mean recall of the classes; each class counts the same."""
    return macro


@overall(
    "means",
    of=("precision", "recall"),
    symbol="F-1",
    tex=r"\frac{2 P R}{P + R},\ P = \frac1k\sum_i PPV_i,\ R = \frac1k\sum_i TPR_i",
    source="the F-1 of Zhang, Su, Dou 2021; not macro F1 (Opitz, Burst 2019)",
    undefined=("no_class_defined",),
    interval="score",
)
def f1_of_macro_averages(precision: Array, recall: Array) -> Array:
    """Harmonic mean of macro precision and macro recall, 0 if both are 0; it differs from macro
    F1.
    """
    both = precision + recall
    return 2 * precision * recall / np.where(both == 0, 1.0, both)


@overall(
    "means",
    of=("recall",),
    through=np.log,
    symbol="GMR",
    tex=r"\left(\prod_i TPR_i\right)^{1/k}",
    source="Sun et al. 2006",
    undefined=("no_class_defined",),
    interval="average",
)
def geometric_mean_recall(mean_log_recall: Array) -> Array:
    """Geometric mean of the recalls: 0 if the recall of any class is 0."""
    return np.exp(mean_log_recall)


@overall(
    "macro",
    of=("icsi",),
    symbol="CSI",
    name="Classification success index",
    tex=r"\frac{1}{k} \sum_i (TPR_i + PPV_i - 1)",
    source="Koukoulas, Blackburn 2001; the same value as macro ICSI",
    range=SIGNED,
    undefined=("no_class_defined",),
    interval="average",
)
def csi(macro: Array) -> Array:
    """Mean over the classes of recall + precision - 1."""
    return macro


def beating_no_information(table: ConfusionTable) -> Array:
    """Compute the exact one-sided binomial p-value of the accuracy against the largest prevalence.

    NaN for fractional or weighted counts, which are not numbers of trials.
    """
    p = binomial_tail_p(*_trials(table))
    return np.where(table.fractional | table.weighted, np.nan, p)


def not_beating_no_information(table: ConfusionTable, level: float) -> Array:
    """Whether the p-value of `beating_no_information` is above a level, often without it."""
    above = binomial_tail_exceeds(*_trials(table), level)
    return np.asarray(above & ~np.asarray(table.fractional | table.weighted))


def _trials(table: ConfusionTable) -> tuple[Array, Array, Array]:
    """Return correct items, all items, and the largest prevalence."""
    largest = np.maximum.reduce(table.support, axis=-1)
    return np.add.reduce(table.correct, axis=-1), table.total, largest / table.total


@overall(
    "table",
    symbol="NIR",
    name="No-information rate",
    tex=r"\frac{\max_i m_i}{w}",
    source="Kuhn 2008",
    best=None,
    undefined=("no_samples",),
    p_value=beating_no_information,
)
def no_information_rate(table: ConfusionTable) -> Array:
    """Accuracy of always predicting the most frequent class, with the p-value of beating it."""
    return np.maximum.reduce(table.support, axis=-1) / table.total
