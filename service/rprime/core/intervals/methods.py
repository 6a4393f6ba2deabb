"""The entries of a selection, grouped by interval method once for each selection."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow
from rprime.core.index import Index
from rprime.core.intervals import limits
from rprime.core.intervals.declaration import EntryGroup, IntervalMethod
from rprime.core.intervals.scales import DeltaScales
from rprime.core.intervals.smooth_indices import smooth_overall_indices
from rprime.core.selection import Selection

RECALL = (int(CountRow.tp), int(CountRow.support))
FALSE_POSITIVE_RATE = (int(CountRow.fp), int(CountRow.negatives))
PREVALENCE = (int(CountRow.support), int(CountRow.total))
PREDICTED_PREVALENCE = (int(CountRow.predicted), int(CountRow.total))
UNION = (int(CountRow.tp), int(CountRow.union))
OVERALL_R_PRIME = (int(CountRow.not_wrong), int(CountRow.total))

PARTS = (UNION, RECALL, FALSE_POSITIVE_RATE, PREVALENCE)
"""Proportions behind other limits: of F1 and Jaccard, then of R' and informedness."""

# An index rests on the counts without which it would not exist.
RESTS_ON = {
    "no_true_samples": (CountRow.support,),
    "no_predictions": (CountRow.predicted,),
    "single_class": (CountRow.negatives, CountRow.predicted_negatives),
}
AS_ITEMS = {CountRow.support_and_predicted: CountRow.union, CountRow.weighted_union: CountRow.union}


INTERVALS = {m.name: m for m in vars(limits).values() if isinstance(m, IntervalMethod)}
"""The interval methods, by the name that an index declares."""


def interval_of(entry: Index, *, f1: bool) -> str | None:
    """Return the interval that an index declares; F-beta is F1 if beta is 1."""
    return "dice" if f1 and entry.key == "f_beta" else entry.interval


@dataclass(frozen=True, eq=False)
class ScopeMethods:
    """The interval methods of the entries of one scope; all arrays hold positions.

    Parameters
    ----------
    proportions, proportions_of
        Entries that are plain proportions, and their positions among the distinct ones.
    delta, scales
        Entries with delta limits, and their scales.
    bounds
        Shape (2, n): smallest and largest possible limits.
    mixes_spurious
        Entries without an interval if there are spurious items.
    rests_on
        Shape (n, 4): `CountRow`s; the smallest of these counts determines the reliability.
    names
        The reported methods, "" without an interval.
    """

    proportions: Array
    proportions_of: Array
    delta: Array
    scales: DeltaScales
    bounds: Array
    mixes_spurious: Array
    rests_on: Array
    names: tuple[str, ...]

    @cached_property
    def named(self) -> Array:
        """Entries that have a method."""
        return positions(name != "" for name in self.names)


@dataclass(frozen=True, eq=False)
class Methods:
    """The interval methods of the entries of a selection; all arrays hold positions.

    Parameters
    ----------
    numerators, denominators
        Shape (p,): the distinct proportions, as `CountRow`s; the first four are `PARTS`.
    per_class, overall
        The entries of each scope; overall delta entries in the order of
        `SmoothOverallIndices`.
    groups
        The per-class entries without scores, by their interval method.
    macro, macro_of, both_limits_of
        Macro averages, the per-class entries they average, and these twice.
    weakest, weakest_of
        Overall entries in which every class counts the same, and the averaged per-class entries.
    """

    numerators: Array
    denominators: Array
    per_class: ScopeMethods
    overall: ScopeMethods
    groups: tuple[tuple[IntervalMethod, EntryGroup], ...]
    macro: Array
    macro_of: Array
    both_limits_of: Array
    weakest: Array
    weakest_of: Array

    @cached_property
    def rows(self) -> Array:
        """All `CountRow`s behind the reliability of an interval."""
        return np.unique(np.concatenate((self.per_class.rests_on, self.overall.rests_on)))


@lru_cache(maxsize=256)
def methods_of(selection: Selection, f1: bool, exact: bool) -> Methods:  # noqa: FBT001 (keys of the cache)
    """Group the entries of a selection by their interval methods.

    Parameters
    ----------
    f1
        Whether F-beta is F1.
    exact
        Whether proportions get exact limits.
    """
    scopes = _ScopeEntries.both(selection, f1=f1)
    ratios = [rows for scope in scopes for rows in scope.proportions]
    place = {rows: i for i, rows in enumerate(dict.fromkeys([*PARTS, *ratios]))}
    smooth = smooth_overall_indices(selection)
    of_classes, overall = scopes
    macro = overall.having("macro")
    macro_of = _integers(selection.averaged(selection.overall[i]) for i in macro)
    weakest = [
        (i, selection.place[key])
        for i, entry in enumerate(selection.overall)
        for key in _equally_weighted(entry)
    ]
    return Methods(
        numerators=_integers(rows[0] for rows in place),
        denominators=_integers(rows[1] for rows in place),
        per_class=of_classes.methods(of_classes.having("delta"), place, exact=exact),
        overall=overall.methods(smooth.order[len(smooth.macro) :], place, exact=exact),
        groups=tuple(of_classes.groups(place)),
        macro=macro,
        macro_of=macro_of,
        both_limits_of=np.concatenate((macro_of, macro_of)),
        weakest=_integers(pair[0] for pair in weakest),
        weakest_of=_integers(pair[1] for pair in weakest),
    )


Ratio = tuple[int, int]


@dataclass(frozen=True, eq=False)
class _ScopeEntries:
    """The entries of one scope of a selection with the names of their intervals."""

    selection: Selection
    entries: tuple[Index, ...]
    intervals: tuple[str | None, ...]

    @classmethod
    def both(cls, selection: Selection, *, f1: bool) -> "tuple[_ScopeEntries, _ScopeEntries]":
        """Return the per-class entries and the overall ones."""
        of_classes = tuple(interval_of(entry, f1=f1) for entry in selection.computed)
        overall = tuple(_overall_interval(selection, entry) for entry in selection.overall)
        return (
            cls(selection, selection.computed, of_classes),
            cls(selection, selection.overall, overall),
        )

    @property
    def proportions(self) -> list[Ratio]:
        """Numerators and denominators of the plain proportions."""
        return [self.entries[i].rows for i in self.having("proportion")]

    def having(self, name: str) -> Array:
        """Return the positions of the entries with this interval."""
        return positions(own == name for own in self.intervals)

    def groups(self, place: dict[Ratio, int]) -> Iterator[tuple[IntervalMethod, EntryGroup]]:
        """Group the entries without scores by their interval."""
        for name, method in INTERVALS.items():
            own = _integers(i for i in self.having(name) if not self.entries[i].scored)
            if own.size:
                entries = [self.entries[i] for i in own]
                ratios = _integers(place.get(entry.rows, -1) for entry in entries)
                yield method, EntryGroup(own, ratios, DeltaScales.of(entries))

    def methods(self, delta: Array, place: dict[Ratio, int], *, exact: bool) -> ScopeMethods:
        """Collect what the limits of the scope need."""
        return ScopeMethods(
            proportions=self.having("proportion"),
            proportions_of=_integers(place[rows] for rows in self.proportions),
            delta=delta,
            scales=DeltaScales.of([self.entries[i] for i in delta]),
            bounds=np.array([_bounds(entry) for entry in self.entries]).reshape(-1, 2).T,
            mixes_spurious=positions(_mixes_spurious(self.selection, e) for e in self.entries),
            rests_on=_rests_on(self.entries),
            names=tuple(
                "" if name is None else INTERVALS[name].choose(entry, exact)
                for name, entry in zip(self.intervals, self.entries, strict=True)
            ),
        )


def positions(flags: Iterable[bool]) -> Array:
    """Positions of the flags that are set."""
    return _integers(i for i, flag in enumerate(flags) if flag)


def _integers(values: Iterable[int]) -> Array:
    return np.fromiter(values, dtype=np.intp)


def _overall_interval(selection: Selection, entry: Index) -> str | None:
    """Return the interval of an overall entry; None for macro averages of shares of one total.

    Prevalences sum to 1 and predicted ones to the coverage, so their mean is not an estimate.
    """
    if entry.reads == "macro":
        averaged = selection.computed[selection.averaged(entry)]
        if averaged.reads == "ratio" and averaged.rows[1] == CountRow.total:
            return None
    return entry.interval


def _bounds(entry: Index) -> tuple[float, float]:
    lowest = -np.inf if entry.interval is None else INTERVALS[entry.interval].lowest
    return max(entry.range[0], lowest), entry.range[1]


def _mixes_spurious(selection: Selection, entry: Index) -> bool:
    """Whether an index mixes spurious predictions, which are not a sample, with real items."""
    if entry.of:
        averaged = (selection.computed[selection.place[key]] for key in entry.of)
        return any(_mixes_spurious(selection, one) for one in averaged)
    if entry.interval is not None and INTERVALS[entry.interval].mixes_spurious:
        return True
    return entry.rows in (PREDICTED_PREVALENCE, OVERALL_R_PRIME)


def _equally_weighted(entry: Index) -> tuple[str, ...]:
    """Return the per-class entries that an overall entry averages with equal weights."""
    return entry.of if entry.reads in ("macro", "means") else ()


def _rests_on(entries: Sequence[Index]) -> Array:
    rows = np.empty((len(entries), 4), dtype=np.intp)
    for i, entry in enumerate(entries):
        found = _rows_of(entry)
        rows[i] = (found * 4)[:4]
    return rows


def _rows_of(entry: Index) -> list[CountRow]:
    if entry.reads in ("ratio", "micro"):
        row = CountRow(entry.rows[1])
        found = [AS_ITEMS.get(row, row)]
        return [*found, CountRow.total] if entry.reads == "micro" else found
    if entry.scored and entry.scope == "class":
        return [CountRow.support, CountRow.negatives]
    if entry.scope == "overall":
        return [CountRow.answered if entry.universe == "classified" else CountRow.total]
    return [row for why in entry.undefined for row in RESTS_ON.get(why, ())] or [CountRow.total]
