"""A disk without space: a real file system of 2 MiB where root may mount one, else a page limit."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rprime.core.items import Items
from rprime.store import Store, StoreFullError, open_store
from tests.store import samples


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small file system; the page limit is tested anyway")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S607 - of the system


def incompressible(seed: int) -> Items:
    generator = np.random.default_rng(seed)
    true, predicted = (generator.integers(0, 200, 100_000).astype(np.uint8) for _ in range(2))
    return Items(true, predicted)


def fill(store: Store) -> list[str]:
    """Store until nothing more goes in; give what was acknowledged."""
    acknowledged: list[str] = []
    while True:
        number = len(acknowledged)
        evaluation = samples.evaluation(number, items=incompressible(number))
        try:
            acknowledged.append(samples.put(store, evaluation).result().id)
        except StoreFullError:
            return acknowledged


def test_a_full_disk_refuses_to_store_and_goes_on_reading(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    store = open_store(f"sqlite:///{small_disk}/rprime.db")
    ballast.write_bytes(b"x" * 600_000)
    acknowledged = fill(store)
    assert acknowledged
    with pytest.raises(StoreFullError) as caught:
        samples.put(store, samples.evaluation(99, items=incompressible(99))).result()
    assert caught.value.code in {"ENOSPC", "SQLITE_FULL"}
    for identifier in acknowledged:
        assert store.get(identifier).id == identifier
        assert store.items(identifier) is not None
    assert len(store.page("animals").items) == len(acknowledged)
    ballast.unlink()
    assert samples.put(store, samples.evaluation(1000)).result().created
    store.close()
    again = open_store(f"sqlite:///{small_disk}/rprime.db")
    assert again.count("animals") == len(acknowledged) + 1
    again.close()


def test_what_does_not_fit_does_not_fail_its_neighbours(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    with store.database.writing() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 200")
    small = [samples.put(store, samples.evaluation(i)) for i in range(10)]
    large = samples.put(store, samples.evaluation(99, items=_many_items()))
    small += [samples.put(store, samples.evaluation(i)) for i in range(10)]
    with pytest.raises(StoreFullError):
        large.result()
    assert all(future.result().created for future in small)
    assert store.count("animals") == 20
    store.close()


def _many_items() -> Items:
    generator = np.random.default_rng(0)
    true, predicted = (generator.integers(0, 2**32, 300_000).astype(np.uint32) for _ in range(2))
    return Items(true, predicted)
