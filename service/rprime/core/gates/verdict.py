"""Verdicts of results and of the gate, from the tests of the rules; all on stacks."""

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import FloatArray
from rprime.core.gates.multiplicity import Blocks, step_down
from rprime.core.gates.rules import Effect, Gate, Rule
from rprime.core.gates.sliced import Slice

if TYPE_CHECKING:
    from rprime.core.gates.rule_tests import RuleTests

Codes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Against = Literal["baseline", "anchor"]
"""What a difference is from."""

ROUNDING = 1e-12
"""A point value this close to its limit equals it: .9 - .85 is not quite .05 in binary."""


class VerdictCode(IntEnum):
    """The verdict on one result; the names are those of the contract.

    `undecided` is not in the contract: the tests still have to decide.
    """

    passed = 0
    fail = 1
    inconclusive = 2
    no_baseline = 3
    not_comparable = 4
    undefined = 5
    waived = 6
    undecided = 255


JUDGED = (VerdictCode.passed, VerdictCode.fail, VerdictCode.inconclusive, VerdictCode.waived)
"""Verdicts that rest on the numbers."""
_IS_JUDGED = np.isin(np.arange(VerdictCode.undecided), JUDGED)


class GateVerdictCode(IntEnum):
    """The verdict of a gate with rules; the names are those of the contract."""

    passed = 0
    fail = 1
    inconclusive = 2


EFFECTS: tuple[Effect, ...] = ("pass", "warn", "fail")


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
