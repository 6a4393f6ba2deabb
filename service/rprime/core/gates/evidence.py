"""The evidence on each result of a rule, from an evaluation and its comparison."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import FloatArray
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison, Pairing
from rprime.core.comparison.difference import METHODS, REASONS, Difference
from rprime.core.gates.estimate import estimate
from rprime.core.gates.rules import Rule
from rprime.core.gates.verdict import RuleTests, VerdictCode
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.values import Values, compute

ResultLabels = tuple[str | None, ...]
"""The class of each result; one None for an overall index."""
LabelPositions = NDArray[np.intp]

POINT = "point"
"""Method of `test: "none"`: the gate compares the values themselves."""
CLASSES_DIFFER = REASONS.index("classes_differ")


@dataclass(frozen=True, eq=False)
class GateCandidate:
    """The candidate of a gate.

    Parameters
    ----------
    side, comparison, options
        The arguments of `run_gate`.
    indices
        Keys of all rules.
    level
        One-sided, of every limit.
    """

    side: Side
    comparison: Comparison | None
    options: Options
    indices: tuple[str, ...]
    level: float

    @cached_property
    def values(self) -> Values:
        """The indices of the rules; undefined values stay undefined."""
        options = replace(self.options, indices=self.indices, undefined="null")
        return compute(self.side.table, options, select(options), self.side.scores)

    def observed(self, rule: Rule) -> FloatArray:
        """Values of one index, shape (k,) per class and (1,) overall; NaN where undefined."""
        values = np.atleast_1d(self.values.lookup(rule.scope, rule.index))
        return np.where(np.isfinite(values), values, np.nan)

    @property
    def items(self) -> FloatArray:
        """Items of each class, shape (k,)."""
        return np.asarray(self.values.table.support)

    def positions(self, labels: ResultLabels) -> LabelPositions:
        """Positions of these classes among the candidate's, -1 where it lacks the class."""
        return positions_of(labels, self.side.labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class RuleEvidence:
    """The evidence on the m results of one rule; arrays of shape (m,), NaN where unknown.

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
    labels: ResultLabels
    tests: RuleTests
    observed: FloatArray
    baseline: FloatArray
    delta: FloatArray
    lower: FloatArray
    upper: FloatArray
    items: FloatArray
    detectable: FloatArray
    methods: tuple[str | None, ...]
    pairings: tuple[Pairing | None, ...]
    reasons: tuple[str, ...]


def gather_evidence(rule: Rule, candidate: GateCandidate) -> RuleEvidence:
    """Gather the evidence on a rule."""
    known = candidate.side.labels
    if not rule.compares:
        return _value_evidence(rule, candidate, labels_of(rule, known))
    if candidate.comparison is None:
        return _no_baseline_evidence(rule, candidate, labels_of(rule, known))
    known = tuple(label for label in known if label not in candidate.comparison.without_items)
    labels = labels_of(rule, known + candidate.comparison.baseline_only)
    return _difference_evidence(rule, candidate, labels, candidate.comparison)


def labels_of(rule: Rule, known: tuple[str, ...]) -> ResultLabels:
    """Return the classes of a rule; one None for an overall index."""
    if rule.classes is None:
        return (None,)
    return known if rule.classes == "all" else rule.classes


def _value_evidence(rule: Rule, candidate: GateCandidate, labels: ResultLabels) -> RuleEvidence:
    """Test the candidate's own values against a lower or upper bound."""
    known = estimate(candidate.values, rule.entry, candidate.side.items)
    positions = candidate.positions(labels)
    lower, upper = known.limits(candidate.level)
    blank = np.full(len(labels), np.nan)
    methods = (*known.methods, None)
    reasons = (*known.reasons, "class_missing")
    return RuleEvidence(
        rule=rule,
        labels=labels,
        tests=take_tests(RuleTests.of(rule, known), positions),
        observed=take_or_nan(known.value, positions),
        baseline=blank,
        delta=blank,
        lower=_interval(rule, lower, positions),
        upper=_interval(rule, upper, positions),
        items=take_or_nan(known.items, positions),
        detectable=take_or_nan(known.detectable(candidate.level), positions),
        methods=tuple(_method(rule, methods[i]) for i in positions),
        pairings=(None,) * len(labels),
        reasons=tuple(reasons[i] for i in positions),
    )


def _no_baseline_evidence(
    rule: Rule, candidate: GateCandidate, labels: ResultLabels
) -> RuleEvidence:
    """Return `no_baseline` for the candidate's classes, `class_missing` for others."""
    positions = candidate.positions(labels)
    tests = RuleTests.without_evidence(len(candidate.side.labels), VerdictCode.no_baseline)
    blank = np.full(len(labels), np.nan)
    return RuleEvidence(
        rule=rule,
        labels=labels,
        tests=take_tests(tests, positions),
        observed=take_or_nan(candidate.observed(rule), positions),
        baseline=blank,
        delta=blank,
        lower=blank,
        upper=blank,
        items=_items(rule, candidate, positions),
        detectable=blank,
        methods=(None,) * len(labels),
        pairings=(None,) * len(labels),
        reasons=tuple("class_missing" if i < 0 else "no_baseline" for i in positions),
    )


def _difference_evidence(
    rule: Rule, candidate: GateCandidate, labels: ResultLabels, comparison: Comparison
) -> RuleEvidence:
    """Test the difference from the baseline against the largest one allowed."""
    known, positions = _difference(rule, labels, comparison)
    lower, upper = known.limits(candidate.level)
    comparable = comparison.comparability != "different"
    methods = (*(METHODS[code] or None for code in known.methods), None)
    reasons = (*(_reason(known, i, comparable=comparable) for i in range(len(known.value))), "")
    return RuleEvidence(
        rule=rule,
        labels=labels,
        tests=take_tests(difference_tests(rule, known, comparable=comparable), positions),
        observed=take_or_nan(candidate.observed(rule), candidate.positions(labels)),
        baseline=take_or_nan(known.baseline, positions),
        delta=take_or_nan(known.value, positions),
        lower=_interval(rule, lower, positions),
        upper=_interval(rule, upper, positions),
        items=_items(rule, candidate, candidate.positions(labels)),
        detectable=take_or_nan(_detectable(rule, known, candidate.level), positions),
        methods=tuple(_method(rule, methods[i]) for i in positions),
        pairings=tuple(None if i < 0 else comparison.pairing for i in positions),
        reasons=tuple(
            reasons[i] or _missing_class(label, comparison) if i < 0 else reasons[i]
            for i, label in zip(positions, labels, strict=True)
        ),
    )


def _difference(
    rule: Rule, labels: ResultLabels, comparison: Comparison
) -> tuple[Difference, LabelPositions]:
    """Return the differences of the index, and the position of each label among them."""
    if rule.classes is None:
        return comparison.of_overall(rule.index)[np.newaxis], np.zeros(1, dtype=np.intp)
    return comparison.of_classes(rule.index), positions_of(labels, comparison.classes)


def difference_tests(rule: Rule, known: Difference, *, comparable: bool = True) -> RuleTests:
    """Test a difference of shape (..., m) against a rule.

    A value that only the candidate lacks is `undefined`; a value that the baseline lacks too is
    no evidence.
    """
    tests = RuleTests.of(rule, known)
    if not comparable:
        return replace(tests, fixed=np.full_like(tests.fixed, VerdictCode.not_comparable))
    missing = ~np.isfinite(known.value) | known.undefined
    undefined_before = np.isnan(known.baseline) & ~known.undefined
    code = np.where(undefined_before, VerdictCode.inconclusive, VerdictCode.undefined)
    fixed = np.where(missing, code, VerdictCode.undecided)
    differ = known.reasons == CLASSES_DIFFER
    fixed = np.where(differ, VerdictCode.not_comparable, fixed)
    return replace(tests, fixed=fixed.astype(np.uint8))


def _reason(known: Difference, position: int, *, comparable: bool) -> str:
    return REASONS[int(known.reasons[position])] if comparable else "different_test_sets"


def _missing_class(label: str | None, comparison: Comparison) -> str:
    here = label in comparison.candidate_only
    return "class_missing_in_baseline" if here else "class_missing"


def _detectable(rule: Rule, known: Difference, level: float) -> FloatArray:
    """Return the smallest detectable change in the direction of the rule."""
    mirrored = replace(known, gains=known.losses, losses=known.gains)
    toward = known if rule.guards_below else mirrored
    return toward.detectable_drop(level, min(rule.limit, 1.0))


def _items(rule: Rule, candidate: GateCandidate, positions: LabelPositions) -> FloatArray:
    items = candidate.items
    return take_or_nan(items if rule.scope == "class" else items.sum(keepdims=True), positions)


def _method(rule: Rule, method: str | None) -> str | None:
    return POINT if rule.test == "none" else method


def _interval(rule: Rule, limits: FloatArray, positions: LabelPositions) -> FloatArray:
    limits = take_or_nan(limits, positions)
    return np.full_like(limits, np.nan) if rule.test == "none" else limits


def positions_of(labels: ResultLabels, known: Sequence[str]) -> LabelPositions:
    """Return positions among the known classes, -1 where unknown; 0 for an overall index."""
    number: dict[str | None, int] = {name: i for i, name in enumerate(known)}
    number[None] = 0
    return np.array([number.get(label, -1) for label in labels], dtype=np.intp)


def take_or_nan(values: FloatArray, positions: LabelPositions) -> FloatArray:
    """Take (..., n) values at the positions; NaN at position -1."""
    blank = np.full((*values.shape[:-1], 1), np.nan)
    return np.asarray(np.concatenate([values, blank], axis=-1)[..., positions])


def take_tests(tests: RuleTests, positions: LabelPositions) -> RuleTests:
    """Take tests of shape (..., n) at the positions; `not_comparable` at position -1."""
    blank = np.full((*tests.fixed.shape[:-1], 1), VerdictCode.not_comparable)
    fixed = np.concatenate([tests.fixed, blank], axis=-1)[..., positions]
    return RuleTests(
        take_or_nan(tests.point, positions),
        take_or_nan(tests.p_fail, positions),
        take_or_nan(tests.p_pass, positions),
        fixed.astype(np.uint8),
    )
