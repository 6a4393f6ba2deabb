"""What the smoothed tables of a selection are needed for, found once for each selection."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rprime.core.arrays import Array, integers, positions
from rprime.core.catalog import CLASS_INDICES
from rprime.core.families.one_vs_rest import PREVALENCE
from rprime.core.index import Index, Parts
from rprime.core.intervals.methods import Setting, pooled_ratio
from rprime.core.intervals.parts import PartChoice, PartLayout, of_index
from rprime.core.options import Options
from rprime.core.selection import Selection, arranged
from rprime.core.table import Universe

PEIRCE = "peirce_skill_score"
BY_LOGARITHM = "geometric_mean_recall"
ADJUSTED = "adjusted_balanced_accuracy"
MACRO_R_PRIME = "macro_r_prime"
MOST_DENSE = 1000
"""Most classes with intervals of indices that read single cells: smoothing fills every cell."""


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
class Plan:
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


@lru_cache(maxsize=256)
def plan_of(
    selection: Selection, setting: Setting, universe: Universe | None, bound: Bounds
) -> Plan | None:
    """Plan the intervals of the entries of a universe; None if none needs smoothed tables.

    The universe is None for both, which are the same where every item is classified and none is
    spurious.
    """

    def needed(entry: Index) -> bool:
        """Whether an entry has an interval that needs the smoothed tables of this universe."""
        method = setting.method(entry)
        if universe not in {None, entry.universe} or entry.scored or method is None:
            return False
        if setting.effects:
            return True
        if entry.scope == "class":
            return method in {"parts", "mapped", "score", "odds_ratio"}
        mixed = setting.spurious and entry.key == "r_prime"
        return mixed or pooled_ratio(entry, setting) is None

    overall = [
        i
        for i, entry in enumerate(selection.overall)
        if needed(entry) and (entry.cell_gradient is None or bound.k <= MOST_DENSE)
    ]
    chosen = [selection.overall[i] for i in overall]
    averaging = [(i, *found) for i, entry in enumerate(chosen) for found in _averaged(entry)]
    places = [i for i, entry in enumerate(selection.computed) if needed(entry)]
    computed = [selection.computed[i] for i in places]
    if not computed and not chosen:
        return None
    extra = dict.fromkeys(key for _, key, _ in averaging)
    extra |= dict.fromkeys(key for entry in chosen for key in entry.of)
    known = {entry.key for entry in computed}
    for key in [key for key in extra if key not in known]:
        entry = CLASS_INDICES[key]
        here = universe in {None, entry.universe}
        places.append(selection.place.get(key, -1) if here else -1)
        computed.append(entry)
    sub = arranged(tuple(computed), 0, chosen)
    return _laid_out(sub, setting, (places, overall), averaging, bound)


def _laid_out(
    sub: Selection,
    setting: Setting,
    places: tuple[list[int], list[int]],
    averaging: list[tuple[int, str, str]],
    bound: Bounds,
) -> Plan:
    """Find what the entries need; `places` are those of per-class and of overall ones."""
    methods = [setting.method(entry) for entry in sub.computed]
    of_parts = [i for i, name in enumerate(methods) if name in {"parts", "mapped", "proportion"}]
    scores = [i for i, name in enumerate(methods) if name in {"parts", "score"}]
    parts = []
    for i in of_parts:
        mapped = methods[i] == "mapped" and sub.computed[i].parts is None
        parts.append(of_index(CLASS_INDICES["f1"] if mapped else sub.computed[i]))
    layout = PartLayout.of_parts(parts)
    own = [n for n, i in enumerate(of_parts) if methods[i] != "proportion" and places[0][i] >= 0]
    averages, averaged = _averages(sub, averaging, parts, of_parts=of_parts, scores=scores)
    odds = [i for i, name in enumerate(methods) if name == "odds_ratio"]
    return Plan(
        selection=sub,
        class_places=integers(places[0]),
        overall_places=integers(places[1]),
        class_scores=integers(scores),
        class_bounds=bound.ranges([sub.computed[i] for i in scores]),
        overall_bounds=bound.ranges(sub.overall),
        parts=layout,
        parts_of=integers(of_parts),
        class_parts=layout.choice(own),
        class_parts_of=integers(places[0][of_parts[n]] for n in own),
        average_parts=layout.choice(averaged),
        with_prevalence=positions(PREVALENCE in part.ratios for part in parts),
        averages=averages,
        odds_ratio=odds[0] if odds else None,
    )


def _averaged(entry: Index) -> list[tuple[str, str]]:
    """Return the per-class indices that an average over classes may be of, and its weights."""
    found = []
    if entry.key == PEIRCE:
        found.append(("informedness", "peirce"))
    elif entry.interval == "average":
        found.append((entry.of[0], "weighted" if entry.reads == "weighted" else "macro"))
    if entry.key == MACRO_R_PRIME:
        found.append(("recall", "macro"))
    return found


def _averages(
    sub: Selection,
    averaging: list[tuple[int, str, str]],
    parts: list[Parts],
    *,
    of_parts: list[int],
    scores: list[int],
) -> tuple[Averages, list[int]]:
    """Arrange the averages, and add the positions of the averaged functions of parts."""
    of = [sub.place[key] for _, key, _ in averaging]
    keys = [sub.overall[i].key for i, _, _ in averaging]
    kinds = [kind for _, _, kind in averaging]
    equal = [i for i, key in enumerate(keys) if key == MACRO_R_PRIME]
    by_parts = positions(i in of_parts for i in of)
    by_scores = positions(i in scores and i not in of_parts for i in of)
    averaged = [of_parts.index(of[n]) for n in by_parts]
    sizes = np.array([len(parts[place].ratios) for place in averaged], dtype=np.intp)
    found = Averages(
        entries=integers(i for i, _, _ in averaging),
        of=integers(of),
        by_parts=by_parts,
        by_scores=by_scores,
        scores=integers(scores.index(of[n]) for n in by_scores),
        macro=positions(kind == "macro" for kind in kinds),
        weighted=positions(kind == "weighted" for kind in kinds),
        peirce=positions(kind == "peirce" for kind in kinds),
        logarithmic=positions(key == BY_LOGARITHM for key in keys),
        adjusted=positions(key == ADJUSTED for key in keys),
        rows=np.concatenate((np.repeat(by_parts, sizes), by_scores)),
        kept=positions(i not in equal[1:] for i in range(len(of))),
        equal=(equal[0], equal[1]) if len(equal) > 1 else None,
    )
    return found, averaged
