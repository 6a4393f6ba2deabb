"""Predictions are counted where they lie, and the table says what the items would have said."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe
import duckdb
import httpx
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import rprime as library
from rprime.tally.counting import tally
from rprime.tally.engines import Engine, Files, open_frame
from rprime.tally.table import Tally, TallyError
from tests.command import Run
from tests.failing_service import Step, flaky

Frame = Callable[[pa.Table], Any]

RPRIME = Path(sys.executable).with_name("rprime")
FRAMES: dict[str, Frame] = {
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


def items(n: int = 4000, classes: int = 12, seed: int = 0) -> pa.Table:
    """Make predictions of integer labels, some of them missing."""
    rng = np.random.default_rng(seed)
    true, drawn = rng.integers(0, classes, (2, n))
    columns = {}
    for name, right in (("y_pred", 0.8), ("y_pred_baseline", 0.7)):
        predicted = np.where(rng.random(n) < right, true, drawn)
        columns[name] = pa.array(predicted, mask=rng.random(n) < 0.05)
    return pa.table({"y_true": true, **columns, "payload": pa.array(rng.random(n))})


SLICING: Any = {
    "slice_cuts": {"age": [18, 30, 50]},
    "slice_crossings": [["region", "age"], ["region", "age", "shop"]],
}


def sliced_items() -> pa.Table:
    """Make predictions with a region and an age, some of them missing, and a shop."""
    table, rng = items(), np.random.default_rng(1)
    gaps = rng.random((2, len(table))) < 0.1
    region = np.array(["Asia", "EU", "US"])[rng.integers(0, 3, len(table))]
    table = table.append_column("region", pa.array(region, mask=gaps[0]))
    ages = pa.array(rng.integers(1, 90, len(table)), mask=gaps[1])
    table = table.append_column("age", ages)
    return table.append_column("slice:shop", pa.array(rng.integers(0, 12, len(table))))


def values(report: library.Report) -> dict[str, Any]:
    """Return what must not depend on where the items were counted."""
    content = report.to_dict()
    return {name: content[name] for name in ("labels", "counts", "overall", "per_class")}


def of_items(table: pa.Table) -> dict[str, Any]:
    return values(library.evaluate(table["y_true"], table["y_pred"]))


def counts(candidate: Tally) -> dict[tuple[str, str], float]:
    return {(candidate.labels[i], candidate.labels[j]): n for i, j, n in candidate.cells.tolist()}


def refusal(
    table: pa.Table, *, labels: list[str] | None = None, reject_below: float | None = None
) -> str:
    with pytest.raises(TallyError) as refused:
        tally(table, labels=labels, reject_below=reject_below)
    return str(refused.value)


class TestFrames:
    @frames
    def test_the_table_of_a_frame_is_that_of_its_items(self, frame: Frame) -> None:
        table = items()
        request = library.tallied(frame(table))
        baseline: Any = request.pop("baseline")
        assert values(library.evaluate(**request)) == of_items(table)
        other = table.set_column(1, "y_pred", table["y_pred_baseline"])
        assert values(library.evaluate(**baseline)) == of_items(other)

    @frames
    def test_weights_add_up_and_are_known_to_be_weights(self, frame: Frame) -> None:
        weights = [2.0, 1.0, 0.5, 0.5, 0.0]
        true, predicted = ["a", "b", "b", "a", "a"], ["a", "b", "b", None, "b"]
        columns = {"y_true": true, "y_pred": predicted, "sample_weight": weights}
        request = library.tallied(frame(pa.table(columns)))
        expected = library.evaluate(true, predicted, sample_weight=weights, families=["core"])
        request["families"] = ["core"]
        table = library.evaluate(**request)
        assert request["class_items"].tolist() == [2, 2]
        assert table.counts.items == expected.counts.items == 4
        for key, value in expected.overall.items():
            assert table.overall[key].value == value.value, key
        # A table has no weights of its items, on which intervals would rest.
        assert table.overall["accuracy"].reason == "weighted"
        assert expected.overall["accuracy"].interval is not None

    def test_weights_of_one_are_none(self) -> None:
        table = pa.table({"y_true": [1, 2], "y_pred": [1, 1], "sample_weight": [1, 1]})
        assert tally(table).candidate.items is None

    @frames
    def test_the_highest_score_is_predicted_the_first_of_equal_ones(self, frame: Frame) -> None:
        scores = {
            "cat": [0.5, 0.2, 0.1, 0.4],
            "ant": [0.5, 0.7, 0.1, 0.3],
            "dog": [0, 0.1, 0.8, 0.3],
        }
        columns = {f"score:{name}": [float(x) for x in column] for name, column in scores.items()}
        table = pa.table({"y_true": ["cat", "ant", "dog", "cat"], **columns})
        expected = library.evaluate(
            y_true=table["y_true"],
            y_score=np.array(list(scores.values())).T,
            labels=list(scores),
            reject_below=0.45,
            table=True,
        )
        evaluation = library.evaluate(
            **library.tallied(frame(table), reject_below=0.45), table=True
        )
        assert evaluation.labels == list(scores)
        assert evaluation.table == expected.table

    @frames
    def test_a_score_that_is_no_number_is_refused(self, frame: Frame) -> None:
        table = pa.table({"y_true": ["a"] * 3, "score:a": [0.1, None, float("nan")]})
        with pytest.raises(TallyError, match="2 items have a score that is not a number"):
            tally(frame(table))

    @frames
    def test_slices_and_their_crossings_are_counted_in_the_same_pass(self, frame: Frame) -> None:
        table = sliced_items()
        columns = {name: table[name] for name in ("region", "age")}
        request = library.tallied(frame(table), slices=["region", "age"], **SLICING)
        expected = library.evaluate(
            table["y_true"],
            table["y_pred"],
            slices={"shop": table["slice:shop"], **columns},
            **SLICING,
        ).to_dict()
        report = library.evaluate(**request).to_dict()
        assert report["slices"] == expected["slices"]
        assert report["weakest"] == expected["weakest"]
        assert {"region": "US", "age": "[18, 30)"} in [part["slice"] for part in report["slices"]]

    def test_the_baseline_has_its_slices(self) -> None:
        table = sliced_items()
        request = library.tallied(table)
        request["gates"] = {"rules": [{"index": "accuracy", "max_drop": 0.05, "slices": "shop"}]}
        evaluation = library.evaluate(**request)
        assert evaluation.gate is not None
        single = [result for result in evaluation.gate.results if result.average_of is None]
        judged = {(str(result.slice), result.verdict) for result in single}
        assert judged.isdisjoint((str({"shop": str(i)}), "not_comparable") for i in range(12))
        assert len(judged) == 12

    def test_declared_labels_keep_their_order(self) -> None:
        table = pa.table({"y_true": ["b", "a"], "y_pred": ["b", "b"]})
        assert tally(table, labels=["b", "c", "a"]).candidate.labels == ("b", "c", "a")
        assert "1 of the labels" in refusal(table, labels=["b"])

    def test_what_cannot_be_counted_is_refused(self) -> None:
        columns = {"y_true": [1, 2], "y_pred": [1, 2]}
        assert "no column y_pred; the columns are: y_true" in refusal(pa.table({"y_true": [1]}))
        assert "depend on each other" in refusal(pa.table({**columns, "group": [1, 2]}))
        lists = duckdb.from_arrow(pa.table({**columns, "y_true": [[1], [2]]}))
        with pytest.raises(TallyError, match="the column y_true holds lists"):
            tally(lists)
        assert "1 item has no y_true" in refusal(pa.table({**columns, "y_true": [1, None]}))
        assert "all texts or all" in refusal(pa.table({**columns, "y_pred": [True, False]}))
        assert "a float" in refusal(pa.table({**columns, "y_pred": [0.5, 1]}))
        assert "all texts or all integers" in refusal(pa.table({**columns, "y_pred": ["1", "2"]}))
        assert "no item" in refusal(pa.table(columns)[:0])
        assert "`reject_below` needs" in refusal(pa.table(columns), reject_below=0.5)
        for weights in ([1.0, -1.0], [1.0, float("inf")], [1.0, float("nan")]):
            assert "non-negative" in refusal(pa.table({**columns, "sample_weight": weights}))
        assert "1 item has no sample_weight" in refusal(
            pa.table({**columns, "sample_weight": [1.0, None]})
        )
        with pytest.raises(TallyError, match="a list is no frame"):
            tally([1, 2])

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"slices": ["region", "country"]}, "there is no column country; the columns are"),
            ({"slice_cuts": {"age": [1]}}, "there are no slices age; slices are: shop"),
            ({"slices": ["age"], "slice_cuts": {"age": [30, 18]}}, "the numbers .* ascend"),
            ({"slices": ["age"], "slice_cuts": {"age": 3}}, r"such as \[30, 50\]"),
            ({"slice_crossings": [["shop", "region"]]}, "there are no slices region"),
            ({"slices": ["nothing"]}, "no item has a value of the slices nothing"),
            ({"slices": ["amount"]}, "holds a float"),
        ],
    )
    def test_slices_that_cannot_be_counted_are_refused(
        self, given: dict[str, Any], said: str
    ) -> None:
        table = sliced_items().append_column("nothing", pa.nulls(4000, pa.string()))
        table = table.append_column("amount", pa.array(np.linspace(0, 1, 4000)))
        with pytest.raises(TallyError, match=said):
            library.tallied(table, **given)
        weighted = table.append_column("sample_weight", pa.array([1.0] * 4000))
        assert "cannot be combined" in refusal(weighted)

    def test_labels_that_are_no_classes_are_not_all_collected(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("rprime.tally.counting.MOST_GROUPS", 3)
        table = pa.table({"y_true": range(4), "y_pred": range(4)})
        assert "do not hold classes" in refusal(table)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return items()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> Path:
    """Write the same items as Parquet, CSV, and in folders as Hive names them."""
    folder = tmp_path_factory.mktemp("items")
    table = table.drop_columns("y_pred_baseline")
    for number in range(4):
        part = table[1000 * number : 1000 * (number + 1)]
        pq.write_table(part, folder / f"{number}.parquet")
        pyarrow.csv.write_csv(part, folder / f"{number}.csv")
        of_hive = folder / "hive" / f"day={number}"
        of_hive.mkdir(parents=True)
        pq.write_table(part, of_hive / "part.parquet")
    return folder


LAYOUTS = (["*.parquet"], ["*.csv"], ["hive"], [f"{i}.parquet" for i in range(4)])
layouts = pytest.mark.parametrize("names", LAYOUTS, ids=["glob", "csv", "hive", "list"])


class TestDuckdb:
    @layouts
    def test_files_folders_and_globs_are_counted(
        self, folder: Path, table: pa.Table, names: list[str]
    ) -> None:
        files = Files.of([str(folder / name) for name in names])
        with open_frame(Engine.of("duckdb"), files) as frame:
            candidate = tally(frame, untyped=files.format == "csv").candidate
        assert values(library.evaluate(**candidate.evidence())) == of_items(table)

    def test_little_memory_is_enough(self, folder: Path, table: pa.Table) -> None:
        files = Files.of([str(folder / "*.parquet")])
        with open_frame(Engine.of("duckdb?memory_limit=64MB&threads=1"), files) as frame:
            candidate = tally(frame).candidate
        assert candidate.cells[:, 2].sum() + candidate.unclassified.sum() == len(table)

    def test_an_empty_field_is_missing_and_na_is_a_name(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text('y_true,y_pred\nNA,NA\nNA,\n"x, y",07\n')
        with open_frame(Engine.of("duckdb"), Files.of([str(tmp_path / "a.csv")])) as frame:
            candidate = tally(frame, untyped=True).candidate
        assert counts(candidate) == {("NA", "NA"): 1, ("x, y", "07"): 1}
        assert dict(zip(candidate.labels, candidate.unclassified.tolist(), strict=True))["NA"] == 1

    def test_what_cannot_be_read_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing else")
        for name, message in (("a.parquet", "too small|[Pp]arquet"), ("none.parquet", "No files")):
            with (
                pytest.raises(TallyError, match=message),
                open_frame(Engine.of("duckdb"), Files.of([str(tmp_path / name)])) as frame,
            ):
                tally(frame)

    @pytest.mark.parametrize(
        ("files", "said"),
        [(["a.csv", "b.parquet"], "all CSV or all Parquet"), (["a.xlsx"], "reads .parquet, .csv")],
    )
    def test_other_files_are_refused(self, files: list[str], said: str) -> None:
        with pytest.raises(TallyError, match=said):
            Files.of(files)

    @pytest.mark.parametrize(
        "engine", ["pandas", "dask?x=1", "dask://host", "spark://h:p", "duckdb?path=/", "spark?x=1"]
    )
    def test_other_engines_are_refused(self, engine: str) -> None:
        with pytest.raises(TallyError):
            Engine.of(engine)

    def test_a_missing_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "duckdb", None)
        with (
            pytest.raises(TallyError, match=r"pip install 'rprime\[duckdb\]'"),
            open_frame(Engine.of("duckdb"), Files(("a.csv",), "csv")),
        ):
            pass


class TestCommand:
    def test_the_report_is_that_of_the_items(
        self, rprime: Run, folder: Path, table: pa.Table
    ) -> None:
        done = rprime("evaluate", str(folder / "*.parquet"), "--engine", "duckdb", "--json")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert {name: answer[name] for name in ("labels", "counts", "overall", "per_class")} == (
            of_items(table)
        )

    def test_slices_of_files_are_those_of_the_items(
        self, rprime: Run, tmp_path: Path, client: httpx.Client
    ) -> None:
        table = sliced_items().drop_columns("y_pred_baseline")
        pyarrow.csv.write_csv(table[:2000], tmp_path / "0.csv")
        pyarrow.csv.write_csv(table[2000:], tmp_path / "1.csv")
        pyarrow.csv.write_csv(table, tmp_path / "all.csv")
        chosen = ("--slice", "region", "--slice", "age=cut(age, 18, 30, 50)", "--json")
        crossed = (*chosen, "--crossing", "region,age", "--crossing", "region,age,shop")
        here = rprime("evaluate", str(tmp_path / "all.csv"), *crossed)
        assert here.returncode == 0, here.stderr
        expected = json.loads(here.stdout)
        engine = (str(tmp_path / "[01].csv"), "--engine", "duckdb")
        for more in ((), ("--server", str(client.base_url))):
            done = rprime("evaluate", *engine, *crossed, *more)
            assert done.returncode == 0, done.stderr
            answer = json.loads(done.stdout)
            assert answer["slices"] == expected["slices"]
            assert answer["weakest"] == expected["weakest"]
            assert answer["overall"] == expected["overall"]

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("--slice", "cut(age, 3)"), "an engine cuts a column at given numbers"),
            (("--columns", "y_true=age"), "--columns is for files that are read here"),
            (("--slice", "cut(region, 1, 2)"), "DuckDB: "),
        ],
    )
    def test_what_an_engine_cannot_cut_ends_with_2(
        self, rprime: Run, tmp_path: Path, arguments: tuple[str, ...], said: str
    ) -> None:
        pyarrow.csv.write_csv(sliced_items(), tmp_path / "a.csv")
        done = rprime("evaluate", str(tmp_path / "a.csv"), "--engine", "duckdb", *arguments)
        assert done.returncode == 2, done.stderr
        assert said in done.stderr

    def test_only_tables_travel_with_their_source(self, rprime: Run, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(items(), path)
        request = tmp_path / "request.yaml"
        request.write_text(
            "test_set: {id: autumn}\nlabels: [" + ", ".join(map(str, range(12))) + "]"
        )
        arguments = (str(path), "--engine", "duckdb", "--request", str(request), "--project", "p")
        with flaky(Step(body=library.evaluate([1], [1]).content)) as server:
            done = rprime("evaluate", *arguments, "--server", server.url)
            sent = json.loads(server.seen[0].body)
        assert done.returncode == 0, done.stderr
        assert "unpaired" in done.stderr
        assert "y_true" not in sent
        assert sum(n for *_, n in sent["cells"]) + sum(sent["unclassified"]) == 4000
        assert sent["source"] == str(path)
        assert sent["baseline"]["test_set"] == sent["test_set"] == {"id": "autumn"}

    @pytest.mark.parametrize(
        ("arguments", "status", "said"),
        [
            (("none.parquet", "--engine", "duckdb"), 2, "No files found"),
            (("a.csv", "b.csv"), 2, "--engine"),
            (("a.csv", "--engine", "dask://127.0.0.1:9"), 4, "nothing answers at 127.0.0.1:9"),
        ],
    )
    def test_it_ends_as_the_contract_says(
        self, rprime: Run, arguments: tuple[str, ...], status: int, said: str
    ) -> None:
        done = rprime("evaluate", *arguments)
        assert done.returncode == status, done.stderr
        assert said in done.stderr

    def test_what_needs_every_score_is_refused(self, rprime: Run, tmp_path: Path) -> None:
        gates = tmp_path / "gates.json"
        gates.write_text(json.dumps({"rules": [{"index": "log_loss", "max_value": 1}]}))
        done = rprime("evaluate", "a.parquet", "--engine", "duckdb", "--gates", str(gates))
        assert done.returncode == 2
        assert "log_loss reads the scores of every item" in done.stderr
