"""The interval of each index of a population, looked up once for each selection."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from rprime.core.arrays import Array, integers, positions
from rprime.core.counts import CountRow, RatioRows
from rprime.core.index import Index
from rprime.core.intervals.methods import (
    AVERAGE,
    PARTS,
    PROPORTION,
    SCORE,
    IntervalMethod,
    method_in,
    pooled_ratio,
)
from rprime.core.intervals.methods import plan_of as plan_of_sample
from rprime.core.intervals.plan import Bounds, IntervalPlan, ScopeMethods, Setting
from rprime.core.populations.population import Strata
from rprime.core.selection import Selection

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
    selection: Selection, setting: Setting, strata: Strata, bound: Bounds
) -> tuple[IntervalPlan, ScopePlan, ScopePlan]:
    """Plan the intervals of the entries of a selection, in the setting of the sample.

    Returns how reports call them, and what they rest on: per class, and overall.
    """
    kinds = [_class_kind(entry, setting, strata) for entry in selection.computed]
    whole = [_overall_kind(entry, setting, strata) for entry in selection.overall]
    plan = plan_of_sample(selection, setting, bound)
    plan = replace(
        plan,
        per_class=_named(plan.per_class, kinds, setting, strata),
        overall=_named(plan.overall, whole, setting, strata),
        affine=(),
    )
    return plan, _scope(kinds), _scope(whole)


Kind = tuple[IntervalMethod | None, RatioRows | None]
"""A method, and the terms of a sum over the strata."""


def _class_kind(entry: Index, setting: Setting, strata: Strata) -> Kind:
    method = method_in(setting, entry)
    if method is None or entry.scored or entry.resampled:
        return None, None
    fixed = (CountRow.total, *FIXED[strata])
    if entry.reads == "ratio" and entry.rows[1] in fixed and entry.rows[0] in ITEMS:
        if entry.rows[0] in fixed:
            return None, None  # by design, it does not vary
        return (PROPORTION if entry.rows[1] == fixed[1] != fixed[0] else AVERAGE), entry.rows
    if method.logarithmic:
        return method, None
    return (SCORE if strata == "own" else PARTS), None


def _overall_kind(entry: Index, setting: Setting, strata: Strata) -> Kind:
    method = method_in(setting, entry)
    if method is None or entry.scored or entry.resampled:
        return None, None
    ratio = pooled_ratio(entry, setting)
    whole = (CountRow.total,) if setting.unclassified else (CountRow.total, CountRow.answered)
    if ratio is None or ratio[0] not in POOLED or ratio[1] not in whole:
        of_classes = strata != "own" and entry.reads in {"macro", "weighted", "means"}
        return (AVERAGE if of_classes else SCORE), None
    return AVERAGE, ratio


def _named(
    methods: ScopeMethods, kinds: Iterable[Kind], setting: Setting, strata: Strata
) -> ScopeMethods:
    by_parts = strata != "own"  # ratios, too, have the wider of two intervals
    shown = (PARTS if by_parts and kind and kind.logarithmic else kind for kind, _ in kinds)
    names = tuple("" if kind is None else kind.reported_as(exact=setting.exact) for kind in shown)
    return replace(
        methods, proportions=integers(()), ratios=(), names=names, named=positions(map(bool, names))
    )


def _scope(kinds: list[Kind]) -> ScopePlan:
    sums = [(i, terms) for i, (_, terms) in enumerate(kinds) if terms is not None]
    return ScopePlan(
        sums=integers(i for i, _ in sums),
        numerators=integers(terms[0] for _, terms in sums),
        denominators=integers(terms[1] for _, terms in sums),
        logs=positions(kind is not None and kind.logarithmic for kind, _ in kinds),
        without=positions(kind is None for kind, _ in kinds),
    )
