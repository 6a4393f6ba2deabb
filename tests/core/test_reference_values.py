"""Every index reproduces values that others computed: the paper, PyCM, scikit-learn, fractions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import precision_score

from rprime.core.catalog import INDICES
from rprime.core.index import REASONS
from tests.core.index_values import dense, overall, per_class, values_of

REFERENCE = Path(__file__).parents[1] / "reference"
PAPER = json.loads((REFERENCE / "beyond_ap_tables.json").read_text())["matrices"]
ORACLE = json.loads((REFERENCE / "oracle_visible.json").read_text())["cases"]
OMISSIONS = json.loads((REFERENCE / "omissions.json").read_text())["cases"]
SCORES = json.loads((REFERENCE / "scores.json").read_text())["cases"]
MORE = json.loads((REFERENCE / "more_indices.json").read_text())["cases"]
PRINTED = {"recall_macro": "macro_recall", "precision_macro": "macro_precision"}


def assert_same(actual: Any, expected: Any, tolerance: float, where: str) -> None:
    for got, want in zip(np.atleast_1d(actual), np.atleast_1d(expected), strict=True):
        if want is None:
            assert not np.isfinite(got), where
        else:
            assert got == pytest.approx(want, rel=tolerance, abs=tolerance), where


@pytest.mark.parametrize("name", PAPER)
def test_the_tables_of_the_paper_give_its_printed_values(name: str) -> None:
    case = PAPER[name]
    values = values_of(dense(case["counts"]))
    assert np.round(per_class(values)["r_prime"], 4).tolist() == case["r_prime_per_class"]
    for key, printed in case["overall"].items():
        assert round(float(overall(values)[PRINTED.get(key, key)]), 4) == printed, key


@pytest.mark.parametrize("name", [*ORACLE, *MORE])
def test_reference_tables_give_their_values(name: str) -> None:
    case = ORACLE.get(name) or MORE[name]
    values = values_of(
        dense(case["matrix"]),
        **{
            k: np.array(v) if isinstance(v, list) else v for k, v in case.get("options", {}).items()
        },
    )
    for key, expected in case["per_class"].items():
        tolerance = 1e-6 if key == "gt_index" else 1e-9
        assert_same(per_class(values)[key], np.array(expected, object), tolerance, key)
    for key, expected in case["overall"].items():
        assert_same(overall(values)[key], np.array([expected], object), 1e-9, key)


@pytest.mark.parametrize("name", OMISSIONS)
def test_unclassified_and_spurious_items_count_as_specified(name: str) -> None:
    case = OMISSIONS[name]
    values = values_of(dense(case["confusion_matrix"], case["unclassified"], case["spurious"]))
    for key, expected in case["per_class"].items():
        assert_same(per_class(values)[key], expected, 1e-9, key)
    for key, expected in case["overall"].items():
        assert_same(overall(values)[key], [expected], 1e-9, key)


def test_every_declared_index_has_a_reference_value() -> None:
    cases = [*ORACLE.values(), *MORE.values(), *OMISSIONS.values(), *SCORES.values()]
    keys = {("class", key) for case in cases for key in case["per_class"]}
    keys |= {("overall", key) for case in cases for key in case["overall"]}
    declared = {(e.scope, e.key) for e in INDICES if e.reads not in ("weighted", "micro")}
    derived = {("overall", f"macro_{e.key}") for e in INDICES if e.scope == "class"}
    assert declared - derived <= keys


GIVEN_UP = [[1000, 300, 0, 0, 0], [20, 56, 0, 0, 0], *([40 + i, 0, 0, 0, 0] for i in (1, 1, 2))]


def test_a_model_does_not_gain_by_giving_classes_up() -> None:
    indices = overall(values_of(dense(GIVEN_UP)))
    true, predicted = (np.repeat(codes.ravel(), np.ravel(GIVEN_UP)) for codes in np.indices((5, 5)))
    assert np.bincount(predicted, minlength=5).tolist() == [1144, 356, 0, 0, 0]
    expected = precision_score(true, predicted, average="macro", zero_division=0)
    assert indices["macro_precision"] == pytest.approx(expected, rel=1e-12)
    assert indices["macro_false_discovery_rate"] == pytest.approx(1 - expected)
    assert indices["macro_kulczynski"] == pytest.approx((indices["csi"] + 1) / 2, rel=1e-12)
    recall = indices["macro_recall"]
    assert indices["csi"] == pytest.approx(recall + indices["macro_precision"] - 1, rel=1e-12)
    npv = values_of(dense(GIVEN_UP)).per_class[
        values_of(dense(GIVEN_UP)).selection.place["negative_predictive_value"]
    ]
    expected = indices["macro_precision"] + npv.mean() - 1
    assert indices["macro_markedness"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("undefined", ["null", "zero", "one"])
def test_a_class_without_items_takes_part_only_where_undefined_values_are_replaced(
    undefined: str,
) -> None:
    # The third class has no items but three predictions, the fourth has neither.
    table = dense([[8, 1, 1, 0], [2, 6, 2, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    values = values_of(table, undefined=undefined)
    indices = overall(values)
    precision = [8 / 10, 6 / 7]
    if undefined == "null":
        assert indices["macro_precision"] == pytest.approx(np.mean(precision))
        assert indices["macro_recall"] == pytest.approx((0.8 + 0.6) / 2)
        assert not values.defined[:, 2:].any()
    else:
        filler = float(undefined == "one")
        assert indices["macro_precision"] == pytest.approx(np.mean([*precision, 0, filler]))
        assert indices["macro_recall"] == pytest.approx((0.8 + 0.6 + 2 * filler) / 4)


def test_correlation_is_exactly_one_for_a_perfect_and_minus_one_for_a_wrong_classifier() -> None:
    for sizes in ([50, 20, 5, 2], [7, 3, 11], [3, 5, 7, 9, 11, 13], [10**8, 3 * 10**7, 17]):
        assert overall(values_of(dense(np.diag(sizes))))["mcc"] == 1
    for m, n in ([50, 20], [7, 3], [1, 13], [10**6 + 1, 7]):
        values = values_of(dense([[0, m], [n, 0]]))
        assert overall(values)["mcc"] == -1
        assert per_class(values)["class_mcc"].tolist() == [-1, -1]


def test_undefined_values_say_why() -> None:
    values = values_of(dense([[5, 0, 0], [0, 10, 0], [0, 300, 0]]))
    codes = values.class_reasons
    assert codes is not None
    place = values.selection.place
    reasons = {key: [REASONS[c] for c in codes[row]] for key, row in place.items()}
    assert reasons["precision"] == ["", "", "no_predictions"]
    assert reasons["recall"] == ["", "", ""]
    assert reasons["positive_likelihood_ratio"] == ["infinite", "", "no_predictions"]


def test_a_value_is_missing_exactly_where_a_reason_is_given() -> None:
    for case in [*ORACLE.values(), *MORE.values()]:
        values = values_of(dense(case["matrix"]))
        codes = (values.class_reasons, values.overall_reasons)
        for numbers, reasons in zip((values.per_class, values.overall), codes, strict=True):
            if reasons is None:
                assert np.isfinite(numbers).all()
            else:
                assert ((reasons > 0) == ~np.isfinite(numbers)).all()
