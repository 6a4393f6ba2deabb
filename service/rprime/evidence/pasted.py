"""Read a confusion matrix pasted from a spreadsheet, a console or a file."""

import csv
import re
from typing import Any

from rprime.problems.problem import Violation, invalid, refuse
from rprime.schemas.document import loads

Cells = list[list[str]]

MATRIX = "/confusion_matrix"
LONGEST_COUNT = 20
"""Most characters of a number; larger numbers are refused later."""
_ROW = re.compile(r"\[([^\[\]]*)\]")
_RULE = re.compile(r"[\s|:+-]*")
_NUMBER = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d*)?([eE][+-]?\d+)?")
_SEPARATORS = ("\t", ";", "|", ",")
_AMBIGUOUS = (
    "There is one more column than rows: is a row missing, or is the first number of each row the "
    "name of its class? Paste a square matrix, or names in the first row, too."
)
_SHARES = (
    "These look like shares, not counts. Paste the counts: scikit-learn prints them without "
    "`normalize`. Without the numbers of items nobody knows how certain the shares are."
)
_SHORTENED = (
    "The program that printed the matrix left a part of it out (`...`). Print all of it; with "
    "numpy after `np.set_printoptions(threshold=sys.maxsize)`."
)


def read_pasted(text: str) -> dict[str, Any]:
    """Read a request from text: JSON, or a matrix with or without the names of its classes.

    Rows of numbers are as spreadsheets, CSV, Markdown, numpy, scikit-learn and pandas write them.

    Raises
    ------
    Problem
        400 if it begins like JSON, but is not valid; 422 if it is not a matrix.
    """
    text = text.strip("\ufeff \r\n")
    if text.startswith("{"):
        return loads(text)
    if "..." in text or "…" in text:
        raise refuse(MATRIX, "shortened", _SHORTENED)
    if "[" in text:
        # JSON, Python, and numpy with or without commas.
        rows = [re.split(r"[\s,]+", row.strip(" ,\n\t\r")) for row in _ROW.findall(text)]
        members = {"confusion_matrix": _numbers(rows)}
    else:
        members = _tabular(_split(text))
    # Fractions, each of at most 1, or in rows that make 100 percent each.
    counts = members["confusion_matrix"]
    if any(number % 1 for row in counts for number in row) and (
        all(0 <= number <= 1 for row in counts for number in row)
        or all(abs(sum(row) - 100) <= 1 for row in counts)
    ):
        raise refuse(MATRIX, "shares", _SHARES)
    return members


def _split(text: str) -> Cells:
    """Read lines of cells by the separator that they have in common, or by spaces."""
    lines = [line for line in text.splitlines() if not _RULE.fullmatch(line)]
    separator = next((sign for sign in _SEPARATORS if any(sign in line for line in lines)), None)
    if separator is not None:
        if separator == "|":
            lines = [line.strip().strip("|") for line in lines]
        separated = csv.reader(lines, delimiter=separator)
        return [[cell.strip() for cell in row] for row in separated]
    rows = [line.split() for line in lines]
    # pandas can print the names of both axes, that of the rows on a line of its own.
    if len(rows) > 1 and len(rows[1]) == 1 and not _is_number(rows[1][0]):
        del rows[1]
    # A console omits the empty corner before the names of columns.
    if len(rows) > 1 and len(rows[0]) == len(rows[1]) - 1:
        rows[0].insert(0, "")
    return rows


def _tabular(rows: Cells) -> dict[str, Any]:
    """Separate the names of the classes from the counts."""
    header = bool(rows) and _has_header(rows)
    body = rows[header:]
    if not body:
        raise refuse(MATRIX, "empty", "There is no matrix yet. Paste one, with one row per class.")
    numbered = all(_is_number(row[0]) for row in body)
    if numbered and not header and len(rows[0]) == len(body) + 1:
        raise refuse(MATRIX, "ambiguous", _AMBIGUOUS)
    named = len(rows[0]) == len(body) + 1 or not numbered
    counts = _numbers([row[named:] for row in body], top=1 + header, left=1 + named)
    members: dict[str, Any] = {"confusion_matrix": counts}
    if named:
        members["labels"] = [row[0] for row in body]
    elif header:
        members["labels"] = rows[0]
    if header and named and rows[0][1:] != members["labels"]:
        detail = "The columns and the rows need the same names in the same order."
        raise refuse("/labels", "names_differ", detail)
    return members


def _has_header(rows: Cells) -> bool:
    first, count = rows[0], len(rows)
    if any(not _is_number(cell) for cell in first[1:]):
        return True
    # Numeric names show by an additional row, or by a corner.
    corner = first[0] == "" or (count > 2 and not _is_number(first[0]))  # noqa: PLR2004 (see there)
    return count == len(first) + 1 or (count == len(first) and corner)


def _is_number(cell: str) -> bool:
    return bool(cell) and _NUMBER.fullmatch(cell) is not None


def _numbers(rows: Cells, *, top: int = 1, left: int = 1) -> list[list[float]]:
    """Read counts, the first of which is at this row and column of the text, for messages."""
    bad = [
        (i, j) for i, row in enumerate(rows) for j, cell in enumerate(row) if not _is_number(cell)
    ]
    if bad:
        detail = "Row {}, column {} of what you pasted is not a number; write 0 for none."
        raise invalid(
            Violation(f"{MATRIX}/{i}/{j}", "not_a_number", detail.format(i + top, j + left))
            for i, j in bad
        )
    return [[_count(cell.replace(",", "")) for cell in row] for row in rows]


def _count(text: str) -> float:
    whole = text.lstrip("+-").isdecimal() and len(text) < LONGEST_COUNT
    return int(text) if whole else float(text)
