"""The training script and the service: run as programs, against a real service."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.examples.recipes import BAD, EXAMPLES, GOOD, PROGRAMS, TRUE, Done, run
from tests.failing_service import BUSY, Step, flaky, stopped
from tests.services import Serve, environment


def train(folder: Path, *options: str) -> Done:
    return run(sys.executable, EXAMPLES / "train_digits.py", *options, cwd=folder)


@pytest.mark.slow
class TestTraining:
    @pytest.mark.parametrize(("candidate", "status"), [("svc", 0), ("naive_bayes", 1)])
    def test_the_engine_here_and_a_service_decide_the_same(
        self, server: str, tmp_path: Path, candidate: str, status: int
    ) -> None:
        here = train(tmp_path, "--candidate", candidate)
        there = train(tmp_path, "--candidate", candidate, "--server", server)
        assert here.returncode == there.returncode == status, here.stderr + there.stderr
        results = [done.stdout.splitlines()[1:] for done in (here, there)]
        assert results[0] == results[1]
        assert len(results[0]) == 13  # accuracy, the recall of 10 digits, its average, the verdict

    def test_a_service_with_a_store_keeps_both_and_pairs_them(
        self, serve: Serve, tmp_path: Path
    ) -> None:
        with serve() as client:
            done = train(tmp_path, "--server", str(client.base_url))
            assert done.returncode == 0, done.stderr
            kept = client.get("/v1/projects/digits/evaluations").json()["items"]
            assert [item["version"] for item in kept] == ["svc", "champion"]
            report = client.get(f"/v1/evaluations/{kept[0]['id']}").json()
        assert report["comparison"]["pairing"] == "paired"
        assert report["gate"]["verdict"] == "pass"

    def test_a_service_without_one_decides_too(self, serve: Serve, tmp_path: Path) -> None:
        with serve(RPRIME_STORE="none") as client:
            done = train(tmp_path, "--server", str(client.base_url))
        assert done.returncode == 0, done.stderr
        assert "the service keeps nothing" in done.stdout

    def test_an_outage_is_no_verdict(self, tmp_path: Path) -> None:
        done = train(tmp_path, "--server", stopped())
        assert done.returncode == 4
        assert "no verdict" in done.stderr


@contextmanager
def releases(folder: Path, rprime: str) -> Iterator[httpx.Client]:
    """Start the service that asks rprime."""
    with subprocess.Popen(
        [PROGRAMS / "uvicorn", "service_httpx:app", "--port", "0", "--app-dir", EXAMPLES],
        cwd=folder,
        env=environment(RPRIME_SERVER=rprime, PYTHONDONTWRITEBYTECODE="1"),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            url = next(m[0] for m in map(_URL.search, process.stderr) if m)
            with httpx.Client(base_url=url, timeout=60) as client:
                yield client
        finally:
            process.terminate()


_URL = re.compile(r"http://[\d.]+:\d+")


def candidate(predicted: list[str]) -> dict[str, list[str]]:
    return {"y_true": TRUE, "y_pred": predicted, "y_pred_in_use": GOOD}


class TestService:
    def test_it_releases_what_is_no_worse(self, server: str, tmp_path: Path) -> None:
        with releases(tmp_path, server) as client:
            good = client.post("/releases", json=candidate(GOOD)).json()
            bad = client.post("/releases", json=candidate(BAD)).json()
            wrong = client.post("/releases", json={**candidate(GOOD), "y_pred": ["cat"]})
        assert good == {"decision": "release", "verdict": "pass", "reasons": []}
        assert (bad["decision"], bad["verdict"]) == ("hold", "fail")
        assert any("recall of class `cat` dropped" in reason for reason in bad["reasons"])
        assert wrong.status_code == 422
        assert wrong.json()["detail"]["errors"]

    def test_it_waits_for_one_that_comes_back_and_asks_with_one_key(self, tmp_path: Path) -> None:
        answer = json.dumps({"gate": {"results": []}}).encode()
        verdict = {"Content-Type": "application/json", "Evaluation-Verdict": "pass"}
        with (
            flaky(Step(0), BUSY, Step(body=answer, headers=verdict)) as rprime,
            releases(tmp_path, rprime.url) as client,
        ):
            decision = client.post("/releases", json=candidate(GOOD)).json()
            assert len(rprime.seen) == 3
            assert len(set(rprime.keys)) == 1
        assert decision["decision"] == "release"

    def test_an_outage_is_no_reason_against_a_model(self, tmp_path: Path) -> None:
        with releases(tmp_path, stopped()) as client:
            answer = client.post("/releases", json=candidate(GOOD))
        assert answer.status_code == 503
        assert "no verdict" in answer.json()["detail"]
        assert answer.headers["Retry-After"] == "60"
