"""Stores on real databases: every test that asks for `store` runs on SQLite and on PostgreSQL."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, make_url, text

from rprime.store import Store, open_store

_INSTALL = "PostgreSQL 15 or newer is missing: run `sh .ci/postgres`, or install `postgresql`"
_NUMBERS = count()
on_sqlite = pytest.mark.parametrize(
    "url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
"""For what no database decides: on PostgreSQL only among the slow tests."""
_HOMES = ("/usr/lib/postgresql", "/usr/pgsql-*", "/opt/homebrew/opt", "/usr/local/opt")


def _programs() -> Path | None:
    """Find the folder of initdb: in PATH, or where Debian, Fedora and Homebrew keep it."""
    program = shutil.which("initdb")
    if program:
        return Path(program).resolve().parent
    places = [place for home in _HOMES for place in Path("/").glob(f"{home[1:]}/**/bin/initdb")]
    return max(places, key=_version).parent if places else None


def _version(program: Path) -> int:
    """Return the version in a path such as /usr/lib/postgresql/15/bin/initdb."""
    match = re.search(r"\d+", str(program))
    return int(match[0]) if match else 0


def _run(folder: Path, *command: Path | str) -> None:
    """Run a program of the server; it refuses root, so nobody does it then."""
    user = "nobody" if os.geteuid() == 0 else None
    subprocess.run(command, cwd=folder, user=user, stdout=subprocess.DEVNULL, check=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for PostgreSQL, by a fixture or by the parameter of `url`."""
    for item in items:
        fixtures: list[str] = getattr(item, "fixturenames", [])
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if "postgresql_server" in fixtures or parameters.get("url") == "postgresql":
            item.add_marker(pytest.mark.postgresql)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[URL]:
    """Start a server in a temporary folder; give the URL of its maintenance database."""
    programs = _programs()
    if programs is None:
        if os.environ.get("CI_RUN"):
            pytest.fail(_INSTALL)
        pytest.skip(_INSTALL)
    # Not under pytest's folder, which only its owner may enter.
    with tempfile.TemporaryDirectory(prefix="rprime-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
        yield from _serve(programs, folder)


def _serve(programs: Path, folder: Path) -> Iterator[URL]:
    data = folder / "data"
    identity = ("-U", "rprime", "-A", "trust", "-N", "-E", "UTF8")
    _run(folder, programs / "initdb", "-D", data, *identity)
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    control = (programs / "pg_ctl", "-D", data, "-w")
    _run(folder, *control, "-l", folder / "log", "-o", options, "start")
    try:
        yield URL.create(
            "postgresql+psycopg", "rprime", database="postgres", query={"host": str(folder)}
        )
    finally:
        _run(folder, *control, "-m", "immediate", "stop")


@pytest.fixture(scope="session")
def used_databases() -> list[str]:
    """Return the names of databases that tests used and left empty."""
    return []


@pytest.fixture
def make_database(postgresql_server: URL, used_databases: list[str]) -> Iterator[Callable[[], str]]:
    """Return URLs of empty databases; to empty a used one is faster than to make one."""
    names = []

    def make() -> str:
        names.append(used_databases.pop() if used_databases else _new_database(postgresql_server))
        return postgresql_server.set(database=names[-1]).render_as_string(hide_password=False)

    yield make
    for name in names:
        _run_sql(
            postgresql_server.set(database=name),
            "DROP SCHEMA public CASCADE",
            "CREATE SCHEMA public",
        )
    used_databases.extend(names)


def _new_database(server: URL) -> str:
    name = f"store_{next(_NUMBERS)}"
    _run_sql(server, f"CREATE DATABASE {name}")
    return name


def _run_sql(url: URL, *statements: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


@pytest.fixture
def postgresql_url(make_database: Callable[[], str]) -> str:
    """Return the URL of an empty database."""
    return make_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a store that is not there yet, on each database in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/rprime.db"
    made: str = request.getfixturevalue("postgresql_url")
    return made


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Open an empty store, on each database in turn."""
    opened = open_store(url)
    yield opened
    opened.close()


@pytest.fixture
def other_store(url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Store]:
    """Open a second empty store on the same kind of database."""
    if make_url(url).get_backend_name() == "sqlite":
        opened = open_store(f"sqlite:///{tmp_path}/other.db")
    else:
        opened = open_store(request.getfixturevalue("make_database")())
    yield opened
    opened.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a SQLite store that is not there yet."""
    return tmp_path / "rprime.db"
