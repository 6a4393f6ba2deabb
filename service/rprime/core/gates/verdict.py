"""The tests of the rules, and the verdicts of results and of the gate; all on stacks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rprime.core import special
from rprime.core.arrays import FloatArray, or_nothing
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.difference import Difference
from rprime.core.gates.evidence import Positions, RuleEvidence, Statistic
from rprime.core.gates.kinds import EFFECTS, VERDICTS, Against, Codes, VerdictCode
from rprime.core.gates.rules import Gate, Waiver
from rprime.core.intervals.groups import FEW_EFFECTIVE_GROUPS
from rprime.core.intervals.proportions import POWER, distance_found, one_sided_quantile
from rprime.core.multiplicity import Block, Blocks, step_down

Flags = NDArray[np.bool_]
LimitPair = tuple[FloatArray, FloatArray]
SHOWN = 0.05
"""Level at which a change counts as one."""


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
    limit, threshold, compares, guards_below, two_sided, tolerates
        Those of the rule.
    range
        Lowest and highest possible value, shape (2, m).
    tested
        Whether a test decides the verdict, not the point value alone.
    among_many
        Whether the rule is about slices, or about values of classes.
    averages
        Whether the result is an average of others.
    decisive
        Whether the result must pass for its rule to pass: each one, or the average alone.
    shares_suspicion
        Whether the result can be suspect beside an average.
    bounds_gap
        Whether the rule bounds the largest difference between slices.
    advisory
        Whether the result can at most warn.
    """

    def __init__(self, gate: Gate, evidence: Sequence[RuleEvidence]) -> None:
        self.gate = gate
        results = [(draft, label) for draft in evidence for label in draft.rows.labels]
        self.rules = tuple(draft.rule for draft, _ in results)
        self.labels = tuple(label for _, label in results)
        self.against = tuple(draft.against for draft, _ in results)
        self.slices = tuple(draft.slice for draft, _ in results)
        self.means = tuple(draft.average for draft, _ in results)
        places = {id(rule): i for i, rule in enumerate(gate.rules)}
        owners = [places[id(rule)] for rule in self.rules]
        self.owners = np.array(owners, dtype=np.intp)

        numbers = [(r.limit, r.threshold, *r.target.entry.range) for r in gate.rules]
        flags = [
            (
                r.traits.compares,
                r.traits.guards_below,
                r.traits.two_sided,
                r.traits.tolerates,
                r.test == "auto",
                r.traits.between_slices,
                r.severity == "warn",
                r.slices is not None or (r.classes is not None and not r.traits.compares),
                r.decides_by.averages,
            )
            for r in gate.rules
        ]
        self.limit, self.threshold, *ends = np.reshape(numbers, (-1, 4))[self.owners].T
        self.range: FloatArray = np.array(ends)
        of_results: Flags = np.reshape(np.array(flags, dtype=bool), (-1, 9))[self.owners].T
        self.compares, self.guards_below, self.two_sided, self.tolerates = of_results[:4]
        self.tested, self.bounds_gap, self.advisory, self.among_many, averaged = of_results[4:]
        self.averages: Flags = np.array([mean is not None for mean in self.means], dtype=bool)
        alone: Flags = np.array([draft.alone for draft, _ in results], dtype=bool)
        self.decisive: Flags = ~averaged | self.averages | alone
        self.shares_suspicion: Flags = averaged & ~self.averages & ~alone


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The results that missing items could change, shape (m,), with these counted as wrong.

    `p_fail` and `p_keep` are the smallest levels at which each then violates, and keeps, its rule,
    and `p_worse` the one at which a difference is then worse than no change, by the exact test;
    `point` is the value or difference. NaN elsewhere. A bound on both sides has the graver of two
    cases: it also counts missing items as right.
    """

    counted: Flags
    p_fail: FloatArray
    p_keep: FloatArray
    p_worse: FloatArray
    point: FloatArray

    def keeps(self, plan: Plan) -> Flags:
        """Return whether the point value keeps its rule."""
        return _keeps(plan, self.point)


@dataclass(frozen=True, eq=False)
class RuleTests:
    """The tests of the m results of some rules; arrays of shape (..., m), NaN where unknown."""

    evidence: Sequence[RuleEvidence]
    plan: Plan

    @cached_property
    def parts(self) -> list[tuple[RuleEvidence, Positions, Positions]]:
        """Each draft with the rows of its results, and the positions of these."""
        start, parts = 0, []
        for draft in self.evidence:
            rows = draft.rows.positions
            there = np.flatnonzero(rows >= 0)
            parts.append((draft, rows[there], start + there))
            start += rows.size
        return parts

    @cached_property
    def groups(self) -> list[tuple[Statistic, Positions]]:
        """The statistics of the results, those of one source together, and their positions."""
        members: dict[object, list[tuple[Any, Positions]]] = {}
        for draft, rows, places in self.parts:
            if rows.size:
                size = draft.fixed.shape[-1]
                every = rows.size == size and not np.count_nonzero(rows != np.arange(size))
                statistic = draft.statistic if every else draft.statistic[..., rows]
                members.setdefault(statistic.source, []).append((statistic, places))
        joined = (tuple(zip(*group, strict=True)) for group in members.values())
        return [
            (type(statistics[0]).join(statistics), np.concatenate(places))
            for statistics, places in joined
        ]

    @cached_property
    def fixed(self) -> Codes:
        """Codes of `VerdictCode` where no test decides the verdict, else `undecided`."""
        shape = (*self.evidence[0].fixed.shape[:-1], len(self.plan.rules))
        codes = np.full(shape, VerdictCode.not_comparable, dtype=np.uint8)
        for draft, rows, places in self.parts:
            codes[..., places] = draft.fixed[..., rows]
        absent = [
            draft.rows.absent.get(label, VerdictCode.not_comparable) if row < 0 else None
            for draft in self.evidence
            for label, row in zip(draft.rows.labels, draft.rows.positions, strict=True)
        ]
        for place, code in enumerate(absent):
            if code is not None:
                codes[..., place] = code
        return codes

    def _of_statistics(self, compute: Callable[[Statistic, Positions], Any]) -> FloatArray:
        """Compute two numbers for each result, shape (2, ..., m)."""
        numbers = np.full((2, *self.fixed.shape), np.nan)
        for statistic, places in self.groups:
            numbers[..., places] = compute(statistic, places)
        return numbers

    @cached_property
    def few_groups(self) -> Flags:
        """Whether so few effective groups are behind a result that it must not pass, (..., m)."""
        numbers = np.full(self.fixed.shape, np.nan)
        for draft, rows, places in self.parts:
            if draft.effective_groups is not None:
                numbers[..., places] = draft.effective_groups[..., rows]
        return numbers < FEW_EFFECTIVE_GROUPS

    @cached_property
    def worst(self) -> "WorstCase | None":
        """The results with missing items counted as wrong; None where none are missing."""
        if not any(evidence.worst for evidence in self.evidence):
            return None
        shape, start = self.fixed.shape, 0
        counted, numbers = np.zeros(shape[-1], dtype=bool), np.full((4, *shape), np.nan)
        for draft in self.evidence:
            places = {row: start + i for i, row in enumerate(draft.rows.positions.tolist())}
            start += draft.rows.positions.size
            for rows, statistic in draft.worst:
                results = np.array([places[row] for row in rows.tolist()], dtype=np.intp)
                case, before = self._worst_case(statistic, results), numbers[..., results]
                graver = np.where(counted[results], _graver(before, case), case)
                numbers[..., results] = graver
                counted[results] = True
        return WorstCase(counted, *numbers)

    def _worst_case(self, statistic: Statistic, places: Positions) -> FloatArray:
        """Return the numbers of a `WorstCase` for some results, shape (4, ..., n)."""
        worse = np.full(statistic.value.shape, np.nan)
        if isinstance(statistic, Difference):
            fallen, risen = statistic.exact_p_of_no_change
            worse = np.where(self.plan.guards_below[places], fallen, risen)
        return np.stack([*self._p_of(statistic, places), worse, statistic.value])

    @cached_property
    def values(self) -> LimitPair:
        """The values of the candidate and, for a difference, of the baseline."""
        observed, baseline = self._of_statistics(
            lambda statistic, _: (statistic.candidate, statistic.baseline)
        )
        return observed, np.where(self.plan.compares, baseline, np.nan)

    @cached_property
    def point(self) -> FloatArray:
        """The value or difference that the rule bounds; NaN where undefined."""
        return self._of_statistics(lambda statistic, _: statistic.value)[0]

    @cached_property
    def items(self) -> FloatArray:
        """The number of items behind each value."""
        items = np.full(self.fixed.shape, np.nan)
        for draft, rows, places in self.parts:
            items[..., places] = draft.items[..., rows]
        return items

    @cached_property
    def error(self) -> FloatArray:
        """Standard error, to first order."""
        return self._of_statistics(lambda statistic, _: statistic.standard_error)[0]

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
        fail, keep = np.where(self.plan.tested, self._of_statistics(self._p_of), np.nan)
        among_many = self.plan.among_many & (fail < self.plan.gate.alpha)
        if among_many.any():
            fail = np.where(among_many, np.fmax(fail, self._turned(self._tails)[0]), fail)
        return fail, keep

    def _p_of(self, statistic: Statistic, places: Positions) -> LimitPair:
        """Return the smallest levels at which each statistic violates, and keeps, its rule.

        Notes
        -----
        Equivalence is shown by two one-sided tests, each at the whole level (TOST, Schuirmann
        1987). The p-value of a violation counts a difference as far on the other side, too: it is
        that of the test of an interval hypothesis, which is unbiased for a normal difference
        (Lehmann, Romano 2005, section 3.7).
        """
        threshold, below_first = self.plan.threshold[places], self.plan.guards_below[places]
        below, above = statistic.p(threshold)
        fail, keep = np.where(below_first, below, above), np.where(below_first, above, below)
        two_sided = self.plan.two_sided[places]
        if two_sided.any():
            inside, beyond = statistic.p(-threshold)
            both = np.minimum(np.minimum(below + inside, above + beyond), 1.0)
            fail = np.where(two_sided, both, fail)
            keep = np.where(two_sided, np.maximum(above, inside), keep)
        return fail, keep

    def _tails(self, statistic: Statistic, places: Positions) -> LimitPair:
        """Return exact p-values; NaN for a difference from a baseline, which has no such tail."""
        if isinstance(statistic, Difference):
            return statistic.value * np.nan, statistic.value * np.nan
        return statistic.tails(self.plan.threshold[places], self.plan.range[:, places])

    @cached_property
    def p_worse(self) -> FloatArray:
        """Smallest level at which it is shown to be worse than no change, by the exact test."""
        return self._turned(lambda statistic, _: statistic.exact_p_of_no_change)[0]

    def _turned(self, compute: Callable[[Statistic, Positions], LimitPair]) -> LimitPair:
        """Return p-values of being below and above, that of the failure first."""
        below, above = np.where(self.plan.tested, self._of_statistics(compute), np.nan)
        guards_below = self.plan.guards_below
        return np.where(guards_below, below, above), np.where(guards_below, above, below)

    def limits(self, level: float) -> FloatArray:
        """Return the one-sided limits, shape (2, ..., m); NaN where points are compared."""
        if level not in self._limits:
            limits = self._of_statistics(lambda statistic, _: statistic.limits(level))
            self._limits[level] = np.where(self.plan.tested, limits, np.nan)
        return self._limits[level]

    @cached_property
    def _limits(self) -> dict[float, FloatArray]:
        """The limits found so far, by level: suspects are judged by those of the results."""
        return {}

    @cached_property
    def _half_item(self) -> FloatArray:
        """Half an item as a share: counts of changed items are whole, so tests decide half later.

        0 where the evidence is no count of paired items.
        """
        counted = self._of_statistics(
            lambda statistic, _: np.array(
                [statistic.tango if isinstance(statistic, Difference) else 0.0 * statistic.value]
                * 2
            )
        )[0]
        return or_nothing(0.5 * counted / self.items)

    def passable(self, level: float) -> FloatArray:
        """Return the smallest limit of a change that an unchanged model passes with power .8."""
        missed = np.where(self.plan.two_sided, (1 - POWER) / 2, 1 - POWER)
        return distance_found(level, np.sqrt(self.unchanged), missed) + self._half_item

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
        pairs = self._of_statistics(
            lambda statistic, _: np.array([statistic.pairs, statistic.pairs])
        )[0]
        levels = np.where(plan.tested, level / max(together, 1) / pairs, 0.5)
        error = np.where(plan.compares, np.sqrt(self.unchanged), self.error)
        two_sided = plan.two_sided & plan.tested
        if two_sided.any():
            levels = np.where(two_sided, _level_of_each_side(levels, limit, error), levels)
        needed = distance_found(levels, error)
        distance = np.where(below, observed - limit, limit - observed)
        drop = np.maximum(needed + np.where(below, -plan.threshold, plan.threshold), 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            fails_from = _reached(
                limit, self.unchanged, one_sided_quantile(levels) ** 2, self.items
            )
            fails_from += self._half_item
            strength = one_sided_quantile(1 - POWER) ** 2
            more = np.fmax(drop, _reached(fails_from, self.unchanged, strength, self.items))
        drop = np.where(plan.tolerates, more, drop)
        fall, rise = baseline - plan.range[0], plan.range[1] - baseline
        room = np.where(below, fall, rise)
        room = np.where(plan.two_sided, np.maximum(fall, rise), room)
        change = np.where(drop <= room, drop, np.nan)
        if plan.compares.all():
            return change
        more = distance_found(levels, self.error * self._spread(needed))
        return np.where(plan.compares, change, np.maximum(distance, 0.0) + np.maximum(more, needed))

    def _spread(self, beyond: FloatArray) -> FloatArray:
        """Return by how much the error is larger where a value is so far beyond its limit.

        Notes
        -----
        As that of a share. Of the largest gap one slice has fallen, from the mean of all.
        """
        plan, low = self.plan, self.plan.range[0]
        width = plan.range[1] - low
        centre = self._of_statistics(
            lambda statistic, _: np.array([statistic.centre, statistic.centre])
        )[0]
        gaps = plan.bounds_gap
        with np.errstate(all="ignore"):
            fallen = np.where(plan.guards_below, plan.limit - beyond, plan.limit + beyond)
            fallen = np.where(gaps, centre - plan.limit - beyond, fallen)
            here, there = (np.clip((part - low) / width, 0, 1) for part in (centre, fallen))
            ratio = there * (1 - there) / (here * (1 - here))
            ratio = np.where(gaps, (1 + ratio) / 2, ratio)
        return np.sqrt(np.where(np.isfinite(ratio), ratio, 1.0))


def _graver(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the numbers of the graver of two cases; what is missing in one shows nothing."""
    farther = np.where(np.abs(second[3]) > np.abs(first[3]), second[3], first[3])
    fail, worse = (np.fmin(first[i], second[i]) for i in (0, 2))
    return np.stack([fail, np.maximum(first[1], second[1]), worse, farther])


def _level_of_each_side(level: FloatArray, limit: FloatArray, error: FloatArray) -> FloatArray:
    """Return the level at which a change beyond one end of a bound on both sides fails it.

    It lies between half of the level, where the limit is small against the error, and all of it.
    """
    farther = one_sided_quantile(level / 2) + 2 * limit / error
    return np.asarray(level - special.ndtr(-farther))


def _reached(
    start: FloatArray, variance: FloatArray, square: FloatArray, items: FloatArray
) -> FloatArray:
    """Solve d = start + z sqrt(variance + (d - d^2) / items) for d; NaN without a solution."""
    unit = square / items
    half = start + unit / 2
    root = np.sqrt(half**2 - (1 + unit) * (start**2 - square * variance))
    return np.asarray((half + root) / (1 + unit))


ROUNDING = 1e-12
"""A point value this close to its limit equals it: .9 - .85 is not quite .05 in binary."""


def _keeps(plan: Plan, point: FloatArray) -> Flags:
    margin = np.where(plan.guards_below, 1, -1) * (point - plan.threshold)
    margin = np.where(plan.two_sided, plan.limit - np.abs(point), margin)
    return np.asarray(margin >= -ROUNDING * np.maximum(1.0, np.abs(plan.threshold)))


_IS_JUDGED = np.array([VERDICTS[code].judged for code in VERDICTS], dtype=bool)


class GateVerdictCode(IntEnum):
    """The verdict of a gate with rules; the names are those of the contract."""

    passed = 0
    fail = 1
    inconclusive = 2


@dataclass(frozen=True, eq=False)
class Decisions:
    """The verdicts on m results; arrays of shape (..., m).

    The p-values are of the failure, alone and adjusted over all results that could fail; NaN
    without a test, and for averages, which are not adjusted. A suspect is undecided, but shown to
    be worse than before while it lies beyond its limit, or beyond its limit if it were tested
    alone; an unseen result is undecided and beyond its limit, but could not be tested. One that
    is suspect for `missing` items is it with these counted as wrong, and not without them.
    """

    verdicts: Codes
    p_value: FloatArray
    p_adjusted: FloatArray
    suspect: Flags
    unseen: Flags
    missing: Flags

    @property
    def blocking(self) -> Flags:
        """Whether the result is undecided in a way that keeps the gate from passing."""
        return (self.suspect | self.unseen) & (self.verdicts == VerdictCode.undecided)


SUSPICION = 10
"""All results of averages together are suspect by chance at a level of one in so many.

At 5, up to one unchanged model in six had a suspect; at 20, more models pass of which one class
lost twice its limit. `docs/coverage.md` has the figures.
"""


def decide(tests: RuleTests, level: float, blocks: Blocks | None = None) -> Decisions:
    """Decide the verdict of every result, before waivers.

    Parameters
    ----------
    level
        One-sided, of a pass in this look; fails have the alpha of the gate in every look.
    blocks
        Returns the joint laws of results, for max-T; without any, p-values are adjusted by Holm's
        procedure.

    Notes
    -----
    Fail needs the p-value adjusted over all tested results below the level (Holm 1979; Westfall,
    Young 1993), pass the limit alone: that every decisive result must pass is an
    intersection-union test, which needs no adjustment (Schultzberg et al. 2024). An average is no
    member of that family: it can pass or be suspect, but fails by its members alone. A missing
    number satisfies no comparison, so a missing value cannot pass.
    """
    plan, by_test = tests.plan, tests.fixed == VerdictCode.by_test
    alpha = plan.gate.alpha
    p_fail, p_pass = tests.p
    p_value = np.where(by_test, p_fail, np.nan)
    p_adjusted = step_down(np.where(plan.averages, np.nan, p_value), alpha, blocks)
    shown = (p_pass < level) & ~np.isnan(p_value) & ~tests.few_groups
    tested = np.where(shown, VerdictCode.passed, VerdictCode.undecided)
    tested = np.where(p_adjusted < alpha, VerdictCode.fail, tested)
    keeps = _keeps(plan, tests.point)
    plain = np.where(keeps, VerdictCode.passed, VerdictCode.fail)
    verdicts = np.where(plan.tested, tested, plain)
    if tests.worst is not None:
        verdicts = _with_missing(tests, tests.worst, verdicts, level)
    verdicts = np.where(by_test, verdicts, tests.fixed).astype(np.uint8)
    undecided = verdicts == VerdictCode.undecided
    open_ = undecided & ~keeps & np.isfinite(tests.point)
    suspect, missing = _suspects(tests, undecided, open_ & ~np.isnan(p_value), alpha)
    unseen = open_ & np.isnan(p_value)
    return Decisions(verdicts, p_value, p_adjusted, suspect | missing, unseen, missing)


def _suspects(
    tests: RuleTests, undecided: Flags, beyond: Flags, alpha: float
) -> tuple[Flags, Flags]:
    """Return which undecided results are suspect, and which are with missing items as wrong.

    Those that lie `beyond` their limit can be suspect as they are. Leaving out an item must not
    help more than a wrong answer, so the others can be for their missing items.
    """
    plan = tests.plan
    most = min(alpha, 1 / (SUSPICION * max(int(plan.shares_suspicion.sum()), 1)))
    suspect = beyond & (plan.shares_suspicion | plan.averages) & (tests.p[0] < alpha)
    worse = beyond & plan.shares_suspicion & ~suspect
    if worse.any():
        suspect |= worse & (tests.p_worse < most)
    if tests.worst is None:
        return suspect, np.zeros_like(suspect)
    broken = undecided & ~suspect & plan.shares_suspicion & ~tests.worst.keeps(plan)
    return suspect, broken & (tests.worst.p_worse < most)


def _with_missing(
    tests: RuleTests, worst: WorstCase, verdicts: NDArray[Any], level: float
) -> NDArray[Any]:
    """Let nothing pass that missing items could break, nor be compared where they would fail it.

    So leaving out an item never helps more than a wrong answer. An average fails by its members
    alone.
    """
    plan = tests.plan
    keeps = worst.keeps(plan)
    kept = np.where(plan.tested, worst.p_keep < level, keeps)
    broken = np.where(plan.tested, worst.p_fail < plan.gate.alpha, ~keeps)
    broken &= worst.counted & ~plan.averages & (verdicts != VerdictCode.fail)
    open_ = worst.counted & ~kept & (verdicts == VerdictCode.passed)
    verdicts = np.where(open_, VerdictCode.undecided, verdicts)
    return np.where(broken, VerdictCode.not_comparable, verdicts)


def effects(decisions: Decisions, plan: Plan) -> Codes:
    """Return the effect of each result, as positions in `EFFECTS`, shape (..., m).

    What keeps the gate from passing warns at least, whatever `effects` says.
    """
    chosen = plan.gate.all_effects
    of_verdicts = np.zeros(VerdictCode.by_test, dtype=np.uint8)
    for code, verdict in VERDICTS.items():
        of_verdicts[code] = EFFECTS.index(chosen.get(verdict.name, verdict.effect))
    codes, warn = of_verdicts[decisions.verdicts], EFFECTS.index("warn")
    codes = np.maximum(codes, np.where(decisions.blocking, warn, 0))
    of_suspect = np.where(decisions.suspect, EFFECTS.index(chosen["suspect"]), 0)
    blocking = decisions.verdicts == VerdictCode.undecided
    codes = np.maximum(codes, np.where(blocking, of_suspect, 0))
    return np.where(plan.advisory, np.minimum(codes, warn), codes).astype(np.uint8)


def conclude(decisions: Decisions, effect: Codes, plan: Plan) -> NDArray[np.intp]:
    """Return the verdict of the gate, as codes of `GateVerdictCode` of shape (...).

    Notes
    -----
    Every decisive result must pass or be waived, and no other one may fail or be suspect. Each must
    have been answered: one that is not comparable or undefined keeps the gate from passing, and so
    does one beyond its limit that could not be tested. Of an advisory rule, only what fails or
    could not be judged at all does.
    """
    verdicts, undecided = decisions.verdicts, decisions.verdicts == VerdictCode.undecided
    accepted = (verdicts == VerdictCode.passed) | (verdicts == VerdictCode.waived)
    accepted |= (effect == EFFECTS.index("pass")) & undecided
    kept = _IS_JUDGED[verdicts] & (verdicts != VerdictCode.fail)
    answered = kept & ~decisions.blocking
    enough = np.where(plan.decisive, accepted, answered) | plan.advisory & kept
    failed = (effect == EFFECTS.index("fail")).any(-1)
    verdict = np.where(enough.all(-1), GateVerdictCode.passed, GateVerdictCode.inconclusive)
    return np.where(failed, GateVerdictCode.fail, verdict)


def joint_laws(tests: RuleTests, comparisons: Mapping[Against, AlignedValues]) -> list[Block]:
    """Return the joint law of the tests against each baseline, where it is known.

    Notes
    -----
    The correlations are those of the differences, whose influences the comparison knows. A rule
    that forbids low numbers fails for small differences, so its statistic has the other sign. One
    that forbids both has two statistics, and is adjusted as if it were alone.
    """
    plan = tests.plan
    signs = np.where(plan.guards_below, -1.0, 1.0)
    numbers = {}
    for i in np.flatnonzero(~np.isnan(tests.p[0])).tolist():
        rule = plan.rules[i]
        number = rule.target.correlated(plan.labels[i])
        # The comparison is one of all items, and of averages over all classes.
        whole = rule.slices is None and not (rule.min_items and rule.classes is None)
        whole = whole and not plan.averages[i] and not plan.two_sided[i]
        if whole and number is not None:
            numbers[i] = number
    blocks = []
    for against, comparison in comparisons.items():
        chosen = [i for i in numbers if plan.against[i] == against]
        if len(chosen) <= 1:
            continue
        correlation = comparison.correlation([numbers[i] for i in chosen])
        there = ~np.isnan(np.diagonal(correlation))
        places = np.array(chosen, dtype=np.intp)[there]
        turned = correlation[np.ix_(there, there)] * np.outer(signs[places], signs[places])
        blocks.append(Block(places, turned))
    return blocks


def apply_waivers(
    decisions: Decisions, plan: Plan, point: FloatArray, today: date
) -> tuple[tuple[Waiver | None, ...], Codes]:
    """Apply the waivers.

    A waiver applies to a demonstrated failure, and to an inconclusive result that would fail
    through `effects`: otherwise more evidence of less harm would be worse. An undefined value is
    never within the ceiling. Returns the waiver for each of these results, in force or not, and
    the verdicts after it.
    """
    verdicts = decisions.verdicts
    if not plan.gate.waivers:
        return (None,) * len(verdicts), verdicts
    would_fail = effects(decisions, plan) == EFFECTS.index("fail")
    inconclusive = verdicts == VerdictCode.undecided
    waivable = (verdicts == VerdictCode.fail) | (inconclusive & would_fail)
    waivers: list[Waiver | None] = [None] * len(verdicts)
    after = verdicts.copy()
    for i in np.flatnonzero(waivable):
        rule, label = plan.rules[i], plan.labels[i]
        matching = [w for w in plan.gate.waivers if w.concerns(rule, label)]
        in_force = [w for w in matching if today <= w.expires and w.covers(rule, point[i])]
        waivers[i] = next(iter(in_force + matching), None)
        if in_force:
            after[i] = VerdictCode.waived
    return tuple(waivers), after
