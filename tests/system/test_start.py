"""A service that cannot use its store says at the start how to fix it, and does not start."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from rprime.store import open_store
from tests.services import RPRIME, environment

CONFINED = Path(__file__).with_name("confined.py")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store."""
    path = tmp_path_factory.mktemp("made") / "rprime.db"
    open_store(f"sqlite:///{path}").close()
    return path


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for start in range(4096, len(content), 4096):
        content[start : start + 200] = b"\xff" * 200
    path.write_bytes(content)


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE rprime_version SET version_num = '77'")
        connection.commit()


def foreign(path: Path) -> None:
    path.write_text("not a database")


def missing(path: Path) -> None:
    shutil.rmtree(path.parent)


def read_only(path: Path) -> None:
    path.chmod(0o444)


def in_a_read_only_folder(path: Path) -> None:
    path.unlink()
    path.parent.chmod(0o555)


@pytest.mark.parametrize(
    ("happens", "says"),
    [
        (damaged, "restore a backup"),
        (newer, "install the newer rprime"),
        (foreign, "let RPRIME_STORE name another file"),
        (missing, "make it, then start again"),
        (read_only, "give this user access to it"),
        (in_a_read_only_folder, "give this user access to it"),
    ],
)
def test_a_store_that_cannot_be_used_is_refused_with_what_mends_it(
    made: Path, tmp_path: Path, happens: Callable[[Path], None], says: str
) -> None:
    path = tmp_path / "store" / "rprime.db"
    path.parent.mkdir()
    shutil.copy(made, path)
    happens(path)
    done = subprocess.run(
        [sys.executable, CONFINED, "powerless", RPRIME, "serve", "--port", "0"],
        env=environment(RPRIME_STORE=f"sqlite:///{path}"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    # The last words, and no other line of it is meant for a reader.
    *log, last = done.stderr.splitlines()
    assert last.startswith("rprime: ")
    assert says in last
    assert all(line.startswith("{") for line in log)
    assert done.stdout == ""
