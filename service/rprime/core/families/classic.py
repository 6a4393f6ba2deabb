"""Family `classic`: counts and coefficients of a class that other tools report."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow, Counts, RatioRows
from rprime.core.families.one_vs_rest import RECALL_AND_PRECISION
from rprime.core.index import NON_NEGATIVE, SIGNED, Declaration, class_ratio, per_class


def count(symbol: str, name: str, best: float | None = None) -> Declaration:
    """Declare a number of items."""
    return per_class(
        symbol=symbol,
        name=name,
        tex=symbol,
        source="Fawcett 2006",
        range=NON_NEGATIVE,
        best=best,
        scale_invariant=False,
        averaged=False,
    )


@count("TP", "True positives")
def true_positives(c: Counts) -> Array:
    """Items of the class that are predicted as it."""
    return c.tp


@count("FP", "False positives", 0.0)
def false_positives(c: Counts) -> Array:
    """Predictions of the class on other items."""
    return c.fp


@count("FN", "False negatives", 0.0)
def false_negatives(c: Counts) -> Array:
    """Items of the class that are not predicted as it."""
    return c.fn


@count("TN", "True negatives")
def true_negatives(c: Counts) -> Array:
    """Items of other classes that are not predicted as the class."""
    return c.tn


@class_ratio(symbol="TP / w", tex=r"\frac{a_i}{w}", source="Kuhn 2008 (caret)", best=None)
def detection_rate(row: type[CountRow]) -> RatioRows:
    """Share of all items that belong to the class and are predicted as it."""
    return row.tp, row.total


ONE_VS_REST = {"source": "Labatut, Cherifi 2011, section 7.1", "interval": "score"}


@per_class(
    symbol="ACC_i",
    name="Accuracy of the class against the rest",
    tex=r"\frac{TP + TN}{TP + TN + FP + FN}",
    undefined=("no_samples",),
    **ONE_VS_REST,
)
def class_accuracy(c: Counts) -> Array:
    """Accuracy if all other classes are merged into one."""
    return (c.tp + c.tn) / (c.support + c.negatives)


@per_class(
    symbol="ERR_i",
    name="Error rate of the class against the rest",
    tex=r"\frac{FP + FN}{TP + TN + FP + FN}",
    best=0.0,
    undefined=("no_samples",),
    **ONE_VS_REST,
)
def class_error_rate(c: Counts) -> Array:
    """Error rate if all other classes are merged into one."""
    return (c.fp + c.fn) / (c.support + c.negatives)


@per_class(
    symbol=r"\kappa_i",
    name="Kappa of the class against the rest",
    tex=r"\frac{2 (TP \cdot TN - FP \cdot FN)}{(TP + FP)(FP + TN) + (TP + FN)(FN + TN)}",
    range=SIGNED,
    universe="classified",
    undefined=("no_samples", "chance_agreement_is_one"),
    **ONE_VS_REST,
)
def class_kappa(c: Counts) -> Array:
    """Cohen's kappa if all other classes are merged into one."""
    chance = c.predicted * c.negatives + c.support * c.predicted_negatives
    return 2 * (c.tp * c.tn - c.fp * c.fn) / chance


@per_class(
    symbol="Q",
    name="Yule's Q",
    tex=r"\frac{TP \cdot TN - FP \cdot FN}{TP \cdot TN + FP \cdot FN}",
    source="Yule 1900",
    range=SIGNED,
    universe="classified",
    undefined=("no_true_samples", "no_predictions", "single_class"),
    interval="odds",
)
def yule_q(c: Counts) -> Array:
    """Diagnostic odds ratio mapped to [-1, 1]: (DOR - 1) / (DOR + 1)."""
    right, wrong = c.tp * c.tn, c.fp * c.fn
    return (right - wrong) / (right + wrong)


@per_class(
    symbol="DP",
    tex=r"\frac{\sqrt{3}}{\pi} \ln \frac{TP \cdot TN}{FP \cdot FN}",
    source="Blakeley, Oddone 1995; Sokolova, Japkowicz, Szpakowicz 2006",
    range=(-np.inf, np.inf),
    best=np.inf,
    undefined=("no_true_samples", "no_predictions", "single_class", "infinite"),
)
def discriminant_power(c: Counts) -> Array:
    """Logarithm of the diagnostic odds ratio, scaled; below 1 is poor, above 3 good."""
    return np.sqrt(3) / np.pi * np.log((c.tp * c.tn) / (c.fp * c.fn))


@per_class(
    symbol="min(TPR, PPV)",
    name="Braun-Blanquet",
    tex=r"\frac{a_i}{\max(m_i, s_i)}",
    source="Braun-Blanquet 1932; Labatut, Cherifi 2011, section 7.2",
    undefined=("no_true_samples",),
)
def braun_blanquet(c: Counts) -> Array:
    """Minimum of recall and precision; 0 if the class is never predicted."""
    return c.tp / np.maximum(c.support, c.predicted)


@per_class(
    symbol="max(TPR, PPV)",
    tex=r"\max(TPR_i, PPV_i)",
    source="Szymkiewicz 1934; Simpson 1943; Labatut, Cherifi 2011, section 7.2",
    **RECALL_AND_PRECISION,
)
def overlap_coefficient(c: Counts) -> Array:
    """Maximum of recall and precision."""
    return np.maximum(c.tp / c.support, c.tp / c.predicted)


@per_class(
    symbol=r"TPR \cdot PPV",
    tex=r"TPR_i \cdot PPV_i",
    source="Sorgenfrei 1958; Labatut, Cherifi 2011, section 7.2",
    interval="score",
    **RECALL_AND_PRECISION,
)
def sorgenfrei(c: Counts) -> Array:
    """Product of recall and precision."""
    return (c.tp / c.support) * (c.tp / c.predicted)


@per_class(
    symbol="QM",
    name="Quadratic mean of recall and precision",
    tex=r"\sqrt{\frac{TPR_i^2 + PPV_i^2}{2}}",
    source="Labatut, Cherifi 2011, section 7.2",
    interval="score",
    **RECALL_AND_PRECISION,
)
def quadratic_mean(c: Counts) -> Array:
    """Root of the mean of the squares of recall and precision."""
    recall, precision = c.tp / c.support, c.tp / c.predicted
    return np.sqrt((recall * recall + precision * precision) / 2)
