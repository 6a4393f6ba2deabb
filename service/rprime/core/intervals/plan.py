"""What the intervals of a selection need: plans, as the table of methods looks them up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow, Counts, RatioRows
from rprime.core.families.one_vs_rest import PREVALENCE
from rprime.core.index import Index, Parts
from rprime.core.options import Options
from rprime.core.selection import Selection
from rprime.core.table import Universe

STEP = 1e-30
Squares = tuple[Counts, float]
"""Sums of squared weights as counts, and the scale of `Weights`."""


@dataclass(frozen=True, eq=False)
class PartLayout:
    """n functions of proportions and their t terms; all arrays hold positions.

    `of`, shape (t,), is the function of each term, and `ratios` are their proportions; `starts`,
    shape (n,), is the first term of each function.
    """

    parts: tuple[Parts, ...]
    of: Array
    starts: Array
    ratios: tuple[RatioRows, ...]

    @cached_property
    def mapped(self) -> list[tuple[int, Callable[[Array], Array]]]:
        """Positions of the functions that are mapped to their index, with the map."""
        return [(i, part.back) for i, part in enumerate(self.parts) if part.back is not None]

    @classmethod
    def of_parts(cls, parts: Sequence[Parts]) -> "PartLayout":
        """Lay out the terms of functions in their order."""
        sizes = np.array([len(part.ratios) for part in parts], dtype=np.intp)
        of = np.repeat(np.arange(len(parts)), sizes)
        ratios = tuple(ratio for part in parts for ratio in part.ratios)
        return cls(tuple(parts), of, np.cumsum(sizes) - sizes, ratios)

    def choice(self, places: Sequence[int]) -> "PartChoice":
        """Choose functions by their positions, in any order and repeatedly."""
        terms = [np.flatnonzero(self.of == place) for place in places]
        return PartChoice(
            PartLayout.of_parts([self.parts[place] for place in places]),
            np.array(places, dtype=np.intp),
            np.concatenate([*terms, np.zeros(0, dtype=np.intp)]),
        )


@dataclass(frozen=True, eq=False)
class PartChoice:
    """Some functions of a layout: their own layout, and the positions of these and their terms."""

    layout: PartLayout
    places: Array
    terms: Array


@dataclass(frozen=True, eq=False)
class PartIntervals:
    """Indices as functions of proportions, with the counts of these.

    `values`, shape (n, ..., k), are what the functions combine to. The others, (t, ..., k), are the
    proportion of each term with its counts, and the derivative of the function by it.
    """

    layout: PartLayout
    values: Array
    successes: Array
    trials: Array
    shares: Array
    slopes: Array

    @classmethod
    def at(
        cls, layout: PartLayout, counts: Counts, weights: Squares | None, *, fixed_rows: bool
    ) -> "PartIntervals":
        """Evaluate the functions on the counts of the classes, without the pooled column.

        Prevalences do not vary where they are `fixed_rows`, by design.
        """
        successes, trials = ratio_counts(counts, layout.ratios, weights)
        shares = successes / trials
        slopes, values = np.ones(shares.shape), shares[layout.starts]
        first = 0
        for i, part in enumerate(layout.parts):
            last = first + len(part.ratios)
            if last - first > 1:  # one proportion stands for itself
                steps = _steps(last - first, shares.ndim)
                stepped = part.combine(*(shares[first:last, None] + steps))
                values[i], slopes[first:last] = stepped[0].real, stepped.imag / STEP
            first = last
        if fixed_rows:
            slopes[[ratio == PREVALENCE for ratio in layout.ratios]] = 0.0
        return cls(layout, values, successes, trials, shares, slopes)

    def divided(self, effects: Array) -> "PartIntervals":
        """Divide the counts by the design effects (n, ..., k) of the functions."""
        by_term = effects[self.layout.of]
        return replace(self, successes=self.successes / by_term, trials=self.trials / by_term)

    def take(self, choice: PartChoice) -> "PartIntervals":
        """Return the chosen functions."""
        by_term = (self.successes, self.trials, self.shares, self.slopes)
        chosen = (part[choice.terms] for part in by_term)
        return PartIntervals(choice.layout, self.values[choice.places], *chosen)

    def combine(self, limits: Array) -> Array:
        """Combine Wilson's limits of the proportions (2, t, ..., k) to those of the functions.

        Notes
        -----
        Source: Zou, Donner 2008. On each side the root of the summed squares of the distances of
        the parts from their limits, each times the slope.
        """
        steps = self.slopes * (self.shares - limits)
        distances = np.empty(steps.shape)
        # A function that falls with a proportion has its lower limit at the upper one of that.
        np.maximum(steps[0], steps[1], out=distances[0])
        np.minimum(steps[0], steps[1], out=distances[1])
        if len(self.layout.of) == len(self.layout.parts):  # one proportion each
            result = np.abs(distances)
        else:
            distances *= distances
            result = np.sqrt(np.add.reduceat(distances, self.layout.starts, axis=1))
        np.negative(result[0], out=result[0])
        result += self.values
        for place, part in self.layout.mapped:
            result[:, place] = part(result[:, place])
        return result


@lru_cache(maxsize=16)
def _steps(number: int, dimensions: int) -> Array:
    directions = np.eye(number) * (STEP * 1j)
    return directions.reshape(number, number, *(1,) * (dimensions - 1))


def ratio_counts(
    counts: Counts, ratios: tuple[RatioRows, ...], weights: Squares | None = None
) -> Array:
    """Return successes and trials of proportions, shape (2, n, ..., k).

    Precision of a class that has items and is never predicted is 0; how much of it could be right
    is bounded by its items, so that these are the trials. The trials of weighted items are the
    smaller of Kish's effective number (sum w)^2 / sum w^2 and of p (1 - p) / V, V the linearised
    variance.
    """
    unweighted = _plain_counts(counts, ratios)
    if weights is None:
        return unweighted
    successes, trials = unweighted
    squares, scale = _plain_counts(weights[0], ratios), weights[1]
    share, whole = successes / trials, (trials / scale) ** 2
    kish = whole / squares[1]
    spread = squares[0] * (1 - share) ** 2 + (squares[1] - squares[0]) * share**2
    linearised = np.where(spread > 0, share * (1 - share) * whole / spread, np.inf)
    effective = np.where((share > 0) & (share < 1), np.fmin(kish, linearised), kish)
    return np.stack((share * effective, effective))


def _plain_counts(counts: Counts, ratios: tuple[RatioRows, ...]) -> Array:
    rows, of_precision, of_discovery = _rows(ratios)
    pairs = counts.rows[rows]
    never = counts.rows[CountRow.predicted] == 0
    if never.any():
        support = np.where(never, counts.rows[CountRow.support], 0.0)
        pairs[1, of_precision] += support
        pairs[0, of_discovery] += support
    return pairs


@lru_cache(maxsize=256)
def _rows(ratios: tuple[RatioRows, ...]) -> tuple[Array, Array, Array]:
    """Return the rows (2, n) of `Counts`, and positions of shares of predictions and of errors."""
    rows = np.array(ratios, dtype=np.intp).reshape(-1, 2).T
    of_precision = rows[1] == CountRow.predicted
    of_discovery = of_precision & (rows[0] == CountRow.fp)
    return rows, np.flatnonzero(of_precision), np.flatnonzero(of_discovery)


def of_index(entry: Index) -> Parts:
    """Return the parts of an index; a plain proportion is its own part."""
    return entry.parts or Parts((entry.rows,), lambda share: share)


LimitsFunction = Callable[..., None]
"""Fills in the limits of some entries: takes the `ScopeLimits` to fill and their positions."""


class Setting(NamedTuple):
    """What the intervals of a whole stack of tables depend on.

    Whether F-beta is F1, limits are exact, the design fixes the class sizes, some table has
    unclassified or spurious items, the items are grouped or weighted, so that every index needs
    its design effect, and averages are over all classes.
    """

    f1: bool = False
    exact: bool = False
    fixed_rows: bool = False
    unclassified: bool = False
    spurious: bool = False
    effects: bool = False
    averages_all: bool = True

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
    logarithmic, adjusted, of_yule
        Those that average logarithms, that map macro recall onto another range, and those of
        Yule's Q.
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
    of_yule: Array
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
    odds_ratio, yule_q
        Positions of the odds ratio, and of Yule's Q, among the per-class entries; None if they are
        not selected.
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
    yule_q: int | None

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
        return any(entry.by_cell for entry in self.selection.overall)


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
