"""Run a gate: test its rules on an evaluation and its comparisons, and return one verdict."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, cached_property, partial
from typing import Any, get_args

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison
from rprime.core.gates.candidate import GateCandidate, gather_evidence
from rprime.core.gates.evidence import Average, RuleEvidence
from rprime.core.gates.kinds import EFFECTS, VERDICTS, Against, Codes, VerdictCode, verdict_named
from rprime.core.gates.results import (
    GateResult,
    GateVerdict,
    Result,
    gate_sentence,
    named,
    number,
    sentence,
)
from rprime.core.gates.rules import Gate, Waiver, check_gate
from rprime.core.gates.verdict import Decisions, Plan, RuleTests, conclude, decide, effects
from rprime.core.multiplicity import Block
from rprime.core.options import Options
from rprime.core.quantities import plural
from rprime.core.warnings import Warning  # noqa: A004 (its name)

GATE_VERDICTS: tuple[GateVerdict, ...] = get_args(GateVerdict)
"""In the order of the codes of `GateVerdictCode`."""
DECIDED = ("pass", "fail", "waived")
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
    """Run a gate on a candidate, the side that is compared with the baseline, if there is one.

    Parameters
    ----------
    gate
        The comparisons must include its `indices`.
    options
        Of the evaluation. The gate ignores `undefined`: a replaced value must not decide.
    look
        How many evaluations have used this test set, this one included; None if nobody counted.

    Raises
    ------
    RuleError
        If the catalog cannot answer a rule.
    """
    check_gate(gate, options)
    comparisons: dict[Against, Comparison | None] = {"baseline": comparison}
    if gate.anchor_requested:
        comparisons["anchor"] = anchor
    verdict: GateVerdict = "no_rules"
    results: tuple[Result, ...] = ()
    warnings: tuple[Warning, ...] = ()
    unjudged: tuple[Warning, ...] = ()
    if gate.rules:
        side = GateCandidate(candidate, comparisons, options, gate.indices, gate.averages)
        level = gate.pass_level(look)
        evidence = gather_evidence(gate, side, level)
        run = GateRun.of(RuleTests(evidence, Plan(gate, evidence)), comparisons, level, today)
        verdict = GATE_VERDICTS[int(conclude(run.decisions, run.effects, run.plan))]
        results = tuple(run.results())
        if verdict == "inconclusive" and run.lacks_baseline(results):
            verdict = "no_baseline"
        unjudged = tuple(_omission_warnings(gate, candidate))
        warnings = (*_look_warnings(gate, look), *run.warnings(), *unjudged)
    deciding = [r for r in results if verdict != "fail" or r.effect == "fail"]
    judged = verdict != "no_baseline" and any(verdict_named(r.verdict).judged for r in deciding)
    differ = {name: c.sets_differ for name, c in comparisons.items() if c}
    accepted = _accepted(comparison)
    message = gate_sentence(verdict, results, judged=judged, differences=differ, accepted=accepted)
    return GateResult(
        verdict=verdict,
        judged=judged,
        undecided=sum(result.verdict not in DECIDED for result in results),
        message=" ".join((message, *(warning.detail for warning in unjudged))),
        alpha=gate.pass_level(look),
        look=look,
        max_looks=gate.max_looks,
        results=results,
        warnings=warnings,
    )


def _missing_items(evidence: RuleEvidence, place: int) -> int | None:
    """Return how many items of the baseline are missing behind a result; None for none."""
    row = evidence.rows.positions[place]
    if evidence.missing is None or row < 0:
        return None
    return int(evidence.missing[row]) or None


def _accepted(comparison: Comparison | None) -> str:
    """Say which missing items the gate accepts; empty where it accepts none."""
    missing = None if comparison is None else comparison.missing
    if missing is None or missing.unaccepted is None:
        return ""
    before, parts = missing.unaccepted.counts, []
    if before.removed and not missing.counts.removed:
        parts.append(f"{plural(before.removed, 'removed item')}")
    if before.relabelled and not missing.counts.relabelled:
        ours, theirs = missing.relabelled_right
        right = f"{ours} become right for the candidate, {theirs} for the baseline"
        parts.append(f"{plural(before.relabelled, 'relabelled item')} ({right})")
    return " and ".join(parts)


MOST_OMITTED = 0.01
"""Largest share of items without a prediction that no rule needs to count."""


FIRST_WARNED = 10
"""The look from which reuse of a test set is warned about, and each time the number doubles."""


def _look_warnings(gate: Gate, look: int | None) -> Iterator[Warning]:
    """Warn where a test set was used so often that the level of the gate says too little."""
    if look is None or gate.spend:
        return
    docs = "docs/gates.md#repeated-looks"
    if gate.max_looks is not None:
        if look > gate.max_looks:
            detail = (
                f"This is look {look} at the test set, but the gate divides alpha over "
                f"{gate.max_looks}: false passes are more likely than alpha says. Use a new test "
                "set."
            )
            yield Warning("looks_exceeded", "/gate/look", detail, docs)
        return
    doubled, rest = divmod(look, FIRST_WARNED)
    due = rest == 0 and doubled.bit_count() == 1
    if due or (look > 1 and any(not rule.traits.unchanged_passes for rule in gate.rules)):
        level = 1 - (1 - gate.alpha) ** look
        detail = (
            f"This is look {look} at the test set. One of {look} candidates passes wrongly in up "
            f"to {number(100 * level)} % of cases, if every candidate sits at the limit. "
            "`spend: true` keeps alpha over all looks."
        )
        yield Warning("repeated_looks", "/gate/look", detail, docs)


def _omission_warnings(gate: Gate, candidate: Side) -> Iterator[Warning]:
    """Warn where items have no prediction, and no rule bounds an index that counts these."""
    table = candidate.table
    missing = float(table.total - np.add.reduce(table.answered, axis=-1))
    if missing > MOST_OMITTED * table.total and all(r.target.ignores_omissions for r in gate.rules):
        detail = (
            f"{number(missing)} of {plural(float(table.total), 'item')} have no prediction, and no "
            "rule counts these as wrong: add one about `coverage`."
        )
        yield Warning("omissions_not_judged", "/gate", detail, "docs/gates.md#rules")


@dataclass(frozen=True, eq=False)
class GateRun:
    """The tests of every rule of a gate, with the verdicts after waivers.

    `waivers` has the one for each result that would fail, in force or not; `level` is the
    one-sided level of a pass of this look.
    """

    tests: RuleTests
    decisions: Decisions
    effects: Codes
    waivers: tuple[Waiver | None, ...]
    level: float
    today: date

    @classmethod
    def of(
        cls,
        tests: RuleTests,
        comparisons: Mapping[Against, Comparison | None],
        level: float,
        today: date,
    ) -> "GateRun":
        """Decide every result at the level of this look, then apply the waivers."""
        plan = tests.plan
        aligned = {against: c.aligned for against, c in comparisons.items() if c is not None}
        unwaived = decide(tests, level, cache(partial(joint_laws, tests, aligned)))
        waivers, verdicts = apply_waivers(unwaived, plan, tests.point, today)
        decisions = replace(unwaived, verdicts=verdicts)
        return cls(tests, decisions, effects(decisions, plan), waivers, level, today)

    @property
    def plan(self) -> Plan:
        """The rules behind the results."""
        return self.tests.plan

    def lacks_baseline(self, results: Sequence[Result]) -> bool:
        """Whether a rule that may block has nothing at all to compare with."""
        lacking = np.array([result.reason == "no_baseline" for result in results])
        return bool(np.any(lacking & ~self.plan.advisory))

    @cached_property
    def together(self) -> int:
        """How many results were tested together."""
        return int(np.count_nonzero(~np.isnan(self.decisions.p_adjusted)))

    def results(self) -> Iterator[Result]:
        """Yield every result with its message."""
        tests, decisions, plan = self.tests, self.decisions, self.plan
        low, high = tests.limits(self.level)
        numbers = {
            "observed": tests.values[0],
            "baseline": tests.values[1],
            "delta": np.where(plan.compares, tests.point, np.nan),
            "lower_limit": low,
            "upper_limit": high,
            "p_value": decisions.p_value,
            "p_adjusted": decisions.p_adjusted,
            "n": tests.items,
            "min_detectable_drop": tests.detectable(plan.gate.alpha, self.together),
        }
        table = np.stack([*numbers.values()], axis=-1)
        rows = np.where(np.isfinite(table), table, np.array(None)).tolist()
        every = (
            (draft, position)
            for draft in tests.evidence
            for position in range(len(draft.rows.labels))
        )
        for i, (row, (draft, place)) in enumerate(zip(rows, every, strict=True)):
            yield self._result(i, dict(zip(numbers, row, strict=True)), draft, place)

    # Any: the members of a result that are numbers.
    def _result(self, i: int, numbers: dict[str, Any], draft: RuleEvidence, place: int) -> Result:
        """Return a result by its position among all and among those of its draft."""
        rule, n, part = draft.rule, numbers["n"], draft.slice
        numbers["n"] = int(n) if n is not None and n == round(n) else n
        bounded = numbers["lower_limit"] is not None or numbers["upper_limit"] is not None
        result = Result(
            **numbers,
            rule=rule.name,
            index=rule.index or None,
            class_=self.plan.labels[i],
            slice=None if part is None else dict(part),
            confusion=rule.confusion,
            verdict=VERDICTS[VerdictCode(self.decisions.verdicts[i])].name,
            effect=EFFECTS[self.effects[i]],
            suspect=bool(self.decisions.suspect[i]),
            against=draft.against,
            kind=rule.kind,
            limit=rule.limit,
            level=1 - self.level if bounded else None,
            method=draft.methods[place] if draft.methods else None,
            pairing=draft.pairing if draft.rows.positions[place] >= 0 else None,
            reason=self._reason(draft, place, i),
            missing_items=_missing_items(draft, place),
            average_of=None if draft.average is None else draft.average.of,
            columns=draft.average.columns or None if draft.average else None,
        )
        waiver = self.waivers[i]
        message = sentence(result, rule, together=self.together, waiver=waiver)
        result.message = message + draft.hints.get(result.class_, "")
        return result

    def _reason(self, draft: RuleEvidence, place: int, i: int) -> str:
        waiver, verdict = self.waivers[i], int(self.decisions.verdicts[i])
        if waiver is not None and verdict != VerdictCode.waived:
            return "waiver_expired" if self.today > waiver.expires else "waiver_exceeded"
        if fixed := VERDICTS[VerdictCode(verdict)].reason:
            return fixed
        return draft.reasons[place] or self._open_reason(i)

    def _open_reason(self, i: int) -> str:
        """Return why the tests leave a result open."""
        tests, worst = self.tests, self.tests.worst
        significant = tests.p[0][i] < self.plan.gate.alpha
        reasons = {
            "few_groups": tests.few_groups[i] and tests.p[1][i] < self.level,
            "missing_items": worst is not None and worst.counted[i] and self._open_for_missing(i),
            "suspect": self.decisions.suspect[i],
            "not_significant_together": significant,
        }
        return next((name for name, holds in reasons.items() if holds), "not_enough_items")

    def _open_for_missing(self, i: int) -> bool:
        """Whether missing items alone keep a result from passing, or from being compared."""
        kept = not self.plan.tested[i] or self.tests.p[1][i] < self.level
        return bool(kept) or self.decisions.verdicts[i] == VerdictCode.not_comparable

    def warnings(self) -> Iterator[Warning]:
        """Warn about classes that rules leave out, and about rules with too few items.

        What is shown to be beyond its limit had enough items.
        """
        verdicts = self.decisions.verdicts
        shown = (verdicts == VerdictCode.fail) | (verdicts == VerdictCode.waived)
        needed = self.tests.passable(self.level)
        needed, place = np.where(shown, 0.0, needed), 0
        for draft in self.tests.evidence:
            part = needed[place : place + len(draft.rows.labels)]
            if draft.rows.left_out:
                yield _left_out(draft, place)
            if draft.average is not None and draft.average.left_out:
                yield _too_small(draft, draft.average, place)
            if self.plan.decisive[place] and (warning := _underpowered(draft, part, place)):
                yield warning
            place += part.size


def joint_laws(tests: RuleTests, comparisons: Mapping[Against, AlignedValues]) -> list[Block]:
    """Return the joint law of the tests against each baseline, where it is known.

    Notes
    -----
    The correlations are those of the differences, whose influences the comparison knows. A rule
    that forbids low numbers fails for small differences, so its statistic has the other sign.
    """
    plan = tests.plan
    signs = np.where(plan.guards_below, -1.0, 1.0)
    numbers = {}
    for i in np.flatnonzero(~np.isnan(tests.p[0])).tolist():
        rule = plan.rules[i]
        number = rule.target.correlated(plan.labels[i])
        # The comparison is one of all items, and of averages over all classes.
        whole = rule.slices is None and not (rule.min_items and rule.classes is None)
        whole = whole and not plan.averages[i]
        if whole and number is not None:
            numbers[i] = number
    blocks = []
    for against, comparison in comparisons.items():
        chosen = [i for i in numbers if plan.against[i] == against]
        if len(chosen) <= 1:
            continue
        correlation = comparison.correlation([numbers[i] for i in chosen])
        there = ~np.isnan(np.diagonal(correlation))
        places = np.array(chosen, dtype=np.intp)[there]
        turned = correlation[np.ix_(there, there)] * np.outer(signs[places], signs[places])
        blocks.append(Block(places, turned))
    return blocks


def apply_waivers(
    decisions: Decisions, plan: Plan, point: FloatArray, today: date
) -> tuple[tuple[Waiver | None, ...], Codes]:
    """Apply the waivers.

    A waiver applies to a demonstrated failure, and to an inconclusive result that would fail
    through `effects`: otherwise more evidence of less harm would be worse. An undefined value is
    never within the ceiling. Returns the waiver for each of these results, in force or not, and
    the verdicts after it.
    """
    verdicts = decisions.verdicts
    if not plan.gate.waivers:
        return (None,) * len(verdicts), verdicts
    would_fail = effects(decisions, plan) == EFFECTS.index("fail")
    inconclusive = verdicts == VerdictCode.undecided
    waivable = (verdicts == VerdictCode.fail) | (inconclusive & would_fail)
    waivers: list[Waiver | None] = [None] * len(verdicts)
    after = verdicts.copy()
    for i in np.flatnonzero(waivable):
        rule, label = plan.rules[i], plan.labels[i]
        matching = [w for w in plan.gate.waivers if w.concerns(rule, label)]
        in_force = [w for w in matching if today <= w.expires and w.covers(rule, point[i])]
        waivers[i] = next(iter(in_force + matching), None)
        if in_force:
            after[i] = VerdictCode.waived
    return tuple(waivers), after


def _left_out(draft: RuleEvidence, start: int) -> Warning:
    """Name the classes that a rule leaves out because of their items."""
    rule, names = draft.rule, draft.rows.left_out
    few = plural(rule.min_items, "item") if rule.min_items > 1 else "items"
    sides = "" if draft.against is None else f" on both sides, candidate and {draft.against}"
    sides = " in every slice" if rule.traits.between_slices and rule.classes is None else sides
    detail = (
        f"Rule {rule.name} leaves out {len(names)} of its classes, which do not have "
        f"{few}{sides}: {named(names)}."
    )
    return Warning("classes_left_out", f"/gate/results/{start}", detail, "docs/gates.md#rules")


def _too_small(draft: RuleEvidence, average: Average, start: int) -> Warning:
    """Name the classes or slices that an average leaves out."""
    names = average.left_out
    noun = "slices" if average.columns else "classes"
    detail = (
        f"The average of rule {draft.rule.name} leaves out {len(names)} {noun} that are too small "
        f"for it: {named(names, noun)}."
    )
    return Warning("average_leaves_out", f"/gate/results/{start}", detail, "docs/gates.md#policies")


def _underpowered(draft: RuleEvidence, needed: FloatArray, start: int) -> Warning | None:
    """Warn if the test set is too small, so that an unchanged model often fails to pass."""
    rule, labels = draft.rule, draft.rows.labels
    if not rule.traits.suspects or rule.test == "none":
        return None
    weak = np.flatnonzero(needed > rule.limit)
    if not weak.size:
        return None
    worst = weak[np.argmax(needed[weak])]
    label = labels[worst]
    where = f" for {weak.size} of {len(labels)} classes" if len(labels) > 1 else ""
    example = "" if label is None else f" (class `{label}`)"
    detail = (
        f"Rule {rule.name} allows {number(rule.limit)}, but an unchanged model passes it in fewer "
        f"than 8 of 10 builds{where}: with these items it passes limits of {number(needed[worst])} "
        f"or more that often{example}. Take a larger limit or more items."
    )
    pointer = f"/gate/results/{start + int(worst)}/min_detectable_drop"
    return Warning("underpowered", pointer, detail, SMALLEST_CHANGE)
