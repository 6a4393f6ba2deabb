"""Constant classifiers, which predict without a look at the items: what a model must beat."""

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from rprime.core.arrays import Array
from rprime.core.cells import SparseCells
from rprime.core.comparison.joint_counts import JointCounts
from rprime.core.table import ConfusionTable, coordinates

ConstantKind = Literal["majority", "uniform", "prior"]


@dataclass(frozen=True, eq=False)
class ConstantClassifier:
    """A classifier that predicts each class with one probability for all items.

    Parameters
    ----------
    kind
        majority: always the commonest true class, of equal ones the first; uniform: each of the k
        classes with 1/k; prior: each class with its share of the items.
    shares
        Shape (k,): the probabilities of the classes.

    Notes
    -----
    Drawn predictions have the expected table m_i q_j, so that no draw is in its indices. The
    probabilities q are taken as they are, as those of a classifier that was made elsewhere. The
    strategies most_frequent, uniform and stratified of scikit-learn's `DummyClassifier` have these
    tables in expectation.
    """

    kind: ConstantKind
    shares: Array

    @classmethod
    def of(cls, kind: ConstantKind, table: ConfusionTable) -> Self:
        """Return the constant classifier of the items of a single table."""
        support = table.support
        if kind == "uniform":
            return cls(kind, np.full(support.shape, 1 / table.k))
        if kind == "prior":
            return cls(kind, support / (float(table.total) or 1.0))
        return cls(kind, (np.arange(table.k) == support.argmax()).astype(np.float64))

    @property
    def is_drawn(self) -> bool:
        """Whether predictions are drawn, so that tables hold expected counts."""
        return self.kind != "majority"

    @property
    def likeliest(self) -> int:
        """Position of the class that is predicted most often, the first of equal ones."""
        return int(self.shares.argmax())

    def table(self, of: ConfusionTable) -> ConfusionTable:
        """Return the table, or the stack of tables, of its predictions of the same items."""
        if isinstance(of.cells, SparseCells) and not self.is_drawn:
            rows = np.flatnonzero(of.support)
            columns = np.full(rows.shape, self.likeliest)
            table = ConfusionTable.sparse(rows, columns, of.support[rows], of.k)
        else:
            table = ConfusionTable.dense(of.support[..., None] * self.shares)
        return replace(table, weighted=of.weighted, items=of.items)

    def joint(self, table: ConfusionTable) -> JointCounts:
        """Pair the likeliest class with the predictions in a single table without spurious ones."""
        codes, items = coordinates(table)
        true, new = np.divmod(codes, table.k + 1)
        return JointCounts(true, np.full_like(true, self.likeliest), new, items, table.k)
