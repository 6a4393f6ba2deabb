"""Killed in the middle of writing, again and again: what was acknowledged is there.

The long version: `RPRIME_TEST_CRASHES=60 sh .ci/venv pytest -s tests/store/test_crash.py`.
"""

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from rprime.store import is_id, open_store

WRITING = Path(__file__).with_name("writing.py")
WRITERS = 16
CYCLES = int(os.environ.get("RPRIME_TEST_CRASHES", "3"))


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


def survive(path: Path, cycles: int) -> int:
    """Kill and open again; how many acknowledged evaluations there are in the end."""
    url, chance = f"sqlite:///{path}", random.Random(7)  # noqa: S311 - when to kill
    acknowledged: set[str] = set()
    for _ in range(cycles):
        acknowledged |= set(killed_while_writing(url, chance.randint(1, 200)))
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    store = open_store(url)
    lines = store.export()
    next(lines)
    stored = {line[21:47].decode() for line in lines if line.startswith(b'{"evaluation":{"id":"')}
    assert acknowledged - stored == set()
    # Each was stored whole: with its look, its key and its items.
    assert sum(store.looks("animals", f"test set {i}") for i in range(3)) == len(stored)
    with closing(sqlite3.connect(path)) as connection:
        count = "SELECT count(*) FROM "
        assert connection.execute(count + "replays").fetchone()[0] == len(stored)
        kept = connection.execute(count + "evaluations WHERE keeps_items").fetchone()
        assert connection.execute(count + "items").fetchone() == kept
    store.close()
    return len(acknowledged)


def test_nothing_acknowledged_is_lost(path: Path) -> None:
    acknowledged = survive(path, CYCLES)
    print(f"{CYCLES} kill -9 cycles, {WRITERS} writers: {acknowledged} acknowledged, 0 lost")  # noqa: T201 (the figure)
    assert acknowledged >= CYCLES
