"""The sums over the margins that the chance-corrected overall indices depend on."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rprime.core.arrays import Array
from rprime.core.table import ConfusionTable


@dataclass(frozen=True)
class Moments:
    """Sums over the k classes of a stack of classified tables; each of shape (...).

    `total` is w, `correct` the sum of a_i, `products` of m_i s_i, `support_squares` of m_i^2,
    `predicted_squares` of s_i^2, and `attainable` of min(m_i, s_i).
    """

    total: Array
    correct: Array
    products: Array
    support_squares: Array
    predicted_squares: Array
    attainable: Array
    k: int

    @classmethod
    def of(cls, table: ConfusionTable) -> "Moments":
        """Sum up the margins of the tables."""
        support, predicted = table.support, table.predicted
        return cls(
            table.total,
            np.add.reduce(table.correct, axis=-1),
            np.add.reduce(support * predicted, axis=-1),
            np.add.reduce(support * support, axis=-1),
            np.add.reduce(predicted * predicted, axis=-1),
            np.add.reduce(np.minimum(support, predicted), axis=-1),
            table.k,
        )

    @cached_property
    def observed(self) -> Array:
        """P_o, observed agreement."""
        return self.correct / self.total

    @cached_property
    def chance(self) -> Array:
        """P_e of Cohen: sum of m_i s_i / w^2."""
        return self.products / (self.total * self.total)

    @cached_property
    def pooled_squares(self) -> Array:
        """Sum of ((m_i + s_i) / 2w)^2."""
        both = self.support_squares + 2 * self.products + self.predicted_squares
        return both / (4 * self.total * self.total)
