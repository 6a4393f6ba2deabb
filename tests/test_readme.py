"""The README tells the truth: it is short, and its answers are real."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.history_service import ServeApp, keeping

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


def test_it_is_read_in_one_sitting() -> None:
    assert len(README.splitlines()) <= 130


def test_a_service_and_the_tests_start_as_ci_starts_them() -> None:
    first, *others = re.findall(r"^sh \.ci/venv .*$", README, re.MULTILINE)
    assert first == "sh .ci/venv rprime serve"
    assert others == ["sh .ci/venv pytest"]


def test_the_answer_on_mnist_is_real(client: httpx.Client) -> None:
    shown = re.search(r"```json\n(.*?)```", README, re.DOTALL)
    assert shown is not None
    assert_within(json.loads(shown[1]), post(client, "mnist.json").json())


def test_every_request_in_the_text_is_answered(client: httpx.Client) -> None:
    bodies = re.findall(r"-d '(\{.*?\})'", README)
    assert bodies
    for body in bodies:
        headers = {"Content-Type": "application/json"}
        assert client.post("/evaluate", content=body, headers=headers).status_code == 200


def test_the_pictures_are_those_of_the_report(tmp_path: Path) -> None:
    script = ROOT / "docs" / "site" / "picture.py"
    done = subprocess.run([sys.executable, script, tmp_path], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    for theme in ("light", "dark"):
        name = f"failed-{theme}.svg"
        assert f"docs/images/{name}" in README
        drawn = (tmp_path / name).read_text(encoding="utf-8")
        assert drawn == (ROOT / "docs" / "images" / name).read_text(encoding="utf-8"), (
            "run: sh .ci/venv python docs/site/picture.py"
        )


def test_the_python_example_runs() -> None:
    shown = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert shown is not None
    names: dict[str, Json] = {}
    exec(shown[1], names)  # noqa: S102 (the text of the README is what is tested)
    assert names["report"].verdict == "inconclusive"


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason=".ci/programs")
def test_the_history_by_curl_answers_what_the_text_says(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    shown = re.search(r"```sh\n(at=.*?)```", README, re.DOTALL)
    assert shown is not None
    assert len(shown[1].splitlines()) <= 10
    with keeping(serve_app, tmp_path) as service:
        script = shown[1].replace("http://127.0.0.1:8000", str(service.base_url).rstrip("/"))
        done = subprocess.run(
            ["/bin/bash", "-euc", script], cwd=tmp_path, capture_output=True, text=True, check=True
        )
    answers, place = [], 0
    while place < len(done.stdout.rstrip()):
        answer, place = json.JSONDecoder().raw_decode(done.stdout, place)
        answers.append(answer)
        place += len(done.stdout[place:]) - len(done.stdout[place:].lstrip())
    first, second, worse, listed, r_prime, dogs = answers
    compared = json.loads((tmp_path / "compared.json").read_bytes())
    assert compared["candidate"]["resolved"] == second["id"]
    assert compared["comparison"]["baseline"]["resolved"] == first["id"]
    assert worse == "dog"
    assert [item["id"] for item in listed["items"]] == [second["id"], first["id"]]
    assert listed["items"][0]["values"]["r_prime"]["value"] == r_prime["items"][1]["value"]
    assert [item["value"] for item in dogs["items"]] == [0.9, 0.74]
