"""Measures of association: how much one labelling says about the other, ignoring the names."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rprime.core import special
from rprime.core.arrays import Array
from rprime.core.cells import SparseCells
from rprime.core.index import NON_NEGATIVE, Declaration, overall
from rprime.core.table import ConfusionTable


def association(**fields: Any) -> Declaration:  # noqa: ANN401 (the fields of Index)
    """Declare an index by a function of `Association`, by default one that needs two classes."""
    return overall("association", **{"undefined": ("no_samples", "single_class")} | fields)


@dataclass(frozen=True)
class Association:
    """The quantities that measures of association share, computed once for a stack of tables."""

    table: ConfusionTable

    @cached_property
    def expected(self) -> Array:
        """m_i s_j / w, the count of every cell under independence."""
        t = self.table
        share = t.support / t.total[..., None]
        return np.asarray(t.cells.by_row(share) * t.cells.by_column(t.predicted))

    @cached_property
    def chi_square(self) -> Array:
        """Pearson's statistic over non-empty rows and columns; exactly 0 with one of either."""
        t = self.table
        parts = t.cells.counts - self.expected
        parts *= parts
        np.divide(parts, self.expected, out=parts, where=self.expected > 0)
        statistic = t.cells.total(parts)
        if isinstance(t.cells, SparseCells):  # the rest is expected in empty cells, not stored
            statistic = statistic + (t.total - t.cells.total(self.expected))
        statistic = np.where(np.minimum.reduce(self.freedom) > 0, statistic, 0.0)
        return np.where(t.total > 0, statistic, np.nan)

    @cached_property
    def freedom(self) -> Array:
        """Free rows and free columns, shape (2, ...): one less than occur and are predicted."""
        margins = np.array((self.table.support, self.table.predicted))
        return np.add.reduce(margins > 0, axis=-1, dtype=np.float64) - 1

    @cached_property
    def entropy_true(self) -> Array:
        """Entropy of the true classes, bits."""
        return _entropy(self.table.support, self.table.total)

    @cached_property
    def entropy_predicted(self) -> Array:
        """Entropy of the predicted classes, bits."""
        return _entropy(self.table.predicted, self.table.total)

    @cached_property
    def mutual_information(self) -> Array:
        """Information that one labelling gives about the other, bits."""
        t = self.table
        nats = special.rel_entr(t.cells.counts, self.expected)
        bits = t.cells.total(nats) / (t.total * np.log(2))
        return np.clip(bits, 0.0, np.minimum(self.entropy_true, self.entropy_predicted))

    @cached_property
    def guesses_of_true(self) -> tuple[Array, Array]:
        """Items whose true class is guessed knowing the predicted one, and not knowing it."""
        largest = self.table.cells.column_totals(self.table.cells.counts, np.maximum)
        return largest.sum(-1), self.table.support.max(-1)

    @cached_property
    def guesses_of_predicted(self) -> tuple[Array, Array]:
        """Items whose predicted class is guessed knowing the true one, and not knowing it."""
        largest = self.table.cells.row_totals(self.table.cells.counts, np.maximum)
        return largest.sum(-1), self.table.predicted.max(-1)

    @cached_property
    def squares(self) -> Array:
        """The squared counts of the cells."""
        return self.table.cells.counts * self.table.cells.counts


def _entropy(margin: Array, total: Array) -> Array:
    nats = np.add.reduce(special.entr(margin / total[..., None]), axis=-1)
    return nats / np.log(2) + 0.0  # no -0.0 for a single class


@association(
    symbol=r"\chi^2",
    name="Pearson's chi-square",
    tex=r"\sum_{ij} \frac{(n_{ij} - m_i s_j / w)^2}{m_i s_j / w}",
    source="Pearson 1900",
    range=NON_NEGATIVE,
    best=None,
    scale_invariant=False,
    undefined=("no_samples", "weighted"),
)
def chi2(a: Association) -> Array:
    """Distance of the table from independence, over non-empty rows and columns."""
    return a.chi_square


@association(
    symbol=r"\phi",
    tex=r"\sqrt{\chi^2 / w}",
    source="Pearson 1900",
    range=NON_NEGATIVE,
    best=None,
    undefined=("no_samples",),
)
def phi(a: Association) -> Array:
    """Square root of chi-square / items; it can exceed 1 with more than two classes."""
    return np.sqrt(a.chi_square / a.table.total)


@association(
    symbol="V",
    name="Cramer's V",
    tex=r"\sqrt{\frac{\chi^2 / w}{\min(r, c) - 1}}",
    source="Cramer 1946",
)
def cramers_v(a: Association) -> Array:
    """Phi scaled to [0, 1] by the smaller number r, c of non-empty rows and columns."""
    freedom = np.minimum.reduce(a.freedom)
    return np.minimum(np.sqrt(a.chi_square / a.table.total / freedom), 1.0)


@association(
    symbol="T",
    name="Tschuprow's T",
    tex=r"\sqrt{\frac{\chi^2 / w}{\sqrt{(r - 1)(c - 1)}}}",
    source="Tschuprow 1925",
)
def tschuprows_t(a: Association) -> Array:
    """Phi scaled by both numbers r, c of non-empty rows and columns."""
    freedom = np.sqrt(np.multiply.reduce(a.freedom))
    return np.minimum(np.sqrt(a.chi_square / a.table.total / freedom), 1.0)


@association(
    symbol="C",
    tex=r"\sqrt{\frac{\chi^2}{\chi^2 + w}}",
    source="Pearson 1904",
    best=None,
    undefined=("no_samples",),
)
def contingency_coefficient(a: Association) -> Array:
    """Chi-square scaled below 1; its largest value depends on the number of classes."""
    return np.sqrt(a.chi_square / (a.chi_square + a.table.total))


@association(
    symbol=r"\lambda_{true}",
    name="Goodman and Kruskal's lambda, true class",
    tex=r"\frac{\sum_j \max_i n_{ij} - \max_i m_i}{w - \max_i m_i}",
    source="Goodman, Kruskal 1954",
)
def goodman_kruskal_lambda_true(a: Association) -> Array:
    """Share of the errors in guessing the true class that knowing the predicted one avoids."""
    informed, blind = a.guesses_of_true
    return (informed - blind) / (a.table.total - blind)


@association(
    symbol=r"\lambda_{predicted}",
    name="Goodman and Kruskal's lambda, predicted class",
    tex=r"\frac{\sum_i \max_j n_{ij} - \max_j s_j}{w - \max_j s_j}",
    source="Goodman, Kruskal 1954",
)
def goodman_kruskal_lambda_predicted(a: Association) -> Array:
    """Share of the errors in guessing the predicted class that knowing the true one avoids."""
    informed, blind = a.guesses_of_predicted
    return (informed - blind) / (a.table.total - blind)


@association(
    symbol=r"\lambda",
    name="Goodman and Kruskal's lambda, symmetric",
    tex=r"\frac{\sum_j \max_i n_{ij} + \sum_i \max_j n_{ij} - \max_i m_i - \max_j s_j}"
    r"{2w - \max_i m_i - \max_j s_j}",
    source="Goodman, Kruskal 1954",
)
def goodman_kruskal_lambda_symmetric(a: Association) -> Array:
    """Both lambdas combined: the true and the predicted class are guessed half of the time each."""
    informed, blind = np.add(a.guesses_of_true, a.guesses_of_predicted)
    return (informed - blind) / (2 * a.table.total - blind)


@association(
    symbol=r"\tau_{true}",
    name="Goodman and Kruskal's tau, true class",
    tex=r"\frac{\sum_{ij} n_{ij}^2 / (w s_j) - \sum_i \mu_i^2}{1 - \sum_i \mu_i^2}",
    source="Goodman, Kruskal 1954",
    resampled=True,
)
def goodman_kruskal_tau_true(a: Association) -> Array:
    """Share of the errors in drawing the true class that knowing the predicted one avoids."""
    t = a.table
    return _tau(t.cells.column_totals(a.squares), t.predicted, t.support, t.total)


@association(
    symbol=r"\tau_{predicted}",
    name="Goodman and Kruskal's tau, predicted class",
    tex=r"\frac{\sum_{ij} n_{ij}^2 / (w m_i) - \sum_j (s_j/w)^2}{1 - \sum_j (s_j/w)^2}",
    source="Goodman, Kruskal 1954",
    resampled=True,
)
def goodman_kruskal_tau_predicted(a: Association) -> Array:
    """Share of the errors in drawing the predicted class that knowing the true one avoids."""
    t = a.table
    return _tau(t.cells.row_totals(a.squares), t.support, t.predicted, t.total)


def _tau(squares: Array, divisor: Array, margin: Array, total: Array) -> Array:
    informed = total * np.add.reduce(squares / np.where(divisor > 0, divisor, 1.0), axis=-1)
    blind = np.add.reduce(margin * margin, axis=-1)
    return np.where(total * total > blind, (informed - blind) / (total * total - blind), np.nan)


BITS = {
    "range": NON_NEGATIVE,
    "best": None,
    "undefined": ("no_samples",),
    "resampled": True,
    "score_range": lambda k, *_: (0.0, float(np.log2(k))),
}
"""The fields that entropies and the mutual information share."""


@association(
    symbol="H(true)",
    name="Entropy of the true classes",
    tex=r"-\sum_i \mu_i \log_2 \mu_i",
    source="Shannon 1948",
    **BITS,
)
def entropy_true(a: Association) -> Array:
    """Bits needed to name a true class; a property of the test set."""
    return a.entropy_true


@association(
    symbol="H(predicted)",
    name="Entropy of the predicted classes",
    tex=r"-\sum_j \frac{s_j}{w} \log_2 \frac{s_j}{w}",
    source="Shannon 1948",
    **BITS,
)
def entropy_predicted(a: Association) -> Array:
    """Bits needed to name a predicted class."""
    return a.entropy_predicted


@association(
    symbol="I",
    tex=r"\sum_{ij} \frac{n_{ij}}{w} \log_2 \frac{w\, n_{ij}}{m_i s_j}",
    source="Finn 1993",
    **BITS,
)
def mutual_information(a: Association) -> Array:
    """Information that the predicted class gives about the true one, in bits."""
    return a.mutual_information


@association(
    symbol="U(true | predicted)",
    name="Uncertainty coefficient, true class",
    tex=r"\frac{I}{H(true)}",
    source="Theil 1970",
    resampled=True,
)
def uncertainty_true(a: Association) -> Array:
    """Share of the entropy of the true class that the predicted one removes."""
    return a.mutual_information / a.entropy_true


@association(
    symbol="U(predicted | true)",
    name="Uncertainty coefficient, predicted class",
    tex=r"\frac{I}{H(predicted)}",
    source="Theil 1970",
    resampled=True,
)
def uncertainty_predicted(a: Association) -> Array:
    """Share of the entropy of the predicted class that the true one removes."""
    return a.mutual_information / a.entropy_predicted


@association(
    symbol="NMI",
    tex=r"\frac{2 I}{H(true) + H(predicted)}",
    source="Finn 1993; Theil 1970",
    resampled=True,
)
def normalized_mutual_information(a: Association) -> Array:
    """Mutual information divided by the mean of the two entropies."""
    return 2 * a.mutual_information / (a.entropy_true + a.entropy_predicted)
