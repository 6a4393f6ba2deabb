"""gate: rules held against an evaluation and its comparison become results and one verdict."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import get_args

import numpy as np

from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison
from rprime.core.gates.exhibit import Case, Exhibit, exhibit
from rprime.core.gates.result import GateResult, GateVerdict, Result, Verdict
from rprime.core.gates.rules import Gate, Waiver, check_gate
from rprime.core.gates.sentences import number, sentence
from rprime.core.gates.verdict import (
    EFFECTS,
    Array,
    Codes,
    Facts,
    Finding,
    Judgement,
    Plan,
    conclude,
    decide,
    effects,
)
from rprime.core.options import Options
from rprime.core.warnings import Warning  # noqa: A004 (its name)

GATE_VERDICTS: tuple[GateVerdict, ...] = get_args(GateVerdict)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""In the order of the codes of `Outcome` and `Finding`."""
REASONS = {Finding.passed: "within_limit", Finding.fail: "beyond_limit", Finding.waived: "waived"}


def judge(
    gate: Gate,
    candidate: Side,
    comparison: Comparison | None,
    options: Options,
    *,
    today: date,
    look: int = 1,
) -> GateResult:
    """Judge a candidate.

    Parameters
    ----------
    gate
        Its `indices` must be among those that were compared.
    candidate
        The side that was, or would have been, compared.
    comparison
        With the baseline; None where there is none.
    options
        Of the evaluation. `undefined` is not used: a replaced value must not decide.
    today
        Against which waivers expire.
    look
        How often this test set has been looked at, this time included.

    Raises
    ------
    RuleError
        If the catalog cannot answer a rule.
    """
    check_gate(gate, options)
    level, told = gate.level(look), look if gate.looks == "spend" else None
    if not gate.rules:
        return GateResult(verdict="no_rules", alpha=level, look=told, results=(), warnings=())
    case = Case(candidate, comparison, options, gate.indices, level)
    hearing = Hearing.of(gate, [exhibit(rule, case) for rule in gate.rules], level, today)
    return GateResult(
        verdict=GATE_VERDICTS[int(conclude(hearing.judgement, hearing.effects, hearing.plan))],
        alpha=level,
        look=told,
        results=tuple(hearing.results()),
        warnings=tuple(hearing.warnings()),
    )


@dataclass(frozen=True, eq=False)
class Hearing:
    """All exhibits of a gate with the verdicts on them, waivers heard.

    Parameters
    ----------
    exhibits
        One for each rule.
    judgement, effects
        Arrays of shape (m,), over the results of all exhibits in order.
    waivers
        What concerns each result that would fail, in force or not.
    """

    plan: Plan
    exhibits: list[Exhibit]
    facts: Facts
    judgement: Judgement
    effects: Codes
    waivers: tuple[Waiver | None, ...]
    level: float
    today: date

    @classmethod
    def of(cls, gate: Gate, exhibits: list[Exhibit], level: float, today: date) -> "Hearing":
        """Decide, then let waivers soften what would fail."""
        plan = Plan(
            gate,
            tuple(e.rule for e in exhibits for _ in e.labels),
            tuple(label for e in exhibits for label in e.labels),
        )
        facts = Facts.join([e.facts for e in exhibits])
        found = decide(facts, plan, level)
        waivers, findings = hear(found.findings, plan, facts.point, today)
        judgement = replace(found, findings=findings)
        return cls(plan, exhibits, facts, judgement, effects(findings, plan), waivers, level, today)

    def results(self) -> Iterator[Result]:
        """Put every result into words."""
        place = 0
        together = int(np.count_nonzero(~np.isnan(self.judgement.p_value)))
        for part in self.exhibits:
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

    def _result(self, part: Exhibit, row: int, place: int) -> Result:
        return Result(
            rule=part.rule.name,
            index=part.rule.index,
            class_=part.labels[row],
            verdict=VERDICTS[self.judgement.findings[place]],
            effect=EFFECTS[self.effects[place]],
            observed=_known(part.observed[row]),
            baseline=_known(part.baseline[row]),
            delta=_known(part.delta[row]),
            kind=part.rule.kind,
            limit=part.rule.limit,
            interval=_interval(part.lower[row], part.upper[row]),
            p_value=_known(self.judgement.p_value[place]),
            p_adjusted=_known(self.judgement.p_adjusted[place]),
            method=part.methods[row],
            pairing=part.pairings[row],
            n=_count(part.items[row]),
            min_detectable_drop=_known(part.detectable[row]),
            reason=self._reason(part.reasons[row], place),
            message="",
        )

    def _reason(self, given: str, place: int) -> str:
        finding = Finding(self.judgement.findings[place])
        waiver = self.waivers[place]
        if finding is not Finding.waived and waiver is not None:
            return "waiver_expired" if self.today > waiver.expires else "waiver_exceeded"
        if finding in REASONS:
            return REASONS[finding]
        if given:
            return given
        alone = self.facts.p_fail[place] < self.level
        return "not_significant_together" if alone else "not_enough_items"

    def warnings(self) -> Iterator[Warning]:
        """Name the rules that could not have seen what they forbid."""
        place = 0
        for part in self.exhibits:
            if warning := _underpowered(part, place):
                yield warning
            place += len(part.labels)


def hear(
    findings: Codes, plan: Plan, point: Array, today: date
) -> tuple[tuple[Waiver | None, ...], Codes]:
    """Apply the waivers.

    A waiver speaks to a demonstrated failure, and to an inconclusive result that would fail
    through `on`: otherwise more evidence for less harm would be worse. What has no value is
    within no ceiling.

    Returns
    -------
    The waiver that concerns each of these results, in force or not, and the findings after it.
    """
    would_fail = effects(findings, plan) == EFFECTS.index("fail")
    open_to_it = (findings == Finding.fail) | ((findings == Finding.inconclusive) & would_fail)
    waivers: list[Waiver | None] = [None] * len(findings)
    heard = findings.copy()
    for i in np.flatnonzero(open_to_it) if plan.gate.waivers else ():
        rule, label = plan.rules[i], plan.labels[i]
        concerned = [w for w in plan.gate.waivers if w.concerns(rule, label)]
        holding = [w for w in concerned if today <= w.expires and w.covers(rule, point[i])]
        waivers[i] = next(iter(holding + concerned), None)
        if holding:
            heard[i] = Finding.waived
    return tuple(waivers), heard


def _underpowered(part: Exhibit, start: int) -> Warning | None:
    """Warn where an unchanged model would often not pass for want of items."""
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
        f"Rule {rule.name} allows {number(rule.limit)}, less than its items can show{where}: "
        f"up to {number(part.detectable[worst])}{named}. An unchanged model may not pass it."
    )
    pointer = f"/gate/results/{start + int(worst)}/min_detectable_drop"
    return Warning(
        "underpowered", pointer, detail, "docs/gates.md#the-smallest-change-that-a-rule-sees"
    )


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _count(items: float) -> float | None:
    """Give whole items as an integer."""
    if not np.isfinite(items):
        return None
    return int(items) if items == np.rint(items) else float(items)


def _interval(lower: float, upper: float) -> tuple[float, float] | None:
    return (float(lower), float(upper)) if np.isfinite(lower) and np.isfinite(upper) else None
