"""PostgreSQL with few connections, and one that refuses the role, the password or the database."""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
from sqlalchemy import URL, make_url

from rprime.store import DatabaseOptions, StoreUnavailableError, open_store
from rprime.store.errors import StoreAccessError, StoreTimeoutError, StoreUrlError
from rprime.store.schema import metadata
from tests.command import Run
from tests.history_service import labels, matrix
from tests.services import NO_TLS, Serve
from tests.store import samples
from tests.waiting import wait_until

PASSWORD = "correct horse"  # noqa: S105 - of a server that lives as long as the test
WRONG = "not the password"


def administer(url: URL, *statements: str) -> None:
    with psycopg.connect(
        host=str(url.query["host"]), user=url.username, dbname=url.database, autocommit=True
    ) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.fixture
def few(postgresql_url: str) -> Iterator[str]:
    """Return the URL of a role that may have three connections."""
    url = make_url(postgresql_url)
    administer(
        url,
        "CREATE ROLE few LOGIN CONNECTION LIMIT 3",
        f'GRANT CREATE ON DATABASE "{url.database}" TO few',
        "GRANT ALL ON SCHEMA public TO few",
    )
    yield url.set(username="few").render_as_string()
    administer(url, "DROP OWNED BY few", "DROP ROLE few")


@pytest.fixture
def guarded(postgresql_url: str) -> Iterator[URL]:
    """Return the URL of a role that needs a password."""
    url = make_url(postgresql_url)
    rules = Path(str(url.query["host"])) / "data" / "pg_hba.conf"
    before = rules.read_text()
    administer(url, f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'")
    rules.write_text(f"local all guarded scram-sha-256\n{before}")
    administer(url, "SELECT pg_reload_conf()")
    yield url.set(username="guarded", password=PASSWORD)
    rules.write_text(before)
    administer(url, "SELECT pg_reload_conf()", "DROP OWNED BY guarded", "DROP ROLE guarded")


@contextmanager
def without_connections(url: str) -> Iterator[None]:
    """End all connections of the role few, and allow no other."""
    owner = make_url(url).set(username="rprime")
    administer(
        owner,
        "ALTER ROLE few CONNECTION LIMIT 0",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'few'",
    )
    yield
    administer(owner, "ALTER ROLE few CONNECTION LIMIT 3")


def states(client: httpx.Client) -> set[str]:
    """Return the states that the metrics show."""
    return set(re.findall(r'rprime_store_state\{state="(\w+)"\} 1', client.get("/metrics").text))


def test_without_a_connection_all_get_their_answer_in_time_with_the_cause(
    serve: Serve, few: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    limits = {"RPRIME_STORE_LOCK_SECONDS": "0.5", "RPRIME_STORE_CONNECTIONS": "2"}
    with serve(log=log, RPRIME_STORE=few, **limits) as client:
        assert client.post("/evaluate", json=matrix()).status_code == 201

        def ask(number: int) -> tuple[int, float]:
            with httpx.Client(base_url=client.base_url, timeout=30, verify=NO_TLS) as alone:
                begun = time.monotonic()
                if number % 3 == 0:
                    answer = alone.get("/v1/projects")
                else:
                    answer = alone.post("/evaluate", json=matrix(version=str(number)))
                return answer.status_code, time.monotonic() - begun

        with without_connections(few), ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(ask, range(12)))
            ready = client.get("/readyz")
            assert states(client) == {"unavailable"}
        assert {status for status, _ in answers} == {503}
        # At most two seconds for a thread of the store (`wait_seconds`), then the lock; a pool
        # without a limit of its own would wait for 30 seconds.
        assert max(seconds for _, seconds in answers) < 10
        assert (ready.status_code, ready.json()["code"]) == (503, "store_unavailable")
        expected = "State of the store: `unavailable`. The server allows no further connection."
        assert ready.json()["detail"] == expected
        wait_until(lambda: client.get("/readyz").json().get("store") == "ok")
        assert states(client) == {"ok"}
        assert client.post("/evaluate", json=matrix(7)).status_code == 201
    failures = [json.loads(line) for line in log.read_text().splitlines() if "store_failed" in line]
    assert {line["error"] for line in failures} == {"53300"}
    assert 'FATAL: too many connections for role "few"' in failures[0]["detail"]


def test_a_store_that_is_only_read_tells_that_it_is_down(serve: Serve, few: str) -> None:
    with serve(RPRIME_STORE=few, RPRIME_STORE_LOCK_SECONDS="0.1") as client:
        assert client.get("/v1/projects").status_code == 200
        with without_connections(few):
            assert client.get("/v1/projects").status_code == 503
            assert states(client) == {"unavailable"}
        assert client.get("/v1/projects").status_code == 200
        assert states(client) == {"ok"}


def test_a_write_of_many_slow_statements_ends_in_time(postgresql_url: str) -> None:
    options = DatabaseOptions(connect_seconds=0.5, lock_seconds=0.5, statement_seconds=0.5)
    store = open_store(postgresql_url, options=options)
    samples.put(store, samples.evaluation()).result()
    administer(
        make_url(postgresql_url),
        "CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN PERFORM pg_sleep(0.4); RETURN NULL; END'",
        *(
            f"CREATE TRIGGER slow AFTER INSERT ON {name} EXECUTE FUNCTION sleep()"
            for name in metadata.tables
        ),
    )
    begun = time.monotonic()
    with pytest.raises(StoreTimeoutError):
        samples.put(store, samples.evaluation(1)).result()
    assert time.monotonic() - begun < 1.9
    administer(make_url(postgresql_url), "DROP FUNCTION sleep CASCADE")
    wait_until(lambda: samples.put(store, samples.evaluation(2)).exception() is None)
    store.close()


def test_keyed_writes_get_through_with_few_connections(serve: Serve, few: str) -> None:
    with serve(RPRIME_STORE=few) as client:

        def post(number: int) -> int:
            headers = {"Idempotency-Key": str(number % 30)}
            content = matrix(version=str(number % 30))
            with httpx.Client(base_url=client.base_url, timeout=30, verify=NO_TLS) as alone:
                return alone.post("/evaluate", json=content, headers=headers).status_code

        with ThreadPoolExecutor(30) as pool:
            first = Counter(pool.map(post, range(30)))
            again = Counter(pool.map(post, range(30)))
        assert first == again == {201: 30}
        assert client.get("/v1/projects").json()["items"][0]["evaluations"] == 30


def test_no_more_connections_than_the_setting_says(
    serve: Serve, postgresql_url: str, postgresql_server: URL
) -> None:
    name = make_url(postgresql_url).database
    with serve(RPRIME_STORE=postgresql_url, RPRIME_STORE_CONNECTIONS="2") as client:
        most = 0

        def post(number: int) -> int:
            with httpx.Client(base_url=client.base_url, timeout=30, verify=NO_TLS) as alone:
                keyed = {"Idempotency-Key": str(number)}
                kept = alone.post("/evaluate", json=labels(number), headers=keyed)
                trend = alone.get("/v1/projects/pets/trend?index=accuracy")
                return max(kept.status_code, trend.status_code)

        with (
            psycopg.connect(
                host=str(postgresql_server.query["host"]), user="rprime", dbname="postgres"
            ) as watching,
            ThreadPoolExecutor(16) as pool,
        ):
            answers = [pool.submit(post, number) for number in range(48)]
            while not all(answer.done() for answer in answers):
                counted = watching.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = %s "
                    "AND backend_type = 'client backend'",
                    [name],
                ).fetchone()
                assert counted is not None
                most = max(most, counted[0])
                watching.rollback()
        assert {answer.result() for answer in answers} == {201}
    assert 0 < most <= 2


def test_two_services_answer_one_key_with_one_evaluation(serve: Serve, postgresql_url: str) -> None:
    with serve(RPRIME_STORE=postgresql_url) as first, serve(RPRIME_STORE=postgresql_url) as two:

        def post(number: int) -> httpx.Response:
            client = (first, two)[number % 2]
            return client.post("/evaluate", json=labels(), headers={"Idempotency-Key": "k"})

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(post, range(16)))
        assert {answer.status_code for answer in answers} <= {201, 409}
        assert len({answer.content for answer in answers if answer.status_code == 201}) == 1
        assert first.get("/v1/projects").json()["items"][0]["evaluations"] == 1


@pytest.mark.parametrize(
    ("mistake", "state"),
    [
        (lambda url: url.set(username="nobody_here", password=WRONG), "28000"),
        (lambda url: url.set(password=WRONG), "28P01"),
        (lambda url: url.set(database="nothing_here"), "3D000"),
    ],
    ids=["role", "password", "database"],
)
def test_a_mistake_in_the_url_is_told_without_the_password(
    guarded: URL, mistake: Callable[[URL], URL], state: str, rprime_process: Run
) -> None:
    url = mistake(guarded)
    text = url.render_as_string(hide_password=False)
    with pytest.raises(StoreAccessError) as caught:
        open_store(text)
    assert caught.value.code == state
    ended = rprime_process("serve", "--port", "0", RPRIME_STORE=text)
    assert ended.returncode == 2
    told = ended.stderr.splitlines()[-1]
    assert f"SQLSTATE {state}" in told
    assert str(url.query["host"]) in told
    assert WRONG not in ended.stderr
    assert PASSWORD not in ended.stderr


def test_a_role_without_rights_is_told(guarded: URL, postgresql_url: str) -> None:
    def told() -> tuple[str | None, str]:
        with pytest.raises(StoreAccessError) as caught:
            open_store(guarded.render_as_string(hide_password=False))
        return caught.value.code, str(caught.value)

    assert told()[0] == "3F000"
    administer(make_url(postgresql_url), "GRANT USAGE ON SCHEMA public TO guarded")
    code, text = told()
    assert code == "42501"
    assert "permission denied for schema public" in text


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://r:secret@h:5x/d", "no SQLAlchemy URL"),
        (
            "postgresql://r:secret@127.0.0.1/d?connect_timout=3",
            'invalid connection option "connect_timout"',
        ),
        ("postgresql://r:secret@127.0.0.1:99999/d", 'invalid port number: "99999"'),
    ],
)
def test_a_url_that_means_nothing_is_refused(url: str, words: str) -> None:
    with pytest.raises((StoreUrlError, StoreAccessError), match=words) as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


def test_a_password_that_changes_is_told_by_the_running_service(
    serve: Serve, guarded: URL, postgresql_url: str, tmp_path: Path
) -> None:
    name = guarded.database
    administer(
        make_url(postgresql_url),
        f'GRANT CREATE ON DATABASE "{name}" TO guarded',
        "GRANT ALL ON SCHEMA public TO guarded",
    )
    log = tmp_path / "log"
    text = guarded.render_as_string(hide_password=False)
    with serve(log=log, RPRIME_STORE=text) as client:
        assert client.post("/evaluate", json=matrix()).status_code == 201
        administer(
            make_url(postgresql_url),
            f"ALTER ROLE guarded PASSWORD '{WRONG}'",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'guarded'",
        )
        answer = client.post("/evaluate", json=matrix(7))
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
        assert str(guarded.query["host"]) not in answer.text
        assert client.get("/readyz").status_code == 503
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        [first, *_] = [line for line in lines if line["event"] == "store_failed"]
        assert first["error"] == "28P01"
        assert str(guarded.query["host"]) in first["detail"]
        assert PASSWORD not in log.read_text()


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match=f"server on socket .*{tmp_path.name}"):
        open_store(f"postgresql+psycopg://u@/d?host={tmp_path}")


def test_a_full_pool_is_waited_for_then_refused(postgresql_url: str) -> None:
    options = DatabaseOptions(connections=2, lock_seconds=0.3)
    store = open_store(postgresql_url, options=options)
    with (
        store.database.streaming(),
        store.database.streaming(),
        pytest.raises(StoreUnavailableError, match="busy"),
    ):
        store.count("animals")
    assert samples.put(store, samples.evaluation()).result().created
    store.close()
