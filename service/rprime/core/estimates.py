"""The values of a stack of tables, with their limits at any quantile."""

from dataclasses import dataclass, replace
from functools import cached_property

from rprime.core.intervals.intervals import Intervals, intervals, prepare
from rprime.core.intervals.methods import ranks
from rprime.core.intervals.population import PopulationIntervals
from rprime.core.intervals.prepared import PreparedIntervals
from rprime.core.items import Items
from rprime.core.options import Options
from rprime.core.scores.kept import KeptScores
from rprime.core.scores.scores import Scores
from rprime.core.selection import Selection, select
from rprime.core.table import ConfusionTable
from rprime.core.values import Values, compute


@dataclass(frozen=True, eq=False)
class Estimates:
    """The values of a stack of tables, with what their limits need, computed once.

    A report, a comparison and a gate of one request read the same estimates.

    The `items` of a single table matter if they have groups or weights. `stack` has the estimates
    of several tables that these are one of, at `position`; None: computed alone. `apart` says
    whether intervals are computed alone all the same: those of the others are not needed.
    """

    values: Values
    items: Items | None = None
    stack: "Estimates | None" = None
    position: int = 0
    apart: bool = False

    @classmethod
    def of(
        cls,
        table: ConfusionTable,
        options: Options,
        selection: Selection,
        items: Items | None = None,
        scores: Scores | None = None,
        *,
        kept_scores: KeptScores | None = None,
    ) -> "Estimates":
        """Compute the values of a selection of indices, as `compute` does."""
        if scores is not None and ranks(selection) and options.wants_intervals(table.k):
            # Rank with variances first, so that the values reuse the same sorting.
            scores.ranking(influences=True, fixed_rows=options.sampling == "fixed_rows")
        values = compute(table, options, selection, scores, kept_scores=kept_scores)
        grouped = items is not None and items.groups is not None
        return cls(replace(values, grouped=True) if grouped else values, items)

    @classmethod
    def of_stack(
        cls, tables: list[ConfusionTable], options: Options, *, apart: bool = False
    ) -> "list[Estimates]":
        """Compute the values of single dense tables together, and return those of each."""
        stack = ConfusionTable.stack(tables)
        whole = cls.of(stack, options, select(options, omits=stack.unclassified is not None))
        parts = [whole.values.part(i) for i in range(len(tables))]
        return [cls(part, None, whole, i, apart) for i, part in enumerate(parts)]

    @property
    def whole(self) -> "Estimates":
        """The estimates that intervals are computed with: those of the stack, or these."""
        return self if self.stack is None or self.apart else self.stack

    @cached_property
    def prepared(self) -> PreparedIntervals:
        """The part of the intervals that does not depend on their quantile."""
        population = self.values.options.population
        if population is not None:
            return PopulationIntervals.of_population(self.values, population)
        return prepare(self.values, self.items)

    @cached_property
    def intervals(self) -> Intervals:
        """The intervals of a report."""
        if self.whole is not self:
            return self.whole.intervals.part(self.position)
        return intervals(self.values, self.items, self.prepared)
