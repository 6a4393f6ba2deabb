"""Run a gate: test its rules on an evaluation and its comparisons, and return one verdict."""

from collections.abc import Iterator
from datetime import date
from typing import get_args

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison
from rprime.core.gates.candidate import GateCandidate, gather_evidence
from rprime.core.gates.evidence import Average, RuleEvidence
from rprime.core.gates.kinds import Against, VerdictCode, verdict_named
from rprime.core.gates.results import GateResult, GateRun, GateVerdict, Result
from rprime.core.gates.rules import Gate, check_gate
from rprime.core.gates.sentences import gate_sentence, number, quoted_names, result_sentence
from rprime.core.gates.verdict import Plan, RuleTests, conclude
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
        results = tuple(_with_messages(run))
        if verdict == "inconclusive" and run.lacks_baseline(results):
            verdict = "no_baseline"
        unjudged = tuple(_omission_warnings(gate, candidate))
        warnings = (*_look_warnings(gate, look), *_rule_warnings(run), *unjudged)
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


def _with_messages(run: GateRun) -> Iterator[Result]:
    """Yield every result with the sentence that says it."""
    hints = (draft.hints for draft in run.tests.evidence for _ in draft.rows.labels)
    rows = zip(run.results(), run.plan.rules, run.waivers, hints, strict=True)
    for result, rule, waiver, hint in rows:
        message = result_sentence(result, rule, together=run.together, waiver=waiver)
        result.message = message + hint.get(result.class_, "")
        yield result


def _rule_warnings(run: GateRun) -> Iterator[Warning]:
    """Warn about classes that rules leave out, and about rules with too few items.

    What is shown to be beyond its limit had enough items.
    """
    verdicts = run.decisions.verdicts
    shown = (verdicts == VerdictCode.fail) | (verdicts == VerdictCode.waived)
    needed = run.tests.passable(run.level)
    needed, place = np.where(shown, 0.0, needed), 0
    for draft in run.tests.evidence:
        part = needed[place : place + len(draft.rows.labels)]
        if draft.rows.left_out:
            yield _left_out(draft, place)
        if draft.average is not None and draft.average.left_out:
            yield _too_small(draft, draft.average, place)
        if run.plan.decisive[place] and (warning := _underpowered(draft, part, place)):
            yield warning
        place += part.size


def _left_out(draft: RuleEvidence, start: int) -> Warning:
    """Name the classes that a rule leaves out because of their items."""
    rule, names = draft.rule, draft.rows.left_out
    few = plural(rule.min_items, "item") if rule.min_items > 1 else "items"
    sides = "" if draft.against is None else f" on both sides, candidate and {draft.against}"
    sides = " in every slice" if rule.traits.between_slices and rule.classes is None else sides
    detail = (
        f"Rule {rule.name} leaves out {len(names)} of its classes, which do not have "
        f"{few}{sides}: {quoted_names(names)}."
    )
    return Warning("classes_left_out", f"/gate/results/{start}", detail, "docs/gates.md#rules")


def _too_small(draft: RuleEvidence, average: Average, start: int) -> Warning:
    """Name the classes or slices that an average leaves out."""
    names = average.left_out
    noun = "slices" if average.columns else "classes"
    detail = (
        f"The average of rule {draft.rule.name} leaves out {len(names)} {noun} that are too small "
        f"for it: {quoted_names(names, noun)}."
    )
    return Warning("average_leaves_out", f"/gate/results/{start}", detail, "docs/gates.md#policies")


def _underpowered(draft: RuleEvidence, needed: FloatArray, start: int) -> Warning | None:
    """Warn if the test set is too small, so that an unchanged model often fails to pass."""
    rule, labels = draft.rule, draft.rows.labels
    if not rule.traits.tolerates or rule.test == "none":
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
