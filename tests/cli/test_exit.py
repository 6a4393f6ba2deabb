"""Every exit code, with a real service, a stopped one and a slow one."""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

import rprime as library
from rprime.cli import app
from tests.cli.test_help import EVERY
from tests.command import Run
from tests.failing_service import BUSY, Step, flaky, stopped
from tests.forked_command import program
from tests.services import RPRIME, Serve, environment
from tests.waiting import wait_until

TRUE = ["cat"] * 60 + ["dog"] * 60
GOOD = ["cat"] * 57 + ["dog"] * 3 + ["dog"] * 58 + ["cat"] * 2
BAD = ["cat"] * 35 + ["dog"] * 25 + ["dog"] * 58 + ["cat"] * 2
REQUEST = {"y_true": TRUE, "y_pred": GOOD}


def rule(**limit: float | str) -> str:
    return json.dumps({"rules": [{"index": "accuracy", **limit}]})


GATES = {
    "pass": rule(min_value=0.5),
    "fail": rule(min_value=0.9999),
    "inconclusive": rule(min_value=0.95),
    "no_rules": '{"rules": []}',
    "undecided": json.dumps(
        {
            "rules": [
                {"index": "accuracy", "min_value": 0.5},
                {"id": "wish", "index": "accuracy", "min_value": 0.95, "severity": "warn"},
            ]
        }
    ),
    "relative": rule(max_drop=0.1),
}


@pytest.mark.parametrize(
    ("command", "option", "said"),
    [
        ("evaluate", "--output", "writes files by --json-file"),
        ("compare", "--index", "`indices` in the file of --request"),
        ("lint", "--baseline", "a column `y_pred_baseline`"),
        ("evaluate", "--jsn", "Possible options: --json"),
    ],
)
def test_an_unknown_option_is_told_what_has_its_place(
    rprime: Run, command: str, option: str, said: str
) -> None:
    done = rprime(command, "file.csv", option, "x")
    assert done.returncode == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "request.json"
    path.write_text(json.dumps(REQUEST), encoding="utf-8")
    return str(path)


@pytest.fixture
def gate(tmp_path: Path) -> Callable[[str], str]:
    def written(verdict: str) -> str:
        path = tmp_path / "gates.json"
        path.write_text(GATES[verdict], encoding="utf-8")
        return str(path)

    return written


@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize(
    ("verdict", "strict", "status", "said"),
    [
        ("pass", False, 0, ""),
        ("pass", True, 0, ""),
        ("fail", False, 1, "GATE FAILED"),
        ("fail", True, 1, "GATE FAILED"),
        ("inconclusive", False, 0, "INCONCLUSIVE"),
        ("inconclusive", True, 3, "INCONCLUSIVE"),
        ("no_rules", False, 0, "NO RULES"),
        ("no_rules", True, 3, "NO RULES"),
    ],
)
def test_the_verdict_is_the_status(  # noqa: PLR0917 (what pytest hands in)
    rprime: Run,
    file: str,
    gate: Callable[[str], str],
    server: str,
    where: str,
    verdict: str,
    said: str,
    *,
    strict: bool,
    status: int,
) -> None:
    options = ["--strict"] * strict + ["--server", server] * (where == "there")
    done = rprime("evaluate", file, "--gates", gate(verdict), "--json", *options)
    assert json.loads(done.stdout)["gate"]["verdict"] == verdict
    assert done.returncode == status
    assert said in done.stderr
    assert bool(done.stderr) is bool(said)


@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize(("strict", "status"), [(False, 0), (True, 3)])
def test_a_pass_with_an_undecided_result_says_so_and_is_no_pass_under_strict(
    rprime: Run,
    file: str,
    gate: Callable[[str], str],
    server: str,
    where: str,
    *,
    strict: bool,
    status: int,
) -> None:
    options = ["--strict"] * strict + ["--server", server] * (where == "there")
    done = rprime("evaluate", file, "--gates", gate("undecided"), *options)
    assert done.stdout.startswith("✓ Gate passed, 1 result undecided")
    assert "PASSED, with 1 result undecided." in done.stderr
    assert ("It ends with 0 without --strict" in done.stderr) is not strict
    assert done.returncode == status


@pytest.mark.parametrize("where", ["here", "there"])
def test_rules_that_compare_need_a_baseline(
    rprime: Run, file: str, gate: Callable[[str], str], server: str, where: str
) -> None:
    arguments = (
        "evaluate",
        file,
        "--gates",
        gate("relative"),
        *["--server", server] * (where == "there"),
    )
    done = rprime(*arguments)
    assert done.returncode == 2
    assert "the rule accuracy.max_drop compares with a baseline, and there is none" in done.stderr
    assert not done.stdout
    assert rprime(*arguments, "--baseline", file).returncode == 0


@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize("strict", [False, True])
def test_a_gate_that_could_not_be_judged_ends_with_5(
    rprime: Run, file: str, server: str, tmp_path: Path, where: str, *, strict: bool
) -> None:
    content = json.loads(Path(file).read_text(encoding="utf-8"))
    content["baseline"] = {"y_true": TRUE[1:], "y_pred": GOOD[1:]}
    content["gates"] = {"rules": [{"index": "recall", "classes": "all", "max_drop": 0.1}]}
    Path(file).write_text(json.dumps(content), encoding="utf-8")
    options = ["--strict"] * strict + ["--server", server] * (where == "there")
    done = rprime("evaluate", file, "--junit", str(tmp_path / "junit.xml"), *options)
    assert done.returncode == 5
    assert "GATE FAILED, because it could not be judged" in done.stderr
    assert "✗ Gate failed, but could not be judged" in done.stdout
    junit = (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert ('failures="0"' in junit, 'errors="1"' in junit) == (True, True)


def test_without_a_baseline_only_the_first_evaluation_ends_with_0(
    rprime: Run, serve: Serve, tmp_path: Path, gate: Callable[[str], str]
) -> None:
    with serve() as client:
        there = ("--project", "pets", "--server", str(client.base_url), "--gates", gate("relative"))

        def run(version: str, model: str, alias: str, *more: str) -> tuple[int, str]:
            path = tmp_path / "request.json"
            path.write_text(json.dumps(REQUEST | {"version": version, "model": model}), "utf-8")
            done = rprime("evaluate", str(path), *there, "--baseline", f"alias={alias}", *more)
            return done.returncode, done.stderr

        status, said = run("1", "svc", "champion", "--strict")
        assert (status, "FIRST, not judged" in said) == (0, True)
        status, said = run("2", "svc", "champion")
        assert (status, "NOT JUDGED" in said) == (5, True)
        command = re.search(r"`rprime (promote \S+ champion --project pets --if-absent)`", said)
        assert command is not None
        assert run("3", "svc", "champion", "--first")[0] == 0
        assert run("1", "knn", "other")[0] == 0
        promoted = rprime(*command[1].split(), "--server", str(client.base_url))
        assert promoted.returncode == 0, promoted.stderr
        assert run("4", "svc", "champion")[0] == 0
        status, said = run("5", "svc", "champoin")
        assert (status, "`champion`" in said) == (2, True)


@pytest.mark.parametrize(
    ("verdict", "strict", "status"), [("pass", True, 0), ("fail", False, 1), ("no_rules", True, 3)]
)
def test_a_process_ends_with_the_status(
    rprime_process: Run,
    file: str,
    gate: Callable[[str], str],
    verdict: str,
    *,
    strict: bool,
    status: int,
) -> None:
    options = ["--strict"] * strict
    done = rprime_process("evaluate", file, "--gates", gate(verdict), "--json", *options)
    assert json.loads(done.stdout)["gate"]["verdict"] == verdict
    assert done.returncode == status


@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize("strict", [False, True])
def test_without_a_gate_nothing_is_decided(
    rprime: Run, file: str, server: str, where: str, *, strict: bool
) -> None:
    options = ["--strict"] * strict + ["--server", server] * (where == "there")
    done = rprime("evaluate", file, *options)
    assert (done.returncode, "NO GATE" in done.stderr) == (3 if strict else 0, strict)


@pytest.mark.parametrize(
    "options",
    [
        ["--nonsense"],
        ["--server", "rprime.example"],
        ["--server", "http://127.0.0.1:1", "--key", "a b"],
        ["--timeout", "soon"],
        ["--gates", "/nowhere/gates.yaml"],
        ["--project", "digits"],
    ],
)
def test_usage_ends_with_2(rprime: Run, file: str, options: list[str]) -> None:
    done = rprime("evaluate", file, *options)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_refusal_of_the_service_ends_with_2_and_says_where(rprime: Run, file: str) -> None:
    refusal = {
        "title": "The request is not valid",
        "status": 422,
        "detail": "1 error in the request.",
        "code": "invalid_request",
        "errors": [{"pointer": "/y_true/3", "code": "c", "detail": "Newer rules."}],
    }
    problem = {"Content-Type": "application/problem+json"}
    with flaky(Step(422, json.dumps(refusal).encode(), problem)) as server:
        done = rprime("evaluate", file, "--server", server.url)
    assert (done.returncode, done.stdout) == (2, "")
    assert "/y_true/3: Newer rules." in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["indices", "--json"],
        ["history", "--project", "p", "--store", "sqlite:///x.db"],
        [
            "promote",
            "01k9d3hv5gw2zj4t8x6c7m1n0p",
            "main",
            "--project",
            "p",
            "--store",
            "sqlite:///x.db",
        ],
        ["export", "--store", "sqlite:///x.db"],
    ],
)
def test_a_defect_of_any_command_is_neither_a_verdict_nor_an_outage(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("rprime.store.open_store", broken)
    monkeypatch.setattr("rprime.schemas.report.catalog", broken)
    # The command configures the log for its process, which is that of other tests, too.
    monkeypatch.setattr("rprime.server.logs.configure", lambda: None)
    monkeypatch.setattr("structlog.configure", lambda **_: None)
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 70, done.output
    assert "ZeroDivisionError" in done.stderr
    assert "says nothing about the model" in done.stderr


@pytest.mark.parametrize("command", [["--no-such"], ["history", "no-such"], ["lint"]])
def test_a_mistake_in_the_command_line_is_no_defect(command: list[str]) -> None:
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert "defect" not in done.stderr


class TestOutages:
    """None of them reads as a bad model, and none as a good one unless that was asked for."""

    def test_a_stopped_service_ends_with_4(self, rprime_process: Run, file: str) -> None:
        url = stopped()
        done = rprime_process("evaluate", file, "--server", url, "--retries", "1")
        assert (done.returncode, done.stdout) == (4, "")
        message = f"NO VERDICT, the service gave no answer. {url}/v1/evaluate: Connection refused"
        assert message in done.stderr
        assert "after 2 attempts" in done.stderr

    def test_a_slow_service_ends_with_4(self, rprime: Run, file: str) -> None:
        with flaky(Step(after=40)) as server:
            start = time.monotonic()
            done = rprime("evaluate", file, "--server", server.url, "--timeout", "0.5")
            assert time.monotonic() - start < 20
            assert len(server.seen) == 1
        assert (done.returncode, done.stdout) == (4, "")
        assert "no answer in time" in done.stderr

    @pytest.mark.parametrize("command", ["evaluate", "compare", "lint"])
    def test_every_command_tells_an_outage_from_a_verdict(
        self, rprime: Run, file: str, gate: Callable[[str], str], command: str
    ) -> None:
        files = [file, file] if command == "compare" else [file]
        arguments = [command, *files, "--gates", gate("fail"), "--timeout", "0.3", "--retries", "0"]
        with flaky(Step(after=40)) as slow:
            for url, message in ((stopped(), "refused"), (slow.url, "no answer in time")):
                done = rprime(*arguments, "--server", url)
                assert (done.returncode, done.stdout) == (4, "")
                assert message in done.stderr

    def test_a_service_that_fails_ends_with_4(self, rprime: Run, file: str) -> None:
        body = b'{"title":"The service failed","status":500,"detail":"d","code":"internal_error"}'
        failure = Step(500, body, {"Content-Type": "application/problem+json"})
        with flaky(failure) as server:
            done = rprime("evaluate", file, "--server", server.url)
        assert (done.returncode, done.stdout) == (4, "")
        assert "internal_error" in done.stderr

    def test_another_server_at_the_address_ends_with_4(self, rprime: Run, file: str) -> None:
        with flaky(Step(body=b"<html>", headers={"Content-Type": "text/html"})) as server:
            done = rprime("evaluate", file, "--server", server.url)
        assert (done.returncode, done.stdout) == (4, "")

    @pytest.mark.parametrize("command", ["evaluate", "compare", "lint"])
    def test_a_busy_service_can_be_a_warning(
        self, rprime: Run, file: str, gate: Callable[[str], str], command: str
    ) -> None:
        files = [file, file] if command == "compare" else [file]
        with flaky(BUSY) as server:
            options = ["--server", server.url, "--retries", "0", "--gates", gate("pass")]
            assert rprime(command, *files, *options).returncode == 4
            done = rprime(command, *files, *options, "--on-service-error", "warn")
        assert (done.returncode, done.stdout) == (0, "")
        assert "NO VERDICT" in done.stderr
        assert "503" in done.stderr

    def test_a_warning_never_covers_a_refusal_or_a_failed_gate(
        self, rprime: Run, file: str, gate: Callable[[str], str], server: str
    ) -> None:
        warn = ("--on-service-error", "warn", "--server", server)
        assert rprime("evaluate", file, "--gates", gate("fail"), *warn).returncode == 1
        missing = file.replace("request", "missing")
        assert rprime("evaluate", missing, *warn).returncode == 2

    def test_a_service_that_comes_back_is_waited_for(self, rprime: Run, file: str) -> None:
        report = library.evaluate(TRUE, GOOD).content
        with flaky(BUSY, Step(body=report)) as server:
            done = rprime("evaluate", file, "--json", "--server", server.url)
            assert len(server.seen) == 2
            assert len(set(server.keys)) == 1
        assert (done.returncode, done.stdout.encode()) == (0, report + b"\n")


@pytest.fixture
def unread() -> Iterator[int]:
    """Return the end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.mark.parametrize(
    ("verdict", "status"), [("pass", 0), ("fail", 1), ("inconclusive", 3), (None, 2)]
)
def test_the_status_is_the_same_where_nobody_reads(
    file: str, gate: Callable[[str], str], unread: int, verdict: str | None, status: int
) -> None:
    command = [str(program(os.environ)), "evaluate", file, "--strict"]
    command += ["--gates", gate(verdict)] if verdict else ["--baseline", "nothing"]
    done = subprocess.run(command, stdout=unread, stderr=unread, check=False)
    assert done.returncode == status


def test_wrong_usage_keeps_its_status_where_nobody_reads(unread: int) -> None:
    command = [str(program(os.environ)), "evaluate", "--nonsense"]
    assert subprocess.run(command, stderr=unread, check=False).returncode == 2


HELPS = [[*name.split(), "--help"] for name in ("", "history", "keys", "study", *EVERY)]
PRINTS = [["--version"], ["indices"], ["indices", "--json"], ["openapi"], ["gates-schema"], []]


@pytest.mark.parametrize("arguments", [*HELPS, *PRINTS], ids=" ".join)
def test_a_reader_who_leaves_ends_a_command_quietly(arguments: list[str], unread: int) -> None:
    """By the status that a shell gives to a program that SIGPIPE ended, never that of a gate."""
    command = [str(program(os.environ)), *arguments]
    done = subprocess.run(command, stdout=unread, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (141, b"")


def test_the_announcement_of_a_service_may_be_unread(unread: int, tmp_path: Path) -> None:
    command = [str(program(os.environ)), "serve", "--port", "0"]
    env = environment(RPRIME_STORE="none")
    done = subprocess.run(command, cwd=tmp_path, env=env, stdout=unread, check=False, timeout=60)
    assert done.returncode == 141


@pytest.mark.parametrize("arguments", [*PRINTS, ["evaluate", "FILE"]], ids=" ".join)
def test_an_output_on_a_full_disk_is_said(arguments: list[str], file: str) -> None:
    arguments = [file if argument == "FILE" else argument for argument in arguments]
    with Path("/dev/full").open("wb") as full:
        command = [str(program(os.environ)), *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    said = "rprime: cannot write the output: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["evaluate", "FILE"], 0), (["evaluate", "missing.csv"], 2), (["indices"], 0)],
    ids=["report", "refusal", "list"],
)
def test_streams_may_be_closed(
    arguments: list[str], status: int, closed: str, file: str, tmp_path: Path
) -> None:
    arguments = [file if argument == "FILE" else argument for argument in arguments]
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", str(RPRIME), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert "Traceback" not in done.stderr


def test_a_service_may_have_no_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the store that took the place of a closed stream would get what is printed."""
    monkeypatch.chdir(tmp_path)
    command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", str(RPRIME), "serve"]
    env = environment(RPRIME_STORE="sqlite:///rprime.db", RPRIME_UDS="socket")
    with (
        subprocess.Popen(command, env=env) as server,
        httpx.Client(transport=httpx.HTTPTransport(uds="socket")) as client,
    ):
        try:
            wait_until(Path("socket").exists)
            streams = {Path(f"/proc/{server.pid}/fd/{number}").readlink() for number in range(3)}
            assert streams == {Path(os.devnull)}
            content = {"confusion_matrix": [[5, 1], [2, 7]], "project": "shop", "model": "m"}
            answer = client.post("http://localhost/evaluate", json=content, timeout=60)
            assert answer.status_code == 201, answer.text
        finally:
            server.terminate()
    assert server.returncode == 0
