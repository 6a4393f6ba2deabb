"""A cluster counts as one process does, even when a part of it dies.

The test of Spark needs Java and `pip install 'rprime[spark]'`; `pytest -m spark` runs it alone.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from distributed import get_client

from rprime.core.progress import WATCH
from rprime.tally.counting import tally
from rprime.tally.engines import Engine, Files, open_frame
from rprime.tally.table import TallyError
from tests.command import Run
from tests.services import RPRIME, environment

FILES, ROWS, CLASSES = 24, 20_000, 10


class Predictions(NamedTuple):
    """Files, the non-empty cells of their table, and the accuracy in each slice."""

    folder: Path
    cells: list[list[int]]
    accuracies: list[float]


@pytest.fixture(scope="module")
def predictions(tmp_path_factory: pytest.TempPathFactory) -> Predictions:
    folder = tmp_path_factory.mktemp("predictions")
    rng = np.random.default_rng(0)
    table = np.zeros((CLASSES, CLASSES), np.int64)
    regions, places = np.array(["Asia", "EU", "US"]), []
    for number in range(FILES):
        true, predicted = rng.integers(0, CLASSES, (2, ROWS))
        np.add.at(table, (true, predicted), 1)
        age = rng.integers(18, 90, ROWS)
        places.append((np.arange(ROWS) % 3, age >= 50, true, predicted))
        more = {"region": regions[np.arange(ROWS) % 3], "age": age}
        part = pa.table({"y_true": true, "y_pred": predicted, **more})
        pq.write_table(part, folder / f"{number}.parquet")
        pyarrow.csv.write_csv(part, folder / f"{number}.csv")
    rows, columns = np.nonzero(table)
    cells = np.stack((rows, columns, table[rows, columns]), axis=-1)
    region, old, true, predicted = map(np.concatenate, zip(*places, strict=True))
    accuracies = [
        float((true == predicted)[inside].mean())
        for inside in (
            *(region == i for i in range(3)),
            *(old == above for above in (False, True)),
            *((region == i) & (old == above) for i in range(3) for above in (False, True)),
        )
    ]
    return Predictions(folder, cells.tolist(), accuracies)


SLICED = ("--slice", "region", "--slice", "cut(age, 50.0)", "--crossing", "region,age")


def accuracies_of(done: subprocess.CompletedProcess[str]) -> list[float]:
    slices = json.loads(done.stdout)["slices"]
    return [part["overall"]["accuracy"]["value"] for part in slices]


def cells_of(done: subprocess.CompletedProcess[str]) -> list[list[int]]:
    assert done.returncode == 0, done.stderr
    cells: list[list[int]] = json.loads(done.stdout)["table"]["cells"]
    return cells


class Cluster(NamedTuple):
    """A scheduler and two workers, processes of their own."""

    address: str
    workers: list[subprocess.Popen[bytes]]

    @property
    def engine(self) -> str:
        return self.address.replace("tcp://", "dask://")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    file = folder / "scheduler.json"
    common = ("--scheduler-file", str(file), "--no-dashboard")
    options = ("--nthreads", "1", "--no-nanny", "--memory-limit", "0")
    here = ("--host", "127.0.0.1", "--port", "0")
    with (folder / "log").open("wb") as log:
        commands = [
            ("scheduler", *here),
            ("worker", "--name", "0", *options),
            ("worker", "--name", "1", *options),
        ]
        started = [
            subprocess.Popen(
                [RPRIME.with_name("dask"), *arguments, *common],
                cwd=folder,
                stdout=log,
                stderr=log,
                env=environment(),
            )
            for arguments in commands
        ]
        try:
            yield Cluster(_address(file, folder / "log"), started[1:])
        finally:
            for process in reversed(started):
                process.kill()
                process.wait()


def _address(file: Path, log: Path) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            address: str = json.loads(file.read_bytes())["address"]
        except (FileNotFoundError, ValueError):
            time.sleep(0.05)
        else:
            return address
    raise AssertionError(log.read_text())


class TestDask:
    def test_without_an_address_dask_counts_in_this_process(
        self, rprime_process: Run, predictions: Predictions
    ) -> None:
        files = [str(predictions.folder / f"{number}.parquet") for number in range(FILES)]
        done = rprime_process("evaluate", *files, *SLICED, "--engine", "dask", "--json", "--table")
        assert cells_of(done) == predictions.cells
        assert accuracies_of(done) == pytest.approx(predictions.accuracies)
        assert done.stderr == ""

    def test_without_an_address_no_cluster_listens(self, predictions: Predictions) -> None:
        files = Files.of([str(predictions.folder / "*.csv")])
        with open_frame(Engine.of("dask"), files) as frame:
            with pytest.raises(ValueError, match=r"No .*client"):
                get_client()
            assert tally(frame, untyped=True)

    def test_a_cluster_counts_files(
        self, rprime_process: Run, cluster: Cluster, predictions: Predictions
    ) -> None:
        files = [str(predictions.folder / f"{number}.parquet") for number in range(FILES)]
        engine = ("--engine", cluster.engine, "--json", "--table")
        done = rprime_process("evaluate", *files, *SLICED, *engine)
        assert cells_of(done) == predictions.cells
        assert accuracies_of(done) == pytest.approx(predictions.accuracies)

    @pytest.mark.slow
    def test_whoever_watches_sees_which_share_is_done(
        self, cluster: Cluster, predictions: Predictions
    ) -> None:
        told: list[tuple[str, float, float | None]] = []
        token = WATCH.set(lambda *progress: told.append(progress))
        try:
            files = Files.of([str(predictions.folder / "*.csv")])
            with open_frame(Engine.of(cluster.engine), files) as frame:
                tally(frame, untyped=True)
        finally:
            WATCH.reset(token)
        assert told[-1] == ("Counting", 1, 1)
        shares = [done for _, done, _ in told[:-1]]
        assert shares
        assert min(shares) < 1
        assert all(0 <= share <= 1 for share in shares)

    def test_what_its_workers_cannot_read_is_bad_input(
        self, cluster: Cluster, tmp_path: Path
    ) -> None:
        (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing else")
        with (
            pytest.raises(TallyError, match="Dask: "),
            open_frame(Engine.of(cluster.engine), Files.of([str(tmp_path / "a.parquet")])) as frame,
        ):
            tally(frame)

    @pytest.mark.slow
    def test_a_worker_that_dies_in_the_middle_changes_nothing(
        self, cluster: Cluster, predictions: Predictions
    ) -> None:
        pattern = str(predictions.folder / "*.csv")
        arguments = (pattern, "--engine", cluster.engine, "--json", "--table")
        with subprocess.Popen(
            [RPRIME, "evaluate", *arguments],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as command:
            counted = _kill_at_work(cluster)
            out, error = command.communicate(timeout=120)
        assert 0 < counted < FILES
        assert cells_of(subprocess.CompletedProcess((), command.returncode, out, error)) == (
            predictions.cells
        )


def _kill_at_work(cluster: Cluster) -> int:
    """Kill a worker that has counted some files and has others to count; give how many it had."""
    watch = """
import sys, time
from distributed import Client
with Client(sys.argv[1]) as client:
    names = {w["name"]: a for a, w in client.scheduler_info(n_workers=-1)["workers"].items()}
    address = names[0] if 0 in names else names["0"]
    while not (client.has_what()[address] and client.processing()[address]):
        time.sleep(0.01)
    print(len(client.has_what()[address]))
"""
    done = subprocess.run(
        [sys.executable, "-c", watch, cluster.address],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    cluster.workers[0].kill()
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.skipif(find_spec("pyspark") is None, reason="needs pip install 'rprime[spark]'")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_spark_counts_files(predictions: Predictions, suffix: str) -> None:
    files = str(predictions.folder / f"*.{suffix}")
    arguments = (files, *SLICED, "--engine", "spark", "--json", "--table")
    done = subprocess.run(
        [RPRIME, "evaluate", *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert cells_of(done) == predictions.cells
    assert accuracies_of(done) == pytest.approx(predictions.accuracies)
