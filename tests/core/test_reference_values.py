"""Every index reproduces values that others computed: the paper, PyCM, scikit-learn, fractions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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


def assert_same(found: Any, expected: Any, tolerance: float, where: str) -> None:
    for got, want in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
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
    values = values_of(
        dense(case["confusion_matrix"], case["unclassified"], case["spurious"]),
    )
    for key, expected in case["per_class"].items():
        assert_same(per_class(values)[key], expected, 1e-9, key)
    for key, expected in case["overall"].items():
        assert_same(overall(values)[key], [expected], 1e-9, key)


def test_every_declared_index_has_a_reference_value() -> None:
    cases = [*ORACLE.values(), *MORE.values(), *OMISSIONS.values(), *SCORES.values()]
    known = {("class", key) for case in cases for key in case["per_class"]}
    known |= {("overall", key) for case in cases for key in case["overall"]}
    declared = {(e.scope, e.key) for e in INDICES if e.reads not in ("weighted", "micro")}
    derived = {("overall", f"macro_{e.key}") for e in INDICES if e.scope == "class"}
    assert declared - derived <= known


def test_undefined_values_say_why() -> None:
    values = values_of(dense([[5, 0, 0], [0, 10, 0], [0, 300, 0]]))
    codes = values.class_reasons
    assert codes is not None
    place = values.selection.place
    reasons = {key: [REASONS[c] for c in codes[row]] for key, row in place.items()}
    assert reasons["precision"] == ["", "", "no_predictions"]
    assert reasons["recall"] == ["", "", ""]
    assert reasons["positive_likelihood_ratio"] == ["infinite", "", "infinite"]


def test_a_value_is_missing_exactly_where_a_reason_is_given() -> None:
    for case in [*ORACLE.values(), *MORE.values()]:
        values = values_of(dense(case["matrix"]))
        codes = (values.class_reasons, values.overall_reasons)
        for found, reasons in zip((values.per_class, values.overall), codes, strict=True):
            if reasons is None:
                assert np.isfinite(found).all()
            else:
                assert ((reasons > 0) == ~np.isfinite(found)).all()
