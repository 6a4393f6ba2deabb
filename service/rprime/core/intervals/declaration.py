"""The declaration of an interval method."""

from collections.abc import Callable
from dataclasses import dataclass

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.values import Values


@dataclass(frozen=True, eq=False)
class IntervalMethod:
    """A kind of interval that an index can declare.

    Parameters
    ----------
    name
        An index declares it as its `interval`.
    reported
        The name in a report; a second one where `exact` limits are asked for, if they differ.
    words
        Description for people.
    limits
        For indices of scores: returns the limits (2, ...) of an entry from all values, the entry,
        its values and the normal quantile.
    """

    name: str
    reported: tuple[str, ...]
    words: str
    limits: Callable[[Values, Index, Array, float | Array], Array] | None = None
