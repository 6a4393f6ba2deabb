"""Every warning is given exactly where its condition holds."""

from typing import Any

import numpy as np
import pytest

from rprime.core.evaluate import evaluate, evaluate_stack
from rprime.core.items import Items, table_of
from rprime.core.options import Options
from rprime.core.population import Population
from rprime.core.table import ConfusionTable
from rprime.core.warnings import CHECKS, MOST_NAMED, Warning  # noqa: A004 (its name)
from tests.core.index_values import dense

OF_OMISSIONS = {"omission_inflates_r_prime", "low_coverage"}
KEYS_OF_REPORTS = (
    ("r_prime",),
    ("accuracy",),
    ("f1_of_macro_averages",),
    ("phi",),
    ("class_mcc",),
    ("weighted_f1", "mcc"),
    ("recall", "kappa"),
)
QUIET = np.array([[90, 6, 4], [8, 85, 7], [5, 10, 85]])


def warnings_of(counts: Any, *vectors: Any) -> list[Warning]:
    table = dense(counts, *vectors)
    labels = tuple(f"class {i}" for i in range(table.k))
    return list(evaluate(table, labels, Options()).warnings)


def codes(counts: Any, *vectors: Any) -> set[str]:
    return {warning.code for warning in warnings_of(counts, *vectors)}


@pytest.mark.parametrize("items", [10, 30, 70, 700, 2900, 5700])
def test_a_threshold_that_is_exactly_reached_is_not_exceeded(items: int) -> None:
    # 1 % unclassified, and margins that differ by a tenth; 0.01 x 5700 is 57.00000000000001.
    part = items / 10
    whole = np.array([[6 * part, part], [2 * part, 1 * part]])
    assert not OF_OMISSIONS & codes(99 * whole, np.array([part * 5, part * 5]))
    assert codes(99 * whole, np.array([part * 5, part * 5 + 1])) >= OF_OMISSIONS
    assert "kappa_marginal_bias" not in codes(whole)
    assert "imbalance" in codes(np.array([[7 * part, part], [part, part]]))
    assert "imbalance" not in codes(np.array([[7 * part, part], [part, part + 1]]))


def test_r_prime_is_flooded_from_exactly_four_fifths_on() -> None:
    # R' of the last class is 5/5 - (10 - 5)/25 = 0.8.
    table = [[10, 0, 3], [0, 5, 2], [0, 0, 5]]
    assert evaluate(dense(table), ("a", "b", "c"), Options()).values.per_class[0, 2] < 0.8 + 1e-12
    assert "r_prime_flooded" not in codes(table)  # half of the predictions are right
    table = [[10, 0, 4], [0, 9, 2], [0, 0, 5]]
    values = evaluate(dense(table), ("a", "b", "c"), Options()).values
    assert values.per_class[values.selection.place["r_prime"], 2] == pytest.approx(0.8)
    assert "r_prime_flooded" in codes(table)


def test_a_good_balanced_table_gives_no_warning() -> None:
    assert warnings_of(QUIET) == []


TRIGGERS: dict[str, Any] = {
    "class_absent": [[50, 5, 0], [5, 60, 2], [0, 0, 0]],
    "class_never_predicted": [[50, 5, 0], [5, 60, 0], [20, 20, 0]],
    "single_true_class": [[50, 5], [0, 0]],
    "r_prime_at_chance": [[50, 50], [50, 50]],
    "r_prime_flooded": [[900, 20, 80], [20, 900, 80], [1, 1, 48]],
    "r_prime_incomparable": [[900, 5], [5, 40]],
    "few_items": [[90, 3], [2, 20]],
    "imbalance": [[900, 5], [5, 40]],
    "accuracy_not_above_no_information_rate": [[80, 10], [30, 5]],
    "kappa_paradox": [[90, 5], [5, 2]],
    "kappa_marginal_bias": [[60, 40], [5, 95]],
    "two_macro_f1": [[95, 5], [60, 40]],
    "association_ignores_labels": [[5, 95], [95, 5]],
    "non_integer_counts": [[90.5, 6], [8, 85]],
    "looks_like_shares": [[0.9, 0.1], [0.2, 0.8]],
}


@pytest.mark.parametrize("code", TRIGGERS)
def test_a_table_that_misleads_is_warned_about(code: str) -> None:
    table = dense(TRIGGERS[code])
    found = evaluate(table, tuple("abc"[: table.k]), Options(families=("core",))).warnings
    assert code in {warning.code for warning in found}


def test_the_summary_warns_of_all_but_indices_that_it_lacks() -> None:
    absent = {code for code, counts in TRIGGERS.items() if code not in codes(counts)}
    assert absent == {"association_ignores_labels"}


def test_an_interval_of_few_items_is_warned_about_with_the_class() -> None:
    pairs = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [40, 5, 5, 40], axis=0)
    items = Items(pairs[:, 0], pairs[:, 1], np.arange(90) // 18)
    found = evaluate(table_of(items, 2), ("a", "b"), Options(), items).warnings
    assert [w.classes for w in found if w.code == "few_items"] == [("a", "b")]


def test_omissions_that_inflate_r_prime_are_warned_about() -> None:
    assert codes(QUIET, [4, 0, 0]) >= OF_OMISSIONS
    assert not OF_OMISSIONS & codes(QUIET, [3, 0, 0])


def test_kappa_beside_a_lower_accuracy_is_warned_about() -> None:
    warnings = warnings_of([[50, 0], [0, 50]], [10, 10])
    pointers = {w.code: w.pointer for w in warnings}
    assert pointers["low_coverage"] == "/overall/kappa"


def test_the_bias_of_kappa_is_that_of_the_classified_items() -> None:
    # The classified items are unbiased, whatever is left unclassified.
    assert "kappa_marginal_bias" not in codes([[45, 5], [5, 45]], [60, 60])
    assert "kappa_marginal_bias" in codes([[60, 40], [5, 95]], [400, 400])


@pytest.mark.parametrize(
    "counts",
    [
        [[0.95, 0.05], [0.1, 0.9]],
        [[95.1, 4.9], [9.8, 90.2]],
        [[33.33, 33.33, 33.33], [0, 99.5, 0.5], [0, 0, 0]],
        [[0.45, 0.05], [0.1, 0.4]],
        [[45.5, 4.5], [10.25, 39.75]],
        [[0.9, 0.25], [0.1, 0.75]],
    ],
)
def test_shares_and_percentages_are_warned_about(counts: Any) -> None:
    assert "looks_like_shares" in codes(counts)


@pytest.mark.parametrize(
    "counts",
    [
        [[95, 5], [10, 90]],
        [[1, 0], [0, 1]],
        [[45, 5], [5, 45]],
        [[95.5, 4.5], [10, 80]],
        [[7.5, 2], [1.25, 9]],
        [[0, 0], [0, 0]],
    ],
)
def test_tables_of_items_are_not_taken_for_shares(counts: Any) -> None:
    assert "looks_like_shares" not in codes(counts)


def test_sums_of_weights_are_not_taken_for_shares() -> None:
    table = ConfusionTable.dense(np.array([[0.5, 0.5], [0.25, 0.75]]), weighted=True)
    warning_codes = {w.code for w in evaluate(table, ("a", "b"), Options()).warnings}
    assert "looks_like_shares" not in warning_codes
    assert "weighted_without_intervals" in warning_codes
    unasked = evaluate(table, ("a", "b"), Options(intervals=False)).warnings
    assert "weighted_without_intervals" not in {w.code for w in unasked}


def test_every_warning_has_a_table_that_shows_it() -> None:
    shown = {*TRIGGERS, *OF_OMISSIONS, "class_without_share", "weighted_without_intervals"}
    assert {check.code for check in CHECKS} == shown


def test_a_class_without_a_share_is_not_called_absent() -> None:
    options = Options(population=Population("true", np.array([0.5, 0.5, 0])))
    warning_codes = {w.code for w in evaluate(dense(QUIET), ("a", "b", "c"), options).warnings}
    assert "class_without_share" in warning_codes
    assert "class_absent" not in warning_codes


@pytest.mark.parametrize("code", TRIGGERS)
@pytest.mark.parametrize("keys", KEYS_OF_REPORTS, ids=lambda keys: keys[0])
def test_no_warning_is_about_what_is_not_reported(code: str, keys: tuple[str, ...]) -> None:
    counts = np.array(TRIGGERS[code])
    table = dense(counts, [9] * len(counts))
    labels = tuple(map(str, range(table.k)))
    evaluation = evaluate(table, labels, Options(indices=keys))
    overall = {entry.key for entry in evaluation.selection.overall}
    per_class = {entry.key for entry in evaluation.selection.per_class}
    for warning in evaluation.warnings:
        match warning.pointer.split("/")[1:]:
            case ["overall", key]:
                assert key in overall
            case ["per_class", _, "indices", key]:
                assert key in per_class
            case place:
                assert place[0] in {"counts", "per_class"}


def test_a_report_of_r_prime_alone_has_no_warning_about_kappa() -> None:
    table = dense(TRIGGERS["kappa_paradox"], [9, 9])
    warnings = evaluate(table, ("a", "b"), Options(indices=("r_prime",))).warnings
    assert not {w.code for w in warnings} & {"kappa_paradox", "kappa_marginal_bias", "low_coverage"}


@pytest.mark.parametrize(
    ("code", "holds", "holds_not"),
    [
        ("few_items", [[29, 0], [9, 91]], [[30, 0], [9, 91]]),
        ("imbalance", [[800, 0], [0, 200]], [[799, 0], [0, 201]]),
        ("r_prime_incomparable", [[1001, 0], [0, 100]], [[1000, 0], [0, 100]]),
    ],
)
def test_conditions_are_exact_at_their_bounds(code: str, holds: Any, holds_not: Any) -> None:
    assert code in codes(holds)
    assert code not in codes(holds_not)


def test_a_warning_points_at_what_it_is_about() -> None:
    table = dense(TRIGGERS["class_never_predicted"])
    evaluation = evaluate(table, ("a/b", "c~d", "e/~"), Options())
    never = next(w for w in evaluation.warnings if w.code == "class_never_predicted")
    assert never.pointer == "/per_class/e~1~0"
    assert "e/~" in never.detail


def test_many_classes_do_not_flood_the_report() -> None:
    k = MOST_NAMED + 50
    found = warnings_of(np.eye(k))
    few = next(w for w in found if w.code == "few_items")
    assert few.classes == tuple(f"class {i}" for i in range(MOST_NAMED))
    assert few.more == 50
    assert few.detail.startswith(
        "Classes `class 0`, `class 1`, `class 2`, `class 3`, `class 4` and 65"
    )
    assert few.pointer == "/per_class"
    assert len(found) <= 10
    assert len({w.code for w in found}) == len(found)


def test_a_table_without_items_is_not_called_unequal() -> None:
    assert codes(np.zeros((2, 2))) == {"class_absent"}


def test_a_stack_warns_about_each_of_its_tables_alone() -> None:
    tables = [dense(QUIET), dense(TRIGGERS["class_absent"]), dense(QUIET / 2)]
    labels = [("x", "y", "z")] * 3
    stacked = evaluate_stack(ConfusionTable.stack(tables), labels, Options())
    alone = [evaluate(table, labels[0], Options()) for table in tables]
    assert [e.warnings for e in stacked] == [e.warnings for e in alone]
