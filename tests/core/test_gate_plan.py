"""Plan: as many items as it says make a gate pass an unchanged model and find a drop."""

import numpy as np
import pytest

from rprime.core.arrays import Array
from rprime.core.gates.lint import LintError, lint
from rprime.core.gates.plan import ItemPlan, plan_items
from rprime.core.gates.rules import Gate
from rprime.core.table import ConfusionTable
from tests.core.comparison_sides import names
from tests.core.gate_cases import drop, gate_of
from tests.core.test_gate_lint import even


def planned(gate: Gate, counts: Array, found: float | None = None) -> ItemPlan:
    table = ConfusionTable.dense(counts)
    return plan_items(gate, table, names(table.k), drop=found, replicates=300)


def test_the_planned_items_suffice_and_half_of_them_do_not() -> None:
    gate = gate_of(drop(0.02, index="accuracy", classes=None))
    found = planned(gate, even(0.9, 100, k=4))
    assert found.items == 400
    assert found.for_passing is not None
    low, high = found.for_passing_interval
    assert low is not None
    assert high is not None
    assert low <= found.for_passing <= high
    assert "as far as these 400 items can tell" in found.advice[0]
    for share, enough in ((1.2, True), (0.5, False)):
        items = round(found.for_passing * share / 4)
        counts = even(0.9, items, k=4)
        rates = lint(gate, ConfusionTable.dense(counts), names(4), replicates=600)
        passed = 1 - rates.false_fail_rate - rates.inconclusive_rate
        assert (passed >= 0.9) == enough


def test_the_drop_is_found_with_the_planned_items() -> None:
    gate = gate_of(drop(0.05, classes=("0",)))
    found = planned(gate, even(0.9, 100, k=3), 0.1)
    needed = {plan.class_: plan.needed for plan in found.classes}
    assert needed["1"] is needed["2"] is None
    assert needed["0"] is not None
    for share, seen in ((1.2, True), (0.6, False)):
        counts = even(0.9, round(needed["0"] * share), k=3)
        known = lint(gate, ConfusionTable.dense(counts), names(3), replicates=100).rules[0]
        assert known.detectable_drop is not None
        assert (known.detectable_drop <= 0.1) == seen


def test_smaller_classes_are_named() -> None:
    counts = np.diag([900.0, 90.0, 20.0])
    counts[:, 0] += [0, 10, 3]
    counts[0, 1] += 90
    found = planned(gate_of(drop(0.05)), counts, 0.1)
    assert [plan.items for plan in found.classes] == [990, 100, 23]
    assert any("Class `2` has 23 items and needs" in text for text in found.advice)


def test_a_drop_within_the_limit_is_never_found() -> None:
    found = planned(gate_of(drop(0.1, classes=("0",))), even(0.9, 50, k=3), 0.05)
    assert found.for_finding is None
    assert "take larger limits" in found.advice[1]


def test_a_gate_without_rules_never_passes() -> None:
    found = planned(Gate(), even(0.9, 50, k=3))
    assert found.for_passing is found.for_finding is None


def test_scores_cannot_be_planned_from_a_table() -> None:
    with pytest.raises(LintError, match="no scores"):
        planned(gate_of(drop(0.1, index="roc_auc")), even(0.9, 50, k=3))
