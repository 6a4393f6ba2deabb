"""Averages over chosen classes: values of scikit-learn's `labels=`, intervals, comparisons."""

from dataclasses import replace
from datetime import date
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from rprime.core.arrays import Array
from rprime.core.catalog import OVERALL_INDICES
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import compare
from rprime.core.comparison.difference import INFLUENCE
from rprime.core.estimates import Estimates
from rprime.core.evaluate import Evaluation, evaluate
from rprime.core.gates.gate import run_gate
from rprime.core.gates.rules import Gate, Rule
from rprime.core.items import Items
from rprime.core.items import table_of as items_table
from rprime.core.options import Options
from rprime.core.population import Population
from rprime.core.scores.scores import Scores
from rprime.core.selection import select
from rprime.core.slices.evaluation import evaluate_slices
from rprime.core.slices.slices import SliceColumn, Slices
from rprime.core.table import ConfusionTable
from tests.core.comparison_sides import names, side_of, table_of
from tests.core.index_values import dense, overall, values_of

TABLE = [[900, 20, 10], [15, 40, 5], [9, 3, 30]]
"""Most items are background, the first class."""
OVER = (1, 2)
Average = Literal["micro", "macro", "weighted"]
AVERAGES: tuple[Average, ...] = ("micro", "macro", "weighted")
AVERAGED = tuple(
    entry.key
    for entry in OVERALL_INDICES.values()
    if entry.reads in {*AVERAGES, "means"} and not entry.scored
)


def items_of(table: Any) -> tuple[Array, Array]:
    counts = np.asarray(table)
    true, predicted = (np.repeat(axis.ravel(), counts.ravel()) for axis in np.indices(counts.shape))
    return true, predicted


def chosen(table: Any = TABLE, over: tuple[int, ...] = OVER, **options: Any) -> dict[str, Any]:
    return overall(values_of(dense(table), average_over=over, **options))


def evaluated(table: ConfusionTable, over: tuple[int, ...] | None, **options: Any) -> Evaluation:
    every = Options(families=("all",), average_over=over, **options)
    return evaluate(table, names(table.k), every)


def interval(evaluation: Evaluation, key: str) -> tuple[float, float]:
    place, intervals = evaluation.selection.overall_place[key], evaluation.intervals
    assert intervals is not None
    return float(intervals.overall_low[place]), float(intervals.overall_high[place])


@settings(max_examples=25)
@given(
    st.lists(st.integers(1, 40), min_size=16, max_size=16),
    st.sets(st.integers(0, 3), min_size=1, max_size=4),
)
def test_averages_are_those_of_scikit_learn_with_labels(counts: list[int], over: set[int]) -> None:
    table, labels = np.reshape(counts, (4, 4)), sorted(over)
    values, (true, predicted) = chosen(table, tuple(labels), beta=2.0), items_of(table)
    for average in AVERAGES:
        arguments: dict[str, Any] = {"labels": labels, "average": average}
        expected = {
            "precision": metrics.precision_score(true, predicted, **arguments),
            "recall": metrics.recall_score(true, predicted, **arguments),
            "f1": metrics.f1_score(true, predicted, **arguments),
            "f_beta": metrics.fbeta_score(true, predicted, beta=2, **arguments),
            "jaccard": metrics.jaccard_score(true, predicted, **arguments),
        }
        found = {key: values[f"{average}_{key}"] for key in expected}
        assert found == pytest.approx(expected, abs=1e-12)


def test_the_micro_f1_without_background_is_two_thirds() -> None:
    assert chosen()["micro_f1"] == pytest.approx(2 / 3)
    assert chosen(over=(0, 1, 2))["micro_f1"] == pytest.approx(970 / 1032)


def test_only_averages_change() -> None:
    some, every = chosen(), overall(values_of(dense(TABLE)))
    changed = {key for key in some if not np.array_equal(some[key], every[key], equal_nan=True)}
    assert changed <= {*AVERAGED}
    assert {"micro_f1", "macro_recall", "weighted_recall", "balanced_accuracy"} <= changed
    of_classes = values_of(dense(TABLE), average_over=OVER).per_class
    np.testing.assert_array_equal(of_classes, values_of(dense(TABLE)).per_class)


def test_all_classes_are_all_classes() -> None:
    """Values to rounding; the limits of micro recall, which are Wilson's, may differ."""
    every = overall(values_of(dense(TABLE)))
    for key, value in chosen(over=(0, 1, 2)).items():
        np.testing.assert_allclose(value, every[key], rtol=1e-12, atol=1e-15, err_msg=key)


def test_a_single_class_has_its_own_value_and_nearly_its_interval() -> None:
    table = dense(TABLE)
    evaluation = evaluated(table, (1,))
    intervals = evaluation.intervals
    assert intervals is not None
    for key in ("recall", "precision", "f1", "jaccard"):
        place = evaluation.selection.place[key]
        low, high = intervals.per_class_low[place, 1], intervals.per_class_high[place, 1]
        for average in AVERAGES:
            value = evaluation.overall[evaluation.selection.overall_place[f"{average}_{key}"]]
            assert value == pytest.approx(evaluation.per_class[place, 1])
            assert interval(evaluation, f"{average}_{key}") == pytest.approx((low, high), abs=0.03)


def test_balanced_accuracy_is_adjusted_by_guesses_among_the_chosen_classes() -> None:
    values = chosen()
    balanced = float(values["balanced_accuracy"])
    assert float(values["adjusted_balanced_accuracy"]) == pytest.approx((balanced - 0.5) / 0.5)
    assert not np.isfinite(chosen(over=(1,))["adjusted_balanced_accuracy"])


@pytest.mark.parametrize("options", [{}, {"sampling": "fixed_rows"}, {"undefined": "zero"}])
def test_every_average_has_an_interval_around_its_value(options: Any) -> None:
    for table in (dense(TABLE), dense(TABLE, [5, 3, 0], [2, 0, 4])):
        some, every = evaluated(table, OVER, **options), evaluated(table, None, **options)
        for key in AVERAGED:
            value = some.overall[some.selection.overall_place[key]]
            low, high = interval(some, key)
            assert np.isnan(low) == np.isnan(interval(every, key)[0]), key
            assert np.isnan(low) or low <= value <= high, key


SHARES = np.array([[0.82, 0.03, 0.02], [0.015, 0.06, 0.005], [0.005, 0.005, 0.04]])
SAMPLED = tuple(f"{average}_{key}" for average in AVERAGES for key in ("recall", "precision", "f1"))


def test_intervals_cover_the_averages_of_chosen_classes() -> None:
    """Of 95 %: from 92 of 100 on, of tables in which most items are background."""
    tables = np.random.default_rng(5).multinomial(800, SHARES.ravel(), 600).reshape(-1, 3, 3)
    options = Options(indices=SAMPLED, average_over=OVER)
    estimates = Estimates.of(ConfusionTable.dense(tables.astype(float)), options, select(options))
    truth = overall(values_of(dense(SHARES * 1e6), indices=SAMPLED, average_over=OVER))
    intervals = estimates.intervals
    for place, entry in enumerate(estimates.values.selection.overall):
        low, high = intervals.overall_low[place], intervals.overall_high[place]
        covered = np.mean((low <= truth[entry.key]) & (truth[entry.key] <= high))
        assert covered > 0.92, entry.key


def test_a_stack_gives_what_each_table_gives() -> None:
    tables = np.array([TABLE, np.array(TABLE).T, np.array(TABLE)[::-1]], dtype=float)
    options = Options(families=("core",), average_over=OVER)
    stack = Estimates.of(ConfusionTable.dense(tables), options, select(options))
    for i, table in enumerate(tables):
        alone = Estimates.of(ConfusionTable.dense(table), options, select(options))
        np.testing.assert_allclose(stack.values.overall[:, i], alone.values.overall)
        np.testing.assert_allclose(
            stack.intervals.overall_low[:, i], alone.intervals.overall_low, rtol=1e-9
        )
        np.testing.assert_allclose(stack.values.part(i).overall, alone.values.overall)


def paired(seed: int = 3, n: int = 800, **fields: Any) -> tuple[Side, Side]:
    rng = np.random.default_rng(seed)
    true = rng.choice(3, n, p=SHARES.sum(1) / SHARES.sum())
    old, new = (np.where(rng.random(n) < q, true, rng.integers(0, 3, n)) for q in (0.7, 0.85))
    candidate, baseline = (side_of(true, p, 3, **fields) for p in (new, old))
    assert baseline.items is not None
    assert candidate.items is not None
    return candidate, replace(baseline, items=replace(baseline.items, true=candidate.items.true))


def without(table: Array, row: int, column: int, key: str) -> float:
    """Return an average of a table that lacks an item of one cell."""
    counts = table.copy()
    counts[row, column] -= 1
    return float(overall(values_of(dense(counts), indices=(key,), average_over=OVER))[key])


@pytest.mark.parametrize("key", SAMPLED)
def test_the_error_of_a_paired_difference_is_that_of_the_jackknife(key: str) -> None:
    candidate, baseline = paired()
    options = Options(indices=(key,), average_over=OVER)
    difference = compare(candidate, baseline, options).of_overall(key)
    assert difference.methods == INFLUENCE
    assert candidate.items is not None
    assert baseline.items is not None
    codes = candidate.items.true, baseline.items.predicted, candidate.items.predicted
    pairs, items = np.unique(np.stack(codes), axis=1, return_counts=True)
    old, new = (table_of(codes[0], predicted, 3).cells.counts for predicted in codes[1:])
    left_out = np.array(
        [without(new, row, after, key) - without(old, row, was, key) for row, was, after in pairs.T]
    )
    total = items.sum()
    centred = left_out - items @ left_out / total
    error = np.sqrt((total - 1) / total * (items @ centred**2))
    assert float(difference.influence_error) == pytest.approx(error, rel=0.1)


def test_classes_of_the_baseline_are_found_by_name() -> None:
    """The baseline has its classes in another order, and one more."""
    candidate, baseline = paired()
    assert baseline.items is not None
    turned = np.array([2, 0, 1, 4], dtype=np.uint8)
    true, predicted = turned[baseline.items.true], turned[baseline.items.predicted]
    other = side_of(true, predicted, 4, labels=("1", "2", "0", "more"))
    options = Options(indices=SAMPLED, average_over=OVER)
    expected = compare(candidate, baseline, options).overall
    compared = compare(candidate, other, options).overall
    np.testing.assert_allclose(compared.baseline, expected.baseline)
    np.testing.assert_allclose(compared.value, expected.value)


def drawn(n: int = 400) -> tuple[Array, Array]:
    rng = np.random.default_rng(2)
    true = rng.choice(3, n, p=SHARES.sum(1) / SHARES.sum())
    return true, np.where(rng.random(n) < 0.8, true, rng.integers(0, 3, n))


def estimated(items: Items) -> Estimates:
    options = Options(indices=SAMPLED, average_over=OVER)
    return Estimates.of(items_table(items, 3), options, select(options), items)


def test_items_that_come_twice_in_groups_count_once() -> None:
    true, predicted = drawn()
    groups = np.tile(np.arange(true.size), 2)
    alone = estimated(Items(true, predicted)).intervals
    twice = estimated(Items(np.tile(true, 2), np.tile(predicted, 2), groups)).intervals
    single, double = (each.overall_high - each.overall_low for each in (alone, twice))
    np.testing.assert_allclose(double, single, rtol=0.15)


def test_weights_are_those_of_scikit_learn() -> None:
    true, predicted = drawn()
    weights = np.random.default_rng(4).choice([1.0, 4.0], true.size)
    estimates = estimated(Items(true, predicted, weights=weights))
    arguments: dict[str, Any] = {"labels": list(OVER), "sample_weight": weights}
    for average in AVERAGES:
        place = estimates.values.selection.overall_place[f"{average}_f1"]
        expected = metrics.f1_score(true, predicted, average=average, **arguments)
        assert estimates.values.overall[place] == pytest.approx(expected)
        low, high = (
            each[place]
            for each in (estimates.intervals.overall_low, estimates.intervals.overall_high)
        )
        assert low < expected < high


def test_slices_have_averages_over_the_chosen_classes() -> None:
    true, predicted = drawn(900)
    region = np.arange(900) % 3
    column = SliceColumn(("x", "y", "z"), region.astype(np.uint8))
    slices = Slices.of_items({"region": column}, (), true * 4 + predicted, 3)
    options = Options(indices=SAMPLED, average_over=OVER)
    evaluation = evaluate_slices(slices, table_of(true, predicted, 3), options)
    for place, name in enumerate(evaluation.slices.names):
        inside = region == column.values.index(name["region"])
        alone = estimated(Items(true[inside], predicted[inside]))
        values = evaluation.values.overall[:, place]
        np.testing.assert_allclose(values, alone.values.overall)


@pytest.mark.parametrize("strata", ["true", "predicted"])
def test_a_population_has_averages_over_chosen_classes(strata: Any) -> None:
    population = Population(strata, np.array([0.5, 0.3, 0.2]))
    options = Options(indices=SAMPLED, average_over=OVER, population=population)
    estimates = Estimates.of(dense(TABLE), options, select(options))
    whole = population.table(dense(TABLE))
    expected = values_of(whole, indices=SAMPLED, average_over=OVER)
    np.testing.assert_allclose(estimates.values.overall, expected.overall)
    low, high = estimates.intervals.overall_low, estimates.intervals.overall_high
    assert (low < expected.overall).all()
    assert (high > expected.overall).all()


@pytest.mark.parametrize("sampling", ["random", "fixed_rows"])
def test_averages_of_areas_are_over_chosen_classes(sampling: Any) -> None:
    rng = np.random.default_rng(8)
    true = rng.choice(4, 600, p=[0.7, 0.1, 0.1, 0.1])
    scores = rng.dirichlet([1, 1, 1, 1], 600) + 0.25 * np.eye(4)[true]
    areas = [metrics.roc_auc_score(true == i, scores[:, i]) for i in range(4)]
    support = np.bincount(true)
    keys = ("macro_roc_auc", "weighted_roc_auc", "macro_average_precision", "hand_till_auc")
    predicted, intervals = scores.argmax(-1), {}
    for over in ((1, 2, 3), None, (0, 1, 2, 3)):
        options = Options(indices=keys, average_over=over, sampling=sampling)
        evaluation = evaluate(
            table_of(true, predicted, 4), names(4), options, scores=Scores(true, scores)
        )
        intervals[over] = np.array([interval(evaluation, key) for key in keys])
        values = dict(zip(evaluation.selection.overall_place, evaluation.overall, strict=True))
        classes = list(over or range(4))
        assert values["macro_roc_auc"] == pytest.approx(np.mean([areas[i] for i in classes]))
        weighted = np.average([areas[i] for i in classes], weights=support[classes])
        assert values["weighted_roc_auc"] == pytest.approx(weighted)
        assert all(
            low < values[key] < high for key, (low, high) in zip(keys, intervals[over], strict=True)
        )
    np.testing.assert_allclose(intervals[(0, 1, 2, 3)], intervals[None])
    np.testing.assert_allclose(intervals[(1, 2, 3)][-1], intervals[None][-1])


def judged(rule: Rule, over: tuple[int, ...] | None, sides: tuple[Side, Side]) -> tuple[Any, ...]:
    gate = Gate(rules=(rule,))
    options = Options(indices=gate.indices, average_over=over)
    comparison = compare(*sides, options)
    return run_gate(gate, sides[0], comparison, options, today=date(2026, 1, 1)).results


@pytest.mark.parametrize(("lost", "verdict"), [(10, "fail"), (1, "undecided")])
def test_a_gate_judges_the_chosen_classes(lost: int, verdict: str) -> None:
    """The background gets better while the rare classes get worse."""
    true = np.repeat([0, 1, 2], [900, 60, 40])
    old, new = true.copy(), true.copy()
    old[:90], new[:40] = 1, 1
    new[900 : 900 + lost] = new[960 : 960 + lost] = 0
    sides = side_of(true, new, 3), side_of(true, old, 3)
    rule = Rule(index="micro_recall", kind="max_drop", limit=0.02)
    assert judged(rule, None, sides)[0].verdict == "pass"
    assert judged(rule, OVER, sides)[0].verdict == verdict


def test_a_rule_about_classes_says_itself_which_it_is_about() -> None:
    rule = Rule(index="recall", kind="max_drop", limit=0.3, classes="all", policy="average")
    sides = paired()
    assert judged(rule, OVER, sides) == judged(rule, None, sides)
