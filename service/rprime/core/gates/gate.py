"""Run a gate: test its rules on an evaluation and its comparison, and return one verdict."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import get_args

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison
from rprime.core.gates.evidence import GateCandidate, RuleEvidence, gather_evidence
from rprime.core.gates.result import GateResult, GateVerdict, Result, Verdict
from rprime.core.gates.rules import Gate, Waiver, check_gate
from rprime.core.gates.sentences import number, sentence
from rprime.core.gates.verdict import (
    EFFECTS,
    Codes,
    Decisions,
    Plan,
    RuleTests,
    VerdictCode,
    conclude,
    decide,
    effects,
)
from rprime.core.options import Options
from rprime.core.warnings import Warning  # noqa: A004 (its name)

GATE_VERDICTS: tuple[GateVerdict, ...] = get_args(GateVerdict)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""In the order of the codes of `GateVerdictCode` and `VerdictCode`."""
REASONS = {
    VerdictCode.passed: "within_limit",
    VerdictCode.fail: "beyond_limit",
    VerdictCode.waived: "waived",
}


def run_gate(
    gate: Gate,
    candidate: Side,
    comparison: Comparison | None,
    options: Options,
    *,
    today: date,
    look: int = 1,
) -> GateResult:
    """Run a gate on a candidate.

    Parameters
    ----------
    gate
        The comparison must include its `indices`.
    candidate
        The side that is compared with the baseline, if there is one.
    comparison
        With the baseline; None without a baseline.
    options
        Of the evaluation. The gate ignores `undefined`: a replaced value must not decide.
    today
        The day for checking the expiry of waivers.
    look
        How many gates have looked at this test set, including this one.

    Raises
    ------
    RuleError
        If the catalog cannot answer a rule.
    """
    check_gate(gate, options)
    level, spent = gate.level(look), look if gate.looks == "spend" else None
    if not gate.rules:
        return GateResult(verdict="no_rules", alpha=level, look=spent, results=(), warnings=())
    side = GateCandidate(candidate, comparison, options, gate.indices, level)
    run = GateRun.of(gate, [gather_evidence(rule, side) for rule in gate.rules], level, today)
    return GateResult(
        verdict=GATE_VERDICTS[int(conclude(run.decisions, run.effects, run.plan))],
        alpha=level,
        look=spent,
        results=tuple(run.results()),
        warnings=tuple(run.warnings()),
    )


@dataclass(frozen=True, eq=False)
class GateRun:
    """The evidence on every rule of a gate, with the verdicts after waivers.

    Parameters
    ----------
    evidence
        One for each rule.
    decisions, effects
        Arrays of shape (m,), over the results of all rules in order.
    waivers
        The waiver for each result that would fail, in force or not.
    """

    plan: Plan
    evidence: list[RuleEvidence]
    tests: RuleTests
    decisions: Decisions
    effects: Codes
    waivers: tuple[Waiver | None, ...]
    level: float
    today: date

    @classmethod
    def of(cls, gate: Gate, evidence: list[RuleEvidence], level: float, today: date) -> "GateRun":
        """Decide every result, then apply the waivers."""
        plan = Plan(
            gate,
            tuple(e.rule for e in evidence for _ in e.labels),
            tuple(label for e in evidence for label in e.labels),
        )
        tests = RuleTests.join([e.tests for e in evidence])
        found = decide(tests, plan, level)
        waivers, verdicts = apply_waivers(found.verdicts, plan, tests.point, today)
        decisions = replace(found, verdicts=verdicts)
        return cls(plan, evidence, tests, decisions, effects(verdicts, plan), waivers, level, today)

    def results(self) -> Iterator[Result]:
        """Yield every result with its message."""
        place = 0
        together = int(np.count_nonzero(~np.isnan(self.decisions.p_value)))
        for part in self.evidence:
            for row in range(len(part.labels)):
                result = self._result(part, row, place)
                text = sentence(
                    result,
                    part.rule,
                    level=self.level,
                    together=together,
                    waiver=self.waivers[place],
                )
                yield replace(result, message=text)
                place += 1

    def _result(self, part: RuleEvidence, row: int, place: int) -> Result:
        return Result(
            rule=part.rule.name,
            index=part.rule.index,
            class_=part.labels[row],
            verdict=VERDICTS[self.decisions.verdicts[place]],
            effect=EFFECTS[self.effects[place]],
            observed=_known(part.observed[row]),
            baseline=_known(part.baseline[row]),
            delta=_known(part.delta[row]),
            kind=part.rule.kind,
            limit=part.rule.limit,
            interval=_interval(part.lower[row], part.upper[row]),
            p_value=_known(self.decisions.p_value[place]),
            p_adjusted=_known(self.decisions.p_adjusted[place]),
            method=part.methods[row],
            pairing=part.pairings[row],
            n=_count(part.items[row]),
            min_detectable_drop=_known(part.detectable[row]),
            reason=self._reason(part.reasons[row], place),
            message="",
        )

    def _reason(self, given: str, place: int) -> str:
        verdict = VerdictCode(self.decisions.verdicts[place])
        waiver = self.waivers[place]
        if verdict is not VerdictCode.waived and waiver is not None:
            return "waiver_expired" if self.today > waiver.expires else "waiver_exceeded"
        if verdict in REASONS:
            return REASONS[verdict]
        if given:
            return given
        alone = self.tests.p_fail[place] < self.level
        return "not_significant_together" if alone else "not_enough_items"

    def warnings(self) -> Iterator[Warning]:
        """Warn about rules whose limit is below the smallest detectable change."""
        place = 0
        for part in self.evidence:
            if warning := _underpowered(part, place):
                yield warning
            place += len(part.labels)


def apply_waivers(
    verdicts: Codes, plan: Plan, point: FloatArray, today: date
) -> tuple[tuple[Waiver | None, ...], Codes]:
    """Apply the waivers.

    A waiver applies to a demonstrated failure, and to an inconclusive result that would fail
    through `on`: otherwise more evidence of less harm would be worse. An undefined value is
    never within the ceiling.

    Returns
    -------
    The waiver for each of these results, in force or not, and the verdicts after it.
    """
    would_fail = effects(verdicts, plan) == EFFECTS.index("fail")
    inconclusive = verdicts == VerdictCode.inconclusive
    waivable = (verdicts == VerdictCode.fail) | (inconclusive & would_fail)
    waivers: list[Waiver | None] = [None] * len(verdicts)
    after = verdicts.copy()
    for i in np.flatnonzero(waivable) if plan.gate.waivers else ():
        rule, label = plan.rules[i], plan.labels[i]
        matching = [w for w in plan.gate.waivers if w.concerns(rule, label)]
        in_force = [w for w in matching if today <= w.expires and w.covers(rule, point[i])]
        waivers[i] = next(iter(in_force + matching), None)
        if in_force:
            after[i] = VerdictCode.waived
    return tuple(waivers), after


def _underpowered(part: RuleEvidence, start: int) -> Warning | None:
    """Warn if the test set is too small, so that an unchanged model often fails to pass."""
    rule = part.rule
    if not rule.compares or rule.test == "none":
        return None
    weak = np.flatnonzero(part.detectable > rule.limit)
    if not weak.size:
        return None
    worst = weak[np.argmax(part.detectable[weak])]
    where = "" if part.labels[worst] is None else f" for {weak.size} of {len(part.labels)} classes"
    named = "" if part.labels[worst] is None else f" (class `{part.labels[worst]}`)"
    detail = (
        f"Rule {rule.name} allows {number(rule.limit)}, but its items show only larger changes"
        f"{where}: from {number(part.detectable[worst])} on{named}. An unchanged model may fail "
        f"to pass this rule."
    )
    pointer = f"/gate/results/{start + int(worst)}/min_detectable_drop"
    return Warning(
        "underpowered", pointer, detail, "docs/gates.md#the-smallest-change-that-a-rule-sees"
    )


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _count(items: float) -> float | None:
    """Return a whole number of items as an integer."""
    if not np.isfinite(items):
        return None
    return int(items) if items == np.rint(items) else float(items)


def _interval(lower: float, upper: float) -> tuple[float, float] | None:
    return (float(lower), float(upper)) if np.isfinite(lower) and np.isfinite(upper) else None
