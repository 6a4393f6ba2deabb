"""Files as people have them: mistakes, and the same items in every format."""

import gzip
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any
from zipfile import ZipFile

import httpx
import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import zstandard
from typer.testing import CliRunner, Result

import rprime
from rprime.cli import app
from tests.forked_command import program
from tests.history_service import ServeApp, keep, keeping
from tests.http.column_bodies import send
from tests.services import environment

ROWS = "cat,cat\ndog,cat\ndog,dog\n"
PLAIN = f"y_true,y_pred\n{ROWS}"


def run(content: bytes, *options: str, name: str = "items.csv", folder: Path) -> Result:
    file = folder / name
    file.write_bytes(content)
    return CliRunner().invoke(app, ["evaluate", str(file), "--json", *options])


def warned(report: dict[str, Any]) -> dict[str, str]:
    return {warning["code"]: warning["detail"] for warning in report["warnings"]}


EXPECTED_DIGEST = rprime.evaluate(["cat", "dog", "dog"], ["cat", "cat", "dog"]).input_digest


@pytest.mark.parametrize(
    ("content", "name", "options"),
    [
        (PLAIN.encode(), "items.csv", ()),
        (PLAIN.replace(",", "\t").encode(), "items.tsv", ()),
        (PLAIN.replace(",", ";").encode(), "items.csv", ()),
        (("sep=;\n" + PLAIN.replace(",", ";")).encode(), "items.csv", ()),
        (b"\xef\xbb\xbf" + PLAIN.encode(), "items.csv", ()),
        (PLAIN.replace("\n", "\r\n").encode(), "items.csv", ()),
        (gzip.compress(PLAIN.encode(), mtime=0), "items.csv.gz", ()),
        (gzip.compress(PLAIN.replace(",", "\t").encode(), mtime=0), "items.tsv.gz", ()),
        (zstandard.compress(PLAIN.encode()), "items.csv.zst", ()),
        (
            f"label,prediction\n{ROWS}".encode(),
            "i.csv",
            ("--columns", "true=label,pred=prediction"),
        ),
        (b",y_true,y_pred,x\n" + b"0,cat,cat,.5\n1,dog,cat,.5\n2,dog,dog,\n", "items.csv", ()),
    ],
)
def test_a_file_is_read_as_it_is(
    tmp_path: Path, content: bytes, name: str, options: tuple[str, ...]
) -> None:
    done = run(content, *options, name=name, folder=tmp_path)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["input_digest"] == EXPECTED_DIGEST


@pytest.mark.parametrize("packed", [bytes, gzip.compress, zstandard.compress])
def test_standard_input_may_be_compressed(packed: Callable[[bytes], bytes]) -> None:
    done = CliRunner().invoke(app, ["evaluate", "-", "--json"], input=packed(PLAIN.encode()))
    assert json.loads(done.stdout)["input_digest"] == EXPECTED_DIGEST


def test_other_columns_are_named(tmp_path: Path) -> None:
    answer = json.loads(run(b"idx,y_true,y_pred,\n1,a,a,2\n", folder=tmp_path).stdout)
    unnamed = "one without a name (the index of pandas?)"
    assert warned(answer)["columns_ignored"] == f"These columns are not read: `idx`, {unnamed}."


def test_columns_of_scores_are_chosen(tmp_path: Path) -> None:
    content = b"label,p_cat,p_dog,note\ncat,.9,.1,a\ndog,.2,.8,b\n"
    chosen = "true=label,score:cat=p_cat,score:dog=p_dog"
    answer = json.loads(run(content, "--columns", chosen, folder=tmp_path).stdout)
    assert answer["labels"] == ["cat", "dog"]
    assert answer["overall"]["accuracy"]["value"] == 1


def zipped(members: Mapping[str, bytes]) -> bytes:
    file = BytesIO()
    with ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def arrays(**members: object) -> bytes:
    file = BytesIO()
    np.savez(
        file, allow_pickle=False, **{name: np.array(member) for name, member in members.items()}
    )
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        ("y_true,y_pred\nchien,chât\n".encode("cp1252"), "a.csv", "Line 2 of the CSV is not UTF-8"),
        ("y_true,y_pred\nchien,chât\n".encode("cp1252"), "a.csv", "`iconv -f cp1252 -t utf-8`"),
        (PLAIN.encode("utf-16"), "a.csv", "UTF-16. Save it as UTF-8"),
        (
            gzip.compress(PLAIN.encode(), mtime=0)[:-9],
            "a.csv.gz",
            "no whole gzip or Zstandard file",
        ),
        (zstandard.compress(PLAIN.encode())[:-1], "a.csv.zst", "no whole gzip or Zstandard file"),
        # Whole blocks of whole lines are missing.
        (
            zstandard.compress(PLAIN.encode() + 60_000 * b"cat,dog\n", -5)[:-20],
            "a.csv.zst",
            "no whole gzip or Zstandard file",
        ),
        (
            2 * zstandard.compress(PLAIN.encode()) + zstandard.compress(ROWS.encode())[:-1],
            "a.csv.zst",
            "no whole gzip or Zstandard file",
        ),
        (b"", "a.csv", "The CSV is empty; its first line names the columns."),
        (b"\x80\x04\x95\x00\x00", "a.csv", "a pickle, which is never read"),
        (b"SQLite format 3\0", "a.csv", "an SQLite database. Save the predictions"),
        (PLAIN.encode("utf-16-le"), "a.csv", "The body is not text, so it is no CSV."),
        (b'y_true,y_pred\na,a\n"b,b\nc,c\n', "a.csv", "Line 3 of the CSV is not valid"),
        (b"y_true,y_pred,y_pred\na,a,a\n", "a.csv", "Two columns have the name `y_pred`"),
        (b"label\na\n", "a.csv", "first column: ,cat,dog and cat,5,1"),
        (zipped({"xl/workbook.xml": b""}), "book.xlsx", "save a spreadsheet as CSV"),
        (zipped({"a.csv": PLAIN.encode()}), "a.zip", "Unpack a ZIP file"),
        (arrays(y_true=[[1, 2]], y_pred=[[1, 2]]), "a.npz", "one dimension; it has shape (1, 2)"),
        (b"[1]", "a.json", "The body must be an object; this is an array."),
        (b"truth,guess\na,b\n", "a.csv", "--columns y_true=label,y_pred=prediction"),
        (b"truth,guess\na,b\n", "a.csv", "the body has `truth`, `guess`"),
        (b"1,2\n3,4\n", "a.csv", "or two items without a header"),
        (b"1,2\n3,4\n5,6\n", "a.csv", "the body has `1`, `2`"),
        (b"y_true y_pred\na b\n", "a.csv", "the body has `y_true y_pred`"),
        (b'[["a", "b"]]', "a.json", '{"confusion_matrix": [[5, 1], [2, 7]]}'),
        (b"y_true,y_pred\n", "a.csv", "There are no items"),
        (b"y_true,y_pred\nNaN,1\n", "a.csv", "/y_true/0: The item has no label"),
        (b"y_true,y_pred\na\n", "a.csv", "Line 2 of the CSV has 1 field, the header 2"),
        (b"y_true,y_pred,sample_weight\n1,1,-1\n", "a.csv", "/sample_weight/0"),
        (b"y_true,y_pred,sample_weights\n1,1,1\n", "a.csv", "Did you mean `sample_weight`?"),
        (b'{"y_true": [1], "y_pred": [NaN]}', "a.json", "JSON has no NaN and no Infinity"),
        (b'{"confusion_matrix": [[-Infinity]]}', "a.json", "JSON has no NaN and no Infinity"),
        (b'{"confusion_matrix": [[1]],}', "a.json", "not valid JSON: see line 1, column 2"),
        (b"", "a.json", "The body is empty. A table, for example"),
        (b"{}", "a.json", "Give exactly one kind of evidence: `confusion_matrix`; or"),
        (b'{"confusionMatrix": [[1]]}', "a.json", "Did you mean `confusion_matrix`?"),
        (
            b'{"confusion_matrix": [[1, 2]]}',
            "a.json",
            "is 1 x 2, rows x columns; it must be square",
        ),
        (b'{"confusion_matrix": [["1"]]}', "a.json", "A count is a number, not a string."),
        (b'{"confusion_matrix": [[1]], "confidence": 95}', "a.json", "must be at most 0.9999"),
        (
            b'{"confusion_matrix": [[1]], "labels": ["a", "b"]}',
            "a.json",
            "has length 2; 1 is needed",
        ),
        (b'{"confusion_matrix": [[1]], "indices": ["macro f1"]}', "a.json", "mean `macro_f1`?"),
        (b'{"confusion_matrix": [[1]], "indices": ["hinge"]}', "a.json", "mean `hinge_loss`?"),
        (b'{"confusion_matrix": [[1]], "y_true": [1]}', "a.json", "exactly one kind of evidence"),
        (b'{"y_pred": [1]}', "a.json", "`y_true` is missing"),
        (b'{"y_true": [1, 2], "y_pred": [1]}', "a.json", "`y_true` has 2 items and `y_pred` 1"),
        (b'{"y_true": [1], "y_pred": ["1"]}', "a.json", "Every label is an integer here"),
        (b'{"y_true": [true], "y_pred": [1]}', "a.json", "Every label is a boolean here"),
        (b'{"y_true": ["a"], "y_proba": [[1]]}', "a.json", "Did you mean `y_score`?"),
        (b'{"y_true": ["a"], "y_pred": ["a"], "index": []}', "a.json", "Did you mean `indices`?"),
        (b'{"y_true": ["a"], "y_pred": ["b"], "labels": ["a"]}', "a.json", "first of 1 such items"),
        (b'{"y_true": ["a"], "y_pred": ["b"], "labels": ["a"]}', "a.json", '"unknown_labels"'),
        (
            b'{"y_true": ["a"], "y_pred": ["b"], "unknown_labels": "unclassified"}',
            "a.json",
            "/labels",
        ),
    ],
)
def test_a_mistake_has_a_message(tmp_path: Path, content: bytes, name: str, said: str) -> None:
    done = run(content, name=name, folder=tmp_path)
    assert (done.exit_code, done.stdout) == (2, "")
    text = " ".join(done.stderr.split())
    assert said in text, text


def test_equal_mistakes_are_counted_and_the_first_has_file_and_line(tmp_path: Path) -> None:
    new, old = tmp_path / "new.csv", tmp_path / "old.csv"
    new.write_text("y_true,y_pred\n" + "a,b\n" * 50 + "b,b\n" * 50)
    old.write_text("y_true,y_pred\n" + "b,b\n" * 3 + ",a\n" * 25 + "a,b\n" * 72)
    for files, place in (
        ((str(old),), f"  {old}:5: /y_true/3: "),
        ((str(new), "--baseline", str(old)), f"  {old}:5: /baseline/y_true/3: "),
        ((str(old), "--baseline", str(new)), f"  {old}:5: /y_true/3: "),
    ):
        done = CliRunner().invoke(app, ["evaluate", *files])
        heading, *lines = done.stderr.splitlines()
        assert (done.exit_code, len(lines)) == (2, 1)
        assert heading.endswith("1 error in the request.")
        assert lines[0].startswith(f"{place}The item has no label.")
        assert lines[0].endswith("This is the first of 25 such places.")


def test_a_baseline_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("y_true,y_pred\na\n")
    done = run(PLAIN.encode(), "--baseline", str(tmp_path / "old.csv"), folder=tmp_path)
    assert "In the baseline: Line 2 of the CSV has 1 field, the header 2." in done.stderr


def test_texts_of_models_are_mapped_and_counted() -> None:
    evaluation = rprime.evaluate(
        ["cat", "Dog", "dog", "dog"],
        ["Cat.", "dog", "I see a dog", "\x1b[31m"],
        labels=["cat", "dog"],
        aliases={"Cat. ": "cat", "Dog": "dog"},
        unknown_labels="unclassified",
    )
    assert (evaluation.counts.items, evaluation.counts.unclassified) == (4, 2)
    assert evaluation.overall["accuracy"].value == 0.5
    details = {warning.code: warning.detail for warning in evaluation.warnings}
    assert details["aliased_labels"] == (
        "2 labels were read by `aliases`: `Dog` as `dog` 1, `Cat.` as `cat` 1."
    )
    assert details["unknown_labels"].endswith("unclassified: `I see a dog` 1, others 1.")


def test_aliases_merge_classes_that_are_not_declared() -> None:
    evaluation = rprime.evaluate([7, 8, 9], [7, 9, 10], aliases={"10": "9", "7": "11"})
    assert evaluation.labels == ["8", "9", "11"]
    assert evaluation.overall["accuracy"].value == pytest.approx(2 / 3)


def test_a_baseline_has_the_aliases_of_its_candidate() -> None:
    evaluation = rprime.evaluate(
        ["cat", "dog"], ["cat", "dog"], baseline={"y_pred": ["Cat", "dog"]}, aliases={"Cat": "cat"}
    )
    assert evaluation.comparison is not None
    assert evaluation.comparison.overall["accuracy"].value == 0
    assert [warning.code for warning in evaluation.warnings].count("aliased_labels") == 1


TRUTH = ["cat", "dog"] * 20
MISSPELT = ["Cat." if i % 4 == 0 else label for i, label in enumerate(TRUTH)]
LOSES = ["dog" if i % 5 == 0 else label for i, label in enumerate(TRUTH)]


def test_labels_of_a_baseline_with_its_own_truth_are_read_alike(
    client: httpx.Client, tmp_path: Path
) -> None:
    truth = TRUTH
    other: Any = {"y_true": TRUTH, "y_pred": MISSPELT}
    alike = rprime.evaluate(truth, LOSES, baseline={"y_pred": truth}).comparison
    mapped = rprime.evaluate(truth, LOSES, baseline=other, aliases={"Cat.": "cat"}).comparison
    assert alike is not None
    assert mapped is not None
    assert mapped.overall["accuracy"] == alike.overall["accuracy"]
    with pytest.raises(rprime.ProblemError, match="first of 10 such items"):
        rprime.evaluate(truth, LOSES, baseline=other, labels=["cat", "dog"])
    labelled: Any = {**other, "labels": ["cat", "dog", "Cat."]}
    kept = rprime.evaluate(truth, LOSES, baseline=labelled, labels=["cat", "dog"]).comparison
    assert kept is not None
    assert kept.overall["accuracy"].baseline == 0.75
    old, request = tmp_path / "old.csv", tmp_path / "asked.json"
    pd.DataFrame(other).to_csv(old, index=False)
    request.write_text('{"labels": ["cat", "dog"], "aliases": {"Cat.": "cat"}}')
    new = pd.DataFrame({"y_true": truth, "y_pred": LOSES}).to_csv(index=False).encode()
    options = ("--baseline", str(old), "--request", str(request))
    for where in ((), ("--server", str(client.base_url))):
        done = run(new, *options, *where, folder=tmp_path)
        accuracy = json.loads(done.stdout)["comparison"]["overall"]["accuracy"]
        assert accuracy["value"] == alike.overall["accuracy"].value, where


FRAMES = {
    "strings": pd.DataFrame({"y_true": ["a", "b", "c"] * 9, "y_pred": ["a", "c", None] * 9}),
    "integers": pd.DataFrame({"y_true": [1, 2, 10] * 9, "y_pred": [1, 10, np.nan] * 9}),
    "booleans": pd.DataFrame({"y_true": [True, False] * 9, "y_pred": [True, True] * 9}),
    "joiners": pd.DataFrame(
        {"y_true": ["é", "می\u200cخواهم"] * 9, "y_pred": ["é", "👩\u200d👧"] * 9}
    ),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_one_frame_has_one_digest_by_every_path(
    frame: pd.DataFrame, client: httpx.Client, tmp_path: Path
) -> None:
    def file(name: str) -> object:
        done = run((tmp_path / name).read_bytes(), name=name, folder=tmp_path)
        return json.loads(done.stdout)["input_digest"]

    table = pa.table({"y_true": frame["y_true"], "y_pred": frame["y_pred"]})
    arrow = BytesIO()
    with pa.ipc.new_stream(arrow, table.schema) as stream:
        stream.write_table(table)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv.gz", index=False, sep="\t")
    frame.to_parquet(tmp_path / "a.parquet")
    lists = {name: [None if pd.isna(x) else x for x in frame[name].tolist()] for name in frame}
    (tmp_path / "a.json").write_bytes(orjson.dumps(lists))
    digests = {
        "lists": rprime.evaluate(lists["y_true"], lists["y_pred"]).input_digest,
        "pandas": rprime.evaluate(frame.y_true, frame.y_pred).input_digest,
        "service": send(client, "arrow", arrow.getvalue()).json()["input_digest"],
        **{name: file(name) for name in ("a.csv", "a.tsv.gz", "a.parquet", "a.json")},
    }
    if not frame.y_pred.isna().any() or frame.y_pred.dtype == np.float64:
        arrays = {name: frame[name].to_numpy() for name in frame}
        kinds = {n: a.astype(str) if a.dtype == object else a for n, a in arrays.items()}
        np.savez(tmp_path / "a.npz", **kinds)
        digests["a.npz"] = file("a.npz")
    assert len(set(digests.values())) == 1, digests


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a.csv", "b.csv"), "--baseline FILE"),
        (("a.csv", "--request", "gates.yaml"), "gates.yaml holds the rules of a gate: name it by"),
        (("a.csv", "--columns", "y_true=lable,y_pred"), "the body has `y_true`, `y_pred`"),
        (("a.csv", "--server", "localhost:8000"), "http://localhost:8000"),
        (("a.csv", "--gates", "anchor.yaml"), "name the project by --project"),
        (("a.csv", "--baseline", "champion"), "alias=champion"),
        (("a.csv", "--project", "digits"), "--project and --keep-items need --server"),
        (("https://rprime.example/a.csv",), "download it, or name an --engine"),
    ],
)
def test_a_mistake_of_usage_has_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    rule = "rules: [{index: accuracy, max_drop: 0.1}]\n"
    for name, text in {
        "a.csv": PLAIN,
        "gates.yaml": rule,
        "anchor.yaml": f"{rule}anchor: {{alias: release}}\n",
    }.items():
        Path(name).write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["evaluate", *arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_help_has_a_short_name() -> None:
    for command in ((), ("evaluate",), ("history", "trend")):
        short, long = (CliRunner().invoke(app, [*command, name]) for name in ("-h", "--help"))
        assert (short.exit_code, short.stdout) == (0, long.stdout)


def watched(*arguments: object, **variables: str) -> tuple[bytes, bytes]:
    """Run the command with a terminal as standard error, then without; return what both show.

    What it prints is the same.
    """
    terminal, stderr = pty.openpty()
    shown = bytearray()

    def read() -> None:
        with suppress(OSError), os.fdopen(terminal, "rb", 0) as screen:  # the other end is closed
            while part := screen.read(10_000):
                shown.extend(part)

    reader = Thread(target=read)
    reader.start()
    env = environment(**variables)
    command = [str(program(env)), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, env=env, check=True)
    os.close(stderr)
    reader.join()
    quiet = subprocess.run(command, capture_output=True, env=env, check=True)
    assert quiet.stdout == done.stdout
    return bytes(shown), quiet.stderr


def test_a_terminal_shows_that_an_engine_counts(tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_bytes(PLAIN.encode())
    shown, quiet = watched("evaluate", file, "--engine", "duckdb", "--json")
    assert b"Counting by duckdb" in shown
    assert re.search(rb"Counting .*100%", shown)
    assert quiet == b""


def test_a_terminal_shows_the_bootstrap(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(
        '{"confusion_matrix": [[50, 5], [3, 40]], "intervals": "all", "families": ["all"]}'
    )
    shown, quiet = watched("evaluate", file, "--json")
    assert re.search(rb"Bootstrap .*100%", shown)
    assert quiet == b""


def test_a_terminal_shows_what_is_sent_and_exported(tmp_path: Path, serve_app: ServeApp) -> None:
    file = tmp_path / "a.npz"
    draw = np.random.default_rng(0)
    true, predicted = draw.integers(0, 50, (2, 100_000))
    np.savez(file, y_true=true, y_pred=predicted)
    with keeping(serve_app, tmp_path) as client:
        server = ("--server", client.base_url)
        shown, quiet = watched("evaluate", file, "--json", *server)
        keep(client, {"confusion_matrix": [[5, 1], [1, 5]], "project": "p"})
    assert re.search(rb"Sending .*100%", shown)
    assert b"Asking http" in shown
    assert b"Sending" not in quiet
    output = tmp_path / "lines"
    store = f"sqlite:///{tmp_path}/rprime.db"
    terminal, stderr = pty.openpty()
    env = environment(RPRIME_STORE=store)
    subprocess.run([program(env), "export", "--output", output], stderr=stderr, env=env, check=True)
    assert re.search(rb"Lines .* [1-9]", os.read(terminal, 10_000))
    os.close(stderr)
    os.close(terminal)


SMALL = {"RPRIME_LIMITS_OTHER_BODY_BYTES": "1MiB", "RPRIME_LIMITS_JSON_BODY_BYTES": "1MiB"}
ENDLESS = {
    "rows": "yes cat,cat",
    "zeros": "cat /dev/zero",
    "noise": "cat /dev/urandom",
    "JSON": "yes '{'",
    "a bomb of gzip": "(cat /dev/zero | head -c 200000000 | gzip)",
    "a bomb of Zstandard": f"{sys.executable} -c 'import sys, zstandard;"
    "sys.stdout.buffer.write(zstandard.compress(bytes(200_000_000)))'",
}
READERS = ("evaluate {}", "evaluate items.csv --baseline {}", "compare {} items.csv")
DOCUMENTS = (
    *(
        "evaluate items.csv --gates {}",
        "evaluate items.csv --request {}",
        "lint items.csv --gates {}",
    ),
    *("study agreement {}", "import {} --store sqlite:///new.db"),
)


@pytest.mark.parametrize(
    ("produced", "command", "where"),
    [
        *((kind, "evaluate {}", "-") for kind in ENDLESS),
        *((kind, "evaluate {}", "/dev/stdin") for kind in ENDLESS),
        *(("zeros", command, "/dev/zero") for command in (*READERS, *DOCUMENTS)),
        *(("rows", command, "-") for command in ("evaluate items.csv --baseline {}",)),
        *(("zeros", command, "-") for command in DOCUMENTS[-2:]),
        *((kind, "evaluate {}", "kept.packed") for kind in ENDLESS if "bomb" in kind),
    ],
)
def test_what_has_no_end_is_read_up_to_the_limit(
    tmp_path: Path, produced: str, command: str, where: str
) -> None:
    (tmp_path / "items.csv").write_text(PLAIN)
    made = f"{ENDLESS[produced]} 2>/dev/null"
    into = f"> {where};" if where == "kept.packed" else "|"
    done = shell(f"({made}) {into} rprime {command.format(where)}", tmp_path, **SMALL)
    assert done.returncode == 2, done.stderr
    assert re.search("has more than [0-9]{7,8} bytes", done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def shell(line: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    env = environment(**variables)
    env["PATH"] = f"{program(env).parent}{os.pathsep}{env['PATH']}"
    command = ["sh", "-c", line]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_pipe_by_its_path_is_read(tmp_path: Path) -> None:
    """As of the shell's `<(command)`."""
    done = shell(f"printf '{PLAIN}' | rprime evaluate /dev/stdin", tmp_path)
    assert (done.returncode, "accuracy" in done.stdout.lower()) == (0, True), done.stderr


def test_a_file_that_is_larger_than_a_body_is_read(tmp_path: Path) -> None:
    rows = b"y_true,y_pred\n" + b"cat,cat\ncat,dog\n" * 100_000
    (tmp_path / "items.csv").write_bytes(rows)
    (tmp_path / "items.csv.gz").write_bytes(gzip.compress(rows[: len(rows) // 2 + 7]))
    for file in ("items.csv", "items.csv.gz"):
        done = shell(f"rprime evaluate {file}", tmp_path, **SMALL)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", [*READERS, *DOCUMENTS])
def test_a_folder_is_no_file(tmp_path: Path, command: str) -> None:
    (tmp_path / "items.csv").write_text(PLAIN)
    (tmp_path / "folder").mkdir()
    done = shell(f"rprime {command.format('folder')}", tmp_path)
    assert done.returncode == 2
    assert "s a directory" in done.stderr
