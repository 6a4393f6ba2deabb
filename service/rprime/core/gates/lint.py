"""Lint a gate: how often it fails an unchanged model, and which changes it detects."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Pairing
from rprime.core.gates.advice import RuleLint, advise
from rprime.core.gates.rules import Gate, check_gate
from rprime.core.gates.score_lint import MOST_REPLICATES, NormalGate, ScoredModel
from rprime.core.gates.simulated_gate import ENDS, OtherSets, SimulatedGate, VerdictCounts
from rprime.core.gates.table_lint import LintRun
from rprime.core.gates.verdict import GateVerdictCode
from rprime.core.populations.population import Population

FEWER = 4
"""Other tables are simulated in so many times fewer replicates."""


@dataclass(frozen=True, kw_only=True)
class GateLint:
    """The behaviour of a gate on an unchanged model: shares of the replicates by its verdict.

    Intervals are from the lowest to the highest share on this table and on two others drawn from
    it: those of 200 on which the gate passes about most and least easily, without 2.5 % of them at
    each end. None for rules about scores.

    `discordance` is the expected share of discordant items, smaller than asked for where the
    classes allow no more; None for models on test sets of their own.
    """

    false_fail_rate: float = 0.0
    inconclusive_rate: float = 0.0
    false_fail_interval: tuple[float, float] | None = (0.0, 0.0)
    inconclusive_interval: tuple[float, float] | None = (0.0, 0.0)
    discordance: float | None = None
    rules: tuple[RuleLint, ...] = ()
    advice: tuple[str, ...]


def lint(
    gate: Gate,
    side: Side,
    *,
    pairing: Pairing = "paired",
    discordance: float = 0.06,
    replicates: int = 2000,
    seed: int = 0,
    population: Population | None = None,
) -> GateLint:
    """Simulate a gate on an unchanged model: the side describes baseline and candidate.

    Parameters
    ----------
    gate
        The simulation ignores its waivers.
    side
        A single table of whole numbers without unclassified and spurious items; or, if a rule is
        about scores, items with their scores, which are then drawn anew. Each slice is drawn on
        its own: results of slices that share items are more alike than that, so that real rates of
        failure are lower.
    pairing
        Whether the gate will get the predictions of each item, or two tables.
    discordance
        If paired: share of the items of each class that only one of the models predicts correctly,
        as far as the class allows. Of scores, the new model gives so many items of a class the
        scores of other items of it.
    replicates, seed
        Size and seed of the simulation; the same seed gives the same answer. It is smaller where
        there are many slices, and with scores. Two more tables are simulated, in a quarter of the
        replicates. The cost grows with replicates x k^2: for 2000 replicates 0.1 to 0.4 s with 10
        classes, 2 to 4 s with 100.
    population
        What the rules are about, given by the prevalence of the classes; None: the items. Not for
        rules about scores.

    Raises
    ------
    RuleError
        If the catalog cannot answer a rule.
    LintError
        If the table, or the items, cannot be drawn from.
    """
    check_gate(gate)
    if gate.scored:
        model = ScoredModel.of(gate, side, pairing=pairing, discordance=discordance)
        normal = NormalGate.of(model, min(replicates, MOST_REPLICATES), seed)
        return _lint(normal, [normal.drawn], normal.others(seed), normal.items[0])
    run = LintRun.of(
        gate, side, replicates, pairing=pairing, discordance=discordance, population=population
    )
    if not gate.rules:
        return GateLint(advice=("The gate has no rules: it never passes.",))
    replicates, others = run.fewer(replicates), run.others(seed)
    fewer = max(replicates // FEWER, 1)
    counted = [other.counted(fewer, seed) for other in others.ends(others.chances)]
    return _lint(run, [run.counted(replicates, seed), *counted], others, run.tests.items)


def _lint(
    run: SimulatedGate, counted: Sequence[VerdictCounts], others: OtherSets, items: FloatArray
) -> GateLint:
    """Report the verdicts on the own test set, and on others if there are some."""
    rates = np.array([one.rate(one.gate) for one in counted])
    low, high = rates.min(0).tolist(), rates.max(0).tolist()
    several, fail, open_ = len(counted) > 1, GateVerdictCode.fail, GateVerdictCode.inconclusive
    rules = tuple(_rule_lints(run, counted[0], others, items))
    return GateLint(
        false_fail_rate=float(rates[0, fail]),
        inconclusive_rate=float(rates[0, open_]),
        false_fail_interval=(low[fail], high[fail]) if several else None,
        inconclusive_interval=(low[open_], high[open_]) if several else None,
        discordance=run.discordant,
        rules=rules,
        advice=tuple(advise(run.plan, rules, rates.T, float(run.support.sum()), run.discordant)),
    )


def _rule_lints(
    run: SimulatedGate, counted: VerdictCounts, others: OtherSets, items: FloatArray
) -> Iterator[RuleLint]:
    """Yield the rates of every result, its items, shape (m,), and the drop that it detects."""
    plan, own = run.plan, run.detectable()
    failed, undecided = counted.rate(counted.failed), counted.rate(counted.inconclusive)
    # A table without errors lies outside of most that are drawn.
    here = np.nan_to_num(own, nan=np.inf)
    lowest, highest = np.quantile(others.drops, ENDS, axis=0, method="nearest")
    ends = np.minimum(lowest, here).tolist(), np.maximum(highest, here).tolist()
    for i, (rule, part) in enumerate(zip(plan.rules, plan.slices, strict=True)):
        yield RuleLint(
            id=rule.name,
            class_=plan.labels[i],
            slice=None if part is None else dict(part),
            items=round(items[i]) if np.isfinite(items[i]) else 0,
            false_fail_rate=failed[i],
            inconclusive_rate=undecided[i],
            detectable_drop=_finite(float(own[i])),
            detectable_interval=(_finite(ends[0][i]), _finite(ends[1][i])),
        )


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
