"""`rprime init` writes a gate that passes the model as it is, and fails a worse one."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.examples.recipes import PROGRAMS, Done, run
from tests.services import Serve

Write = Callable[..., Path]
DOCS = Path(__file__).parents[2] / "docs" / "ci.md"


@pytest.fixture
def predictions(tmp_path: Path) -> Write:
    """Return what writes predictions of two classes, with so many errors in each."""

    def write(*errors: int, items: int = 200, name: str = "predictions.csv") -> Path:
        rows = ["y_true,y_pred"]
        for label, wrong in enumerate(errors):
            other = (label + 1) % len(errors)
            rows += [f"{label},{other if i < wrong else label}" for i in range(items)]
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join([*rows, ""]), encoding="utf-8")
        return path

    return write


def init(folder: Path, *options: str) -> Done:
    return run("rprime", "init", *options, cwd=folder)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("items", [20, 60, 200, 1000])
def test_the_script_passes_the_same_file_and_fails_a_planted_drop(
    tmp_path: Path, predictions: Write, items: int
) -> None:
    predictions(items // 20, items // 20, items=items)
    done = init(tmp_path)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path) == {"predictions.csv", "gates.yaml", "champion.csv", "model-quality.sh"}
    unchanged = run("sh", "model-quality.sh", cwd=tmp_path)
    assert unchanged.returncode == 0, unchanged.stderr
    assert "Gate passed" in unchanged.stdout
    predictions(items * 7 // 10, items // 20, items=items)
    worse = run("sh", "model-quality.sh", cwd=tmp_path)
    assert worse.returncode == 1, worse.stdout
    assert "GATE FAILED" in worse.stderr


def test_columns_of_other_names_are_read_by_the_job_too(tmp_path: Path, predictions: Write) -> None:
    file = predictions(10, 10)
    content = file.read_text("utf-8").replace("y_true,y_pred", "label,said")
    (tmp_path / "mine.csv").write_text(content, encoding="utf-8")
    file.unlink()
    done = init(tmp_path, "mine.csv", "--columns", "y_true=label,y_pred=said")
    assert done.returncode == 0, done.stderr
    assert files(tmp_path) == {
        *("mine.csv", "gates.yaml", "columns.json", "champion.csv", "model-quality.sh")
    }
    assert run("sh", "model-quality.sh", cwd=tmp_path).returncode == 0
    (tmp_path / "mine.csv").write_text(content.replace("0,0", "0,1", 140), encoding="utf-8")
    assert run("sh", "model-quality.sh", cwd=tmp_path).returncode == 1
    again = init(tmp_path, "mine.csv", "--ci", "github", "--columns", "y_true=label,y_pred=said")
    assert again.returncode == 0, again.stderr
    job = (tmp_path / ".github/workflows/model-quality.yml").read_text("utf-8")
    (step,) = (
        step
        for step in yaml.safe_load(job)["jobs"].popitem()[1]["steps"]
        if "with" in step and "gates" in step["with"]
    )
    assert step["with"]["request"] == "columns.json"


def test_a_table_in_long_form_is_counted_by_the_job_too(tmp_path: Path) -> None:
    rows = ["y_true,y_pred,hits,day", "a,a,190,1", "a,b,10,1", "b,a,12,1", "b,b,188,1"]
    (tmp_path / "long.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    done = init(tmp_path, "long.csv", "--count", "hits")
    assert done.returncode == 0, done.stderr
    assert run("sh", "model-quality.sh", cwd=tmp_path).returncode == 0


def test_what_to_do_next_can_be_done(tmp_path: Path, predictions: Write) -> None:
    predictions(10, 10)
    done = init(tmp_path)
    (command,) = re.findall(r"Try it: (.*)", done.stdout)
    assert run("sh", "-c", command, cwd=tmp_path).returncode == 0
    (named,) = re.findall(r"Commit (.*), and a new", done.stdout)
    assert all((tmp_path / name).is_file() for name in named.split())
    assert os.access(tmp_path / "model-quality.sh", os.X_OK)


def test_the_comments_have_the_numbers_of_lint(tmp_path: Path, predictions: Write) -> None:
    predictions(10, 30)
    assert init(tmp_path).returncode == 0
    text = (tmp_path / "gates.yaml").read_text(encoding="utf-8")
    said = " ".join(line.strip(" #") for line in text.splitlines() if "#" in line)
    lint = run("rprime", "lint", "predictions.csv", "--gates", "gates.yaml", cwd=tmp_path)
    summary, _, *rows = lint.stdout.splitlines()
    assert summary.split(".")[0] in said
    for row in rows[:4]:
        rule, *_, drop = row.split()
        assert rule in {"accuracy.max_drop", "recall.max_drop"}
        assert f"a drop of {drop}" in said, row
    assert run("rprime", "gates-schema", "gates.yaml", cwd=tmp_path).returncode == 0


def test_limits_are_as_strict_as_the_test_set_can_show(tmp_path: Path, predictions: Write) -> None:
    limits = []
    for items in (10, 40, 1000):
        predictions(0, 1, items=items)
        assert init(tmp_path, "--force").returncode == 0
        rules = yaml.safe_load((tmp_path / "gates.yaml").read_bytes())["rules"]
        limits.append(tuple(rule["max_drop"] for rule in rules))
    assert limits == [(0.2, 0.3), (0.05, 0.1), (0.02, 0.1)]


def test_too_few_items_are_refused_and_nothing_is_written(
    tmp_path: Path, predictions: Write
) -> None:
    predictions(0, 1, items=3)
    done = init(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "6 items in 2 classes are too few for a gate" in done.stderr
    assert files(tmp_path) == {"predictions.csv"}


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "there is no file predictions.csv"), ("a,b\n1,2\n", "The column `y_true` is missing")],
)
def test_what_is_no_file_of_predictions_is_refused(
    tmp_path: Path, content: str | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "predictions.csv").write_text(content, encoding="utf-8")
    done = init(tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert not files(tmp_path) - {"predictions.csv"}


def test_the_baseline_has_another_name_than_the_predictions(
    tmp_path: Path, predictions: Write
) -> None:
    predictions(1, 1, name="champion.csv")
    done = init(tmp_path, "champion.csv")
    assert done.returncode == 2
    assert "has the name of the baseline" in done.stderr


def test_files_that_are_there_stay_without_force(tmp_path: Path, predictions: Write) -> None:
    written = predictions(10, 10)
    for name in ("gates.yaml", "champion.csv", "model-quality.sh"):
        (tmp_path / name).write_text("mine\n", encoding="utf-8")
    done = init(tmp_path)
    assert done.returncode == 0
    assert done.stderr.count("is there and stays as it is; --force overwrites it") == 3
    for name in ("gates.yaml", "champion.csv", "model-quality.sh"):
        assert (tmp_path / name).read_text(encoding="utf-8") == "mine\n"
    assert init(tmp_path, "--force").returncode == 0
    assert (tmp_path / "champion.csv").read_bytes() == written.read_bytes()
    assert run("sh", "model-quality.sh", cwd=tmp_path).returncode == 0


def test_predictions_of_another_folder_are_named_by_their_path(
    tmp_path: Path, predictions: Write
) -> None:
    predictions(10, 10, name="my out/it's.csv")
    for ci in ("shell", "github", "gitlab"):
        assert init(tmp_path, "my out/it's.csv", "--ci", ci).returncode == 0
    assert run("sh", "model-quality.sh", cwd=tmp_path).returncode == 0
    workflow: Any = yaml.safe_load((tmp_path / ".github/workflows/model-quality.yml").read_bytes())
    assert workflow["jobs"]["gate"]["steps"][-1]["with"]["file"] == "my out/it's.csv"


@pytest.mark.parametrize(
    ("there", "written"),
    [
        (".github/CODEOWNERS", ".github/workflows/model-quality.yml"),
        (".gitlab-ci.yml", "model-quality.gitlab-ci.yml"),
        ("Jenkinsfile", "model-quality.sh"),
    ],
)
def test_the_ci_is_that_of_the_repository(
    tmp_path: Path, predictions: Write, there: str, written: str
) -> None:
    predictions(10, 10)
    path = tmp_path / there
    path.parent.mkdir(exist_ok=True)
    path.write_text("# mine\n", encoding="utf-8")
    first, again = (init(tmp_path, "--force") for _ in range(2))
    assert (first.returncode, again.returncode) == (0, 0)
    assert written in files(tmp_path)
    assert path.read_text(encoding="utf-8") == "# mine\n"
    assert ("include: {local: model-quality.gitlab-ci.yml}" in again.stdout) == (
        there == ".gitlab-ci.yml"
    )


JOBS: dict[str, tuple[str, str, list[str]]] = {
    "github": (".github/workflows/model-quality.yml", "name: Model quality", ["github-workflows"]),
    "gitlab": (".gitlab-ci.yml", "model-quality:", ["gitlab-ci", "--data-transform", "gitlab-ci"]),
}


@pytest.mark.parametrize("project", [(), ("--project", "pets")])
@pytest.mark.parametrize("ci", JOBS)
def test_the_jobs_are_valid_and_those_of_the_page(
    tmp_path: Path, predictions: Write, ci: str, project: tuple[str, ...]
) -> None:
    predictions(10, 10)
    assert init(tmp_path, "--ci", ci, *project).returncode == 0
    path, start, (schema, *options) = JOBS[ci]
    how = ("--builtin-schema", f"vendor.{schema}", *options)
    done = run("check-jsonschema", *how, path, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    if not project:
        (block,) = re.findall(rf"```yaml\n({start}.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
        shown = re.sub(r" *- (?:run: )?python predict\.py\n", "", block)
        written: Any = yaml.safe_load((tmp_path / path).read_bytes())
        assert written == yaml.safe_load(shown)


def test_a_project_called_like_a_word_of_yaml_stays_a_text(
    tmp_path: Path, predictions: Write
) -> None:
    predictions(10, 10)
    assert init(tmp_path, "--ci", "github", "--project", "on").returncode == 0
    written: Any = yaml.safe_load((tmp_path / JOBS["github"][0]).read_bytes())
    (job,) = written["jobs"].values()
    assert [
        step["with"]["project"] for step in job["steps"] if "project" in step.get("with", ())
    ] == ["on"]


def test_a_project_that_no_service_takes_is_refused(tmp_path: Path, predictions: Write) -> None:
    predictions(10, 10)
    done = init(tmp_path, "--project", "my pets")
    assert done.returncode == 2
    assert "/project: `project` must begin with" in done.stderr
    assert files(tmp_path) == {"predictions.csv"}


def test_the_scripts_are_clean_by_shellcheck(tmp_path: Path, predictions: Write) -> None:
    predictions(10, 10)
    for options in ((), ("--project", "pets")):
        assert init(tmp_path, *options, "--force").returncode == 0
        shellcheck = PROGRAMS / "shellcheck"
        done = run(shellcheck, "--shell", "sh", tmp_path / "model-quality.sh", cwd=tmp_path)
        assert done.returncode == 0, done.stdout


def test_with_a_project_the_alias_of_the_service_is_the_baseline(
    tmp_path: Path, predictions: Write, serve: Serve
) -> None:
    predictions(10, 10)
    assert init(tmp_path, "--project", "pets").returncode == 0
    assert "champion.csv" not in files(tmp_path)
    with serve() as client:
        there = {"RPRIME_SERVER": str(client.base_url)}

        def script(*arguments: str) -> Done:
            return run("sh", "model-quality.sh", *arguments, cwd=tmp_path, variables=there)

        first = script("promote")
        assert first.returncode == 0, first.stderr
        assert "champion of pets points at" in first.stderr
        assert script().returncode == 0
        predictions(130, 10)
        worse = script("promote")
        assert worse.returncode == 1, worse.stdout
        assert "champion of pets" not in worse.stderr
