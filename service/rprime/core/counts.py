"""The one-vs-rest counts of every class, and the pooled ones, as rows of one array."""

from enum import IntEnum
from functools import cached_property

import numpy as np

from rprime.core.arrays import ROUNDING, Array
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


ROW_NAMES = tuple(row.name for row in CountRow)

RatioRows = tuple[CountRow, CountRow]
"""Numerator and denominator of a ratio."""


class Counts:
    """One-vs-rest counts, one row for each `CountRow`, one column for each class.

    Each row is an attribute, too. Shape (rows, ..., k), or (rows, ..., k + 1) if the last column
    sums the classes: a micro average is the same formula on that column.

    Notes
    -----
    `total` is w, all real items, in every column; `support` m_i, `predicted` s_i and `tp` a_i.
    FN = m - a includes unclassified items, FP = s - a spurious predictions.
    TN = (w + all spurious) - m - s + a; the pooled TN is the sum of them.
    `negatives` is FP + TN, `predicted_negatives` FN + TN, `union` TP + FP + FN. `weighted_tp` and
    `weighted_union` are numerator and denominator of F-beta, times 2 / (1 + beta^2).
    `not_wrong` is w - FP. Values are complex if the delta method perturbs the margins.
    """

    total: Array
    support: Array
    predicted: Array
    tp: Array
    fn: Array
    fp: Array
    tn: Array
    negatives: Array
    predicted_negatives: Array
    union: Array
    twice_tp: Array
    support_and_predicted: Array
    weighted_tp: Array
    weighted_union: Array
    not_wrong: Array
    answered: Array

    def __init__(self, rows: Array) -> None:
        self.rows = rows
        # Plain attributes, since the formulas read them dozens of times.
        self.__dict__.update(zip(ROW_NAMES, rows, strict=True))

    @classmethod
    def of(cls, table: ConfusionTable, beta: float = 1.0) -> "Counts":
        """Count every class of the tables, and append the pooled column."""
        margins = np.empty((4, *table.stack_shape, table.k + 1))
        classes = margins[..., :-1]
        classes[0], classes[1] = table.correct, table.support
        classes[2], classes[3] = table.predicted, table.answered
        np.add.reduce(classes, axis=-1, out=margins[..., -1])
        outcomes = np.empty(margins[0].shape)
        outcomes[...] = table.outcomes[..., None]
        outcomes[..., -1] *= table.k
        return cls._counted(margins, outcomes, table, beta)

    @classmethod
    def pooled(cls, table: ConfusionTable, beta: float, classes: tuple[int, ...]) -> "Counts":
        """Count some of the classes together, as a single column."""
        parts = (table.correct, table.support, table.predicted, table.answered)
        chosen = (part[..., list(classes)] for part in parts)
        margins = np.array([np.add.reduce(part, axis=-1, keepdims=True) for part in chosen])
        return cls._counted(margins, len(classes) * table.outcomes[..., None], table, beta)

    @classmethod
    def _counted(
        cls, margins: Array, outcomes: Array, table: ConfusionTable, beta: float
    ) -> "Counts":
        total = table.total[..., None]
        counts = cls.from_margins(margins, total=total, outcomes=outcomes, beta=beta)
        # The only row that adds up more than two margins: what is left of all weights is rounding.
        counts.tn[np.abs(counts.tn) <= ROUNDING * outcomes] = 0.0
        return counts

    @classmethod
    def from_margins(
        cls, margins: Array, *, total: Array, outcomes: Array, beta: float
    ) -> "Counts":
        """Derive every row from a_i, m_i, s_i and classified items, w and all outcomes."""
        correct, support, predicted, answered = margins
        counts = cls(np.empty((len(ROW_NAMES), *correct.shape)))
        counts.total[...] = total
        counts.support[...] = support
        counts.predicted[...] = predicted
        counts.tp[...] = correct
        np.subtract(support, correct, out=counts.fn)
        fp = np.subtract(predicted, correct, out=counts.fp)
        negatives = np.subtract(outcomes, support, out=counts.negatives)
        np.subtract(negatives, fp, out=counts.tn)
        np.subtract(outcomes, predicted, out=counts.predicted_negatives)
        np.add(support, fp, out=counts.union)
        np.add(correct, correct, out=counts.twice_tp)
        np.add(support, predicted, out=counts.support_and_predicted)
        # Of 2 shares, beta^2 of recall to 1 of precision: any beta stays in the float64 range.
        of_recall = 2 / (1 + 1 / beta / beta) if beta else 0.0
        weighted = np.add(correct, correct, out=counts.weighted_tp)
        np.add(weighted, of_recall * counts.fn + (2 - of_recall) * fp, out=counts.weighted_union)
        np.subtract(total, fp, out=counts.not_wrong)
        counts.answered[...] = answered
        return counts

    @cached_property
    def classes(self) -> "Counts":
        """Return the columns of the classes, without the pooled one."""
        return Counts(self.rows[..., :-1])
