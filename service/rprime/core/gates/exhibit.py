"""Exhibit: everything that is known about the results of one rule before it is judged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison
from rprime.core.comparison.difference import METHODS, REASONS, Difference
from rprime.core.gates.estimate import estimate
from rprime.core.gates.rules import Rule
from rprime.core.gates.verdict import Array, Facts, Finding
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.values import Values, compute

Pairing = Literal["paired", "unpaired"]
Labels = tuple[str | None, ...]
Places = NDArray[np.intp]
T = TypeVar("T")

POINT = "point"
"""Method of `test: "none"`: the values themselves are compared."""
CLASSES_DIFFER = REASONS.index("classes_differ")


@dataclass(frozen=True, eq=False)
class Case:
    """A candidate before the gate.

    Parameters
    ----------
    candidate, comparison, options
        As `judge` takes them.
    indices
        Keys of all rules.
    level
        One-sided, of every limit.
    """

    candidate: Side
    comparison: Comparison | None
    options: Options
    indices: tuple[str, ...]
    level: float

    @cached_property
    def values(self) -> Values:
        """The indices of the rules, with nothing in the place of what does not exist."""
        options = replace(self.options, indices=self.indices, undefined="null")
        return compute(self.candidate.table, options, select(options), self.candidate.scores)

    def observed(self, rule: Rule) -> Array:
        """Values of one index, shape (k,) per class and (1,) overall; NaN where undefined."""
        values = np.atleast_1d(self.values.lookup(rule.scope, rule.index))
        return np.where(np.isfinite(values), values, np.nan)

    @property
    def items(self) -> Array:
        """Items of each class, shape (k,)."""
        return np.asarray(self.values.table.support)

    def places(self, labels: Labels) -> Places:
        """Positions of these classes among the candidate's, -1 for those it does not have."""
        return places_of(labels, self.candidate.labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class Exhibit:
    """The evidence on one rule, for its m results; arrays of shape (m,), NaN where unknown.

    Parameters
    ----------
    labels
        Classes; one None for an overall index.
    observed, baseline, delta, items, detectable
        As in `Result`, where `detectable` is `min_detectable_drop`.
    lower, upper
        The interval.
    methods, pairings, reasons
        Of each result; a reason is empty where the evidence decides.
    """

    rule: Rule
    labels: Labels
    facts: Facts
    observed: Array
    baseline: Array
    delta: Array
    lower: Array
    upper: Array
    items: Array
    detectable: Array
    methods: tuple[str | None, ...]
    pairings: tuple[Pairing | None, ...]
    reasons: tuple[str, ...]


def exhibit(rule: Rule, case: Case) -> Exhibit:
    """Gather the evidence on a rule."""
    if not rule.compares:
        return _of_value(rule, case, labels_of(rule, case.candidate.labels))
    if case.comparison is None:
        return _without_baseline(rule, case, labels_of(rule, case.candidate.labels))
    gone = case.comparison.baseline_only
    return _of_difference(
        rule, case, labels_of(rule, case.candidate.labels + gone), case.comparison
    )


def labels_of(rule: Rule, known: tuple[str, ...]) -> Labels:
    """Classes that a rule is about; one None for an overall index."""
    if rule.classes is None:
        return (None,)
    return known if rule.classes == "all" else rule.classes


def _of_value(rule: Rule, case: Case, labels: Labels) -> Exhibit:
    """Hold the candidate's own values against a floor or a ceiling."""
    known = estimate(case.values, rule.entry, case.candidate.items)
    places = case.places(labels)
    lower, upper = known.limits(case.level)
    blank = np.full(len(labels), np.nan)
    methods = (*known.methods, None)
    reasons = (*known.reasons, "class_missing")
    return Exhibit(
        rule=rule,
        labels=labels,
        facts=spread_facts(Facts.of(rule, known), places),
        observed=spread(known.value, places),
        baseline=blank,
        delta=blank,
        lower=_interval(rule, lower, places),
        upper=_interval(rule, upper, places),
        items=spread(known.items, places),
        detectable=spread(known.detectable(case.level), places),
        methods=tuple(_method(rule, methods[place]) for place in places),
        pairings=(None,) * len(labels),
        reasons=tuple(reasons[place] for place in places),
    )


def _without_baseline(rule: Rule, case: Case, labels: Labels) -> Exhibit:
    """Say that there is nothing to compare with; a class nobody has is missing all the same."""
    places = case.places(labels)
    facts = Facts.without_evidence(len(case.candidate.labels), Finding.no_baseline)
    blank = np.full(len(labels), np.nan)
    return Exhibit(
        rule=rule,
        labels=labels,
        facts=spread_facts(facts, places),
        observed=spread(case.observed(rule), places),
        baseline=blank,
        delta=blank,
        lower=blank,
        upper=blank,
        items=_items(rule, case, places),
        detectable=blank,
        methods=(None,) * len(labels),
        pairings=(None,) * len(labels),
        reasons=tuple("class_missing" if place < 0 else "no_baseline" for place in places),
    )


def _of_difference(rule: Rule, case: Case, labels: Labels, comparison: Comparison) -> Exhibit:
    """Hold the difference from the baseline against the largest one allowed."""
    known, places = _difference(rule, labels, comparison)
    lower, upper = known.limits(case.level)
    comparable = comparison.comparability != "different"
    methods = (*(METHODS[code] or None for code in known.methods), None)
    reasons = (*(_why(known, i, comparable=comparable) for i in range(len(known.value))), "")
    return Exhibit(
        rule=rule,
        labels=labels,
        facts=spread_facts(of_difference(rule, known, comparable=comparable), places),
        observed=spread(case.observed(rule), case.places(labels)),
        baseline=spread(known.baseline, places),
        delta=spread(known.value, places),
        lower=_interval(rule, lower, places),
        upper=_interval(rule, upper, places),
        items=_items(rule, case, case.places(labels)),
        detectable=spread(_detectable(rule, known, case.level), places),
        methods=tuple(_method(rule, methods[place]) for place in places),
        pairings=tuple(None if place < 0 else comparison.pairing for place in places),
        reasons=tuple(
            reasons[place] or _missing(label, comparison) if place < 0 else reasons[place]
            for place, label in zip(places, labels, strict=True)
        ),
    )


def _difference(rule: Rule, labels: Labels, comparison: Comparison) -> tuple[Difference, Places]:
    """Differences of the index, and which of them each label has."""
    if rule.classes is None:
        return comparison.of_overall(rule.index)[np.newaxis], np.zeros(1, dtype=np.intp)
    return comparison.of_classes(rule.index), places_of(labels, comparison.classes)


def of_difference(rule: Rule, known: Difference, *, comparable: bool = True) -> Facts:
    """Hold a difference of shape (..., m) against a rule.

    A value that the candidate alone lost is `undefined`; one that the baseline does not have,
    either, is no evidence.
    """
    facts = Facts.of(rule, known)
    if not comparable:
        return replace(facts, settled=np.full_like(facts.settled, Finding.not_comparable))
    missing = ~np.isfinite(known.value) | known.undefined
    nothing_before = np.isnan(known.baseline) & ~known.undefined
    open_verdict = np.where(nothing_before, Finding.inconclusive, Finding.undefined)
    settled = np.where(missing, open_verdict, Finding.unsettled)
    differ = known.reasons == CLASSES_DIFFER
    settled = np.where(differ, Finding.not_comparable, settled)
    return replace(facts, settled=settled.astype(np.uint8))


def _why(known: Difference, place: int, *, comparable: bool) -> str:
    return REASONS[int(known.reasons[place])] if comparable else "different_test_sets"


def _missing(label: str | None, comparison: Comparison) -> str:
    here = label in comparison.candidate_only
    return "class_missing_in_baseline" if here else "class_missing"


def _detectable(rule: Rule, known: Difference, level: float) -> Array:
    """Give the change that can be seen in the direction of the rule."""
    mirrored = replace(known, gains=known.losses, losses=known.gains)
    toward = known if rule.guards_below else mirrored
    return toward.detectable_drop(level, min(rule.limit, 1.0))


def _items(rule: Rule, case: Case, places: Places) -> Array:
    items = case.items
    return spread(items if rule.scope == "class" else items.sum(keepdims=True), places)


def _method(rule: Rule, method: str | None) -> str | None:
    return POINT if rule.test == "none" else method


def _interval(rule: Rule, limits: Array, places: Places) -> Array:
    limits = spread(limits, places)
    return np.full_like(limits, np.nan) if rule.test == "none" else limits


def places_of(labels: Labels, known: Sequence[str]) -> Places:
    """Positions among the known classes, -1 where unknown; 0 for an overall index."""
    number: dict[str | None, int] = {name: i for i, name in enumerate(known)}
    number[None] = 0
    return np.array([number.get(label, -1) for label in labels], dtype=np.intp)


def spread(values: Array, places: Places) -> Array:
    """Take (..., n) values at the places, NaN where there is none."""
    nothing = np.full((*values.shape[:-1], 1), np.nan)
    return np.asarray(np.concatenate([values, nothing], axis=-1)[..., places])


def spread_facts(facts: Facts, places: Places) -> Facts:
    """Take facts of shape (..., n) at the places; nothing can be compared where there is none."""
    nothing = np.full((*facts.settled.shape[:-1], 1), Finding.not_comparable)
    settled = np.concatenate([facts.settled, nothing], axis=-1)[..., places]
    return Facts(
        spread(facts.point, places),
        spread(facts.p_fail, places),
        spread(facts.p_pass, places),
        settled.astype(np.uint8),
    )
