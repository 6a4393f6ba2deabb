"""Lines of CSV, parsed some at a time: wherever a block ends, the items are the same."""

import io
import random

import pytest

from rprime import evidence
from rprime.evidence.columns import LONGEST_LINE
from rprime.evidence.csv_body import line_number
from rprime.problems.problem import Problem
from rprime.settings import Limits

LIMITS = Limits(sparse_classes=10)


class Trickle(io.BytesIO):
    """Returns fewer bytes than a read asks for, as a connection does."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(random.Random(self.tell()).randint(1, size or 1))  # noqa: S311 (no secret)

    def seekable(self) -> bool:
        return False


def counts(body: bytes) -> dict[tuple[str, str], int]:
    document = evidence.read_columns("csv", Trickle(body), b"", LIMITS)
    sample = evidence.read(document, LIMITS)
    rows, columns, items = sample.table.cells.coordinates()
    named = [(sample.labels[i], sample.labels[j]) for i, j in zip(rows, columns, strict=True)]
    return dict(zip(named, items.astype(int).tolist(), strict=True))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", ["", "end"])
def test_an_end_of_a_block_is_no_end_of_a_line(end: str, last: str) -> None:
    rows = [f"{'cat' * (1 + i % 7)},{'dog' if i % 3 else 'cat'}" for i in range(70_000)]
    body = end.join(["y_true,y_pred", *rows]) + (end if last else "")
    assert len(body) > LONGEST_LINE
    expected: dict[tuple[str, str], int] = {}
    for row in rows:
        true, predicted = row.split(",")
        expected[true, predicted] = expected.get((true, predicted), 0) + 1
    assert counts(body.encode()) == expected


def test_empty_lines_are_no_items() -> None:
    assert counts(b"\n\ny_true,y_pred\n\na,a\n\r\n\nb,a\n\n") == {("a", "a"): 1, ("b", "a"): 1}


@pytest.mark.parametrize("first", ["sep=;", "SEP=;\r", '"sep=;"', "\ufeffsep=;"])
def test_the_first_line_of_a_spreadsheet_names_the_separator(first: str) -> None:
    assert counts(f"{first}\ny_true;y_pred;a,b\na;a;1\nb;a;2\n".encode()) == {
        ("a", "a"): 1,
        ("b", "a"): 1,
    }


@pytest.mark.parametrize("sign", [",", "\t", "|", ":", "~"])
def test_the_named_separator_counts(sign: str) -> None:
    lines = [["y_true", "y_pred", "a;b"], ["a", "a", "1"], ["b", "a", "2"]]
    body = "\n".join([f"sep={sign}", *map(sign.join, lines)])
    assert counts(body.encode()) == {("a", "a"): 1, ("b", "a"): 1}


def test_the_line_of_the_separator_is_a_line() -> None:
    with pytest.raises(Problem, match="Line 4 of the CSV has 1 field, the header 2"):
        counts(b"sep=;\ny_true;y_pred\na;a\nb\n")
    with pytest.raises(Problem, match="The CSV is empty"):
        counts(b"sep=;\n")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_line_of_an_item_is_found(end: str) -> None:
    lines = ["sep=;", "y_true;y_pred", "", "a;a", '"b', 'c";a', ";a", "", "b;b"]
    body = end.join(lines).encode()
    assert [line_number(Trickle(body), item) for item in range(4)] == [4, 5, 7, 9]
    with pytest.raises(Problem) as caught:
        counts(body)
    assert [error.pointer for error in caught.value.errors] == ["/y_true/2"]


def test_a_line_without_end_is_refused() -> None:
    with pytest.raises(Problem, match="longer than 1048576 bytes"):
        counts(b"y_true,y_pred\n" + b"a" * (3 * LONGEST_LINE))


@pytest.mark.parametrize("header", ["y_true,y_pred", "y_pred,y_true", "y_true;y_pred"])
def test_a_repeated_header_is_named_by_its_line(header: str) -> None:
    sign = ";" if ";" in header else ","
    rows = [header, f"a{sign}a", f"b{sign}b", header, f"a{sign}a"]
    with pytest.raises(Problem) as caught:
        counts("\n".join(rows).encode())
    assert [(fault.code, fault.pointer) for fault in caught.value.errors] == [
        ("repeated_header", "/y_true/2")
    ]
    assert "leave out line 4." in caught.value.errors[0].detail


def test_classes_called_like_a_column_are_classes() -> None:
    assert counts(b"y_true,y_pred\ny_true,a\na,y_pred\n") == {
        ("y_true", "a"): 1,
        ("a", "y_pred"): 1,
    }
