"""The columns of the file of a baseline."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rprime.evidence.columns import COUNT, Columns, missing, two_baselines
from rprime.evidence.label_columns import CodedColumn, Vocabulary
from rprime.problems.problem import Problem, refuse
from rprime.schemas.document import Document

_NO_LONG_FORM = (
    "Beside a candidate in JSON, a baseline in long form is not read: write it as a matrix, or the "
    "candidate as CSV, too."
)


class BaselineColumns(Columns):
    """The columns of a second body: evidence, or predictions for the items of the first one."""

    def __init__(self, first: Columns, *, untyped: bool, matrix: bool) -> None:
        request = Document({"columns": first.chosen, **first.reading})
        super().__init__(request, first.most, first.hold, untyped=untyped, matrix=matrix)
        self._first = first
        self._predictions: CodedColumn | None = None

    def begin(self, columns: Iterable[str]) -> dict[str, int]:
        """Find out which of the two it is, and check the names of the columns."""
        names = list(columns)
        places = dict(self.selected(names, optional=True))
        if "y_pred_baseline" in self._first.labels:
            raise two_baselines()
        if "y_pred_baseline" in places:
            detail = "A baseline has no column `y_pred_baseline` of its own."
            raise refuse("/baseline", "several_kinds", detail)
        if "y_true" in places:
            return super().begin(names)
        if list(places) != ["y_pred"]:
            detail = (
                "Without `y_true`, a baseline has the column `y_pred` alone, for the same items."
            )
            if "y_pred" not in places:
                detail = f"{missing('y_pred', names)} {detail}"
            raise refuse("/baseline", "unknown_column", detail)
        # Labels have the same codes as in the first body.
        self.codes = self._first.codes
        self._predictions = CodedColumn(self.codes, "/baseline/y_pred", null=True)
        self.labels["y_pred"] = self._predictions
        return places

    def members(self) -> dict[str, Any]:
        """Return it as members of a JSON request."""
        if self._predictions is not None:
            return {"y_pred": _values(self._predictions)}
        document = super().document()
        arrays = document.arrays
        if self._table is not None:
            return arrays | ({"axis": self._table["axis"]} if "axis" in self._table else {})
        if COUNT in arrays:
            raise refuse("/baseline", "long_table", _NO_LONG_FORM)
        if self.ids is not None:
            arrays["item_id"] = self.ids.column.to_pylist()
        slices = {name: _values(column) for name, column in arrays.pop("slices", {}).items()}
        members = {n: _values(a) if isinstance(a, CodedColumn) else a for n, a in arrays.items()}
        return {**members, "slices": slices} if slices else members

    def document(self) -> Document:
        """Return the request of the first body with this baseline."""
        if self._predictions is not None:
            self._first.take(self._predictions)
            return self._first.document()
        if self._table is None:
            self._first.others = self.occurring()
        document = self._first.document()
        with in_baseline():
            other = super().document()
        other.pointer = "/baseline"
        document.names += ("baseline",)
        document.rest["baseline"] = {}
        document.inner["baseline"] = other
        return document


@contextmanager
def in_baseline() -> Iterator[None]:
    """Say of a problem with a second body that it is in the baseline."""
    try:
        yield
    except Problem as problem:
        errors = [
            replace(violation, pointer=f"/baseline{violation.pointer.removeprefix('/baseline')}")
            for violation in problem.errors
        ]
        detail = problem.detail if errors else f"In the baseline: {problem.detail}"
        raise Problem(problem.code, detail, errors=errors, headers=problem.headers) from None


def _values(column: CodedColumn) -> list[Any]:
    """Return the labels of a column, or the numbers of slices that are cut."""
    if column.values.dtype.kind == "f":
        return [None if number != number else number for number in column.values.tolist()]  # noqa: PLR0124 (NaN)
    assert isinstance(column.codes, Vocabulary)  # noqa: S101 (a file has no codes)
    texts, integers = column.codes.names(None)
    names = [int(text) if integers and text is not None else text for text in texts]
    return [names[code] for code in column.values.tolist()]
