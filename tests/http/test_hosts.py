"""The service answers to its own names."""

import socket

import httpx
import pytest

from rprime.app import create_app
from rprime.settings import Settings
from tests.services import ServeApp


def status(client: httpx.Client, host: str, path: str = "/version") -> int:
    return client.get(path, headers={"Host": host}).status_code


@pytest.mark.parametrize(
    "host", ["localhost", "LocalHost:8000", "127.0.0.1:1", "[::1]:80", "[::1]"]
)
def test_on_loopback_its_own_names_are_known(client: httpx.Client, host: str) -> None:
    assert status(client, host) == 200


@pytest.mark.parametrize(
    "host",
    ["rebound.example", "localhost.rebound.example", "127.0.0.1.x", "[::1", "", "localhost@x"],
)
def test_on_loopback_other_names_are_refused(client: httpx.Client, host: str) -> None:
    response = client.get("/version", headers={"Host": host})
    assert (response.status_code, response.json()["code"]) == (421, "misdirected")
    assert "rebound" not in response.text


def test_probes_are_answered_under_any_name(client: httpx.Client) -> None:
    assert [status(client, "10.0.0.7:8000", path) for path in ("/livez", "/readyz")] == [200, 200]


@pytest.mark.parametrize("hosts", [b"", b"Host: localhost\r\nHost: localhost\r\n"])
def test_there_is_exactly_one_name(server: str, hosts: bytes) -> None:
    url = httpx.URL(server)
    with socket.create_connection((url.host, url.port or 0)) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\n" + hosts + b"\r\n")
        assert connection.recv(12) == b"HTTP/1.1 400"


def test_elsewhere_every_name_is_known_unless_they_are_given(serve_app: ServeApp) -> None:
    anywhere = Settings(host="0.0.0.0", insecure=True, store="none")  # noqa: S104 (the point)
    with serve_app(create_app(anywhere)) as client:
        assert status(client, "any.example") == 200
    named = anywhere.model_copy(update={"hosts": ("rprime.example", "other.example")})
    with serve_app(create_app(named)) as client:
        names = ("rprime.example:443", "other.example", "localhost")
        assert [status(client, host) for host in names] == [200, 200, 421]


def test_a_star_knows_all() -> None:
    assert Settings(hosts=("*",)).known_hosts is None
    hosts = frozenset({"localhost", "127.0.0.1", "[::1]", "127.0.0.7"})
    assert Settings(host="127.0.0.7").known_hosts == hosts
