"""The service as a process: how it starts, what it refuses and how it ends."""

import json
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from rprime import __version__
from rprime.auth import keys
from rprime.settings import Limits, Settings
from tests.command import Run
from tests.services import RPRIME, environment, stop
from tests.waiting import wait_until

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
    with serve(**variables, RPRIME_HOSTS="127.0.0.1,0.0.0.0") as client:
        assert client.get("/version").status_code == 200
        rebound = client.get("/v1/projects", headers={"Host": "evil.example:8000"})
        assert (rebound.status_code, rebound.json()["code"]) == (421, "misdirected")
        assert client.get("/livez", headers={"Host": "10.0.0.7:8000"}).status_code == 200


def test_it_refuses_an_open_address_without_keys_and_names(rprime_process: Run) -> None:
    done = rprime_process("serve", "--host", "0.0.0.0", "--insecure")  # noqa: S104 - as above
    assert done.returncode == 2
    assert "RPRIME_HOSTS" in done.stderr


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        (
            {"RPRIME_LIMITS_IN_FLIGHT_BYTES": "1MB", "RPRIME_LIMITS_JSON_BODY_BYTES": "2MB"},
            "RPRIME_LIMITS_JSON_BODY_BYTES",
        ),
        ({"RPRIME_LIMITS_JSON_BODY_BYTES": "1GiB"}, "RPRIME_LIMITS_IN_FLIGHT_BYTES"),
        ({"RPRIME_LIMITS_WORKER_BYTES": "2GiB"}, "RPRIME_MEMORY"),
    ],
)
def test_settings_that_conflict_are_refused(
    rprime_process: Run, variables: dict[str, str], named: str
) -> None:
    done = rprime_process("serve", **variables)
    assert done.returncode == 2
    assert named in done.stderr


def test_bodies_are_no_larger_than_what_may_be_in_memory() -> None:
    limits = Settings(limits=Limits(in_flight_bytes=1000)).limits
    assert (limits.json_body_bytes, limits.other_body_bytes) == (1000, 1000)


def test_every_size_takes_units() -> None:
    sizes = {"json_body_bytes": "16MiB", "other_body_bytes": "64MiB", "in_flight_bytes": "128MiB"}
    sizes |= {"worker_bytes": "512MiB", "head_bytes": "64KiB", "body_bytes_per_second": "8KiB"}
    limits = Limits.model_validate(sizes)
    assert (limits.json_body_bytes, limits.head_bytes) == (16 << 20, 64 << 10)
    assert {n for n in Limits.model_fields if "bytes" in n} == set(sizes)


def test_it_listens_on_ipv6(serve: Serve) -> None:
    with serve("--host", "::1") as client:
        assert client.base_url.host == "::1"
        assert client.get("/livez").status_code == 200


@pytest.mark.slow
def test_several_workers_serve_one_address(serve: Serve) -> None:
    with serve("--workers", "2", RPRIME_STORE="none") as client:
        assert client.get("/livez").status_code == 200


def is_refused(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address).close()
    except ConnectionRefusedError:
        return True
    return False


def test_workers_that_stop_let_nobody_connect(serve: Serve, processes: dict[int, int]) -> None:
    head = b"POST /evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
    head += b"Content-Type: application/json\r\n\r\n"
    with serve("--workers", "2", RPRIME_STORE="none", RPRIME_STOP_SECONDS="3") as client:
        assert client.get("/livez").status_code == 200
        address = client.base_url.host, client.base_url.port or 0
        with socket.create_connection(address) as unfinished:
            unfinished.sendall(head)
            os.kill(processes[address[1]], signal.SIGTERM)
            wait_until(lambda: is_refused(address))
            # The request is still waited for, so the service has not ended.
            unfinished.settimeout(0)
            with pytest.raises(BlockingIOError):
                unfinished.recv(1)


def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    env = environment(RPRIME_STORE="none")
    command = [str(RPRIME), "serve", "--port", "0", "--workers", "2"]
    with (tmp_path / "log").open("w") as log:
        parent = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        port = int(parent.stdout.readline().partition("127.0.0.1:")[2].partition(",")[0])
    assert httpx.get(f"http://127.0.0.1:{port}/livez", timeout=30).status_code == 200
    parent.kill()
    parent.wait()
    wait_until(lambda: is_refused(("127.0.0.1", port)))
    events = [json.loads(line)["event"] for line in (tmp_path / "log").read_text().splitlines()]
    assert events.count("parent_ended") == 2


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


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("RPRIME_STOR", "RPRIME_STORE"),
        ("RPRIME_KEY_FILE", "RPRIME_KEYS_FILE"),
        ("rprime_drain_second", "RPRIME_DRAIN_SECONDS"),
        ("RPRIME_LIMITS_JSON_BYTES", "RPRIME_LIMITS_JSON_BODY_BYTES"),
        ("RPRIME_ZZZZZZZZ", None),
        ("RPRIME_LIMITS_FOO", None),
    ],
)
def test_an_unknown_variable_is_refused(rprime: Run, variable: str, nearest: str | None) -> None:
    done = rprime("serve", **{variable: "", "RPRIME_INSECURE": "perhaps"})
    assert done.returncode == 2
    hint = "" if nearest is None else f"; did you mean {nearest}?"
    assert done.stderr == f"rprime: {variable.upper()}: there is no such setting{hint}\n"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("RPRIME_LOG_REQUESTS", "perhaps", "must be true or false."),
        ("RPRIME_MEMORY", "much", "must be a number of bytes such as 512MiB."),
        ("RPRIME_PORT", "99999", "must be at most 65535."),
        ("RPRIME_DRAIN_SECONDS", "inf", "must be at most 86400."),
        ("RPRIME_STORE_LOCK_SECONDS", "3000000", "must be at most 86400."),
        ("RPRIME_STORE_CONNECT_SECONDS", "0.5", "must be at least 2."),
        ("RPRIME_SESSION_SECRET", "abc", "must have at least 32 characters, not 3."),
        ("RPRIME_KEY_REQUESTS_PER_MINUTE", "5", "counts for each key: set RPRIME_KEYS_FILE, too"),
    ],
)
def test_a_wrong_value_is_said_in_a_sentence(
    rprime: Run, variable: str, value: str, said: str
) -> None:
    done = rprime("serve", **{variable: value})
    assert (done.returncode, done.stderr) == (2, f"rprime: {variable} {said}\n")


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("RPRIME_TRUSTED_PROXIES", "10.0.0.0/8,foo", "is not a valid IPv4 or IPv6 network."),
        ("RPRIME_CORS_ORIGINS", "*,foo", "is not a web origin such as https://app.example."),
        (
            "RPRIME_HOSTS",
            "a.example,b.example:8443",
            "is not a name such as rprime.example.org, without scheme and port.",
        ),
        (
            "RPRIME_CORS_ORIGINS",
            "*,https://a/b",
            "is not a web origin such as https://app.example.",
        ),
    ],
)
def test_a_wrong_item_is_counted(rprime: Run, variable: str, value: str, said: str) -> None:
    done = rprime("serve", **{variable: value})
    assert (done.returncode, done.stderr) == (2, f"rprime: Item 2 of {variable} {said}\n")


def test_variables_of_commands_and_of_kubernetes_are_not_unknown(rprime: Run) -> None:
    others = {"RPRIME_SERVER": "http://x", "RPRIME_KEY": "x", "RPRIME_SERVICE_HOST": "10.0.0.1"}
    others |= {"RPRIME_SERVICE_PORT_HTTP": "80", "RPRIME_PORT_80_TCP": "tcp://10.0.0.1:80"}
    done = rprime("serve", RPRIME_INSECURE="perhaps", **others)
    assert "no such setting" not in done.stderr
    assert "RPRIME_INSECURE" in done.stderr


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


def test_the_version_can_be_asked() -> None:
    assert subprocess.check_output([RPRIME, "--version"], text=True) == f"rprime {__version__}\n"


# Unix sockets


def test_it_listens_on_a_unix_socket(tmp_path: Path, rprime_process: Run) -> None:
    path = tmp_path / "s"
    # A service that was killed leaves its socket.
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    process = subprocess.Popen(
        [RPRIME, "serve"],
        env=environment(RPRIME_UDS=str(path), RPRIME_STORE="none"),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            assert process.stdout.readline() == f"rprime listens on unix:{path}\n"
            assert stat.S_IMODE(path.stat().st_mode) == 0o660
            transport = httpx.HTTPTransport(uds=str(path))
            with httpx.Client(
                transport=transport, base_url="http://any.name", timeout=30
            ) as client:
                # Without keys a proxy must pass on a name that is known.
                assert client.get("/version").status_code == 421
                client.headers["Host"] = "localhost"
                assert client.get("/version").status_code == 200
                table = {"confusion_matrix": [[8, 2], [1, 9]]}
                assert client.post("/evaluate", json=table).status_code == 200
            second = rprime_process("serve", RPRIME_UDS=str(path), RPRIME_STORE="none")
            assert second.returncode == 2
            assert f"cannot listen on {path}: Address already in use" in second.stderr
        finally:
            status = stop(process)
    assert status == 0
    assert not path.exists()


def test_no_other_file_is_replaced_by_a_socket(tmp_path: Path, rprime_process: Run) -> None:
    path = tmp_path / "file"
    path.write_text("kept")
    done = rprime_process("serve", RPRIME_UDS=str(path), RPRIME_STORE="none")
    assert (done.returncode, path.read_text()) == (2, "kept")
    assert "Traceback" not in done.stderr


# SIGHUP


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_hangup_reads_the_keys_again(
    serve: Serve, processes: dict[int, int], tmp_path: Path, workers: int
) -> None:
    path, log = tmp_path / "keys.json", tmp_path / "log"
    headers = {"Authorization": f"Bearer {keys.create(path, ['read'])[1]}"}
    variables = {"RPRIME_KEYS_FILE": str(path), "RPRIME_STORE": "none"}

    def count(event: str) -> int:
        return sum(json.loads(line)["event"] == event for line in log.read_text().splitlines())

    with serve("--workers", str(workers), log=log, **variables) as client:
        wait_until(lambda: count("keys_read") == workers)
        for times in (1, 2):
            os.kill(processes[client.base_url.port or 0], signal.SIGHUP)
            wait_until(lambda times=times: count("reloaded") == workers * times)  # type: ignore[misc] # mypy infers no type of a default
            assert count("keys_read") == workers * (times + 1)
            assert client.get("/v1/indices", headers=headers).status_code == 200
