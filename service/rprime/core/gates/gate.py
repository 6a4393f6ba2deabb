"""Run a gate: test its rules on an evaluation and its comparisons, and return one verdict."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, cached_property, partial
from math import isfinite
from typing import Any, get_args

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison
from rprime.core.gates.evidence import GateCandidate, RuleEvidence, gather_evidence, plan_of
from rprime.core.gates.multiplicity import Block
from rprime.core.gates.result import GateResult, GateVerdict, Result, Verdict
from rprime.core.gates.rules import Gate, Waiver, check_gate
from rprime.core.gates.sentences import gate_sentence, named, number, sentence
from rprime.core.gates.verdict import (
    EFFECTS,
    JUDGED,
    Against,
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
REASONS: dict[int, str] = {
    VerdictCode.passed: "within_limit",
    VerdictCode.fail: "beyond_limit",
    VerdictCode.waived: "waived",
}
JUDGED_VERDICTS = tuple(VERDICTS[code] for code in JUDGED)
SMALLEST_CHANGE = "docs/gates.md#the-smallest-change-that-a-rule-sees"


def run_gate(
    gate: Gate,
    candidate: Side,
    comparison: Comparison | None,
    options: Options,
    *,
    today: date,
    look: int | None = None,
    anchor: Comparison | None = None,
) -> GateResult:
    """Run a gate on a candidate.

    Parameters
    ----------
    gate
        The comparisons must include its `indices`.
    candidate
        The side that is compared with the baseline, if there is one.
    comparison
        With the baseline; None without a baseline.
    options
        Of the evaluation. The gate ignores `undefined`: a replaced value must not decide.
    today
        The day for checking the expiry of waivers.
    look
        How many gates have looked at this test set, including this one; None if nobody counted.
    anchor
        With the anchor, if the gate requests one and it exists.

    Raises
    ------
    RuleError
        If the catalog cannot answer a rule.
    """
    check_gate(gate, options)
    comparisons: dict[Against, Comparison | None] = {"baseline": comparison}
    if gate.anchor_requested:
        comparisons["anchor"] = anchor
    side = GateCandidate(candidate, comparisons, options, gate.indices, gate.level)
    evidence = gather_evidence(gate.rules, side)
    run = GateRun.of(gate, evidence, comparisons, today) if evidence else None
    verdict = "no_rules" if run is None else run.verdict
    results = () if run is None else tuple(run.results())
    return GateResult(
        verdict=verdict,
        judged=_judged(verdict, results),
        message=gate_sentence(
            verdict,
            results,
            judged=_judged(verdict, results),
            differences={name: c.sets_differ for name, c in comparisons.items() if c},
        ),
        alpha=gate.level,
        look=look,
        budget=gate.looks,
        results=results,
        warnings=() if run is None else (*_look_warnings(gate, look), *run.warnings()),
    )


def _judged(verdict: GateVerdict, results: tuple[Result, ...]) -> bool:
    """Whether the verdict rests on a result that was judged by its numbers."""
    deciding = [r for r in results if verdict != "fail" or r.effect == "fail"]
    return any(result.verdict in JUDGED_VERDICTS for result in deciding)


def _look_warnings(gate: Gate, look: int | None) -> Iterator[Warning]:
    if gate.looks is not None and look is not None and look > gate.looks:
        detail = (
            f"This is look {look} at the test set, but the gate divides alpha over {gate.looks}: "
            "false verdicts are more likely than alpha says. Use a new test set."
        )
        yield Warning("looks_exceeded", "/gate/look", detail, "docs/gates.md#repeated-looks")


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
    today: date

    @classmethod
    def of(
        cls,
        gate: Gate,
        evidence: list[RuleEvidence],
        comparisons: Mapping[Against, Comparison | None],
        today: date,
    ) -> "GateRun":
        """Decide every result, then apply the waivers."""
        plan = plan_of(gate, evidence)
        tests = RuleTests.join([e.tests for e in evidence])
        known = {against: c.aligned for against, c in comparisons.items() if c is not None}
        found = decide(tests, plan, gate.level, cache(partial(joint_laws, tests, plan, known)))
        waivers, verdicts = apply_waivers(found, plan, tests.point, today)
        decisions = replace(found, verdicts=verdicts)
        return cls(plan, evidence, tests, decisions, effects(decisions, plan), waivers, today)

    @property
    def verdict(self) -> GateVerdict:
        """The verdict of the gate."""
        return GATE_VERDICTS[int(conclude(self.decisions, self.effects, self.plan))]

    @property
    def level(self) -> float:
        """One-sided, of this look."""
        return self.plan.gate.level

    @cached_property
    def together(self) -> int:
        """How many results were tested together."""
        return int(np.count_nonzero(~np.isnan(self.decisions.p_value)))

    def results(self) -> Iterator[Result]:
        """Yield every result with its message."""
        found = self.decisions
        p_values = (found.p_value, found.p_adjusted, self.tests.p_fail)
        of_results = zip(
            found.verdicts.tolist(),
            self.effects.tolist(),
            found.suspect.tolist(),
            self.waivers,
            *map(_known, p_values),
            strict=True,
        )
        for part in self.evidence:
            columns = (part.observed, part.baseline, part.delta, part.lower, part.upper, part.items)
            detectable = part.detectable(self.level, self.together)
            of_part = zip(
                part.labels,
                part.methods,
                part.pairings,
                part.reasons,
                *map(_known, (*columns, detectable)),
                strict=True,
            )
            for row in of_part:
                yield self._result(part, row, next(of_results))

    # Any: the members of a result in the order of `results`.
    def _result(self, part: RuleEvidence, row: tuple[Any, ...], judged: tuple[Any, ...]) -> Result:
        label, method, pairing, given, *numbers = row
        observed, baseline, delta, lower, upper, n, detectable = numbers
        verdict, effect, suspect, waiver, p_value, p_adjusted, p_alone = judged
        members: dict[str, Any] = {
            "rule": part.rule.name,
            "index": part.rule.index or None,
            "class_": label,
            "confusion": part.rule.confusion,
            "verdict": VERDICTS[verdict],
            "effect": EFFECTS[effect],
            "suspect": suspect,
            "against": part.against,
            "observed": observed,
            "baseline": baseline,
            "delta": delta,
            "kind": part.rule.kind,
            "limit": part.rule.limit,
            "lower_limit": lower,
            "upper_limit": upper,
            "level": None if lower is None and upper is None else 1 - self.level,
            "p_value": p_value,
            "p_adjusted": p_adjusted,
            "method": method,
            "pairing": pairing,
            "n": int(n) if n is not None and n == round(n) else n,
            "min_detectable_drop": detectable,
            "reason": self._reason(given, verdict, waiver, suspect=suspect, p=p_alone),
        }
        silent = Result(**members, message="")
        text = sentence(silent, part.rule, together=self.together, waiver=waiver)
        return Result(**members, message=text)

    def _reason(
        self, given: str, verdict: int, waiver: Waiver | None, *, suspect: bool, p: float | None
    ) -> str:
        if waiver is not None and verdict != VerdictCode.waived:
            return "waiver_expired" if self.today > waiver.expires else "waiver_exceeded"
        if verdict in REASONS:
            return REASONS[verdict]
        if given:
            return given
        if suspect:
            return "suspect"
        return "not_enough_items" if p is None or p >= self.level else "not_significant_together"

    def warnings(self) -> Iterator[Warning]:
        """Warn about classes that rules leave out, and about rules with too few items."""
        place = 0
        for part in self.evidence:
            if part.left_out:
                yield _left_out(part, place)
            if warning := _underpowered(part, place, self.level):
                yield warning
            place += len(part.labels)


def joint_laws(
    tests: RuleTests, plan: Plan, comparisons: Mapping[Against, AlignedValues]
) -> list[Block]:
    """Return the joint law of the tests against each baseline, where it is known.

    Notes
    -----
    The correlations are those of the differences, whose influences the comparison knows. A rule
    that forbids low numbers fails for small differences, so its statistic has the other sign.
    """
    signs = np.where(plan.guards_below, -1.0, 1.0)
    numbers = [
        None if rule.min_items and rule.classes is None else rule.target.correlated(label)
        for rule, label in zip(plan.rules, plan.labels, strict=True)
    ]
    blocks = []
    for against, comparison in comparisons.items():
        own = [i for i in np.flatnonzero(~np.isnan(tests.p_fail)) if plan.against[i] == against]
        targets = {i: number for i in own if (number := numbers[i]) is not None}
        if len(targets) < LEAST_CORRELATED:
            continue
        correlation = comparison.correlation(list(targets.values()))
        known = ~np.isnan(np.diagonal(correlation))
        places = np.array(list(targets), dtype=np.intp)[known]
        turned = correlation[np.ix_(known, known)] * np.outer(signs[places], signs[places])
        blocks.append(Block(places, turned))
    return blocks


LEAST_CORRELATED = 2
"""Fewest results with a joint law."""


def apply_waivers(
    found: Decisions, plan: Plan, point: FloatArray, today: date
) -> tuple[tuple[Waiver | None, ...], Codes]:
    """Apply the waivers.

    A waiver applies to a demonstrated failure, and to an inconclusive result that would fail
    through `on`: otherwise more evidence of less harm would be worse. An undefined value is
    never within the ceiling.

    Returns
    -------
    The waiver for each of these results, in force or not, and the verdicts after it.
    """
    verdicts, would_fail = found.verdicts, effects(found, plan) == EFFECTS.index("fail")
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


def _left_out(part: RuleEvidence, start: int) -> Warning:
    """Name the classes that a rule leaves out because of their items."""
    few = f"{number(part.rule.min_items)} items" if part.rule.min_items > 1 else "items"
    sides = "" if part.against is None else f" on both sides, candidate and {part.against}"
    detail = (
        f"Rule {part.rule.name} leaves out {len(part.left_out)} of its classes, which do not have "
        f"{few}{sides}: {named(part.left_out)}."
    )
    return Warning("classes_left_out", f"/gate/results/{start}", detail, "docs/gates.md#rules")


def _underpowered(part: RuleEvidence, start: int, level: float) -> Warning | None:
    """Warn if the test set is too small, so that an unchanged model often fails to pass."""
    rule = part.rule
    if not rule.knows_suspects or rule.test == "none":
        return None
    needed = part.told_apart(level)
    weak = np.flatnonzero(needed > rule.limit)
    if not weak.size:
        return None
    worst = weak[np.argmax(needed[weak])]
    label = part.labels[worst]
    where = "" if label is None else f" for {weak.size} of {len(part.labels)} classes"
    example = "" if label is None else f" (class `{label}`)"
    detail = (
        f"Rule {rule.name} allows {number(rule.limit)}, but an unchanged model passes it in fewer "
        f"than 8 of 10 cases{where}: the items tell changes from {number(needed[worst])} on from "
        f"no change{example}. Take a larger limit or more items."
    )
    pointer = f"/gate/results/{start + int(worst)}/min_detectable_drop"
    return Warning("underpowered", pointer, detail, SMALLEST_CHANGE)


def _known(values: FloatArray) -> list[float | None]:
    """Return numbers, None where they are not finite."""
    return [value if isfinite(value) else None for value in values.tolist()]
