"""The tests of the rules, and the verdicts of results and of the gate; all on stacks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import FloatArray
from rprime.core.comparison.difference import Difference
from rprime.core.gates.evidence import Draft, Positions, Statistic
from rprime.core.gates.rules import EFFECTS, JUDGED, Against, Codes, Gate, Rule, VerdictCode
from rprime.core.intervals.proportions import POWER, distance_found, one_sided_quantile
from rprime.core.multiplicity import Blocks, step_down
from rprime.core.slices.slices import Slice

LimitPair = tuple[FloatArray, FloatArray]
SHOWN = 0.05
"""Level at which a change counts as one."""
FAR = 1e-3


class Plan:
    """The rules behind m results, as arrays of shape (m,).

    Parameters
    ----------
    against
        What each difference is from, None for a value.

    Attributes
    ----------
    owners
        Position of the rule of each result in the gate.
    limit, threshold, compares, guards_below, knows_suspects, policies
        Those of the rule.
    range
        Lowest and highest possible value, shape (2, m).
    tested
        Whether a test decides the verdict, not the point value alone.
    among_many
        Whether the rule is about slices, or about values of classes.
    bounds_gap
        Whether the rule bounds the largest difference between slices.
    advisory
        Whether the result can at most warn.
    starts
        Position of the first result of each rule, for each side that it is held against.
    """

    def __init__(
        self,
        gate: Gate,
        rules: tuple[Rule, ...],
        labels: tuple[str | None, ...],
        against: tuple[Against | None, ...],
        slices: tuple[Slice | None, ...],
    ) -> None:
        self.gate, self.rules, self.labels = gate, rules, labels
        self.against, self.slices = against, slices
        known = {id(rule): i for i, rule in enumerate(gate.rules)}
        owners = [known[id(rule)] for rule in rules]
        self.owners = np.array(owners, dtype=np.intp)

        numbers = [(r.limit, r.threshold, *r.target.entry.range) for r in gate.rules]
        flags = [
            (
                r.compares,
                r.guards_below,
                r.knows_suspects,
                r.test == "auto",
                r.kind == "max_gap",
                r.severity == "warn",
                r.slices is not None or (r.classes is not None and not r.compares),
            )
            for r in gate.rules
        ]
        policies = [r.decides_by for r in gate.rules]
        self.limit, self.threshold, *ends = np.reshape(numbers, (-1, 4))[self.owners].T
        self.range: FloatArray = np.array(ends)
        of_results: Flags = np.reshape(np.array(flags, dtype=bool), (-1, 7))[self.owners].T
        self.compares, self.guards_below, self.knows_suspects, self.tested = of_results[:4]
        self.bounds_gap, self.advisory, self.among_many = of_results[4:]
        self.policies: NDArray[np.str_] = np.array(policies, dtype=str)[self.owners]
        held = list(zip(owners, against, strict=True))
        self.starts = [i for i, one in enumerate(held) if i == 0 or one != held[i - 1]]


def plan_of(gate: Gate, drafts: Sequence[Draft]) -> Plan:
    """Return the plan of all results, in the order of the rules."""
    every = [
        (draft.rule, label, draft.against, draft.slice)
        for draft in drafts
        for label in draft.rows.labels
    ]
    rules, labels, against, slices = zip(*every, strict=True) if every else ((),) * 4
    return Plan(gate, rules, labels, against, slices)


@dataclass(frozen=True, eq=False)
class RuleTests:
    """The tests of the m results of some rules; arrays of shape (..., m), NaN where unknown."""

    drafts: Sequence[Draft]
    plan: Plan

    @cached_property
    def parts(self) -> list[tuple[Draft, Positions, Positions]]:
        """Each draft with the rows of its results, and the positions of these."""
        start, found = 0, []
        for draft in self.drafts:
            rows = draft.rows.positions
            there = np.flatnonzero(rows >= 0)
            found.append((draft, rows[there], start + there))
            start += rows.size
        return found

    @cached_property
    def groups(self) -> list[tuple[Statistic, Positions]]:
        """The statistics of the results, those of one source together, and their positions."""
        members: dict[object, list[tuple[Any, Positions]]] = {}
        for draft, rows, places in self.parts:
            if rows.size:
                every = np.array_equal(rows, np.arange(draft.fixed.shape[-1]))
                statistic = draft.statistic if every else draft.statistic[..., rows]
                members.setdefault(statistic.source, []).append((statistic, places))
        joined = (tuple(zip(*own, strict=True)) for own in members.values())
        return [(type(own[0]).join(own), np.concatenate(places)) for own, places in joined]

    @cached_property
    def fixed(self) -> Codes:
        """Codes of `VerdictCode` where no test decides the verdict, else `undecided`."""
        shape = (*self.drafts[0].fixed.shape[:-1], len(self.plan.rules))
        found = np.full(shape, VerdictCode.not_comparable, dtype=np.uint8)
        for draft, rows, places in self.parts:
            found[..., places] = draft.fixed[..., rows]
        return found

    def _of_statistics(self, compute: Callable[[Statistic, Positions], Any]) -> FloatArray:
        """Compute two numbers for each result, shape (2, ..., m)."""
        found = np.full((2, *self.fixed.shape), np.nan)
        for statistic, places in self.groups:
            found[..., places] = compute(statistic, places)
        return found

    @cached_property
    def values(self) -> LimitPair:
        """The values of the candidate and, for a difference, of the baseline."""
        observed, baseline = self._of_statistics(lambda one, _: (one.candidate, one.baseline))
        return observed, np.where(self.plan.compares, baseline, np.nan)

    @cached_property
    def point(self) -> FloatArray:
        """The value or difference that the rule bounds; NaN where undefined."""
        return self._of_statistics(lambda one, _: one.value)[0]

    @cached_property
    def items(self) -> FloatArray:
        """The number of items behind each value."""
        found = np.full(self.fixed.shape, np.nan)
        for draft, rows, places in self.parts:
            found[..., places] = draft.items[..., rows]
        return found

    @cached_property
    def error(self) -> FloatArray:
        """Standard error, to first order."""
        return self._of_statistics(lambda one, _: one.standard_error)[0]

    @cached_property
    def unchanged(self) -> FloatArray:
        """Variance of the difference of a model that is as good as before, to first order.

        A share that moved by d among n items has d n changed ones on top, of which those that are
        shown are left out. At least one item has changed.
        """
        shown = np.abs(self.point) - one_sided_quantile(SHOWN) * self.error
        return np.maximum(self.error**2 - np.fmax(shown, 0.0) / self.items, self.items**-2.0)

    @cached_property
    def p(self) -> LimitPair:
        """Smallest level at which it demonstrably violates, and keeps, the rule.

        Among slices or classes small tails decide, so the value of a slice or class, or the largest
        difference between slices, violates its limit only if the exact tail says so, too.
        """
        fail, keep = self._turned(lambda one, places: one.p(self.plan.threshold[places]))
        among_many = self.plan.among_many & (fail < self.plan.gate.level)
        if among_many.any():
            fail = np.where(among_many, np.fmax(fail, self._turned(self._tails)[0]), fail)
        return fail, keep

    def _tails(self, one: Statistic, places: Positions) -> LimitPair:
        """Return exact p-values; NaN for a difference from a baseline, which has no such tail."""
        if isinstance(one, Difference):
            return one.value * np.nan, one.value * np.nan
        return one.tails(self.plan.threshold[places], self.plan.range[:, places])

    @cached_property
    def p_worse(self) -> FloatArray:
        """Smallest level at which it is shown to be worse than no change."""
        return self._turned(lambda one, _: one.p_of_no_change)[0]

    def may_be_worse(self, level: float) -> NDArray[np.bool_]:
        """Whether the limits exclude no change: elsewhere `p_worse` is not below the level.

        The exact test of few changes, which `p_worse` prefers, is the more cautious one down to
        p-values of `FAR`.
        """
        low, high = self.limits(max(level, FAR))
        return np.where(self.plan.guards_below, high < 0, low > 0)

    def _turned(self, compute: Callable[[Statistic, Positions], LimitPair]) -> LimitPair:
        """Return p-values of being below and above, that of the failure first."""
        below, above = np.where(self.plan.tested, self._of_statistics(compute), np.nan)
        guards_below = self.plan.guards_below
        return np.where(guards_below, below, above), np.where(guards_below, above, below)

    def limits(self, level: float) -> FloatArray:
        """Return the one-sided limits, shape (2, ..., m); NaN where points are compared."""
        if level not in self._limits:
            found = self._of_statistics(lambda one, _: one.limits(level))
            self._limits[level] = np.where(self.plan.tested, found, np.nan)
        return self._limits[level]

    @cached_property
    def _limits(self) -> dict[float, FloatArray]:
        """The limits found so far, by level: suspects are judged by those of the results."""
        return {}

    def detectable(self, level: float, together: int) -> FloatArray:
        """Return the true drop that the rule fails with power .8; a rise for an upper bound.

        NaN where no possible change is found so often. Where so many results are tested `together`,
        the p-value of the only one that got worse must pass Holm's first step among them.

        Notes
        -----
        The variance is that of an unchanged model, plus (d - d^2) / n for a drop d of a share
        among n items, which comes as d n losses on top.
        """
        plan, (observed, baseline) = self.plan, self.values
        below, limit = plan.guards_below, plan.limit
        pairs = self._of_statistics(lambda one, _: np.array([one.pairs, one.pairs]))[0]
        own = np.where(plan.tested, level / max(together, 1) / pairs, 0.5)
        error = np.where(plan.compares, np.sqrt(self.unchanged), self.error)
        needed = distance_found(own, error)
        distance = np.where(below, observed - limit, limit - observed)
        found = np.maximum(np.where(below, needed - plan.threshold, needed + limit), 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            fails_from = _reached(limit, self.unchanged, one_sided_quantile(own) ** 2, self.items)
            strength = one_sided_quantile(1 - POWER) ** 2
            more = np.fmax(found, _reached(fails_from, self.unchanged, strength, self.items))
        found = np.where(plan.knows_suspects, more, found)
        room = np.where(below, baseline - plan.range[0], plan.range[1] - baseline)
        change = np.where(found <= room, found, np.nan)
        if plan.compares.all():
            return change
        more = distance_found(own, self.error * self._spread(needed))
        return np.where(plan.compares, change, np.maximum(distance, 0.0) + np.maximum(more, needed))

    def _spread(self, beyond: FloatArray) -> FloatArray:
        """Return by how much the error is larger where a value is so far beyond its limit.

        Notes
        -----
        As that of a share. Of the largest gap one slice has fallen, from the mean of all.
        """
        plan, low = self.plan, self.plan.range[0]
        width = plan.range[1] - low
        centre = self._of_statistics(lambda one, _: np.array([one.centre, one.centre]))[0]
        gaps = plan.bounds_gap
        with np.errstate(all="ignore"):
            fallen = np.where(plan.guards_below, plan.limit - beyond, plan.limit + beyond)
            fallen = np.where(gaps, centre - plan.limit - beyond, fallen)
            here, there = (np.clip((part - low) / width, 0, 1) for part in (centre, fallen))
            ratio = there * (1 - there) / (here * (1 - here))
            ratio = np.where(gaps, (1 + ratio) / 2, ratio)
        return np.sqrt(np.where(np.isfinite(ratio), ratio, 1.0))


def _reached(
    start: FloatArray, variance: FloatArray, square: FloatArray, items: FloatArray
) -> FloatArray:
    """Solve d = start + z sqrt(variance + (d - d^2) / items) for d; NaN without a solution."""
    unit = square / items
    half = start + unit / 2
    root = np.sqrt(half**2 - (1 + unit) * (start**2 - square * variance))
    return np.asarray((half + root) / (1 + unit))


Flags = NDArray[np.bool_]

ROUNDING = 1e-12
"""A point value this close to its limit equals it: .9 - .85 is not quite .05 in binary."""
_IS_JUDGED = np.isin(np.arange(VerdictCode.undecided), JUDGED)


class GateVerdictCode(IntEnum):
    """The verdict of a gate with rules; the names are those of the contract."""

    passed = 0
    fail = 1
    inconclusive = 2


@dataclass(frozen=True, eq=False)
class Decisions:
    """The verdicts on m results; arrays of shape (..., m).

    The p-values are of the failure, alone and adjusted over all results that could fail; NaN
    without a test. A suspect is inconclusive, beyond the limit, and shown to be worse than before;
    an unseen result is inconclusive and beyond the limit, but could not be tested.
    """

    verdicts: Codes
    p_value: FloatArray
    p_adjusted: FloatArray
    suspect: Flags
    unseen: Flags

    def blocking(self, plan: Plan) -> Flags:
        """Whether the result is inconclusive in a way that keeps the gate from passing."""
        suspect = self.suspect & (plan.policies != "proven_only")
        return (suspect | self.unseen) & (self.verdicts == VerdictCode.inconclusive)


def decide(tests: "RuleTests", level: float, blocks: Blocks | None = None) -> Decisions:
    """Decide the verdict of every result, before waivers, at the one-sided level of this look.

    `blocks` returns the joint laws of results, for max-T; without any, p-values are adjusted by
    Holm's procedure.

    Notes
    -----
    Fail needs the p-value adjusted over all tested results below the level (Holm 1979; Westfall,
    Young 1993), pass the limit alone: that every mandatory result must pass is an
    intersection-union test, which needs no adjustment (Schultzberg et al. 2024). A missing number
    satisfies no comparison, so a missing value cannot pass.
    """
    plan, undecided = tests.plan, tests.fixed == VerdictCode.undecided
    p_fail, p_pass = tests.p
    p_value = np.where(undecided, p_fail, np.nan)
    p_adjusted = step_down(p_value, level, blocks)
    shown = (p_pass < level) & ~np.isnan(p_value)
    tested = np.where(shown, VerdictCode.passed, VerdictCode.inconclusive)
    tested = np.where(p_adjusted < level, VerdictCode.fail, tested)
    margin = np.where(plan.guards_below, 1, -1) * (tests.point - plan.threshold)
    keeps = margin >= -ROUNDING * np.maximum(1.0, np.abs(plan.threshold))
    plain = np.where(keeps, VerdictCode.passed, VerdictCode.fail)
    verdicts = np.where(plan.tested, tested, plain)
    verdicts = np.where(undecided, verdicts, tests.fixed).astype(np.uint8)
    beyond = ~keeps & np.isfinite(tests.point)
    open_ = (verdicts == VerdictCode.inconclusive) & beyond
    suspect = open_ & plan.knows_suspects & ~np.isnan(p_value)
    if suspect.any():
        suspect &= tests.may_be_worse(level)
    if (asked := suspect.any(-1)).any():
        worse = np.where(undecided & plan.knows_suspects, tests.p_worse, np.nan)
        suspect[asked] &= step_down(worse[asked], level, blocks) < level
    return Decisions(verdicts, p_value, p_adjusted, suspect, open_ & np.isnan(p_value))


def effects(decisions: Decisions, plan: Plan) -> Codes:
    """Return the effect of each result, as positions in `EFFECTS`, shape (..., m).

    What keeps the gate from passing warns at least, whatever `on` says; a suspect fails under
    `suspects_fail`.
    """
    warn, fail = EFFECTS.index("warn"), EFFECTS.index("fail")
    of_verdicts = np.zeros(VerdictCode.undecided, dtype=np.uint8)
    of_verdicts[VerdictCode.fail], of_verdicts[VerdictCode.waived] = fail, warn
    for name, effect in plan.gate.effects.items():
        of_verdicts[VerdictCode[name]] = EFFECTS.index(effect)
    codes = of_verdicts[decisions.verdicts]
    blocking = decisions.blocking(plan)
    fails = blocking & decisions.suspect & (plan.policies == "suspects_fail")
    codes = np.maximum(codes, np.where(blocking, warn, 0))
    codes = np.where(fails, fail, codes)
    return np.where(plan.advisory, np.minimum(codes, warn), codes)


def conclude(decisions: Decisions, effect: Codes, plan: Plan) -> NDArray[np.intp]:
    """Return the verdict of the gate, as codes of `GateVerdictCode` of shape (...).

    Notes
    -----
    A result that need not pass must have been answered: one that is not comparable or undefined
    keeps the gate from passing, and so does one beyond its limit that could not be tested, a
    suspect (except under `proven_only`), and a rule without any result that passes or is waived
    (under `proven_only`: that is testable). Of an advisory rule, only what fails or could not be
    judged at all does.
    """
    verdicts, inconclusive = decisions.verdicts, decisions.verdicts == VerdictCode.inconclusive
    passes = (verdicts == VerdictCode.passed) | ((effect == EFFECTS.index("pass")) & inconclusive)
    judged = _IS_JUDGED[verdicts]
    kept = judged & (verdicts != VerdictCode.fail)
    answered = kept & ~decisions.blocking(plan)
    enough = np.where(plan.policies == "all_must_pass", passes, answered | plan.advisory & kept)
    tested = judged & ~(inconclusive & np.isnan(decisions.p_value))
    accepted = passes | (verdicts == VerdictCode.waived)
    assessed = accepted | plan.advisory & judged | tested & (plan.policies == "proven_only")
    every_rule = np.logical_or.reduceat(assessed, plan.starts, axis=-1).all(-1)
    passed = enough.all(-1) & every_rule
    failed = (effect == EFFECTS.index("fail")).any(-1)
    found = np.where(passed, GateVerdictCode.passed, GateVerdictCode.inconclusive)
    return np.where(failed, GateVerdictCode.fail, found)
