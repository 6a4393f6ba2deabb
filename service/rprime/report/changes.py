"""Changes: what a comparison found about each value, ready to be shown beside it."""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from rprime.core.catalog import find
from rprime.core.comparison.compare import Comparison
from rprime.core.comparison.difference import REASONS, Difference
from rprime.core.index import Index
from rprime.report.decimals import known

Judged = Literal["better", "worse", "higher", "lower", "not told apart", "not compared"]


@dataclass(frozen=True, slots=True)
class Change:
    """Candidate minus baseline of one value.

    Parameters
    ----------
    baseline, value
        None where they do not exist.
    low, high
        Of the interval of the difference.
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


@dataclass(frozen=True, eq=False)
class Changes:
    """The changes of overall values by key, and of the classes by key and label."""

    overall: dict[str, Change]
    per_class: dict[str, dict[str, Change]]

    @classmethod
    def of(cls, comparison: Comparison, keys: tuple[str, ...] | None = None) -> Self:
        """Read a comparison; of the classes only the indices with these keys, None for all."""
        level = (1 - comparison.confidence) / 2
        per_class = {}
        for row, key in enumerate(comparison.per_class_keys):
            if keys is None or key in keys:
                found = _changes(comparison.per_class[row], (find("class", key),), level)
                per_class[key] = dict(zip(comparison.classes, found, strict=True))
        entries = tuple(find("overall", key) for key in comparison.overall_keys)
        found = _changes(comparison.overall, entries, level)
        return cls(dict(zip(comparison.overall_keys, found, strict=True)), per_class)


def _changes(
    difference: Difference, entries: tuple[Index | None, ...], level: float
) -> list[Change]:
    """Read the elements of a difference of shape (n,); one entry stands for all of them."""
    with np.errstate(all="ignore"):
        low, high = difference.limits(level)
    count = difference.value.size
    columns = (difference.baseline, difference.value, low, high, difference.reasons)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    each = entries * count if len(entries) == 1 else entries
    return [_change(entry, *row) for entry, row in zip(each, rows, strict=True)]


def _change(  # noqa: PLR0917 (the columns of a difference in their order)
    entry: Index | None, baseline: float, value: float, low: float, high: float, reason: int
) -> Change:
    exists = value == value  # noqa: PLR0124 (NaN)
    ends = (known(low), known(high)) if exists else (None, None)
    return Change(
        known(baseline),
        known(value),
        *(ends if None not in ends else (None, None)),
        REASONS[reason],
        _judged(entry, low, high) if exists else "not compared",
    )


def _judged(entry: Index | None, low: float, high: float) -> Judged:
    if not (low > 0 or high < 0):
        return "not told apart"
    upward = entry and entry.higher_is_better
    if upward is None:
        return "higher" if low > 0 else "lower"
    return "better" if (low > 0) == upward else "worse"
