"""Ordered categories keep their order in bodies, files and engines, as in data frames."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import rprime
from tests.command import Run
from tests.http.column_bodies import send

LEVELS = ["low", "medium", "high"]
TRUE = ["low", "low", "medium", "medium", "high", "high"]
PREDICTED = ["low", "medium", "medium", "medium", "high", "low"]
KEYS = ["quadratic_weighted_kappa", "linear_weighted_kappa"]
# As scikit-learn's cohen_kappa_score gives them with the labels in this order.
RIGHT: Any = pytest.approx((2 / 7, 0.4))
SORTED: Any = pytest.approx((0.75, 0.625))


def frame(levels: list[str] = LEVELS, *, ordered: bool = True) -> pd.DataFrame:
    dtype = pd.CategoricalDtype(levels, ordered=ordered)
    columns = {"y_true": TRUE, "y_pred": PREDICTED}
    return pd.DataFrame({name: pd.Series(v, dtype=dtype) for name, v in columns.items()})


def polars_frame() -> pl.DataFrame:
    dtype = pl.Enum(LEVELS)
    return pl.DataFrame({"y_true": pl.Series(TRUE, dtype=dtype), "y_pred": pl.Series(PREDICTED)})


def as_stream(table: pa.Table, rows: int = 1000) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, rows)
    return sink.getvalue()


def as_parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(table, sink, **options)
    return sink.getvalue()


def of_polars(write: str) -> bytes:
    sink = io.BytesIO()
    getattr(polars_frame(), write)(sink)
    return sink.getvalue()


BODIES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "arrow": ("arrow", lambda: as_stream(pa.Table.from_pandas(frame()))),
    "arrow in batches": ("arrow", lambda: as_stream(pa.Table.from_pandas(frame()), 2)),
    "parquet": ("parquet", lambda: as_parquet(pa.Table.from_pandas(frame()))),
    "row groups": ("parquet", lambda: as_parquet(pa.Table.from_pandas(frame()), row_group_size=2)),
    "no dictionary": (
        "parquet",
        lambda: as_parquet(pa.Table.from_pandas(frame()), use_dictionary=False),
    ),
    "polars stream": ("arrow", lambda: of_polars("write_ipc_stream")),
    "polars parquet": ("parquet", lambda: of_polars("write_parquet")),
}


def kappas(report: bytes | str) -> tuple[float, ...]:
    overall = json.loads(report)["overall"]
    return tuple(overall[key]["value"] for key in KEYS)


@pytest.mark.parametrize("name", BODIES)
def test_a_body_keeps_the_order(client: httpx.Client, name: str) -> None:
    kind, write = BODIES[name]
    answer = send(client, kind, write(), {"indices": KEYS})
    assert answer.json()["labels"] == LEVELS
    assert kappas(answer.content) == RIGHT


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
@pytest.mark.parametrize("asks", [False, True])
def test_a_file_keeps_the_order(
    rprime: Run, client: httpx.Client, tmp_path: Path, suffix: str, asks: bool
) -> None:
    file = tmp_path / f"a.{suffix}"
    getattr(frame(), f"to_{suffix}")(file)
    there = ("--server", str(client.base_url)) if asks else ()
    done = rprime("evaluate", str(file), *(f"--index={key}" for key in KEYS), "--json", *there)
    assert kappas(done.stdout) == RIGHT


def test_an_engine_keeps_the_order(rprime: Run, tmp_path: Path) -> None:
    for name, file in (("pandas", frame()), ("polars", polars_frame().to_arrow())):
        path = tmp_path / f"{name}.parquet"
        table = file if name == "polars" else pa.Table.from_pandas(file)
        pa.parquet.write_table(table, path)
        options = [f"--index={key}" for key in KEYS]
        done = rprime("evaluate", str(path), "--engine", "duckdb", *options, "--json")
        assert kappas(done.stdout) == RIGHT, name


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": frame,
    "polars": polars_frame,
    "polars, lazy": lambda: polars_frame().lazy(),
    "arrow": lambda: pa.Table.from_pandas(frame()),
}


@pytest.mark.parametrize("library", FRAMES)
def test_a_frame_that_is_counted_keeps_the_order(library: str) -> None:
    evidence: Any = rprime.tallied(FRAMES[library]())
    report = rprime.evaluate(**evidence, indices=KEYS)
    assert report.labels == LEVELS
    assert kappas(report.content) == RIGHT


def test_without_an_order_classes_are_sorted(client: httpx.Client) -> None:
    table = pa.Table.from_pandas(frame(ordered=False))
    for kind, body in (("arrow", as_stream(table)), ("parquet", as_parquet(table))):
        assert kappas(send(client, kind, body, {"indices": KEYS}).content) == SORTED
    evidence: Any = rprime.tallied(table)
    counted = rprime.evaluate(**evidence, indices=KEYS)
    assert kappas(counted.content) == SORTED


def test_labels_of_the_request_decide(client: httpx.Client) -> None:
    body = as_stream(pa.Table.from_pandas(frame(LEVELS[::-1])))
    assert send(client, "arrow", body, {"labels": LEVELS}).json()["labels"] == LEVELS


def test_other_labels_in_a_column_without_order_leave_it(client: httpx.Client) -> None:
    table = pa.Table.from_pandas(frame()).set_column(1, "y_pred", pa.array(["other"] * 6))
    body = as_stream(table.set_column(1, "y_pred", pa.array(["other", *PREDICTED[1:]])))
    assert send(client, "arrow", body).json()["labels"] == sorted([*LEVELS, "other"])


def test_orders_that_differ_are_refused(client: httpx.Client) -> None:
    other = pa.Table.from_pandas(frame(LEVELS[::-1])).column("y_pred")
    table = pa.Table.from_pandas(frame()).set_column(1, "y_pred", other)
    answer = send(client, "arrow", as_stream(table))
    (fault,) = answer.json()["errors"]
    assert (answer.status_code, fault["code"]) == (422, "orders_differ")
    assert "pass `labels`, all classes in their order" in fault["detail"]


def test_a_baseline_of_other_classes_is_compared(rprime: Run, tmp_path: Path) -> None:
    frame().to_parquet(tmp_path / "new.parquet")
    rows = [f"{t},{p}\n" for t, p in zip(TRUE, ["extreme", *PREDICTED[1:]], strict=True)]
    (tmp_path / "old.csv").write_text("y_true,y_pred\n" + "".join(rows), encoding="utf-8")
    files = str(tmp_path / "new.parquet"), "--baseline", str(tmp_path / "old.csv")
    done = rprime("evaluate", *files, "--json")
    assert done.returncode == 0, done.stderr
