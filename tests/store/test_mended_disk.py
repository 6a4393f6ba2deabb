"""A disk that is full, read-only, locked or damaged under a real service, and how it is mended."""

import errno
import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import product
from pathlib import Path

import httpx
import pytest

from rprime.store import BaselineQuery, Candidate, StoreFullError, open_store, sqlite
from rprime.store.errors import StoreDamagedError, StoreEmptyError
from tests.command import Run
from tests.history_service import labels, matrix
from tests.services import NO_TLS, Serve
from tests.store import samples
from tests.store.compiled import compiled
from tests.store.test_sqlite_file import Service, serving
from tests.waiting import wait_until

Mend = Callable[[httpx.Client, list[str]], list[str]]
FULL_MATRIX = bool(os.environ.get("RPRIME_TEST_DISKS"))


def mount(folder: Path, *options: str) -> None:
    folder.mkdir(exist_ok=True)
    command = ["mount", *options, str(folder)]
    done = subprocess.run(command, capture_output=True, check=False)
    if os.geteuid() != 0 or done.returncode:
        pytest.skip("only root may mount a small file system")


@pytest.fixture
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Mount a real file system of 4 MiB: "tmpfs", or "ext4" on a loop device."""
    folder = tmp_path / "disk"
    if request.param == "tmpfs":
        mount(folder, "-t", "tmpfs", "-o", "size=4m", "tmpfs")
    else:
        image = tmp_path / "image"
        image.write_bytes(bytes(4 << 20))
        made = ["mkfs.ext4", "-q", "-b", "4096", "-m", "0", str(image)]
        subprocess.run(made, check=True, stderr=subprocess.DEVNULL)
        mount(folder, "-o", "loop,errors=remount-ro", str(image))
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)  # noqa: S607 - of the system


def fill_rest(disk: Path) -> None:
    """Let another program take what is left, down to the last block."""
    with (disk / "ballast").open("ab", buffering=0) as ballast:
        for size in (1 << 16, 4096, 512):
            try:
                while ballast.write(b"x" * size):
                    pass
            except OSError:
                continue


def store_until_full(client: httpx.Client) -> list[str]:
    """Store until three in a row are refused; return the ids of the others."""
    ids, refused, number = [], 0, 0
    while refused < 3:
        number += 1
        answer = client.post("/evaluate", json=labels(number, version=str(number)))
        if answer.status_code == 201:
            ids.append(answer.json()["id"])
            refused = 0
            continue
        assert (answer.status_code, answer.json()["code"]) == (507, "store_full")
        refused += 1
    return ids


def state(client: httpx.Client) -> str:
    answer = client.get("/readyz")
    assert answer.status_code == 200, answer.text
    value: str = answer.json()["store"]
    assert f'rprime_store_state{{state="{value}"}} 1.0' in client.get("/metrics").text
    return value


def works_besides_storing(client: httpx.Client, ids: list[str]) -> None:
    assert client.post("/evaluate", json=matrix(project=None)).status_code == 200
    assert client.get(f"/v1/evaluations/{ids[0]}").status_code == 200
    assert client.get("/v1/projects/pets/trend?index=accuracy").status_code == 200
    assert client.get("/v1/projects").json()["items"][0]["evaluations"] == len(ids)


def lost(client: httpx.Client, ids: list[str]) -> list[str]:
    return [i for i in ids if client.get(f"/v1/evaluations/{i}").status_code != 200]


def mend_by_purge(client: httpx.Client, ids: list[str]) -> list[str]:
    answer = client.post("/v1/projects/pets/purge", json={"keep_last": 5})
    assert answer.status_code == 200, answer.text
    assert answer.json()["deleted"] == len(ids) - 5
    return ids[-5:]


def mend_by_deletion(client: httpx.Client, ids: list[str]) -> list[str]:
    for identifier in ids[:-5]:
        answer = client.delete(f"/v1/evaluations/{identifier}")
        assert answer.status_code == 204, answer.text
    return ids[-5:]


def mend_by_deletion_of_the_project(client: httpx.Client, ids: list[str]) -> list[str]:
    alias = client.put(
        "/v1/projects/pets/aliases/champion",
        json={"evaluation": ids[0]},
        headers={"If-None-Match": "*"},
    )
    assert alias.status_code in {201, 507}
    answer = client.delete("/v1/projects/pets")
    assert answer.status_code == 204, answer.text
    return []


MENDS = (mend_by_purge, mend_by_deletion, mend_by_deletion_of_the_project)
ENDS = (None, signal.SIGTERM, signal.SIGKILL)
CASES = [
    ("tmpfs", mend_by_purge, None),
    ("tmpfs", mend_by_deletion_of_the_project, signal.SIGKILL),
    ("ext4", mend_by_deletion, signal.SIGTERM),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("disk", "mend", "end"),
    list(product(("tmpfs", "ext4"), MENDS, ENDS)) if FULL_MATRIX else CASES,
    indirect=["disk"],
)
def test_a_full_disk_is_mended_through_the_service(
    disk: Path, tmp_path: Path, mend: Mend, end: signal.Signals | None
) -> None:
    path = disk / "r.db"
    with serving(path, tmp_path / "log") as service:
        ids = service.keep(range(100))
        fill_rest(disk)
        ids += store_until_full(service.client)
        assert state(service.client) == "full"
        assert 'rprime_store_failures_total{cause="full"}' in service.client.get("/metrics").text
        works_besides_storing(service.client, ids)
        if end is None:
            mended(service, mend(service.client, ids))
            return
        service.end(end)
    fill_rest(disk)
    with serving(path, tmp_path / "second.log") as service:
        works_besides_storing(service.client, ids)
        assert lost(service.client, ids) == []
        mended(service, mend(service.client, ids))


def mended(service: Service, ids: list[str]) -> None:
    ids = ids + service.keep(range(20))
    assert state(service.client) == "ok"
    assert lost(service.client, ids) == []


def take_room(path: Path) -> None:
    """Remove what a store keeps of the room for deletions, as an operator might."""
    path.with_name("r.db-reserve").unlink()


@pytest.mark.parametrize("disk", ["tmpfs"], indirect=True)
def test_a_disk_without_any_room_at_the_start_takes_nothing_else_down(
    disk: Path, tmp_path: Path
) -> None:
    path = disk / "r.db"
    with serving(path, tmp_path / "log") as service:
        ids = service.keep(range(10))
        service.end(signal.SIGTERM)
    assert (disk / "r.db-reserve").stat().st_size <= 512 * 1024
    take_room(path)
    fill_rest(disk)
    with serving(path, tmp_path / "second.log") as service:
        assert service.client.get("/readyz").status_code == 503
        assert service.client.post("/evaluate", json=matrix(project=None)).status_code == 200
        (disk / "ballast").unlink()
        wait_until(lambda: service.client.get("/readyz").status_code == 200)
        assert lost(service.client, ids) == []
        service.keep(range(10, 12))


@pytest.mark.parametrize("disk", ["ext4"], indirect=True)
def test_a_disk_that_becomes_read_only_is_told(disk: Path, tmp_path: Path) -> None:
    with serving(disk / "r.db", tmp_path / "log") as service:
        ids = service.keep(range(10))
        # What the kernel does itself when the disk fails.
        aborted = ["mount", "-o", "remount,abort", str(disk)]
        subprocess.run(aborted, check=True)
        for _ in range(2):
            answer = service.post(99)
            assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
        assert state(service.client) == "read_only"
        works_besides_storing(service.client, ids)
        assert {line["error"] for line in failures(tmp_path / "log")} == {"SQLITE_IOERR_WRITE"}


FAILING_WRITES = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
/* A write to a file of the store fails with the number that the file FAILS_WITH holds. */
static int fails(int fd) {
    char path[4096], name[64];
    int number = 0;
    FILE *given = fopen(getenv("FAILS_WITH"), "r");
    if (given == NULL) return 0;
    if (fscanf(given, "%d", &number) != 1) number = 0;
    fclose(given);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(name, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    if (strstr(path, "/r.db") == NULL) return 0;
    errno = number;
    return number;
}
ssize_t write(int fd, const void *data, size_t size) {
    return fails(fd) ? -1 : syscall(SYS_write, fd, data, size);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t place) {
    return fails(fd) ? -1 : syscall(SYS_pwrite64, fd, data, size, place);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t place) {
    return pwrite64(fd, data, size, place);
}
"""


@pytest.fixture(scope="module")
def failing(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[httpx.Client, Path]]:
    """Serve a store whose writes fail with the number that a file holds, while it is there."""
    folder = tmp_path_factory.mktemp("failing")
    fails_with = folder / "number"
    settings = {
        "RPRIME_STORE": f"sqlite:///{folder}/r.db",
        "LD_PRELOAD": str(compiled(FAILING_WRITES, folder)),
        "FAILS_WITH": str(fails_with),
    }
    with serve(**settings) as client:
        yield client, fails_with


@pytest.mark.parametrize(
    ("number", "status", "told"),
    [
        (errno.ENOSPC, 507, "full"),
        (errno.EDQUOT, 507, "full"),
        (errno.EFBIG, 507, "full"),
        (errno.EROFS, 503, "read_only"),
        (errno.EIO, 503, "unavailable"),
    ],
    ids=errno.errorcode.get,
)
def test_each_error_of_the_disk_is_told(
    failing: tuple[httpx.Client, Path], number: int, status: int, told: str
) -> None:
    client, fails_with = failing
    kept = [client.post("/evaluate", json=matrix()).json()["id"]]
    try:
        fails_with.write_text(str(number))
        code = "store_full" if status == 507 else "store_unavailable"
        for version in "ab":
            answer = client.post("/evaluate", json=matrix(version=version))
            assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert state(client) == told
        works_besides_storing(client, kept)
    finally:
        fails_with.unlink()
    answer = client.post("/evaluate", json=matrix(version="c"))
    assert answer.status_code == 201
    assert state(client) == "ok"
    assert not list(fails_with.parent.glob("*-trial"))
    assert client.delete("/v1/projects/pets").status_code == 204


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs prlimit of Linux")
def test_a_limit_of_the_file_size_is_told_and_mended_by_a_purge(
    serve: Serve, processes: dict[int, int], tmp_path: Path
) -> None:
    with serve(RPRIME_STORE=f"sqlite:///{tmp_path}/r.db") as client:
        process = processes[client.base_url.port or 0]
        resource.prlimit(process, resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        ids = store_until_full(client)
        assert state(client) == "full"
        works_besides_storing(client, ids)
        kept = mend_by_purge(client, ids)
        assert client.post("/evaluate", json=labels(0, version="new")).status_code == 201
        assert (state(client), lost(client, kept)) == ("ok", [])


def failures(log: Path) -> list[dict[str, str]]:
    lines = map(json.loads, log.read_text().splitlines())
    return [line for line in lines if line["event"] == "store_failed"]


def test_a_foreign_lock_is_waited_for_once(serve: Serve, tmp_path: Path) -> None:
    path, log = tmp_path / "r.db", tmp_path / "log"
    waits = 3.0  # twice that is far from it, on a busy machine too
    settings = {"RPRIME_STORE": f"sqlite:///{path}", "RPRIME_STORE_LOCK_SECONDS": str(waits)}
    with serve(log=log, **settings) as client, closing(sqlite3.connect(path)) as other:
        assert client.post("/evaluate", json=matrix()).status_code == 201
        other.execute("BEGIN IMMEDIATE")

        def post(number: int) -> float:
            # Some come while the first ones wait already.
            time.sleep(number % 4 * waits / 4)
            begun = time.monotonic()
            with httpx.Client(base_url=client.base_url, timeout=30, verify=NO_TLS) as alone:
                answer = alone.post("/evaluate", json=matrix(version=str(number)))
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
            return time.monotonic() - begun

        with ThreadPoolExecutor(8) as pool:
            assert max(pool.map(post, range(8))) < 1.6 * waits
        assert state(client) == "locked"
        assert {line["error"] for line in failures(log)} == {"SQLITE_BUSY"}
        other.rollback()
        wait_until(lambda: state(client) == "ok")
        assert client.post("/evaluate", json=matrix(version="new")).status_code == 201


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8 if FULL_MATRIX else 2))
def test_flipped_bits_are_never_a_missing_evaluation(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "r.db"
    with serving(path, tmp_path / "log") as service:
        ids = service.keep(range(250))
        service.end(signal.SIGTERM)
    with serving(path, tmp_path / "second.log") as service:
        assert state(service.client) == "ok"
        before = {i: service.client.get(f"/v1/evaluations/{i}").json() for i in ids[:50]}
        flip(path, random.Random(seed))  # noqa: S311 - of a test
        answers: Counter[tuple[int, str | None]] = Counter()
        for identifier in ids:
            answer = service.client.get(f"/v1/evaluations/{identifier}")
            answers[answer.status_code, answer.json().get("code")] += 1
            if answer.status_code == 200 and identifier in before:
                assert answer.json() == before[identifier]
        for ending in ("evaluations", "trend?index=accuracy", "leaderboard?index=accuracy"):
            answer = service.client.get(f"/v1/projects/pets/{ending}")
            answers[answer.status_code, answer.json().get("code")] += 1
        assert set(answers) == {(200, None), (500, "store_damaged")}
        answer = service.client.get("/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
        assert "damaged" in answer.json()["detail"]
        assert 'rprime_store_state{state="damaged"} 1.0' in service.client.get("/metrics").text
        assert "SQLITE_CORRUPT" in {line["error"] for line in failures(tmp_path / "second.log")}
        assert service.client.post("/evaluate", json=matrix(project=None)).status_code == 200
        # What could not be read again is not acknowledged.
        for content in (matrix(version="new"), matrix(version="newer")):
            answer = service.client.post("/evaluate", json=content)
            assert (answer.status_code, answer.json()["code"]) == (500, "store_damaged")


def flip(path: Path, generator: random.Random) -> None:
    """Flip 400 bits behind the tables of the schema."""
    whole = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for _ in range(400):
            place = generator.randrange(8192, len(whole))
            file.seek(place)
            file.write(bytes([whole[place] ^ 1 << generator.randrange(8)]))


def test_lost_class_names_are_damage(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    identifier = samples.put(store, samples.evaluation()).result().id
    with store.database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM shared")
    with pytest.raises(StoreDamagedError):
        store.get(identifier)
    with pytest.raises(StoreDamagedError):
        list(store.tables("animals"))
    store.close()


PRIMARY_KEY = "sqlite_autoindex_evaluations_1"


def index_page(path: Path, index: str = PRIMARY_KEY) -> slice:
    """Return where the root of an index is; three rows fit into it."""
    with closing(sqlite3.connect(path)) as connection:
        [root] = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?", (index,)
        ).fetchone()
    return slice((root - 1) * 4096, root * 4096)


def three_rows(path: Path) -> list[str]:
    store = open_store(f"sqlite:///{path}")
    ids = [samples.put(store, samples.evaluation(number)).result().id for number in range(3)]
    store.close()
    return ids


def lead_astray(path: Path, index: str, identifier: str, between: bytes = b"") -> None:
    """Flip a bit of the row number behind an id in an index, so that rows 2 and 3 are confused."""
    place = index_page(path, index)
    content = bytearray(path.read_bytes())
    before = identifier.encode() + between
    number = place.start + content[place].index(before) + len(before)
    assert content[number] in {2, 3}
    content[number] ^= 1
    path.write_bytes(content)


def test_a_row_that_the_primary_key_finds_for_another_id_is_damage(path: Path) -> None:
    [other, identifier, _] = three_rows(path)
    lead_astray(path, PRIMARY_KEY, identifier)
    store = open_store(f"sqlite:///{path}")
    assert store.get(other).id == other
    for use in (store.get, store.delete):
        with pytest.raises(StoreDamagedError):
            use(identifier)
    with pytest.raises(StoreDamagedError):
        list(store.export())
    assert store.count("animals") == 3
    store.close()


def test_a_row_that_a_list_finds_for_another_id_is_damage(path: Path) -> None:
    [_, _, identifier] = three_rows(path)
    lead_astray(path, "evaluations_filters", identifier, b"1.2")
    store = open_store(f"sqlite:///{path}")
    latest = BaselineQuery("latest", "")
    uses: tuple[Callable[[], object], ...] = (
        lambda: store.page("animals"),
        lambda: list(store.tables("animals")),
        lambda: store.baseline(Candidate("animals"), latest),
    )
    for use in uses:
        with pytest.raises(StoreDamagedError):
            use()
    store.close()


def test_an_id_that_the_primary_key_does_not_find_is_damage(path: Path) -> None:
    [_, identifier, other] = three_rows(path)
    place = index_page(path)
    content = bytearray(path.read_bytes())
    # The last letter, so that the other keys are found.
    content[place.start + content[place].index(identifier.encode()) + 25] ^= 1
    path.write_bytes(content)
    store = open_store(f"sqlite:///{path}")
    assert store.get(other).id == other
    with pytest.raises(StoreDamagedError):
        store.get(identifier)
    store.close()


@pytest.mark.parametrize("beside", [(), ("-wal", "-shm", "-reserve")])
def test_an_empty_file_where_a_store_was_is_refused(
    path: Path, beside: tuple[str, ...], rprime: Run
) -> None:
    path.touch()
    for ending in beside:
        path.with_name(path.name + ending).write_bytes(b"kept")
    with pytest.raises(StoreEmptyError, match=r"Restore a backup; or remove it"):
        open_store(f"sqlite:///{path}")
    refused = rprime("serve", "--port", "0", RPRIME_STORE=f"sqlite:///{path}")
    assert refused.returncode == 2
    assert f"{path} is empty" in refused.stderr
    assert all(path.with_name(path.name + ending).exists() for ending in beside)
    path.unlink()
    for ending in beside:
        path.with_name(path.name + ending).unlink()
    open_store(f"sqlite:///{path}").close()


def test_a_start_that_fails_leaves_no_empty_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreFullError("full")

    monkeypatch.setattr(sqlite, "_engine", fail)
    with pytest.raises(StoreFullError):
        open_store(f"sqlite:///{path}")
    assert not path.exists()


def test_any_other_error_of_sqlite_is_told_and_logged(serve: Serve, tmp_path: Path) -> None:
    path, log = tmp_path / "r.db", tmp_path / "log"
    with serve(log=log, RPRIME_STORE=f"sqlite:///{path}") as client:
        assert client.post("/evaluate", json=matrix()).status_code == 201
        with closing(sqlite3.connect(path)) as other:
            other.execute("DROP TABLE aliases")
        answer = client.get("/v1/projects/pets/aliases")
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
        assert {line["error"] for line in failures(log)} == {"SQLITE_ERROR"}
