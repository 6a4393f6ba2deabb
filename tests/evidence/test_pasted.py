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
    "thousands": "1,125\t2\n3\t4",
    "csv": "1125,2\n3,4\n",
    "semicolons": "1125;2\n3;4",
    "spaces": "1125 2\n  3 4",
    "json": "[[1125, 2], [3, 4]]",
    "numpy": str(np.array(COUNTS)),
    "numpy repr": repr(np.array(COUNTS)),
    "scikit-learn": str(confusion_matrix(TRUE, PREDICTED)),
}
NAMED = {
    "spreadsheet": "true\\predicted\tcat\tdog\ncat\t1,125\t2\ndog\t3\t4",
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
