"""Advice: what a rehearsal of a gate says to whoever wrote it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rprime.core.gates.rules import Rule
from rprime.core.gates.sentences import number
from rprime.core.gates.verdict import Outcome, Plan

OFTEN = 0.01
"""Share of unchanged models above which a fail is noise worth a sentence."""
RARELY = 0.8
"""Share of unchanged models that a rule which must pass should let pass."""
MOST_NAMED = 5
"""Classes that are named one by one for a rule."""


@dataclass(frozen=True, kw_only=True)
class RuleLint:
    """What a rule would do to an unchanged model, for one class or overall.

    Parameters
    ----------
    false_fail_rate, inconclusive_rate
        Shares of the replicates; a fail counts whatever effect it has.
    detectable_drop
        Change of the value at which the rule fails in 80 % of runs, if nothing else got worse;
        None where no possible change is seen so often.
    """

    id: str
    class_: str | None
    false_fail_rate: float
    inconclusive_rate: float
    detectable_drop: float | None


def advise(
    plan: Plan,
    rules: Sequence[RuleLint],
    gate_rates: Sequence[float],
    sizes: Mapping[str | None, float],
) -> Iterator[str]:
    """Say in sentences what the numbers mean, the gate first.

    Parameters
    ----------
    plan
        Of the results.
    rules
        One for each result.
    gate_rates
        Shares of the gate's verdicts, by `Outcome`.
    sizes
        Items of each class, and under None of all.
    """
    if not plan.rules:
        yield "The gate has no rules: it never passes."
        return
    fail, open_ = gate_rates[Outcome.fail], gate_rates[Outcome.inconclusive]
    yield (
        f"An unchanged model fails this gate in {_percent(fail)} of runs, and ends inconclusive "
        f"in {_percent(open_)}."
    )
    for rule in plan.gate.rules:
        own = [r for r, owner in zip(rules, plan.rules, strict=True) if owner is rule]
        yield from _on_noise(rule, own)
        yield from _on_proof(rule, own)
        yield from _on_sight(rule, own, sizes)


def _on_noise(rule: Rule, rules: Sequence[RuleLint]) -> Iterator[str]:
    worst = max(rules, key=lambda r: r.false_fail_rate)
    if worst.false_fail_rate <= OFTEN:
        return
    share = _percent(worst.false_fail_rate)
    if rule.test == "none":
        yield (
            f"Rule {rule.name} compares point values: noise alone makes{_of(worst)} fail in "
            f'{share} of runs of an unchanged model. Use `test: "auto"`, or a larger limit.'
        )
    else:
        yield f"Rule {rule.name}{_of(worst)} fails an unchanged model in {share} of runs."


def _on_proof(rule: Rule, rules: Sequence[RuleLint]) -> Iterator[str]:
    worst = max(rules, key=lambda r: r.inconclusive_rate)
    if not rule.mandatory or worst.inconclusive_rate <= 1 - RARELY:
        return
    yield (
        f"Rule {rule.name} must pass, but{_of(worst)} stays inconclusive in "
        f"{_percent(worst.inconclusive_rate)} of runs of an unchanged model: take a larger limit, "
        f'more items or `policy: "not_fail"`.'
    )


def _on_sight(
    rule: Rule, rules: Sequence[RuleLint], sizes: Mapping[str | None, float]
) -> Iterator[str]:
    blind = [r for r in rules if r.detectable_drop is None or r.detectable_drop > _wanted(rule)]
    blind.sort(key=lambda r: (r.detectable_drop is not None, -(r.detectable_drop or 0.0)))
    for result in blind[:MOST_NAMED]:
        items = _items(sizes.get(result.class_))
        yield f"{_who(rule, result)} has {items}: {_unseen(rule, result)}."
    if (more := len(blind) - MOST_NAMED) > 0:
        yield f"The same holds for {more} more classes of rule {rule.name}, not named here."


def _wanted(rule: Rule) -> float:
    """Twice the limit of a change; a floor says nothing about how far below it matters."""
    return 2 * rule.limit if rule.compares else float("inf")


def _unseen(rule: Rule, result: RuleLint) -> str:
    worse = "drop" if rule.guards_below else "rise"
    if result.detectable_drop is None:
        return f"rule {rule.name} sees no {worse} in 80 % of runs, however large"
    drop = number(result.detectable_drop)
    return f"a {worse} below {drop} is not seen by rule {rule.name} in 80 % of runs"


def _who(rule: Rule, result: RuleLint) -> str:
    return f"The test set of {rule.index}" if result.class_ is None else f"Class `{result.class_}`"


def _of(result: RuleLint) -> str:
    return " it" if result.class_ is None else f" class `{result.class_}`"


def _items(count: float | None) -> str:
    return "no items" if not count else f"{number(count)} items"


def _percent(share: float) -> str:
    return f"{number(round(100 * share, 2))} %"
