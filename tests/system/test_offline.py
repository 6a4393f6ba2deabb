"""The service connects to nothing, whatever it is asked."""

import io
import json
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.history_service import matrix
from tests.services import RPRIME, environment
from tests.system.confined import CONNECT

CONFINED = Path(__file__).with_name("confined.py")
ELSEWHERE = "http://127.0.0.1:9/evidence.csv"
"""An address that nobody may follow."""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in CONNECT,
    reason="the kernel is asked to forbid it",
)


def confined(*command: str | Path) -> list[str | Path]:
    return [sys.executable, CONFINED, "offline", *command]


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Return a service with a SQLite store that is killed if it connects to anything."""
    process = subprocess.Popen(
        confined(RPRIME, "serve", "--port", "0"),
        cwd=tmp_path_factory.mktemp("offline"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        match = re.search(r"http://\S+(?=,)", process.stdout.readline())
    assert match
    with httpx.Client(base_url=match[0], timeout=60) as client:
        yield client
    process.terminate()
    # A child that was killed would have made a 503 or a 500.
    assert process.wait(30) == 0


def test_to_connect_is_fatal_there() -> None:
    code = "import socket; socket.socket().connect(('127.0.0.1', 9))"
    done = subprocess.run(confined(sys.executable, "-c", code), check=False)
    assert done.returncode == -signal.SIGSYS


def test_no_route_connects_to_anything(offline: httpx.Client) -> None:
    kept = offline.post("/evaluate", json=matrix(source=ELSEWHERE))
    assert kept.status_code == 201
    document = offline.get("/openapi.json").json()
    for path, item in document["paths"].items():
        filled = path.format(
            project="pets",
            alias="main",
            evaluation=kept.json()["id"],
            suffix="html",
            scope="overall",
            key="accuracy",
            **{name: "x" for name in re.findall(r"{(\w+)}", path) if name not in FILLED},
        )
        for method in sorted(item, reverse=True):
            content = item[method].get("requestBody", {}).get("content", {})
            examples = content.get("application/json", {}).get("examples", {})
            for example in [*examples.values(), {"value": {"url": ELSEWHERE}}]:
                response = offline.request(method.upper(), filled, json=example["value"])
                assert response.status_code < 500, (method, filled, response.text)
    for page in ("/docs", "/docs/problems", "/metrics", "/readyz"):
        assert offline.get(page).status_code == 200


FILLED = {"project", "alias", "evaluation", "suffix", "scope", "key"}


def npz(**arrays: object) -> bytes:
    sink = io.BytesIO()
    np.savez(sink, allow_pickle=False, **{k: np.asarray(v) for k, v in arrays.items()})
    return sink.getvalue()


def test_no_evidence_connects_to_anything(offline: httpx.Client) -> None:
    labels = [ELSEWHERE, f"file://{ELSEWHERE}", "s3://bucket/x.parquet"]
    lines = "".join(f"{label},{label}\n" for label in labels)
    bodies = {
        "text/csv": b"y_true,y_pred\n" + lines.encode(),
        "application/x-npz": npz(y_true=labels, y_pred=labels),
        "application/json": json.dumps({"y_true": labels, "y_pred": labels}).encode(),
    }
    for media, content in bodies.items():
        for accept in ("application/json", "text/html", "text/markdown"):
            headers = {"Content-Type": media, "Accept": accept}
            assert offline.post("/evaluate", content=content, headers=headers).status_code == 200
    large = {"y_true": labels * 60_000, "y_pred": labels * 60_000}
    # Over the limit at which a process of its own decodes it, which is confined as well.
    assert offline.post("/evaluate", json=large).status_code == 200
