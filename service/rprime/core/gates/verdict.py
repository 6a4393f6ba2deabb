"""Verdicts of results and of the gate, from the tests of the rules; all on stacks."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import FloatArray
from rprime.core.gates.multiplicity import holm
from rprime.core.gates.rules import Effect, Gate, OpenVerdict, Rule

Codes = NDArray[np.uint8]

ROUNDING = 1e-12
"""A point value this close to its limit equals it: .9 - .85 is not quite .05 in binary."""


class VerdictCode(IntEnum):
    """The verdict on one result; the names are those of the contract.

    `undecided` is not in the contract: the tests still have to decide.
    """

    passed = 0
    fail = 1
    inconclusive = 2
    no_baseline = 3
    not_comparable = 4
    undefined = 5
    waived = 6
    undecided = 255


class GateVerdictCode(IntEnum):
    """The verdict of a gate with rules; the names are those of the contract."""

    passed = 0
    fail = 1
    inconclusive = 2


EFFECTS: tuple[Effect, ...] = ("pass", "warn", "fail")


class Statistic(Protocol):
    """A value with p-values against thresholds."""

    @property
    def value(self) -> FloatArray:
        """The number itself, NaN where undefined."""
        ...

    def p_below(self, threshold: float) -> FloatArray:
        """Smallest level at which the upper limit is below the threshold."""
        ...

    def p_above(self, threshold: float) -> FloatArray:
        """Smallest level at which the lower limit is above the threshold."""
        ...


@dataclass(frozen=True, eq=False)
class RuleTests:
    """The tests of m results; every array of shape (..., m).

    Parameters
    ----------
    point
        The value or difference that the rule bounds; NaN where undefined.
    p_fail, p_pass
        Smallest level at which it demonstrably violates, or keeps, the rule; NaN without a
        test.
    fixed
        Codes of `VerdictCode` where no test decides the verdict, else `undecided`.
    """

    point: FloatArray
    p_fail: FloatArray
    p_pass: FloatArray
    fixed: Codes

    @classmethod
    def of(cls, rule: Rule, statistic: Statistic) -> Self:
        """Test a statistic of shape (..., m) against a rule."""
        below, above = statistic.p_below(rule.threshold), statistic.p_above(rule.threshold)
        p_fail, p_pass = (below, above) if rule.guards_below else (above, below)
        fixed = np.full(statistic.value.shape, VerdictCode.undecided, dtype=np.uint8)
        fixed[~np.isfinite(statistic.value)] = VerdictCode.undefined
        return cls(statistic.value, p_fail, p_pass, fixed)

    @classmethod
    def without_evidence(cls, count: int, verdict: VerdictCode) -> Self:
        """Return one fixed verdict for `count` results without evidence."""
        blank = np.full(count, np.nan)
        return cls(blank, blank, blank, np.full(count, verdict, dtype=np.uint8))

    @classmethod
    def join(cls, parts: list[Self]) -> Self:
        """Concatenate the tests of several rules."""
        return cls(
            *(
                np.concatenate([getattr(part, name) for part in parts], axis=-1)
                for name in cls.__dataclass_fields__
            )
        )


@dataclass(frozen=True, eq=False)
class Plan:
    """The rules behind m results, as arrays of shape (m,).

    Parameters
    ----------
    rules
        The rule of each result.
    labels
        The class of each result, None for an overall one.
    """

    gate: Gate
    rules: tuple[Rule, ...]
    labels: tuple[str | None, ...]

    @property
    def threshold(self) -> FloatArray:
        """A result beyond it fails."""
        return np.array([rule.threshold for rule in self.rules])

    @property
    def guards_below(self) -> NDArray[np.bool_]:
        """Whether numbers below the threshold fail."""
        return np.array([rule.guards_below for rule in self.rules], dtype=bool)

    @property
    def tested(self) -> NDArray[np.bool_]:
        """Whether a test decides the verdict, not the point value alone."""
        return np.array([rule.test == "auto" for rule in self.rules], dtype=bool)

    @property
    def mandatory(self) -> NDArray[np.bool_]:
        """Whether the result must pass for the gate to pass."""
        return np.array([rule.mandatory for rule in self.rules], dtype=bool)

    @property
    def advisory(self) -> NDArray[np.bool_]:
        """Whether the result can at most warn."""
        return np.array([rule.severity == "warn" for rule in self.rules], dtype=bool)


@dataclass(frozen=True, eq=False)
class Decisions:
    """The verdicts on m results; arrays of shape (..., m).

    Parameters
    ----------
    verdicts
        Codes of `VerdictCode`.
    p_value, p_adjusted
        Of the failure, and adjusted over all results that could fail; NaN without a test.
    assessed
        Whether a test, or the comparison of point values that the rule asks for, decided.
    """

    verdicts: Codes
    p_value: FloatArray
    p_adjusted: FloatArray
    assessed: NDArray[np.bool_]


def decide(tests: RuleTests, plan: Plan, level: float) -> Decisions:
    """Decide the verdict of every result, before waivers.

    Parameters
    ----------
    tests
        Arrays of shape (..., m).
    plan
        Of the m results.
    level
        One-sided, of this look.

    Notes
    -----
    Fail needs the p-value adjusted over all tested results below the level (Holm 1979), pass
    the limit alone: that every mandatory result must pass is an intersection-union test, which
    needs no adjustment (Schultzberg et al. 2024). A missing number satisfies no comparison, so
    a missing value cannot pass.
    """
    undecided = tests.fixed == VerdictCode.undecided
    by_test = undecided & plan.tested
    p_value = np.where(by_test, tests.p_fail, np.nan)
    p_adjusted = holm(p_value)
    tested = np.where(
        p_adjusted < level,
        VerdictCode.fail,
        np.where(
            (tests.p_pass < level) & ~np.isnan(p_value),
            VerdictCode.passed,
            VerdictCode.inconclusive,
        ),
    )
    plain = np.where(_keeps(tests.point, plan), VerdictCode.passed, VerdictCode.fail)
    verdicts = np.where(plan.tested, tested, plain)
    verdicts = np.where(undecided, verdicts, tests.fixed).astype(np.uint8)
    assessed = undecided & (~plan.tested | ~np.isnan(p_value))
    return Decisions(verdicts, p_value, p_adjusted, assessed)


def _keeps(point: FloatArray, plan: Plan) -> NDArray[np.bool_]:
    slack = ROUNDING * np.maximum(1.0, np.abs(plan.threshold))
    margin = np.where(plan.guards_below, point - plan.threshold, plan.threshold - point)
    return np.asarray(margin >= -slack)


def effects(verdicts: Codes, plan: Plan) -> Codes:
    """Return the effect of each verdict, as positions in `EFFECTS`, shape (..., m)."""
    given = plan.gate.effects
    codes: dict[OpenVerdict, VerdictCode] = {name: VerdictCode[name] for name in given}
    table = np.zeros(VerdictCode.undecided, dtype=np.uint8)
    table[VerdictCode.fail] = EFFECTS.index("fail")
    table[VerdictCode.waived] = EFFECTS.index("warn")
    for name, code in codes.items():
        table[code] = EFFECTS.index(given[name])
    return np.where(plan.advisory, np.minimum(table[verdicts], 1), table[verdicts])


def conclude(decisions: Decisions, effect: Codes, plan: Plan) -> NDArray[np.intp]:
    """Return the verdict of the gate, as codes of `GateVerdictCode` of shape (...).

    Parameters
    ----------
    decisions
        Before or after waivers.
    effect
        From `effects`.

    Notes
    -----
    A result under `not_fail` need not pass, but it must have been assessed: a result that is
    not comparable or undefined keeps the gate from passing, and so does a rule without any
    testable result. An advisory rule never keeps the gate from passing.
    """
    verdicts = decisions.verdicts
    passes = (verdicts == VerdictCode.passed) | (
        (effect == EFFECTS.index("pass")) & (verdicts == VerdictCode.inconclusive)
    )
    answered = np.isin(
        verdicts,
        (VerdictCode.passed, VerdictCode.fail, VerdictCode.inconclusive, VerdictCode.waived),
    )
    enough = np.where(plan.mandatory, passes, answered | plan.advisory)
    passed = enough.all(-1) & _every_rule_assessed(decisions.assessed | passes, plan)
    failed = (effect == EFFECTS.index("fail")).any(-1)
    return np.where(
        failed,
        GateVerdictCode.fail,
        np.where(passed, GateVerdictCode.passed, GateVerdictCode.inconclusive),
    )


def _every_rule_assessed(assessed: NDArray[np.bool_], plan: Plan) -> NDArray[np.bool_]:
    """Whether each rule, except advisory ones, assessed at least one of its results."""
    enough = assessed | plan.advisory
    starts = [i for i, rule in enumerate(plan.rules) if i == 0 or rule is not plan.rules[i - 1]]
    return np.asarray(np.logical_or.reduceat(enough, starts, axis=-1).all(-1))
