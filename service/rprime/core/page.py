"""The page of classes in a report that cannot show all of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rprime.core.arrays import Array
from rprime.core.catalog import CLASS_INDICES

DEFAULT_PAGE_VALUES = 100_000
"""Most per-class values of a report without a requested page: a few megabytes."""
LARGEST_PAGE_VALUES = 1_000_000
"""Most per-class values of a requested page."""


@dataclass(frozen=True, kw_only=True)
class Paging:
    """A requested page of classes.

    They are ordered by "labels"; "support" or "predicted", largest first; or the key of a
    per-class index, worst first, or largest first if no value is best.
    """

    limit: int
    offset: int = 0
    order_by: str = "support"


@dataclass(frozen=True, eq=False)
class ClassPage:
    """The classes that a report shows: their positions among all, by a requested page or not."""

    paging: Paging
    total: int
    positions: Array

    @property
    def left_out(self) -> int:
        """Number of classes that are not shown."""
        return self.total - self.positions.size

    @cached_property
    def shown(self) -> frozenset[int]:
        """Numbers of the shown classes."""
        return frozenset(self.positions.tolist())


def ordered(values: Array, order_by: str) -> Array:
    """Sort the classes by values (k,), return their numbers; those without a value come last."""
    index = CLASS_INDICES.get(order_by)
    ascending = index is not None and index.higher_is_better is True
    keys = np.where(np.isfinite(values), values if ascending else -values, np.inf)
    return np.argsort(keys, kind="stable")
