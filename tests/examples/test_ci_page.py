"""docs/ci.md is short, and its jobs run as they stand there; test_documents runs its commands."""

import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

import rprime as library
from tests.examples.forge import JOB, TOKEN, forge_of
from tests.examples.github_runner import ACTION, Runner
from tests.examples.recipes import BAD, EXAMPLES, GOOD, TRUE, run, write_csv

ROOT = EXAMPLES.parent
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
YAML = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def block(start: str) -> str:
    """The one block of YAML that starts so."""
    (example,) = (text for text in YAML if text.lstrip().startswith(start))
    return str(example)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The repository of a newcomer: a program, its baseline and the rules of the page."""
    (tmp_path / "gates.yaml").write_text(block("# gates.yaml"), encoding="utf-8")
    (tmp_path / "predict.py").write_text(
        "import shutil\nshutil.copy('predicted', 'predictions.csv')\n", encoding="utf-8"
    )
    write_csv(tmp_path / "champion.csv", y_true=TRUE, y_pred=GOOD)
    write_csv(tmp_path / "predicted", y_true=TRUE, y_pred=BAD)
    return tmp_path


def test_a_newcomer_reads_it_in_ten_minutes() -> None:
    """At 200 words a minute, code and tables counted."""
    assert len(PAGE.split()) <= 2000


def test_the_version_is_this_one() -> None:
    assert set(re.findall(r"@v([\d.]+\d)\n|/v([\d.]+\d)\.tar", PAGE)) == {
        (library.__version__, ""),
        ("", library.__version__),
    }


def test_the_page_and_the_examples_have_the_same_rules() -> None:
    of_examples = yaml.safe_load((EXAMPLES / "gates.yaml").read_bytes())
    assert yaml.safe_load(block("# gates.yaml")) == {
        "rules": of_examples["rules"],
        "effects": {"suspect": of_examples["effects"]["suspect"]},
    }


@pytest.mark.slow
def test_the_workflow_is_valid_and_fails_for_a_worse_model(folder: Path) -> None:
    file = folder / "workflow.yml"
    file.write_text(block("name: Model quality"), encoding="utf-8")
    workflow: Any = yaml.safe_load(file.read_bytes())
    schema = ("--builtin-schema", "vendor.github-workflows")
    done = run("check-jsonschema", *schema, file, cwd=folder)
    assert done.returncode == 0, done.stdout
    with forge_of("github") as forge:
        runner = Runner(folder, api=forge.url, token=JOB, event={"pull_request": {"number": 7}})
        steps = [*workflow["jobs"]["gate"]["steps"], *yaml.safe_load(block("- uses: "))]
        done = runner.job(steps)
        assert done.returncode == 1, done.stderr
        assert len(forge.bodies) == len(runner.kept) == 1
        assert "::error file=gates.yaml,line=5,col=5,title=recall.max_drop" in done.stdout
        shutil.copy(folder / "champion.csv", folder / "predicted")
        assert runner.job(steps).returncode == 0
        assert ["Gate passed" in body for body in forge.bodies] == [True]


@pytest.mark.slow
def test_the_job_of_gitlab_is_valid_and_fails_for_a_worse_model(folder: Path) -> None:
    (folder / ".gitlab-ci.yml").write_text(block("model-quality:"), encoding="utf-8")
    schema = ("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci")
    done = run("check-jsonschema", *schema, folder / ".gitlab-ci.yml", cwd=folder)
    assert done.returncode == 0, done.stdout
    job: Any = yaml.safe_load(block("model-quality:"))["model-quality"]
    script = "\n".join([*job["before_script"], *job["script"]])
    with forge_of("gitlab") as forge:
        variables = {
            "CI_JOB_URL": "https://gitlab.example/jobs/7",
            "CI_API_V4_URL": forge.url,
            "CI_PROJECT_ID": "5",
            "CI_MERGE_REQUEST_IID": "7",
            "GITLAB_TOKEN": TOKEN,
        }
        for status, word in ((1, "failed"), (0, "passed")):
            done = run("sh", "-e", "-c", script, cwd=folder, variables=variables)
            assert done.returncode == status, done.stderr
            (note,) = forge.bodies
            assert f"Gate {word}" in note
            shutil.copy(folder / "champion.csv", folder / "predicted")
        without = run(
            "sh", "-e", "-c", script, cwd=folder, variables=variables | {"GITLAB_TOKEN": ""}
        )
        assert without.returncode == 0, without.stderr
    reports = job["artifacts"]["reports"]
    # The recall of three classes, and its average.
    assert len(list(ET.parse(folder / reports["junit"]).getroot().iter("testcase"))) == 4  # noqa: S314 (ours)
    assert (folder / reports["metrics"]).read_text().endswith("# EOF\n")
    assert all((folder / path).exists() for path in job["artifacts"]["paths"])


def test_every_input_and_output_of_the_action_is_named() -> None:
    for name in (*ACTION["inputs"], *ACTION["outputs"]):
        assert f"`{name}`" in PAGE, name
    with_service: Any = yaml.safe_load(block("with:"))["with"]
    assert with_service.keys() <= ACTION["inputs"].keys()
