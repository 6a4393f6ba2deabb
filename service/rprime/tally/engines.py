"""Open files as lazy frames of DuckDB, Dask or Spark, here or on a cluster."""

import re
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl

from rprime.core.progress import WATCH
from rprime.tally.table import TallyError

Format = Literal["csv", "parquet"]

ENGINES = "duckdb, dask, dask://host:port, spark, or spark://host:port"
_ENGINE = re.compile(
    r"(?P<name>duckdb|dask|spark)(?:\?(?P<settings>.*))?"
    r"|(?P<cluster>dask|spark)://(?P<address>(?:[^/:?]+|\[[^\]]+\]):\d{1,5})"
)
_SETTINGS = {"duckdb": ("memory_limit", "threads"), "dask": (), "spark": ()}
_CONNECT_SECONDS = 10.0
_WORKER_SECONDS = 30.0
_EVERY_SECONDS = 0.2
_LONGEST = 400
_CSV, _PARQUET = (".csv", ".csv.gz"), (".parquet", ".pq")


class UnreachableEngineError(TallyError):
    """No cluster answers at the address."""


class Engine(NamedTuple):
    """An engine with its own settings: `duckdb`, `dask` or `spark`."""

    name: str
    address: str | None
    """host:port of a cluster; None: this machine."""
    settings: dict[str, str]

    @classmethod
    def of(cls, text: str) -> "Engine":
        """Parse the value of `--engine`; a `TallyError` says what an engine is."""
        match = _ENGINE.fullmatch(text)
        if match is None:
            raise TallyError(f"an engine is {ENGINES}; not {text[:64]!r}")
        if match["cluster"]:
            return cls(match["cluster"], match["address"], {})
        settings = dict(parse_qsl(match["settings"] or "", keep_blank_values=True))
        allowed = _SETTINGS[match["name"]]
        if unknown := settings.keys() - set(allowed):
            accepted = f"accepts {', '.join(allowed)}" if allowed else "accepts no settings here"
            raise TallyError(f"{match['name']} {accepted}; not {min(unknown)[:64]!r}")
        return cls(match["name"], None, settings)


class Files(NamedTuple):
    """The files with the predictions: paths, globs, folders or URIs of one format."""

    paths: tuple[str, ...]
    format: Format

    @classmethod
    def of(cls, names: Sequence[str]) -> "Files":
        """Derive the format from the names; a folder holds Parquet, also in Hive partitions.

        Raises
        ------
        TallyError
            If the names do not determine a format.
        """
        formats = {_format(path) for path in names}
        if len(formats) != 1:
            raise TallyError("the files must be all CSV or all Parquet")
        # A cluster with the same file system finds an absolute path.
        paths = (path if "://" in path else str(Path(path).absolute()) for path in names)
        return cls(tuple(paths), formats.pop())


def orders(files: Files, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the ordered categories of columns of a single Parquet file, which engines forget."""
    (path, *more) = files.paths
    if files.format != "parquet" or more or not Path(path).is_file():
        return {}
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            fields = [file.schema_arrow.field(n) for n in names if n in file.schema_arrow.names]
            ordered = [
                field.name
                for field in fields
                if pa.types.is_dictionary(field.type) and field.type.ordered
            ]
            batch = next(file.iter_batches(1, columns=ordered), None) if ordered else None
    except (pa.ArrowException, OSError):  # the engine says what is wrong with it
        return {}
    return {} if batch is None else {n: batch.column(n).dictionary.to_pylist() for n in ordered}


def open_frame(engine: Engine, files: Files) -> AbstractContextManager[Any]:
    """Open files as a frame of an engine, which reads them, and may fail, within the context.

    Raises
    ------
    TallyError
        If the engine is not installed, or the files cannot be read.
    UnreachableEngineError
        If the cluster does not answer.
    """
    module, open_files = _ENGINES[engine.name]
    if find_spec(module) is None or find_spec("narwhals") is None:
        raise TallyError(f"this engine needs an extra: pip install 'rprime[{engine.name}]'")
    if engine.address is not None:
        _check_reachable(engine.address)
    return open_files(engine, files)


@contextmanager
def _reported(share: Callable[[], float]) -> Iterator[None]:
    """Report which share of its work an engine has done."""
    watch, ended = WATCH.get(), Event()
    if watch is None:
        yield
        return

    def tell() -> None:
        while not ended.wait(_EVERY_SECONDS):
            watch("Counting", max(share(), 0), 1)

    # An engine that has gone away answers late, or never.
    thread = Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_WORKER_SECONDS)
    watch("Counting", 1, 1)  # after the last share that the thread read


def _format(path: str) -> Format:
    name = path.rstrip("/").rpartition("/")[2].lower()
    if name.endswith(_CSV):
        return "csv"
    if name.endswith(_PARQUET) or path.endswith("/") or Path(path).is_dir():
        return "parquet"
    raise TallyError(f"{path}: an engine reads .parquet, .csv and .csv.gz, or a folder of Parquet")


def _check_reachable(address: str) -> None:
    """Check in seconds that a cluster answers; the clients of the engines take minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise UnreachableEngineError(f"nothing answers at {address}: {why}") from None


@contextmanager
def _duckdb(engine: Engine, files: Files) -> Iterator[Any]:
    import duckdb

    # Data that do not fit into memory go there, not into the working directory.
    with TemporaryDirectory(prefix="rprime-") as folder:
        config: dict[str, Any] = {"temp_directory": folder, "preserve_insertion_order": "false"}
        try:
            with duckdb.connect(config=config | engine.settings) as connection:
                connection.execute("SET enable_progress_bar = true")
                connection.execute("SET enable_progress_bar_print = false")
                with _reported(lambda: connection.query_progress() / 100):
                    yield _relation(connection, files)
        except duckdb.Error as error:
            raise TallyError(f"DuckDB: {_message(error)}") from None


def _relation(connection: Any, files: Files) -> Any:  # noqa: ANN401 (duckdb's own)
    if files.format == "parquet":
        # A folder stands for its files at any depth.
        paths = [
            path if path.lower().endswith(_PARQUET) else f"{path.rstrip('/')}/**/*.parquet"
            for path in files.paths
        ]
        return connection.read_parquet(paths, union_by_name=True)
    return connection.read_csv(
        list(files.paths), header=True, sep=",", all_varchar=True, union_by_name=True
    )


@contextmanager
def _dask(engine: Engine, files: Files) -> Iterator[Any]:
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    try:
        with _dask_workers(engine.address):
            yield _dask_frame(files)
    except (TimeoutError, CommClosedError, CancelledError) as error:
        where = "" if engine.address is None else f" at {engine.address}"
        raise UnreachableEngineError(f"Dask{where}: {_message(error)}") from None
    except TallyError:
        raise
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, KilledWorker) as error:
        raise TallyError(f"Dask: {_message(error)}") from None


@contextmanager
def _dask_workers(address: str | None) -> Iterator[None]:
    """Have Dask count on a cluster; without an address by threads, which open no port."""
    from distributed import Client

    if address is None:
        yield
        return
    with Client(f"tcp://{address}", timeout=_CONNECT_SECONDS) as client:
        client.wait_for_workers(1, timeout=_WORKER_SECONDS)
        with _reported(lambda: _share_done(client)):
            yield


def _share_done(client: Any) -> float:  # noqa: ANN401 (dask's own)
    # A lambda travels by its code: the scheduler may lack this package.
    groups = client.run_on_scheduler(
        lambda dask_scheduler: [dict(group.states) for group in dask_scheduler.task_groups.values()]
    )
    tasks: Counter[str] = Counter()
    for group in groups:
        tasks.update(group)
    left = sum(tasks[state] for state in ("waiting", "queued", "no-worker", "processing"))
    return 1 - left / max(tasks.total(), 1)


def _dask_frame(files: Files) -> Any:  # noqa: ANN401 (dask's own)
    from dask import dataframe

    paths = list(files.paths)
    if files.format == "parquet":
        source = paths[0] if len(paths) == 1 else paths
        return dataframe.read_parquet(source, dtype_backend="pyarrow")
    zipped = any(path.lower().endswith(".gz") for path in paths)
    return dataframe.read_csv(
        paths,
        dtype="string[pyarrow]",
        keep_default_na=False,
        na_values=[""],
        **({"blocksize": None} if zipped else {}),
    )


@contextmanager
def _spark(engine: Engine, files: Files) -> Iterator[Any]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("rprime").config("spark.log.level", "ERROR")
    if engine.address is not None:
        builder = builder.master(f"spark://{engine.address}")
    try:
        with builder.getOrCreate() as session:
            if files.format == "parquet":
                yield session.read.parquet(*files.paths)
            else:
                reader = session.read.option("header", "true").option("escape", '"')
                yield reader.csv(list(files.paths))
    except (PySparkException, Py4JError) as error:
        raise TallyError(f"Spark: {_message(error)}") from None


def _message(error: BaseException) -> str:
    """Return the message of an engine's error, without its dump."""
    return " ".join(str(error).split())[:_LONGEST] or type(error).__name__


_ENGINES: Mapping[str, tuple[str, Callable[[Engine, Files], AbstractContextManager[Any]]]] = {
    "duckdb": ("duckdb", _duckdb),
    "dask": ("distributed", _dask),
    "spark": ("pyspark", _spark),
}
"""The module that each engine needs, and how it opens files."""
