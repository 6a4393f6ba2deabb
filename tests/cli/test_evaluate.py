"""`rprime evaluate` gives what the service gives, from every kind of file."""

import gzip
import json
import os
import re
import subprocess
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from jsonschema import Draft202012Validator

import rprime as library
from rprime.commands.payload import MOST_ITEMS
from rprime.core.catalog import INDICES
from rprime.report.formats import BY_NAME
from tests.command import Run
from tests.failing_service import Step, flaky
from tests.forked_command import program

TRUE = ["cat"] * 60 + ["dog"] * 60
GOOD = ["cat"] * 57 + ["dog"] * 3 + ["dog"] * 58 + ["cat"] * 2
BAD = ["cat"] * 35 + ["dog"] * 25 + ["dog"] * 58 + ["cat"] * 2
REQUEST = {"y_true": ["a", "b", "b"], "y_pred": ["a", "b", None]}
GATES = "rules:\n  - {index: recall, classes: all, max_drop: 0.05}\n"
RULES = {"rules": [{"index": "recall", "classes": "all", "max_drop": 0.05}]}


def csv_of(**columns: list[Any]) -> str:
    rows = zip(*columns.values(), strict=True)
    lines = (",".join("" if value is None else str(value) for value in row) for row in rows)
    return "\n".join([",".join(columns), *lines]) + "\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], str]:
    """Write a file and give its path."""

    def written(name: str, content: str | bytes) -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return written


Write = Callable[[str, str | bytes], str]


@pytest.fixture
def file(write: Write) -> str:
    return write("request.json", json.dumps(REQUEST))


@pytest.fixture
def labels(write: Write) -> str:
    return write("labels.csv", csv_of(y_true=TRUE, y_pred=BAD, y_pred_baseline=GOOD))


@pytest.fixture
def gates(write: Write) -> str:
    return write("gates.yaml", GATES)


def reported(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class TestJson:
    def test_it_is_what_the_service_gives(
        self, rprime: Run, file: str, client: httpx.Client
    ) -> None:
        done = rprime("evaluate", file, "--json")
        assert done.returncode == 0, done.stderr
        assert done.stdout == client.post("/evaluate", json=REQUEST).text + "\n"

    def test_command_client_library_and_service_give_the_same_bytes(
        self, rprime: Run, labels: str, gates: str, server: str
    ) -> None:
        here = rprime("evaluate", labels, "--gates", gates, "--json")
        there = rprime("evaluate", labels, "--gates", gates, "--json", "--server", server)
        options: Any = {"gates": RULES, "baseline": {"y_pred": GOOD}}
        with library.Client(server) as client:
            answer = client.evaluate(TRUE, BAD, **options).content
        body = {"y_true": TRUE, "y_pred": BAD, **options}
        posted = httpx.post(f"{server}/evaluate", json=body).content
        in_process = library.evaluate(TRUE, BAD, **options).content
        assert here.returncode == there.returncode == 1
        texts = {here.stdout.encode(), there.stdout.encode()}
        assert texts == {answer + b"\n"} == {posted + b"\n"} == {in_process + b"\n"}

    def test_the_table_comes_on_request(self, rprime: Run, file: str, server: str) -> None:
        here = rprime("evaluate", file, "--table", "--json").stdout
        assert "table" in json.loads(here)
        assert here == rprime("evaluate", file, "--table", "--json", "--server", server).stdout

    def test_standard_input_is_a_file(self, rprime_process: Run, file: str) -> None:
        done = rprime_process("evaluate", "-", "--json", stdin=Path(file).read_bytes())
        assert reported(done)["labels"] == ["a", "b"]

    def test_standard_input_may_be_columns(
        self, rprime_process: Run, write: Write, tmp_path: Path
    ) -> None:
        content = csv_of(y_true=TRUE, y_pred=BAD)
        expected = rprime_process("evaluate", write("a.csv", content), "--json").stdout
        pa.parquet.write_table(pa.table({"y_true": TRUE, "y_pred": BAD}), tmp_path / "a.parquet")
        for stdin in (content.encode(), (tmp_path / "a.parquet").read_bytes()):
            assert rprime_process("evaluate", "-", "--json", stdin=stdin).stdout == expected

    def test_it_is_utf_8_whatever_the_terminal_is(
        self, rprime_process: Run, write: Write, tmp_path: Path
    ) -> None:
        labels = ["šedá", "černá"]
        file = write(
            "named.json", json.dumps({"confusion_matrix": [[1, 2], [3, 4]], "labels": labels})
        )
        ascii_alone = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        page = str(tmp_path / "report.md")
        done = rprime_process("evaluate", file, "--json", "--markdown", page, **ascii_alone)
        assert reported(done)["labels"] == labels
        assert "šedá" in Path(page).read_text(encoding="utf-8")
        assert "šedá" in rprime_process("evaluate", file, **ascii_alone).stdout

    def test_a_reader_who_has_seen_enough_changes_nothing(self, labels: str, gates: str) -> None:
        with subprocess.Popen(
            [program(os.environ), "evaluate", labels, "--gates", gates, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            errors = process.stderr.read().decode()
        assert process.returncode == 1, errors
        assert "Traceback" not in errors


class TestCsv:
    def test_integers_are_classes_in_their_order(self, rprime: Run, write: Write) -> None:
        true, predicted = [2, 10, 10, 1], [2, 10, None, 10]
        file = write("digits.csv", csv_of(y_true=true, y_pred=predicted))
        output = rprime("evaluate", file, "--json").stdout
        assert json.loads(output)["labels"] == ["1", "2", "10"]
        assert output.encode() == library.evaluate(true, predicted).content + b"\n"

    def test_one_label_that_is_none_makes_all_of_them_names(
        self, rprime: Run, write: Write
    ) -> None:
        file = write("codes.csv", csv_of(y_true=["07", 10, 2], y_pred=["07", 2, 10]))
        assert reported(rprime("evaluate", file, "--json"))["labels"] == ["07", "10", "2"]
        other = write("other.csv", csv_of(y_pred=["none", 2, 10]))
        integers = write("integers.csv", csv_of(y_true=[7, 10, 2], y_pred=[7, 2, 10]))
        report = reported(rprime("evaluate", integers, "--baseline", other, "--json"))
        assert report["comparison"]["classes"]["baseline_only"] == ["none"]

    def test_what_spreadsheets_write_is_read(self, rprime: Run, write: Write) -> None:
        content = '\ufeff"y_true", y_pred\r\n"a, b",c\r\n\r\nc,"a, b"\r\n'
        report = reported(rprime("evaluate", write("sheet.csv", content), "--json"))
        assert report["labels"] == ["a, b", "c"]

    @pytest.mark.parametrize("sign", ["\t", ";", "|"])
    def test_other_signs_separate_columns_too(self, rprime: Run, write: Write, sign: str) -> None:
        content = csv_of(y_true=TRUE, y_pred=BAD)
        expected = rprime("evaluate", write("a.csv", content), "--json").stdout
        for name in ("b.tsv", "b.csv", "b.txt"):
            file = write(name, content.replace(",", sign))
            assert rprime("evaluate", file, "--json").stdout == expected

    def test_a_compressed_file_is_read(self, rprime: Run, write: Write) -> None:
        content = csv_of(y_true=TRUE, y_pred=BAD).encode()
        expected = rprime("evaluate", write("a.csv", content), "--json").stdout
        packed = gzip.compress(content)
        assert rprime("evaluate", write("a.csv.gz", packed), "--json").stdout == expected
        for broken in (packed[:-9], packed[:20] + bytes(20)):
            done = rprime("evaluate", write("broken.csv.gz", broken))
            assert (done.returncode, done.stdout) == (2, "")
            assert "is no whole gzip or Zstandard file" in done.stderr
        body = json.dumps({"y_true": TRUE, "y_pred": BAD}).encode()
        done = rprime("evaluate", write("a.json.gz", gzip.compress(body)), "--json")
        assert done.stdout == expected

    def test_floats_are_the_integers_of_a_frame_with_missing_values(
        self, rprime: Run, write: Write
    ) -> None:
        true, predicted = [1, 2, 1, 2, 10], [1, 2, 1, None, 2]
        file = write("a.csv", csv_of(y_true=true, y_pred=["1.0", "2.0", "1.0", None, "2.00"]))
        expected = library.evaluate(true, predicted).content + b"\n"
        assert rprime("evaluate", file, "--json").stdout.encode() == expected
        other = write("b.csv", csv_of(y_pred=["1", "2.0", 1, 2, "10.0"]))
        done = rprime("evaluate", file, "--baseline", other, "--json")
        baseline: Any = {"y_pred": [1, 2, 1, 2, 10]}
        expected = library.evaluate(true, predicted, baseline=baseline).content + b"\n"
        assert done.stdout.encode() == expected

    def test_floats_beside_names_are_names(self, rprime: Run, write: Write) -> None:
        file = write("a.csv", csv_of(y_true=["1.0", "1.5"], y_pred=["1.5", "1.0"]))
        assert reported(rprime("evaluate", file, "--json"))["labels"] == ["1.0", "1.5"]

    def test_declared_classes_are_what_they_are(self, rprime: Run, write: Write) -> None:
        content = csv_of(y_true=["2", "02", "NaN"], y_pred=["02", "02", "NaN"])
        request = write("request.yaml", 'labels: ["2", "02", "NaN"]\n')
        done = rprime("evaluate", write("a.csv", content), "--request", request, "--json")
        assert reported(done)["labels"] == ["2", "02", "NaN"]

    def test_columns_are_chosen(self, rprime: Run, write: Write) -> None:
        expected = rprime("evaluate", write("a.csv", csv_of(y_true=TRUE, y_pred=BAD)), "--json")
        rows = {"": range(len(TRUE)), "label": TRUE, "age": TRUE, "prediction": BAD}
        file = write("b.csv", csv_of(**{k: list(v) for k, v in rows.items()}))
        chosen = ("--columns", "y_true=label, y_pred=prediction", "--json")
        assert rprime("evaluate", file, *chosen).stdout == expected.stdout
        other = write("c.csv", csv_of(prediction=GOOD, age=GOOD))
        answer = reported(rprime("evaluate", file, "--baseline", other, *chosen))
        assert answer["comparison"]["comparability"] == "same_items"
        for columns, message in (
            (
                "y_true=label,y_pred=predicted",
                "'predicted': No column has the name chosen for `y_pred`",
            ),
            ("y_true=label,y_true=age", "a column is named twice"),
            ("y_true=label,y_prad=age", "'y_prad': `columns` chooses what is no column here"),
            ("y_true=label", "The column `y_pred` is missing"),
        ):
            done = rprime("evaluate", file, "--columns", columns)
            assert (done.returncode, done.stdout) == (2, "")
            assert message in done.stderr

    def test_columns_of_parquet_are_chosen(self, rprime: Run, tmp_path: Path) -> None:
        table = pa.table({"age": [[1]] * 3, "label": ["a", "b", "b"], "p": ["a", "b", "a"]})
        pa.parquet.write_table(table.drop_columns("age"), tmp_path / "a.parquet")
        done = rprime(
            "evaluate", str(tmp_path / "a.parquet"), "--columns", "y_pred=p,y_true=label", "--json"
        )
        expected = library.evaluate(["a", "b", "b"], ["a", "b", "a"]).content + b"\n"
        assert done.stdout.encode() == expected

    def test_a_table_of_items_beside_json(self, rprime: Run, write: Write) -> None:
        body = {"y_true": TRUE, "y_pred": BAD}
        file = write("a.json", json.dumps(body))
        cases: list[Any] = [{"y_pred": GOOD}, {"y_true": TRUE, "y_pred": GOOD}]
        for columns in cases:
            other = write("b.csv", csv_of(**columns))
            done = rprime("evaluate", file, "--baseline", other, "--json")
            expected = library.evaluate(TRUE, BAD, baseline=columns).content + b"\n"
            assert done.stdout.encode() == expected

    def test_weights_and_groups_are_columns(self, rprime: Run, write: Write) -> None:
        columns: dict[str, list[Any]] = {
            "y_true": ["a", "b", "b"],
            "y_pred": ["a", "b", "a"],
            "sample_weight": [1, 2, 0.5],
            "group": ["p1", "p1", "p2"],
        }
        output = rprime("evaluate", write("all.csv", csv_of(**columns)), "--json").stdout
        expected = library.evaluate(
            columns["y_true"],
            columns["y_pred"],
            sample_weight=columns["sample_weight"],
            groups=columns["group"],
        )
        assert output.encode() == expected.content + b"\n"

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("y_true,y_prd\n1,3\n", "'y_prd': Column 2 is not known here. Did you mean `y_pred`?"),
            ("y_true,y_prd\n1,3\n", "--columns y_true=label,y_pred=prediction"),
            ("y_true\n1\n", "The column `y_pred` is missing"),
            ("y_true,score_a,score_b\na,1,0\n", "`score:a=score_a,score:b=score_b`"),
            ("label,proba_a\na,1\n", "as in `y_true=label`"),
            ("y_true,y_pred,y_pred\n1,2,3\n", "Two columns have the name `y_pred`"),
            ("y_true,y_pred\n1,2\n\n3\n", "Line 4 of the CSV has 1 field, the header 2"),
            ("y_true,y_pred\na,b\n,b\n", "/y_true/1: The item has no label"),
            (
                "y_true,y_pred,sample_weight\na,b,much\n",
                "Line 2 of the CSV has no number in column 3",
            ),
            ("y_true,y_pred,sample_weight\na,b,nan\n", "/sample_weight/0: A weight is a number"),
            ("y_true,y_pred\n", "there is nothing to evaluate"),
            ("", "The CSV is empty"),
            ("y_true,y_pred\ncafé,b\n".encode("latin-1"), "Line 2 of the CSV is not UTF-8"),
            ("y_true,y_pred\n1,b\n".encode("utf-16"), "The CSV is UTF-16. Save it as UTF-8"),
        ],
    )
    def test_what_is_wrong_is_said(
        self, rprime: Run, write: Write, content: str | bytes, said: str
    ) -> None:
        done = rprime("evaluate", write("bad.csv", content))
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert "Traceback" not in done.stderr


class TestNpz:
    def test_columns_are_arrays(self, rprime: Run, tmp_path: Path) -> None:
        true, predicted = np.array([1, 2, 2]), np.array([1.0, 2.0, np.nan])
        np.savez_compressed(tmp_path / "items.npz", y_true=true, y_pred=predicted)
        output = rprime("evaluate", str(tmp_path / "items.npz"), "--json").stdout
        assert output.encode() == library.evaluate(true, predicted).content + b"\n"

    def test_a_table_is_an_array(self, rprime: Run, tmp_path: Path) -> None:
        counts, labels = np.array([[5, 1], [2, 7]]), np.array(["ill", "well"])
        np.savez(tmp_path / "table.npz", confusion_matrix=counts, labels=labels)
        output = rprime("evaluate", str(tmp_path / "table.npz"), "--json").stdout
        assert output.encode() == (
            library.evaluate(confusion_matrix=counts, labels=labels).content + b"\n"
        )

    def test_pickles_are_refused(self, rprime: Run, tmp_path: Path) -> None:
        objects = np.array(["a", None], dtype=object)
        np.savez(tmp_path / "objects.npz", allow_pickle=True, y_true=objects, y_pred=objects)
        done = rprime("evaluate", str(tmp_path / "objects.npz"))
        assert done.returncode == 2
        assert "pickles are never read" in done.stderr

    def test_what_is_no_archive_is_refused(self, rprime: Run, tmp_path: Path, write: Write) -> None:
        np.savez(tmp_path / "names.npz", y_true=[1], y_prd=[1])
        np.save(tmp_path / "single.npy", [1])
        single = write("single.npz", (tmp_path / "single.npy").read_bytes())
        for path, message in (
            (str(tmp_path / "names.npz"), "'y_prd': Column 2 is not known here"),
            (single, "a single array"),
            (write("text.npz", "y_true"), "not an archive"),
        ):
            done = rprime("evaluate", path)
            assert done.returncode == 2
            assert message in done.stderr


class TestBaselinesAndGates:
    def test_each_way_to_name_other_predictions_is_the_same(
        self, rprime: Run, labels: str, write: Write
    ) -> None:
        expected = library.evaluate(TRUE, BAD, baseline={"y_pred": GOOD}).content + b"\n"
        candidate = write("candidate.csv", csv_of(y_true=TRUE, y_pred=BAD))
        assert rprime("evaluate", labels, "--json").stdout.encode() == expected
        for other in (
            write("other.csv", csv_of(y_pred=GOOD)),
            write("other.json", json.dumps({"y_pred": GOOD})),
        ):
            done = rprime("evaluate", candidate, "--baseline", other, "--json")
            assert done.stdout.encode() == expected, done.stderr

    def test_a_baseline_has_items_of_its_own(self, rprime: Run, write: Write) -> None:
        candidate = write("candidate.csv", csv_of(y_true=TRUE, y_pred=BAD))
        other = write("other.csv", csv_of(y_true=TRUE, y_pred=GOOD))
        report = reported(rprime("evaluate", candidate, "--baseline", other, "--json"))
        assert report["comparison"]["comparability"] == "same_items"

    @pytest.mark.parametrize("kind", ["majority", "prior"])
    def test_a_baseline_is_a_constant_classifier(
        self, rprime: Run, write: Write, server: str, kind: Any
    ) -> None:
        """Of columns and of JSON, here and by a service, as items and as a table."""
        candidate = write("candidate.csv", csv_of(y_true=TRUE, y_pred=BAD))
        request = write("request.json", json.dumps({"y_true": TRUE, "y_pred": BAD}))
        expected = library.evaluate(TRUE, BAD, baseline={"constant": kind})
        for file in (candidate, request):
            asked = ("evaluate", file, "--baseline", f"constant={kind}")
            page = Path(file).with_suffix(".md")
            done = rprime(*asked, "--json", "--markdown", str(page))
            assert done.stdout.encode() == expected.content + b"\n"
            assert f"`{kind} classifier`" in page.read_text(encoding="utf-8")
            for more in ((), ("--table-only",)):
                report = reported(rprime(*asked, "--json", "--server", server, *more))
                changes = json.loads(expected.content)["comparison"]["overall"]
                assert report["comparison"]["overall"] == changes
        side = ("compare", candidate, f"constant={kind}", "--json")
        compared = library.compare({"y_true": TRUE, "y_pred": BAD}, {"constant": kind})
        assert rprime(*side).stdout.encode() == compared.content + b"\n"
        wrong = rprime("evaluate", candidate, "--baseline", "constant=mode")
        assert (wrong.returncode, "'majority', 'uniform' or 'prior'" in wrong.stderr) == (2, True)

    def test_two_baselines_are_refused(self, rprime: Run, labels: str) -> None:
        done = rprime("evaluate", labels, "--baseline", labels)
        assert done.returncode == 2
        assert "baseline" in done.stderr

    def test_a_stored_baseline_needs_a_service(self, rprime: Run, file: str) -> None:
        done = rprime("evaluate", file, "--baseline", "alias=champion")
        assert done.returncode == 2
        assert "--server" in done.stderr

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("rules: []\nrules: []\n", "'rules' stands twice"),
            ("- index: recall\n", "must hold gates as a mapping"),
            ("- index: recall\n", "as in `rules: [...]`"),
            ("rules: [", "is no YAML"),
            ("rules:\n", ":1:7: Give `rules` a value: it is required, and null is none."),
            ("rules: []\n---\n", ":2:1: a second document begins here; a file holds one"),
            ("rules:\n\t- index: recall\n", ":2:1: this is no YAML"),
            ("rules:\n\t- index: recall\n", "; indent by spaces"),
            ("rules: []\nwaivers: [{expires: 2026-13-01}]", "'2026-13-01': `expires` must be"),
            ("rules: [{index: recal, min_value: 1}]", "/gates/rules/0/index"),
            ("rules: [{index: recall, min_valu: 1}]", "Did you mean `min_value`?"),
            ("rules: [{index: recall, min: 1}]", "Did you mean `min_value`?"),
            ("rule: [{index: recall, min_value: 1}]", "Did you mean `rules`?"),
            ("rules: []\non: {no_baseline: no}", ":2:19: 'no':"),
            ("rules:\n- index: recal\n  min_value: 1", ":2:10: 'recal': "),
            ("rules:\n- {index: recall, maxdrop: 1}", ":2:19: 'maxdrop': Member 2"),
            ("rules: [{index: recall, classes: [1.5], min_value: 1}]", "a string or an integer"),
            ("rules: [{index: recall, classes: cat, min_value: 1}]", "in brackets"),
            ("rules: [{confusion: [cat], max_value: 1}]", "/gates/rules/0/confusion"),
            ("rules: [{max_value: 1}]", "either index or confusion"),
            ("rules: [{index: accuracy, min_value: 1, policy: average}]", "min_value is each"),
            (
                "rules: [{index: recall, classes: all, max_drop: 0.1, policy: suspects_fail}]",
                "effects: {suspect: fail}",
            ),
            ("rules: []\nmax_looks: 5\nspend: true", "leave max_looks out"),
            ("rules: [{index: recall, min_value: 1e-3}]", "/gates/rules/0/min_value"),
            ("rules: [{index: recall, min_value: .nan}]", "/gates/rules/0/min_value"),
            ("rules: [{index: recall, min_value: !!set {a}}]", "/gates/rules/0/min_value"),
            ("rules: !!python/object/apply:os.system [ls]", "is no YAML"),
        ],
    )
    def test_what_could_switch_a_gate_off_is_refused(
        self, rprime: Run, file: str, write: Write, content: str, said: str
    ) -> None:
        done = rprime("evaluate", file, "--gates", write("gates.yaml", content))
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert "Traceback" not in done.stderr

    def test_gates_have_merge_keys(self, rprime: Run, file: str, write: Write) -> None:
        rule = "- &r {index: recall, classes: [cat], min_value: 0.01}"
        gates = write("gates.yaml", f"rules:\n{rule}\n- {{<<: *r, index: precision}}\n")
        report = json.loads(rprime("evaluate", file, "--gates", gates, "--json").stdout)
        failing = [result["rule"] for result in report["gate"]["results"]]
        assert failing == ["recall.min_value", "precision.min_value"]

    @pytest.mark.parametrize(
        ("classes", "said"),
        [
            ("[all]", "For every class write `classes: all`, without brackets."),
            ("[Cat]", "Did you mean `cat`?"),
            ("[18]", "The classes are `cat`, `dog`"),
        ],
    )
    def test_a_class_that_is_not_there_has_a_hint(
        self, rprime: Run, labels: str, write: Write, classes: str, said: str
    ) -> None:
        for limit in ("min_value: 0.01", "max_drop: 0.9"):
            rule = f"rules: [{{index: recall, classes: {classes}, {limit}}}]"
            done = rprime("evaluate", labels, "--gates", write("g.yaml", rule), "--json")
            assert said in json.loads(done.stdout)["gate"]["results"][0]["message"]

    def test_gates_in_two_places_are_refused(self, rprime: Run, write: Write, gates: str) -> None:
        file = write("both.json", json.dumps({**REQUEST, "gates": RULES}))
        done = rprime("evaluate", file, "--gates", gates)
        assert done.returncode == 2
        assert "the same name twice" in done.stderr

    def test_waivers_are_dated_in_yaml(self, rprime: Run, labels: str, write: Write) -> None:
        about = "rule: recall.max_drop, class: cat, ceiling: 0.9, expires: 2999-01-01"
        waiver = f"{{{about}, reason: relabelled, by: ana}}"
        gates = write("gates.yaml", f"{GATES}waivers:\n  - {waiver}\n")
        report = reported(rprime("evaluate", labels, "--gates", gates, "--json"))
        assert "waived" in {result["verdict"] for result in report["gate"]["results"]}

    def test_further_members_come_from_a_file(self, rprime: Run, file: str, write: Write) -> None:
        request = write("request.yaml", "indices: [accuracy]\nconfidence: 0.9\n")
        report = reported(rprime("evaluate", file, "--request", request, "--json"))
        assert list(report["overall"]) == ["accuracy"]
        assert report["options"]["confidence"] == 0.9

    def test_the_schema_of_gates_is_the_one_of_the_service(self, rprime: Run) -> None:
        schema = json.loads(rprime("gates-schema").stdout)
        Draft202012Validator.check_schema(schema)
        validator = Draft202012Validator(schema)
        assert validator.is_valid(RULES)
        assert not validator.is_valid({"rules": [{"index": "recall", "max_dro": 0.05}]})
        assert not validator.is_valid({"rules": [{"index": "recal", "max_drop": 0.05}]})


class TestService:
    def test_items_travel_so_that_comparisons_are_paired(
        self, rprime: Run, labels: str, server: str
    ) -> None:
        report = reported(rprime("evaluate", labels, "--json", "--server", server))
        assert report["comparison"]["pairing"] == "paired"

    def test_the_table_alone_on_request(self, rprime: Run, labels: str) -> None:
        with flaky(Step(body=library.evaluate(TRUE, BAD).content)) as server:
            done = rprime("evaluate", labels, "--table-only", "--server", server.url)
            sent = json.loads(server.seen[0].body)
        assert done.returncode == 0, done.stderr
        assert sorted(sent["cells"]) == [[0, 0, 35], [0, 1, 25], [1, 0, 2], [1, 1, 58]]
        assert "y_true" not in sent
        assert sent["test_set"] == sent["baseline"]["test_set"]
        assert len(sent["test_set"]["fingerprint"]) == 64

    def test_the_table_says_which_test_set_it_is_of(
        self, rprime: Run, labels: str, server: str
    ) -> None:
        there = ("--table-only", "--server", server)
        report = reported(rprime("evaluate", labels, "--json", *there))
        assert report["comparison"]["comparability"] == "same_test_set"
        assert report["comparison"]["pairing"] == "unpaired"
        expected = library.evaluate(TRUE, BAD, baseline={"y_pred": GOOD})
        assert report["overall"] == json.loads(expected.content)["overall"]

    def test_a_table_never_hides_groups(self, rprime: Run, write: Write, server: str) -> None:
        file = write("items.csv", csv_of(y_true=TRUE, y_pred=BAD, group=[1, 2] * 60))
        done = rprime("evaluate", file, "--table-only", "--server", server)
        assert done.returncode == 2
        assert "cannot carry" in done.stderr

    def test_a_table_says_that_it_is_weighted(self, rprime: Run, write: Write, server: str) -> None:
        file = write("items.csv", csv_of(y_true=TRUE, y_pred=BAD, sample_weight=[1, 2] * 60))
        request = write("core.json", '{"families": ["core"]}')
        given = ("evaluate", file, "--json", "--request", request)
        there = reported(rprime(*given, "--table-only", "--server", server))
        here = reported(rprime(*given))
        # The weights of single items are lost, and with them how many they are worth.
        assert here["counts"].pop("effective_items") < here["counts"]["items"] == 120
        assert there["counts"] == here["counts"]
        assert there["counts"]["weight"]
        values = [{k: v["value"] for k, v in r["overall"].items()} for r in (there, here)]
        assert values[0] == values[1]
        assert there["overall"]["accuracy"]["reason"] == "weighted"
        assert here["overall"]["accuracy"]["interval"] is not None

    @pytest.mark.slow
    def test_too_many_items_stay_here_and_it_is_said(
        self, rprime: Run, tmp_path: Path, server: str
    ) -> None:
        codes = np.arange(MOST_ITEMS + 1, dtype=np.uint8) % 3
        np.savez_compressed(tmp_path / "many.npz", y_true=codes, y_pred=codes)
        done = rprime("evaluate", str(tmp_path / "many.npz"), "--json", "--server", server)
        assert reported(done)["counts"]["items"] == MOST_ITEMS + 1
        assert "too many items to send" in done.stderr

    def test_a_table_is_sent_as_it_is(self, rprime: Run, write: Write) -> None:
        content = json.dumps({"confusion_matrix": [[5, 1], [2, 7]]})
        with flaky(
            Step(body=library.evaluate(confusion_matrix=[[5, 1], [2, 7]]).content)
        ) as server:
            rprime("evaluate", write("table.json", content), "--server", server.url)
            assert server.seen[0].body.decode() == content

    def test_the_verdict_of_the_service_is_the_one_that_is_shown(
        self, rprime: Run, labels: str, gates: str, tmp_path: Path
    ) -> None:
        options: Any = {"gates": RULES, "baseline": {"y_pred": BAD}}
        passed = library.evaluate(TRUE, BAD, **options).content.replace(
            b'"verdict":"inconclusive","alpha"', b'"verdict":"pass","alpha"'
        )
        with flaky(Step(body=passed)) as server:
            junit = tmp_path / "junit.xml"
            arguments = ("--gates", gates, "--junit", str(junit), "--server", server.url)
            done = rprime("evaluate", labels, *arguments)
        assert done.returncode == 0, done.stderr
        assert "Gate passed" in done.stdout
        assert ET.parse(junit).getroot().get("failures") == "0"  # noqa: S314 (our own)

    def test_an_evaluation_is_kept_and_compared_with_later(
        self, rprime: Run, write: Write, gates: str, server: str, tmp_path: Path
    ) -> None:
        first = write("first.csv", csv_of(y_true=TRUE, y_pred=GOOD))
        later = write("later.csv", csv_of(y_true=TRUE, y_pred=BAD))
        there = ("--server", server, "--project", "command", "--tag", "nightly")
        kept = reported(rprime("evaluate", first, *there, "--version", "1", "--json"))
        assert (kept["version"], kept["tags"]) == ("1", ["nightly"])
        page = tmp_path / "report.md"
        against = ("--baseline", "version=1", "--gates", gates, "--markdown", str(page))
        done = rprime("evaluate", later, *there, "--version", "2", *against, "--json")
        report = json.loads(done.stdout)
        assert (done.returncode, report["comparison"]["pairing"]) == (1, "paired")
        assert report["comparison"]["baseline"]["resolved"] == kept["id"]
        text = page.read_text(encoding="utf-8")
        assert f"{server}{report['links']['self']}" in text.replace("//v1", "/v1")
        assert "22" in text
        here = json.loads(rprime("evaluate", first, "--json").stdout)
        assert [warning["code"] for warning in kept.pop("warnings")] == [
            *(warning["code"] for warning in here.pop("warnings")),
            "first_evaluation",
        ]
        assert {name: kept[name] for name in here} == here

    def test_the_key_comes_from_an_option_or_a_variable(self, rprime: Run, file: str) -> None:
        with flaky(Step(body=library.evaluate(**REQUEST).content)) as server:  # type: ignore[arg-type] # a literal
            rprime("evaluate", file, "--server", server.url, "--key", "rp_a")
            rprime("evaluate", file, "--server", server.url, RPRIME_KEY="rp_b\n")
            headers = [seen.headers["authorization"] for seen in server.seen]
        assert headers == ["Bearer rp_a", "Bearer rp_b"]


class TestOutput:
    def test_people_get_text_without_control_sequences(
        self, rprime: Run, labels: str, gates: str
    ) -> None:
        done = rprime("evaluate", labels, "--gates", gates)
        assert "Gate failed" in done.stdout
        assert "cat" in done.stdout
        assert "\x1b" not in done.stdout

    def test_every_rendering_is_written(
        self, rprime: Run, labels: str, gates: str, tmp_path: Path
    ) -> None:
        starts = {
            "markdown": "#",
            "html": "<!doctype html>",
            "csv": "",
            "junit": "<?xml",
            "openmetrics": "#",
        }
        assert starts.keys() == BY_NAME.keys()
        options = [part for name in starts for part in (f"--{name}", str(tmp_path / name))]
        model = ("--model", "lenet", "--version", "7")
        done = rprime("evaluate", labels, "--gates", gates, *options, *model)
        assert done.returncode == 1, done.stderr
        for name, start in starts.items():
            text = (tmp_path / name).read_text(encoding="utf-8")
            assert start in text[:200]
            assert "cat" in text
        assert "model `lenet` · version `7`" in (tmp_path / "markdown").read_text(encoding="utf-8")

    def test_the_summary_of_a_job_is_appended_to(
        self, rprime: Run, labels: str, write: Write
    ) -> None:
        path = write("summary.md", "before\n")
        rprime("evaluate", labels, GITHUB_STEP_SUMMARY=path)
        rprime("evaluate", labels, GITHUB_STEP_SUMMARY=path)
        text = Path(path).read_text(encoding="utf-8")
        assert text.startswith("before\n")
        assert text.count("# ") >= 2

    def test_later_steps_of_a_job_find_the_verdict_and_the_figures(
        self, rprime: Run, labels: str, gates: str, write: Write
    ) -> None:
        path = write("outputs", "before=1\n")
        done = rprime("evaluate", labels, "--gates", gates, "--json", GITHUB_OUTPUT=path)
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        outputs = dict(line.split("=") for line in lines)
        assert (outputs["before"], outputs["verdict"]) == ("1", "fail")
        overall = json.loads(done.stdout)["overall"]
        for key in ("r_prime", "accuracy", "macro_f1", "mcc"):
            assert float(outputs[key]) == overall[key]["value"]

    def test_json_goes_to_a_file_while_people_read(
        self, rprime: Run, labels: str, write: Write
    ) -> None:
        path = write("report.json", "")
        printed = rprime("evaluate", labels, "--json-file", path).stdout
        assert "Overall" in printed
        assert Path(path).read_text(encoding="utf-8") == rprime("evaluate", labels, "--json").stdout

    def test_annotations_stand_beside_the_report(
        self, rprime: Run, labels: str, gates: str
    ) -> None:
        arguments = ("evaluate", labels, "--gates", gates, "--annotations")
        assert "\n::error " in rprime(*arguments).stdout
        done = rprime(*arguments, "--json")
        assert "::error " in done.stderr
        json.loads(done.stdout)

    def test_annotations_stand_at_the_rules_in_the_repository(
        self, rprime: Run, labels: str, tmp_path: Path
    ) -> None:
        (tmp_path / "model").mkdir()
        gates = tmp_path / "model" / "gates.yaml"
        gates.write_text(
            "rules:\n# the floor\n- {index: accuracy, min_value: 0.999}\n"
            "-   id: mine\n    index: macro_f1\n    min_value: 0.999\n"
        )
        arguments = ("evaluate", labels, "--gates", str(gates), "--annotations")
        printed = rprime(*arguments, GITHUB_WORKSPACE=str(tmp_path)).stdout
        places = r"^::error file=(.*),line=(\d+),col=(\d+),title=([\w.]+)"
        annotations = re.findall(places, printed, re.MULTILINE)
        path = "model/gates.yaml"
        assert annotations == [(path, "3", "3", "accuracy.min_value"), (path, "4", "5", "mine")]

    def test_a_file_that_cannot_be_written_is_said(self, rprime: Run, file: str) -> None:
        done = rprime("evaluate", file, "--markdown", "/nowhere/report.md")
        assert done.returncode == 2
        assert "cannot write /nowhere/report.md" in done.stderr


class TestCompare:
    def test_it_prints_what_the_service_answers(
        self, rprime: Run, write: Write, gates: str, server: str
    ) -> None:
        candidate = write("candidate.csv", csv_of(y_true=TRUE, y_pred=BAD))
        baseline = write("baseline.csv", csv_of(y_pred=GOOD))
        request = write("options.yaml", "confidence: 0.9\n")
        arguments = ("compare", candidate, baseline, "--gates", gates, "--request", request)
        here, there = rprime(*arguments, "--json"), rprime(*arguments, "--json", "--server", server)
        expected = library.compare(
            {"y_true": TRUE, "y_pred": BAD},
            {"y_pred": GOOD},
            gates=RULES,
            options={"confidence": 0.9},
        )
        assert here.returncode == there.returncode == 1, there.stderr
        assert here.stdout == there.stdout == expected.content.decode() + "\n"
        assert "Gate failed" in rprime(*arguments).stdout

    def test_every_rendering_is_written(
        self, rprime: Run, write: Write, gates: str, tmp_path: Path
    ) -> None:
        candidate = write("candidate.csv", csv_of(y_true=TRUE, y_pred=BAD))
        baseline = write("baseline.csv", csv_of(y_pred=GOOD))
        files = {f"--{name}": str(tmp_path / name) for name in BY_NAME}
        options = chain.from_iterable(files.items())
        done = rprime("compare", candidate, baseline, "--gates", gates, *options)
        assert done.returncode == 1, done.stderr
        for path in files.values():
            assert "cat" in Path(path).read_text(encoding="utf-8")


class TestLint:
    def test_it_prints_what_the_service_answers(
        self, rprime: Run, write: Write, gates: str, server: str
    ) -> None:
        file = write("items.csv", csv_of(y_true=TRUE, y_pred=GOOD))
        arguments = ("lint", file, "--gates", gates, "--replicates", "200")
        here, there = rprime(*arguments, "--json"), rprime(*arguments, "--json", "--server", server)
        model: Any = {"confusion_matrix": [[57, 3], [2, 58]], "labels": ["cat", "dog"]}
        expected = library.lint(RULES, **model, replicates=200)
        assert here.stdout == there.stdout == expected.content.decode() + "\n", there.stderr
        assert "recall.max_drop" in rprime(*arguments).stdout

    def test_rules_about_scores_alone_are_refused(
        self, rprime: Run, write: Write, server: str
    ) -> None:
        likely = {
            label: [0.9 if label == true else 0.1 for true in TRUE] for label in ("cat", "dog")
        }
        scores = {f"score:{label}": column for label, column in likely.items()}
        file = write("scores.csv", csv_of(y_true=TRUE, **scores))
        rules = write("auc.json", b'{"rules": [{"index": "macro_roc_auc", "max_drop": 0.1}]}')
        arguments = ("lint", file, "--gates", rules, "--replicates", "100", "--json")
        here, there = rprime(*arguments), rprime(*arguments, "--server", server)
        assert (here.returncode, there.returncode) == (2, 2)
        assert "/gates/rules/0/index: Rules about scores are not simulated" in here.stderr
        assert here.stderr.splitlines()[-1] == there.stderr.splitlines()[-1]

    def test_crossed_slices_are_linted_as_a_gate_judges_them(
        self, rprime: Run, write: Write
    ) -> None:
        items: Any = {"y_true": TRUE, "y_pred": GOOD, "slice_crossings": [["region", "device"]]}
        items["slices"] = {"region": ["EU", "US"] * 60, "device": ["ios", "ios", "web"] * 40}
        rules = {"rules": [{"index": "accuracy", "max_drop": 0.2, "slices": "all"}]}
        file, gates = write("items.json", json.dumps(items)), write("all.json", json.dumps(rules))
        done = rprime("lint", file, "--gates", gates, "--replicates", "100", "--json")
        assert json.loads(done.stdout) == library.lint(rules, **items, replicates=100).to_dict()
        # Eight slices, and the average of each column and of the crossing.
        assert len(json.loads(done.stdout)["rules"]) == 8 + 3

    def test_a_plan_is_what_the_service_answers(
        self, rprime: Run, write: Write, gates: str, server: str
    ) -> None:
        file = write("items.csv", csv_of(y_true=TRUE, y_pred=GOOD))
        arguments = ("plan", file, "--gates", gates, "--drop", "0.2")
        here, there = rprime(*arguments, "--json"), rprime(*arguments, "--json", "--server", server)
        assert here.stdout == there.stdout, there.stderr
        plan = json.loads(here.stdout)
        assert plan["items"] == 120
        assert plan["for_finding"] > 0
        assert "needed" in rprime(*arguments).stdout
        assert plan["for_width"] is None
        near = rprime(*arguments, "--width", "0.05", "--server", server).stdout
        assert "for width" in near
        assert "limits of every result, each with 95 % confidence, are at most 0.05 apart" in near
        refused = rprime(*arguments, "--width", "0", "--server", server)
        assert refused.returncode == 2
        assert "/width" in refused.stderr

    def test_what_cannot_be_linted_ends_with_2(self, rprime: Run, file: str, gates: str) -> None:
        done = rprime("lint", file, "--gates", gates)
        assert done.returncode == 2
        assert "without unclassified and spurious items" in done.stderr

    @pytest.mark.parametrize("command", ["lint", "plan"])
    def test_files_are_read_as_for_an_evaluation(
        self, rprime: Run, write: Write, server: str, command: str
    ) -> None:
        regions, ages = ["EU", "US"] * 60, [20, 40, 60] * 40
        file = write("raw.csv", csv_of(truth=TRUE, guess=GOOD, region=regions, age=ages))
        rules = {"rules": [{"index": "accuracy", "max_drop": 0.2, "slices": "all"}]}
        rest = {"slice_crossings": [["region", "age"]]}
        request = write("rest.json", json.dumps(rest))
        arguments = [command, file, "--gates", write("all.json", json.dumps(rules)), "--json"]
        arguments += ["--columns", "y_true=truth,y_pred=guess", "--slice", "region"]
        arguments += ["--slice", "age=cut(age, 30, 50)", "--request", request]
        here, there = rprime(*arguments), rprime(*arguments, "--server", server)
        model: Any = {"y_true": TRUE, "y_pred": GOOD, "slices": {"region": regions, "age": ages}}
        model |= {"slice_cuts": {"age": [30, 50]}, **rest}
        expected = getattr(library, command)(rules, **model).to_dict()
        assert here.stdout == there.stdout, there.stderr
        assert json.loads(here.stdout) == expected, here.stderr

    @pytest.mark.parametrize("command", ["lint", "plan"])
    def test_the_population_is_that_of_the_option_or_of_the_request(
        self, rprime: Run, write: Write, gates: str, command: str
    ) -> None:
        model: Any = {"y_true": TRUE, "y_pred": GOOD}
        shares = {"prevalence": {"cat": 0.2, "dog": 0.8}}
        expected = getattr(library, command)(RULES, **model, population=shares).to_dict()
        file = write("items.json", json.dumps(model | {"population": shares}))
        bare = write("bare.json", json.dumps(model))
        for arguments in ((file,), (bare, "--population", json.dumps(shares))):
            done = rprime(command, *arguments, "--gates", gates, "--json")
            assert json.loads(done.stdout) == expected, done.stderr

    @pytest.mark.parametrize("command", ["lint", "plan"])
    def test_the_discordance_is_that_from_the_baseline_beside_the_predictions(
        self, rprime: Run, write: Write, gates: str, command: str
    ) -> None:
        columns = {"y_true": TRUE, "y_pred": GOOD, "y_pred_baseline": TRUE}
        arguments = (command, write("items.csv", csv_of(**columns)), "--gates", gates, "--json")
        for options, expected in (((), 5 / 120), (("--discordance", "0.02"), 0.02)):
            plan = json.loads(rprime(*arguments, *options).stdout)
            assert plan["discordance"] == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("column", "values", "place"),
        [
            ("group", list(range(60)) * 2, "/groups"),
            ("sample_weight", [1, 2] * 60, "/sample_weight"),
            ("y_pred", [None, "cat"] * 60, "/y_pred"),
        ],
    )
    def test_columns_that_no_simulation_takes_are_named(
        self, rprime: Run, write: Write, gates: str, *, column: str, values: list[Any], place: str
    ) -> None:
        columns = {"y_true": TRUE, "y_pred": GOOD} | {column: values}
        done = rprime("lint", write("items.csv", csv_of(**columns)), "--gates", gates)
        assert done.returncode == 2
        assert f"{place}: " in done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"confusion_matrix": [[1, true], [2, 3]]}', "/confusion_matrix/0/1: A count is a number"),
        ('{"confusion_matrix": [[1]], "betta": 1}', "Did you mean `beta`?"),
        ('{"confusion_matrix": [[1]], "betta": 1}', "/: 'betta': Member 2 of the object"),
        ('{"confusion_matrix": [[1]], "a\\u202eb": 1}', r"/: 'a\u202eb': Member 2"),
        ("{", "not valid JSON"),
        ("[1]", "an object"),
    ],
)
@pytest.mark.parametrize("gated", [False, True])
def test_bad_input_ends_with_2_and_says_where(
    rprime: Run, write: Write, gates: str, content: str, said: str, *, gated: bool
) -> None:
    options = ("--gates", gates) if gated else ()
    done = rprime("evaluate", write("bad.json", content), *options)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_file_ends_with_2(rprime: Run, tmp_path: Path) -> None:
    for name in ("nothing.json", "nothing.csv", "nothing.npz"):
        done = rprime("evaluate", str(tmp_path / name))
        assert done.returncode == 2
        assert "cannot read" in done.stderr


def test_limits_come_from_the_environment(rprime: Run, write: Write) -> None:
    path = write("request.json", '{"confusion_matrix": [[1, 0], [0, 1]]}')
    assert rprime("evaluate", path, RPRIME_LIMITS_DENSE_CLASSES="1").returncode == 2
    done = rprime("evaluate", path, RPRIME_LIMITS_JSON_DEPTH="0")
    assert done.returncode == 2
    assert "RPRIME_LIMITS_JSON_DEPTH" in done.stderr


def test_the_catalog_is_listed(rprime: Run) -> None:
    lines = rprime("indices").stdout.splitlines()
    assert len(lines) == len(INDICES) + 1
    assert any("weighted_negative_predictive_value" in line for line in lines)


def test_the_catalog_is_the_one_of_the_service(rprime: Run, client: httpx.Client) -> None:
    assert json.loads(rprime("indices", "--json").stdout) == client.get("/v1/indices").json()


def test_it_shows_the_indices_that_are_named(rprime: Run, tmp_path: Path) -> None:
    path = tmp_path / "matrix.json"
    path.write_text('{"confusion_matrix": [[5, 1], [2, 7]]}', encoding="utf-8")
    named = ("--index", "r_prime", "--index", "kappa")
    report = json.loads(rprime("evaluate", str(path), *named, "--json").stdout)
    assert set(report["overall"]) == {"r_prime", "kappa"}
    text = rprime("evaluate", str(path), "--index", "kappa").stdout
    assert ("kappa" in text.lower(), "accuracy" in text.lower()) == (True, False)


@pytest.mark.parametrize(
    ("key", "said"), [("kapa", "/indices/0"), ("kappa", "--index: there is a `indices` already")]
)
def test_an_index_that_cannot_be_shown_is_refused(
    rprime: Run, tmp_path: Path, key: str, said: str
) -> None:
    path, request = tmp_path / "matrix.json", tmp_path / "request.yaml"
    path.write_text('{"confusion_matrix": [[5, 1], [2, 7]]}', encoding="utf-8")
    request.write_text("indices: [accuracy]" if key == "kappa" else "confidence: 0.9", "utf-8")
    done = rprime("evaluate", str(path), "--index", key, "--request", str(request))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_changed_predictions_add_up(rprime: Run, tmp_path: Path) -> None:
    rows = {"old": "aabbc", "new": "abbac"}
    for name, predicted in rows.items():
        lines = [f"{true},{label}" for true, label in zip("aaccc", predicted, strict=True)]
        text = "\n".join(["y_true,y_pred", *lines])
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    done = rprime("evaluate", str(tmp_path / "new.csv"), "--baseline", str(tmp_path / "old.csv"))
    said = "2 items changed: 1 from right to wrong, 0 from wrong to right, 1 from wrong to wrong."
    assert said in done.stdout
