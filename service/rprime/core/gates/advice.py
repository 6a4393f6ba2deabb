"""Advice to the author of a gate from its simulation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rprime.core.arrays import FloatArray
from rprime.core.gates.rules import Gate, Rule
from rprime.core.gates.sentences import number
from rprime.core.gates.verdict import GateVerdictCode, Plan
from rprime.core.quantities import plural

OFTEN = 0.01
"""Largest share of unchanged models that may fail without advice."""
RARELY = 0.8
"""Share of unchanged models that should pass a mandatory rule."""
MILDER = {"min_value": "a lower limit", "max_value": "a higher limit"}
"""What makes a rule easier to pass, by its kind; else a larger limit."""
MOST_NAMED = 5
"""Most classes named one by one for a rule."""


@dataclass(frozen=True, kw_only=True)
class RuleLint:
    """What a rule would do to an unchanged model, for one class or slice or overall.

    Parameters
    ----------
    false_fail_rate, inconclusive_rate
        Shares of the replicates; every fail counts, whatever its effect.
    detectable_drop
        Change of the value at which the rule fails in 80 % of runs, if nothing else got worse;
        None where no possible change is detected that often.
    detectable_interval
        The same on 95 % of other test sets of this size.
    """

    id: str
    class_: str | None
    slice: dict[str, str] | None
    items: int
    false_fail_rate: float
    inconclusive_rate: float
    detectable_drop: float | None
    detectable_interval: tuple[float | None, float | None]

    @property
    def name(self) -> str:
        """The class and the slice, as a subject of a sentence; empty for an overall index."""
        parts = [] if self.class_ is None else [f"class `{self.class_}`"]
        named = [f"`{column}={value}`" for column, value in (self.slice or {}).items()]
        return " of ".join(parts + ([f"slice {', '.join(named)}"] if named else []))


def assumed(gate: Gate, discordant: float | None) -> Iterator[str]:
    """Say what a simulation assumes: the share of the items that only one model gets right."""
    if discordant is not None and any(rule.compares for rule in gate.rules):
        yield (
            f"It is assumed that on {percent(discordant)} of the items only one of candidate and "
            "baseline is right: state the share that you know as `discordance`."
        )
    if gaps := [rule.name for rule in gate.rules if rule.kind == "max_gap"]:
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
        f"An unchanged model fails this gate in {percent(fail[0])} of runs, and leaves it "
        f"inconclusive in {percent(open_[0])}."
    )
    if len(open_) > 1:
        yield (
            f"The {plural(total, 'item', 'are')} a sample: on other test sets of this size it "
            f"would fail in {_span(fail)} and end inconclusive in {_span(open_)} of runs."
        )
    yield from assumed(plan.gate, discordant)
    for rule in plan.gate.rules:
        own = [r for r, owner in zip(rules, plan.rules, strict=True) if owner is rule]
        yield from _rate_advice(rule, own)
        yield from _detectability_advice(rule, own)


def _rate_advice(rule: Rule, rules: Sequence[RuleLint]) -> Iterator[str]:
    if rule.kind == "min_gain":
        yield f"Rule {rule.name} demands a gain, so an unchanged model does not pass it."
        return
    worst = max(rules, key=lambda r: r.false_fail_rate)
    share, milder = percent(worst.false_fail_rate), MILDER.get(rule.kind, "a larger limit")
    if worst.false_fail_rate > OFTEN and rule.test == "none":
        yield (
            f"Rule {rule.name} compares point values: noise alone makes {worst.name or 'it'} fail "
            f'in {share} of runs of an unchanged model. Use `test: "auto"`, or {milder}.'
        )
    elif worst.false_fail_rate > OFTEN:
        where = f" for {worst.name}" if worst.name else ""
        yield f"Rule {rule.name} fails an unchanged model{where} in {share} of runs."
    worst = max(rules, key=lambda r: r.inconclusive_rate)
    if rule.mandatory and worst.inconclusive_rate > 1 - RARELY:
        policy = ' or `policy: "suspects_undecided"`' if rule.knows_suspects else ""
        yield (
            f"Rule {rule.name} must pass, but {worst.name or 'it'} stays inconclusive in "
            f"{percent(worst.inconclusive_rate)} of runs of an unchanged model: take {milder}"
            f"{', more items' if policy else ' or more items'}{policy}."
        )
    best = min(rules, key=lambda r: r.inconclusive_rate)
    if not rule.decides_by.startswith("suspects") or worst.inconclusive_rate <= 1 - RARELY:
        return
    what = "class" if rule.slices is None else "result"
    if best.inconclusive_rate > 1 - RARELY:
        yield (
            f"Rule {rule.name} needs a {what} that passes, but even {best.name or 'the best one'} "
            f"is undecided in {percent(best.inconclusive_rate)} of runs of an unchanged model: "
            f"take {milder} or more items."
        )
    else:
        yield (
            f"Rule {rule.name} leaves {worst.name or 'it'} undecided in "
            f"{percent(worst.inconclusive_rate)} of runs, and passes all the same if another "
            f'{what} passes: its policy is "{rule.decides_by}".'
        )


def _detectability_advice(rule: Rule, rules: Sequence[RuleLint]) -> Iterator[str]:
    # Twice the limit of a change; a bound or a gain says nothing about useful distances.
    most = 2 * rule.limit if rule.knows_suspects else float("inf")
    blind = [r for r in rules if r.detectable_drop is None or r.detectable_drop > most]
    blind.sort(key=lambda r: (r.detectable_drop is not None, -(r.detectable_drop or 0.0)))
    worse = "drop" if rule.guards_below else "rise"
    for result in blind[:MOST_NAMED]:
        subject = result.name or "the test set"
        subject = subject[0].upper() + subject[1:]
        items = plural(result.items, "item") if result.items else "no items"
        found = f"finds no {worse} in 80 % of runs, however large"
        if result.detectable_drop is not None:
            drop = number(result.detectable_drop)
            found = f"finds a {worse} of {drop} in 80 % of runs, and smaller ones less often"
        yield f"{subject} has {items}: rule {rule.name} {found}."
    if (more := len(blind) - MOST_NAMED) > 0:
        others = plural(more, "more class" if rule.slices is None else "more result")
        yield f"The same applies to {others} of rule {rule.name}, not named here."


def percent(share: float) -> str:
    """Write a share, to a hundredth of a percent."""
    return f"{number(round(100 * share, 2))} %"


def _span(shares: Sequence[float]) -> str:
    """Write the range of shares, or the one that all have."""
    low, high = percent(min(shares)), percent(max(shares))
    return low if low == high else f"{low} to {high}"
