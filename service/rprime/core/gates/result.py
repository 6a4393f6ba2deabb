"""Result: what a gate found about one rule and class, and about all of them together."""

from dataclasses import dataclass
from typing import Literal

from rprime.core.gates.rules import Effect, Kind
from rprime.core.warnings import Warning  # noqa: A004 (its name)

GateVerdict = Literal["pass", "fail", "inconclusive", "no_rules"]
Verdict = Literal[
    "pass", "fail", "inconclusive", "no_baseline", "not_comparable", "undefined", "waived"
]


@dataclass(frozen=True, kw_only=True)
class Result:
    """What was found about one rule and, for a per-class one, one class.

    Parameters
    ----------
    rule, index, class_
        The rule's id, its index, and the class; None overall.
    verdict, effect
        What was found, and what it leads to.
    observed, baseline, delta
        Values of the candidate and the baseline and their difference; None where they do not
        exist or nothing was compared.
    kind, limit
        Of the rule: what of the index it bounds, and where.
    interval
        One-sided limits, each at the level of the gate, of what is limited: value or difference.
    p_value, p_adjusted
        Smallest level at which it fails, alone and among all tested results; None untested.
    method, pairing
        How the interval was made, and from which pairing; `point` for `test: "none"`.
    n
        Items that the value rests on.
    min_detectable_drop
        The change that can be told from none with 80 % power.
    reason, message
        A stable code, and a sentence for people.
    """

    rule: str
    index: str
    class_: str | None
    verdict: Verdict
    effect: Effect
    observed: float | None
    baseline: float | None
    delta: float | None
    kind: Kind
    limit: float
    interval: tuple[float, float] | None
    p_value: float | None
    p_adjusted: float | None
    method: str | None
    pairing: Literal["paired", "unpaired"] | None
    n: float | None
    min_detectable_drop: float | None
    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """The verdict of a gate, with everything it rests on.

    Parameters
    ----------
    alpha
        One-sided level of every limit, after spending it over looks.
    look
        Which look at the test set this was, from 1; None where the gate ignores looks.
    results
        In the order of the rules, and of the classes within a rule.
    """

    verdict: GateVerdict
    alpha: float
    look: int | None
    results: tuple[Result, ...]
    warnings: tuple[Warning, ...]
