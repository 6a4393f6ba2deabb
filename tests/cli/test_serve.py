"""The service as a process: how it starts, what it refuses and how it ends."""

import json
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from rprime import __version__
from rprime.settings import Settings
from tests.command import Run

Serve = Callable[..., AbstractContextManager[httpx.Client]]


def test_it_listens_on_loopback_unless_told_otherwise(server: str) -> None:
    assert server.startswith("http://127.0.0.1:")


def test_it_says_in_its_log_that_it_is_on_loopback_alone(serve: Serve, tmp_path: Path) -> None:
    with serve(log=tmp_path / "log"):
        lines = (tmp_path / "log").read_text().splitlines()
    events = {event["event"]: event for event in map(json.loads, lines)}
    event = events["loopback_only"]
    assert event["level"] == "info"


def test_it_refuses_an_open_address_without_saying_so(rprime_process: Run) -> None:
    done = rprime_process("serve", "--host", "0.0.0.0")  # noqa: S104 - it must be refused
    assert done.returncode == 2
    assert "RPRIME_INSECURE=1" in done.stderr


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.2", True), ("::1", True), ("localhost", True), ("::", False), ("here", False)],
)
def test_it_knows_which_addresses_are_loopback(host: str, *, loopback: bool) -> None:
    assert Settings(host=host).loopback is loopback


def test_it_opens_when_it_is_told_to(serve: Serve) -> None:
    variables = {"RPRIME_HOST": "0.0.0.0", "RPRIME_INSECURE": "1"}  # noqa: S104 - meant
    with serve(**variables) as client:
        assert client.get("/livez").status_code == 200


def test_it_listens_on_ipv6(serve: Serve) -> None:
    with serve("--host", "::1") as client:
        assert client.base_url.host == "::1"
        assert client.get("/livez").status_code == 200


@pytest.mark.slow
def test_several_workers_serve_one_address(serve: Serve) -> None:
    with serve("--workers", "2", RPRIME_STORE="none") as client:
        assert client.get("/livez").status_code == 200


def test_several_workers_on_sqlite_are_refused(rprime: Run) -> None:
    done = rprime("serve", "--workers", "2")
    assert done.returncode == 2
    assert "PostgreSQL" in done.stderr


def test_a_port_that_is_taken_is_named(rprime_process: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = rprime_process("serve", PORT=str(port))
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [("RPRIME_PORT", "http"), ("RPRIME_INSECURE", "perhaps"), ("RPRIME_LIMITS_JSON_DEPTH", "0")],
)
def test_a_wrong_setting_is_named(rprime: Run, variable: str, value: str) -> None:
    done = rprime("serve", **{variable: value})
    assert done.returncode == 2
    assert variable in done.stderr
    assert "Traceback" not in done.stderr


def test_a_misspelt_limit_is_refused(rprime: Run) -> None:
    done = rprime("serve", RPRIME_LIMITS_JSON_BYTES="5")
    assert done.returncode == 2
    assert "RPRIME_LIMITS_JSON_BYTES" in done.stderr


def test_the_own_variable_goes_before_the_common_one(rprime: Run) -> None:
    done = rprime("serve", RPRIME_PORT="no", PORT="0")
    assert "RPRIME_PORT" in done.stderr


def test_origins_that_are_named_may_call_from_a_browser(serve: Serve) -> None:
    origins = "https://a.example,https://b.example"
    with serve(RPRIME_CORS_ORIGINS=origins) as client:
        for origin in origins.split(","):
            response = client.get("/version", headers={"Origin": origin})
            assert response.headers["access-control-allow-origin"] == origin
        other = client.get("/version", headers={"Origin": "https://c.example"})
        assert "access-control-allow-origin" not in other.headers


def test_the_version_can_be_asked(rprime_process: Run) -> None:
    assert rprime_process("--version").stdout == f"rprime {__version__}\n"
