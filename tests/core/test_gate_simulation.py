"""The self-test of the statistics: what gates and intervals promise, by simulation."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from rprime.core.arrays import Array
from rprime.core.gates.estimate import estimate
from rprime.core.gates.evidence import difference_tests
from rprime.core.gates.resampling import SimulatedPredictions
from rprime.core.gates.rules import Rule
from rprime.core.gates.simulation import Simulation
from rprime.core.gates.verdict import Plan, RuleTests, VerdictCode, decide
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import compute
from tests.core.gate_cases import drop, gate_of, predictions_of

MARGIN = 0.05
DISCORDANCE = 0.06
CLASS_KEYS = ("recall", "precision", "f1", "r_prime")
OVERALL_KEYS = ("accuracy", "kappa", "mcc", "macro_f1", "macro_recall", "macro_r_prime")
SIZES = [(3, 500), (3, 2000), (10, 500), (10, 2000)]
ALLOWED = {500: 0.08, 2000: 0.065}
"""False passes at the margin, by items."""


def rule_of(key: str) -> Rule:
    return drop(MARGIN, index=key, classes=("0",) if key in CLASS_KEYS else None)


@dataclass(frozen=True)
class World:
    """k equally frequent classes, recalls from .8 to .92, errors spread evenly."""

    k: int
    items: int

    @property
    def cells(self) -> Array:
        """Probabilities of the cells of the baseline, shape (k, k)."""
        recall = np.linspace(0.8, 0.92, self.k)
        rows = np.repeat(((1 - recall) / (self.k - 1))[:, None], self.k, axis=1)
        np.fill_diagonal(rows, recall)
        return rows / self.k

    @property
    def unchanged(self) -> Array:
        """Probabilities of true class, old and new prediction, shape (k, k, k)."""
        rows = self.cells * self.k
        recall = np.diagonal(rows)
        anew = np.minimum(DISCORDANCE / (2 * recall * (1 - recall)), 1)[:, None, None]
        alike = rows[:, :, None] * np.eye(self.k)
        redrawn = rows[:, :, None] * rows[:, None, :]
        return np.asarray(((1 - anew) * alike + anew * redrawn) / self.k)

    def worse(self, lost: Array) -> Array:
        """The same where the new model lost a share of what it had right of each class."""
        joint = self.unchanged.copy()
        for r, share in enumerate(lost):
            fallen = joint[r, :, r] * share
            joint[r, :, r] -= fallen
            joint[r, :, (r + 1) % self.k] += fallen
        return joint

    def at_margin(self, rule: Rule) -> Array:
        """The same where an index dropped by exactly the margin: of class 0, or of all alike."""
        who = np.ones(self.k) if rule.classes is None else np.eye(self.k)[0]
        low, high = 0.0, 1.0
        for _ in range(50):
            share = (low + high) / 2
            enough = self.change(rule, self.worse(share * who)) <= -MARGIN
            low, high = (low, share) if enough else (share, high)
        return self.worse(high * who)

    def change(self, rule: Rule, joint: Array) -> float:
        sides = [self.value(rule, joint.sum(axis)) for axis in (-2, -1)]
        return sides[0] - sides[1]

    def value(self, rule: Rule, cells: Array) -> float:
        options = Options(indices=(rule.index,))
        table = ConfusionTable.dense(cells)
        values = compute(table, options, select(options)).lookup(rule.scope, rule.index)
        return float(values[0] if rule.scope == "class" else values)

    @cached_property
    def random(self) -> np.random.Generator:
        return np.random.default_rng(self.k * 10_000 + self.items)

    def draws(self, joint: Array, replicates: int) -> SimulatedPredictions:
        drawn = self.random.multinomial(self.items, joint.ravel(), replicates)
        return predictions_of(drawn.reshape(replicates, *joint.shape).astype(float))


def passes(rule: Rule, draws: SimulatedPredictions, *, paired: bool) -> float:
    """Share of the draws in which the rule passes."""
    known = Simulation(draws, (rule.index,), paired).difference(rule)
    tests = difference_tests(rule, known)
    plan = Plan(gate_of(rule), (rule,) * tests.point.shape[-1], (None,) * tests.point.shape[-1])
    return float((decide(tests, plan, 0.05).verdicts[:, 0] == VerdictCode.passed).mean())


def apart(before: SimulatedPredictions, after: SimulatedPredictions) -> SimulatedPredictions:
    """Two tables of different items: the baseline of one and the candidate of the other."""
    nothing = np.zeros_like(before.kept)
    return SimulatedPredictions(nothing, before.kept + before.old, after.kept + after.new, nothing)


def false_passes(world: World, rule: Rule, replicates: int) -> tuple[float, float]:
    """Of a drop by exactly the margin, paired and unpaired."""
    joint = world.at_margin(rule)
    first, second = world.draws(joint, replicates), world.draws(joint, replicates)
    return passes(rule, first, paired=True), passes(rule, apart(first, second), paired=False)


def false_fails(world: World, replicates: int, *, paired: bool) -> float:
    """Share of unchanged models in which some result of all rules at once fails."""
    rules = [drop(MARGIN, index=key) for key in CLASS_KEYS]
    rules += [drop(MARGIN, index=key, classes=None) for key in OVERALL_KEYS]
    draws = world.draws(world.unchanged, replicates)
    if not paired:
        draws = apart(draws, world.draws(world.unchanged, replicates))
    gate = gate_of(*rules)
    simulation = Simulation(draws, gate.indices, paired)
    tests = RuleTests.join([difference_tests(rule, simulation.difference(rule)) for rule in rules])
    sizes = [world.k] * len(CLASS_KEYS) + [1] * len(OVERALL_KEYS)
    owners = tuple(rule for rule, size in zip(rules, sizes, strict=True) for _ in range(size))
    found = decide(tests, Plan(gate, owners, (None,) * len(owners)), 0.05)
    return float((found.verdicts == VerdictCode.fail).any(-1).mean())


def coverage(world: World, rule: Rule, replicates: int) -> Array:
    """Of the default interval, for every class or the one overall value."""
    tables = ConfusionTable.dense(
        world.random.multinomial(world.items, world.cells.ravel(), replicates).reshape(
            replicates, world.k, world.k
        )
    )
    options = Options(indices=(rule.index,))
    known = estimate(compute(tables, options, select(options)), rule.entry)
    low, high = known.limits(0.025)
    truth = compute(ConfusionTable.dense(world.cells), options, select(options))
    value = np.atleast_1d(truth.lookup(rule.scope, rule.index))
    return np.asarray(((low <= value) & (value <= high)).mean(0))


def spread_of(share: float, replicates: int) -> float:
    """Three standard errors of a simulated share."""
    return 3 * float(np.sqrt(share * (1 - share) / replicates))


INTERVALS = (
    *(drop(index=key) for key in (*CLASS_KEYS, "informedness", "jaccard", "specificity")),
    *(drop(index=key, classes=None) for key in (*OVERALL_KEYS, "weighted_f1", "scott_pi")),
)


# The small version, which every run checks; the bounds leave room for chance.


@pytest.mark.parametrize(("k", "items"), [(3, 500), (10, 500)])
@pytest.mark.parametrize("key", ["recall", "r_prime", "accuracy", "macro_f1"])
def test_a_drop_by_the_margin_seldom_passes(k: int, items: int, key: str) -> None:
    allowed = ALLOWED[items] + spread_of(ALLOWED[items], 400)
    assert max(false_passes(World(k, items), rule_of(key), 400)) <= allowed


@pytest.mark.parametrize("paired", [True, False])
def test_an_unchanged_model_hardly_ever_fails(*, paired: bool) -> None:
    assert false_fails(World(3, 500), 400, paired=paired) <= 0.01


@pytest.mark.parametrize("rule", INTERVALS, ids=lambda rule: rule.index)
def test_intervals_cover_what_they_say(rule: Rule) -> None:
    found = coverage(World(3, 500), rule, 400)
    assert found.min() >= 0.95 - spread_of(0.95, 400) - 0.01
    assert found.max() <= 1.0


# The whole of it.


@pytest.mark.slow
@pytest.mark.parametrize(("k", "items"), SIZES)
@pytest.mark.parametrize("key", CLASS_KEYS + OVERALL_KEYS)
def test_false_passes_at_the_margin_are_as_rare_as_promised(k: int, items: int, key: str) -> None:
    assert max(false_passes(World(k, items), rule_of(key), 2000)) <= ALLOWED[items]


@pytest.mark.slow
@pytest.mark.parametrize(("k", "items"), SIZES)
@pytest.mark.parametrize("paired", [True, False])
def test_false_fails_of_an_unchanged_model_are_as_rare_as_promised(
    k: int, items: int, *, paired: bool
) -> None:
    assert false_fails(World(k, items), 2000, paired=paired) <= 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("k", "items"), SIZES)
@pytest.mark.parametrize("rule", INTERVALS, ids=lambda rule: rule.index)
def test_coverage_is_as_promised(k: int, items: int, rule: Rule) -> None:
    found = coverage(World(k, items), rule, 2000)
    assert found.min() >= 0.93
    assert found.max() <= 0.97
