"""A report has the family `summary`, or the families and indices that a request names."""

from typing import get_args

import numpy as np
import pytest

import rprime
from rprime.application.stored_sides import read_options, write_options
from rprime.core.catalog import FAMILY_OF, INDICES
from rprime.core.families.averages import AVERAGES
from rprime.core.index import Family
from rprime.core.options import Options
from rprime.core.selection import select

TRUE, PREDICTED = [0, 0, 1, 1, 2, 2], [0, 1, 1, 1, 2, 0]


def families_of(options: Options, *, scored: bool = False) -> set[str]:
    chosen = select(options, scored=scored)
    return {entry.family for entry in (*chosen.per_class, *chosen.overall)}


def test_a_key_has_one_family_and_every_family_has_indices() -> None:
    assert all(FAMILY_OF[entry.key] == entry.family for entry in INDICES)
    assert set(FAMILY_OF.values()) == set(get_args(Family))


@pytest.mark.parametrize("family", get_args(Family))
def test_a_report_has_the_families_that_are_named_and_no_others(family: Family) -> None:
    assert families_of(Options(families=(family,)), scored=True) == {family}
    assert families_of(Options(indices=("accuracy",), families=(family,)), scored=True) == {
        "core",
        family,
    }
    assert families_of(Options(families=("all",)), scored=True) == set(get_args(Family))


def keys_of(options: Options, **evidence: bool) -> tuple[list[str], list[str]]:
    chosen = select(options, **evidence)
    overall, per_class = ([e.key for e in part] for part in (chosen.overall, chosen.per_class))
    return overall, per_class


OVERALL = [
    *("accuracy", "r_prime", "balanced_accuracy", "macro_precision", "macro_recall", "macro_f1"),
    *("weighted_f1", "kappa", "mcc"),
]
OF_SCORES = [
    *("macro_roc_auc", "macro_average_precision"),
    *("log_loss", "brier_score", "expected_calibration_error"),
]
PER_CLASS = ["r_prime", "recall", "precision", "f1", "informedness", "share_of_errors"]


def test_without_any_name_a_report_is_the_summary_in_its_order() -> None:
    assert keys_of(Options()) == (OVERALL, PER_CLASS)
    assert keys_of(Options(), omits=True) == ([*OVERALL, "coverage"], PER_CLASS)
    assert keys_of(Options(), scored=True) == (OVERALL + OF_SCORES, PER_CLASS)
    assert keys_of(Options(families=("summary",))) == (OVERALL, PER_CLASS)


def test_an_option_adds_its_index_to_the_summary() -> None:
    weighted = keys_of(Options(kappa_weights="linear", cost=np.eye(2)))[0]
    assert weighted[len(OVERALL) :] == [
        *("weighted_kappa", "expected_cost", "normalized_expected_cost")
    ]
    overall, per_class = keys_of(Options(beta=2.0))
    assert set(overall[len(OVERALL) :]) == {f"{kind}_f_beta" for kind in AVERAGES}
    assert per_class == [*PER_CLASS, "f_beta"]


def test_named_indices_are_all_that_a_report_has() -> None:
    options = Options(indices=("kappa", "specificity"), beta=2.0)
    assert keys_of(options, scored=True, omits=True) == (["kappa"], ["specificity"])


def test_f_beta_is_in_the_core_only_with_its_option() -> None:
    plain, given = (keys_of(Options(families=("core",), beta=beta)) for beta in (1.0, 2.0))
    assert "f_beta" not in plain[1]
    assert "f_beta" in given[1]
    assert {"macro_f_beta"} == set(given[0]) - set(plain[0]) - {"weighted_f_beta", "micro_f_beta"}
    assert "f_beta" in keys_of(Options(families=("all",)))[1]


def test_counts_and_shares_of_one_whole_have_no_averages() -> None:
    single = {entry.key for entry in INDICES if entry.scope == "class" and not entry.averaged}
    assert single == {
        *("true_positives", "false_positives", "false_negatives", "true_negatives"),
        *("prevalence", "predicted_prevalence", "share_of_errors", "lift", "gt_index"),
        *("positive_likelihood_ratio", "negative_likelihood_ratio", "diagnostic_odds_ratio"),
        *("class_quantity_disagreement", "class_allocation_disagreement"),
    }
    assert not {f"{kind}_{key}" for kind in AVERAGES for key in single} & set(FAMILY_OF)


def test_without_scores_families_have_no_indices_of_scores() -> None:
    chosen = select(Options(families=("all",)))
    assert not any(entry.scored for entry in (*chosen.per_class, *chosen.overall))


def test_a_request_names_families() -> None:
    plain, more = (rprime.evaluate(TRUE, PREDICTED, families=f) for f in ([], ["classic"]))
    assert "true_positives" not in plain.per_class["0"]
    assert more.per_class["0"]["true_positives"].value == 1
    assert "bangdiwala_b" not in more.overall


def test_a_gate_may_name_an_index_of_any_family() -> None:
    rules = [{"index": "bangdiwala_b", "min_value": 0.9, "test": "none"}]
    report = rprime.evaluate(TRUE, PREDICTED, gates={"rules": rules})
    assert report.gate is not None
    assert report.gate.verdict == "fail"


def test_families_are_stored_with_the_options() -> None:
    kept = read_options(write_options(Options(families=("classic", "agreement")), None), 10)
    assert kept.families == ("classic", "agreement")
