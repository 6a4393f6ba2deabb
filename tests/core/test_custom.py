"""Indices of one's own: their values, gradients, ranges, intervals, tests and rules."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rprime.core.arrays import Array
from rprime.core.comparison.compare import compare
from rprime.core.custom import (
    LONGEST_EXPRESSION,
    MOST_NODES,
    CustomIndex,
    ExpressionError,
    expression_of,
)
from rprime.core.evaluate import Evaluation, evaluate
from rprime.core.gates.rules import mistakes
from rprime.core.index import REASONS
from rprime.core.intervals.delta import overall_gradient
from rprime.core.options import Options
from rprime.core.table import ConfusionTable
from tests.core.comparison_sides import JOINT, names, sides_of
from tests.core.exact_indices import ExactTable
from tests.core.gate_cases import floor, gate_of, judged, tabled

LABELS = ("cat", "dog", "fox")
COUNTS = [[50, 4, 7], [9, 40, 2], [1, 12, 30]]
OMITTED = [3, 0, 2]
TABLE = ConfusionTable.dense(np.array(COUNTS, float), np.array(OMITTED, float))
MONEY = "(5 * cells['cat', 'dog'] + cells['dog', 'cat']) / items"


def options_of(labels: tuple[str, ...] = LABELS, /, **expressions: str) -> Options:
    custom = tuple(CustomIndex.bound(name, text, labels) for name, text in expressions.items())
    return Options(custom=custom, indices=tuple(index.key for index in custom))


def evaluated(table: ConfusionTable = TABLE, **expressions: str) -> Evaluation:
    return evaluate(table, LABELS, options_of(**expressions))


def value_of(expression: str, table: ConfusionTable = TABLE) -> float:
    return float(evaluated(table, mine=expression).overall[0])


Exact = Callable[[ExactTable], Any]
EXACT: dict[str, Exact] = {
    MONEY: lambda _: Fraction(5 * 4 + 9, 160),
    "0.5 * macro_recall + 0.25 * precision['dog']": lambda t: (
        t.overall()["macro_recall"] / 2 + t.classes()["precision"][1] / 4
    ),
    "kappa * f1['fox'] - -2 / tpr['cat']": lambda t: (
        t.overall()["kappa"] * t.classes()["f1"][2] + 2 / t.classes()["recall"][0]
    ),
    "(support['cat'] - predicted['fox']) / true_negatives['dog']": lambda t: (
        (t.support()[0] - t.predicted()[2]) / t.one(1).tn
    ),
    "(tp['fox'] + 2 * fn['fox'] - fp['cat']) / (items + 1.5)": lambda t: (
        (t.one(2).tp + 2 * t.one(2).fn - t.one(0).fp) / (Fraction(160) + Fraction(3, 2))
    ),
    "cells['fox', None] + cells['fox', 'fox']": lambda _: Fraction(32),
}


@pytest.mark.parametrize("expression", EXACT)
def test_a_value_is_that_of_exact_arithmetic(expression: str) -> None:
    exact = EXACT[expression](ExactTable(COUNTS, OMITTED, [0, 0, 0]))
    assert value_of(expression) == pytest.approx(float(exact), rel=1e-14)


def test_sparse_tables_and_stacks_have_the_same_values() -> None:
    rows, columns = np.nonzero(np.array(COUNTS))
    counts = np.array(COUNTS, float)[rows, columns]
    sparse = ConfusionTable.sparse(rows, columns, counts, 3, unclassified=np.array(OMITTED))
    for expression in EXACT:
        assert value_of(expression, sparse) == value_of(expression)
        stack = ConfusionTable.stack([TABLE, TABLE])
        values = evaluate(stack, LABELS, options_of(mine=expression)).values.overall
        assert values[0].tolist() == [value_of(expression)] * 2


GROWING = ("(tp['fox']", "cells['fox', None]")
"""How expressions begin that grow with the items: these have no interval."""
DIFFERENTIATED = (
    *(expression for expression in EXACT if not expression.startswith(GROWING)),
    "macro_f1 * kappa - 2 * precision['dog'] / recall['cat']",
    "cells['cat', 'dog'] / support['cat'] + cells['dog', None] / items",
    "mcc + r_prime['fox'] * weighted_f1",
    "micro_precision / (1 + specificity['cat'])",
)


@pytest.mark.parametrize("expression", DIFFERENTIATED)
def test_a_gradient_is_that_of_differences(expression: str) -> None:
    rows, columns = (part.ravel() for part in np.indices((3, 4)))
    gradient = overall_gradient(evaluated(mine=expression).values).at(rows, columns)[0]
    step = 1e-3

    def moved(row: int, column: int, items: float) -> float:
        counts, silent = np.array(COUNTS, float), np.array(OMITTED, float)
        if column < len(LABELS):
            counts[row, column] += items
        else:
            silent[row] += items
        return value_of(expression, ConfusionTable.dense(counts, silent))

    for row, column, change in zip(rows.tolist(), columns.tolist(), gradient, strict=True):
        expected = (moved(row, column, step) - moved(row, column, -step)) / (2 * step)
        assert change == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("key", ["weighted_f1", "kappa", "mcc", "weighted_precision"])
def test_the_expression_of_one_index_has_its_score_interval(key: str) -> None:
    table = ConfusionTable.dense(np.array(COUNTS, float))
    custom = options_of(mine=f"1 * {key}").custom
    both = evaluate(table, LABELS, Options(custom=custom, indices=(key, "custom.mine")))
    intervals = both.intervals
    assert intervals is not None
    for limits in (both.overall, intervals.overall_low, intervals.overall_high):
        assert limits[1] == pytest.approx(limits[0], abs=1e-12)


def test_money_by_cells_is_the_expected_cost() -> None:
    cost = np.array([[0.0, 5, 0], [1, 0, 0], [0, 0, 0]])
    table = ConfusionTable.dense(np.array(COUNTS, float))
    custom = options_of(money=MONEY).custom
    keys = ("expected_cost", "custom.money")
    both = evaluate(table, LABELS, Options(custom=custom, cost=cost, indices=keys))
    intervals = both.intervals
    assert intervals is not None
    for limits in (both.overall, intervals.overall_low, intervals.overall_high):
        assert limits[1] == pytest.approx(limits[0], abs=1e-12)


def test_an_expression_of_an_average_has_its_paired_test() -> None:
    joint = JOINT["joint_truth_old_new"]
    labels = names(len(joint))
    recalls = " + ".join(f"recall['{label}']" for label in labels)
    custom = options_of(labels, f1="macro_f1", recall=f"({recalls}) / {len(labels)}").custom
    keys = ("macro_f1", "macro_recall", "custom.f1", "custom.recall")
    compared = compare(*sides_of(joint), Options(custom=custom, indices=keys))
    f1, custom_f1 = compared.of_overall("macro_f1"), compared.of_overall("custom.f1")
    for name in ("value", "candidate", "baseline", "influence_error"):
        assert getattr(custom_f1, name) == pytest.approx(getattr(f1, name), abs=1e-12)
    recall, mine = compared.of_overall("macro_recall"), compared.of_overall("custom.recall")
    assert mine.value == pytest.approx(recall.value, abs=1e-12)
    # An average has half of the guard where many changes contribute; this is not known to be one.
    assert recall.influence_error <= mine.influence_error < 1.1 * recall.influence_error


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        (MONEY, 0, 5),
        ("cells['cat', 'dog'] / support['cat']", 0, 1),
        ("(2 * fn['cat'] - tp['cat']) / items", -1, 2),
        ("0.7 * macro_recall + 0.3 * precision['cat']", 0, 1),
        ("recall['cat'] - 2 * recall['dog']", -2, 1),
        ("kappa * -3", -3, 3),
        ("1 / (1 + recall['cat'])", 0.5, 1),
        ("1 / recall['cat']", -np.inf, np.inf),
        ("tp['cat'] / fp['cat']", -np.inf, np.inf),
        ("lift['cat'] * 0", -np.inf, np.inf),
    ],
)
def test_a_range_is_that_of_all_tables(expression: str, low: float, high: float) -> None:
    extent = CustomIndex.bound("mine", expression, LABELS).extent(TABLE)
    assert (extent.low, extent.high) == pytest.approx((low, high))


def test_without_a_range_an_interval_is_that_of_the_standard_error() -> None:
    """The interval of 1 / accuracy is a mirrored image in the first order."""
    counts = np.array(COUNTS, float) * 1e6
    inverse = evaluated(ConfusionTable.dense(counts), mine="1 / accuracy").intervals
    plain = evaluate(ConfusionTable.dense(counts), LABELS, Options(indices=("accuracy",))).intervals
    assert inverse is not None
    assert plain is not None
    ends = np.array([inverse.overall_low[0], inverse.overall_high[0]])
    expected = 1 / np.array([plain.overall_high[0], plain.overall_low[0]])
    assert ends == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("expression", "counts", "reason"),
    [
        ("1 / cells['cat', 'fox']", [[5, 1, 0], [2, 4, 1], [1, 1, 4]], "zero_denominator"),
        ("precision['fox'] + 1", [[5, 1, 0], [2, 4, 0], [1, 1, 0]], "no_predictions"),
        ("2 * recall['fox']", [[5, 1, 0], [2, 4, 1], [0, 0, 0]], "no_true_samples"),
        ("items / items", np.zeros((3, 3)), "zero_denominator"),
        ("positive_likelihood_ratio['cat']", [[5, 0, 0], [0, 4, 1], [0, 1, 4]], "infinite"),
    ],
)
def test_what_rests_on_nothing_is_null_with_a_reason(
    expression: str, counts: Any, reason: str
) -> None:
    evaluation = evaluated(ConfusionTable.dense(np.array(counts, float)), mine=expression)
    codes = evaluation.values.overall_reasons
    assert np.isnan(evaluation.overall[0])
    assert codes is not None
    assert REASONS[int(codes[0])] == reason


def test_what_grows_with_the_items_has_no_interval() -> None:
    intervals = evaluated(mine="5 * cells['cat', 'dog']", other="items / 2 + kappa").intervals
    assert intervals is not None
    assert np.isnan(intervals.overall_low).all()
    assert [REASONS[int(code)] for code in intervals.overall_reasons] == ["no_interval"] * 2


@pytest.mark.parametrize(
    ("expression", "code", "column"),
    [
        ("", "not_an_expression", 1),
        ("3 / 4", "not_an_expression", 1),
        ("kappa +", "not_an_expression", 8),
        ("2 * (kappa", "not_an_expression", 5),
        ("kappa ** 2", "not_an_expression", 1),
        ("kappa + __import__('os').system('true')", "not_an_expression", 9),
        ("kappa + (mcc if accuracy else 1)", "not_an_expression", 10),
        ("kappa.real", "not_an_expression", 1),
        ("kappa + True", "not_an_expression", 9),
        ("kappa + 1j", "not_an_expression", 9),
        ("f'{kappa}'", "not_an_expression", 1),
        ("recall['\\d']", "not_an_expression", 9),
        ("kappa\x00", "not_an_expression", None),
        ("1e999 * kappa", "out_of_range", 1),
        ("kappa * 1" + "0" * 400, "out_of_range", 9),
        ("kappa + kapa", "unknown_index", 9),
        ("  kappa +\n nope", "unknown_index", 12),
        ("recall['cat'] + recall['bat']", "unknown_class", 17),
        ("recall[cat]", "unknown_class", 8),
        ("cells[None, 'cat']", "unknown_class", 1),
        ("recall[None]", "unknown_class", 1),
        ("kappa + recall", "invalid_index", 9),
        ("macro_recall['cat']", "invalid_index", 1),
        ("recall['cat', 'dog']", "invalid_index", 1),
        ("cells['cat']", "invalid_index", 1),
        ("items['cat']", "invalid_index", 1),
        ("log_loss", "invalid_index", 1),
        ("expected_cost", "invalid_index", 1),
        ("x" * (LONGEST_EXPRESSION + 1), "too_long", LONGEST_EXPRESSION + 1),
        ("-" * MOST_NODES + "kappa", "too_long", 1),
        ("(" * 400 + "kappa" + ")" * 400, "not_an_expression", None),
    ],
)
def test_what_is_no_expression_is_refused_with_its_column(
    expression: str, code: str, column: int | None
) -> None:
    with pytest.raises(ExpressionError) as refused:
        CustomIndex.bound("mine", expression, LABELS)
    assert refused.value.code == code
    assert column in (None, refused.value.column)
    assert str(refused.value).startswith(f"Column {refused.value.column}: ")


def test_a_column_counts_characters_and_not_bytes() -> None:
    with pytest.raises(ExpressionError) as refused:
        expression_of("recall['é'] + nope")
    assert refused.value.column == 15


def test_a_class_may_have_any_name() -> None:
    labels = ("it's", 'a "b" \\ c', "-1", "3")
    table = ConfusionTable.dense(np.diag([1.0, 2, 3, 4]))
    expression = (
        r"""support["it's"] + 10 * support['a "b" \\ c'] + 100 * support[-1] + support[3]"""
    )
    options = options_of(labels, mine=expression)
    assert evaluate(table, labels, options).overall[0] == pytest.approx(1 + 20 + 300 + 4)


def rule_on_money(limit: float, counts: Array) -> str:
    side = tabled(counts)
    labels = side.labels
    text = "(5 * cells['{0}', '{1}'] + cells['{1}', '{0}']) / items".format(*labels)
    rule = floor(limit, index="custom.money", kind="max_value")
    (result,) = judged(rule, side, options=options_of(labels, money=text)).results
    return result.verdict


def test_a_rule_fails_is_undecided_and_passes_by_its_limits() -> None:
    counts = np.array([[80.0, 10], [20, 890]])  # costs 0.07
    assert rule_on_money(0.03, counts) == "fail"
    assert rule_on_money(0.07, counts) == "undecided"
    assert rule_on_money(0.2, counts) == "pass"


@pytest.mark.parametrize(
    ("expression", "test", "code"),
    [
        ("kappa", "auto", "unknown_index"),
        ("kappa", "none", "unknown_index"),
        ("cells['cat', 'dog']", "auto", "no_interval"),
        ("cells['cat', 'dog']", "none", None),
    ],
)
def test_a_rule_needs_an_expression_that_can_decide_it(
    expression: str, test: Any, code: str | None
) -> None:
    name = "mine" if code == "unknown_index" else "money"
    rule = floor(3, index="custom.money", kind="max_value", test=test)
    found = next(mistakes(gate_of(rule), options_of(**{name: expression})), None)
    assert (found and found.code) == code


def test_plain_means_over_other_classes_are_not_compared() -> None:
    options = options_of(("0", "1"), mean="0.5 * macro_recall", money="cells['0', '1'] / items")
    ours = tabled(np.array([[40.0, 5], [6, 50]]), "set")
    theirs = tabled(np.array([[40.0, 5], [0, 0]]), "set")
    compared = compare(ours, theirs, options)
    assert compared.comparability == "same_test_set"
    # The mean is compared over the items of the class that both sides have.
    assert compared.of_overall("custom.mean").candidate == pytest.approx(0.5 * 40 / 45)
    assert compared.of_overall("custom.money").candidate == pytest.approx(5 / 101)
