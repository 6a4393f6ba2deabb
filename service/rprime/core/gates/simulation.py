"""Simulated comparisons: draws of an unchanged model, compared as observed items are."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.compared_side import ComparedSide
from rprime.core.comparison.difference import Difference
from rprime.core.comparison.joint_counts import class_proportion, overall_proportion
from rprime.core.gates.estimate import Estimate, estimate
from rprime.core.gates.resampling import SimulatedPredictions
from rprime.core.gates.rules import Rule
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import Values, compute


@dataclass(frozen=True, eq=False)
class Simulation:
    """The comparison of a stack of draws.

    Parameters
    ----------
    draws
        Of shape (..., k, k).
    indices
        Keys of all rules.
    paired
        Whether the gate has paired items, or only two tables.
    """

    draws: SimulatedPredictions
    indices: tuple[str, ...]
    paired: bool

    @cached_property
    def aligned(self) -> AlignedValues:
        """Both sides over the classes that have items."""
        baseline, candidate = (
            ComparedSide(values, values)
            for values in map(self._values, (self.draws.baseline, self.draws.candidate))
        )
        support = candidate.values.table.support
        classes = np.flatnonzero(support.reshape(-1, support.shape[-1]).any(0))
        pairs = self.draws if self.paired else None
        return AlignedValues(candidate, baseline, classes, pairs, one_test_set=self.paired)

    def _values(self, table: ConfusionTable) -> Values:
        options = Options(indices=self.indices)
        return compute(table, options, select(options))

    @cached_property
    def overall(self) -> Difference:
        """Differences of the overall indices, shape (overall, ...)."""
        return self.aligned.overall()

    @cached_property
    def per_class(self) -> Difference:
        """Differences of the per-class indices, shape (reported, ..., classes with items)."""
        return self.aligned.per_class()

    def estimate(self, rule: Rule) -> Estimate:
        """Values of the candidate."""
        return estimate(self.aligned.candidate.values, rule.entry)

    def difference(self, rule: Rule) -> Difference:
        """Return the differences of an index, shape (..., classes) or (..., 1) overall."""
        if rule.scope == "class":
            return self.per_class[self.aligned.selection.place[rule.index]]
        return self.overall[self.aligned.selection.overall_place[rule.index]][..., np.newaxis]

    def trials(self, rule: Rule) -> FloatArray | None:
        """Return the denominators of a proportion, shape as its difference; None for others."""
        per_class = rule.scope == "class"
        row = (
            class_proportion(rule.entry)
            if per_class
            else overall_proportion(rule.entry, everyone_answered=True)
        )
        if row is None:
            return None
        trials = self.aligned.trials(row, per_class=per_class)
        return trials if per_class else trials[..., np.newaxis]
