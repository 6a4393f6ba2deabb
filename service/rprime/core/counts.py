"""The one-vs-rest counts of every class, and the pooled ones, as rows of one array."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from rprime.core.arrays import Array
from rprime.core.table import ConfusionTable


class CountRow(IntEnum):
    """The rows of `Counts`; the names are also its attributes."""

    total = 0
    support = 1
    predicted = 2
    tp = 3
    fn = 4
    fp = 5
    tn = 6
    negatives = 7
    predicted_negatives = 8
    union = 9
    twice_tp = 10
    support_and_predicted = 11
    weighted_tp = 12
    weighted_union = 13
    not_wrong = 14
    answered = 15


RatioRows = tuple[CountRow, CountRow]
"""Numerator and denominator of a ratio."""


@dataclass(frozen=True, slots=True)
class Counts:
    """One-vs-rest counts, one row for each `CountRow`, one column for each class.

    Parameters
    ----------
    rows
        Shape (rows, ..., k), or (rows, ..., k + 1) if the last column sums the classes: a micro
        average is the same formula on that column.

    Notes
    -----
    TN = (w + all spurious) - m - s + a; the pooled TN is the sum of them. `total` is w in
    every column. `union` is TP + FP + FN. `weighted_tp` and `weighted_union` are numerator
    and denominator of F-beta. `not_wrong` is w - FP. Values are complex if the delta method
    perturbs the margins.
    """

    rows: Array

    @classmethod
    def of(cls, table: ConfusionTable, beta: float = 1.0) -> "Counts":
        """Count every class of the tables, and append the pooled column."""
        total = table.total[..., None]
        outcomes = np.repeat(table.outcomes[..., None], table.k + 1, axis=-1)
        outcomes[..., -1] *= table.k
        return cls.from_margins(
            _with_sum(table.correct),
            _with_sum(table.support),
            _with_sum(table.predicted),
            total=total,
            outcomes=outcomes,
            answered=_with_sum(table.answered),
            beta=beta,
        )

    @classmethod
    def from_margins(
        cls,
        correct: Array,
        support: Array,
        predicted: Array,
        *,
        total: Array,
        outcomes: Array,
        answered: Array,
        beta: float,
    ) -> "Counts":
        """Derive every row from a_i, m_i, s_i, w and the number of all outcomes."""
        shape = (len(CountRow), *correct.shape)
        rows = np.empty(shape, dtype=np.result_type(correct, support, predicted, total))
        rows[CountRow.total] = total
        rows[CountRow.support] = support
        rows[CountRow.predicted] = predicted
        rows[CountRow.tp] = correct
        np.subtract(support, correct, out=rows[CountRow.fn])
        fp = np.subtract(predicted, correct, out=rows[CountRow.fp])
        negatives = np.subtract(outcomes, support, out=rows[CountRow.negatives])
        np.subtract(negatives, fp, out=rows[CountRow.tn])
        np.subtract(outcomes, predicted, out=rows[CountRow.predicted_negatives])
        np.add(support, fp, out=rows[CountRow.union])
        np.add(correct, correct, out=rows[CountRow.twice_tp])
        np.add(support, predicted, out=rows[CountRow.support_and_predicted])
        weighted = np.multiply(correct, 1.0 + beta * beta, out=rows[CountRow.weighted_tp])
        np.add(weighted, beta * beta * rows[CountRow.fn] + fp, out=rows[CountRow.weighted_union])
        np.subtract(rows[CountRow.total], fp, out=rows[CountRow.not_wrong])
        rows[CountRow.answered] = answered
        return cls(rows)

    @property
    def classes(self) -> "Counts":
        """Return the columns of the classes, without the pooled one."""
        return Counts(self.rows[..., :-1])

    @property
    def pooled(self) -> "Counts":
        """Return the pooled column alone, shape (len(CountRow), ...)."""
        return Counts(self.rows[..., -1])

    @property
    def total(self) -> Array:
        """w, all real items."""
        return self.rows[CountRow.total]

    @property
    def support(self) -> Array:
        """m_i, real items of the class."""
        return self.rows[CountRow.support]

    @property
    def predicted(self) -> Array:
        """s_i, predictions of the class."""
        return self.rows[CountRow.predicted]

    @property
    def tp(self) -> Array:
        """True positives a_i."""
        return self.rows[CountRow.tp]

    @property
    def fn(self) -> Array:
        """False negatives m_i - a_i, including unclassified items."""
        return self.rows[CountRow.fn]

    @property
    def fp(self) -> Array:
        """False positives s_i - a_i, including spurious predictions."""
        return self.rows[CountRow.fp]

    @property
    def tn(self) -> Array:
        """True negatives."""
        return self.rows[CountRow.tn]

    @property
    def negatives(self) -> Array:
        """FP + TN."""
        return self.rows[CountRow.negatives]

    @property
    def predicted_negatives(self) -> Array:
        """FN + TN."""
        return self.rows[CountRow.predicted_negatives]

    @property
    def union(self) -> Array:
        """TP + FP + FN."""
        return self.rows[CountRow.union]


def _with_sum(values: Array) -> Array:
    """Append the sum over classes as one more column."""
    extended = np.empty((*values.shape[:-1], values.shape[-1] + 1))
    extended[..., :-1] = values
    np.add.reduce(values, axis=-1, out=extended[..., -1])
    return extended
