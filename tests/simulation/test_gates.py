"""Gates fail models for losses and not for noise, and never pass what they did not see."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats

from rprime.core.catalog import OVERALL_INDICES
from rprime.core.comparison.compare import compare
from rprime.core.comparison.difference import INFLUENCE, TANGO
from rprime.core.gates.gate import run_gate
from rprime.core.gates.rules import Gate, Rule
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import compute
from tests.core.comparison_sides import side_of, table_side
from tests.simulation.pairs import Pair
from tests.simulation.populations import Population
from tests.simulation.rates import TODAY, results, verdicts

GATES = int(os.environ.get("RPRIME_TEST_GATES", "40"))
"""Gates in each simulation; `bash .ci/run --full` asks for 2 000."""
MARGIN = 0.02
SIZES = ((2, 200), (10, 1000), (50, 1000))
POPULATIONS = tuple(
    population
    for k, items in SIZES
    for population in (Population.even(k, items / k, 0.9), Population.long_tail(k, items, 0.9))
)


def drop(index: str, limit: float, **fields: object) -> Rule:
    """Return a rule against a drop."""
    rule = Rule(index=index, kind="max_drop", limit=limit, id=f"{index} {sorted(fields)}")
    return replace(rule, **fields)  # type: ignore[arg-type] # fields of Rule, by name


OVERALL = tuple(drop(key, MARGIN) for key in ("accuracy", "r_prime", "macro_f1"))
PER_CLASS = tuple(drop(key, 0.05, classes="all") for key in ("recall", "r_prime", "f1"))


def at_most(count: int, rounds: int, share: float) -> bool:
    """Whether a count does not contradict that a share is at most this one (level .001)."""
    return bool(stats.binom.sf(count - 1, rounds, share) > 0.001)


def at_least(count: int, rounds: int, share: float) -> bool:
    """Whether a count does not contradict that a share is at least this one (level .001)."""
    return bool(stats.binom.cdf(count, rounds, share) > 0.001)


@pytest.mark.parametrize("population", POPULATIONS, ids=lambda population: population.name)
@pytest.mark.parametrize("paired", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_an_unchanged_model_fails_in_at_most_one_build_of_a_hundred(
    population: Population, *, paired: bool
) -> None:
    gate = Gate(rules=OVERALL + PER_CLASS)
    rounds = GATES // (3 if population.k > 10 else 1)
    failed = verdicts(results(gate, Pair(population), rounds, 1, paired=paired))["fail"]
    assert at_most(failed, rounds, 0.01)


def lost_at_margin(
    population: Population,
    rule: Rule,
    losers: Iterable[int] | None = None,
    discordance: float = 0.06,
) -> Pair:
    """Return a pair whose candidate is worse by exactly the limit of the rule."""
    if losers is None:
        losers = range(population.k) if rule.classes is None else (0,)
    low, high, losing = 0.0, 0.9, tuple(losers)
    for _ in range(40):
        middle = (low + high) / 2
        pair = Pair(population, discordance, dict.fromkeys(losing, middle))
        low, high = (low, middle) if -change(pair, rule) >= rule.limit else (middle, high)
    return Pair(population, discordance, dict.fromkeys(losing, high))


def change(pair: Pair, rule: Rule) -> float:
    """Return candidate minus baseline of the populations."""
    options = Options(indices=(rule.index,))
    tables = ConfusionTable.dense(np.array(pair.tables) * 1e9)
    values = compute(tables, options, select(options)).lookup(
        "overall" if rule.classes is None else "class", rule.index
    )
    new, old = values if rule.classes is None else values[:, 0]
    return float(new - old)


AT_MARGIN = (
    *(drop(key, MARGIN) for key in ("accuracy", "macro_f1", "balanced_accuracy", "kappa", "mcc")),
    *(drop(key, 0.05, classes=("0",)) for key in ("recall", "f1", "r_prime")),
)


@pytest.mark.parametrize("rule", AT_MARGIN, ids=lambda rule: rule.index)
@pytest.mark.parametrize("paired", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_loss_of_the_limit_seldom_passes(rule: Rule, *, paired: bool) -> None:
    population = Population("800, 150, 50", (800, 150, 50), (0.9, 0.85, 0.8))
    pair = lost_at_margin(population, rule)
    builds = results(Gate(rules=(rule,)), pair, 2 * GATES, 2, paired=paired)
    passed = sum(gate.results[0].verdict == "pass" for gate in builds)
    assert at_most(passed, 2 * GATES, 0.065)


@dataclass(frozen=True)
class FewChanges:
    """Few items that change, beside a limit of macro F1; the losing class, None for all."""

    sizes: tuple[int, ...]
    churn: float
    limit: float
    losing: int | None = None

    def passes(self, builds: int) -> tuple[float, float]:
        """Return how often a model that loses the limit passes, and an unchanged one."""
        n, rule = sum(self.sizes), drop("macro_f1", self.limit)
        population = Population(str(self), self.sizes, (0.9,) * len(self.sizes))
        losing = None if self.losing is None else (self.losing,)
        worse = lost_at_margin(population, rule, losing, self.churn)
        rates = [
            verdicts(results(Gate(rules=(rule,)), pair, builds, n))["pass"] / builds
            for pair in (worse, Pair(population, self.churn))
        ]
        return rates[0], rates[1]


FEW_CHANGES = (
    FewChanges((34, 33, 33), 0.10, 0.05),
    FewChanges((34, 33, 33), 0.06, 0.05),
    FewChanges((34, 33, 33), 0.0, 0.05),
    FewChanges((60, 30, 10), 0.06, 0.05),
    FewChanges((60, 30, 10), 0.06, 0.05, 2),
    FewChanges((10,) * 10, 0.10, 0.05),
    FewChanges((100, 100, 100), 0.06, 0.03),
    FewChanges((180, 90, 30), 0.06, 0.03, 2),
    FewChanges((100, 100, 100), 0.02, 0.05, 0),
    FewChanges((100, 100, 100), 0.0, 0.05),
    FewChanges((180, 90, 30), 0.02, 0.03, 2),
    FewChanges((20, 20), 0.06, 0.1),
)


@pytest.mark.slow
@pytest.mark.parametrize("setting", FEW_CHANGES, ids=str)
def test_a_macro_f1_of_few_changes_at_its_limit_seldom_passes(setting: FewChanges) -> None:
    at_limit, unchanged = setting.passes(2 * GATES)
    print(setting, at_limit, unchanged)  # noqa: T201 (docs/coverage.md has these figures)
    assert at_most(round(at_limit * 2 * GATES), 2 * GATES, 0.06)


def identical_predictions() -> tuple[np.ndarray, np.ndarray]:
    """Return true and predicted codes of 10 classes of 100 items, recall .9."""
    true = np.repeat(np.arange(10, dtype=np.uint8), 100)
    wrong = np.arange(1000) % 10 == 0
    return true, np.where(wrong, (true + 1 + np.arange(1000) // 10 % 9) % 10, true).astype(np.uint8)


def bounded() -> list[str]:
    """Return the overall indices within [-1, 1] that have intervals and need no option."""
    return [
        key
        for key, entry in OVERALL_INDICES.items()
        if np.isfinite(entry.range).all()
        and max(np.abs(entry.range)) <= 1
        and entry.interval is not None
        and not entry.scored
        and not entry.needs
    ]


@pytest.mark.parametrize("index", bounded())
def test_identical_predictions_pass(index: str) -> None:
    true, predicted = identical_predictions()
    candidate, baseline = (side_of(true, predicted.copy(), 10) for _ in range(2))
    entry = OVERALL_INDICES[index]
    kind = "max_drop" if entry.higher_is_better else "max_gain"
    gate = Gate(rules=(Rule(index=index, kind=kind, limit=MARGIN),))
    options = Options(indices=(index,))
    comparison = compare(candidate, baseline, options)
    assert comparison.of_overall(index).methods in (TANGO, INFLUENCE)
    gate_result = run_gate(gate, candidate, comparison, options, today=TODAY)
    assert gate_result.verdict == "pass", gate_result.results[0].message


def test_three_class_rules_find_one_class_that_loses_ten_points() -> None:
    pair = Pair(Population.even(10, 100, 0.9), lost={3: 0.10})
    rules = tuple(replace(rule, limit=0.02) for rule in PER_CLASS)
    builds = results(Gate(rules=rules), pair, 2 * GATES, 3)
    assert at_least(verdicts(builds)["fail"], 2 * GATES, 0.20)


def test_a_class_that_loses_seventeen_points_is_suspect() -> None:
    pair = Pair(Population.even(10, 90, 0.95), lost={3: 0.17})
    gate = Gate(rules=(drop("recall", 0.10, classes="all"),))
    builds = results(gate, pair, GATES, 4)
    noticed = sum(
        any(r.suspect or r.verdict == "fail" for r in gate.results if r.class_ == "3")
        for gate in builds
    )
    assert at_least(noticed, GATES, 0.80)
    assert at_most(verdicts(builds)["pass"], GATES, 0.20)


@pytest.mark.parametrize(("k", "items"), [(10, 900), (100, 3000), (1000, 10_000)])
def test_an_unchanged_model_has_hardly_any_suspects(k: int, items: int) -> None:
    rounds = max(GATES * 10 // k, 10)
    gate = Gate(rules=(drop("recall", 0.10, classes="all"),))
    builds = results(gate, Pair(Population.even(k, items / k, 0.9)), rounds, 5)
    suspects = sum(any(r.suspect for r in gate.results) for gate in builds)
    assert at_most(suspects, rounds, 0.01)


GIVEN_UP = ([[9500, 100], [10, 990]], [[9600, 0], [1000, 0]])
"""A class of 1000 items, before and after the model never predicts it."""


def change_of(tables: tuple[list[list[int]], list[list[int]]], index: str) -> float:
    options = Options(indices=(index,))
    old, new = compute(ConfusionTable.dense(np.array(tables)), options, select(options)).lookup(
        "overall", index
    )
    return float(new - old)


def falling() -> list[str]:
    """Return the averages over classes that the loss of the class changes by .06 or more."""
    averages = [key for key in bounded() if key.startswith("macro_")]
    return [key for key in averages if abs(change_of(GIVEN_UP, key)) >= 0.06]


@pytest.mark.parametrize("index", ["precision", "recall", "f1", *falling()])
def test_giving_up_a_class_fails(index: str) -> None:
    old, new = (table_side(ConfusionTable.dense(np.array(counts))) for counts in GIVEN_UP)
    per_class = not index.startswith("macro_")
    options = Options(indices=(index,))
    better = per_class or OVERALL_INDICES[index].higher_is_better
    rule = Rule(
        index=index,
        kind="max_drop" if better else "max_gain",
        limit=0.05,
        classes=("1",) if per_class else None,
    )
    gate_result = run_gate(
        Gate(rules=(rule,)), new, compare(new, old, options), options, today=TODAY
    )
    assert gate_result.verdict == "fail", gate_result.results[0].message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "items", "recall", "fields"),
    [
        (10, 1000, 0.9, {"spend": True}),
        (10, 300, 0.9, {"max_looks": 10}),
        (20, 500, 0.9, {"spend": True}),
        (5, 200, 0.7, {"max_looks": 5}),
    ],
)
def test_the_best_of_many_equal_candidates_seldom_passes(
    count: int, items: int, recall: float, fields: dict[str, bool | int]
) -> None:
    rule = Rule(index="accuracy", kind="min_gain", limit=0.0)
    gate = replace(Gate(rules=(rule,)), **fields)  # type: ignore[arg-type] # fields of Gate, by name
    random, passed = np.random.default_rng((count, items)), 0
    options = Options(indices=("accuracy",))
    for _ in range(2 * GATES):
        true = random.integers(0, 3, items).astype(np.uint8)
        right = random.random(items) < recall
        flipped = np.where(right, 0.05 / recall, 0.05 / (1 - recall))
        models = [right ^ (random.random(items) < flipped) for _ in range(count)]
        baseline, *candidates = (
            side_of(true, np.where(flags, true, (true + 1) % 3), 3) for flags in (right, *models)
        )
        passed += any(
            run_gate(
                gate, side, compare(side, baseline, options), options, today=TODAY, look=look
            ).verdict
            == "pass"
            for look, side in enumerate(candidates, 1)
        )
    print(count, items, recall, fields, passed / (2 * GATES))  # noqa: T201 (docs/coverage.md has these figures)
    assert at_most(passed, 2 * GATES, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "items", "loss", "losing"), [(5, 60, 0.05, 5), (3, 200, 0.2, 1)])
def test_a_gate_of_rules_on_all_items_and_on_classes_seldom_passes_a_loss(
    k: int, items: int, loss: float, losing: int
) -> None:
    pair = Pair(Population.even(k, items, 0.9), lost=dict.fromkeys(range(losing), loss))
    gate = Gate(rules=(drop("accuracy", 0.05), drop("recall", 0.1, classes="all")))
    passed = verdicts(results(gate, pair, 2 * GATES, 6))["pass"]
    assert at_most(passed, 2 * GATES, 0.06)
