"""The interval methods of the entries of a selection, looked up once for each selection."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from rprime.core.arrays import Array, integers, positions
from rprime.core.catalog import CLASS_INDICES
from rprime.core.counts import CountRow, RatioRows
from rprime.core.families.one_vs_rest import PRECISION, PREVALENCE, RECALL
from rprime.core.index import Index
from rprime.core.intervals.limits import METHODS
from rprime.core.intervals.top_k import plain
from rprime.core.selection import Selection
from rprime.core.table import Universe

MISSES: RatioRows = (CountRow.fn, CountRow.support)
CORRECT: RatioRows = (CountRow.tp, CountRow.total)
WRONG: RatioRows = (CountRow.fn, CountRow.total)
NOT_WRONG: RatioRows = (CountRow.not_wrong, CountRow.total)
PREDICTIONS: RatioRows = (CountRow.predicted, CountRow.total)

# An index rests on the counts without which it would not exist.
RESTS_ON = {
    "no_true_samples": (CountRow.support,),
    "no_predictions": (CountRow.predicted,),
    "single_class": (CountRow.negatives, CountRow.predicted_negatives),
}
AS_ITEMS = {CountRow.support_and_predicted: CountRow.union, CountRow.weighted_union: CountRow.union}

INTERVALS = {method.name: method for method in METHODS}
"""The interval methods, by the name that an index declares."""


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

    def method(self, entry: Index) -> str | None:
        """Return the name of the method of an entry, None without one."""
        f1 = self.f1 and entry.scope == "class" and entry.key == "f_beta"
        name = "mapped" if f1 else entry.interval
        if entry.scored or not self.fixed_rows or name not in {"proportion", "mapped"}:
            return name
        if entry.scope == "class" and entry.rows in {RECALL, MISSES}:
            return name
        # The design fixes prevalences. The other shares do not count independent items.
        return None if entry.rows == PREVALENCE else "score"


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
    counted, resampled
        Entries that read counts, not scores; those with bootstrap intervals on request.
    """

    proportions: Array
    ratios: tuple[RatioRows, ...]
    bounds: Array
    rests_on: Array
    names: tuple[str, ...]
    counted: Array
    resampled: Array

    @cached_property
    def named(self) -> Array:
        """Entries that have a method by default."""
        return positions(name not in {"", "bootstrap"} for name in self.names)


@dataclass(frozen=True, eq=False)
class Methods:
    """The interval methods of the entries of a selection; all arrays hold positions.

    Parameters
    ----------
    class_ratios
        The plain proportions of the classes, then the two of each likelihood ratio.
    affine
        Overall proportions that are mapped onto another range: their position among the
        proportions, and among the overall entries.
    predictions, mixed
        Per-class and overall shares that are none where predictions have no item: s_i / w, and R'.
    weakest, weakest_of
        Overall entries in which every class counts the same, and the averaged per-class entries.
    """

    per_class: ScopeMethods
    overall: ScopeMethods
    likelihood_ratios: Array
    class_ratios: tuple[RatioRows, ...]
    log_ratios: tuple[int, ...]
    affine: tuple[tuple[int, int], ...]
    predictions: Array
    mixed: Array
    weakest: Array
    weakest_of: Array

    @cached_property
    def class_rows(self) -> Array:
        """The entry behind each of `class_ratios`."""
        return np.concatenate((self.per_class.proportions, np.repeat(self.likelihood_ratios, 2)))


@lru_cache(maxsize=256)
def methods_of(selection: Selection, setting: Setting) -> Methods:
    """Look up the interval methods of the entries of a selection."""
    named = [setting.method(entry) for entry in selection.computed]
    ratios = {
        i: entry.rows
        for i, entry in enumerate(selection.computed)
        if named[i] == "proportion" and not entry.scored
    }
    pooled = {
        i: ratio
        for i, entry in enumerate(selection.overall)
        if (ratio := pooled_ratio(entry, setting)) is not None
    }
    likelihood = [i for i, name in enumerate(named) if name == "likelihood_ratio"]
    parts = [selection.computed[i].parts for i in likelihood]
    of_likelihood = [ratio for part in parts if part is not None for ratio in part.ratios]
    overall = _scope(selection.overall, setting, pooled)
    weakest = [
        (i, selection.place[key])
        for i, entry in enumerate(selection.overall)
        if entry.reads in {"macro", "means"}
        for key in entry.of
    ]
    return Methods(
        per_class=_scope(selection.computed, setting, ratios),
        overall=overall,
        likelihood_ratios=integers(likelihood),
        class_ratios=(*ratios.values(), *of_likelihood),
        log_ratios=tuple(i for i, name in enumerate(named) if name == "log_ratio"),
        affine=tuple(
            (i, place)
            for i, place in enumerate(overall.proportions.tolist())
            if selection.overall[place].score_range is not None
        ),
        predictions=positions(entry.rows == PREDICTIONS for entry in selection.computed),
        mixed=positions(entry.rows == NOT_WRONG for entry in selection.overall),
        weakest=integers(pair[0] for pair in weakest),
        weakest_of=integers(pair[1] for pair in weakest),
    )


def pooled_ratio(entry: Index, setting: Setting) -> RatioRows | None:
    """Return numerator and denominator of an overall entry that is a plain proportion.

    Micro and weighted recall equal accuracy. So do micro precision and F1 where every item is
    classified and none is spurious.
    """
    if setting.fixed_rows or entry.interval is None or entry.scored:
        return None
    if entry.interval == "proportion":
        return entry.rows if entry.parts is None else entry.parts.ratios[0]
    if entry.reads not in {"micro", "weighted"}:
        return None
    equal = {RECALL: CORRECT, MISSES: WRONG}
    if entry.reads == "micro" and not setting.omits:
        equal |= {
            PRECISION: CORRECT,
            (CountRow.fp, CountRow.predicted): WRONG,
            (CountRow.twice_tp, CountRow.support_and_predicted): CORRECT,
            (CountRow.weighted_tp, CountRow.weighted_union): CORRECT,
        }
    return equal.get(CLASS_INDICES[entry.of[0]].rows)


def _scope(
    entries: Sequence[Index], setting: Setting, proportions: dict[int, RatioRows]
) -> ScopeMethods:
    names = []
    for i, entry in enumerate(entries):
        shown = plain(entry)
        share = shown is not entry and pooled_ratio(shown, setting) is not None
        name = "proportion" if i in proportions or share else setting.method(shown)
        name = "bootstrap" if entry.resampled else name
        names.append("" if name is None else INTERVALS[name].reported[-1 if setting.exact else 0])
    return ScopeMethods(
        proportions=integers(proportions),
        ratios=tuple(proportions.values()),
        bounds=np.array([bounds(entry) for entry in entries]).reshape(-1, 2).T,
        rests_on=np.array([(_rows_of(e) * 4)[:4] for e in entries], np.intp).reshape(-1, 4),
        counted=positions(not entry.scored for entry in entries),
        resampled=positions(entry.resampled for entry in entries),
        names=tuple(names),
    )


def bounds(entry: Index) -> tuple[float, float]:
    """Return the smallest and largest limits: an index without a lowest value has none below -1.

    Scores of items and costs keep their infinite range.
    """
    low, high = entry.range
    table = not entry.scored and np.isfinite(high)
    return (-1.0 if table and not np.isfinite(low) else low), high


def _rows_of(entry: Index) -> list[CountRow]:
    if entry.reads in ("ratio", "micro"):
        found = [AS_ITEMS.get(entry.rows[1], entry.rows[1])]
        return [*found, CountRow.total] if entry.reads == "micro" else found
    if entry.scored and entry.scope == "class":
        return [CountRow.support, CountRow.negatives]
    if entry.scope == "overall":
        return [CountRow.answered if entry.universe == "classified" else CountRow.total]
    return [row for why in entry.undefined for row in RESTS_ON.get(why, ())] or [CountRow.total]
