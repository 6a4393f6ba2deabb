"""The evidence on each result of a rule, from an evaluation and its comparisons."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import FloatArray
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison, Pairing, compare
from rprime.core.comparison.difference import METHODS, REASONS, Difference
from rprime.core.gates.estimate import Estimate
from rprime.core.gates.rules import Rule
from rprime.core.gates.targets import ResultLabels
from rprime.core.gates.verdict import Against, RuleTests, VerdictCode
from rprime.core.intervals.proportions import one_sided_quantile
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.values import Values, compute

LabelPositions = NDArray[np.intp]

POINT = "point"
"""Method of `test: "none"`: the gate compares the values themselves."""
CLASSES_DIFFER = REASONS.index("classes_differ")
POWER = 0.8


@dataclass(frozen=True, eq=False, kw_only=True)
class RuleEvidence:
    """The evidence on the m results of one rule; arrays of shape (m,), NaN where unknown.

    Parameters
    ----------
    against
        What the differences are from; None for values.
    labels
        Classes; one None for a single number.
    left_out
        Classes of the rule that have too few items, or none.
    tests
        Of the m results.
    observed, baseline, delta, items
        As in `Result`.
    lower, upper
        The one-sided limits; NaN where points are compared.
    methods, pairings, reasons
        Of each result; a reason is empty where the evidence decides.
    """

    rule: Rule
    against: Against | None
    labels: ResultLabels
    left_out: tuple[str, ...]
    tests: RuleTests
    observed: FloatArray
    baseline: FloatArray
    delta: FloatArray
    lower: FloatArray
    upper: FloatArray
    items: FloatArray
    methods: tuple[str | None, ...]
    pairings: tuple[Pairing | None, ...]
    reasons: tuple[str, ...]

    def told_apart(self, level: float, own: float) -> FloatArray:
        """Return the distance from a threshold that is found with power .8, to first order.

        Parameters
        ----------
        level
            Of the limits.
        own
            Level of the test.
        """
        error = (self.upper - self.lower) / (2 * one_sided_quantile(level))
        return np.asarray((one_sided_quantile(own) + one_sided_quantile(1 - POWER)) * error)

    def detectable(self, level: float, together: int) -> FloatArray:
        """Return the true drop that the rule fails with power .8; a rise for an upper bound.

        Parameters
        ----------
        level
            Of the limits.
        together
            How many results are tested together: the p-value of the only one that got worse must
            pass Holm's first step among them.

        Returns
        -------
        NaN where no possible change is found so often.

        Notes
        -----
        The variance is that of an unchanged model, plus (d - d^2) / n for a drop d of a share
        among n items, which comes as d n losses on top. The same model is behind the lint.
        """
        own, rule = level / max(together, 1), self.rule
        needed = self.told_apart(level, own)
        if not rule.compares:
            distance = self.observed - rule.limit
            return np.maximum(distance if rule.guards_below else -distance, 0.0) + needed
        found = np.maximum(needed - rule.threshold if rule.guards_below else needed + rule.limit, 0)
        if rule.knows_suspects:
            quantile = float(one_sided_quantile(own) + one_sided_quantile(1 - POWER))
            unit = quantile**2 / self.items
            changed = np.abs(self.delta) * (1 - np.abs(self.delta))
            unchanged = np.maximum((found - rule.limit) ** 2 - unit * changed, 0.0)
            found = np.fmax(found, _drop_of_share(rule.limit, unchanged, unit))
        low, high = rule.target.range
        room = self.baseline - low if rule.guards_below else high - self.baseline
        return np.where(found <= room, found, np.nan)


def _drop_of_share(limit: float, unchanged: FloatArray, unit: FloatArray) -> FloatArray:
    """Solve d = limit + sqrt(unchanged + unit (d - d^2)) for d; NaN without a solution."""
    half = limit + unit / 2
    with np.errstate(invalid="ignore"):
        root = np.sqrt(half**2 - (1 + unit) * (limit**2 - unchanged))
    return np.asarray((half + root) / (1 + unit))


@dataclass(frozen=True)
class Rows:
    """The results of a rule among the rows of its evidence.

    Parameters
    ----------
    labels
        Of the results.
    positions
        Row of each result, -1 where there is none.
    left_out
        Classes that the rule leaves out: they have too few items.
    """

    labels: ResultLabels
    positions: LabelPositions
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        rule: Rule,
        known: tuple[str, ...],
        items: FloatArray,
        others: tuple[str, ...] = (),
    ) -> "Rows":
        """Choose the classes that a rule is about; "all" means those with items.

        Parameters
        ----------
        known
            The classes that have a row each.
        items
            Of each row.
        others
            Further classes, which "all" leaves out.
        """
        if rule.classes is None:
            exists = items.size > 0 and items[0] > 0
            return cls((None,), np.array([0 if exists else -1], dtype=np.intp))
        count = dict(zip(known, items.tolist(), strict=True))
        everything = rule.classes == "all"
        wanted = known if everything else rule.classes
        out = {n for n in wanted if everything or count.get(n)}
        out = {name for name in out if count[name] < max(rule.min_items, everything)}
        kept: ResultLabels = tuple(name for name in wanted if name not in out) or (None,)
        with_items = tuple(name if count[name] else None for name in known)
        left_out = tuple(name for name in wanted if name in out)
        return cls(kept, positions_of(kept, with_items), left_out + (others if everything else ()))

    def without(self, labels: tuple[str, ...], few: tuple[int, ...]) -> "Rows":
        """Name the classes that an average leaves out; without any left there is no row."""
        if not few:
            return self
        names = tuple(labels[i] for i in few)
        positions = self.positions if len(few) < len(labels) else np.full_like(self.positions, -1)
        return replace(self, positions=positions, left_out=names)

    def each(self, of_rows: Sequence[str], absent: Callable[[str | None], str]) -> tuple[str, ...]:
        """Return the word for each result."""
        return tuple(
            of_rows[i] if i >= 0 else absent(label)
            for i, label in zip(self.positions, self.labels, strict=True)
        )

    def evidence(
        self,
        rule: Rule,
        tests: RuleTests,
        *,
        numbers: Mapping[str, FloatArray],
        reasons: tuple[str, ...],
        limits: tuple[FloatArray, FloatArray] | None = None,
        methods: Sequence[str | None] | None = None,
        against: Against | None = None,
        pairing: Pairing | None = None,
    ) -> RuleEvidence:
        """Take the evidence of the results from that of all rows."""
        blank = np.full(len(self.labels), np.nan)
        known = {name: take_or_nan(values, self.positions) for name, values in numbers.items()}
        ends = [blank, blank]
        if limits is not None and rule.test == "auto":
            ends = [take_or_nan(end, self.positions) for end in limits]
        found = (None,) * len(tests.fixed) if methods is None else methods
        if methods is not None and rule.test == "none":
            found = (POINT,) * len(methods)
        there = self.positions >= 0
        return RuleEvidence(
            rule=rule,
            against=against,
            labels=self.labels,
            left_out=self.left_out,
            tests=take_tests(tests, self.positions),
            observed=known["observed"],
            baseline=known.get("baseline", blank),
            delta=known.get("delta", blank),
            lower=ends[0],
            upper=ends[1],
            items=known["items"],
            methods=tuple(found[i] if i >= 0 else None for i in self.positions),
            pairings=tuple(pairing if exists else None for exists in there),
            reasons=reasons,
        )


@dataclass(frozen=True, eq=False)
class GateCandidate:
    """The candidate of a gate, and what it is held against.

    Parameters
    ----------
    side, options
        The arguments of `run_gate`.
    comparisons
        With the baseline and, if it was requested, the anchor; None where there is none.
    indices
        Keys of all rules.
    level
        One-sided, of every limit.
    """

    side: Side
    comparisons: dict[Against, Comparison | None]
    options: Options
    indices: tuple[str, ...]
    level: float

    @cached_property
    def values(self) -> Values:
        """The indices of the rules; undefined values stay undefined."""
        options = replace(self.options, indices=self.indices, undefined="null")
        return compute(self.side.table, options, select(options), self.side.scores)

    def estimate(self, rule: Rule) -> tuple[Estimate, Rows]:
        """Return the values that the rule bounds, and the rows that it is about."""
        few, values = small_classes(rule, self.side), self.values
        if few:
            values = replace(values, options=replace(values.options, left_out=few))
        known = rule.target.estimate(self.side, values)
        return known, Rows.of(rule, self.side.labels, known.items).without(self.side.labels, few)

    def difference(self, rule: Rule, comparison: Comparison) -> tuple[Difference, Rows]:
        """Return the differences that the rule bounds, and the rows that it is about."""
        few = small_classes(rule, *comparison.sides)
        if few:
            comparison = self._without(rule, comparison, few)
        known = rule.target.difference(comparison)
        rows = Rows.of(rule, comparison.classes, known.items, _uncompared(comparison))
        return known, rows.without(comparison.sides[0].labels, few)

    def _without(self, rule: Rule, comparison: Comparison, few: tuple[int, ...]) -> Comparison:
        """Compare again, with classes left out of averages."""
        factors, sides = self.options.cell_weights, comparison.sides
        if factors is not None:  # they are of the candidate's own classes, the sides of all
            more = len(sides[0].labels) - len(factors)
            factors = np.pad(factors, ((0, more), (0, more)), constant_values=1.0)
        options = replace(
            self.options,
            indices=rule.target.keys,
            left_out=few,
            cell_weights=factors,
            cost=None,
            kappa_weights=None,
        )
        return compare(*sides, options, attributed=())


def gather_evidence(rule: Rule, candidate: GateCandidate) -> Iterator[RuleEvidence]:
    """Gather the evidence on a rule: on its values, or on each difference."""
    if not rule.compares:
        yield _value_evidence(rule, candidate)
        return
    for against, comparison in candidate.comparisons.items():
        if comparison is None:
            yield _no_baseline_evidence(rule, candidate, against)
        else:
            yield _difference_evidence(rule, candidate, against, comparison)


def _value_evidence(rule: Rule, candidate: GateCandidate) -> RuleEvidence:
    """Test the candidate's own values against a lower or upper bound."""
    known, rows = candidate.estimate(rule)
    return rows.evidence(
        rule,
        RuleTests.of(rule, known),
        numbers={"observed": known.value, "items": known.items},
        limits=known.limits(candidate.level),
        methods=known.methods,
        reasons=rows.each(known.reasons, lambda label: _absent(rule, label, candidate.side.labels)),
    )


def _no_baseline_evidence(rule: Rule, candidate: GateCandidate, against: Against) -> RuleEvidence:
    """Return `no_baseline` for the candidate's classes, `not_comparable` for others."""
    known, rows = candidate.estimate(rule)
    count = len(known.value)
    return rows.evidence(
        rule,
        RuleTests.without_evidence(count, VerdictCode.no_baseline),
        against=against,
        numbers={"observed": known.value, "items": known.items},
        reasons=rows.each(
            ("no_baseline",) * count, lambda label: _absent(rule, label, candidate.side.labels)
        ),
    )


def _difference_evidence(
    rule: Rule, candidate: GateCandidate, against: Against, comparison: Comparison
) -> RuleEvidence:
    """Test the difference from a baseline against the largest one allowed."""
    known, rows = candidate.difference(rule, comparison)
    comparable = comparison.comparability != "different"
    reasons = tuple(
        REASONS[int(code)] if comparable else "different_test_sets" for code in known.reasons
    )
    return rows.evidence(
        rule,
        difference_tests(rule, known, comparable=comparable),
        against=against,
        pairing=comparison.pairing,
        numbers={
            "observed": known.candidate,
            "baseline": known.baseline,
            "delta": known.value,
            "items": known.items,
        },
        limits=known.limits(candidate.level),
        methods=tuple(METHODS[code] or None for code in known.methods),
        reasons=rows.each(reasons, lambda label: _missing_class(rule, label, comparison)),
    )


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


def small_classes(rule: Rule, *sides: Side) -> tuple[int, ...]:
    """Return the positions of the classes that an average leaves out: few items on some side."""
    if not rule.min_items or rule.classes is not None:
        return ()
    items = np.minimum.reduce([side.table.support for side in sides])
    return tuple(np.flatnonzero(items < rule.min_items).tolist())


def _absent(rule: Rule, label: str | None, declared: tuple[str, ...]) -> str:
    if label is not None:
        return "no_items" if label in declared else "class_missing"
    if rule.classes is not None or rule.min_items:
        return "no_class"
    return "class_missing" if rule.target.lacks(declared) else "no_items"


def _uncompared(comparison: Comparison) -> tuple[str, ...]:
    return comparison.without_items + comparison.candidate_only + comparison.baseline_only


def _missing_class(rule: Rule, label: str | None, comparison: Comparison) -> str:
    both = set(comparison.sides[0].labels) - {*comparison.candidate_only, *comparison.baseline_only}
    if label in comparison.candidate_only:
        return "class_missing_in_baseline"
    return _absent(rule, label, tuple(both))


def positions_of(labels: ResultLabels, known: Sequence[str | None]) -> LabelPositions:
    """Return the positions of classes among the known ones, -1 where unknown."""
    number = {name: i for i, name in enumerate(known) if name is not None}
    return np.array(
        [-1 if label is None else number.get(label, -1) for label in labels], dtype=np.intp
    )


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
        lambda: take_or_nan(tests.p_worse(), positions),
    )
