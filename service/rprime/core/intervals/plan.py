"""What the intervals of a selection need: plans, as the table of methods looks them up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import RatioRows
from rprime.core.index import Index
from rprime.core.intervals.parts import PartChoice, PartLayout
from rprime.core.options import Options
from rprime.core.selection import Selection
from rprime.core.table import Universe

LimitsFunction = Callable[..., None]
"""Fills in the limits of some entries: takes the `ScopeLimits` to fill and their positions."""


class Setting(NamedTuple):
    """What the intervals of a whole stack of tables depend on.

    Whether F-beta is F1, limits are exact, the design fixes the class sizes, some table has
    unclassified or spurious items, and the items are grouped or weighted, so that every index needs
    its design effect.
    """

    f1: bool = False
    exact: bool = False
    fixed_rows: bool = False
    unclassified: bool = False
    spurious: bool = False
    effects: bool = False

    @property
    def omits(self) -> bool:
        """Whether some table has unclassified or spurious items."""
        return self.unclassified or self.spurious

    @property
    def universes(self) -> tuple[Universe | None, ...]:
        """What to compute apart: where nothing is omitted, both universes are one."""
        return ("all", "classified") if self.omits else (None,)


@dataclass(frozen=True, eq=False)
class ScopeMethods:
    """The interval methods of the entries of one scope; all arrays hold positions.

    Parameters
    ----------
    proportions, ratios
        Entries that are plain proportions, and their numerators and denominators.
    bounds
        Shape (2, n): smallest and largest possible limits.
    rests_on
        Shape (n, 4): `CountRow`s; the smallest of these counts determines the reliability.
    names
        The reported methods, "" without an interval.
    named
        Entries that have a method by default.
    counted, resampled, logarithmic
        Entries that read counts, not scores; those with bootstrap intervals on request; ratios with
        limits on the logarithmic scale.
    functions, on_request
        The functions of the limits at any quantile, in their order, and those of a report that asks
        for them, each with the entries whose limits it fills in.
    """

    proportions: Array
    ratios: tuple[RatioRows, ...]
    bounds: Array
    rests_on: Array
    names: tuple[str, ...]
    named: Array
    counted: Array
    resampled: Array
    logarithmic: Array
    functions: tuple[tuple[LimitsFunction, Array], ...]
    on_request: tuple[tuple[LimitsFunction, Array], ...]


@dataclass(frozen=True, eq=False)
class Averages:
    """The m averages over classes of a plan; all arrays hold positions.

    Parameters
    ----------
    entries, of
        Among the overall entries of the plan, and the averaged one among its per-class entries.
    by_parts, by_scores
        Those of functions of parts, and of score intervals.
    scores
        The score intervals of the latter, shape (len(by_scores),).
    macro, weighted, peirce
        Those with these weights.
    logarithmic, adjusted
        Those that average logarithms, and that map macro recall onto another range.
    rows
        The average behind each proportion of its `ClassIntervals`.
    kept
        Positions of the averages that are entries.
    equal
        Positions of macro R' and of the macro recall that it may be equal to; None without.
    """

    entries: Array
    of: Array
    by_parts: Array
    by_scores: Array
    scores: Array
    macro: Array
    weighted: Array
    peirce: Array
    logarithmic: Array
    adjusted: Array
    rows: Array
    kept: Array
    equal: tuple[int, int] | None


@dataclass(frozen=True, eq=False)
class UniversePlan:
    """The entries of one universe whose intervals need the smoothed tables.

    Parameters
    ----------
    selection
        The entries to differentiate.
    class_places, overall_places
        Their positions in the whole selection; -1 for per-class ones that averages alone need.
    class_scores, class_bounds, overall_bounds
        Per-class entries with a score interval, and the ranges of theirs and of all overall ones.
    parts, parts_of
        Functions of parts, and the per-class entries they belong to.
    class_parts, class_parts_of
        The functions with an interval of their own, and the entries they belong to in the whole
        selection.
    average_parts
        The functions that are averaged.
    with_prevalence
        Positions of the functions that hold only without spurious predictions.
    odds_ratio
        Position of the odds ratio among the per-class entries; None if it is not selected.
    """

    selection: Selection
    class_places: Array
    overall_places: Array
    class_scores: Array
    class_bounds: Array
    overall_bounds: Array
    parts: PartLayout
    parts_of: Array
    class_parts: PartChoice
    class_parts_of: Array
    average_parts: PartChoice
    with_prevalence: Array
    averages: Averages
    odds_ratio: int | None

    @cached_property
    def formulas(self) -> tuple[int, ...]:
        """The overall entries that are neither averages nor functions of `Moments`."""
        entries = self.selection.overall
        return tuple(i for i in self.selection.formulas if entries[i].reads != "moments")

    @cached_property
    def own_scores(self) -> Array:
        """Positions, among `class_scores`, of the entries with an interval of their own."""
        return np.flatnonzero(self.class_places[self.class_scores] >= 0)

    @cached_property
    def class_scores_of(self) -> Array:
        """Entries of the whole selection that the own score intervals belong to."""
        return self.class_places[self.class_scores[self.own_scores]]

    @cached_property
    def class_rows(self) -> Array:
        """The entry of the whole selection behind each proportion of `ClassIntervals`."""
        return np.concatenate(
            (self.class_parts_of[self.class_parts.layout.of], self.class_scores_of)
        )

    @cached_property
    def average_places(self) -> Array:
        """The overall entry of the whole selection behind each average."""
        return self.overall_places[self.averages.entries]

    @cached_property
    def by_cell(self) -> bool:
        """Whether an entry needs the cells of the smoothed tables, not only their margins."""
        return any(entry.cell_gradient is not None for entry in self.selection.overall)


PlannedUniverse = tuple[UniversePlan, Universe]


@dataclass(frozen=True)
class Bounds:
    """The number of classes, and the smallest and largest cost if there is one."""

    k: int
    cost: tuple[float, float] | None = None

    @classmethod
    def of_options(cls, k: int, options: Options) -> "Bounds":
        """Take the costs of the options."""
        cost = options.cost
        return cls(k, None if cost is None else (float(cost.min()), float(cost.max())))

    def of(self, entry: Index) -> tuple[float, float]:
        """Return the range of the score interval of an entry."""
        if entry.score_range is not None:
            option = () if self.cost is None else (np.array(self.cost),)
            return entry.score_range(self.k, *option)
        low, high = entry.range
        return (low if np.isfinite(low) else -1.0), (high if np.isfinite(high) else 1.0)

    def ranges(self, entries: Sequence[Index]) -> Array:
        """Return the ranges of several entries, shape (2, n)."""
        return np.array([self.of(entry) for entry in entries], dtype=float).reshape(-1, 2).T


@dataclass(frozen=True, eq=False)
class IntervalPlan:
    """The intervals of the entries of a selection; all arrays hold positions.

    Parameters
    ----------
    pairs, pair_ratios
        Per-class ratios of two proportions, and these, two for each.
    lifts
        Per-class entries with the interval of the lift.
    affine
        Overall proportions that are mapped onto another range.
    predictions, mixed
        Per-class and overall shares that are none where predictions have no item: s_i / w, and R'.
    weakest, weakest_of
        Overall entries in which every class counts the same, and the averaged per-class entries.
    weighted, open_below
        Overall entries that are averages weighted by the classes, and no plain proportions; and
        those without a lowest value, whose limits end at -1, far too near where they are below 0.
    universes
        What needs smoothed tables, for each universe with such entries.
    """

    per_class: ScopeMethods
    overall: ScopeMethods
    pairs: Array
    pair_ratios: tuple[RatioRows, ...]
    lifts: Array
    affine: tuple[int, ...]
    predictions: Array
    mixed: Array
    weakest: Array
    weakest_of: Array
    weighted: Array
    open_below: Array
    universes: tuple[PlannedUniverse, ...]


def bounds(entry: Index) -> tuple[float, float]:
    """Return the smallest and largest limits: an index without a lowest value has none below -1.

    Scores of items and costs keep their infinite range.
    """
    low, high = entry.range
    table = not entry.scored and np.isfinite(high)
    return (-1.0 if table and not np.isfinite(low) else low), high
