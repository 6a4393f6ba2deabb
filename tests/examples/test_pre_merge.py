"""The pre-merge script: curl and sh alone, and an outage is never a bad model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.examples.recipes import BAD, EXAMPLES, FEW, GOOD, PROGRAMS, TRUE, Done, run
from tests.failing_service import BUSY, PROBLEM, Step, flaky, stopped
from tests.services import Serve

Run = Callable[..., Done]
SCRIPT = EXAMPLES / "pre-merge.sh"
GATES = {
    "rules": [
        {"index": "accuracy", "max_drop": 0.02},
        {"index": "recall", "classes": "all", "max_drop": 0.1},
    ]
}
MODELS = {"pass": (TRUE, GOOD), "fail": (TRUE, BAD), "inconclusive": (TRUE[FEW], GOOD[FEW])}
STATUS = {"pass": 0, "fail": 1, "inconclusive": 3}


def request(verdict: str, **more: object) -> dict[str, Any]:
    true, predicted = MODELS[verdict]
    baseline = {"y_pred": GOOD if len(true) == len(TRUE) else GOOD[FEW]}
    return {"y_true": true, "y_pred": predicted, "baseline": baseline, "gates": GATES, **more}


def judge(folder: Path, url: str, content: object, **variables: str) -> Done:
    (folder / "request.json").write_text(json.dumps(content), encoding="utf-8")
    return run("sh", SCRIPT, url, "request.json", cwd=folder, variables=variables)


def test_it_is_clean_by_shellcheck() -> None:
    done = run(PROGRAMS / "shellcheck", "--shell", "sh", SCRIPT, cwd=EXAMPLES)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("verdict", STATUS)
def test_the_verdict_is_the_status(server: str, tmp_path: Path, verdict: str) -> None:
    done = judge(tmp_path, f"{server}/", request(verdict))
    assert done.returncode == STATUS[verdict], done.stderr
    assert "## " in done.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "request.json"]


def test_what_could_not_be_judged_ends_with_5(server: str, tmp_path: Path) -> None:
    other = {"y_true": TRUE[FEW], "y_pred": TRUE[FEW]}
    done = judge(tmp_path, server, request("pass", baseline=other))
    assert (done.returncode, done.stderr) == (
        5,
        "pre-merge: the gate fails, but could not be judged\n",
    )


def test_no_rules_are_no_pass(server: str, tmp_path: Path) -> None:
    assert judge(tmp_path, server, request("pass") | {"gates": {"rules": []}}).returncode == 3
    ungated = {"y_true": TRUE, "y_pred": GOOD}
    done = judge(tmp_path, server, ungated)
    assert done.returncode == 3
    assert "the request has no gates" in done.stderr


def test_what_the_service_refuses_ends_with_2_and_says_where(server: str, tmp_path: Path) -> None:
    done = judge(tmp_path, server, request("pass", betta=1))
    assert (done.returncode, done.stdout) == (2, "")
    assert "Did you mean `beta`?" in done.stderr


def test_a_misspelt_baseline_ends_with_2(server: str, tmp_path: Path) -> None:
    names = {"project": "shop", "model": "m"}
    first = judge(tmp_path, server, request("pass", **names, version="spring"))
    assert first.returncode == 0, first.stderr
    done = judge(tmp_path, server, request("fail") | names | {"baseline": {"version": "sprung"}})
    assert (done.returncode, done.stdout) == (2, "")
    assert "`spring`" in done.stderr


def test_wrong_usage_ends_with_2(tmp_path: Path) -> None:
    for arguments in ([], ["http://127.0.0.1:1"], ["http://127.0.0.1:1", "missing.json"]):
        done = run("sh", SCRIPT, *arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")


class TestOutages:
    def test_a_stopped_service_ends_with_4(self, tmp_path: Path) -> None:
        done = judge(tmp_path, stopped(), request("pass"), RPRIME_RETRIES="1")
        assert (done.returncode, done.stdout) == (4, "")
        assert "NO VERDICT" in done.stderr

    @pytest.mark.parametrize("step", [BUSY, Step(500, b"{}", PROBLEM), Step(0)])
    def test_a_busy_or_broken_service_ends_with_4(self, tmp_path: Path, step: Step) -> None:
        with flaky(step) as service:
            done = judge(tmp_path, service.url, request("pass"), RPRIME_RETRIES="0")
        assert (done.returncode, done.stdout) == (4, "")

    def test_another_server_at_the_address_ends_with_4(self, tmp_path: Path) -> None:
        with flaky(Step(body=b"<html>", headers={"Content-Type": "text/html"})) as service:
            assert judge(tmp_path, service.url, request("pass")).returncode == 4

    def test_a_service_that_comes_back_is_waited_for(self, tmp_path: Path) -> None:
        answer = Step(body=b"# Report", headers={"Evaluation-Verdict": "pass"})
        with flaky(BUSY, answer) as service:
            done = judge(tmp_path, service.url, request("pass"), RPRIME_RETRIES="1")
            assert len(service.seen) == 2
            assert len(set(service.keys)) == 1
        assert (done.returncode, done.stdout) == (0, "# Report")


def test_the_key_goes_along_and_is_no_argument(serve: Serve, tmp_path: Path, rprime: Run) -> None:
    keys = {"RPRIME_KEYS_FILE": str(tmp_path / "keys.json")}
    made = rprime("keys", "create", "--scope", "evaluate", "--name", "CI", **keys)
    assert made.returncode == 0, made.stderr
    key = next(word for word in made.stdout.split() if word.startswith("rp"))
    with serve(**keys) as client:
        url = str(client.base_url)
        assert judge(tmp_path, url, request("pass")).returncode == 2
        assert judge(tmp_path, url, request("pass"), RPRIME_KEY=key).returncode == 0
    assert "$RPRIME_KEY" not in SCRIPT.read_text().split("set -- ", 1)[1]


def test_predictions_may_be_csv(server: str, tmp_path: Path) -> None:
    rows = zip(TRUE, BAD, GOOD, strict=True)
    lines = ["y_true,y_pred,y_pred_baseline", *(",".join(row) for row in rows)]
    (tmp_path / "predictions.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "options.json").write_text(json.dumps({"gates": GATES}), encoding="utf-8")
    done = run("sh", SCRIPT, server, "predictions.csv", "options.json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "`cat`" in done.stdout
