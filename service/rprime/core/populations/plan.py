"""The interval of each index of a population, looked up once for each selection."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from rprime.core.arrays import Array, integers, positions
from rprime.core.counts import CountRow, RatioRows
from rprime.core.index import Index
from rprime.core.intervals.methods import (
    INTERVALS,
    Methods,
    ScopeMethods,
    Setting,
    methods_of,
    pooled_ratio,
)
from rprime.core.populations.population import Strata
from rprime.core.selection import Selection

LOGARITHMIC = ("likelihood_ratio", "odds_ratio", "log_ratio")
"""Methods of ratios without a largest value."""
FIXED: dict[Strata, RatioRows] = {
    "true": (CountRow.support, CountRow.negatives),
    "predicted": (CountRow.predicted, CountRow.predicted_negatives),
    "own": (CountRow.total, CountRow.total),
}
"""The counts of a class that the design fixes, those of its own stratum first."""
ITEMS = (CountRow.tp, CountRow.fn, CountRow.fp, CountRow.tn, CountRow.support, CountRow.predicted)
"""Numerators that count items of a class."""
POOLED = (CountRow.tp, CountRow.fn, CountRow.not_wrong, CountRow.answered)
"""Numerators that count items overall."""


@dataclass(frozen=True, eq=False)
class ScopePlan:
    """The entries of one scope; all arrays hold positions.

    `sums` are sums over the strata, with their terms as `CountRow`s; `logs` ratios without a
    largest value; those `without` have no interval.
    """

    sums: Array
    numerators: Array
    denominators: Array
    logs: Array
    without: Array


@lru_cache(maxsize=256)
def plan_of(
    selection: Selection, setting: Setting, strata: Strata
) -> tuple[Methods, ScopePlan, ScopePlan]:
    """Plan the intervals of the entries of a selection, in the setting of the sample.

    Returns how reports call them, and what they rest on: per class, and overall.
    """
    found = [_class_kind(entry, setting, strata) for entry in selection.computed]
    whole = [_overall_kind(entry, setting, strata) for entry in selection.overall]
    methods = methods_of(selection, setting)
    methods = replace(
        methods,
        per_class=_named(methods.per_class, found, setting, strata),
        overall=_named(methods.overall, whole, setting, strata),
        affine=(),
    )
    return methods, _scope(found), _scope(whole)


Kind = tuple[str, RatioRows | None]
"""Name of a method, "" without one, and the terms of a sum over the strata."""


def _class_kind(entry: Index, setting: Setting, strata: Strata) -> Kind:
    if _without(entry, setting):
        return "", None
    fixed = (CountRow.total, *FIXED[strata])
    if entry.reads == "ratio" and entry.rows[1] in fixed and entry.rows[0] in ITEMS:
        if entry.rows[0] in fixed:
            return "", None  # by design, it does not vary
        return ("proportion" if entry.rows[1] == fixed[1] != fixed[0] else "average"), entry.rows
    if entry.interval in LOGARITHMIC:
        return entry.interval, None
    return ("score" if strata == "own" else "parts"), None


def _overall_kind(entry: Index, setting: Setting, strata: Strata) -> Kind:
    if _without(entry, setting):
        return "", None
    ratio = pooled_ratio(entry, setting)
    whole = (CountRow.total,) if setting.unclassified else (CountRow.total, CountRow.answered)
    if ratio is None or ratio[0] not in POOLED or ratio[1] not in whole:
        of_classes = strata != "own" and entry.reads in {"macro", "weighted", "means"}
        return ("average" if of_classes else "score"), None
    return "average", ratio


def _without(entry: Index, setting: Setting) -> bool:
    return entry.scored or entry.resampled or setting.method(entry) is None


def _named(
    methods: ScopeMethods, kinds: Iterable[Kind], setting: Setting, strata: Strata
) -> ScopeMethods:
    by_parts = () if strata == "own" else LOGARITHMIC
    found = ("parts" if kind in by_parts else kind for kind, _ in kinds)
    reported = (INTERVALS[kind].reported if kind else ("",) for kind in found)
    names = tuple(name[-1 if setting.exact else 0] for name in reported)
    return replace(methods, proportions=integers(()), ratios=(), names=names)


def _scope(kinds: list[Kind]) -> ScopePlan:
    sums = [(i, terms) for i, (_, terms) in enumerate(kinds) if terms is not None]
    return ScopePlan(
        sums=integers(i for i, _ in sums),
        numerators=integers(terms[0] for _, terms in sums),
        denominators=integers(terms[1] for _, terms in sums),
        logs=positions(kind in LOGARITHMIC for kind, _ in kinds),
        without=positions(not kind for kind, _ in kinds),
    )
