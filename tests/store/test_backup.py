"""Back up and restore by the commands of docs/operations.md, with services that keep and find."""

import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from rprime.store import StoreError, open_store
from rprime.store.schema import SCHEMA_VERSION
from tests.command import Run
from tests.examples.recipes import EXAMPLES, run
from tests.history_service import labels, matrix
from tests.services import Serve

pytestmark = pytest.mark.slow

PAGE = (EXAMPLES.parent / "docs" / "operations.md").read_text(encoding="utf-8")
[SECTION] = re.findall(r"^## Back up and restore\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
SQLITE_BACKUP, SQLITE_RESTORE, DUMP, RESTORE = re.findall(
    r"```console\n(.*?)```", SECTION, re.DOTALL
)


def execute(commands: str, folder: Path, store: str) -> None:
    done = run("sh", "-ec", commands, cwd=folder, variables={"RPRIME_STORE": store})
    assert done.returncode == 0, done.stderr


def keep(client: httpx.Client, *bodies: dict[str, object]) -> dict[str, bytes]:
    """Store evaluations, and return the answers by their paths."""
    answers = [client.post("/evaluate", json=body) for body in bodies]
    assert {answer.status_code for answer in answers} == {201}
    return {answer.headers["Location"]: answer.content for answer in answers}


def found(client: httpx.Client, paths: Iterable[str]) -> dict[str, bytes]:
    return {path: client.get(path).content for path in paths}


def test_a_backup_needs_a_folder(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/rprime.db")
    with pytest.raises(StoreError, match=f"There is no folder {tmp_path}/backup"):
        store.backup(tmp_path / "backup" / "copy.db")
    store.close()


def test_a_backup_of_sqlite_has_what_was_stored(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "rprime.db"
    store = f"sqlite:///{path}"
    with serve(RPRIME_STORE=store) as client:
        before = keep(client, labels(1, version="1"), matrix(version="2"))
        execute(SQLITE_BACKUP, tmp_path, store)
        later = keep(client, matrix(version="3"))
    # The disk is lost, and its file is no store any more.
    path.write_bytes(b"damaged" * 1000)
    execute(SQLITE_RESTORE, tmp_path, store)
    with serve(RPRIME_STORE=store) as client:
        assert found(client, before) == before
        assert {client.get(path).status_code for path in later} == {404}
        keep(client, matrix(version="4"))


def test_an_older_version_refuses_a_migrated_store_and_takes_the_backup(
    serve: Serve, rprime: Run, tmp_path: Path
) -> None:
    path = tmp_path / "rprime.db"
    store = f"sqlite:///{path}"
    with serve(RPRIME_STORE=store) as client:
        before = keep(client, labels(1, version="1"), matrix(version="2"))
        execute(SQLITE_BACKUP, tmp_path, store)
    newer = SCHEMA_VERSION + 1
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE evaluations ADD COLUMN only_newer_versions_know TEXT")
        connection.execute("UPDATE rprime_version SET version_num = ?", (str(newer),))
    migrated = path.read_bytes()
    done = rprime("serve", "--port", "0", RPRIME_STORE=store)
    assert done.returncode == 2
    message = f"has version {newer} of the tables, this rprime knows {SCHEMA_VERSION}"
    assert message in done.stderr
    assert "install the newer rprime again" in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_bytes() == migrated
    execute(SQLITE_RESTORE, tmp_path, store)
    with serve(RPRIME_STORE=store) as client:
        assert found(client, before) == before
        keep(client, matrix(version="3"))


@pytest.mark.postgresql
def test_a_dump_of_postgresql_has_what_was_stored(
    serve: Serve, tmp_path: Path, make_database: Callable[[], str]
) -> None:
    # As the programs of PostgreSQL name it.
    first, other = (make_database().replace("+psycopg", "") for _ in range(2))
    with serve(RPRIME_STORE=first) as client:
        before = keep(client, labels(1, version="1"), matrix(version="2"))
        execute(with_programs(DUMP), tmp_path, first)
        keep(client, matrix(version="3"))
    for target in (other, first):
        execute(with_programs(RESTORE), tmp_path, target)
        with serve(RPRIME_STORE=target) as client:
            assert found(client, before) == before
            items = client.get("/v1/projects/pets/evaluations").json()["items"]
            assert sorted(item["version"] for item in items) == ["1", "2"]
            keep(client, matrix(version="4"))


def with_programs(commands: str) -> str:
    """Put the programs of the newest PostgreSQL of this machine first, as the server is."""
    initdb = shutil.which("initdb")
    tmp_path = Path(initdb).resolve().parent if initdb else Path()
    return f"PATH={tmp_path}{os.pathsep}$PATH\n{commands}"
