"""Changes: what a comparison found about each value, ready to be shown beside it."""

from dataclasses import dataclass
from typing import Literal, Self

from rprime.core.catalog import find
from rprime.core.index import Index
from rprime.schemas.comparison import Comparison
from rprime.schemas.gate import Delta

Judged = Literal[
    "better", "worse", "higher", "lower", "no clear difference", "no interval", "not compared"
]


@dataclass(frozen=True, slots=True)
class Change:
    """Candidate minus baseline of one value, and the interval of this difference.

    Parameters
    ----------
    reason
        Why there is no difference, or no interval of it; else empty.
    judged
        What the interval says, in words; `higher` and `lower` where no direction is better.
    """

    baseline: float | None
    value: float | None
    low: float | None
    high: float | None
    reason: str
    judged: Judged

    @property
    def demonstrated(self) -> bool:
        """Whether the interval leaves no room for no change."""
        return self.judged in ("better", "worse", "higher", "lower")

    @property
    def tone(self) -> str:
        """Its style on a page."""
        return self.judged if self.demonstrated else "open"

    @classmethod
    def of(cls, index: Index | None, delta: Delta) -> Self:
        """Read the difference of an index."""
        low, high = delta.interval or (None, None)
        judged = "not compared" if delta.value is None else _judged(index, low, high)
        return cls(delta.baseline, delta.value, low, high, delta.reason or "", judged)


def class_changes(comparison: Comparison, key: str) -> dict[str, Change]:
    """Read the changes of a per-class index, by label."""
    return {
        label: Change.of(find("class", key), deltas[key])
        for label, deltas in comparison.per_class.items()
        if key in deltas
    }


def _judged(entry: Index | None, low: float | None, high: float | None) -> Judged:
    if low is None or high is None:
        return "no interval"
    if low <= 0 <= high:
        return "no clear difference"
    upward = entry and entry.higher_is_better
    if upward is None:
        return "higher" if low > 0 else "lower"
    return "better" if (low > 0) == upward else "worse"
