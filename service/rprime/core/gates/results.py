"""The results of a gate: their members, and where each has its value from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np

from rprime.core.comparison.compare import Comparison
from rprime.core.gates.evidence import RuleEvidence
from rprime.core.gates.kinds import EFFECTS, VERDICTS, Against, Codes, Effect, Verdict, VerdictCode
from rprime.core.gates.rules import Waiver
from rprime.core.gates.verdict import (
    Decisions,
    Plan,
    RuleTests,
    apply_waivers,
    decide,
    effects,
    joint_laws,
)
from rprime.core.published import PUBLISHED
from rprime.core.warnings import Warning  # noqa: A004 (its name)

GateVerdict = Literal["pass", "fail", "inconclusive", "no_rules", "no_baseline"]


@dataclass(kw_only=True, repr=False)
class Result:
    """The result of a rule, overall or for one class or slice, against one baseline."""

    __pydantic_config__: ClassVar = PUBLISHED

    rule: str
    """The id of the rule."""
    index: str | None
    """The key of the index; null for a cell."""
    class_: str | None
    """The class; null for an overall index."""
    verdict: str
    """The finding."""
    effect: Effect
    """The effect on the verdict of the gate."""
    suspect: bool
    """Whether it is undecided, but shown to be worse while it lies beyond the limit, or beyond the
    limit if it were tested alone."""
    against: Against | None
    """What the difference is from; null for a rule about the value itself."""
    observed: float | None
    """The value of the candidate."""
    baseline: float | None
    """The value of the baseline, or of the anchor."""
    delta: float | None
    """Candidate minus baseline."""
    kind: str
    """What the rule bounds: the value, or its change."""
    limit: float
    """The limit of the rule."""
    lower_limit: float | None
    """One-sided lower limit of the delta, or of the value."""
    upper_limit: float | None
    """One-sided upper limit of the delta, or of the value."""
    level: float | None
    """The confidence of each limit: 1 - alpha, as 0.95. Null without limits."""
    p_value: float | None
    """The smallest alpha at which the result, tested alone, would fail."""
    p_adjusted: float | None
    """The same among all results that were tested together: it fails below alpha."""
    method: str | None
    """The method of the limits; `point` where point values are compared."""
    pairing: Literal["paired", "unpaired"] | None
    """Whether the items of both sides were paired."""
    n: float | None
    """The number of items behind the value."""
    min_detectable_drop: float | None
    """The true drop, or rise for an upper bound, that the rule fails in 8 of 10 cases, given its
    limit and the number of results."""
    reason: str
    """Why it has this verdict: a stable code."""
    slice: dict[str, str] | None = None
    """Column and value of the slice; absent for all items."""
    confusion: tuple[str, str] | None = None
    """The true and the predicted class of a cell; absent for an index."""
    missing_items: int | None = None
    """The number of items of the baseline behind it that are missing; absent if none is."""
    average_of: int | None = None
    """The number of classes or slices whose mean it is; absent for a single result."""
    columns: tuple[str, ...] | None = None
    """The columns of these slices; absent for classes."""
    message: str = ""
    """The finding in a sentence."""

    def __repr__(self) -> str:
        return f"<Result: {self.verdict}, {self.message}>"


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """The verdict of a gate, with its results.

    Parameters
    ----------
    judged
        Whether the verdict rests on a result that was judged by its numbers: false if all results
        that fail the gate are `not_comparable`, `undefined` or `no_baseline`, or if no result of
        the gate could be judged.
    undecided
        How many results neither pass nor fail, without those that are waived.
    alpha
        One-sided level of this look.
    look
        Number of this look at the test set, from 1; None if looks are not counted.
    max_looks
        The number of looks that share the level of the gate; None if looks are ignored.
    results
        In the order of the rules, of what they are held against, and of the classes.
    """

    verdict: GateVerdict
    judged: bool
    undecided: int
    message: str
    alpha: float
    look: int | None
    max_looks: int | None
    results: tuple[Result, ...]
    warnings: tuple[Warning, ...]


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

    @cached_property
    def outcomes(self) -> list[tuple[Verdict, Effect, bool]]:
        """The verdict and the effect of each result, and whether it is suspect."""
        columns = (self.decisions.verdicts, self.effects, self.decisions.suspect)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [(VERDICTS[code], EFFECTS[effect], suspect) for code, effect, suspect in rows]

    def results(self) -> Iterator[Result]:
        """Yield every result, without its message."""
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
        verdict, effect, suspect = self.outcomes[i]
        numbers["n"] = int(n) if n is not None and n == round(n) else n
        bounded = numbers["lower_limit"] is not None or numbers["upper_limit"] is not None
        return Result(
            **numbers,
            rule=rule.name,
            index=rule.index or None,
            class_=self.plan.labels[i],
            slice=None if part is None else dict(part),
            confusion=rule.confusion,
            verdict=verdict.name,
            effect=effect,
            suspect=suspect,
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

    def _reason(self, draft: RuleEvidence, place: int, i: int) -> str:
        waiver, verdict = self.waivers[i], self.outcomes[i][0]
        if waiver is not None and verdict is not VERDICTS[VerdictCode.waived]:
            return "waiver_expired" if self.today > waiver.expires else "waiver_exceeded"
        if verdict.reason:
            return verdict.reason
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
        """Whether only missing items keep it from passing or being compared, or make it suspect."""
        kept = not self.plan.tested[i] or self.tests.p[1][i] < self.level
        return (
            bool(kept or self.decisions.missing[i])
            or self.decisions.verdicts[i] == VerdictCode.not_comparable
        )


def _missing_items(evidence: RuleEvidence, place: int) -> int | None:
    """Return how many items of the baseline are missing behind a result; None for none."""
    if evidence.missing is None:
        return None
    row = evidence.rows.positions[place]
    return int(evidence.missing[row]) or None if row >= 0 else None
