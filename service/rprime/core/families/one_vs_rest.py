"""Per-class indices: one class against all others."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow, Counts, RatioRows
from rprime.core.index import AT_MOST_ONE, NON_NEGATIVE, SIGNED, Parts, class_ratio, per_class

RECALL = (CountRow.tp, CountRow.support)
PRECISION = (CountRow.tp, CountRow.predicted)
FALL_OUT = (CountRow.fp, CountRow.negatives)
REJECTION = (CountRow.tn, CountRow.predicted_negatives)
PREVALENCE = (CountRow.support, CountRow.total)
OVERLAP = (CountRow.tp, CountRow.union)
RECALL_AND_PRECISION = {
    "undefined": ("no_true_samples", "no_predictions"),
    "never_predicted": lambda _: 0.0,
}
"""The fields of positive functions of both."""


@per_class(
    symbol="R'_i",
    name="R'",
    tex=r"\frac{a_i}{m_i} - \frac{s_i - m_i}{w}",
    source="Zhang, Su, Dou 2021, eq. 22",
    range=AT_MOST_ONE,
    range_note="above -1 if there are no spurious items",
    undefined=("no_true_samples",),
    parts=Parts(
        (RECALL, FALL_OUT, PREVALENCE),
        lambda recall, fall_out, share: share + (1 - share) * (recall - fall_out),
    ),
)
def r_prime(c: Counts) -> Array:
    """Recall minus the excess of predictions of the class, as a share of all items.

    It equals p + (1 - p) J of the prevalence p and the informedness J: random predictions score p,
    so do not compare classes of different prevalence by it.
    """
    return c.tp / c.support - (c.predicted - c.support) / c.total


@per_class(
    symbol="R_i",
    tex=r"\frac{a_i}{m_i} - \frac{s_i}{w}",
    source="Xu 1973; Zhang, Su, Dou 2021, eq. 12",
    range=AT_MOST_ONE,
    range_note="from minus the predicted prevalence to 1 minus the prevalence",
    best=None,
    undefined=("no_true_samples",),
    parts=Parts(
        (RECALL, FALL_OUT, PREVALENCE),
        lambda recall, fall_out, share: (1 - share) * (recall - fall_out),
    ),
)
def r(c: Counts) -> Array:
    """Recall minus the share of all items predicted as the class; at best 1 - prevalence."""
    return c.tp / c.support - c.predicted / c.total


@class_ratio(symbol="TPR", tex=r"\frac{a_i}{m_i}", source="producer's accuracy, sensitivity")
def recall(row: type[CountRow]) -> RatioRows:
    """Share of the items of the class that are predicted as it."""
    return row.tp, row.support


@class_ratio(
    symbol="PPV", tex=r"\frac{a_i}{s_i}", source="user's accuracy", never_predicted=lambda _: 0.0
)
def precision(row: type[CountRow]) -> RatioRows:
    """Share of the predictions of the class that are correct."""
    return row.tp, row.predicted


@class_ratio(symbol="TNR", tex=r"\frac{TN}{TN + FP}", source="Yerushalmy 1947")
def specificity(row: type[CountRow]) -> RatioRows:
    """Share of the other classes' items that are not predicted as the class."""
    return row.tn, row.negatives


@class_ratio(symbol="NPV", tex=r"\frac{TN}{TN + FN}", source="Altman, Bland 1994")
def negative_predictive_value(row: type[CountRow]) -> RatioRows:
    """Share of the items not predicted as the class that belong to another class."""
    return row.tn, row.predicted_negatives


@class_ratio(symbol="FPR", tex=r"\frac{FP}{FP + TN}", source="complement of specificity", best=0.0)
def false_positive_rate(row: type[CountRow]) -> RatioRows:
    """Share of the other classes' items that are predicted as the class."""
    return row.fp, row.negatives


@class_ratio(symbol="FNR", tex=r"\frac{FN}{m_i}", source="complement of recall", best=0.0)
def false_negative_rate(row: type[CountRow]) -> RatioRows:
    """Share of the items of the class that are not predicted as it."""
    return row.fn, row.support


@class_ratio(
    symbol="FDR",
    tex=r"\frac{FP}{s_i}",
    source="complement of precision",
    best=0.0,
    never_predicted=lambda _: 1.0,
)
def false_discovery_rate(row: type[CountRow]) -> RatioRows:
    """Share of the predictions of the class that are wrong."""
    return row.fp, row.predicted


@class_ratio(
    symbol="FOR",
    tex=r"\frac{FN}{FN + TN}",
    source="complement of the negative predictive value",
    best=0.0,
)
def false_omission_rate(row: type[CountRow]) -> RatioRows:
    """Share of the items not predicted as the class that belong to it."""
    return row.fn, row.predicted_negatives


@class_ratio(
    symbol=r"\mu_i",
    tex=r"\frac{m_i}{w}",
    source="share of the class among the real items",
    best=None,
    averaged=False,
)
def prevalence(row: type[CountRow]) -> RatioRows:
    """Share of all items that belong to the class; a property of the test set."""
    return row.support, row.total


@class_ratio(
    symbol="s_i / w",
    tex=r"\frac{s_i}{w}",
    source="share of the class among the predictions",
    range=NON_NEGATIVE,
    range_note="at most 1 if there are no spurious items",
    best=None,
    averaged=False,
)
def predicted_prevalence(row: type[CountRow]) -> RatioRows:
    """Predictions of the class divided by all real items."""
    return row.predicted, row.total


@class_ratio(
    symbol="F_1",
    tex=r"\frac{2 a_i}{m_i + s_i}",
    source="van Rijsbergen 1979",
    interval="mapped",
    parts=Parts((OVERLAP,), lambda overlap: overlap, lambda x: 2 * x / (1 + x)),
)
def f1(row: type[CountRow]) -> RatioRows:
    """Harmonic mean of recall and precision; 0 if the class is never predicted."""
    return row.twice_tp, row.support_and_predicted


@class_ratio(
    symbol=r"F_\beta",
    name="F-beta",
    tex=r"\frac{(1+\beta^2) a_i}{(1+\beta^2) a_i + \beta^2 FN + FP}",
    source="van Rijsbergen 1979",
    interval="score",
    never_predicted=lambda _: 0.0,
)
def f_beta(row: type[CountRow]) -> RatioRows:
    """Weighted harmonic mean that counts recall beta times as much as precision.

    The request sets beta; the default is 1, and 0 gives precision.
    """
    return row.weighted_tp, row.weighted_union


@class_ratio(
    symbol="JCC",
    tex=r"\frac{a_i}{m_i + s_i - a_i}",
    source="Jaccard 1912",
    interval="mapped",
    parts=Parts((OVERLAP,), lambda overlap: overlap),
)
def jaccard(row: type[CountRow]) -> RatioRows:
    """Intersection over union of the class's items and its predictions."""
    return row.tp, row.union


@per_class(
    symbol="(TPR + PPV) / 2",
    tex=r"\frac{TPR_i + PPV_i}{2}",
    source="Kulczynski 1927",
    **RECALL_AND_PRECISION,
    parts=Parts((PRECISION, RECALL), lambda precision, recall: (precision + recall) / 2),
)
def kulczynski(c: Counts) -> Array:
    """Arithmetic mean of recall and precision."""
    return (c.tp / c.support + c.tp / c.predicted) / 2


@per_class(
    symbol="FM",
    name="Fowlkes-Mallows",
    tex=r"\sqrt{TPR_i \cdot PPV_i}",
    source="Fowlkes, Mallows 1983",
    interval="score",
    **RECALL_AND_PRECISION,
)
def fowlkes_mallows(c: Counts) -> Array:
    """Geometric mean of recall and precision."""
    return np.sqrt((c.tp / c.support) * (c.tp / c.predicted))


@per_class(
    symbol="ICSI",
    name="Individual classification success",
    tex=r"TPR_i + PPV_i - 1",
    source="Koukoulas, Blackburn 2001",
    range=SIGNED,
    undefined=("no_true_samples", "no_predictions"),
    never_predicted=lambda _: -1.0,
    parts=Parts((PRECISION, RECALL), lambda precision, recall: precision + recall - 1),
)
def icsi(c: Counts) -> Array:
    """Recall + precision - 1: 1 minus the shares of both kinds of error."""
    return c.tp / c.support - c.fp / c.predicted


@per_class(
    symbol="J, TSS",
    tex=r"TPR_i + TNR_i - 1",
    source="Peirce 1884; Youden 1950; Allouche et al. 2006",
    range=SIGNED,
    undefined=("no_true_samples", "single_class"),
    parts=Parts((RECALL, FALL_OUT), lambda recall, fall_out: recall - fall_out),
)
def informedness(c: Counts) -> Array:
    """Recall minus the false positive rate; 0 if predictions do not depend on the item."""
    return c.tp / c.support - c.fp / c.negatives


@per_class(
    symbol="MK",
    tex=r"PPV_i + NPV_i - 1",
    source="Powers 2011",
    range=SIGNED,
    undefined=("no_samples", "no_predictions", "single_class"),
    never_predicted=lambda c: -c.fn / c.predicted_negatives,
    parts=Parts((PRECISION, REJECTION), lambda precision, rejection: precision + rejection - 1),
)
def markedness(c: Counts) -> Array:
    """Precision minus the false omission rate: how much a prediction says about the truth."""
    return c.tp / c.predicted - c.fn / c.predicted_negatives


@per_class(
    symbol=r"\phi_i",
    name="Matthews correlation of the class",
    tex=r"\frac{TP \cdot TN - FP \cdot FN}{\sqrt{(TP+FP)(TP+FN)(TN+FP)(TN+FN)}}",
    source="Matthews 1975",
    range=SIGNED,
    universe="classified",
    undefined=("no_true_samples", "no_predictions", "single_class"),
    interval="score",
)
def class_mcc(c: Counts) -> Array:
    """Correlation between belonging to the class and being predicted as it."""
    # Roots of two margins, in pairs that are equal squares for a perfect classifier and for one
    # that is always wrong: the results are 1 and -1 to the last digit.
    true = (c.tp / np.sqrt(c.support * c.predicted)) * (
        c.tn / np.sqrt(c.negatives * c.predicted_negatives)
    )
    false = (c.fp / np.sqrt(c.predicted * c.negatives)) * (
        c.fn / np.sqrt(c.support * c.predicted_negatives)
    )
    return true - false


@per_class(
    symbol="(TPR + TNR) / 2",
    name="Balanced accuracy of the class",
    tex=r"\frac{TPR_i + TNR_i}{2}",
    source="Brodersen et al. 2010; not the area under a curve",
    undefined=("no_true_samples", "single_class"),
    parts=Parts((RECALL, FALL_OUT), lambda recall, fall_out: (1 + recall - fall_out) / 2),
)
def class_balanced_accuracy(c: Counts) -> Array:
    """Mean of recall and specificity; 0.5 if predictions do not depend on the item."""
    return (c.tp / c.support + c.tn / c.negatives) / 2


@per_class(
    symbol="G",
    name="G-mean",
    tex=r"\sqrt{TPR_i \cdot TNR_i}",
    source="Kubat, Matwin 1997",
    undefined=("no_true_samples", "single_class"),
    parts=Parts(
        (RECALL, FALL_OUT),
        lambda recall, fall_out: recall * (1 - fall_out),
        lambda square: np.sqrt(np.clip(square, 0.0, 1.0)),
    ),
)
def g_mean(c: Counts) -> Array:
    """Geometric mean of recall and specificity."""
    return np.sqrt((c.tp / c.support) * (c.tn / c.negatives))


@per_class(
    symbol="LR+",
    tex=r"\frac{TPR_i}{FPR_i}",
    source="Altman, Bland 1994",
    range=NON_NEGATIVE,
    best=np.inf,
    undefined=("no_true_samples", "no_predictions", "single_class", "infinite"),
    interval="likelihood_ratio",
    parts=Parts((RECALL, FALL_OUT), np.divide),
    averaged=False,
)
def positive_likelihood_ratio(c: Counts) -> Array:
    """How many times more likely the class is predicted for its own items than for others."""
    return (c.tp / c.support) / (c.fp / c.negatives)


@per_class(
    symbol="LR-",
    tex=r"\frac{FNR_i}{TNR_i}",
    source="Altman, Bland 1994",
    range=NON_NEGATIVE,
    best=0.0,
    undefined=("no_true_samples", "single_class", "infinite"),
    interval="likelihood_ratio",
    parts=Parts(((CountRow.fn, CountRow.support), (CountRow.tn, CountRow.negatives)), np.divide),
    averaged=False,
)
def negative_likelihood_ratio(c: Counts) -> Array:
    """How many times more likely the class is not predicted for its own items than for others."""
    return (c.fn / c.support) / (c.tn / c.negatives)


@per_class(
    symbol="DOR",
    tex=r"\frac{TP \cdot TN}{FP \cdot FN}",
    source="Glas et al. 2003",
    range=NON_NEGATIVE,
    best=np.inf,
    undefined=("no_true_samples", "no_predictions", "single_class", "infinite"),
    interval="odds_ratio",
    averaged=False,
)
def diagnostic_odds_ratio(c: Counts) -> Array:
    """Odds of predicting the class for its own items, divided by the odds for other items."""
    return (c.tp * c.tn) / (c.fp * c.fn)


@per_class(
    symbol="lift",
    tex=r"\frac{w\, a_i}{m_i s_i}",
    source="Brin et al. 1997",
    range=NON_NEGATIVE,
    best=None,
    universe="classified",
    undefined=("no_true_samples", "no_predictions"),
    interval="log_ratio",
    averaged=False,
)
def lift(c: Counts) -> Array:
    """How many times more often truth and prediction agree on the class than by chance."""
    return (c.tp / c.support) / (c.predicted / c.total)


@per_class(
    symbol=r"\kappa_{i\cdot}",
    name="Conditional kappa, true class given",
    tex=r"\frac{w a_i - m_i s_i}{w m_i - m_i s_i}",
    source="Light 1971",
    range=AT_MOST_ONE,
    universe="classified",
    undefined=("no_true_samples", "single_class"),
    interval="score",
)
def conditional_kappa_true(c: Counts) -> Array:
    """Chance-corrected recall."""
    # w a - m s is TP TN - FP FN, which does not cancel if one product is small.
    right = (c.tp / c.support) * (c.tn / c.predicted_negatives)
    return right - (c.fn / c.support) * (c.fp / c.predicted_negatives)


@per_class(
    symbol=r"\kappa_{\cdot i}",
    name="Conditional kappa, predicted class given",
    tex=r"\frac{w a_i - m_i s_i}{w s_i - m_i s_i}",
    source="Light 1971",
    range=AT_MOST_ONE,
    universe="classified",
    undefined=("no_predictions", "single_class"),
    interval="score",
)
def conditional_kappa_predicted(c: Counts) -> Array:
    """Chance-corrected precision."""
    right = (c.tp / c.predicted) * (c.tn / c.negatives)
    return right - (c.fp / c.predicted) * (c.fn / c.negatives)
