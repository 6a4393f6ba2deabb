"""The commands of the history: on a store that is in use, and on one that is not."""

import json
from pathlib import Path

import pytest

from rprime.auth import keys
from tests.command import Run
from tests.failing_service import BUSY, Step, flaky, stopped
from tests.history_service import ServeApp, keep, keeping, matrix


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/rprime.db"


def test_a_history_is_listed_beside_its_service_and_by_it(
    rprime: Run, serve_app: ServeApp, url: str, tmp_path: Path
) -> None:
    with keeping(serve_app, tmp_path) as client:
        old = keep(client, matrix(1, version="1", model="a"))["id"]
        new = keep(client, matrix(2, version="2", branch="main"))["id"]
        for more in ((), ("--server", str(client.base_url))):
            listed = rprime("history", "--project", "pets", *more, RPRIME_STORE=url)
            assert listed.returncode == 0, listed.stderr
            lines = listed.stdout.splitlines()
            assert lines[0].split()[0] == "CREATED"
            assert [line.split()[-1] for line in lines[1:]] == [new, old]
            narrowed = rprime(
                "history", "--project", "pets", "--json", "--model", "a", *more, RPRIME_STORE=url
            )
            assert [json.loads(line)["id"] for line in narrowed.stdout.splitlines()] == [old]


def test_a_job_promotes_by_the_service(
    rprime: Run, serve_app: ServeApp, url: str, tmp_path: Path
) -> None:
    path = tmp_path / "keys.json"
    _, token = keys.create(path, ["evaluate", "write"], project="pets")
    with keeping(serve_app, tmp_path, keys_file=path) as client:
        client.headers["Authorization"] = f"Bearer {token}"
        ids = [keep(client, matrix(errors))["id"] for errors in (1, 2)]
        there = {"RPRIME_SERVER": str(client.base_url), "RPRIME_KEY": token}
        for identifier in ids:
            done = rprime("promote", identifier, "champion", "--project", "pets", **there)
            assert done.returncode == 0, done.stderr
            alias = client.get("/v1/projects/pets/aliases/champion").json()
            assert alias["evaluation"] == identifier
        wrong = rprime("promote", "nothing", "champion", "--project", "pets", **there)
        assert (wrong.returncode, "no such evaluation" in wrong.stderr) == (2, True)
        held = rprime("promote", ids[0], "champion", "--project", "pets", RPRIME_STORE=url)
        assert (held.returncode, f"uses {tmp_path}/rprime.db" in held.stderr) == (2, True)
    away = rprime("promote", ids[0], "champion", "--project", "pets", "--retries", "0", **there)
    assert away.returncode == 4


def test_a_history_is_saved_and_brought_back(
    rprime: Run, serve_app: ServeApp, url: str, tmp_path: Path
) -> None:
    with keeping(serve_app, tmp_path) as client:
        report = keep(client, matrix(1, version="1"))
        saved = rprime("export", "--output", str(tmp_path / "all.ndjson"), RPRIME_STORE=url)
        assert saved.returncode == 0, saved.stderr
        printed = rprime("export", RPRIME_STORE=url).stdout.splitlines()
        assert [next(iter(json.loads(line))) for line in printed][:2] == [
            "rprime_export",
            "evaluation",
        ]
        copied = rprime("backup", str(tmp_path / "copy.db"), RPRIME_STORE=url)
        assert copied.returncode == 0, copied.stderr
        assert rprime("backup", str(tmp_path / "copy.db"), RPRIME_STORE=url).returncode == 2
        in_use = rprime("import", str(tmp_path / "all.ndjson"), RPRIME_STORE=url)
        assert (in_use.returncode, f"uses {tmp_path}/rprime.db" in in_use.stderr) == (2, True)
    other = f"sqlite:///{tmp_path}/other.db"
    brought = rprime("import", str(tmp_path / "all.ndjson"), RPRIME_STORE=other)
    assert (brought.returncode, "1 evaluations" in brought.stderr) == (0, True)
    promoted = rprime("promote", report["id"], "main", "--project", "pets", RPRIME_STORE=other)
    assert promoted.returncode == 0, promoted.stderr
    for place in (other, f"sqlite:///{tmp_path}/copy.db"):
        with keeping(serve_app, tmp_path, store=place) as client:
            assert client.get(report["links"]["self"]).json() == report


def test_a_history_moves_from_service_to_service(
    rprime: Run, serve_app: ServeApp, tmp_path: Path
) -> None:
    file = tmp_path / "all.ndjson"
    with keeping(serve_app, tmp_path) as client:
        report = keep(client, matrix(1, version="1"))
        there = {"RPRIME_SERVER": str(client.base_url)}
        done = rprime("export", "--project", "pets", "--output", str(file), **there)
        assert done.returncode == 0, done.stderr
        nothing = rprime("history", "--project", "nothing", **there)
        assert (nothing.returncode, "no project nothing" in nothing.stderr) == (2, True)
    with keeping(serve_app, tmp_path, store=f"sqlite:///{tmp_path}/other.db") as client:
        brought = rprime("import", str(file), "--server", str(client.base_url))
        assert (brought.returncode, "1 evaluations" in brought.stderr) == (0, True)
        assert client.get(report["links"]["self"]).json() == report


@pytest.mark.parametrize(
    "command",
    [
        ("history", "--project", "pets"),
        ("promote", "id", "champion", "--project", "pets"),
        ("export",),
        ("import", "{file}"),
    ],
)
def test_an_outage_ends_with_4(rprime: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "all.ndjson").write_text("{}\n")
    arguments = [part.format(file=tmp_path / "all.ndjson") for part in command]
    waits = Step(after=40)
    with flaky(BUSY) as busy, flaky(waits) as slow:
        for url, said in (
            (stopped(), "refused"),
            (busy.url, "503"),
            (slow.url, "no answer in time"),
        ):
            options = ["--server", url, "--retries", "0", "--timeout", "0.3"]
            done = rprime(*arguments, *options)
            assert (done.returncode, done.stdout) == (4, "")
            assert f"{url}/v1/" in done.stderr
            assert said in done.stderr


def test_what_is_no_store_is_said_in_a_sentence(rprime: Run, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.db"
    foreign.write_bytes(b"something else entirely" * 100)
    for command in (("serve", "--port", "0"), ("history", "--project", "p"), ("export",)):
        done = rprime(*command, RPRIME_STORE=f"sqlite:///{foreign}")
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith("rprime: ")
    assert rprime("export", RPRIME_STORE="none").returncode == 2
    broken = tmp_path / "broken.ndjson"
    broken.write_text("{}\n")
    done = rprime("import", str(broken), RPRIME_STORE=f"sqlite:///{tmp_path}/new.db")
    assert (done.returncode, "line 1" in done.stderr) == (2, True)
