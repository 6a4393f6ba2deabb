"""The declaration of an interval method, and the inputs of the limits of scores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.intervals.scales import ScaleDistance
from rprime.core.values import Values


@dataclass(frozen=True, eq=False)
class IntervalInputs:
    """What the limits of an index of scores read: the values, and the normal quantile."""

    values: Values
    quantile: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class IntervalMethod:
    """A kind of interval that an index can declare.

    Parameters
    ----------
    name
        An index declares it as its `interval`.
    words
        Description for people.
    scales
        The reported methods, each with the scale on which its limits are proportional to the
        quantile; None where the gate must search for the quantile.
    choose
        Chooses the reported method of an entry; the flag requests exact limits. None: the first.
    limits
        For indices of scores: returns the limits (2, ...) of an entry.
    """

    name: str
    words: str
    scales: Mapping[str, ScaleDistance | None]
    choose: Callable[[Index, bool], str] | None = None
    limits: Callable[[IntervalInputs, Index, Array], Array] | None = None

    def reported(self, entry: Index, *, exact: bool) -> str:
        """Return the method that a report names for an entry."""
        return next(iter(self.scales)) if self.choose is None else self.choose(entry, exact)


def interval(
    *,
    words: str,
    scales: Mapping[str, ScaleDistance | None],
    choose: Callable[[Index, bool], str] | None = None,
) -> Callable[[Callable[..., Array]], IntervalMethod]:
    """Declare an interval method of scores by the function of its limits."""

    def declare(limits: Callable[..., Array]) -> IntervalMethod:
        return IntervalMethod(
            name=limits.__name__, words=words, scales=scales, choose=choose, limits=limits
        )

    return declare
