"""A matrix is read as people have it: from spreadsheets, consoles, files and documents."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix

from rprime.evidence.pasted import read_pasted
from rprime.problems.problem import Problem

COUNTS = [[1125, 2], [3, 4]]
NAMES = ["cat", "dog"]
FRAME = pd.DataFrame(COUNTS, index=NAMES, columns=NAMES)
TRUE = ["cat"] * 1127 + ["dog"] * 7
PREDICTED = ["cat"] * 1125 + ["dog"] * 2 + ["cat"] * 3 + ["dog"] * 4
BARE = {
    "spreadsheet": "1125\t2\r\n3\t4\r\n",
    "csv": "1125,2\n3,4\n",
    "semicolons": "1125;2\n3;4",
    "spaces": "1125 2\n  3 4",
    "json": "[[1125, 2], [3, 4]]",
    "numpy": str(np.array(COUNTS)),
    "numpy repr": repr(np.array(COUNTS)),
    "scikit-learn": str(confusion_matrix(TRUE, PREDICTED)),
}
NAMED = {
    "spreadsheet": "a\\b\tcat\tdog\ncat\t1125\t2\ndog\t3\t4",
    "rows": "cat\t1125\t2\ndog\t3\t4",
    "columns": "cat\tdog\n1125\t2\n3\t4",
    "csv": FRAME.to_csv(),
    "quoted csv": '"","cat","dog"\n"cat",1125,2\n"dog",3,4',
    "pandas": str(FRAME),
    "crosstab": str(pd.crosstab(pd.Series(TRUE, name="y"), pd.Series(PREDICTED, name="p"))),
    "markdown": "|   | cat | dog |\n|---|---:|:--|\n| cat | 1125 | 2 |\n| dog | 3 | 4 |",
}


@pytest.mark.parametrize("form", BARE)
def test_a_matrix_without_names(form: str) -> None:
    assert read_pasted(BARE[form]) == {"confusion_matrix": COUNTS}


@pytest.mark.parametrize("form", NAMED)
def test_a_matrix_with_names(form: str) -> None:
    assert read_pasted(NAMED[form]) == {"confusion_matrix": COUNTS, "labels": NAMES}


@pytest.mark.parametrize("text", ["\t0\t1\n0\t5\t2\n1\t3\t4", "0\t1\n5\t2\n3\t4"])
def test_names_may_be_numbers(text: str) -> None:
    assert read_pasted(text) == {"confusion_matrix": [[5, 2], [3, 4]], "labels": ["0", "1"]}


def test_fractions_and_wrong_counts_are_left_to_the_rules_for_all_matrices() -> None:
    assert read_pasted("0.5 -2\n3 1e3") == {"confusion_matrix": [[0.5, -2], [3, 1000.0]]}


def test_a_whole_request_stays_as_it_is() -> None:
    assert read_pasted('{"y_true": [1], "y_pred": [1]}') == {"y_true": [1], "y_pred": [1]}


@pytest.mark.parametrize(
    ("text", "code", "pointer"),
    [
        ("", "empty", "/confusion_matrix"),
        ("hello world", "empty", "/confusion_matrix"),
        ("1\t2\t3\n3\tx\t4\n5\t6\t7", "not_a_number", "/confusion_matrix/1/1"),
        ("[[1 2 ... 3]\n [4 5 ... 6]]", "shortened", "/confusion_matrix"),
        ("0.95 0.05\n0 1", "shares", "/confusion_matrix"),
        ("[[95.5, 4.5], [10, 90]]", "shares", "/confusion_matrix"),
        ("\tcat\tdog\ndog\t1\t2\ncat\t3\t4", "names_differ", "/labels"),
    ],
)
def test_what_is_no_matrix_is_refused_with_its_place(text: str, code: str, pointer: str) -> None:
    with pytest.raises(Problem) as caught:
        read_pasted(text)
    assert [(fault.code, fault.pointer) for fault in caught.value.errors] == [(code, pointer)]


def test_broken_json_is_unreadable_and_not_repeated() -> None:
    with pytest.raises(Problem, match=r"unreadable_body.*line 1, column 2") as caught:
        read_pasted('{secret": 1}')
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", ["1 2 3\n4 5 6", "0\t5\t2\n1\t3\t4", "1,2,3\n4,5,6"])
def test_numbers_that_may_be_names_are_asked_about(text: str) -> None:
    with pytest.raises(Problem) as caught:
        read_pasted(text)
    assert "is a row missing, or is the first number" in caught.value.errors[0].detail


PREDICTED_ROWS = [[50, 10], [3, 46]]
"""Counts whose rows are predictions."""
PRINTS_WITH_PREDICTIONS_IN_ROWS = {
    "crosstab to_csv": "Predicted,a,b\na,50,10\nb,3,46\n",
    "semicolons": "Predicted;a;b\na;50;10\nb;3;46\n",
    "corner of both": "Predicted \\ Actual,a,b\na,50,10\nb,3,46\n",
    "corner with a slash": "Prediction/Truth\ta\tb\na\t50\t10\nb\t3\t46",
    "map": "map \\ reference,a,b\na,50,10\nb,3,46",
    "markdown": "| Predicted / Actual | a | b |\n|---|---|---|\n| a | 50 | 10 |\n| b | 3 | 46 |",
    "pandas": "Actual      a   b\nPredicted        \na          50  10\nb           3  46",
    "R table": "    truth\npred  a  b\n   a 50 10\n   b  3 46",
    "yardstick": "          Truth\nPrediction  a  b\n         a 50 10\n         b  3 46",
    "caret": (
        "Confusion Matrix and Statistics\n\n          Reference\nPrediction  a  b\n"
        "         a 50 10\n         b  3 46\n                                          \n"
        "Overall Statistics\n\n               Accuracy : 0.8807\n"
    ),
    "line above": ",Actual,\nPredicted,a,b\na,50,10\nb,3,46",
    "prefixes": ",True a,True b\nPred a,50,10\nPred b,3,46",
}
PRINTS_WITH_TRUTH_IN_ROWS = {
    "WEKA": (
        "=== Confusion Matrix ===\n\n  a  b   <-- classified as\n 50 10 |  a = a\n  3 46 |  b = b\n"
    ),
    "H2O": (
        "Confusion Matrix (Act/Pred) for max f1 @ threshold = 0.5:\n"
        "       a    b    Error    Rate\n-----  ---  ---  -------  ----\n"
        "a      50   10   0.1667   (10.0/60.0)\nb      3    46   0.0612   (3.0/49.0)\n"
        "Total  53   56   0.1193   (13.0/109.0)\n"
    ),
    "actual": "Actual,a,b\na,50,10\nb,3,46",
    "trailing commas": "true,a,b,\na,50,10,\nb,3,46,",
    "prefixes": ",Pred a,Pred b\nTrue a,50,10\nTrue b,3,46",
}


@pytest.mark.parametrize("form", PRINTS_WITH_PREDICTIONS_IN_ROWS)
def test_names_of_axes_say_that_rows_are_predictions(form: str) -> None:
    assert read_pasted(PRINTS_WITH_PREDICTIONS_IN_ROWS[form]) == {
        "confusion_matrix": PREDICTED_ROWS,
        "labels": ["a", "b"],
        "axis": "rows_are_predicted",
    }


@pytest.mark.parametrize("form", PRINTS_WITH_TRUTH_IN_ROWS)
def test_prints_with_true_classes_in_rows(form: str) -> None:
    assert read_pasted(PRINTS_WITH_TRUTH_IN_ROWS[form]) == {
        "confusion_matrix": PREDICTED_ROWS,
        "labels": ["a", "b"],
        "axis": "rows_are_true",
    }


def test_a_print_of_r_without_names_of_axes_is_read() -> None:
    text = "   \n     a  b\n  a 50 10\n  b  3 46\n"
    assert read_pasted(text) == {"confusion_matrix": PREDICTED_ROWS, "labels": ["a", "b"]}


@pytest.mark.parametrize("cell", ["1.250", "1,250"])
@pytest.mark.parametrize("text", ["{}\t2\n3\t4", ";a;b\na;{};2\nb;3;4", "a;b\n{};2\n3;4"])
def test_one_group_of_three_digits_is_asked_about(cell: str, text: str) -> None:
    with pytest.raises(Problem) as caught:
        read_pasted(text.format(cell))
    assert [fault.code for fault in caught.value.errors] == ["thousands"]
    assert f"`{cell}` may be 1250 or 1.25." in caught.value.errors[0].detail


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("1.250.000\t1.250\n3\t4", [[1250000, 1250], [3, 4]]),
        ("1,250,000\t1,250\n3\t4", [[1250000, 1250], [3, 4]]),
        ("1.250,5\t1.250\n3\t4", [[1250.5, 1250], [3, 4]]),
        ("1,250.5\t1,250\n3\t4", [[1250.5, 1250], [3, 4]]),
        ("1.250\t0.5\n3\t4", [[1.25, 0.5], [3, 4]]),
        ("1,25;2\n3;4", [[1.25, 2], [3, 4]]),
        ("[[1.250, 2], [3, 4]]", [[1.25, 2], [3, 4]]),
    ],
)
def test_other_numbers_of_the_table_prove_what_a_separator_is(
    text: str, counts: list[list[float]]
) -> None:
    assert read_pasted(text) == {"confusion_matrix": counts}


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (",a,b\na,50,-\nb,3,46\n", "not_a_number", "write 0 for none"),
        (",a,b\na,50,.\nb,3,46\n", "not_a_number", "write 0 for none"),
        (",a,b,Total\na,50,10,60\nb,3,46,49", "totals", "The last column holds totals"),
        (",a,b\na,50,10\nb,3,46\nAll,53,56", "totals", "The last row holds totals"),
        ("epoch 3\n50 10\n3 46", "ambiguous", "a heading or the names of the classes?"),
        ("label,prediction,count\na,a,5\na,a,3\nb,b,4", "long_table", "Add up their counts"),
        (",caf\ufffd,b\ncaf\ufffd,50,10\nb,3,46", "not_utf8", "iconv -f cp1252"),
        ("Predicted / Prediction,a,b\na,1,2\nb,3,4", "axes_agree", "Both axes are named as"),
        (",a,b\na,50,10\nb,3," + "4" * 200_000, "no_matrix", "more than 131,072 characters"),
        ("   precision    recall  f1-score   support\n a 1 1 1 5", "no_matrix", "print(confusion"),
    ],
)
def test_what_is_refused_says_what_to_do(text: str, code: str, words: str) -> None:
    with pytest.raises(Problem) as caught:
        read_pasted(text)
    assert [fault.code for fault in caught.value.errors] == [code]
    assert words in caught.value.errors[0].detail


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        (",a[1],b\na[1],50,10\nb,3,46", ["a[1]", "b"]),
        (",a...,b\na...,50,10\nb,3,46", ["a...", "b"]),
        (",a,n\na,50,10\nn,3,46", ["a", "n"]),
        ("cm = [50 10; 3 46]", None),
        ("[50, 10; 3, 46];", None),
        ("2\N{MULTIPLICATION SIGN}2 Matrix{Int64}:\n 50  10\n  3  46", None),
        ("tensor([[50, 10],\n        [ 3, 46]], device='cuda:0')", None),
        ("np.array([[50, 10], [3, 46]])", None),
    ],
)
def test_signs_in_names_and_around_numbers_are_told_apart(
    text: str, labels: list[str] | None
) -> None:
    members = read_pasted(text)
    assert (members["confusion_matrix"], members.get("labels")) == ([[50, 10], [3, 46]], labels)
