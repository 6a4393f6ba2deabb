"""The results of a gate: one for each rule, class and baseline, and the verdict on all of them."""

from dataclasses import dataclass
from typing import Literal

from rprime.core.gates.rules import Effect, RuleKind
from rprime.core.gates.verdict import Against
from rprime.core.warnings import Warning  # noqa: A004 (its name)

GateVerdict = Literal["pass", "fail", "inconclusive", "no_rules"]
Verdict = Literal[
    "pass", "fail", "inconclusive", "no_baseline", "not_comparable", "undefined", "waived"
]


@dataclass(kw_only=True, slots=True)
class Result:
    """The result of one rule and, for a per-class rule, one class.

    Parameters
    ----------
    rule, index, class_, confusion
        The rule's id; its index, None for a cell; the class, None overall; the true and the
        predicted class of a cell, else None.
    suspect
        Whether it is inconclusive, beyond the limit, and shown to be worse than before.
    against
        What the difference is from; None for a rule about the value itself.
    observed, baseline, delta
        Values of the candidate and the baseline and their difference; None where they do not
        exist or nothing was compared.
    lower_limit, upper_limit, level
        One-sided limits of the bounded value or difference, each with this confidence.
    p_value, p_adjusted
        Smallest level at which it fails, alone and among all tested results; None untested.
    method, pairing
        Method and pairing of the limits; `point` for `test: "none"`.
    min_detectable_drop
        The true drop, or rise for an upper bound, that the rule fails with 80 % power.
    """

    rule: str
    index: str | None
    class_: str | None
    slice: dict[str, str] | None
    confusion: tuple[str, str] | None
    verdict: Verdict
    effect: Effect
    suspect: bool
    against: Against | None
    observed: float | None
    baseline: float | None
    delta: float | None
    kind: RuleKind
    limit: float
    lower_limit: float | None
    upper_limit: float | None
    level: float | None
    p_value: float | None
    p_adjusted: float | None
    method: str | None
    pairing: Literal["paired", "unpaired"] | None
    n: float | None
    min_detectable_drop: float | None
    reason: str
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """The verdict of a gate, with its results.

    Parameters
    ----------
    judged
        Whether the verdict rests on a result that was judged by its numbers: false if all results
        that fail the gate are `not_comparable`, `undefined` or `no_baseline`, or if no result of
        the gate could be judged.
    alpha
        One-sided level of this look.
    look
        Number of this look at the test set, from 1; None if looks are not counted.
    budget
        The number of looks that share the level of the gate; None if looks are ignored.
    results
        In the order of the rules, of what they are held against, and of the classes.
    """

    verdict: GateVerdict
    judged: bool
    message: str
    alpha: float
    look: int | None
    budget: int | None
    results: tuple[Result, ...]
    warnings: tuple[Warning, ...]
