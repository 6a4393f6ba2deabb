"""A service in little memory: it refuses what it cannot hold, and returns what it freed."""

import gzip
import json
import os
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from rprime.settings import Limits, Settings, available_memory
from tests.services import NO_TLS, RPRIME, Serve, environment
from tests.system.bombs import MIB
from tests.waiting import wait_until

GROUPS = Path("/sys/fs/cgroup/memory")
JSON = {"Content-Type": "application/json"}
CSV = {"Content-Type": "text/csv"}


@pytest.fixture
def group(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Make a control group of 256 MiB, or of as many as a test says."""
    path = GROUPS / f"rprime-test-{os.getpid()}"
    try:
        path.mkdir()
        (path / "memory.limit_in_bytes").write_text(str(getattr(request, "param", 256) * MIB))
    except OSError:
        pytest.skip("only root may make a control group, and this test knows version 1 of them")
    yield path
    wait_until(lambda: not (path / "cgroup.procs").read_text())
    path.rmdir()


Send = Callable[[str, bytes, dict[str, str]], int]


@contextmanager
def confined(group: Path, log: Path) -> Iterator[Send]:
    """Start a service in a control group; it lives to the end, and stops as it should."""
    enter = f"echo $$ > {group}/cgroup.procs && exec {RPRIME} serve --port 0"
    settings = environment(RPRIME_STORE="none")  # the limit is that of the group
    with (
        log.open("w") as output,
        subprocess.Popen(
            ["/bin/sh", "-c", enter], env=settings, stdout=subprocess.PIPE, stderr=output, text=True
        ) as process,
    ):
        assert process.stdout is not None
        address = process.stdout.readline().split()[3].rstrip(",")

        def send(path: str, body: bytes, headers: dict[str, str]) -> int:
            with httpx.Client(base_url=address, timeout=120, verify=NO_TLS) as alone:
                return alone.post(path, content=body, headers=headers).status_code

        try:
            yield send
            assert process.poll() is None
        finally:
            process.terminate()
            status = process.wait(timeout=30)
    assert status == 0


def labels(size: int) -> bytes:
    """Return a request of so many bytes."""
    draw = random.Random(size)  # noqa: S311 - of a test
    names = ["cat", "dog", "eel", "fox"]
    columns = {name: draw.choices(names, k=size // 14) for name in ("y_true", "y_pred")}
    return json.dumps(columns).encode()


def many_classes() -> bytes:
    """Return a comparison of 0.5 MB, whose whole answer would have 42 MB."""
    sides = {
        side: {
            "cells": [[j, j, count] for j in range(10_000)],
            "labels": [str(j) for j in range(10_000)],
        }
        for side, count in (("candidate", 50), ("baseline", 51))
    }
    return json.dumps(sides).encode()


@pytest.mark.parametrize("rounds", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_in_256_mib_it_refuses_and_survives(group: Path, tmp_path: Path, rounds: int) -> None:
    with confined(group, tmp_path / "log") as send:
        rows = b"y_true,y_pred\n" + b"cat,dog\neel,eel\n" * (MIB // 4)
        items = json.loads(labels(MIB * 3 // 4))
        pair = json.dumps({"candidate": items, "baseline": items}).encode()
        batch = json.dumps({"requests": [items, items]}).encode()
        zipped = JSON | {"Content-Encoding": "gzip"}
        bodies = [
            (labels(10 * MIB), JSON),
            (labels(MIB), JSON),
            (rows, CSV),
            (rows * 8, CSV),
            (gzip.compress(labels(10 * MIB)), zipped),
        ]
        with ThreadPoolExecutor(10) as pool:
            answers = Counter(
                pool.map(lambda i: send("/evaluate", *bodies[i % 5]), range(5 * rounds))
            )
        assert set(answers) <= {200, 413, 503}, answers
        assert answers[413] >= 2 * rounds
        assert send("/evaluate", labels(MIB), JSON) == 200
        assert send("/evaluate", rows, CSV) == 200
        # Its answer is paged, so it is computed as far as the memory allows.
        compared = {send("/v1/compare", many_classes(), JSON) for _ in range(3)}
        assert compared <= {200, 413, 503}, compared
        kinds = (("/v1/compare", pair, JSON), ("/v1/evaluate/batch", batch, JSON))
        with ThreadPoolExecutor(8) as pool:
            heavy = Counter(pool.map(lambda i: send(*kinds[i % 2]), range(8)))
        assert set(heavy) <= {200, 413, 503}, heavy
        assert heavy[200] > 0
    print(answers)  # noqa: T201 (the figure)


@pytest.mark.slow
@pytest.mark.parametrize("group", [1536], indirect=True)
def test_the_memory_of_the_kubernetes_example_holds_eight_large_comparisons(
    group: Path, tmp_path: Path
) -> None:
    items = labels(14 * MIB)
    pair = b'{"candidate":%b,"baseline":%b}' % (items, items)
    assert len(pair) > 27 * MIB
    zipped = JSON | {"Content-Encoding": "gzip"}
    bodies = [(pair, JSON), (gzip.compress(pair, 1), zipped)]
    with confined(group, tmp_path / "log") as send, ThreadPoolExecutor(8) as pool:
        answers = Counter(pool.map(lambda i: send("/v1/compare", *bodies[i % 2]), range(8)))
        assert set(answers) <= {200, 413, 503}, answers
        assert send("/evaluate", labels(MIB), JSON) == 200
    print(answers)  # noqa: T201 (the figure)


def resident(process: int) -> int:
    """Bytes of a process, without its workers."""
    pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_freed_memory_returns_to_the_system(serve: Serve, processes: dict[int, int]) -> None:
    body = labels(800_000)
    with serve(RPRIME_STORE="none") as client:
        process = processes[client.base_url.port or 0]
        assert client.post("/evaluate", content=body, headers=JSON).status_code == 200

        def send(_: int) -> int:
            with httpx.Client(base_url=client.base_url, timeout=60, verify=NO_TLS) as alone:
                return alone.post("/evaluate", content=body, headers=JSON).status_code

        before = resident(process)
        with ThreadPoolExecutor(16) as pool:
            assert set(pool.map(send, range(64))) <= {200, 503}
        # Without returning, about 120 MiB stay.
        wait_until(lambda: resident(process) < before + 70 * MIB)


def test_limits_follow_from_the_memory(tmp_path: Path) -> None:
    assert Settings(memory=1024 * MIB).limits == Limits()
    small = Settings(memory=256 * MIB).limits
    assert 0 < small.json_body_bytes < 2 * MIB
    assert small.in_flight_bytes + (small.worker_bytes or 0) < 80 * MIB
    assert small.large_requests == 1
    limits = Settings(memory=512 * MIB, limits=Limits(json_body_bytes=MIB)).limits
    assert limits.json_body_bytes == MIB
    assert limits.other_body_bytes < 100 * MIB
    assert available_memory(tmp_path, tmp_path / "none") == 1024 * MIB
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory(tmp_path, tmp_path / "none") == 1024 * MIB
    (tmp_path / "memory.max").write_text(f"{512 * MIB}\n")
    assert available_memory(tmp_path, tmp_path / "none") == 512 * MIB


@pytest.mark.parametrize(
    ("groups", "folder", "file"),
    [
        ("0::/system.slice/rprime.service\n", "system.slice/rprime.service", "memory.max"),
        ("4:memory:/docker/7f\n1:cpu:/\n", "memory/docker/7f", "memory.limit_in_bytes"),
    ],
)
def test_the_least_limit_of_the_groups_holds(
    groups: str, folder: str, file: str, tmp_path: Path
) -> None:
    cgroups = tmp_path / "groups"
    cgroups.write_text(groups)
    directory = tmp_path / folder
    directory.mkdir(parents=True)
    assert available_memory(tmp_path, cgroups) == 1024 * MIB
    (directory.parent / file).write_text(f"{512 * MIB}\n")
    assert available_memory(tmp_path, cgroups) == 512 * MIB
    (directory / file).write_text(f"{300 * MIB}\n")
    assert available_memory(tmp_path, cgroups) == 300 * MIB
    (directory / file).write_text("max\n")
    assert available_memory(tmp_path, cgroups) == 512 * MIB
