"""The README tells the truth: its answers are real, its tables follow from the code."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from rprime.routes.fixed_limits import FixedLimits
from rprime.settings import Limits, Settings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
Json = Any


def post(client: httpx.Client, example: str) -> httpx.Response:
    body = (ROOT / "examples" / example).read_bytes()
    return client.post("/evaluate", content=body, headers={"Content-Type": "application/json"})


def assert_within(shown: Json, real: Json, place: str = "") -> None:
    """What the README shows of an answer is in it; lists may end early."""
    if isinstance(shown, dict):
        for name, value in shown.items():
            assert_within(value, real[name], f"{place}/{name}")
    elif isinstance(shown, list):
        assert len(shown) <= len(real)
        for i, value in enumerate(shown):
            assert_within(value, real[i], f"{place}/{i}")
    elif isinstance(shown, float):
        assert real == pytest.approx(shown, rel=1e-12), place
    else:
        assert real == shown, place


def test_the_answer_on_mnist_is_real(client: httpx.Client) -> None:
    shown = re.search(r"```json\n(.*?)```", README, re.DOTALL)
    assert shown is not None
    assert_within(json.loads(shown[1]), post(client, "mnist.json").json())


def test_the_gate_fails_as_told(client: httpx.Client) -> None:
    answer = post(client, "gate.json")
    assert answer.headers["Evaluation-Verdict"] == "fail"
    failed = [r["class"] for r in answer.json()["gate"]["results"] if r["verdict"] == "fail"]
    assert f"which classes ({', '.join(failed)})" in README


def test_every_request_in_the_text_is_answered(client: httpx.Client) -> None:
    bodies = re.findall(r"-d '(\{.*?\})'", README)
    assert bodies
    for body in bodies:
        headers = {"Content-Type": "application/json"}
        assert client.post("/evaluate", content=body, headers=headers).status_code == 200


def test_the_python_example_runs() -> None:
    shown = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert shown is not None
    names: dict[str, Json] = {}
    exec(shown[1], names)  # noqa: S102 (the text of the README is what is tested)
    assert names["report"].verdict == "inconclusive"


def test_the_table_of_indices_follows_from_the_catalog(
    rprime: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    made = rprime("indices", "--markdown").stdout
    assert f"<!-- indices:begin -->\n{made}<!-- indices:end -->" in README


def test_every_setting_is_documented() -> None:
    for name in Settings.model_fields:
        if name != "limits":
            assert f"RPRIME_{name.upper()}" in README, name


def test_every_limit_is_documented() -> None:
    for name, field in (Limits.model_fields | FixedLimits.model_fields).items():
        assert re.search(
            rf"\| `{name}` \| [^|]+ \| {re.escape(field.description or '')} \|", README
        )


def test_every_route_is_named(client: httpx.Client) -> None:
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in README, path
