"""Rules about slices do not fail a model that keeps their limit."""

from dataclasses import replace

import numpy as np
import pytest

from rprime.core.comparison.alignment import Side
from rprime.core.gates.gate import run_gate
from rprime.core.gates.rules import Gate, Rule
from rprime.core.options import Options
from rprime.core.slices.slices import SliceColumn, Slices
from rprime.core.table import ConfusionTable
from tests.core.comparison_sides import side_of, table_side
from tests.simulation.rates import TODAY
from tests.simulation.test_gates import GATES, at_most

FLOOR = Rule(index="accuracy", kind="min_value", limit=0.98, slices="all")
RULES = (
    FLOOR,
    replace(FLOOR, index="macro_f1"),
    replace(FLOOR, index="kappa", limit=0.97),
    replace(FLOOR, index="recall", classes="all"),
    replace(FLOOR, kind="max_gap", limit=1e-9, slices="region"),
    replace(FLOOR, index="recall", classes="all", kind="max_gap", limit=1e-9, slices="region"),
)


def drawn(random: np.random.Generator, slices: int, items: int, k: int) -> Side:
    """Draw a model that is right for .98 of the items of every slice, slices of sizes 1 / i."""
    true = random.integers(k, size=items)
    wrong = random.random(items) < 0.02
    predicted = np.where(wrong, (true + random.integers(1, k, items)) % k, true)
    shares = 1 / np.arange(1, slices + 1)
    codes = random.choice(slices, items, p=shares / shares.sum())
    column = SliceColumn(tuple(map(str, range(slices))), codes.astype(np.uint16))
    slice_tables = Slices.of_items({"region": column}, (), true * (k + 1) + predicted, k)
    return replace(side_of(true, predicted, k), slices=slice_tables)


@pytest.mark.parametrize(("k", "items"), [(10, 30), (100, 30)])
def test_classes_at_their_bound_fail_in_at_most_alpha_of_builds(k: int, items: int) -> None:
    gate = Gate(rules=(replace(FLOOR, index="recall", classes="all", slices=None),))
    random, failed, rounds = np.random.default_rng(3), 0, 150
    for _ in range(rounds):
        right = random.binomial(items, FLOOR.limit, k)
        counts = np.diag(right) + np.roll(np.diag(items - right), 1, axis=1)
        side = table_side(ConfusionTable.dense(counts.astype(np.float64)))
        gate_result = run_gate(gate, side, None, Options(indices=gate.indices), today=TODAY)
        failed += gate_result.verdict == "fail"
    assert at_most(failed, rounds, gate.alpha)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize(("slices", "items"), [(5, 500), (20, 1000)])
def test_slices_at_the_limit_fail_in_at_most_alpha_of_builds(
    rule: Rule, slices: int, items: int
) -> None:
    random, gate, failed = np.random.default_rng(6), Gate(rules=(rule,)), 0
    rounds = GATES // 3
    for _ in range(rounds):
        side = drawn(random, slices, items, 3)
        gate_result = run_gate(gate, side, None, Options(indices=gate.indices), today=TODAY)
        failed += any(result.verdict == "fail" for result in gate_result.results)
    assert at_most(failed, rounds, gate.alpha)
