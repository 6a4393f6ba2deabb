"""The values that a rule bounds, and what their intervals rest on."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.comparison.compared_side import ComparedSide, LimitSource
from rprime.core.comparison.mover import MoverLimits
from rprime.core.estimates import Estimates
from rprime.core.index import REASONS, Index


@dataclass(frozen=True, eq=False)
class Estimate:
    """Values of one index with their evidence; arrays of shape (..., m).

    Parameters
    ----------
    known
        Values of the index among others.
    entry
        The index; m is k for a per-class one and 1 overall.
    """

    known: Estimates
    entry: Index

    @cached_property
    def value(self) -> FloatArray:
        """The values as averages use them, NaN where undefined or without items."""
        values = self.known.values
        if self._by_class:
            found = values.averaged[self._place]
            return np.where(values.defined[self._place] & np.isfinite(found), found, np.nan)
        found = self._rows(values.overall[self._place])
        return np.where(np.isfinite(found), found, np.nan)

    @property
    def items(self) -> FloatArray:
        """The number of items behind each value."""
        table = self.known.values.sampled
        return self._rows(table.support if self._by_class else table.total)

    @cached_property
    def statistic(self) -> MoverLimits:
        """The limits of the values, and their p-values."""
        source = LimitSource((ComparedSide(self.known),))
        places = self._rows(source.places[not self._by_class][self._place])
        return MoverLimits(self.value, np.zeros_like(self.value), source, places)

    @property
    def methods(self) -> tuple[str | None, ...]:
        """Method of each interval of a single table, None without an interval."""
        low = self._rows(self._of_report("low")) + 0 * self.value
        name = self._of_report("methods")
        return tuple(name if exists else None for exists in np.isfinite(low))

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reason why a value of a single table or its interval is missing, else empty."""
        values = self.known.values
        codes = values.class_reasons if self._by_class else values.overall_reasons
        missing = 0 if codes is None else self._rows(codes[self._place]) * np.isnan(self.value)
        lacking = self._rows(self._of_report("reasons"))
        return tuple(REASONS[int(code)] for code in np.where(missing, missing, lacking))

    @property
    def _by_class(self) -> bool:
        return self.entry.scope == "class"

    @property
    def _place(self) -> int:
        selection = self.known.values.selection
        places = selection.place if self._by_class else selection.overall_place
        return places[self.entry.key]

    def _of_report(self, name: str) -> Any:  # noqa: ANN401 (an array, or the name of a method)
        prefix = "per_class" if self._by_class else "overall"
        return getattr(self.known.intervals, f"{prefix}_{name}")[self._place]

    def _rows(self, values: FloatArray) -> FloatArray:
        """Add an axis of one result to overall values."""
        return values if self._by_class else np.asarray(values)[..., None]
