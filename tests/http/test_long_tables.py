"""Counts of pairs in long form are counted, or asked about; never read as single items."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe
import duckdb
import httpx
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rprime
from rprime.tally.table import TallyError
from tests.command import Run
from tests.http.column_bodies import WRITERS, Columns, Json, send

TABLE = {"Prediction": ["a", "b", "a", "b"], "Truth": ["a", "a", "b", "b"]}
COUNTS = [50, 1, 3, 46]
CHOICE = {"columns": {"y_true": "Truth", "y_pred": "Prediction"}}
CELLS = {"labels": ["a", "b"], "cells": [[0, 0, 50], [0, 1, 1], [1, 0, 3], [1, 1, 46]]}


def posted(
    client: httpx.Client, kind: str, columns: Columns, request: Json | None = None
) -> httpx.Response:
    return send(client, kind, WRITERS[kind](columns), request)


def without_reading(report: Json) -> Json:
    report["warnings"] = [w for w in report["warnings"] if w["code"] != "table_read"]
    return report


def refusal(answer: httpx.Response) -> tuple[str, str]:
    assert answer.status_code == 422, answer.text
    (fault,) = answer.json()["errors"]
    return fault["code"], fault["detail"]


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("name", ["Freq", "n", "count", "Count", "COUNT(*)"])
@pytest.mark.parametrize("request_", [None, CHOICE])
def test_three_columns_of_which_one_counts_are_a_table(
    client: httpx.Client, kind: str, name: str, request_: Json | None
) -> None:
    answer = posted(client, kind, {**TABLE, name: COUNTS}, request_)
    assert answer.status_code == 200, answer.text
    report = answer.json()
    assert [w["detail"] for w in report["warnings"] if w["code"] == "table_read"] == [
        "Read as a table in long form: each row counts the items of a pair of classes."
    ]
    assert without_reading(report) == client.post("/evaluate", json=CELLS).json()


@pytest.mark.parametrize("kind", WRITERS)
def test_a_named_column_of_counts_may_have_pairs_twice_and_zeros(
    client: httpx.Client, kind: str
) -> None:
    true, predicted = ["a", "a", "a", "b", "b"], ["a", "a", "b", "a", "b"]
    columns = {"true": true, "pred": predicted, "k": [30, 20, 1, 3, 46], "id": [1, 2, 3, 4, 5]}
    choice = {"columns": {"y_true": "true", "y_pred": "pred", "count": "k"}}
    assert (
        posted(client, kind, columns, choice).json() == client.post("/evaluate", json=CELLS).json()
    )


def test_items_without_a_prediction_are_counted(client: httpx.Client) -> None:
    columns = {"y_true": ["a", "a", "b"], "y_pred": ["a", None, "b"], "n": [5, 2, 4]}
    assert posted(client, "parquet", columns).json()["counts"] == {
        "items": 11,
        "classified": 9,
        "unclassified": 2,
        "spurious": 0,
    }


@pytest.mark.parametrize("counts", [[50, 1, 3, 46.5], [1, 1, 1, 1]])
def test_what_may_be_items_is_asked_about(client: httpx.Client, counts: list[float]) -> None:
    pairs = TABLE if counts[3] == 46.5 else {name: ["a", "a", "b", "b"] for name in TABLE}
    code, detail = refusal(posted(client, "csv", {**pairs, "Freq": counts}, CHOICE))
    assert code == "long_table"
    assert "name it: `count` in `columns`, or the option `--count`" in detail


@pytest.mark.parametrize(
    ("more", "code"),
    [({"group": COUNTS}, "not_with_counts"), ({"k": [1, 2, 3, -4]}, "out_of_range")],
)
def test_counts_that_make_no_sense_are_refused(
    client: httpx.Client, more: dict[str, list[int]], code: str
) -> None:
    columns = {"y_true": TABLE["Truth"], "y_pred": TABLE["Prediction"], "k": COUNTS, **more}
    choice = {"columns": {"count": "k"}}
    assert refusal(posted(client, "csv", columns, choice))[0] == code


@pytest.mark.parametrize("baseline", [{"y_pred": ["a", "b", "a", "b"]}, {"y_score": [[1, 0]] * 4}])
def test_other_predictions_for_the_items_of_a_table_are_refused(
    client: httpx.Client, baseline: Json
) -> None:
    answer = posted(client, "csv", {**TABLE, "n": COUNTS}, {"baseline": baseline})
    code, detail = refusal(answer)
    assert (code, "send a table, too" in detail) == ("no_items", True)


@pytest.mark.parametrize("name", ["value", "weight", "size", "total"])
def test_each_pair_once_beside_another_column_is_asked_about(
    client: httpx.Client, name: str
) -> None:
    code, detail = refusal(posted(client, "csv", {**TABLE, name: COUNTS}, CHOICE))
    assert code == "long_table"
    assert f"`{name}` may hold counts. If it does, name it: `count` in `columns`" in detail
    columns = CHOICE["columns"] | {"count": name}
    answer = posted(client, "csv", {**TABLE, name: COUNTS}, {"columns": columns})
    assert answer.json()["counts"]["items"] == 100
    items = {"Prediction": ["a", "b", "a"], "Truth": ["a", "a", "b"], name: COUNTS[:3]}
    assert posted(client, "csv", items, CHOICE).json()["counts"]["items"] == 3


@pytest.mark.parametrize("more", [{"Freq": COUNTS, "id": COUNTS}, {}])
def test_other_columns_are_not_taken_for_counts(
    client: httpx.Client, more: dict[str, list[int]]
) -> None:
    report = posted(client, "csv", {**TABLE, **more}, CHOICE).json()
    assert report["counts"]["items"] == 4
    ignored = [w["detail"] for w in report["warnings"] if w["code"] == "columns_ignored"]
    assert any("If `Freq` counts items, name it" in detail for detail in ignored) == ("id" in more)


def test_a_pivot_of_pandas_gives_the_same() -> None:
    frame = pd.DataFrame({**TABLE, "Freq": COUNTS})
    table = frame.pivot_table("Freq", "Truth", "Prediction", "sum", 0)
    report = rprime.evaluate(confusion_matrix=table)
    assert report.overall["accuracy"].value == pytest.approx(0.96)
    assert report.per_class["a"]["recall"].value == pytest.approx(50 / 51)


LONG = pa.table({"Truth": TABLE["Truth"], "Prediction": TABLE["Prediction"], "Freq": COUNTS})
FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": pa.Table.to_pandas,
    "polars": pl.from_arrow,
    "polars, lazy": lambda table: pl.DataFrame(table).lazy(),
    "arrow": lambda table: table,
    "duckdb": duckdb.from_arrow,
    "dask": lambda table: dask.dataframe.from_pandas(  # type: ignore[no-untyped-call] # of dask
        table.to_pandas(), npartitions=2
    ),
}
frames = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())


@frames
def test_a_frame_in_long_form_is_counted_by_its_column(frame: Callable[[pa.Table], Any]) -> None:
    cells: Any = CELLS
    expected = rprime.evaluate(**cells).to_dict()
    for names in (["Truth", "Prediction", "Freq"], ["y_true", "y_pred", "n"]):
        tallied = rprime.tallied(frame(LONG.rename_columns(names)))
        assert rprime.evaluate(**tallied).to_dict() == expected
    stated = LONG.rename_columns(["y_true", "y_pred", "k"]).append_column("day", [[1, 1, 2, 2]])
    twice = pa.concat_tables([stated, stated])
    doubled = rprime.evaluate(**rprime.tallied(frame(twice), count="k")).model
    assert (doubled.counts.items, doubled.overall.root["accuracy"].value) == (200, 0.96)


@frames
def test_a_frame_whose_rows_may_be_items_is_asked_about(frame: Callable[[pa.Table], Any]) -> None:
    for counts in ([50, 1, 3, 46.5], [1, 1, 3, None]):
        table = LONG.set_column(2, "Freq", [pa.array(counts)])
        with pytest.raises(TallyError, match=r"Freq counts items, name it|no Freq"):
            rprime.tallied(frame(table))
    with pytest.raises(TallyError, match="name it as the column of counts"):
        rprime.tallied(frame(pa.concat_tables([LONG, LONG])))


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_an_engine_reads_a_long_table(rprime: Run, tmp_path: Path, engine: str) -> None:
    file = tmp_path / "c.csv"
    LONG.to_pandas().to_csv(file, index=False)
    done = rprime("evaluate", str(file), "--engine", engine, "--json")
    assert json.loads(done.stdout)["overall"]["accuracy"]["value"] == 0.96
    LONG.rename_columns(["y_true", "y_pred", "k"]).to_pandas().to_csv(file, index=False)
    done = rprime("evaluate", str(file), "--engine", engine, "--count", "k", "--json")
    assert json.loads(done.stdout)["counts"]["items"] == 100


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_an_engine_says_what_a_reader_here_says(rprime: Run, tmp_path: Path, engine: str) -> None:
    file = tmp_path / "c.csv"
    file.write_text("y_true,y_pred\na,a\ny_true,y_pred\nb,b\n", encoding="utf-8")
    done = rprime("evaluate", str(file), "--engine", engine)
    assert (done.returncode, "a row repeats the header" in done.stderr) == (2, True)
    file.write_text("y_true,y_pred\n0,0\n1,1\n-100,1\n", encoding="utf-8")
    assert "`-100` counts as a class" in rprime("evaluate", str(file), "--engine", engine).stderr
    file.write_text("y_true,y_pred\nlow,low\nmedium,low\nhigh,high\n", encoding="utf-8")
    done = rprime("evaluate", str(file), "--engine", engine, "--index", "linear_weighted_kappa")
    assert "in the order of their characters: `high`, `low`, `medium`" in done.stderr


def test_a_frame_says_what_may_be_no_class() -> None:
    frame = pd.DataFrame({"y_true": ["a", "NaN", "b"], "y_pred": ["a", "a", "b"]})
    with pytest.warns(UserWarning, match="`NaN` counts as a class"):
        rprime.tallied(frame)
