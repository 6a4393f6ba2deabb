"""Plan: as many items as it says make a gate pass an unchanged model and find a drop."""

import numpy as np
import pytest
from scipy import stats

import rprime
from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side
from rprime.core.gates.lint import lint
from rprime.core.gates.plan import PlanReport, plan_items
from rprime.core.gates.rules import Gate, Rule
from rprime.core.gates.simulation import LintError
from rprime.core.population import Population
from rprime.core.table import ConfusionTable
from tests.core.comparison_sides import names, sides_of
from tests.core.gate_cases import drop, floor, gate_of, judged, tabled
from tests.core.test_gate_lint import even


def planned(gate: Gate, counts: Array, loss: float | None = None) -> PlanReport:
    table = ConfusionTable.dense(counts)
    side = Side(labels=names(table.k), table=table)
    return plan_items(gate, side, drop=loss, replicates=300)


def test_the_planned_items_suffice_and_half_of_them_do_not() -> None:
    gate = gate_of(drop(0.02, index="accuracy", classes=None))
    item_plan = planned(gate, even(0.9, 100, k=4))
    assert item_plan.items == 400
    assert item_plan.for_passing is not None
    before = int(np.ceil(item_plan.for_passing / 2**0.25 - 1e-9))
    sizes = f"{before:,} and {item_plan.for_passing:,} items"
    assert item_plan.advice[0].startswith(f"From between {sizes} like these on, an unchanged model")
    for share, enough in ((1.2, True), (0.5, False)):
        items = round(item_plan.for_passing * share / 4)
        counts = even(0.9, items, k=4)
        rates = lint(gate, tabled(counts), replicates=600)
        passed = 1 - rates.false_fail_rate - rates.inconclusive_rate
        assert (passed >= 0.9) == enough


def test_the_drop_is_found_with_the_planned_items() -> None:
    gate = gate_of(drop(0.05, classes=("0",)))
    item_plan = planned(gate, even(0.9, 100, k=3), 0.1)
    needed = {plan.class_: plan.needed for plan in item_plan.classes}
    assert needed["1"] is needed["2"] is None
    assert needed["0"] is not None
    for share, seen in ((1.2, True), (0.6, False)):
        counts = even(0.9, round(needed["0"] * share), k=3)
        line = lint(gate, tabled(counts), replicates=100).rules[0]
        assert line.detectable_drop is not None
        assert (line.detectable_drop <= 0.1) == seen


def test_smaller_classes_are_named() -> None:
    counts = np.diag([900.0, 90.0, 20.0])
    counts[:, 0] += [0, 10, 3]
    counts[0, 1] += 90
    item_plan = planned(gate_of(drop(0.05)), counts, 0.1)
    assert [plan.items for plan in item_plan.classes] == [990, 100, 23]
    assert any("Class `2` has 23 items and needs" in text for text in item_plan.advice)


@pytest.mark.parametrize("found", [0.05, 0.1])
def test_a_drop_within_the_limit_is_refused(found: float) -> None:
    with pytest.raises(LintError, match="must exceed") as caught:
        planned(gate_of(drop(0.1, classes=("0",))), even(0.9, 50, k=3), found)
    assert caught.value.place == ("drop",)


def test_a_bound_on_a_value_has_no_drop_of_its_own() -> None:
    bound = floor(0.8, index="accuracy", classes=None)
    alone = planned(gate_of(bound), even(0.9, 100, k=3))
    assert alone.for_finding is None
    assert "state one as `drop`" in alone.advice[1]
    beside = planned(gate_of(bound, drop(0.05)), even(0.9, 100, k=3))
    assert beside.for_finding == planned(gate_of(drop(0.05)), even(0.9, 100, k=3)).for_finding
    assert "every other rule finds its drop" in beside.advice[1]
    # The model is .1 above the bound: it sees a drop of .15, and .05 is none.
    plans = {loss: planned(gate_of(bound), even(0.9, 100, k=3), loss) for loss in (0.15, 0.05)}
    assert plans[0.15].for_finding is not None
    assert "take stricter limits or a larger `drop`" in plans[0.05].advice[1]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (floor(0.95, index="accuracy", classes=None), "forbids this model"),
        (drop(0, index="accuracy", classes=None, kind="min_gain"), "demands a gain"),
        (drop(0.05, classes=("zz",)), "cannot be judged"),
    ],
)
def test_rules_that_an_unchanged_model_never_passes_are_named(rule: Rule, said: str) -> None:
    item_plan = planned(gate_of(rule), even(0.9, 100, k=3))
    assert item_plan.for_passing is None
    assert any(f"Rule {rule.name} {said}" in text for text in item_plan.advice)
    assert not any("take " in text for text in item_plan.advice)


def test_the_fewest_items_that_are_tried_are_not_taken_for_the_need() -> None:
    item_plan = planned(gate_of(drop(0.05, index="accuracy", classes=None)), even(0.9, 9000, k=2))
    assert item_plan.for_passing == 18_000 / 16
    assert "With 1,125 items or fewer" in item_plan.advice[0]


def test_classes_that_a_rule_leaves_out_need_no_items() -> None:
    counts = np.diag([950.0, 940.0, 180.0])
    counts[:, 0] += [0, 60, 21]
    counts[0, 1] += 50
    item_plan = planned(gate_of(drop(0.05, min_items=300)), counts)
    needed = {part.class_: part.needed for part in item_plan.classes}
    assert needed["2"] is None
    assert needed["0"] is not None
    assert (
        item_plan.for_finding
        == planned(gate_of(drop(0.05, classes=("0", "1"))), counts).for_finding
    )


def test_items_of_other_classes_count_where_an_index_reads_them() -> None:
    rule = drop(0.05, index="precision", classes=("0",))
    side = tabled(np.array([[180.0, 20], [10, 190]]))
    rare = Population("true", np.array([0.01, 0.99]))
    item_plan = plan_items(gate_of(rule), side, population=rare, replicates=200)
    assert any("items of the other classes count, too" in text for text in item_plan.advice)
    class_plan = plan_items(gate_of(drop(0.02, classes=("0",))), side, replicates=200)
    assert any(text.startswith("Class `0` has 200 items and needs") for text in class_plan.advice)
    assert not any("other classes" in text for text in class_plan.advice)


@pytest.mark.parametrize(
    ("k", "items"), [(2, 500), (50, 20), pytest.param(100, 10, marks=pytest.mark.slow)]
)
def test_as_many_items_are_needed_in_many_small_classes_as_in_few_large_ones(
    k: int, items: int
) -> None:
    # Simulated: 149 items pass in .54 of runs, 354 in .9.
    item_plan = planned(gate_of(drop(0.04, index="accuracy", classes=None)), even(0.9, items, k=k))
    assert item_plan.for_passing is not None
    assert 300 < item_plan.for_passing < 500


def wide(rules: tuple[Rule, ...], counts: Array, width: float | None = 0.02) -> PlanReport:
    return plan_items(gate_of(*rules), tabled(counts), width=width, replicates=100)


def wilson(share: float, items: int) -> float:
    """Width of SciPy's interval of a share, at the confidence of two limits of 95 %."""
    test = stats.binomtest(round(share * items), items)
    interval = test.proportion_ci(confidence_level=0.9, method="wilson")
    return float(interval.high - interval.low)


def test_the_items_for_a_width_are_those_of_another_program() -> None:
    counts = np.array([[90.0, 10], [60, 240]])
    rules = floor(0.5), floor(0.5, index="recall", classes="all")
    item_plan = wide(rules, counts)
    for part, share in zip(item_plan.classes, (0.9, 0.8), strict=True):
        assert part.for_width is not None
        assert wilson(share, part.for_width) == pytest.approx(0.02, rel=2e-3)
    rare = item_plan.classes[0].for_width
    assert rare is not None
    assert item_plan.for_width == pytest.approx(4 * rare, rel=1e-3)  # of 400 items 100
    alone = wide(rules[:1], counts)
    assert alone.for_width is not None
    assert wilson(0.825, alone.for_width) == pytest.approx(0.02, rel=2e-3)
    assert f"From about {alone.for_width:,} items like these on" in alone.advice[-1]


def test_a_gate_on_the_items_for_a_width_has_limits_so_near() -> None:
    rule = drop(0.02, index="accuracy", classes=None)
    items = wide((rule,), even(0.9, 200, k=2)).for_width
    assert items is not None
    changed = round(0.03 * items)
    joint = np.zeros((2, 2, 2), dtype=np.int64)
    joint[0, 0, 0], joint[0, 0, 1], joint[0, 1, 0] = items - 2 * changed, changed, changed
    (result,) = judged(rule, *sides_of(joint)).results
    assert result.upper_limit is not None
    assert result.lower_limit is not None
    assert result.upper_limit - result.lower_limit == pytest.approx(0.02, rel=0.01)


def test_slices_need_items_of_their_own_for_a_width() -> None:
    report = rprime.plan(
        {"rules": [{"index": "accuracy", "min_value": 0.5, "slices": "region"}]},
        y_true=[i % 2 for i in range(400)],
        y_pred=[i % 2 ^ (i % 10 == 0) for i in range(400)],
        slices={"region": ["EU"] * 100 + ["US"] * 300},
        width=0.04,
    )
    eu, us = (part.for_width or 0 for part in report.model.slices)
    assert eu == pytest.approx(us, rel=0.01)
    assert wilson(0.9, eu) == pytest.approx(0.04, rel=5e-3)
    assert report.for_width == pytest.approx(4 * eu, rel=0.01)


def test_what_has_no_width_says_so() -> None:
    counts, plain = even(0.9, 100, k=3), drop(0.05, test="none")
    bare = wide((floor(0.5),), counts, None)
    assert bare.for_width is bare.classes[0].for_width is None
    assert not any("apart" in text for text in bare.advice)
    assert "take `test: none` out of recall.max_drop" in wide((plain,), counts).advice[-1]
    narrow = wide((floor(0.5),), counts, 1e-5)
    assert narrow.for_width is None
    assert narrow.advice[-1].endswith("apart: take a larger `width`.")


def test_a_gate_without_rules_never_passes() -> None:
    item_plan = planned(Gate(), even(0.9, 50, k=3))
    assert item_plan.for_passing is item_plan.for_finding is None
    assert item_plan.advice == ("The gate has no rules: it never passes.",)


def test_a_table_of_too_many_classes_cannot_be_planned() -> None:
    with pytest.raises(LintError, match="300 replicates of at most 668 classes"):
        planned(gate_of(drop(0.1)), np.eye(700))
