"""Killed in the middle of writing, again and again: what was acknowledged is there.

The long version: `RPRIME_TEST_CRASHES=30 sh .ci/venv pytest -s tests/store/test_crash.py`.
"""

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from sqlalchemy import ColumnElement, Connection, Table, func, make_url, select

from rprime.store import is_id, open_store
from rprime.store.schema import evaluations, items, replays

WRITING = Path(__file__).with_name("writing.py")
WRITERS = 16
CYCLES = int(os.environ.get("RPRIME_TEST_CRASHES", "2"))


def killed_while_writing(url: str, writes: int) -> list[str]:
    """Kill a process once it has acknowledged some writes; return all that it acknowledged."""
    process = subprocess.Popen(
        [sys.executable, WRITING, url, "60", str(WRITERS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    acknowledged = []
    with process.stdout, process.stderr:
        for line in map(bytes.decode, process.stdout):
            # A line may be of the log; the last one may be half written: acknowledged to nobody.
            if line.endswith("\n") and is_id(line[:-1]):
                acknowledged.append(line[:-1])
            if len(acknowledged) == writes:
                # However slow the machine is: killed while it writes.
                process.kill()
        assert len(acknowledged) >= writes, process.stderr.read().decode()
    process.wait()
    return acknowledged


def check_file(path: Path) -> None:
    """Check the file as the killed process has left it."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def stored_whole(url: str) -> set[str]:
    """Return the ids of what is stored; each has its look, its key and its items."""
    store = open_store(url)
    lines = store.export()
    next(lines)
    stored = {line[21:47].decode() for line in lines if line.startswith(b'{"evaluation":{"id":"')}
    assert sum(store.looks("animals", f"test set {i}") for i in range(3)) == len(stored)

    def number(connection: Connection, table: Table, *fits: ColumnElement[bool]) -> int | None:
        return connection.scalar(select(func.count()).select_from(table).where(*fits))

    read = store.database.read
    assert read(lambda c: number(c, replays)) == len(stored)
    kept = read(lambda c: number(c, evaluations, evaluations.c.keeps_items))
    assert read(lambda c: number(c, items)) == kept
    store.close()
    return stored


def test_nothing_acknowledged_is_lost(url: str) -> None:
    chance = random.Random(7)  # noqa: S311 - when to kill
    acknowledged: set[str] = set()
    for _ in range(CYCLES):
        acknowledged |= set(killed_while_writing(url, chance.randint(1, 200)))
        address = make_url(url)
        if address.get_backend_name() == "sqlite":
            check_file(Path(address.database or ""))
    assert acknowledged - stored_whole(url) == set()
    kind = make_url(url).get_backend_name()
    print(f"{kind}: {CYCLES} kill -9, {len(acknowledged)} acknowledged, 0 lost")  # noqa: T201 (the figure)
    assert len(acknowledged) >= CYCLES
