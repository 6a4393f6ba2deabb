"""Reports on a server of MLflow with SQLite, asked over HTTP what it has.

The server comes from the package registry: `RPRIME_TEST_REGISTRIES=1`.
"""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import mlflow
import pytest

import rprime as library
import rprime.mlflow
from tests.examples.recipes import new_environment, pip
from tests.services import stop
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "RPRIME_TEST_REGISTRIES" not in os.environ, reason="needs RPRIME_TEST_REGISTRIES=1"
    ),
]
START_SECONDS = 600
"""It imports for minutes on a busy machine."""


@pytest.fixture
def tracking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """Start the server that has the version of our client, and track there."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    programs = new_environment(tmp_path / "venv")
    pip(programs, f"mlflow=={mlflow.__version__}")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    store = ("--backend-store-uri", f"sqlite:///{tmp_path}/mlflow.db")
    kept = ("--artifacts-destination", tmp_path / "artifacts")
    at = ("--host", "127.0.0.1", "--port", str(port), "--workers", "1")
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(
            [programs / "mlflow", "server", *store, *kept, *at], stdout=log, stderr=log, text=True
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            wait_until(lambda: _is_up(client, server), seconds=START_SECONDS)
            monkeypatch.setenv("MLFLOW_TRACKING_URI", str(client.base_url))
            yield client
    finally:
        stop(server)


def _is_up(client: httpx.Client, server: subprocess.Popen[str]) -> bool:
    assert server.poll() is None, "the server ended"
    try:
        return client.get("/health").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def test_a_server_has_the_values_the_verdict_and_the_pages(tracking: httpx.Client) -> None:
    true, predicted = ["cat", "dög"] * 50, ["cat"] * 50 + ["cat", "dög"] * 25
    gate = {"rules": [{"index": "accuracy", "min_value": 0.99}]}
    report = library.evaluate(true, predicted, gates=gate)
    with mlflow.start_run() as run:
        logged = rprime.mlflow.log(report)
    identifier = run.info.run_id
    answer = tracking.get("/api/2.0/mlflow/runs/get", params={"run_id": identifier})
    data = answer.json()["run"]["data"]
    assert {metric["key"]: metric["value"] for metric in data["metrics"]} == logged
    assert logged["rprime/class/dög/recall"] == report.per_class["dög"].recall.value == 0.5
    assert {"key": "rprime.verdict", "value": "fail"} in data["tags"]
    for name, start in (("report.html", "<!doctype html>"), ("confusion.svg", "<?xml")):
        path = {"path": f"rprime/{name}", "run_uuid": identifier}
        text = tracking.get("/get-artifact", params=path).text
        assert text.lower().startswith(start), text[:200]
