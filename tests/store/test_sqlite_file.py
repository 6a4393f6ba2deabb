"""A real service on a real file that is removed, replaced or opened under another name."""

import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.forked_command import Process, start
from tests.history_service import matrix
from tests.services import NO_TLS, RPRIME, environment

Run = Callable[..., subprocess.CompletedProcess[str]]


class Service:
    """A service on a store, which a test may end as it likes."""

    def __init__(self, process: Process, log: Path) -> None:
        self.process = process
        self.log = log
        assert process.stdout is not None
        address = process.stdout.readline().split()[3].rstrip(",")
        self.client = httpx.Client(base_url=address, timeout=30, verify=NO_TLS)

    def post(self, number: int) -> httpx.Response:
        content = matrix(number % 40, version=str(number))
        return self.client.post("/v1/evaluate", json=content)

    def keep(self, numbers: range) -> list[str]:
        answers = [self.post(number) for number in numbers]
        assert {answer.status_code for answer in answers} == {201}
        return [answer.json()["id"] for answer in answers]

    def lost(self, ids: list[str]) -> list[str]:
        return [i for i in ids if self.client.get(f"/v1/evaluations/{i}").status_code != 200]

    def end(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        status = self.process.wait(timeout=30)
        assert status == (0 if how is signal.SIGTERM else -how)

    def moved(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if "store_moved" in line]


@contextmanager
def serving(path: Path, log: Path) -> Iterator[Service]:
    with (
        log.open("a") as stderr,
        start(
            *(RPRIME, "serve", "--port", "0"),
            env=environment(RPRIME_STORE=f"sqlite:///{path}"),
            stderr=stderr,
        ) as process,
    ):
        try:
            service = Service(process, log)
            with service.client:
                yield service
        finally:
            process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "store"
    made.mkdir()
    return made


def refused(service: Service) -> None:
    """Expect that every write is refused, that it is not ready, and one line in the log."""
    answers = [service.post(number) for number in range(900, 905)]
    assert {answer.status_code for answer in answers} == {503}
    assert {answer.headers["retry-after"] for answer in answers} == {"5"}
    assert "removed or replaced" in answers[0].json()["detail"]
    assert str(service.log.parent) not in answers[0].text
    assert service.client.get("/readyz").status_code == 503
    assert service.client.get("/livez").status_code == 200
    evaluated = service.client.post("/v1/evaluate", json=matrix(project=None))
    assert evaluated.status_code == 200
    [line] = service.moved()
    assert "top the service" in line
    assert str(service.log.parent) in line
    assert "store_failed" not in service.log.read_text()


def delete_wal(path: Path, _: Path) -> None:
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink()


def restore(path: Path, backup: Path) -> None:
    backup.replace(path)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("happens", [delete_wal, restore])
def test_a_file_that_is_gone_takes_no_evaluation(
    folder: Path,
    tmp_path: Path,
    rprime: Run,
    happens: Callable[[Path, Path], None],
    how: signal.Signals,
) -> None:
    path, backup = folder / "r.db", folder / "backup.db"
    with serving(path, tmp_path / "log") as service:
        ids = service.keep(range(20))
        url = f"sqlite:///{path}"
        copied = rprime("backup", str(backup), RPRIME_STORE=url)
        assert copied.returncode == 0, copied.stderr
        happens(path, backup)
        refused(service)
        service.end(how)
    with serving(path, tmp_path / "second.log") as service:
        assert service.lost(ids) == []
        assert service.client.get("/readyz").status_code == 200
        service.keep(range(20, 22))


def test_a_folder_that_is_gone_takes_no_evaluation(folder: Path, tmp_path: Path) -> None:
    path = folder / "r.db"
    with serving(path, tmp_path / "log") as service:
        ids = service.keep(range(20))
        shutil.rmtree(folder)
        refused(service)
        # As the log says: first, since the file ends with the service.
        told = service.moved()[0]
        assert told.index("First copy") < told.index("Then stop the service")
        saved = tmp_path / "saved.db"
        shutil.copy(told.partition("First copy ")[2].partition(",")[0], saved)
        service.end(signal.SIGTERM)
    with serving(saved, tmp_path / "second.log") as service:
        assert service.lost(ids) == []


def test_a_start_without_the_file_of_a_wal_begins_no_empty_store(
    folder: Path, tmp_path: Path, rprime: Run
) -> None:
    path = folder / "r.db"
    with serving(path, tmp_path / "log") as service:
        service.keep(range(3))
        path.unlink()
        refused(service)
        service.end(signal.SIGTERM)
    done = rprime("serve", "--port", "0", RPRIME_STORE=f"sqlite:///{path}")
    assert done.returncode == 2
    assert "r.db is gone, and its WAL is not." in done.stderr
    assert not path.exists()


def test_the_very_same_file_may_come_back(folder: Path, tmp_path: Path) -> None:
    path, away = folder / "r.db", folder / "away.db"
    with serving(path, tmp_path / "log") as service:
        ids = service.keep(range(5))
        path.rename(away)
        refused(service)
        shutil.copy(away, path)
        assert service.post(6).status_code == 503
        away.replace(path)
        ids += service.keep(range(10, 15))
        assert service.client.get("/readyz").status_code == 200
        assert "store_returned" in service.log.read_text()
        service.end(signal.SIGKILL)
    with serving(path, tmp_path / "second.log") as service:
        assert service.lost(ids) == []


def test_a_symbolic_link_that_points_elsewhere_is_noticed(folder: Path, tmp_path: Path) -> None:
    path, link = folder / "r.db", folder / "link.db"
    link.symlink_to(path)
    with serving(link, tmp_path / "log") as service:
        service.keep(range(3))
        link.unlink()
        link.symlink_to(folder / "other.db")
        refused(service)


def by_symbolic_link(path: Path) -> Path:
    link = path.with_name("symbolic.db")
    link.symlink_to(path)
    return link


def by_folder_link(path: Path) -> Path:
    link = path.parent.with_name("other")
    link.symlink_to(path.parent)
    return link / path.name


def by_hard_link(path: Path) -> Path:
    link = path.with_name("hard.db")
    link.hardlink_to(path)
    return link


def without_lock_file(path: Path) -> Path:
    path.with_name(path.name + ".lock").unlink(missing_ok=True)
    return path


@pytest.mark.parametrize(
    "otherwise", [by_symbolic_link, by_folder_link, by_hard_link, without_lock_file]
)
def test_a_file_under_another_name_is_the_same_file(
    folder: Path, tmp_path: Path, rprime: Run, otherwise: Callable[[Path], Path]
) -> None:
    path = folder / "r.db"
    with serving(path, tmp_path / "log") as service:
        ids = service.keep(range(3))
        other = otherwise(path)
        for _ in range(2):
            done = rprime("serve", "--port", "0", RPRIME_STORE=f"sqlite:///{other}")
            assert done.returncode == 2, done.stdout
            last = done.stderr.splitlines()[-1]
            assert f"Another process, with the id {service.process.pid}, uses {other}." in last
        exported = rprime("export", RPRIME_STORE=f"sqlite:///{path}")
        assert exported.returncode == 0, exported.stderr
        assert exported.stdout.count('{"evaluation":') == 3
        ids += service.keep(range(3, 6))
        service.end(signal.SIGKILL)
    # Nothing stays locked by a process that is gone.
    with serving(path, tmp_path / "second.log") as service:
        assert service.lost(ids) == []
        assert not path.with_name("r.db.lock").exists()
