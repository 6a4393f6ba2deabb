"""Advice to the author of a gate from its simulation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rprime.core.arrays import FloatArray
from rprime.core.gates.rules import Rule
from rprime.core.gates.sentences import number
from rprime.core.gates.verdict import GateVerdictCode, Plan

OFTEN = 0.01
"""Largest share of unchanged models that may fail without advice."""
RARELY = 0.8
"""Share of unchanged models that should pass a mandatory rule."""
MOST_NAMED = 5
"""Most classes named one by one for a rule."""


@dataclass(frozen=True, kw_only=True)
class RuleLint:
    """What a rule would do to an unchanged model, for one class or slice or overall.

    Parameters
    ----------
    slice
        Column and value of its slice; None: it is about all items.
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


def advise(
    plan: Plan, rules: Sequence[RuleLint], gate_rates: FloatArray, total: float
) -> Iterator[str]:
    """Explain the rates in sentences, first of the gate, then of its rules.

    Parameters
    ----------
    gate_rates
        Shares of the gate's verdicts by `GateVerdictCode`, shape (3, runs): first those on the
        own table, then those on other ones.
    """
    fail, open_ = gate_rates[[GateVerdictCode.fail, GateVerdictCode.inconclusive]].tolist()
    yield (
        f"An unchanged model fails this gate in {_percent(fail[0])} of runs, and ends inconclusive "
        f"in {_percent(open_[0])}."
    )
    if len(open_) > 1:
        yield (
            f"The {number(total)} items are a sample: on other test sets of this size it would "
            f"fail in {_percent(min(fail))} to {_percent(max(fail))} and end inconclusive in "
            f"{_percent(min(open_))} to {_percent(max(open_))} of runs."
        )
    for rule in plan.gate.rules:
        own = [r for r, owner in zip(rules, plan.rules, strict=True) if owner is rule]
        yield from _false_fail_advice(rule, own)
        yield from _inconclusive_advice(rule, own)
        yield from _detectability_advice(rule, own)


def _false_fail_advice(rule: Rule, rules: Sequence[RuleLint]) -> Iterator[str]:
    worst = max(rules, key=lambda r: r.false_fail_rate)
    if worst.false_fail_rate <= OFTEN:
        return
    share = _percent(worst.false_fail_rate)
    if rule.test == "none":
        yield (
            f"Rule {rule.name} compares point values: noise alone makes {worst.name or 'it'} fail "
            f'in {share} of runs of an unchanged model. Use `test: "auto"`, or a larger limit.'
        )
    else:
        yield f"Rule {rule.name} {worst.name or 'it'} fails an unchanged model in {share} of runs."


def _inconclusive_advice(rule: Rule, rules: Sequence[RuleLint]) -> Iterator[str]:
    worst = max(rules, key=lambda r: r.inconclusive_rate)
    if not rule.mandatory or worst.inconclusive_rate <= 1 - RARELY:
        return
    yield (
        f"Rule {rule.name} must pass, but {worst.name or 'it'} stays inconclusive in "
        f"{_percent(worst.inconclusive_rate)} of runs of an unchanged model: take a larger limit, "
        f'more items or `policy: "suspects_undecided"`.'
    )


def _detectability_advice(rule: Rule, rules: Sequence[RuleLint]) -> Iterator[str]:
    # Twice the limit of a change; a lower bound says nothing about useful distances.
    most = 2 * rule.limit if rule.compares else float("inf")
    blind = [r for r in rules if r.detectable_drop is None or r.detectable_drop > most]
    blind.sort(key=lambda r: (r.detectable_drop is not None, -(r.detectable_drop or 0.0)))
    for result in blind[:MOST_NAMED]:
        subject = result.name or f"the test set of {rule.target.name}"
        subject = subject[0].upper() + subject[1:]
        items = f"{number(result.items)} items" if result.items else "no items"
        yield f"{subject} has {items}: {_undetected(rule, result)}."
    if (more := len(blind) - MOST_NAMED) > 0:
        what = "classes" if rule.slices is None else "results"
        yield f"The same applies to {more} more {what} of rule {rule.name}, not named here."


def _undetected(rule: Rule, result: RuleLint) -> str:
    worse = "drop" if rule.guards_below else "rise"
    if result.detectable_drop is None:
        return f"rule {rule.name} detects no {worse} in 80 % of runs, however large"
    drop = number(result.detectable_drop)
    return f"rule {rule.name} does not detect a {worse} below {drop} in 80 % of runs"


def _percent(share: float) -> str:
    return f"{number(round(100 * share, 2))} %"
