"""Read a confusion matrix pasted from a spreadsheet, a console or a file."""

import csv
import re
from collections.abc import Mapping
from itertools import chain, takewhile
from math import isinf
from typing import Any, NamedTuple

from rprime.core.index_names import listed
from rprime.core.labels import axis_by_names, contradiction, integer_text, is_total, long_form
from rprime.problems.problem import Violation, invalid, refuse
from rprime.schemas.document import loads

Cells = list[list[str]]

MATRIX = "/confusion_matrix"
LONGEST_COUNT = 20
"""Most characters of a number; larger numbers are refused later."""
_ROW = re.compile(r"\[([^\[\]]*)\]")
_BRACKETS = re.compile(
    r"\s*+(?:\w++\s*+=\s*+)?(?:<tf\.Tensor[^\[]*?numpy=\s*+)?"
    r"(?:(?:\w++\.)?(?:array|tensor|Tensor|matrix|DenseMatrix)\()?\s*+\[[\s\d.,;eE+\[\]-]*\]"
    r"\s*+[;)]?(?:\s*+,\s*+(?:dtype|device|shape)\s*+=.*\)?)?\s*+>?\s*+",
    re.DOTALL,
)
"""Brackets around numbers alone: class names may have brackets, too."""
_OMISSION = re.compile(r"(?:^|[\s,\[])(?:\.\.\.|\u2026)(?=$|[\s,\]])", re.MULTILINE)
_JULIA = re.compile(r"\s*\d+\s*[x\u00d7]\s*\d+ [^\n]*:[ \t]*\n")
_VARIABLE = re.compile(r"\s*\w+ =\s*\n\s*\n")
"""How MATLAB names what it prints."""
_RULE = re.compile(
    r"[\s|:+\u2500-\u257f-]*|\s*# A tibble[^\n]*|\s*\(\d+ rows?\)\s*|shape: \([\d, ]+\)"
)
"""A line without content: under a header, around a table, or with its size."""
_TYPE = re.compile(
    r"<\w+>|str|cat|enum|[iuf]\d+|(?:var)?char|u?(?:big)?int(?:eger)?\d*|double|float\d*"
)
"""A type that polars, DuckDB and tibbles print below the name of a column."""
_BOX = str.maketrans(dict.fromkeys("\u2502\u2503\u2506\u250a\u2551", "|"))
_LATEX_END = re.compile(r"\\\\(?:\[[^\]\n]*\])?[ \t]*(?:\\hline[ \t]*)?$", re.MULTILINE)
_LATEX_RULE = re.compile(
    r"^[ \t]*\\(?:hline|toprule|midrule|bottomrule|begin|end).*\n?", re.MULTILINE
)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d+)*[.]?|[.]\d+)(?:[eE][+-]?\d+)?")
_GROUPS = re.compile(r"(?<=\d)['\u2019\u00a0\u202f](?=\d{3}(?!\d))")
"""Separators of thousands that nothing else uses."""
_SPACED = re.compile(r"[+-]?[1-9]\d{0,2}(?: \d{3})+")
"""Thousands separated by spaces, in a cell."""
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}")
"""One separator before three digits: of thousands or of decimals."""
_SEVERAL_GROUPS = re.compile(
    r"[+-]?[1-9]\d{0,2}(?:(?:,\d{3}){2,}(?:\.\d*)?|,\d{3}\.\d*|(?:\.\d{3}){2,}(?:,\d*)?|\.\d{3},\d*)"
)
_TITLE = re.compile(r"\s*confusion matrix[^\n]*\n", re.IGNORECASE)
_STATISTICS = re.compile(r"^[ \t]*Overall Statistics", re.MULTILINE)
"""What caret prints below its table."""
_WEKA = re.compile(r"<-+ classified as[^\n]*\n((?:[^\n]*\|[^\n]*=[^\n]*(?:\n|$))+)")
_WEKA_ROW = re.compile(r"([\d.\s]+)\|\s*\S+\s*=\s*(.+)")
_ML_NET = re.compile(r"PREDICTED\s*\|\|([^\n]*)\n\s*TRUTH\s*\|\|[^\n]*\n(.*)", re.DOTALL)
_REPORT = re.compile(r"precision\s+recall\s+f1-score")
_PAIR = re.compile(r"\s*(?:[\\/|\u2192]|\bvs?\.?\s)\s*")
_PREFIXED = re.compile(r"([^\W\d_]+)[\s_:=.-]+(.+)")
_SEPARATORS = ("\t", ";", "|", ",")
_AMBIGUOUS = (
    "There is one more column than rows: is a row missing, or is the first number of each row the "
    "name of its class? Paste a square matrix, or names in the first row, too."
)
_THOUSANDS = (
    "`{}` may be {} or {}. Write counts without a separator of thousands, and fractions with "
    "another number of digits."
)
_NOT_THE_MATRIX = (
    "This is a report of scikit-learn, which has no counts of confusions. "
    "Paste `print(confusion_matrix(y_true, y_pred))`."
)
_SMALLEST = 2
"""Rows of the smallest matrix."""
_ITEMS = 30
"""Four numbers with a smaller sum may be the labels of two items."""
_ITEMS_OR_COUNTS = (
    "Two lines of two numbers may be a matrix, or two items without a header. Name the classes in "
    "the first line and the first column, or begin with the line `y_true,y_pred`."
)
_CELLS = {"tn", "fp", "fn", "tp"}
_CELLS_IN_A_ROW = (
    "These are the four counts of two classes in one row. Write them as a matrix with a row for "
    "each true class: `,no,yes`, then `no,TN,FP`, then `yes,FN,TP`."
)
_ONE_SIDE = "The last {0} holds totals, and no {1} does. Leave it out, or give the totals of both."
_NOT_UTF8 = (
    "The text has characters that were not UTF-8. Save the file as UTF-8, as by "
    "`iconv -f cp1252 -t utf-8`, and paste it again."
)
LONG_FORM = "Read as a table in long form: each row counts the items of a pair of classes."
_FOUR_CELLS = re.compile(r"(?:\b[TF][PN]\s*[=:]\s*\d+\W*){4}")
_PAIR_TWICE = (
    "Each row counts the items of a pair of classes, and a pair stands there twice. Add up their "
    "counts."
)
_HEADING = (
    "Is the first line a heading or the names of the classes? Leave a heading out; write names in "
    "front of the rows, too."
)
_NO_NUMBERS = (
    "There is no table of numbers in this text. A table of counts has a row and a column for each "
    "class; items begin with the line `y_true,y_pred`."
)
_NOT_A_NUMBER = "Row {}, column {} of the table is not a number; write 0 for none."
_A_WORD = (
    "Row {}, column {} of the table is no number. Separate columns by commas or tabs if names "
    "have spaces; items begin with the line `y_true,y_pred`."
)
_EMPTY = "There is no matrix yet. Paste one, with one row per class."
_WORD = re.compile(r"(?!nan$|none$|null$|na$|n/a$)[^\W\d_]{2}", re.IGNORECASE)
_PERCENT = re.compile(r"[\d.,]+\s*%")
_MOST_HEADS = 2
"""Lines above the counts of a print."""
_LONG_CELL = f"A cell of the table has more than {csv.field_size_limit():,} characters."
_TOO_LARGE = "`{}` is larger than any number of items."
_NAMES_DIFFER = (
    "The columns and the rows need the same names in the same order; the columns are {}, the rows "
    "{}. A class that one side lacks needs a line of zeros there, as by pandas "
    "`.reindex(index=names, columns=names, fill_value=0)`."
)
_SHOWN = 5
_SHARES = (
    "These look like shares, not counts. Paste the counts: scikit-learn prints them without "
    "`normalize`. Without the numbers of items nobody knows how certain the shares are."
)
_SHORTENED = (
    "The program that printed the matrix left a part of it out (`...`). Print all of it; with "
    "numpy after `np.set_printoptions(threshold=sys.maxsize)`."
)


def read_pasted(text: str) -> dict[str, Any]:
    """Read a request from text: JSON, or a table of counts with or without names of its classes.

    Rows of numbers are as spreadsheets, CSV, Markdown, LaTeX, databases, numpy, scikit-learn,
    pandas, polars, R's `table`, caret, yardstick, WEKA, ML.NET and H2O write them. Names of both
    axes become the member `axis`; a table in long form becomes `cells`.

    Raises
    ------
    Problem
        400 if it begins like JSON, but is not valid; 422 if it is no table of counts.
    """
    text = text.strip("\ufeff\r\n")
    if text.lstrip().startswith("{"):
        return loads(text)
    if "\ufffd" in text:
        raise refuse(MATRIX, "not_utf8", _NOT_UTF8)
    if _OMISSION.search(text):
        raise refuse(MATRIX, "shortened", _SHORTENED)
    if _REPORT.search(text):
        raise refuse(MATRIX, "no_matrix", _NOT_THE_MATRIX)
    if (printed := _WEKA.search(text)) is not None:
        members = _of_weka(printed[1])
    elif (printed := _ML_NET.search(text)) is not None:
        members = _of_ml_net(printed[2])
    elif _BRACKETS.fullmatch(text):
        # JSON, Python, and numpy with or without commas.
        lists = [part for row in _ROW.findall(text) for part in row.split(";")]
        rows = [re.split(r"[\s,]+", row.strip(" ,\n\t\r")) for row in lists]
        members = {"confusion_matrix": _numbers(rows, decimal=".")}
    else:
        members = _tabular(*_split(text))
    _refuse_shares(members.get("confusion_matrix", []))
    return members


_PRINTS = (
    *(_WEKA.search, _ML_NET.search, _REPORT.search, _BRACKETS.fullmatch),
    *(_TITLE.match, _FOUR_CELLS.match, _VARIABLE.match, _JULIA.match),
)
"""Find what no CSV of items has."""


def read_printed(text: str) -> dict[str, Any] | None:
    """Read a file that has the form of a table, as members of a request; None of another form.

    Words beside numbers are classes if the first line and the first column have them in common.

    Raises
    ------
    Problem
        422 if it has the form, but cannot be read.
    """
    if any(finds(text) for finds in _PRINTS):
        return read_pasted(text)
    rows, _ = _split(text)
    if len(rows) < _SMALLEST or not rows[0]:
        return None
    _refuse_cells_in_a_row(rows)
    if all(_is_number(cell) for row in rows for cell in row):
        return _bare(text, rows)
    if _long_columns(rows):
        # Those of a sheet are read as columns, which may be as many as there are items.
        lines = text.splitlines()
        is_sheet = any(all(sign in line for line in lines if line) for sign in ",;\t")
        return None if is_sheet else read_pasted(text)
    above, beside = ([_class_name(cell) for cell in line] for line in (rows[0][1:], _first(rows)))
    inside = [cell for row in rows[1:] for cell in row[1:]]
    numbers = sum(map(_is_number, inside)) + sum(map(bool, map(_PERCENT.fullmatch, inside)))
    prefixes = {match[1] for cell in rows[0][1:] if (match := _PREFIXED.fullmatch(cell))}
    are_sides = len(prefixes) == 1 and set(above).isdisjoint(rows[0][1:])
    is_matrix = are_sides or len(set(above) & set(beside)) * 2 > len(set(beside))
    return read_pasted(text) if is_matrix and 2 * numbers > len(inside) else None


def _bare(text: str, rows: Cells) -> dict[str, Any] | None:
    """Read numbers without names; refuse a few, which may be two items without a header."""
    if any(len(row) != len(rows) for row in rows):
        return None
    members = read_pasted(text)
    if len(rows) == _SMALLEST and sum(map(sum, members["confusion_matrix"])) < _ITEMS:
        raise refuse("", "ambiguous", _ITEMS_OR_COUNTS)
    return members


def _first(rows: Cells) -> list[str]:
    return [row[0] for row in rows[1:]]


def _class_name(cell: str) -> str:
    """Return the name of a class without that of its axis, as `Predicted` in `Predicted cat`."""
    match = _PREFIXED.fullmatch(cell)
    return match[2] if match and _Sides(match[1]).axis() is not None else cell


def _refuse_cells_in_a_row(rows: Cells) -> None:
    """Refuse the four counts of two classes in one row, as `TN, FP, FN, TP` or `TN=1 FP=2`."""
    if not rows:
        return
    initials = {"".join(re.findall(r"\b[a-z]", cell.casefold())) for cell in rows[0]}
    equations = _FOUR_CELLS.search(" ".join(rows[0]))
    if initials >= _CELLS or equations or {cell.casefold() for cell in rows[0]} >= _CELLS:
        raise refuse(MATRIX, "no_matrix", _CELLS_IN_A_ROW)


def reading(members: Mapping[str, Any], stated: object) -> str:
    """Say how a table was read; `stated` is the option `axis` of the request."""
    if "cells" in members:
        return LONG_FORM
    names = "with the names of the classes" if "labels" in members else "without class names"
    axis = members.get("axis") or stated
    rows = "predicted" if axis == "rows_are_predicted" else "true"
    because = ", as the names of the axes say" if "axis" in members else ""
    return f"Read as a table of counts {names}; rows are {rows} classes{because}."


def oriented(members: dict[str, Any], stated: object) -> dict[str, Any]:
    """Return the members of a table; refuse names of axes that contradict the option `axis`."""
    axis = members.get("axis")
    if stated is not None and axis not in (None, stated):
        raise refuse("/axis", "axes_contradict", contradiction(axis, stated))
    return members


def _refuse_shares(counts: list[list[float]]) -> None:
    """Refuse fractions, each of at most 1, or in rows that make 100 percent each."""
    if any(number % 1 for row in counts for number in row) and (
        all(0 <= number <= 1 for row in counts for number in row)
        or all(abs(sum(row) - 100) <= 1 for row in counts)
    ):
        raise refuse(MATRIX, "shares", _SHARES)


def _of_weka(lines: str) -> dict[str, Any]:
    """Read rows such as `50 0 | a = Iris-setosa`: true classes, as WEKA prints them."""
    rows = [match for line in lines.splitlines() if (match := _WEKA_ROW.match(line))]
    counts = _numbers([row[1].split() for row in rows])
    return {
        "confusion_matrix": counts,
        "labels": [row[2].strip() for row in rows],
        "axis": "rows_are_true",
    }


def _of_ml_net(lines: str) -> dict[str, Any]:
    """Read rows such as `cat || 50 | 10 | 0.8333`, which end with the recall of a true class."""
    rows = [line.partition("||") for line in lines.splitlines() if "||" in line]
    cells = {name.strip(): row.split("|")[:-1] for name, _, row in rows if name.strip()}
    k = sum(1 for name in cells if name != "Precision")
    counts = [[cell.strip() for cell in row] for row in list(cells.values())[:k]]
    labels = list(cells)[:k]
    return {"confusion_matrix": _numbers(counts), "labels": labels, "axis": "rows_are_true"}


class _Sides(NamedTuple):
    """The names of the axes of a table; empty without one."""

    rows: str = ""
    columns: str = ""

    def axis(self) -> str | None:
        """Return what the rows are; refuse names of the same side."""
        try:
            return axis_by_names(self.rows, self.columns)
        except ValueError as error:
            raise refuse("/axis", "axes_agree", str(error)) from None


def _split(text: str) -> tuple[Cells, _Sides]:
    """Read lines of cells by the separator that they have in common, or by spaces."""
    title = _TITLE.match(text) or _JULIA.match(text) or _VARIABLE.match(text)
    text = _STATISTICS.split(text[title.end() if title else 0 :])[0]
    text = _GROUPS.sub("", text.translate(_BOX))
    if "&" in text and "\\\\" in text:
        text = _LATEX_RULE.sub("", _LATEX_END.sub("", text)).replace("&", "\t")
    lines = [line for line in text.splitlines() if not _RULE.fullmatch(line)]
    separator = next(
        (
            sign
            for every in (all, any)
            for sign in _SEPARATORS
            if lines and every(sign in line for line in lines)
        ),
        None,
    )
    if separator is None:
        rows, sides = _of_console(lines)
    else:
        if separator == "|":
            lines = [line.strip().strip("|") for line in lines]
        try:
            separated = list(csv.reader(lines, delimiter=separator))
        except csv.Error:
            raise refuse(MATRIX, "no_matrix", _LONG_CELL) from None
        rows, sides = _of_sheet([[_cell(cell) for cell in row] for row in separated])
    if title and title.re is _TITLE:
        sides = _sides_of_title(title[0]) or sides
    rows = _without_types(rows)
    return (_without_errors(rows), _ACTUAL) if rows and rows[0][-2:] == _ERRORS else (rows, sides)


def _cell(text: str) -> str:
    """Return a cell of a sheet, its thousands without spaces."""
    text = text.strip()
    return text.replace(" ", "") if _SPACED.fullmatch(text) else text


def _sides_of_title(title: str) -> _Sides | None:
    """Return the axes that H2O names above its counts."""
    if pair := re.search(r"\((\w+)/(\w+)\)", title):
        return _Sides(pair[1], pair[2])
    pair = re.search(r"\(vertical: (\w+); across: (\w+)\)", title)
    return _Sides(pair[1], pair[2]) if pair else None


def _without_types(rows: Cells) -> Cells:
    """Leave out the types of the columns that polars, DuckDB and tibbles print below the names."""
    second = [cell.casefold() for cell in rows[1] if cell] if len(rows) > 1 else []
    if second and all(map(_TYPE.fullmatch, second)) and not any(map(_is_number, second)):
        return [rows[0], *rows[2:]]
    return rows


def _of_console(lines: list[str]) -> tuple[Cells, _Sides]:
    """Take the names of the axes out of a print of pandas or R; one has a line of its own."""
    if (spaced := _with_spaces(lines)) is not None:
        return spaced
    rows, sides = [line.split() for line in lines], _Sides()
    if len(rows) > 1 and len(rows[1]) == 1 and not _is_number(rows[1][0]):
        sides = _Sides(rows[1][0], rows[0][0])
        rows = [["", *rows[0][1:]], *rows[2:]]
    elif len(rows) > 1 and len(rows[0]) == 1 and not _is_number(rows[0][0]):
        column = rows[0][0]
        named = len(rows) > 2 and len(rows[1]) == len(rows[2])  # noqa: PLR2004 (a header and a row)
        sides = _Sides(rows[1][0] if named else "", column)
        rows = [["", *rows[1][named:]], *rows[2:]]
    # A console omits the empty corner before the names of columns.
    elif len(rows) > 1 and len(rows[0]) == len(rows[1]) - 1:
        rows = [["", *rows[0]], *rows[1:]]
    elif rows and _side_by_side(rows[0]):
        sides = _Sides(rows[0][0])
    _refuse_heading(rows)
    return rows, sides


def _with_spaces(lines: list[str]) -> tuple[Cells, _Sides] | None:
    """Read a print whose names have spaces: the rows repeat the names of the columns."""
    words = [line.split() for line in lines]
    for first in range(1, min(_MOST_HEADS, len(words) - 1) + 1):
        body = words[first:]
        k = len(body)
        names, counts = [row[:-k] for row in body], [row[-k:] for row in body]
        if k < _SMALLEST or not all(names) or max(map(len, names)) == 1:
            continue
        above = [word for name in names for word in name]
        head = next((row for row in words[:first] if row[-len(above) :] == above), None)
        if head is None or not all(map(_is_number, chain.from_iterable(counts))):
            continue
        labels = [" ".join(name) for name in names]
        corner = " ".join(head[: -len(above)])
        other = " ".join(next((row for row in words[:first] if row is not head), []))
        # R writes the name of the rows beside those of the columns, pandas that of the columns.
        sides = _Sides(corner, other) if words[first - 1] is head else _Sides(other, corner)
        rows = [["", *labels], *([label, *row] for label, row in zip(labels, counts, strict=True))]
        return rows, sides
    return None


def _refuse_heading(rows: Cells) -> None:
    """Refuse a first line of as many words as there are columns, all of them numbers."""
    bare = rows and all(map(_is_number, chain.from_iterable(rows[1:])))
    if bare and len(rows[0]) == len(rows) - 1 and not any(map(_is_number, rows[0][:1])):
        raise refuse(MATRIX, "ambiguous", _HEADING)


_ERRORS, _ACTUAL = ["Error", "Rate"], _Sides("actual", "predicted")
"""The last columns that H2O writes, and its axes."""


def _side_by_side(row: list[str]) -> bool:
    return not _is_number(row[0]) and _Sides(row[0]).axis() is not None


def _of_sheet(rows: Cells) -> tuple[Cells, _Sides]:
    """Take the names of the axes from the corner of a sheet, or from a line above its header."""
    empty = min((_empty_at_end(row) for row in rows), default=0)
    rows = [row[: len(row) - empty] for row in rows]
    above = [cell for cell in rows[0] if cell] if rows else []
    columns = ""
    if len(rows) > 1 and len(above) == 1 < len(rows[0]) and not _is_number(above[0]):
        columns, rows = above[0], rows[1:]
    corner = rows[0][0] if rows else ""
    first, *second = _PAIR.split(corner, maxsplit=1)
    if len(rows) > 1 and rows[1][:1] != [""] and len(rows[1]) > 1 and not any(rows[1][1:]):
        first, rows = rows[1][0], [rows[0], *rows[2:]]
    return rows, _Sides(first, second[0] if second else columns)


def _empty_at_end(row: list[str]) -> int:
    """Return how many cells at the end of a row are empty; its first cell is none of them."""
    return sum(1 for _ in takewhile(lambda cell: not cell, row[:0:-1]))


def _without_errors(rows: Cells) -> Cells:
    """Leave out the rates of errors and the totals that H2O writes beside and below its counts.

    The rows of a frame are numbered, or have no names.
    """
    header = rows[0]
    names = [name for name in header[: -len(_ERRORS)] if name]
    k = len(names)
    body = [row[header[0] == "" :][:k] for row in rows[1 : k + 1]]
    return [["", *names], *([name, *row] for name, row in zip(names, body, strict=False))]


def _tabular(rows: Cells, sides: _Sides) -> dict[str, Any]:
    """Separate the names of the classes from the counts."""
    _refuse_cells_in_a_row(rows)
    _refuse_words(rows)
    if columns := _long_columns(rows):
        return _of_pairs(rows, columns)
    header = _has_header(rows)
    body = rows[header:]
    if not body:
        raise refuse(MATRIX, "empty", _NO_NUMBERS)
    numbered = all(_is_number(row[0]) for row in body)
    if numbered and not header and len(rows[0]) == len(body) + 1:
        raise refuse(MATRIX, "ambiguous", _AMBIGUOUS)
    named = len(rows[0]) == len(body) + 1 or not numbered
    if header and named:
        _refuse_one_side(rows[0][1:], [row[0] for row in body])
    counts = _numbers([row[named:] for row in body], top=1 + header, left=1 + named)
    members: dict[str, Any] = {"confusion_matrix": counts}
    if named:
        members["labels"] = [row[0] for row in body]
    elif header:
        members["labels"] = rows[0]
    if header and named and rows[0][1:] != members["labels"]:
        members["labels"], sides = _unprefixed(members["labels"], rows[0][1:], sides)
    axis = sides.axis() if header and named else None
    return members if axis is None else {**members, "axis": axis}


def _refuse_words(rows: Cells) -> None:
    """Refuse a text without numbers."""
    cells = [cell for row in rows for cell in row]
    if not any(map(_is_number, cells)):
        if any(map(_PERCENT.fullmatch, cells)):
            raise refuse(MATRIX, "shares", _SHARES)
        raise refuse(MATRIX, "empty", _NO_NUMBERS if rows else _EMPTY)


def _long_columns(rows: Cells) -> list[int]:
    """Return the places of the true class, the prediction and the count; none in another form.

    A console numbers the rows and omits the name of their numbers.
    """
    names = long_form([name for name in rows[0] if name])
    if not names or len(rows) < _SMALLEST:
        return []
    index = len(rows[1]) - len(rows[0])
    return [rows[0].index(name) + index for name in names.values()]


def _of_pairs(rows: Cells, columns: list[int]) -> dict[str, Any]:
    """Read a table in long form, with a row for each pair of classes."""
    widest = max(columns)
    if (short := next((i for i, row in enumerate(rows[1:], 2) if len(row) <= widest), 0)) != 0:
        raise refuse(MATRIX, "long_table", f"Row {short} of the table lacks a column.")
    true, predicted, counted = ([row[place] for row in rows[1:]] for place in columns)
    counts = _numbers([[count] for count in counted], top=2, left=1 + columns[-1])
    if len({*zip(true, predicted, strict=True)}) < len(true):
        raise refuse(MATRIX, "long_table", _PAIR_TWICE)
    labels = [*{*true, *predicted}]
    labels.sort(key=int if all(map(integer_text, labels)) else str)
    codes = {label: code for code, label in enumerate(labels)}
    pairs = zip(true, predicted, counts, strict=True)
    return {"labels": labels, "cells": [[codes[t], codes[p], n[0]] for t, p, n in pairs]}


def _refuse_one_side(columns: list[str], rows: list[str]) -> None:
    """Refuse totals of the rows without those of the columns, or the other way round."""
    for side, other, names in (
        ("column", "row", (columns, rows)),
        ("row", "column", (rows, columns)),
    ):
        if names[0] and is_total(names[0][-1]) and names[0][:-1] == names[1]:
            raise refuse(MATRIX, "totals", _ONE_SIDE.format(side, other))


def _unprefixed(rows: list[str], columns: list[str], sides: _Sides) -> tuple[list[str], _Sides]:
    """Read names such as `True 0` and `Pred 0`, whose beginnings are the names of the axes."""
    (first, above), (second, beside) = map(_prefix, (rows, columns))
    named = _Sides(first or sides.rows, second or sides.columns)
    if above == beside and named.axis() is not None:
        return above, named
    lists = (listed([f"`{name}`" for name in names[:_SHOWN]]) for names in (columns, rows))
    raise refuse("/labels", "names_differ", _NAMES_DIFFER.format(*lists))


def _prefix(names: list[str]) -> tuple[str, list[str]]:
    """Return the name of an axis with which all names begin, and what follows it."""
    parts = [match.groups() for name in names if (match := _PREFIXED.fullmatch(name))]
    prefixes = {prefix for prefix, _ in parts}
    if len(parts) < len(names) or len(prefixes) != 1 or _Sides(parts[0][0]).axis() is None:
        return "", names
    return parts[0][0], [name for _, name in parts]


def _has_header(rows: Cells) -> bool:
    first, count = rows[0], len(rows)
    if any(not _is_number(cell) for cell in first[1:]):
        return True
    # Numeric names show by an additional row, or by a corner.
    corner = first[0] == "" or (count > 2 and not _is_number(first[0]))  # noqa: PLR2004 (see there)
    return count == len(first) + 1 or (count == len(first) and corner)


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None


def _numbers(rows: Cells, *, top: int = 1, left: int = 1, decimal: str = "") -> list[list[float]]:
    """Read counts, the first of which is at this row and column of the text, for messages."""
    bad = [
        (i, j) for i, row in enumerate(rows) for j, cell in enumerate(row) if not _is_number(cell)
    ]
    if any(_PERCENT.fullmatch(rows[i][j]) for i, j in bad):
        raise refuse(MATRIX, "shares", _SHARES)
    if bad:
        raise invalid(
            Violation(
                f"{MATRIX}/{i}/{j}",
                "not_a_number",
                (_A_WORD if _WORD.search(rows[i][j]) else _NOT_A_NUMBER).format(i + top, j + left),
            )
            for i, j in bad
        )
    decimal = decimal or _decimal_sign([cell for row in rows for cell in row])
    ambiguous = [
        Violation(f"{MATRIX}/{i}/{j}", "thousands", _two_readings(cell))
        for i, row in enumerate(rows)
        for j, cell in enumerate(row)
        if not decimal and _GROUPED.fullmatch(cell)
    ]
    if ambiguous:
        raise invalid(ambiguous)
    thousands = "." if decimal == "," else ","
    return [[_count(cell, thousands) for cell in row] for row in rows]


def _decimal_sign(cells: list[str]) -> str:
    """Return the sign of decimals that the numbers prove; empty if they prove none."""
    for cell in cells:
        if _SEVERAL_GROUPS.fullmatch(cell):
            return "," if cell.lstrip("+-0123456789").startswith(".") else "."
    for cell in cells:
        sign = next((sign for sign in ".," if cell.count(sign) == 1), "")
        if sign and not _GROUPED.fullmatch(cell):
            return sign
    return ""


def _two_readings(cell: str) -> str:
    sign = "," if "," in cell else "."
    return _THOUSANDS.format(cell, cell.replace(sign, ""), cell.replace(sign, ".").rstrip("0"))


def _count(text: str, thousands: str) -> float:
    text = text.replace(thousands, "").replace(",", ".")
    whole = text.lstrip("+-").isdecimal() and len(text) < LONGEST_COUNT
    try:
        count = int(text) if whole else float(text)
    except ValueError:
        raise refuse(MATRIX, "not_a_number", f"`{text}` is not a number.") from None
    if isinf(count):
        raise refuse(MATRIX, "out_of_range", _TOO_LARGE.format(text))
    return count
