"""What an operator relies on."""

import subprocess
import sys

import httpx
import pytest

from rprime import __version__
from rprime.routes.operations import FixedLimits
from rprime.server.draining import ENDED_STATUS
from rprime.settings import Limits


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_a_healthy_service_says_ok(client: httpx.Client, path: str) -> None:
    response = client.get(path)
    state = {"/livez": {}, "/readyz": {"store": "ok"}}[path]
    assert (response.status_code, response.json()) == (200, {"status": "ok", **state})


def test_version_names_every_limit(client: httpx.Client) -> None:
    document = client.get("/version").json()
    assert document["version"] == __version__
    assert document["limits"] == Limits().model_dump()
    assert document["fixed_limits"] == FixedLimits().model_dump()


def test_head_answers_as_get_without_content(client: httpx.Client) -> None:
    head, get = client.head("/version"), client.get("/version")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]


@pytest.mark.parametrize("given", ["run-7", "a" * 128, "00-4bf92f3577b34da6-01"])
def test_a_request_id_comes_back(client: httpx.Client, given: str) -> None:
    response = client.get("/livez", headers={"X-Request-Id": given})
    assert response.headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["a" * 129, "two words", "<script>", ""])
def test_an_unsafe_request_id_is_replaced(client: httpx.Client, given: str) -> None:
    response = client.get("/livez", headers={"X-Request-Id": given})
    assert response.headers["x-request-id"] != given
    assert len(response.headers["x-request-id"]) == 32


def test_every_answer_has_the_security_headers(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    operations = [(method, path) for path, item in paths.items() for method in item]
    pages = ["/docs", "/docs/problems", "/static/favicon.svg", "/openapi.json", "/nowhere"]
    for method, path in [*operations, *(("get", page) for page in pages), ("patch", "/evaluate")]:
        headers = client.request(method.upper(), path.replace("{suffix}", "md")).headers
        assert headers["x-content-type-options"] == "nosniff", path
        # Pages have forms, whose origin is checked.
        assert headers["referrer-policy"] == ("same-origin" if path in pages[:2] else "no-referrer")
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'"), path
        for directive in ("base-uri 'none'", "form-action", "frame-ancestors 'none'"):
            assert directive in policy, (path, policy)
        assert "unsafe-eval" not in policy, path
        assert "server" not in headers, path


def test_no_origin_may_call_from_a_browser(client: httpx.Client) -> None:
    response = client.get("/version", headers={"Origin": "https://example.org"})
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    ("state", "status", "event"),
    [("nullcontext", 0, "stopped_computing"), ("waiting", ENDED_STATUS, "stopped_unfinished")],
)
def test_only_a_store_that_hangs_is_a_failure_of_the_stop(
    state: str, status: int, event: str
) -> None:
    program = (
        "from contextlib import nullcontext\n"
        "from rprime.server.draining import _end\n"
        "from rprime.store.use import waiting\n"
        f"with {state}():\n    _end()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert ended.returncode == status
    assert event in ended.stdout.decode() + ended.stderr.decode()
