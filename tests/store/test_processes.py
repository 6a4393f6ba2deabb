"""Several processes on one PostgreSQL database.

The long version: `RPRIME_TEST_PROCESSES=8 sh .ci/venv pytest tests/store/test_processes.py`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from rprime.store import Retention, Store, open_store
from tests.store import samples

PROCESSES = int(os.environ.get("RPRIME_TEST_PROCESSES", "3"))
SECONDS = 0.5
WRITING = Path(__file__).with_name("writing.py")


def start(url: str, threads: int = 4) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, WRITING, url, str(SECONDS), str(threads)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.slow
def test_processes_start_at_once_and_write_without_an_error(postgresql_url: str) -> None:
    # The database is empty: all of them want to make the tables.
    processes = [start(postgresql_url) for _ in range(PROCESSES)]
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES, outputs[0][1]
    assert not [errors for _, errors in outputs if "Traceback" in errors]
    ids = [line for output, _ in outputs for line in output.split()]
    assert all(output for output, _ in outputs)
    assert len(ids) == len(set(ids))
    store = open_store(postgresql_url)
    assert store.count("animals") == len(ids)
    looks = [store.looks("animals", f"test set {i}") for i in range(3)]
    assert sum(looks) == len(ids)
    store.close()


@pytest.mark.slow
def test_a_purge_beside_writers_breaks_nothing(postgresql_url: str) -> None:
    store = open_store(postgresql_url)
    processes = [start(postgresql_url, 2) for _ in range(2)]
    rounds = 0
    while any(process.poll() is None for process in processes):
        _purge(store)
        rounds += 1
    assert [process.wait() for process in processes] == [0] * 2
    for process in processes:
        process.communicate()
    assert rounds > 1
    for item in store.page("animals").items:
        assert store.get(item.id).labels == samples.LABELS
    store.close()


def _purge(store: Store) -> None:
    store.purge("animals", Retention(keep_last=5))


def test_a_server_that_restarts_is_found_again(postgresql_url: str) -> None:
    store = open_store(postgresql_url)
    evaluation = samples.evaluation()
    samples.put(store, evaluation).result()
    store.get(evaluation.id)
    engine = create_engine(postgresql_url)
    with engine.begin() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    engine.dispose()
    # Every connection of the pool is dead; neither writing nor reading shows it.
    assert samples.put(store, samples.evaluation(1)).result().created
    assert store.get(evaluation.id).id == evaluation.id
    store.close()
