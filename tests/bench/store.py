"""How fast a store is and how much disk it takes: `python tests/bench/store.py [URL]`.

Without a URL it makes a SQLite file in a temporary folder.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from rprime.core.table import ConfusionTable
from rprime.store import BaselineQuery, Candidate, Filters, NewEvaluation, Store, open_store

CLIENTS = 16
MEASURED = 10_000
HISTORY = 100_000
LABELS = tuple(f"class_{i}" for i in range(10))


def evaluations(number: int, seed: int = 0) -> list[NewEvaluation]:
    """Make evaluations of 10 x 10 tables over 10 000 items, with everything CI sends along."""
    generator = np.random.default_rng(seed)
    chances = (np.eye(10) * 0.9 + 0.01).ravel() / 10
    tables = generator.multinomial(10_000, chances / chances.sum(), 1000).reshape(-1, 10, 10)
    return [
        NewEvaluation(
            project="bench",
            labels=LABELS,
            table=ConfusionTable.dense(tables[i % 1000]),
            input_digest=f"sha256:{generator.bytes(32).hex()}",
            engine_version="0.1.0",
            model=f"model-{i % 5}",
            version=f"1.{i}.0",
            branch="main" if i % 3 else f"feature-{i % 17}",
            commit=generator.bytes(20).hex(),
            tags=("nightly",),
            test_set="holdout-2026",
            fingerprint="ab" * 32,
            submission=generator.bytes(32),
            verdict="fail" if i % 10 == 0 else "pass",
        )
        for i in range(number)
    ]


def best(work: Callable[[], object], repetitions: int = 5) -> float:
    """Return the milliseconds of the fastest of several runs."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def threads(store: Store, news: list[NewEvaluation]) -> float:
    """Put from as many threads as there are clients; how many a second."""

    def client(number: int) -> None:
        for new in news[number::CLIENTS]:
            store.put_many([store.pack(new)]).result()

    start = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(client, range(CLIENTS)))
    return len(news) / (time.perf_counter() - start)


async def tasks(store: Store, news: list[NewEvaluation], clients: int) -> float:
    """Put from tasks of one event loop, as the service does; how many a second."""

    async def client(number: int) -> None:
        for new in news[number::clients]:
            await asyncio.wrap_future(store.put_many([store.pack(new)]))

    start = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(clients)))
    return len(news) / (time.perf_counter() - start)


def put(store: Store) -> None:
    """Measure writing."""
    say("puts a second, 1 task", asyncio.run(tasks(store, evaluations(1000), 1)))
    say(f"puts a second, {CLIENTS} threads", threads(store, evaluations(MEASURED, 1)))
    for clients in (CLIENTS, 64):
        news = evaluations(MEASURED, clients)
        say(f"puts a second, {clients} tasks", asyncio.run(tasks(store, news, clients)))


def fill(store: Store) -> None:
    """Bring the store to the size at which reading is measured."""
    missing = HISTORY - store.count("bench")
    futures = [store.put_many([store.pack(new)]) for new in evaluations(missing, 2)]
    for future in futures:
        future.result()


def read(store: Store) -> None:
    """Measure reading."""
    queries = {
        "all": Filters(),
        "one model": Filters(model="model-3"),
        "no such model": Filters(model="none"),
        "one version": Filters(version="1.7.0"),
        "no such branch": Filters(branch="none"),
        "no such test set": Filters(test_set="none"),
        "no such verdict": Filters(verdict="inconclusive"),
        "no such tag": Filters(tag="none"),
        "no such fingerprint": Filters(fingerprint="none"),
    }
    for name, filters in queries.items():
        say(f"ms for a page of 50, {name}", best(lambda: store.page("bench", filters)))  # noqa: B023 - run at once
    identifier = store.page("bench").items[0].id
    say("ms to get one", best(lambda: store.get(identifier)))
    say("ms to list the projects", best(store.projects))
    branch = BaselineQuery("branch", "main")
    say("ms to find a baseline", best(lambda: store.baseline(Candidate("bench", "m0"), branch)))
    for newest in (10_000, None):
        say(f"ms for the tables of {newest or 'all'}", best(lambda: tables(store, newest)))  # noqa: B023 - run at once


def tables(store: Store, newest: int | None) -> int:
    """Read a history; how many tables it has."""
    return sum(len(stack.ids) for stack in store.tables("bench", newest=newest))


def say(what: str, figure: float) -> None:
    """Print a figure."""
    print(f"{figure:12.2f}  {what}", flush=True)


def disk(folder: Path) -> None:
    """Measure the disk that an evaluation takes."""
    path = folder / "disk.db"
    store = open_store(f"sqlite:///{path}")
    threads(store, evaluations(MEASURED))
    store.close()
    say("bytes on disk for each 10 x 10 evaluation", path.stat().st_size / MEASURED)


def main() -> None:
    """Measure everything."""
    with tempfile.TemporaryDirectory() as name:
        store = open_store(sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{name}/bench.db")
        put(store)
        fill(store)
        read(store)
        store.close()
        disk(Path(name))


if __name__ == "__main__":
    main()
