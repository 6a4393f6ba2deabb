"""Frames and columns are read as their types and the names of their axes say."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rprime

ACTUAL = ["a"] * 53 + ["b"] * 47
PREDICTED = ["a"] * 50 + ["b"] * 3 + ["a"] * 10 + ["b"] * 37
LEVELS = ["low", "medium", "high"]
ORDERED = ["low", "low", "medium", "medium", "high", "high"]
GUESSED = ["low", "medium", "medium", "medium", "high", "low"]
KEYS = ["quadratic_weighted_kappa", "linear_weighted_kappa"]
DTYPE = pd.CategoricalDtype(LEVELS, ordered=True)


def ordered_dictionary(values: list[str]) -> Any:
    places = pa.array([LEVELS.index(value) for value in values], pa.int8())
    return pa.DictionaryArray.from_arrays(places, pa.array(LEVELS), ordered=True)


COLUMNS: dict[str, Callable[[list[str]], Any]] = {
    "pandas series": lambda values: pd.Series(values, dtype=DTYPE),
    "pandas array": lambda values: pd.Categorical(values, dtype=DTYPE),
    "polars": lambda values: pl.Series(values, dtype=pl.Enum(LEVELS)),
    "arrow": ordered_dictionary,
    "arrow chunks": lambda values: pa.chunked_array([ordered_dictionary(values)]),
}


def crosstab(rows: str, columns: str) -> pd.DataFrame:
    """Count with the predictions in the rows."""
    return pd.crosstab(pd.Series(PREDICTED, name=rows), pd.Series(ACTUAL, name=columns))


def recall(report: rprime.Report) -> float | None:
    return report.per_class["a"]["recall"].value


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ("Predicted", "Actual"),
        ("prediction", "truth"),
        ("y_pred", "y_true"),
        ("pred_label", "gold_label"),
        ("PredictedClass", "ReferenceClass"),
        ("classified as", ""),
        ("x", "reference"),
    ],
)
def test_names_of_axes_say_that_rows_are_predictions(rows: str, columns: str) -> None:
    table = crosstab(rows, columns)
    assert recall(rprime.evaluate(confusion_matrix=table)) == pytest.approx(50 / 53)
    turned = rprime.evaluate(confusion_matrix=table.T)
    assert recall(turned) == pytest.approx(50 / 53)


def test_axes_without_a_side_have_true_classes_in_rows() -> None:
    assert recall(rprime.evaluate(confusion_matrix=crosstab("x", "y"))) == pytest.approx(50 / 60)


def test_the_frame_of_a_baseline_is_turned_like_that_of_a_candidate() -> None:
    table = crosstab("predicted", "actual")
    report = rprime.evaluate(confusion_matrix=table.T, baseline={"confusion_matrix": table})
    assert report.comparison is not None
    assert report.comparison.overall["macro_recall"].value == pytest.approx(0)


def test_names_of_axes_that_contradict_are_refused() -> None:
    table = crosstab("predicted", "actual")
    with pytest.raises(ValueError, match="the rows are predictions, and `axis` is rows_are_true"):
        rprime.evaluate(confusion_matrix=table, axis="rows_are_true")
    with pytest.raises(ValueError, match="Both axes are named as predictions"):
        rprime.evaluate(confusion_matrix=crosstab("predicted", "predictions"))


@pytest.mark.parametrize("library", COLUMNS)
def test_ordered_categories_keep_their_order(library: str) -> None:
    true, predicted = (COLUMNS[library](values) for values in (ORDERED, GUESSED))
    report = rprime.evaluate(true, predicted, indices=KEYS)
    assert report.labels == LEVELS
    # As scikit-learn's cohen_kappa_score gives them with the labels in this order.
    assert report.overall["quadratic_weighted_kappa"].value == pytest.approx(2 / 7)
    assert report.overall["linear_weighted_kappa"].value == pytest.approx(0.4)


def test_one_ordered_column_is_enough_if_it_has_all_labels() -> None:
    true = pd.Series(ORDERED, dtype=DTYPE)
    assert rprime.evaluate(true, GUESSED).labels == LEVELS
    assert rprime.evaluate(ORDERED, true).labels == LEVELS
    assert rprime.evaluate(true, ["other", *GUESSED[1:]]).labels == sorted([*LEVELS, "other"])


def test_a_baseline_has_the_order_of_the_candidate() -> None:
    true = pd.Series(ORDERED, dtype=DTYPE)
    report = rprime.evaluate(true, GUESSED, baseline={"y_pred": GUESSED})
    assert report.labels == LEVELS
    other = rprime.evaluate(true, GUESSED, baseline={"y_pred": ["other", *GUESSED[1:]]})
    assert other.labels == sorted(LEVELS)


def test_orders_that_differ_are_refused() -> None:
    true, other = pd.Series(ORDERED, dtype=DTYPE), pd.CategoricalDtype(LEVELS[::-1], ordered=True)
    with pytest.raises(ValueError, match="ordered categories of `y_true` and `y_pred` differ"):
        rprime.evaluate(true, pd.Series(GUESSED, dtype=other))


def test_scores_without_names_stay_in_the_order_of_sorted_classes() -> None:
    true = pd.Series(ORDERED, dtype=DTYPE)
    score = [[float(label == name) for name in sorted(LEVELS)] for label in ORDERED]
    assert rprime.evaluate(true, y_score=score).overall["accuracy"].value == 1


def test_categories_without_an_order_are_sorted() -> None:
    true = pd.Series(ORDERED, dtype=pd.CategoricalDtype(LEVELS))
    assert rprime.evaluate(true, GUESSED).labels == sorted(LEVELS)


@pytest.mark.parametrize("names", [{}, {"a": 0, "b": 1}])
def test_margins_of_a_crosstab_are_left_out(names: dict[str, int]) -> None:
    true, predicted = (
        pd.Series([names.get(label, label) for label in labels], name=name)
        for labels, name in ((ACTUAL, "actual"), (PREDICTED, "predicted"))
    )
    report = rprime.evaluate(confusion_matrix=pd.crosstab(predicted, true, margins=True))
    assert report.labels == [str(names.get(label, label)) for label in "ab"]
    assert report.overall["accuracy"].value == pytest.approx(0.87)
    assert "totals_left_out" in [warning.code for warning in report.warnings]


@pytest.mark.parametrize("kind", [int, str])
def test_a_class_that_is_never_predicted_needs_its_column(kind: type) -> None:
    table = pd.crosstab(pd.Series([0, 1, 2]).map(kind), pd.Series([0, 1, 1]).map(kind))
    with pytest.raises(ValueError, match=r"\.reindex\(index=names, columns=names, fill_value=0\)"):
        rprime.evaluate(confusion_matrix=table)


def test_series_of_one_index_in_another_order_are_refused() -> None:
    true = pd.Series(ORDERED, index=list("uvwxyz"))
    shuffled = pd.Series(GUESSED, index=list("uvwxyz")).iloc[::-1]
    with pytest.raises(ValueError, match=r"pass `y_pred\.reindex"):
        rprime.evaluate(true, shuffled)
    right = rprime.evaluate(true, shuffled.reindex(true.index))
    assert right.overall["accuracy"].value == pytest.approx(4 / 6)
    assert rprime.evaluate(true, pd.Series(GUESSED)).overall["accuracy"].value == pytest.approx(
        4 / 6
    )


@pytest.mark.parametrize(
    ("true", "predicted", "kind", "words"),
    [
        ([2**70], [1], ValueError, r"`y_true\[0\]` lies beyond 64 bits"),
        (["a"], ["\ud800"], ValueError, r"`y_pred\[0\]` has a lone surrogate"),
        ([np.array([1, 2])], [np.array([1, 2])], TypeError, "numpy.concatenate joins the batches"),
        (["a"], [0.2], ValueError, "scores are `y_score`"),
    ],
)
def test_a_label_without_a_form_is_told_with_its_place(
    true: list[object], predicted: list[object], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        rprime.evaluate(true, predicted)


def test_too_many_positions_are_told_by_their_names() -> None:
    evaluate: Any = rprime.evaluate
    with pytest.raises(TypeError, match=r"evaluate\(\) takes y_true, y_pred by position"):
        evaluate(["a"], ["a"], ["b"])
