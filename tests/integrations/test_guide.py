"""The examples of docs/integrations.md run as they stand there."""

import re
from pathlib import Path
from typing import Any

import pytest

import rprime

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text(encoding="utf-8")


def blocks(section: str, language: str = "python") -> list[str]:
    """Return the blocks of a section, which is named by its heading."""
    (text,) = re.findall(
        rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE
    )
    examples = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert examples, section
    return examples


@pytest.mark.slow
def test_the_test_of_the_pytest_section_gets_its_baseline_and_passes(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    (example,) = blocks("pytest")
    pytester.makepyfile(example)
    for option, warned in (("--rprime-update", 1), ("-Werror", 0)):
        result = pytester.runpytest_subprocess("-p", "rprime.pytest_plugin", option)
        result.assert_outcomes(passed=1, warnings=warned)
    assert (pytester.path / "baselines" / "digits.json").exists()


def test_the_hook_has_this_version() -> None:
    (example,) = blocks("pre-commit", "yaml")
    assert f"rev: v{rprime.__version__}\n" in example


def test_the_example_of_the_scikit_learn_section_runs() -> None:
    (example,) = blocks("scikit-learn")
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102 (the text of the page is what is tested)
    low, high = names["cross_validated"](names["logistic"], names["bayes"])["r_prime"].interval
    assert 0 < low < high < 1
    assert names["report"].counts.items == 897


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # MLflow uses what its dependencies deprecate
def test_the_examples_of_the_mlflow_section_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    names: dict[str, Any] = {}
    try:
        for example in blocks("MLflow"):
            exec(example, names)  # noqa: S102 (the text of the page is what is tested)
        data = names["mlflow"].get_run(names["run"].info.run_id).data
    finally:
        names["mlflow"].set_tracking_uri(None)
    assert data.tags["rprime.verdict"] == "pass"
    assert data.metrics["rprime/accuracy_lower"] < data.metrics["rprime/accuracy"]
    assert 0 < data.metrics["rprime/class/8/recall"] < 1
    assert names["result"].metrics == data.metrics
