"""Family `information`: entropies of the confusions."""

import numpy as np

from rprime.core import special
from rprime.core.arrays import Array
from rprime.core.families.association import BITS, Association, association
from rprime.core.index import NON_NEGATIVE, overall, per_class
from rprime.core.table import ConfusionTable


@association(
    symbol="H(true, predicted)",
    tex=r"-\sum_{ij} \frac{n_{ij}}{w} \log_2 \frac{n_{ij}}{w}",
    source="Shannon 1948",
    **BITS | {"score_range": lambda k, *_: (0.0, 2 * float(np.log2(k)))},
)
def joint_entropy(a: Association) -> Array:
    """Bits needed to name the true and the predicted class of an item."""
    return a.entropy_true + a.entropy_predicted - a.mutual_information


@association(
    symbol="H(predicted | true)",
    name="Conditional entropy of the predicted class",
    tex=r"-\sum_{ij} \frac{n_{ij}}{w} \log_2 \frac{n_{ij}}{m_i}",
    source="Shannon 1948",
    **BITS | {"best": 0.0},
)
def conditional_entropy_predicted(a: Association) -> Array:
    """Bits needed to name the predicted class where the true one is known."""
    return np.maximum(a.entropy_predicted - a.mutual_information, 0.0)


@association(
    symbol="H(true | predicted)",
    name="Conditional entropy of the true class",
    tex=r"-\sum_{ij} \frac{n_{ij}}{w} \log_2 \frac{n_{ij}}{s_j}",
    source="Shannon 1948",
    **BITS | {"best": 0.0},
)
def conditional_entropy_true(a: Association) -> Array:
    """Bits needed to name the true class where the predicted one is known."""
    return np.maximum(a.entropy_true - a.mutual_information, 0.0)


MARGINS = {
    "resampled": True,
    "range": NON_NEGATIVE,
    "universe": "classified",
    "undefined": ("no_samples", "infinite"),
}


@overall(
    "table",
    symbol="H(true; predicted)",
    name="Cross entropy of the margins",
    tex=r"-\sum_i \mu_i \log_2 \frac{s_i}{w}",
    source="Good 1952",
    best=None,
    **MARGINS,
)
def cross_entropy_of_margins(t: ConfusionTable) -> Array:
    """Bits that a true class takes in a code made for the predicted frequencies."""
    total = t.total[..., None]
    shares = special.xlogy(t.support / total, t.predicted / total)
    return -np.add.reduce(shares, axis=-1) / np.log(2) + 0.0


@overall(
    "table",
    symbol="D_{KL}",
    name="Kullback-Leibler divergence of the margins",
    tex=r"\sum_i \mu_i \log_2 \frac{m_i}{s_i}",
    source="Kullback, Leibler 1951",
    best=0.0,
    **MARGINS,
)
def kullback_leibler_divergence(t: ConfusionTable) -> Array:
    """Bits lost because the predicted frequencies differ from the true ones."""
    total = t.total[..., None]
    terms = special.rel_entr(t.support / total, t.predicted / total)
    return np.maximum(np.add.reduce(terms, axis=-1), 0.0) / np.log(2)


CONFUSION = {
    "resampled": True,
    "range": NON_NEGATIVE,
    "range_note": "at most 1 for three classes or more",
    "best": 0.0,
    "universe": "classified",
}
BINARY = 2
CEN = CONFUSION | {"source": "Wei et al. 2010"}
MCEN = CONFUSION | {"source": "Delgado, Nunez-Gonzalez 2019"}
CLASS_CONDITIONS = {"undefined": ("no_samples", "no_true_samples", "single_class")}
CONDITIONS = {"undefined": ("no_samples", "single_class")}
TERMS = r"-\sum_{j \ne i} \sum_{x \in \{n_{ij}, n_{ji}\}} \frac{x}{d_i} \log_{2(k-1)} \frac{x}{d_i}"


@per_class(
    reads="table",
    symbol="CEN_i",
    name="Confusion entropy of the class",
    tex=TERMS + r",\ d_i = m_i + s_i",
    **CEN | CLASS_CONDITIONS,
)
def class_confusion_entropy(t: ConfusionTable) -> Array:
    """Entropy of the confusions of the class with each other class, in both directions."""
    return _entropy_of_confusions(t, t.support + t.predicted)


@per_class(
    reads="table",
    symbol="MCEN_i",
    name="Modified confusion entropy of the class",
    tex=TERMS + r",\ d_i = m_i + s_i - a_i",
    **MCEN | CLASS_CONDITIONS,
)
def class_modified_confusion_entropy(t: ConfusionTable) -> Array:
    """Confusion entropy in which a correct prediction counts once, not twice."""
    return _entropy_of_confusions(t, t.support + t.predicted - t.correct)


@overall("table", symbol="CEN", tex=r"\sum_i \frac{m_i + s_i}{2 w} CEN_i", **CEN | CONDITIONS)
def confusion_entropy(t: ConfusionTable) -> Array:
    """Mean confusion entropy of the classes, weighted by their items and predictions."""
    d = t.support + t.predicted
    return _weighted(_entropy_of_confusions(t, d), d, 2 * t.total)


@overall(
    "table",
    symbol="MCEN",
    tex=r"\sum_i \frac{m_i + s_i - a_i}{2 w - [k > 2] \sum_j a_j} MCEN_i",
    **MCEN | CONDITIONS,
)
def modified_confusion_entropy(t: ConfusionTable) -> Array:
    """Mean modified confusion entropy of the classes, weighted by items and predictions."""
    d = t.support + t.predicted - t.correct
    counted_once = np.add.reduce(t.correct, axis=-1) if t.k != BINARY else 0.0
    return _weighted(_entropy_of_confusions(t, d), d, 2 * t.total - counted_once)


def _entropy_of_confusions(t: ConfusionTable, sizes: Array) -> Array:
    """Sum -x/d log x/d over the confusions x of each class, shape (..., k); NaN for one class."""
    cells, (rows, columns) = t.cells, t.cells.positions()
    errors = np.where(rows == columns, 0.0, cells.counts)
    logs = special.xlogy(errors, errors)
    logs = cells.row_totals(logs) + cells.column_totals(logs)
    items = cells.row_totals(errors) + cells.column_totals(errors)
    base = np.log(2.0 * (t.k - 1)) if t.k > 1 else np.nan
    return np.maximum(items * np.log(sizes) - logs, 0.0) / sizes / base


def _weighted(values: Array, weights: Array, total: Array) -> Array:
    filled = np.where(weights > 0, values * weights, 0.0)
    return np.add.reduce(filled, axis=-1) / total
