"""Lint a gate: how often it fails an unchanged model, and which changes it detects."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Pairing
from rprime.core.gates.rules import Gate, Rule, check_gate
from rprime.core.gates.sentences import number
from rprime.core.gates.simulation import ENDS, LintRun, OtherSets, VerdictCounts, without_scores
from rprime.core.gates.verdict import GateVerdictCode, Plan
from rprime.core.population import Population
from rprime.core.published import PUBLISHED
from rprime.core.quantities import condition, plural

OFTEN = 0.01
"""Largest share of unchanged models that may fail without advice."""
RARELY = 0.8
"""Share of unchanged models that should pass what decides a rule."""
MOST_NAMED = 5
"""Most classes named one by one for a rule."""


@dataclass(frozen=True, kw_only=True)
class RuleLint:
    """How a rule would judge an unchanged model."""

    __pydantic_config__: ClassVar = PUBLISHED

    id: str
    """The id of the rule."""
    class_: str | None
    """The class; null for an overall index."""
    slice: dict[str, str] | None
    """Its slice; null: all items."""
    average_of: int | None
    """The number of classes or slices whose mean it is; null for a single one."""
    columns: tuple[str, ...] | None
    """The columns of these slices; null for classes."""
    items: int
    """The number of items behind the value."""
    false_fail_rate: float
    """Share of runs that fail an unchanged model, 0 to 1, whatever the effect of the fail."""
    inconclusive_rate: float
    """Share of undecided runs, 0 to 1."""
    detectable_drop: float | None
    """The drop that the rule detects in 80 % of runs, if nothing else got worse; null if none."""
    detectable_interval: tuple[float | None, float | None]
    """The same on 95 % of other test sets of this size, drawn from the table."""
    smallest_limit: float | None
    """The smallest limit of a change that an unchanged model passes in 8 of 10 builds; null for a
    bound on values."""

    @property
    def name(self) -> str:
        """The class and the slice, as a subject of a sentence; empty for an overall index."""
        if self.average_of is not None:
            over = f" over {self.average_of} {'slices' if self.columns else 'classes'}"
            return f"the average{over if self.average_of else ''}"
        parts = [] if self.class_ is None else [f"class `{self.class_}`"]
        named = [f"`{condition(*part)}`" for part in (self.slice or {}).items()]
        return " of ".join(parts + ([f"slice {', '.join(named)}"] if named else []))


def assumed(gate: Gate, discordant: float | None) -> Iterator[str]:
    """Say what a simulation assumes: the share of the items that only one model gets right."""
    if discordant is not None and any(rule.traits.compares for rule in gate.rules):
        yield (
            f"It is assumed that on {share_text(discordant)} of the items only one of candidate "
            "and baseline is right: state the share that you know as `discordance`."
        )
    if gaps := [rule.name for rule in gate.rules if rule.traits.between_slices]:
        yield (
            f"The drop of {', '.join(gaps)} is one of the slice that is worst now: a better slice "
            "must fall further."
        )


def advise(
    plan: Plan,
    rules: Sequence[RuleLint],
    gate_rates: FloatArray,
    total: float,
    discordant: float | None,
) -> Iterator[str]:
    """Explain the rates in sentences, first of the gate, then of its rules.

    `gate_rates` are the shares of the gate's verdicts by `GateVerdictCode`, shape (3, runs): those
    on the own table, then those on other ones. `discordant` is as for `assumed`.
    """
    fail, open_ = gate_rates[[GateVerdictCode.fail, GateVerdictCode.inconclusive]].tolist()
    yield (
        f"An unchanged model fails this gate in {share_text(fail[0])} of runs, and leaves it "
        f"inconclusive in {share_text(open_[0])}."
    )
    if len(open_) > 1:
        yield (
            f"The {plural(total, 'item', 'are')} a sample: on other test sets of this size it "
            f"would fail in {_span(fail)} and end inconclusive in {_span(open_)} of runs."
        )
    yield from assumed(plan.gate, discordant)
    for rule in plan.gate.rules:
        places = [i for i, owner in enumerate(plan.rules) if owner is rule]
        of_rule = [rules[i] for i in places]
        yield from _rate_advice(rule, of_rule, [rules[i] for i in places if plan.decisive[i]])
        yield from _detectability_advice(rule, of_rule)


def _rate_advice(
    rule: Rule, rules: Sequence[RuleLint], decisive: Sequence[RuleLint]
) -> Iterator[str]:
    if not rule.traits.unchanged_passes:
        yield f"Rule {rule.name} demands a gain, so an unchanged model does not pass it."
        return
    worst = max(rules, key=lambda r: r.false_fail_rate)
    share, milder = share_text(worst.false_fail_rate), rule.traits.milder
    if worst.false_fail_rate > OFTEN and rule.test == "none":
        yield (
            f"Rule {rule.name} compares point values: noise makes {worst.name or 'it'} fail "
            f'in {share} of runs of an unchanged model. Use `test: "auto"`, or {milder}.'
        )
    elif worst.false_fail_rate > OFTEN:
        where = f" for {worst.name}" if worst.name else ""
        yield f"Rule {rule.name} fails an unchanged model{where} in {share} of runs."
    worst = max(decisive, key=lambda r: r.inconclusive_rate)
    if worst.inconclusive_rate > 1 - RARELY:
        yield (
            f"Rule {rule.name} must pass, but {worst.name or 'it'} stays undecided in "
            f"{share_text(worst.inconclusive_rate)} of runs of an unchanged model: take {milder} "
            "or more items."
        )
    others = [r for r in rules if r not in decisive and r.inconclusive_rate > 1 - RARELY]
    if others:
        worst = max(others, key=lambda r: r.inconclusive_rate)
        noun = "class" if rule.slices is None else "result"
        yield (
            f"Rule {rule.name} passes by its average. Of its results "
            f"{plural(len(others), noun, 'are')} often undecided, {worst.name} in "
            f"{share_text(worst.inconclusive_rate)} of runs: `--strict` seldom passes them."
        )


def _detectability_advice(rule: Rule, rules: Sequence[RuleLint]) -> Iterator[str]:
    # Twice the limit of a change; a bound or a gain says nothing about useful distances.
    most = 2 * rule.limit if rule.traits.tolerates else float("inf")
    blind = [r for r in rules if r.detectable_drop is None or r.detectable_drop > most]
    blind.sort(key=lambda r: (r.detectable_drop is not None, -(r.detectable_drop or 0.0)))
    worse = rule.traits.words.direction
    for result in blind[:MOST_NAMED]:
        subject = result.name or "the test set"
        subject = subject[0].upper() + subject[1:]
        items = plural(result.items, "item") if result.items else "no items"
        text = f"finds no {worse} in 80 % of runs, however large"
        if result.detectable_drop is not None:
            drop = number(result.detectable_drop)
            text = f"finds a {worse} of {drop} in 80 % of runs, and smaller ones less often"
        yield f"{subject} has {items}: rule {rule.name} {text}."
    if (more := len(blind) - MOST_NAMED) > 0:
        others = plural(more, "more class" if rule.slices is None else "more result")
        yield f"The same applies to {others} of rule {rule.name}, not named here."


def share_text(share: float) -> str:
    """Write a share, to a hundredth of a percent."""
    return f"{number(round(100 * share, 2))} %"


def _span(shares: Sequence[float]) -> str:
    """Write the range of shares, or the one that all have."""
    low, high = share_text(min(shares)), share_text(max(shares))
    return low if low == high else f"{low} to {high}"


FEWER = 4
"""Other tables are simulated in so many times fewer replicates."""


TIMES = {1.0: "the limit", 1.5: "half as much again", 2.0: "twice the limit"}
"""What models lose that are tried, in limits."""


@dataclass(frozen=True, kw_only=True)
class PassChance:
    """How often a gate passes a model that is worse than its baseline."""

    __pydantic_config__: ClassVar = PUBLISHED

    classes: Literal["all", "smallest", "median", "largest"]
    """The classes that lose."""
    class_: str | None
    """The name of that class; null for all."""
    times_limit: float
    """The loss, in limits of the strictest rule."""
    lost: float
    """The same loss as a share of their items."""
    pass_rate: float
    """Share of runs that pass, 0 to 1."""

    @property
    def sentence(self) -> str:
        """The chance in words."""
        who = "every class"
        if self.class_ is not None:
            who = f"class `{self.class_}`, the {self.classes},"
        lost = f"loses {number(self.lost)} of its items"
        return f"{share_text(self.pass_rate)} where {who} {lost} ({TIMES[self.times_limit]})"


@dataclass(frozen=True, kw_only=True)
class LintReport:
    """How a gate would judge an unchanged model.

    Intervals are from the lowest to the highest share on this table and on two others drawn from
    it: those of 200 on which the gate passes about most and least easily, without 2.5 % of them at
    each end.
    """

    __pydantic_config__: ClassVar = PUBLISHED

    false_fail_rate: float
    """Share of runs that fail an unchanged model, 0 to 1."""
    inconclusive_rate: float
    """Share of undecided runs, 0 to 1."""
    false_fail_interval: tuple[float, float]
    """On other test sets of this size, drawn from the table."""
    inconclusive_interval: tuple[float, float]
    """On other test sets of this size, drawn from the table."""
    discordance: float | None
    """Share of the items that only one of the two models got right, smaller than asked for where
    the classes allow no more; null if unpaired."""
    losing: tuple[PassChance, ...]
    """How often the gate passes models that lose something; empty if no rule is about a drop or a
    rise."""
    rules: tuple[RuleLint, ...]
    """Each rule, and each of its classes."""
    advice: tuple[str, ...]
    """What to change, in sentences; often empty."""


NO_RULES = LintReport(
    false_fail_rate=0.0,
    inconclusive_rate=0.0,
    false_fail_interval=(0.0, 0.0),
    inconclusive_interval=(0.0, 0.0),
    discordance=None,
    losing=(),
    rules=(),
    advice=("The gate has no rules: it never passes.",),
)


def lint(
    gate: Gate,
    side: Side,
    *,
    pairing: Pairing = "paired",
    discordance: float = 0.06,
    replicates: int = 2000,
    seed: int = 0,
    population: Population | None = None,
) -> LintReport:
    """Simulate a gate on an unchanged model: the side describes baseline and candidate.

    Parameters
    ----------
    gate
        The simulation ignores its waivers.
    side
        A single table of whole numbers without unclassified and spurious items. Each slice is
        drawn on its own: results of slices that share items are more alike than that, so that real
        rates of failure are lower.
    pairing
        Whether the gate will get the predictions of each item, or two tables.
    discordance
        If paired: share of the items of each class that only one of the models predicts correctly,
        as far as the class allows.
    replicates, seed
        Size and seed of the simulation; the same seed gives the same answer. It is smaller where
        there are many slices. Two more tables are simulated, in a quarter of the
        replicates. The cost grows with replicates x k^2: for 2000 replicates 0.1 to 0.4 s with 10
        classes, 2 to 4 s with 100.
    population
        What the rules are about, given by the prevalence of the classes; None: the items.

    Raises
    ------
    RuleError
        If the catalog cannot answer a rule.
    LintError
        If the table cannot be drawn from, or every rule is about scores.
    """
    check_gate(gate)
    gate, unsimulated = without_scores(gate)
    run = LintRun.of(
        gate, side, replicates, pairing=pairing, discordance=discordance, population=population
    )
    if not gate.rules:
        return NO_RULES
    replicates, others = run.fewer(replicates), run.others(seed)
    fewer = max(replicates // FEWER, 1)
    counted = [other.counted(fewer, seed) for other in others.ends(others.chances)]
    report = _lint(run, [run.counted(replicates, seed), *counted], others)
    losing = tuple(_pass_chances(run, fewer, seed))
    sentence = (
        f"It passes in {'; in '.join(chance.sentence for chance in losing)}." if losing else ""
    )
    first, *more = report.advice
    advice = (*unsimulated, first, *filter(None, (sentence,)), *more)
    return replace(report, losing=losing, advice=advice)


def _pass_chances(run: LintRun, replicates: int, seed: int) -> Iterator[PassChance]:
    """Yield how often the gate passes models that lose what rules about changes bound."""
    rules = [r for r in run.gate.rules if r.traits.tolerates and r.confusion is None]
    there = np.flatnonzero(run.support > 0)
    if not rules or not there.size:
        return
    order = there[np.argsort(run.support[there], kind="stable")]
    ends = {"smallest": order[0], "median": order[order.size // 2], "largest": order[-1]}
    by_class = [rule for rule in rules if rule.classes is not None] or rules
    settings: list[tuple[Any, list[Rule], list[int], float]] = [
        ("all", rules, there.tolist(), 1.0),
        ("all", rules, there.tolist(), 1.5),
        *((name, by_class, [int(place)], 2.0) for name, place in ends.items()),
    ]
    for name, bounding, losers, times in settings:
        loss = min(run.loss_for(rule, times * rule.limit, losers) for rule in bounding)
        lost = np.zeros(len(run.labels))
        lost[losers] = loss
        counted = replace(run, lost=lost).counted(replicates, seed)
        yield PassChance(
            classes=name,
            class_=None if name == "all" else run.labels[losers[0]],
            times_limit=times,
            lost=loss,
            pass_rate=counted.rate(counted.gate)[GateVerdictCode.passed],
        )


def _lint(run: LintRun, counted: Sequence[VerdictCounts], others: OtherSets) -> LintReport:
    """Report the verdicts on the own test set and on others."""
    rates = np.array([counts.rate(counts.gate) for counts in counted])
    low, high = rates.min(0).tolist(), rates.max(0).tolist()
    fail, open_ = GateVerdictCode.fail, GateVerdictCode.inconclusive
    rules = tuple(_rule_lints(run, counted[0], others))
    return LintReport(
        false_fail_rate=float(rates[0, fail]),
        inconclusive_rate=float(rates[0, open_]),
        false_fail_interval=(low[fail], high[fail]),
        inconclusive_interval=(low[open_], high[open_]),
        discordance=run.discordant,
        losing=(),
        rules=rules,
        advice=tuple(advise(run.plan, rules, rates.T, float(run.support.sum()), run.discordant)),
    )


def _rule_lints(run: LintRun, counted: VerdictCounts, others: OtherSets) -> Iterator[RuleLint]:
    """Yield the rates of every result, its items, shape (m,), and the drop that it detects."""
    plan, drops, items = run.plan, run.detectable(), run.tests.items
    smallest = run.smallest_limits
    failed, undecided = counted.rate(counted.failed), counted.rate(counted.inconclusive)
    # A table without errors lies outside of most that are drawn.
    here = np.nan_to_num(drops, nan=np.inf)
    lowest, highest = np.quantile(others.drops, ENDS, axis=0, method="nearest")
    ends = np.minimum(lowest, here).tolist(), np.maximum(highest, here).tolist()
    results = zip(plan.rules, plan.slices, plan.means, strict=True)
    for i, (rule, part, average) in enumerate(results):
        yield RuleLint(
            id=rule.name,
            class_=plan.labels[i],
            slice=None if part is None else dict(part),
            average_of=None if average is None else average.of,
            columns=average.columns or None if average else None,
            items=round(items[i]) if np.isfinite(items[i]) else 0,
            false_fail_rate=failed[i],
            inconclusive_rate=undecided[i],
            detectable_drop=_finite(float(drops[i])),
            detectable_interval=(_finite(ends[0][i]), _finite(ends[1][i])),
            smallest_limit=_finite(float(smallest[i])),
        )


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
