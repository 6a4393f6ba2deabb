"""The plugin of pytest, by what pytest says and writes when it runs tests that use it."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import httpx
import pytest

from rprime import pytest_plugin
from rprime.client.in_process import evaluate, plan
from tests.examples.recipes import BAD, FEW, GOOD, TRUE
from tests.services import Serve

pytest_plugins = ["pytester"]

RULES = {
    "rules": [
        {"index": "accuracy", "max_drop": 0.02},
        {"index": "recall", "classes": "all", "max_drop": 0.1},
    ]
}
Run = Callable[..., pytest.RunResult]


@pytest.fixture
def gated(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run pytest on one test that holds these predictions against a gate.

    In this process, which has imported what the plugin imports: that takes most of the time of a
    pytest of its own.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(
        predicted: list[str], *options: str, items: slice = slice(None), **arguments: object
    ) -> pytest.RunResult:
        arguments = {"gates": RULES, "baseline": "baselines/pets.json", **arguments}
        pytester.makepyfile(
            f"""
            def test_pets(rprime_gate):
                report = rprime_gate({TRUE[items]}, {predicted[items]}, **{arguments})
                assert report.gate is not None
            """
        )
        # In the tests of rprime alone every warning is an error.
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            return pytester.runpytest_inprocess(*options, plugins=[pytest_plugin])

    return run


def baseline(pytester: pytest.Pytester, predicted: list[str], items: slice = slice(None)) -> Path:
    path = pytester.path / "baselines" / "pets.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"y_true": TRUE[items], "y_pred": predicted[items]}))
    return path


def test_a_worse_model_fails_and_the_test_says_why(gated: Run, pytester: pytest.Pytester) -> None:
    path = baseline(pytester, GOOD)
    before = path.read_bytes()
    result = gated(BAD, "--junitxml=tests.xml")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [r"Gate failed, 1 result undecided\.", r"fails: recall of class .*cat.* dropped by"]
    )
    # The report is a section of its own, and JUnit has the verdict and values.
    result.stdout.re_match_lines(["-+ Captured rprime call -+", "✗ Gate failed", " +R' +0"])
    result.stdout.no_fnmatch_line("*Traceback*")
    properties = {
        element.attrib["name"]: element.attrib["value"]
        for element in ET.parse(pytester.path / "tests.xml").iter("property")  # noqa: S314 (ours)
    }
    assert properties["rprime_verdict"] == "fail"
    accuracy = evaluate(TRUE, BAD).overall["accuracy"].value
    assert float(properties["rprime_accuracy"]) == accuracy
    assert path.read_bytes() == before


def test_an_equal_model_passes_without_a_word(gated: Run, pytester: pytest.Pytester) -> None:
    baseline(pytester, GOOD)
    result = gated(GOOD, "-W", "error")
    result.assert_outcomes(passed=1)


def test_too_few_items_warn_and_say_what_is_missing(gated: Run, pytester: pytest.Pytester) -> None:
    baseline(pytester, GOOD, FEW)
    result = gated(GOOD, items=FEW)
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(
        [
            "*GateWarning: Gate inconclusive, 3 results undecided.*",
            "*undecided*40 items are too few to tell whether it dropped by more than*",
            "*--rprime-plan*",
        ]
    )
    planned = gated(GOOD, "--rprime-plan", items=FEW)
    planned.assert_outcomes(passed=1, warnings=1)
    advice = plan(RULES, y_true=TRUE[FEW], y_pred=GOOD[FEW]).advice[0]
    planned.stdout.fnmatch_lines([f"*{advice}*"])
    # With a baseline that differs, as many items are discordant as the two are right on alone.
    other = list(GOOD)
    right = [i for i in range(*FEW.indices(len(TRUE))) if TRUE[i] == GOOD[i]]
    wrong = [i for i in range(*FEW.indices(len(TRUE))) if TRUE[i] != GOOD[i]]
    other[right[0]], other[wrong[0]] = other[wrong[0]], other[right[0]]
    baseline(pytester, other, FEW)
    model: Any = {"y_true": TRUE[FEW], "y_pred": GOOD[FEW]}
    (sentence,) = (t for t in plan(RULES, **model, discordance=0.05).advice if "assumed" in t)
    gated(GOOD, "--rprime-plan", items=FEW).stdout.fnmatch_lines([f"*{sentence}*"])


def test_the_first_run_warns_and_an_update_writes_the_baseline(
    gated: Run, pytester: pytest.Pytester
) -> None:
    first = gated(GOOD)
    first.assert_outcomes(passed=1, warnings=1)
    first.stdout.fnmatch_lines(["*It needs a baseline: `pytest --rprime-update`*"])
    assert not (pytester.path / "baselines").exists()
    gated(GOOD, "--rprime-update").assert_outcomes(passed=1, warnings=1)
    written = json.loads((pytester.path / "baselines" / "pets.json").read_bytes())
    assert written == {"y_true": TRUE, "y_pred": GOOD}
    gated(GOOD, "-W", "error").assert_outcomes(passed=1)
    gated(BAD).assert_outcomes(failed=1)


def test_a_baseline_that_is_no_json_is_named(gated: Run, pytester: pytest.Pytester) -> None:
    baseline(pytester, GOOD).write_text("<<<<<<< HEAD")
    result = gated(GOOD)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*pets.json is not JSON (*): restore it, or write it again*"])


def test_an_update_to_a_worse_model_passes_and_says_what_was_given_up(
    gated: Run, pytester: pytest.Pytester
) -> None:
    path = baseline(pytester, GOOD)
    result = gated(BAD, "--rprime-update")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.re_match_lines([".*Gate failed", ".*The baseline is updated"])
    assert json.loads(path.read_bytes())["y_pred"] == BAD


def test_other_items_are_no_baseline_and_fail_in_other_words(
    gated: Run, pytester: pytest.Pytester
) -> None:
    baseline(pytester, GOOD, FEW)
    result = gated(GOOD)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["Gate failed, but could not be judged*"])


def test_gates_are_read_from_a_file_and_its_mistakes_have_a_line(
    gated: Run, pytester: pytest.Pytester
) -> None:
    baseline(pytester, GOOD)
    pytester.makefile(".yaml", gates="rules:\n  - index: accuracy\n    max_drop: 0.02\n")
    gated(GOOD, gates="gates.yaml").assert_outcomes(passed=1)
    pytester.makefile(".yaml", gates="rules:\n  - index: accuracy\n    max_dorp: 0.02\n")
    result = gated(GOOD, gates="gates.yaml")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*gates.yaml:3:5: *max_dorp*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_baseline_keeps_scores_too(gated: Run, pytester: pytest.Pytester) -> None:
    scores = [[0.9, 0.1] if label == "cat" else [0.2, 0.8] for label in GOOD]
    evidence = {"y_score": scores, "labels": ["cat", "dog"]}
    gated(GOOD, "--rprime-update", **evidence).assert_outcomes(passed=1, warnings=1)
    written = json.loads((pytester.path / "baselines" / "pets.json").read_bytes())
    assert written == {"y_true": TRUE, "y_pred": GOOD, **evidence}
    gated(GOOD, "-W", "error", **evidence).assert_outcomes(passed=1)


@pytest.mark.slow
def test_a_service_keeps_the_baseline_and_an_update_moves_its_alias(
    gated: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = {"project": "pets", "model": "svc", "baseline": {"alias": "champion"}}
    with serve() as client:
        monkeypatch.setenv("RPRIME_SERVER", str(client.base_url))
        gated(GOOD, "--rprime-update", **stored).assert_outcomes(passed=1, warnings=1)
        champion = _champion(client)
        gated(GOOD, "-W", "error", **stored).assert_outcomes(passed=1)
        gated(BAD, **stored).assert_outcomes(failed=1)
        assert _champion(client) == champion
        gated(BAD, "--rprime-update", **stored).assert_outcomes(passed=1, warnings=1)
        assert _champion(client) != champion
    result = gated(GOOD, **stored)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ServiceUnavailableError*"])
    result.stdout.no_fnmatch_line("*Gate failed*")


def _champion(client: httpx.Client) -> str:
    alias = client.get("/v1/projects/pets/aliases/champion").raise_for_status().json()
    return str(alias["evaluation"])


def test_pytest_finds_it_by_its_entry_point_and_pays_nothing_until_it_is_used(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makepyfile(
        """
        import sys

        def test_unused(request):
            assert request.config.pluginmanager.has_plugin("rprime")
            mine = sorted(name for name in sys.modules if name.partition(".")[0] == "rprime")
            assert mine == ["rprime", "rprime.pytest_plugin"]

        def test_used(rprime_gate):
            rprime_gate(["a", "b"], ["a", "b"], gates={"rules": []})
        """
    )
    others = ("xdist", "hypothesispytest", "schemathesis", "anyio", "pytest_cov")
    blocked = [f"-pno:{name}" for name in others]
    pytester.runpytest_subprocess(*blocked).assert_outcomes(passed=2, warnings=1)
