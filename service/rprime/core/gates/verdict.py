"""Verdicts: from evidence to the verdict of every result and of the gate, on stacks."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rprime.core.gates.multiplicity import holm
from rprime.core.gates.rules import Effect, Gate, Open, Rule

Array = NDArray[np.float64]
Codes = NDArray[np.uint8]

ROUNDING = 1e-12
"""A point value this close to its limit is on it: .9 - .85 is not quite .05 in binary."""


class Finding(IntEnum):
    """What was found about one result; the names are those of the contract.

    `unsettled` is none of them: the evidence is still to decide.
    """

    passed = 0
    fail = 1
    inconclusive = 2
    no_baseline = 3
    not_comparable = 4
    undefined = 5
    waived = 6
    unsettled = 255


class Outcome(IntEnum):
    """What a gate with rules ends as; the names are those of the contract."""

    passed = 0
    fail = 1
    inconclusive = 2


EFFECTS: tuple[Effect, ...] = ("pass", "warn", "fail")


class Evidence(Protocol):
    """What is known of a number: its value, and how surely it is beyond a threshold."""

    @property
    def value(self) -> Array:
        """The number itself, NaN where undefined."""
        ...

    def p_below(self, threshold: float) -> Array:
        """Smallest level at which the upper limit is below the threshold."""
        ...

    def p_above(self, threshold: float) -> Array:
        """Smallest level at which the lower limit is above the threshold."""
        ...


@dataclass(frozen=True, eq=False)
class Facts:
    """What the verdicts rest on, for m results; every array of shape (..., m).

    Parameters
    ----------
    point
        The value or difference that a rule is about; NaN where undefined.
    p_fail, p_pass
        Smallest level at which it demonstrably violates, or keeps, the rule; NaN where no test
        could be made.
    settled
        Codes of `Finding` where the verdict does not depend on the evidence, else `unsettled`.
    """

    point: Array
    p_fail: Array
    p_pass: Array
    settled: Codes

    @classmethod
    def of(cls, rule: Rule, evidence: Evidence) -> Self:
        """Hold evidence against a rule; `evidence` of shape (..., m)."""
        below, above = evidence.p_below(rule.threshold), evidence.p_above(rule.threshold)
        p_fail, p_pass = (below, above) if rule.guards_below else (above, below)
        settled = np.full(evidence.value.shape, Finding.unsettled, dtype=np.uint8)
        settled[~np.isfinite(evidence.value)] = Finding.undefined
        return cls(evidence.value, p_fail, p_pass, settled)

    @classmethod
    def without_evidence(cls, count: int, finding: Finding) -> Self:
        """State one verdict for `count` results of which nothing is known."""
        nothing = np.full(count, np.nan)
        return cls(nothing, nothing, nothing, np.full(count, finding, dtype=np.uint8))

    @classmethod
    def join(cls, parts: list[Self]) -> Self:
        """Put the results of several rules side by side."""
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
    def threshold(self) -> Array:
        """Beyond which a result fails."""
        return np.array([rule.threshold for rule in self.rules])

    @property
    def guards_below(self) -> NDArray[np.bool_]:
        """Whether numbers below the threshold fail."""
        return np.array([rule.guards_below for rule in self.rules], dtype=bool)

    @property
    def tested(self) -> NDArray[np.bool_]:
        """Whether a verdict needs evidence, not the point value alone."""
        return np.array([rule.test == "auto" for rule in self.rules], dtype=bool)

    @property
    def mandatory(self) -> NDArray[np.bool_]:
        """Whether the gate passes only where the result does."""
        return np.array([rule.mandatory for rule in self.rules], dtype=bool)

    @property
    def advisory(self) -> NDArray[np.bool_]:
        """Whether the result can warn at most."""
        return np.array([rule.severity == "warn" for rule in self.rules], dtype=bool)


@dataclass(frozen=True, eq=False)
class Judgement:
    """The verdicts on m results; arrays of shape (..., m).

    Parameters
    ----------
    findings
        Codes of `Finding`.
    p_value, p_adjusted
        Of the failure, and adjusted over all results that could fail; NaN without a test.
    seen
        Whether the verdict rests on a test or on a plain comparison that was asked for.
    """

    findings: Codes
    p_value: Array
    p_adjusted: Array
    seen: NDArray[np.bool_]


def decide(facts: Facts, plan: Plan, level: float) -> Judgement:
    """Find the verdict of every result, waivers aside.

    Parameters
    ----------
    facts
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
    that nothing which is not there can pass.
    """
    undecided = facts.settled == Finding.unsettled
    by_test = undecided & plan.tested
    p_value = np.where(by_test, facts.p_fail, np.nan)
    p_adjusted = holm(p_value)
    tested = np.where(
        p_adjusted < level,
        Finding.fail,
        np.where((facts.p_pass < level) & ~np.isnan(p_value), Finding.passed, Finding.inconclusive),
    )
    plain = np.where(_keeps(facts.point, plan), Finding.passed, Finding.fail)
    findings = np.where(plan.tested, tested, plain)
    findings = np.where(undecided, findings, facts.settled).astype(np.uint8)
    seen = undecided & (~plan.tested | ~np.isnan(p_value))
    return Judgement(findings, p_value, p_adjusted, seen)


def _keeps(point: Array, plan: Plan) -> NDArray[np.bool_]:
    slack = ROUNDING * np.maximum(1.0, np.abs(plan.threshold))
    margin = np.where(plan.guards_below, point - plan.threshold, plan.threshold - point)
    return np.asarray(margin >= -slack)


def effects(findings: Codes, plan: Plan) -> Codes:
    """Give the effect of each verdict, as positions in `EFFECTS`, shape (..., m)."""
    given = plan.gate.effects
    opens: dict[Open, Finding] = {name: Finding[name] for name in given}
    table = np.zeros(Finding.unsettled, dtype=np.uint8)
    table[Finding.fail] = EFFECTS.index("fail")
    table[Finding.waived] = EFFECTS.index("warn")
    for name, finding in opens.items():
        table[finding] = EFFECTS.index(given[name])
    return np.where(plan.advisory, np.minimum(table[findings], 1), table[findings])


def conclude(judgement: Judgement, effect: Codes, plan: Plan) -> NDArray[np.intp]:
    """Give the verdict of the gate, as codes of `Outcome` of shape (...).

    Parameters
    ----------
    judgement
        Its findings may have been waived.
    effect
        From `effects`.

    Notes
    -----
    A result under `not_fail` need not pass, but it must have been looked at: one that could not
    be compared or does not exist keeps the gate from passing, and so does a rule none of whose
    results could be tested. An advisory one does neither.
    """
    findings = judgement.findings
    passes = (findings == Finding.passed) | (
        (effect == EFFECTS.index("pass")) & (findings == Finding.inconclusive)
    )
    answered = np.isin(
        findings, (Finding.passed, Finding.fail, Finding.inconclusive, Finding.waived)
    )
    enough = np.where(plan.mandatory, passes, answered | plan.advisory)
    passed = enough.all(-1) & _every_rule_looked(judgement.seen | passes, plan)
    failed = (effect == EFFECTS.index("fail")).any(-1)
    return np.where(failed, Outcome.fail, np.where(passed, Outcome.passed, Outcome.inconclusive))


def _every_rule_looked(seen: NDArray[np.bool_], plan: Plan) -> NDArray[np.bool_]:
    """Whether each rule could test at least one of its results, advisory rules aside."""
    looked = seen | plan.advisory
    starts = [i for i, rule in enumerate(plan.rules) if i == 0 or rule is not plan.rules[i - 1]]
    return np.asarray(np.logical_or.reduceat(looked, starts, axis=-1).all(-1))
