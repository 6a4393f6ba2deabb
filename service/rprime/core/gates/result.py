"""The results of a gate: one for each rule and class, and the verdict on all of them."""

from dataclasses import dataclass
from typing import Literal

from rprime.core.gates.rules import Effect, RuleKind
from rprime.core.warnings import Warning  # noqa: A004 (its name)

GateVerdict = Literal["pass", "fail", "inconclusive", "no_rules"]
Verdict = Literal[
    "pass", "fail", "inconclusive", "no_baseline", "not_comparable", "undefined", "waived"
]


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of one rule and, for a per-class rule, one class.

    Parameters
    ----------
    rule, index, class_
        The rule's id, its index, and the class; None overall.
    verdict, effect
        The verdict, and its effect on the gate.
    observed, baseline, delta
        Values of the candidate and the baseline and their difference; None where they do not
        exist or nothing was compared.
    kind, limit
        Of the rule: the bounded quantity and its limit.
    interval
        One-sided limits of the bounded value or difference, each at the level of the gate.
    p_value, p_adjusted
        Smallest level at which it fails, alone and among all tested results; None untested.
    method, pairing
        Method and pairing of the interval; `point` for `test: "none"`.
    n
        The number of items behind the value.
    min_detectable_drop
        The smallest change that the test detects with 80 % power.
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
    kind: RuleKind
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
    """The verdict of a gate, with its results.

    Parameters
    ----------
    alpha
        One-sided level of every limit, after spending it over looks.
    look
        Number of this look at the test set, from 1; None if the gate ignores looks.
    results
        In the order of the rules, and of the classes within a rule.
    """

    verdict: GateVerdict
    alpha: float
    look: int | None
    results: tuple[Result, ...]
    warnings: tuple[Warning, ...]
