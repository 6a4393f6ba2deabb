import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import structlog
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from rprime.store import (
    DatabaseOptions,
    NewEvaluation,
    StoreError,
    StoreMissingError,
    StoreUnavailableError,
    open_store,
    sqlite,
)
from rprime.store.errors import (
    StoreAccessError,
    StoreDamagedError,
    StoreForeignError,
    StoreInUseError,
    StoreLockedError,
    StoreNewerError,
    StoreOutdatedError,
    StoreUrlError,
    refusal_state,
    translated,
)
from rprime.store.schema import SCHEMA_VERSION, check_version, keep_out_writers
from tests.history_service import ServeApp, keeping, matrix
from tests.store import samples

SCHEMAS = Path(__file__).parent / "schemas"


def made(path: Path, number: int = 5) -> list[NewEvaluation]:
    """Make a SQLite store with some evaluations."""
    store = open_store(f"sqlite:///{path}")
    evaluations = [samples.evaluation(i) for i in range(number)]
    for new in evaluations:
        samples.put(store, new).result()
    store.close()
    return evaluations


def test_a_store_is_found_again_as_it_was(url: str) -> None:
    store = open_store(url)
    evaluation = samples.evaluation()
    samples.put(store, evaluation).result()
    store.close()
    again = open_store(url)
    assert again.get(evaluation.id).version == evaluation.version
    again.check()
    again.close()


def declared(path: Path) -> dict[str, list[str]]:
    """Return the statements that made tables and indexes, each as its parts in any order."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
        return {name: sorted(re.split(r",\s+", sql)) for name, sql in rows}


def test_a_file_of_schema_2_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rprime.db"
    shutil.copy(SCHEMAS / "schema_2.db", path)
    store = open_store(f"sqlite:///{path}")
    [project] = store.projects()
    assert (project.name, project.evaluations, project.badge_public) == ("animals", 3, True)
    assert not project.keeps_slices
    main = store.get(store.alias("animals", "main").evaluation)
    assert (main.labels, main.version, main.verdict) == (samples.LABELS, "1.0", "pass")
    assert samples.same_table(main.table, samples.table(0))
    assert main.gate == b'{"verdict":"pass","max_looks":null,"undecided":0}'
    assert [(c.evaluation, c.by) for c in store.alias_changes("animals", "main")] == [
        (main.id, "ci")
    ]
    kept = store.items(main.id)
    assert kept is not None
    assert samples.same_items(kept, samples.kept_items())
    assert samples.same_slices(samples.slices(), store.slices(main))
    sparse = store.page("animals").items[0]
    assert samples.same_table(store.get(sparse.id).table, samples.sparse_table())
    assert store.looks("animals", samples.FINGERPRINT) == 2
    assert samples.put(store, samples.evaluation(9)).result().created
    store.close()
    open_store(f"sqlite:///{tmp_path}/new.db").close()
    assert declared(path) == declared(tmp_path / "new.db")


def test_a_newer_store_is_refused(url: str) -> None:
    open_store(url).close()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE rprime_version SET version_num = '99'"))
    engine.dispose()
    with pytest.raises(StoreNewerError, match=r"99.*install the newer rprime"):
        open_store(url)


def set_version(url: str, number: str) -> None:
    """Change the version of the tables, as another rprime does that migrates them."""
    engine = create_engine(url)
    with engine.begin() as connection:
        statement = text("UPDATE rprime_version SET version_num = :number")
        connection.execute(statement, {"number": number})
    engine.dispose()


def test_a_running_store_writes_to_no_other_version_of_the_tables(url: str) -> None:
    store = open_store(url)
    first = samples.evaluation(1)
    samples.put(store, first).result()
    for number, refusal in (("99", StoreNewerError), ("1", StoreOutdatedError)):
        set_version(url, number)
        with pytest.raises(refusal, match=f"version {number} of the tables"):
            samples.put(store, samples.evaluation(2)).result()
        with pytest.raises(refusal):
            store.delete(first.id)
        assert store.get(first.id).version == first.version
        assert store.check() == "unavailable"
    assert store.count("animals") == 1
    set_version(url, str(SCHEMA_VERSION))
    assert samples.put(store, samples.evaluation(2)).result().created
    assert store.check() == "ok"
    store.close()


def test_a_client_is_told_that_the_replica_is_too_old(
    serve_app: ServeApp, tmp_path: Path, url: str
) -> None:
    with keeping(serve_app, tmp_path, store=url) as client:
        assert client.post("/v1/evaluate", json=matrix()).status_code == 201
        set_version(url, "99")
        refused = client.post("/v1/evaluate", json=matrix(6))
        assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
        assert "install the newer rprime here" in refused.json()["detail"]
        assert client.get("/v1/projects").json()["items"][0]["evaluations"] == 1


def test_on_postgresql_a_migration_waits_for_writers_and_keeps_them_out(
    postgresql_url: str,
) -> None:
    store = open_store(postgresql_url, options=DatabaseOptions(lock_seconds=0.2))
    engine = create_engine(postgresql_url)
    with engine.connect() as writer, engine.connect() as migration:
        check_version(writer)
        migration.execute(text("SET lock_timeout = 100"))
        with pytest.raises(OperationalError, match="lock timeout"):
            keep_out_writers(migration)
        migration.rollback()
        writer.rollback()
        keep_out_writers(migration)
        with pytest.raises(StoreLockedError):
            samples.put(store, samples.evaluation()).result()
        assert store.count("animals") == 0
        migration.rollback()
    engine.dispose()
    assert samples.put(store, samples.evaluation()).result().created
    store.close()


@pytest.mark.parametrize("number", ["", "two", "2.0"])
def test_a_version_that_no_rprime_writes_is_foreign(url: str, number: str) -> None:
    open_store(url).close()
    set_version(url, number)
    with pytest.raises(StoreForeignError, match="rprime_version holds a version"):
        open_store(url)


def test_tables_of_another_program_are_left_alone(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE evaluations (id TEXT)"))
    engine.dispose()
    with pytest.raises(StoreForeignError):
        open_store(url)
    engine = create_engine(url)
    with engine.begin() as connection:
        assert connection.execute(text("SELECT * FROM evaluations")).all() == []
    engine.dispose()


def test_on_postgresql_other_tables_may_stand_beside_ours(postgresql_url: str) -> None:
    engine = create_engine(postgresql_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num TEXT)"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('theirs')"))
    for number in range(2):
        store = open_store(postgresql_url)
        samples.put(store, samples.evaluation(number)).result()
        assert store.count("animals") == number + 1
        store.close()
    with engine.connect() as connection:
        theirs = connection.scalars(text("SELECT version_num FROM alembic_version")).all()
    engine.dispose()
    assert theirs == ["theirs"]


@pytest.mark.parametrize("content", [b"PK\x03\x04 not a database" * 100, b"SQLite format 4\0"])
def test_a_file_of_another_kind_is_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreForeignError, match="not a SQLite file"):
        open_store(f"sqlite:///{path}")
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_a_database_of_another_program_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(StoreForeignError, match="another program"):
        open_store(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_damaged_file_is_refused_with_the_way_to_mend_it(path: Path) -> None:
    made(path, 300)
    content = bytearray(path.read_bytes())
    for start in range(8192, len(content), 4096):
        content[start : start + 200] = b"\xff" * 200
    path.write_bytes(content)
    with pytest.raises(StoreDamagedError, match=r"restore a backup.*\.recover"):
        open_store(f"sqlite:///{path}")


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("sound", "damaged"),
    [
        (b"CREATE TABLE aliases", b"CREATE\xa0TABLE aliases"),
        (b"CREATE TABLE looks", b"CREATE TA\xcbLE looks"),
        (b"evaluations_filters ON evaluations", b"evaluations_filters ON evaluati\xefns"),
    ],
)
def test_a_damaged_schema_is_refused_whatever_sqlite_says_of_it(
    path: Path, sound: bytes, damaged: bytes, *, read_only: bool
) -> None:
    made(path)
    content = path.read_bytes()
    assert sound in content
    path.write_bytes(content.replace(sound, damaged))
    with pytest.raises(StoreDamagedError, match="restore a backup"):
        open_store(f"sqlite:///{path}", read_only=read_only)


def test_a_truncated_file_is_refused(path: Path) -> None:
    made(path, 300)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 // 4096 * 4096)
    with pytest.raises(StoreDamagedError):
        open_store(f"sqlite:///{path}")


def test_a_refused_file_is_not_held(path: Path) -> None:
    path.write_bytes(b"not a database")
    for _ in range(2):
        with pytest.raises(StoreForeignError):
            open_store(f"sqlite:///{path}")


@pytest.mark.parametrize("state", ["26000", "42P05"])
def test_a_pooler_is_named_by_the_errors_that_it_causes(state: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    cause = psycopg.errors.lookup(state)("prepared statement")
    with pytest.raises(StoreAccessError, match="pooler") as caught, translated():
        raise ProgrammingError("SELECT 1", {}, cause)
    assert (caught.value.cause, "pooler" in caught.value.text) == ("unavailable", True)
    message = "connection failed: FATAL: unsupported startup parameter: options"
    assert refusal_state(message) == "08P01"


def test_a_second_opening_is_refused_and_told_about_postgresql(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    with pytest.raises(StoreInUseError, match=r"Another process.*PostgreSQL"):
        open_store(f"sqlite:///{path}")
    second = (
        "import sys; from rprime.store.errors import *; from rprime.store import open_store\n"
        "try: open_store(sys.argv[1])\n"
        "except StoreInUseError: sys.exit(9)"
    )
    process = subprocess.run(
        [sys.executable, "-c", second, f"sqlite:///{path}"], check=False, capture_output=True
    )
    assert process.returncode == 9, process.stderr
    store.close()
    open_store(f"sqlite:///{path}").close()


def test_a_store_is_read_and_copied_beside_the_process_that_serves_it(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    evaluation = samples.evaluation()
    samples.put(store, evaluation).result()
    beside = open_store(f"sqlite:///{path}", read_only=True)
    assert beside.get(evaluation.id).version == evaluation.version
    beside.backup(path.with_name("copy.db"))
    assert len(list(beside.export())) == 3
    with pytest.raises(StoreError, match="reading only"):
        samples.put(beside, samples.evaluation())
    with pytest.raises(StoreError, match="reading only"):
        beside.delete(evaluation.id)
    beside.close()
    assert samples.put(store, samples.evaluation(1)).result().created
    store.close()
    copy = open_store(f"sqlite:///{path.with_name('copy.db')}")
    assert copy.get(evaluation.id).version == evaluation.version
    copy.close()


def test_a_store_that_nobody_serves_is_read(path: Path) -> None:
    evaluations = made(path)
    store = open_store(f"sqlite:///{path}", read_only=True)
    assert store.get(evaluations[0].id).version == evaluations[0].version
    assert store.count("animals") == 5
    store.close()


def test_a_copy_does_not_overwrite(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    taken = path.with_name("copy.db")
    taken.write_text("mine")
    with pytest.raises(StoreError, match="exists already"):
        store.backup(taken)
    assert taken.read_text() == "mine"
    store.close()


def test_on_postgresql_a_copy_is_left_to_its_own_tools(postgresql_url: str, path: Path) -> None:
    store = open_store(postgresql_url)
    with pytest.raises(StoreError, match="pg_dump"):
        store.backup(path)
    store.close()


def test_reading_only_makes_nothing(path: Path) -> None:
    with pytest.raises(StoreMissingError, match="no store"):
        open_store(f"sqlite:///{path}", read_only=True)
    assert not path.exists()


def test_on_postgresql_reading_only_makes_nothing(postgresql_url: str) -> None:
    with pytest.raises(StoreOutdatedError):
        open_store(postgresql_url, read_only=True)


@pytest.mark.parametrize(
    "url",
    ["", "nonsense", "mysql://x/y", "sqlite://", "sqlite:///:memory:", "postgresql+asyncpg://x/y"],
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(StoreUrlError):
        open_store(url)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreMissingError, match="nowhere"):
        open_store(f"sqlite:///{tmp_path}/nowhere/rprime.db")


def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError):
        open_store(f"postgresql+psycopg://u@/d?host={tmp_path}")


def test_an_old_library_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(StoreOutdatedError, match=r"3\.37"):
        open_store(f"sqlite:///{path}")


@pytest.mark.parametrize(("found", "lines"), [((3, 51, 2), 1), ((3, 51, 3), 0)])
def test_a_library_with_the_wal_defect_is_logged(
    path: Path, monkeypatch: pytest.MonkeyPatch, found: tuple[int, int, int], lines: int
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", found)
    with structlog.testing.capture_logs() as logged:
        sqlite.check_library()
    assert len(logged) == lines
    assert path.parent.exists()


def test_a_locked_file_is_waited_for_then_refused(path: Path) -> None:
    made(path)
    store = open_store(f"sqlite:///{path}", options=DatabaseOptions(lock_seconds=0.2))
    with closing(sqlite3.connect(path, isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        futures = [samples.put(store, samples.evaluation(i)) for i in range(20)]
        for future in futures:
            with pytest.raises(StoreLockedError) as caught:
                future.result()
            assert caught.value.retry_after > 0
        assert store.count("animals") == 5
        stranger.execute("ROLLBACK")
    assert samples.put(store, samples.evaluation()).result().created
    store.close()


def test_on_postgresql_a_lock_is_waited_for_then_refused(postgresql_url: str) -> None:
    store = open_store(postgresql_url, options=DatabaseOptions(lock_seconds=0.2))
    engine = create_engine(postgresql_url)
    with engine.begin() as stranger:
        stranger.execute(text("LOCK TABLE evaluations IN EXCLUSIVE MODE"))
        with pytest.raises(StoreLockedError):
            samples.put(store, samples.evaluation()).result()
        assert store.check() == "locked"
        stranger.execute(text("LOCK TABLE evaluations IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(StoreLockedError):
            store.check()
    engine.dispose()
    assert store.check() == "ok"
    assert samples.put(store, samples.evaluation()).result().created
    store.close()
