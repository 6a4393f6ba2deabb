"""Files of columns: whatever the format, here and there, the answer has the same bytes."""

import csv
import html
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

import rprime
from rprime.cli import app
from rprime.evidence import SUFFIXES
from tests.failing_service import Seen, Step, flaky

RNG = np.random.default_rng(0)
LABELS = ["cat", "dog", "eel"]
SIZE = 120
TRUE = RNG.choice(LABELS, SIZE).tolist()
IDS = [f"item {i:03}" for i in range(SIZE)]
ORDER = RNG.permutation(SIZE).tolist()
SCORES = RNG.dirichlet([1, 1, 1], SIZE).round(6) + np.eye(3)[[LABELS.index(x) for x in TRUE]]
RULES = {
    "rules": [
        {"index": "recall", "classes": "all", "max_drop": 0.05},
        {"index": "accuracy", "min_value": 0.6},
    ]
}
VALUES = {"rules": [{"index": "recall", "classes": "all", "min_value": 0.6}]}
"""Rules that need no baseline."""
Columns = dict[str, list[Any]]


def predicted(right: float) -> list[str | None]:
    labels: list[str | None] = [
        label if RNG.random() < right else str(RNG.choice(LABELS)) for label in TRUE
    ]
    labels[int(RNG.integers(SIZE))] = None
    return labels


PREDICTED, OTHER = predicted(0.7), predicted(0.8)
WEIGHTS = RNG.random(SIZE).round(4).tolist()
GROUPS = [f"patient {i // 3}" for i in range(SIZE)]
PLAIN: Columns = {"y_true": TRUE, "y_pred": PREDICTED}
INLINE: Columns = {**PLAIN, "y_pred_baseline": OTHER}


def shuffled(values: list[Any]) -> list[Any]:
    return [values[i] for i in ORDER]


def _csv(path: Path, columns: Columns) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _arrows(path: Path, columns: Columns) -> None:
    table = pa.table(columns)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)


def _jsonl(path: Path, columns: Columns) -> None:
    rows = zip(*columns.values(), strict=True)
    lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
    path.write_text("\n".join(lines), encoding="utf-8")


WRITERS: Mapping[str, Callable[[Path, Columns], None]] = {
    "csv": _csv,
    "ndjson": _jsonl,
    "parquet": lambda path, columns: pa.parquet.write_table(pa.table(columns), path),
    "feather": lambda path, columns: pa.feather.write_feather(pa.table(columns), str(path)),
    "arrows": _arrows,
}
CASES: Mapping[str, tuple[Columns, Columns | None, dict[str, Any]]] = {
    "plain": (PLAIN, None, {}),
    "inline baseline": (INLINE, None, {"baseline": {"y_pred": OTHER}}),
    "mere predictions": (PLAIN, {"y_pred": OTHER}, {"baseline": {"y_pred": OTHER}}),
    "own labels": (
        PLAIN,
        {"y_true": TRUE, "y_pred": OTHER},
        {"baseline": {"y_true": TRUE, "y_pred": OTHER}},
    ),
    "weights": ({**PLAIN, "sample_weight": WEIGHTS}, None, {"sample_weight": WEIGHTS}),
    "groups": (
        {**INLINE, "group": GROUPS},
        None,
        {"groups": GROUPS, "baseline": {"y_pred": OTHER}},
    ),
    "another test set": (
        PLAIN,
        {"y_true": TRUE[:90], "y_pred": OTHER[:90]},
        {"baseline": {"y_true": TRUE[:90], "y_pred": OTHER[:90]}},
    ),
    "a class less": (
        PLAIN,
        {"y_true": ["cat", "dog"] * 60, "y_pred": ["cat", "cat"] * 60},
        {"baseline": {"y_true": ["cat", "dog"] * 60, "y_pred": ["cat", "cat"] * 60}},
    ),
    "scores": (
        {"y_true": TRUE, **{f"score:{x}": SCORES[:, i].tolist() for i, x in enumerate(LABELS)}},
        None,
        {"y_score": SCORES, "y_pred": None, "labels": LABELS},
    ),
}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def report(*arguments: object) -> bytes:
    done = run("evaluate", *arguments, "--json")
    assert done.exit_code in {0, 1, 5}, done.stderr
    return done.stdout_bytes


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(name: str, columns: Columns) -> Path:
        path = tmp_path / name
        WRITERS[path.suffix.removeprefix(".")](path, columns)
        return path

    return written


Write = Callable[[str, Columns], Path]


@pytest.fixture
def gates(tmp_path: Path) -> Path:
    path = tmp_path / "gates.json"
    path.write_text(json.dumps(RULES), encoding="utf-8")
    return path


class TestEquality:
    @pytest.mark.parametrize("case", CASES)
    def test_every_format_gives_the_same_bytes_here_there_and_in_python(
        self, write: Write, gates: Path, server: str, case: str
    ) -> None:
        columns, baseline, options = CASES[case]
        rules = RULES if "baseline" in options else VALUES
        gates.write_text(json.dumps(rules), encoding="utf-8")
        request = {"y_pred": PREDICTED, "gates": rules, **options}
        expected = rprime.evaluate(TRUE, **request).content + b"\n"
        with rprime.Client(server) as client:
            assert client.evaluate(TRUE, **request).content + b"\n" == expected
        for suffix in WRITERS:
            more = ["--gates", gates]
            if baseline is not None:
                more += ["--baseline", write(f"baseline.{suffix}", baseline)]
            file = write(f"items.{suffix}", columns)
            assert report(file, *more) == expected, suffix
            assert report(file, *more, "--server", server) == expected, suffix

    @pytest.mark.parametrize("suffix", WRITERS)
    def test_items_with_ids_are_matched_whatever_their_order(
        self, write: Write, server: str, suffix: str
    ) -> None:
        file = write(f"items.{suffix}", {"item_id": IDS, **PLAIN})
        moved = {"item_id": shuffled(IDS), "y_true": shuffled(TRUE), "y_pred": shuffled(OTHER)}
        other = write(f"other.{suffix}", moved)
        here = report(file, "--baseline", other)
        assert here == report(file, "--baseline", other, "--server", server)
        comparison = json.loads(here)["comparison"]
        assert (comparison["comparability"], comparison["pairing"]) == ("same_items", "paired")
        expected = rprime.evaluate(TRUE, PREDICTED, baseline={"y_pred": OTHER}).to_dict()
        assert comparison["flips"] == expected["comparison"]["flips"]
        compared = run("compare", file, other, "--json", "--server", server)
        assert compared.stdout == run("compare", file, other, "--json").stdout, compared.stderr

    @pytest.mark.parametrize("stored", [False, True])
    def test_other_items_are_named_in_every_rendering(
        self, write: Write, gates: Path, server: str, tmp_path: Path, *, stored: bool
    ) -> None:
        other = write("other.csv", {"item_id": IDS, "y_true": TRUE, "y_pred": OTHER})
        fewer = {name: values[9:] for name, values in {"item_id": IDS, **PLAIN}.items()}
        fewer["y_true"] = ["cat", "dog", *fewer["y_true"][2:]]
        relabelled = sum(a != b for a, b in zip(fewer["y_true"], TRUE[9:], strict=True))
        baseline: tuple[object, ...] = ("--baseline", other)
        if stored:
            there = ("--server", server, "--project", "ids")
            report(other, *there, "--version", "1")
            baseline = (*there, "--version", "2", "--baseline", "version=1")
        pages = {name: tmp_path / f"report.{name}" for name in ("html", "markdown", "junit")}
        options = [part for name, path in pages.items() for part in (f"--{name}", path)]
        file = write("fewer.csv", fewer)
        answer = json.loads(report(file, *baseline, "--gates", gates, *options))
        assert answer["comparison"]["items"] == {
            "shared": 111,
            "added": 0,
            "removed": 9,
            "relabelled": relabelled,
        }
        (detail,) = (w["detail"] for w in answer["warnings"] if w["code"] == "items_differ")
        assert detail.startswith(
            f"{111 - relabelled} items are compared, by their ids, of the 120 of the baseline: the "
            "candidate lacks 9; "
        )
        for page in pages.values():
            text = re.sub("</?code>", "`", page.read_text(encoding="utf-8"))
            assert detail in html.unescape(re.sub("</?bdi>|\u2060", "", text))
        shown = run("evaluate", file, *baseline, "--gates", gates).stdout
        assert detail in " ".join(shown.split())

    def test_ids_travel_with_a_baseline_of_other_items(self, write: Write, server: str) -> None:
        file = write("items.csv", {"item_id": IDS, **PLAIN})
        fewer = {"item_id": IDS[1:], "y_true": TRUE[1:], "y_pred": OTHER[1:]}
        other = write("other.csv", fewer)
        there = report(file, "--baseline", other, "--server", server)
        assert there == report(file, "--baseline", other)
        assert json.loads(there)["comparison"]["comparability"] == "common_items"
        report(file, "--baseline", other, "--server", server, "--table-only")

    def test_integers_are_classes_in_their_order(self, write: Write, server: str) -> None:
        columns: Columns = {"y_true": [2, 10, 10, 1], "y_pred": [2, 10, None, 10]}
        expected = rprime.evaluate(columns["y_true"], columns["y_pred"]).content + b"\n"
        for suffix in WRITERS:
            file = write(f"digits.{suffix}", columns)
            assert report(file) == report(file, "--server", server) == expected

    def test_a_comparison_is_the_same_too(self, write: Write, server: str) -> None:
        expected = rprime.compare({"y_true": TRUE, "y_pred": PREDICTED}, {"y_pred": OTHER})
        arguments = ("compare", write("a.parquet", PLAIN), write("b.feather", {"y_pred": OTHER}))
        for more in ((), ("--server", server)):
            done = run(*arguments, "--json", *more)
            assert done.stdout_bytes == expected.content + b"\n", done.stderr

    def test_a_service_is_asked_with_the_notes_on_the_files(
        self, write: Write, server: str, tmp_path: Path
    ) -> None:
        true, predictions = ["cat", "dog", "dog"] * 20, ["cat", "Dog!", "bird"] * 20
        columns: Columns = {"y_true": true, "y_pred": predictions, "age": list(range(60))}
        file, request = write("items.csv", columns), tmp_path / "request.yaml"
        content = 'aliases: {"Dog!": dog}\nlabels: [cat, dog]\nunknown_labels: unclassified\n'
        request.write_text(content)
        arguments = ("evaluate", file, "--request", str(request))
        notes = ("not read: `age`", "`Dog!` as `dog` 20", "unclassified: `bird` 20")
        for more in ((), ("--server", server), ("--server", server, "--table-only")):
            shown = " ".join(run(*arguments, *more).stdout.split())
            assert [shown.count(note) for note in notes] == [1, 1, 1], more
        beside = run(*arguments, "--server", server, "--json")
        assert "warnings" in json.loads(beside.stdout)
        assert all(note in beside.stderr for note in notes)
        counted = run(*arguments, "--engine", "duckdb")
        assert (counted.exit_code, "aliases is for items" in counted.stderr) == (2, True)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_of_every_format_is_opened(tmp_path: Path, suffix: str) -> None:
    broken = tmp_path / f"broken{suffix}"
    broken.write_bytes(b"\xff\n")
    done = run("evaluate", broken)
    assert done.exit_code == 2, done.stderr


def test_nothing_is_loaded_that_is_not_needed(write: Write) -> None:
    path = write("items.csv", PLAIN)
    code = (
        "import sys; from typer.testing import CliRunner; from rprime.cli import app\n"
        f"assert CliRunner().invoke(app, ['evaluate', {str(path)!r}]).exit_code == 0\n"
        "unused = {'pandas', 'sqlalchemy', 'structlog', 'httpx', 'fastapi', 'uvicorn', 'duckdb'}\n"
        "assert not unused & set(sys.modules), unused & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_small_table_loads_neither_readers_of_columns_nor_scipy(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text('{"confusion_matrix": [[50, 2], [3, 45]]}', encoding="utf-8")
    code = (
        "import sys; from typer.testing import CliRunner; from rprime.cli import app\n"
        f"assert CliRunner().invoke(app, ['evaluate', {str(path)!r}]).exit_code == 0\n"
        "tops = {'pyarrow', 'scipy', 'pandas', 'polars', 'narwhals', 'fastapi', 'httpx'}\n"
        "inner = {'client.report', 'core.gates.gate', 'schemas.history', 'schemas.published',\n"
        "         'schemas.report', 'schemas.simulation', 'tally.counting'}\n"
        "unused = tops | {f'rprime.{name}' for name in inner}\n"
        "assert not unused & set(sys.modules), unused & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def sent(*arguments: object) -> tuple[Seen, dict[str, Any]]:
    """Return what a service gets, and the request that stands in the address."""
    with flaky(Step(body=rprime.evaluate(TRUE, PREDICTED).content)) as service:
        done = run("evaluate", *arguments, "--server", service.url)
    assert done.exit_code == 0, done.stderr
    query = parse_qs(urlsplit(service.seen[0].path).query)
    return service.seen[0], json.loads(query["request"][0]) if "request" in query else {}


class TestWhatTravels:
    def test_items_are_codes_in_a_compressed_stream(self, write: Write) -> None:
        file = write("items.parquet", {**INLINE, "sample_weight": WEIGHTS})
        seen, request = sent(file, "--project", "pets", "--no-keep-items")
        assert seen.headers["content-type"] == "application/vnd.apache.arrow.stream"
        assert request == {"labels": LABELS, "codes": True, "project": "pets", "keep_items": False}
        table = pa.ipc.open_stream(seen.body).read_all()
        arrays = {name: table[name].to_numpy() for name in table.column_names}
        assert set(arrays) == {"y_true", "y_pred", "y_pred_baseline", "sample_weight"}
        assert all(arrays[name].dtype.itemsize == 1 for name in arrays if name.startswith("y_"))
        labels = [None if code < 0 else LABELS[code] for code in arrays["y_pred"]]
        assert labels == PREDICTED
        assert len(seen.body) < file.stat().st_size

    def test_ids_travel_as_arrow(self, write: Write, tmp_path: Path) -> None:
        np.savez(tmp_path / "items.npz", item_id=IDS, y_true=TRUE, y_pred=TRUE)
        seen, _ = sent(tmp_path / "items.npz")
        table = pa.ipc.open_stream(seen.body).read_all()
        assert table["item_id"].to_pylist() == IDS
        seen, _ = sent(write("items.csv", {"item_id": IDS, **PLAIN}))
        assert seen.headers["content-type"] == "application/vnd.apache.arrow.stream"
        table = pa.ipc.open_stream(seen.body).read_all()
        assert table["item_id"].to_pylist() == IDS

    def test_more_classes_than_an_address_can_name_travel_as_json(
        self, write: Write, server: str
    ) -> None:
        names = [f"a class with a long name, number {i}" for i in range(500)]
        file = write("items.parquet", {"y_true": names, "y_pred": names[1:] + names[:1]})
        assert report(file) == report(file, "--server", server)

    def test_a_large_document_travels_as_codes(self, tmp_path: Path, server: str) -> None:
        names = [f"a class with a long name, number {i}" for i in range(20)]
        true, predicted = names * 2000, (names[1:] + names[:1]) * 2000
        file = tmp_path / "request.json"
        body = {"y_true": true, "y_pred": predicted, "baseline": {"y_pred": true}, "beta": 2}
        file.write_text(json.dumps(body), encoding="utf-8")
        assert file.stat().st_size > 1024 * 1024
        assert report(file) == report(file, "--server", server)
        seen, request = sent(file)
        assert seen.headers["content-type"] == "application/vnd.apache.arrow.stream"
        assert request["beta"] == 2

    def test_the_table_alone_on_request(self, write: Write, server: str) -> None:
        file = write("items.parquet", INLINE)
        seen, _ = sent(file, "--table-only")
        content = json.loads(seen.body)
        assert "cells" in content
        assert "y_true" not in content
        answer = json.loads(report(file, "--table-only", "--server", server))
        assert answer["comparison"]["pairing"] == "unpaired"
        assert answer["overall"] == json.loads(report(file))["overall"]

    def test_a_table_never_stands_for_scores(self, write: Write, server: str) -> None:
        file = write("scores.parquet", CASES["scores"][0])
        done = run("evaluate", file, "--table-only", "--server", server)
        assert done.exit_code == 2
        assert "a table has no scores" in done.stderr


@pytest.mark.parametrize(
    ("columns", "baseline", "said"),
    [
        (
            {**PLAIN, "y_pred_basline": TRUE},
            None,
            "'y_pred_basline': Column 3 is not known here. Did you mean `y_pred_baseline`?",
        ),
        ({"y_true": TRUE}, None, "The column `y_pred` is missing; the body has `y_true`. If"),
        (
            {"predicted_label": OTHER, "label": TRUE},
            None,
            "say so in `columns`, as in `y_true=label,y_pred=predicted_label`.",
        ),
        ({"id": IDS, "label": TRUE}, None, "say so in `columns`, as in `y_true=label`."),
        ({"a": TRUE, "b": OTHER}, None, "If one of them holds it, say so in `columns`.\n"),
        (PLAIN, {"guess": OTHER}, "the body has `guess`. If one of them holds it, say so in"),
        (INLINE, PLAIN, "`y_pred_baseline` is a baseline, too"),
        (PLAIN, INLINE, "no column `y_pred_baseline` of its own"),
        (PLAIN, {"y_pred": OTHER[1:]}, "It has 119 items and the candidate 120"),
        ({"item_id": IDS, **PLAIN}, {"y_pred": OTHER}, "the baseline needs `item_id` and `y_true`"),
        ({**PLAIN, "item_id": [1.5] * SIZE}, None, "/item_id"),
        ({**PLAIN, "y_true": [None, *TRUE[1:]]}, None, "/y_true/0: The item has no label"),
    ],
)
def test_what_is_wrong_is_said(
    write: Write, columns: Columns, baseline: Columns | None, said: str
) -> None:
    more = [] if baseline is None else ["--baseline", write("baseline.parquet", baseline)]
    done = run("evaluate", write("items.parquet", columns), *more)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_what_cannot_stand_together_is_said(tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    table.write_text('{"confusion_matrix": [[5, 1], [2, 7]]}')
    for name in ("champion", "alias:champion"):
        done = run("evaluate", table, "--baseline", name)
        assert f"no file {name}; a stored evaluation is named as alias=champion\n" in done.stderr
    done = run("evaluate", table, "--baseline", "champion.csv")
    assert done.stderr.endswith("there is no file champion.csv\n")


@pytest.mark.parametrize(
    "suffix", [suffix for suffix in SUFFIXES if suffix not in {".csv", ".npz"}]
)
def test_what_is_no_such_file_ends_with_2(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"bad{suffix}"
    path.write_bytes(b"ARROW1 but not really, and no Parquet either" * 20)
    done = run("evaluate", path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert str(path) in done.stderr


def test_a_request_in_json_is_matched_with_a_file_by_ids(write: Write, tmp_path: Path) -> None:
    content = {"item_id": IDS, **PLAIN}
    other = write("items.parquet", content)
    request = tmp_path / "request.json"
    request.write_text(json.dumps({n: list(v)[::-1] for n, v in content.items()}))
    done = run("evaluate", request, "--baseline", other, "--json")
    assert done.exit_code == 0, done.stderr
    assert '"comparability":"same_items"' in done.stdout.replace(" ", "")
