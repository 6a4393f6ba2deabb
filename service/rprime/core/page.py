"""Page: the classes that a report shows where there are too many for all of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rprime.core.catalog import CLASS_INDICES
from rprime.core.cells import Array

MOST_UNASKED = 100_000
"""Values of classes that a report has where nobody asked for more: some megabytes."""
MOST_ASKED = 1_000_000
"""And that it may have at all."""


@dataclass(frozen=True, kw_only=True)
class Paging:
    """Which classes are wanted.

    Parameters
    ----------
    limit
        How many, at most.
    offset
        How many are skipped before.
    order_by
        "labels", "support" or "predicted", largest first, or the key of a per-class index,
        worst first; of an index that has no best value, largest first.
    """

    limit: int
    offset: int = 0
    order_by: str = "support"


@dataclass(frozen=True, eq=False)
class Page:
    """The classes that are shown.

    Parameters
    ----------
    paging
        What was asked for, or is the rule where nothing was.
    total
        k, how many classes there are.
    positions
        Numbers of the classes that are shown, in their order.
    """

    paging: Paging
    total: int
    positions: Array

    @property
    def left_out(self) -> int:
        """How many classes are not shown."""
        return self.total - self.positions.size

    @cached_property
    def shown(self) -> frozenset[int]:
        """The numbers of the classes that are shown."""
        return frozenset(self.positions.tolist())


def unasked(k: int, indices: int) -> Paging | None:
    """Give the page of a report that nobody asked a page of; None where all classes fit."""
    limit = MOST_UNASKED // max(indices, 1)
    return Paging(limit=limit) if k > limit else None


def ordered(values: Array, order_by: str) -> Array:
    """Give the numbers of the classes in an order; those without a value last.

    Parameters
    ----------
    values
        Shape (k,), by what they are ordered.
    order_by
        As in `Paging`.
    """
    index = CLASS_INDICES.get(order_by)
    ascending = index is not None and index.higher_is_better is True
    keys = np.where(np.isfinite(values), values if ascending else -values, np.inf)
    return np.argsort(keys, kind="stable")
