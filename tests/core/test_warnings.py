"""Every warning is given exactly where its condition holds."""

from typing import Any

import numpy as np
import pytest

from rprime.core.evaluate import evaluate, evaluate_stack
from rprime.core.options import Options
from rprime.core.table import ConfusionTable
from rprime.core.warnings import CHECKS, MOST_OF_ONE_CODE, Warning  # noqa: A004 (its name)
from tests.core.index_values import dense

QUIET = np.array([[90, 6, 4], [8, 85, 7], [5, 10, 85]])


def warnings_of(counts: Any, *vectors: Any) -> list[Warning]:
    table = dense(counts, *vectors)
    labels = tuple(f"class {i}" for i in range(table.k))
    return list(evaluate(table, labels, Options()).warnings)


def codes(counts: Any, *vectors: Any) -> set[str]:
    return {warning.code for warning in warnings_of(counts, *vectors)}


def test_a_good_balanced_table_gives_no_warning() -> None:
    assert warnings_of(QUIET) == []


TRIGGERS = {
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
    "low_interval_reliability": [[90, 3], [2, 5]],
}


@pytest.mark.parametrize("code", TRIGGERS)
def test_a_table_that_misleads_is_warned_about(code: str) -> None:
    assert code in codes(TRIGGERS[code])


def test_omissions_that_inflate_r_prime_are_warned_about() -> None:
    assert "omission_inflates_r_prime" in codes(QUIET, [4, 0, 0])
    assert "omission_inflates_r_prime" not in codes(QUIET, [3, 0, 0])


def test_every_warning_has_a_table_that_shows_it() -> None:
    assert {check.code for check in CHECKS} == {*TRIGGERS, "omission_inflates_r_prime"}


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
    assert never.pointer == "/per_class/e~1~0/r_prime"
    assert "e/~" in never.detail


def test_many_classes_do_not_flood_the_report() -> None:
    k = MOST_OF_ONE_CODE + 50
    few = [w for w in warnings_of(np.eye(k)) if w.code == "few_items"]
    assert len(few) == MOST_OF_ONE_CODE + 1
    assert "50 more classes" in few[-1].detail


def test_a_table_without_items_is_not_called_unequal() -> None:
    assert codes(np.zeros((2, 2))) == {"class_absent", "few_items"}


def test_a_stack_warns_about_each_of_its_tables_alone() -> None:
    tables = [dense(QUIET), dense(TRIGGERS["class_absent"]), dense(QUIET / 2)]
    labels = [("x", "y", "z")] * 3
    stacked = evaluate_stack(ConfusionTable.stack(tables), labels, Options())
    alone = [evaluate(table, labels[0], Options()) for table in tables]
    assert [e.warnings for e in stacked] == [e.warnings for e in alone]
