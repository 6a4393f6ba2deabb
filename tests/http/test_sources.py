"""Each kind of evidence on each path has one value, or is refused in the same words."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe
import duckdb
import httpx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rprime
from rprime.dashboard.report_view import WHOLE, render_pasted
from rprime.evidence.pasted import read_pasted
from rprime.problems.problem import Problem
from rprime.settings import Limits
from tests.command import Run
from tests.evidence.printed_tables import A_ROW_PER_PREDICTION, LONG, READ, REFUSED
from tests.http.column_bodies import WRITERS, send

Json = dict[str, Any]
SUFFIXES = {
    "csv": ".csv",
    "jsonl": ".jsonl",
    "arrow": ".arrow",
    "parquet": ".parquet",
    "npz": ".npz",
}


def values(report: Json) -> tuple[float, ...]:
    """Return the items, the accuracy and the recall of the first class."""
    first, *_ = report["per_class"].values()
    accuracy = report["overall"]["accuracy"]["value"]
    return report["counts"]["items"], accuracy, first["indices"]["recall"]["value"]


EXPECTED: Any = pytest.approx((109, 96 / 109, 50 / 60))


class TestPrints:
    """A print or a file of another program: pasted, as a body, as a file of the command."""

    @pytest.mark.parametrize("name", READ)
    def test_it_is_read_everywhere(
        self, client: httpx.Client, rprime: Run, tmp_path: Path, name: str
    ) -> None:
        text = READ[name]
        page = render_pasted(text.encode(), b"", Limits(), WHOLE)
        assert "109 items" in page
        assert "0.8807" in page
        body = client.post("/evaluate", content=text.encode(), headers={"Content-Type": "text/csv"})
        assert body.status_code == 200, body.text
        file = tmp_path / "table.txt"
        file.write_bytes(text.encode())
        done = rprime("evaluate", str(file), "--json")
        assert done.returncode == 0, done.stderr
        for report in (body.json(), json.loads(done.stdout)):
            assert values(report) == EXPECTED
            (sentence,) = (w["detail"] for w in report["warnings"] if w["code"] == "table_read")
            turned = name in A_ROW_PER_PREDICTION
            assert name in LONG or ("rows are predicted classes" in sentence) == turned

    @pytest.mark.parametrize("name", REFUSED)
    def test_it_is_refused_everywhere_in_the_same_words(
        self, client: httpx.Client, rprime: Run, tmp_path: Path, name: str
    ) -> None:
        text, words = REFUSED[name]
        with pytest.raises(Problem) as caught:
            read_pasted(text)
        assert words in caught.value.errors[0].detail
        body = client.post("/evaluate", content=text.encode(), headers={"Content-Type": "text/csv"})
        assert (body.status_code, words in body.json()["errors"][0]["detail"]) == (422, True)
        file = tmp_path / "table.csv"
        file.write_text(text, encoding="utf-8")
        done = rprime("evaluate", str(file))
        assert (done.returncode, words in done.stderr) == (2, True)


class Tensor:
    """A column as torch gives it: it has no library's type, and a method `tolist`."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def tolist(self) -> list[Any]:
        """Return the values."""
        return list(np.asarray(self._values).tolist())


def by_json(client: httpx.Client, columns: dict[str, list[Any]]) -> Json:
    answer = client.post("/evaluate", json=columns)
    return {"status": answer.status_code, **answer.json()}


def by_body(kind: str) -> Callable[[httpx.Client, dict[str, list[Any]]], Json]:
    def posted(client: httpx.Client, columns: dict[str, list[Any]]) -> Json:
        answer = send(client, kind, WRITERS[kind](columns))
        return {"status": answer.status_code, **answer.json()}

    return posted


def in_python(column: Callable[[list[Any]], Any]) -> Callable[[Any, dict[str, list[Any]]], Json]:
    def evaluated(_: httpx.Client, columns: dict[str, list[Any]]) -> Json:
        arrays: Any = {name: column(values) for name, values in columns.items()}
        return {"status": 200, **rprime.evaluate(**arrays).to_dict()}

    return evaluated


PATHS: dict[str, Callable[[Any, dict[str, list[Any]]], Json]] = {
    "JSON": by_json,
    **{kind: by_body(kind) for kind in WRITERS},
    "list": in_python(list),
    "numpy": in_python(np.asarray),
    "pandas": in_python(pd.Series),
    "polars": in_python(pl.Series),
    "arrow": in_python(pa.array),
    "torch-like": in_python(Tensor),
}
ITEMS = {
    "y_true": ["a"] * 60 + ["b"] * 49,
    "y_pred": ["a"] * 50 + ["b"] * 10 + ["a"] * 3 + ["b"] * 46,
}
SUSPECT: dict[str, tuple[dict[str, list[Any]], str, str]] = {
    "padding": (
        {"y_true": [0, 1, -100], "y_pred": [0, 1, 1]},
        "label_is_padding",
        "`-100` counts as a class",
    ),
    "a mark of a missing value": (
        {"y_true": ["a", "NA", "b"], "y_pred": ["a", "a", "b"]},
        "label_is_missing_mark",
        "`NA` counts as a class",
    ),
    "several classes": (
        {"y_true": ["a|b", "a", "b"], "y_pred": ["a", "a", "b"]},
        "label_is_several",
        "`a|b` counts as one class",
    ),
    "two spellings": (
        {"y_true": ["cat", "Cat", "b"], "y_pred": ["cat", "cat", "b"]},
        "similar_labels",
        "may be one class in two spellings",
    ),
}


class TestItems:
    """Labels of items on every path but the paste, which has none."""

    @pytest.mark.parametrize("path", PATHS)
    def test_they_have_one_value(self, client: httpx.Client, path: str) -> None:
        report = PATHS[path](client, ITEMS)
        assert (report["status"], values(report)) == (200, EXPECTED)

    @pytest.mark.parametrize("path", PATHS)
    @pytest.mark.parametrize("kind", SUSPECT)
    def test_a_doubtful_label_is_said(self, client: httpx.Client, kind: str, path: str) -> None:
        columns, code, words = SUSPECT[kind]
        report = PATHS[path](client, columns)
        details = {w["code"]: w["detail"] for w in report.get("warnings", [])}
        assert words in details[code]

    @pytest.mark.parametrize("kind", WRITERS)
    def test_a_file_of_the_command_is_a_body(self, rprime: Run, tmp_path: Path, kind: str) -> None:
        file = tmp_path / f"items{SUFFIXES[kind]}"
        file.write_bytes(WRITERS[kind](ITEMS))
        done = rprime("evaluate", str(file), "--json")
        assert values(json.loads(done.stdout)) == EXPECTED


COUNTS = [[50, 10], [3, 46]]
TURNED = [[50, 3], [10, 46]]
NAMES = ["a", "b"]


def named(rows: str) -> dict[str, list[Any]]:
    counts = TURNED if rows == "Predicted" else COUNTS
    return {rows: NAMES, "a": [row[0] for row in counts], "b": [row[1] for row in counts]}


FRAMES: dict[str, Callable[[str], Any]] = {
    "pandas": lambda rows: pd.DataFrame(named(rows)).set_index(rows),
    "pandas, reset": lambda rows: pd.DataFrame(named(rows)),
    "polars": lambda rows: pl.DataFrame(named(rows)),
    "arrow": lambda rows: pa.table(named(rows)),
}


class TestMatrices:
    """Matrices in Python and JSON."""

    @pytest.mark.parametrize("rows", ["Actual", "Predicted"])
    @pytest.mark.parametrize("library", FRAMES)
    def test_the_name_of_the_rows_says_what_they_are(self, library: str, rows: str) -> None:
        report = rprime.evaluate(confusion_matrix=FRAMES[library](rows)).to_dict()
        assert values(report) == EXPECTED
        assert list(report["per_class"]) == NAMES
        other: Any = "rows_are_true" if rows == "Predicted" else "rows_are_predicted"
        with pytest.raises(ValueError, match="The names of the axes say"):
            rprime.evaluate(confusion_matrix=FRAMES[library](rows), axis=other)

    @pytest.mark.parametrize("library", FRAMES)
    def test_classes_that_are_numbers_name_the_rows(self, library: str) -> None:
        columns: dict[str, list[Any]] = {"Actual": [0, 1], "0": [50, 3], "1": [10, 46]}
        frames = {
            "pandas": pd.DataFrame(COUNTS),
            "pandas, reset": pd.DataFrame({"Actual": [0, 1], 0: [50, 3], 1: [10, 46]}),
            "polars": pl.DataFrame(columns),
            "arrow": pa.table(columns),
        }
        report = rprime.evaluate(confusion_matrix=frames[library]).to_dict()
        assert (values(report), list(report["per_class"])) == (EXPECTED, ["0", "1"])

    @pytest.mark.parametrize("convert", [list, np.array, Tensor, pl.DataFrame, pd.DataFrame])
    def test_without_names_rows_are_true(self, convert: Callable[[Any], Any]) -> None:
        report = rprime.evaluate(confusion_matrix=convert(np.array(COUNTS)))
        assert values(report.to_dict()) == EXPECTED

    def test_a_first_column_of_counts_is_none_of_names(self) -> None:
        frame = pd.DataFrame(COUNTS, index=NAMES, columns=NAMES)
        assert values(rprime.evaluate(confusion_matrix=frame).to_dict()) == EXPECTED

    def test_totals_are_left_out_said_or_asked_about(self, client: httpx.Client) -> None:
        small = [[1, 1, 2], [0, 2, 2], [1, 3, 4]]
        report = client.post("/evaluate", json={"confusion_matrix": small}).json()
        assert "totals_suspected" in [warning["code"] for warning in report["warnings"]]
        total = {"labels": ["a", "b", "All"], "confusion_matrix": small}
        assert client.post("/evaluate", json=total).json()["counts"]["items"] == 4
        large = [[50, 10, 60], [3, 46, 49], [53, 56, 109]]
        refused = client.post("/evaluate", json={"confusion_matrix": large}).json()
        assert refused["errors"][0]["code"] == "totals"


TALLIED: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "arrow": pa.table,
    "duckdb": lambda columns: duckdb.from_arrow(pa.table(columns)),
    "dask": lambda columns: dask.dataframe.from_pandas(  # type: ignore[no-untyped-call] # of dask
        pd.DataFrame(columns), npartitions=1
    ),
}


@pytest.mark.parametrize("library", TALLIED)
def test_a_frame_that_is_counted_has_the_same_values(library: str) -> None:
    tallied = rprime.tallied(TALLIED[library](ITEMS))
    assert values(rprime.evaluate(**tallied).to_dict()) == EXPECTED
    for kind in ("padding", "a mark of a missing value", "several classes"):
        columns, _, words = SUSPECT[kind]
        with pytest.warns(UserWarning, match=re.escape(words)):
            rprime.tallied(TALLIED[library](columns))


OTHER_FILES = {
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "The body is a picture"),
    "a PDF": (b"%PDF-1.4\n1 0 obj", "The body is a PDF"),
    "a pickle": (b"\x80\x04\x95\x0b\0\0\0\0\0\0\0}", "a pickle, which is never read"),
    "HDF5": (b"\x89HDF\r\n\x1a\n\0\0\0\0", "an HDF5 file"),
    "R": (b"RDX3\nX\n\0\0\0\3", "a file of R"),
}


@pytest.mark.parametrize("name", OTHER_FILES)
@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_of_another_kind_is_named(client: httpx.Client, name: str, kind: str) -> None:
    content, words = OTHER_FILES[name]
    answer = send(client, kind, content)
    assert answer.status_code == 400
    assert words in answer.json()["detail"]
    assert "as CSV" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([{"y_true": "a", "y_pred": "a"}], "jq -c '.[]'"),
        ({"a": {"a": 50, "b": 3}, "b": {"a": 10, "b": 46}}, "looks like a data frame"),
        ({"columns": NAMES, "index": NAMES, "data": COUNTS}, "looks like a data frame"),
        ({"a": {}, "accuracy": 0.9, "macro avg": {}, "weighted avg": {}}, "has no counts"),
        ({"y_true": [0, 1], "y_pred": [0.2, 0.7]}, "Send scores as `y_score`"),
        ({"y_true": ["a"], "y_pred": ["a"], "id": [1]}, "Did you mean `item_id`?"),
        ({"y_true": ["a"], "y_pred": ["a"], "weight": [1]}, "Did you mean `sample_weight`?"),
        ({"b": 1}, "Leave it out"),
    ],
)
def test_json_of_another_library_is_named(
    client: httpx.Client, content: object, words: str
) -> None:
    answer = client.post("/evaluate", json=content)
    assert answer.status_code == 422
    assert any(words in error["detail"] for error in answer.json()["errors"])


@pytest.mark.parametrize(
    ("member", "meant"),
    [("sample_weights", "sample_weight"), ("group", "groups"), ("item_ids", "item_id")],
)
def test_a_misspelt_argument_is_named_whatever_its_value(member: str, meant: str) -> None:
    evaluate: Any = rprime.evaluate
    column = pd.Series([1.0, 2.0])
    for value in (column, pl.Series([1.0, 2.0]), pa.array([1.0, 2.0]), pd.DataFrame({"x": column})):
        with pytest.raises(rprime.ProblemError, match=f"Did you mean `{meant}`"):
            evaluate(y_true=["a", "b"], y_pred=["a", "b"], **{member: value})
        with pytest.raises(rprime.ProblemError, match="Did you mean `y_pred`"):
            evaluate(y_true=["a", "b"], y_pred=["a", "b"], baseline={"y_predicted": value})
    with pytest.raises(ValueError, match="`project` is a PosixPath, which JSON cannot hold"):
        evaluate(y_true=["a"], y_pred=["a"], project=Path("x"))
