"""Methods: which interval every entry of a selection gets, sorted once for each selection."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow
from rprime.core.index import AT_MOST_ONE, NON_NEGATIVE, SIGNED, UNIT, Index
from rprime.core.intervals.smooth_indices import smooth_overall_indices
from rprime.core.selection import Selection

RECALL = (int(CountRow.tp), int(CountRow.support))
FALSE_POSITIVE_RATE = (int(CountRow.fp), int(CountRow.negatives))
PREVALENCE = (int(CountRow.support), int(CountRow.total))
PREDICTED_PREVALENCE = (int(CountRow.predicted), int(CountRow.total))
UNION = (int(CountRow.tp), int(CountRow.union))
OVERALL_R_PRIME = (int(CountRow.not_wrong), int(CountRow.total))

PARTS = (UNION, RECALL, FALSE_POSITIVE_RATE, PREVALENCE)
"""Proportions whose limits others are made of: F1 and Jaccard, then R' and informedness."""

# The counts without which an index would not exist are those it rests on.
RESTS_ON = {
    "no_true_samples": (CountRow.support,),
    "no_predictions": (CountRow.predicted,),
    "single_class": (CountRow.negatives, CountRow.predicted_negatives),
}
AS_ITEMS = {CountRow.support_and_predicted: CountRow.union, CountRow.weighted_union: CountRow.union}


@dataclass(frozen=True, eq=False)
class Scale:
    """On which scales the delta limits of n indices are symmetric.

    Parameters
    ----------
    low, slope
        Shape (n,). The odds (v - low) / (1 - slope v) are those of the logit for low 0 and of
        Fisher's z for low -1, both with slope 1; with slope 0 and low 0 they are v itself, and
        the scale its logarithm.
    plain
        Positions of the untransformed ones.
    fallback
        Positions of those that are untransformed where the value is at most -1.
    names
        Of the methods.
    """

    low: Array
    slope: Array
    plain: Array
    fallback: Array
    names: tuple[str, ...]

    @classmethod
    def of(cls, entries: Sequence[Index]) -> "Scale":
        """Choose the scale of every entry by its range."""
        names = tuple(_scale(entry) for entry in entries)
        return cls(
            np.array([-1.0 if name == "delta_fisher_z" else 0.0 for name in names]),
            np.array([0.0 if name == "delta_log" else 1.0 for name in names]),
            positions(name == "delta" for name in names),
            positions(_chance_corrected(entry) for entry in entries),
            names,
        )


def _scale(entry: Index) -> str:
    if _chance_corrected(entry):
        return "delta_fisher_z"
    scales = {UNIT: "delta_logit", SIGNED: "delta_fisher_z", NON_NEGATIVE: "delta_log"}
    return scales.get(entry.range, "delta")


def _chance_corrected(entry: Index) -> bool:
    """Whether an overall index of agreement beyond chance has no lowest value."""
    return entry.range == AT_MOST_ONE and entry.reads in ("moments", "table")


@dataclass(frozen=True, eq=False)
class ScopeMethods:
    """The entries of one scope by the interval they get; all arrays hold positions.

    Parameters
    ----------
    proportions, proportions_of
        Entries that are plain proportions, and where these stand among the distinct ones.
    delta, scale
        Entries with delta limits, and their scales.
    bounds
        Shape (2, n): smallest and largest possible limits.
    loose
        Entries that have no interval where there are spurious items.
    rests_on
        Shape (n, 4): `CountRow`s, the smallest of whose counts an interval rests on.
    names
        Of the methods, "" where there is none.
    """

    proportions: Array
    proportions_of: Array
    delta: Array
    scale: Scale
    bounds: Array
    loose: Array
    rests_on: Array
    names: tuple[str, ...]

    @cached_property
    def named(self) -> Array:
        """Entries that have a method."""
        return positions(name != "" for name in self.names)


@dataclass(frozen=True, eq=False)
class Methods:
    """The entries of a selection by the interval they get; all arrays hold positions.

    Parameters
    ----------
    numerators, denominators
        Shape (p,): the distinct proportions that score limits are needed of, as `CountRow`s; the
        first four are `PARTS`.
    per_class, overall
        The entries of each scope; overall delta entries in the order of
        `SmoothOverallIndices`.
    dice, jaccard
        Per-class entries that are functions of a / (a + FP + FN).
    r_prime, informedness
        Per-class entries with a MOVER interval, at most one each.
    macro, macro_of, both_limits_of
        Macro averages, the per-class entries they average, and these twice.
    weakest, weakest_of
        Overall entries that rest on every class, and the per-class entries they average.
    """

    numerators: Array
    denominators: Array
    per_class: ScopeMethods
    overall: ScopeMethods
    dice: Array
    jaccard: Array
    r_prime: Array
    informedness: Array
    macro: Array
    macro_of: Array
    both_limits_of: Array
    weakest: Array
    weakest_of: Array

    @cached_property
    def rows(self) -> Array:
        """All `CountRow`s that an interval rests on."""
        return np.unique(np.concatenate((self.per_class.rests_on, self.overall.rests_on)))


@lru_cache(maxsize=256)
def methods_of(selection: Selection, f_beta: str, score: str) -> Methods:
    """Sort the entries of a selection by the interval they get.

    Parameters
    ----------
    f_beta
        The interval of F-beta: "dice" for beta = 1, where it is F1, else "delta".
    score
        Name of the method for plain proportions.
    """
    computed, overall = selection.computed, selection.overall
    kinds = [f_beta if e.key == "f_beta" else e.interval for e in computed]
    wholes = [_overall_kind(selection, e) for e in overall]
    named = [*zip(computed, kinds, strict=True), *zip(overall, wholes, strict=True)]
    pairs = [*PARTS, *(entry.rows for entry, kind in named if kind == "proportion")]
    place = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
    sorted_terms = smooth_overall_indices(selection)
    rest = sorted_terms.order[len(sorted_terms.macro) :]
    macro = positions(kind == "macro" for kind in wholes)
    macro_of = _integers(selection.averaged(overall[i]) for i in macro)
    weakest = [(i, selection.place[key]) for i, e in enumerate(overall) for key in _every_class(e)]
    return Methods(
        numerators=_integers(pair[0] for pair in place),
        denominators=_integers(pair[1] for pair in place),
        per_class=_scope_methods(
            selection,
            computed,
            kinds,
            delta=positions(kind == "delta" for kind in kinds),
            place=place,
            score=score,
        ),
        overall=_scope_methods(selection, overall, wholes, delta=rest, place=place, score=score),
        dice=positions(kind == "dice" for kind in kinds),
        jaccard=positions(kind == "jaccard" for kind in kinds),
        r_prime=positions(kind == "r_prime" for kind in kinds),
        informedness=positions(kind == "informedness" for kind in kinds),
        macro=macro,
        macro_of=macro_of,
        both_limits_of=np.concatenate((macro_of, macro_of)),
        weakest=_integers(pair[0] for pair in weakest),
        weakest_of=_integers(pair[1] for pair in weakest),
    )


def _scope_methods(
    selection: Selection,
    entries: Sequence[Index],
    kinds: Sequence[str | None],
    *,
    delta: Array,
    place: dict[tuple[int, int], int],
    score: str,
) -> ScopeMethods:
    plain = positions(kind == "proportion" for kind in kinds)
    scale = Scale.of([entries[i] for i in delta])
    return ScopeMethods(
        proportions=plain,
        proportions_of=_integers(place[entries[i].rows] for i in plain),
        delta=delta,
        scale=scale,
        bounds=_bounds(entries),
        loose=positions(_loose(selection, entry) for entry in entries),
        rests_on=_rests_on(entries),
        names=_names(
            kinds,
            dict(zip(delta, scale.names, strict=True))
            | {i: _scale(entry) for i, entry in enumerate(entries) if entry.of_items},
            score,
        ),
    )


def positions(flags: Iterable[bool]) -> Array:
    """Positions of the flags that are set."""
    return _integers(i for i, flag in enumerate(flags) if flag)


def _integers(values: Iterable[int]) -> Array:
    return np.fromiter(values, dtype=np.intp)


def _overall_kind(selection: Selection, entry: Index) -> str | None:
    """Its interval; none for the macro average of shares of one total.

    The prevalences add up to 1 and the predicted ones to the coverage: their mean is no estimate.
    """
    if entry.reads == "macro":
        averaged = selection.computed[selection.averaged(entry)]
        if averaged.reads == "ratio" and averaged.rows[1] == CountRow.total:
            return None
    return entry.interval


def _names(kinds: Sequence[str | None], scales: dict[int, str], score: str) -> tuple[str, ...]:
    known = {
        "proportion": score,
        "dice": "jaccard_wilson",
        "jaccard": "jaccard_wilson",
        "r_prime": "mover",
        "informedness": "mover",
        "macro": "mover",
        "delong": "delong_logit",
        "share": score,
        None: "",
    }
    return tuple(known[kind] if kind in known else scales[i] for i, kind in enumerate(kinds))


def _bounds(entries: Sequence[Index]) -> Array:
    # Where R' has an interval there are no spurious items, so it is above -1.
    lowest = [max(e.range[0], -1.0) if e.interval == "r_prime" else e.range[0] for e in entries]
    return np.array((lowest, [e.range[1] for e in entries]))


def _loose(selection: Selection, entry: Index) -> bool:
    """Whether an index mixes spurious predictions, which are no sample, with real items."""
    if entry.of:
        averaged = (selection.computed[selection.place[key]] for key in entry.of)
        return any(_loose(selection, one) for one in averaged)
    if entry.interval in ("r_prime", "informedness"):
        return True
    return entry.rows in (PREDICTED_PREVALENCE, OVERALL_R_PRIME)


def _every_class(entry: Index) -> tuple[str, ...]:
    """The per-class entries of which every class counts the same."""
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
