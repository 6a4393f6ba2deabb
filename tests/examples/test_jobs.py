"""The jobs for GitHub and GitLab: valid, and their scripts run as they are run there."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import httpx
import pytest

import rprime as library
from tests.examples.recipes import (
    BAD,
    EXAMPLES,
    FEW,
    GOOD,
    PROGRAMS,
    TRUE,
    Done,
    filled,
    load,
    missing,
    out_of_reach,
    run,
    write_csv,
)
from tests.failing_service import stopped
from tests.services import Serve, environment

pytestmark = pytest.mark.slow

WORKFLOW = load("github/workflow.yml")
ACTION = load("github/action.yml")
GITLAB = load("gitlab/.gitlab-ci.yml")["model-quality"]
REGISTRIES = bool(os.environ.get("RPRIME_TEST_REGISTRIES"))
# How GitHub runs `run` of a step, with the default shell and with `shell: bash`.
DEFAULT_SHELL = ("bash", "-e", "-c")
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")


@pytest.mark.parametrize(
    ("schema", "file"),
    [
        ("github-workflows", "github/workflow.yml"),
        ("github-actions", "github/action.yml"),
        ("gitlab-ci", "gitlab/.gitlab-ci.yml"),
    ],
)
def test_it_is_valid_by_its_published_schema(schema: str, file: str) -> None:
    more = ["--data-transform", "gitlab-ci"] if schema == "gitlab-ci" else []
    schemas = ("--builtin-schema", f"vendor.{schema}")
    done = run(PROGRAMS / "check-jsonschema", *schemas, *more, EXAMPLES / file, cwd=EXAMPLES)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_version_that_is_installed_is_this_one() -> None:
    for file in ("github/workflow.yml", "gitlab/.gitlab-ci.yml"):
        archive = f"/rprime/archive/refs/tags/v{library.__version__}.tar.gz"
        assert archive in (EXAMPLES / file).read_text()
    assert f"github@v{library.__version__}" in (EXAMPLES / "github/action.yml").read_text()


@dataclass(frozen=True)
class Runner:
    """What a runner of GitHub gives to a step."""

    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        return {
            "RUNNER_TEMP": str(self.folder / "temp"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_PATH": str(self.folder / "path"),
            "GITHUB_ACTION_PATH": str(EXAMPLES / "github"),
            "GITHUB_SHA": "0123456789abcdef0123456789abcdef01234567",
            "GITHUB_REF_NAME": "main",
            "GITHUB_HEAD_REF": "",
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_REPOSITORY": "owner/repository",
            "GITHUB_RUN_ID": "7",
        }

    @property
    def summary(self) -> str:
        return (self.folder / "summary.md").read_text(encoding="utf-8")

    @property
    def outputs(self) -> dict[str, str]:
        lines = (self.folder / "output").read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    (tmp_path / "temp").mkdir()
    shutil.copy(EXAMPLES / "gates.yaml", tmp_path)
    shutil.copy(EXAMPLES / "train_digits.py", tmp_path)
    write_csv(tmp_path / "predictions.csv", y_true=TRUE, y_pred=GOOD)
    write_csv(tmp_path / "champion.csv", y_true=TRUE, y_pred=GOOD)
    return Runner(tmp_path)


@pytest.fixture(scope="module")
def history(serve: Serve) -> Iterator[httpx.Client]:
    """A service that keeps, and has nothing yet."""
    with serve() as client:
        yield client


def kept(history: httpx.Client, project: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = history.get(f"/v1/projects/{project}/evaluations").json()["items"]
    return found


def champion(history: httpx.Client, project: str = "digits") -> str:
    found = history.get(f"/v1/projects/{project}/aliases/champion").json()
    return str(found["evaluation"])


def in_turn(steps: Sequence[tuple[tuple[str, ...], str, dict[str, str]]], folder: Path) -> Done:
    """Run steps, each as shell, script and variables, up to the first that fails."""
    ended: list[Done] = []
    for shell, script, variables in steps:
        assert "${{" not in script, "an expression in a script is an injection"
        ended.append(run(*shell, script, cwd=folder, variables=variables))
        if ended[-1].returncode:
            break
    return ended[-1]


def _variables(env: dict[str, str], contexts: dict[str, dict[str, str]]) -> dict[str, str]:
    return {name: filled(value, **contexts) for name, value in env.items()}


class TestWorkflow:
    @staticmethod
    def gate(runner: Runner, *, server: str = "", steps: str = "Gate", branch: str = "") -> Done:
        """Run the steps one after the other; the last one counts."""
        job = WORKFLOW["jobs"]["gate"]
        scripts = {step["name"]: step["run"] for step in job["steps"] if "run" in step}
        contexts = {"vars": {"RPRIME_SERVER": server}, "secrets": {}}
        given = _variables(job["env"], contexts)
        given |= runner.variables | {"GITHUB_HEAD_REF": branch}
        return in_turn(
            [(DEFAULT_SHELL, scripts[name], given) for name in steps.split()], runner.folder
        )

    def test_all_of_it_passes_on_the_digits(self, runner: Runner) -> None:
        done = self.gate(runner, steps="Install Predict Gate")
        assert done.returncode == 0, done.stderr
        assert "::notice title=Evaluation::Gate passed" in done.stdout
        assert "Gate passed" in runner.summary
        assert (runner.folder / "rprime.html").read_text().startswith("<!doctype html>")
        cases = ET.parse(runner.folder / "rprime.xml").getroot().iter("testcase")  # noqa: S314 (ours)
        assert len(list(cases)) == 11

    def test_a_worse_model_ends_with_1_and_says_where(self, runner: Runner) -> None:
        write_csv(runner.folder / "predictions.csv", y_true=TRUE, y_pred=BAD)
        done = self.gate(runner)
        assert done.returncode == 1, done.stderr
        place = "::error file=gates.yaml,line=7,col=5,title=recall.max_drop, class cat"
        assert place in done.stdout.replace("%2C", ",")
        assert runner.outputs["verdict"] == "fail"
        assert (runner.folder / "rprime.md").read_text().startswith("<!-- rprime:report ")
        assert "Gate failed" in runner.summary

    def test_with_a_service_only_a_pass_moves_the_champion(
        self, runner: Runner, history: httpx.Client
    ) -> None:
        server = str(history.base_url)
        first = self.gate(runner, server=server, steps="Gate Promote")
        assert first.returncode == 0, first.stderr
        assert "no baseline" in runner.summary
        (oldest,) = kept(history, "digits")
        assert champion(history) == oldest["id"]
        write_csv(runner.folder / "predictions.csv", y_true=TRUE, y_pred=BAD)
        worse = self.gate(runner, server=server, steps="Gate Promote", branch="worse")
        assert worse.returncode == 1, worse.stderr
        newest = kept(history, "digits")[0]
        assert (newest["verdict"], oldest["verdict"]) == ("fail", "inconclusive")
        report = history.get(f"/v1/evaluations/{newest['id']}").json()
        assert report["comparison"]["pairing"] == "paired"
        assert report["comparison"]["baseline"]["resolved"] == oldest["id"]
        assert champion(history) == oldest["id"]
        write_csv(runner.folder / "predictions.csv", y_true=TRUE, y_pred=TRUE)
        better = self.gate(runner, server=server, steps="Gate Promote")
        assert better.returncode == 0, better.stderr
        newest = kept(history, "digits")[0]
        assert (newest["verdict"], champion(history)) == ("pass", newest["id"])

    def test_only_main_moves_the_champion(self) -> None:
        steps = WORKFLOW["jobs"]["gate"]["steps"]
        (step,) = (step for step in steps if step.get("name") == "Promote")
        condition = "vars.RPRIME_SERVER && github.ref == 'refs/heads/main'"
        assert step["if"] == f"${{{{ {condition} }}}}"

    def test_an_outage_ends_with_4(self, runner: Runner) -> None:
        done = self.gate(runner, server=stopped())
        assert done.returncode == 4
        assert "NO VERDICT" in done.stderr

    def test_nothing_but_the_comment_may_write(self) -> None:
        assert WORKFLOW["permissions"] == {"contents": "read"}
        comment = WORKFLOW["jobs"]["comment"]
        assert comment["permissions"] == {"contents": "read", "pull-requests": "write"}
        assert comment["steps"][-1]["run"] == 'sh comment.sh rprime.md "$NUMBER"'
        assert "permissions" not in WORKFLOW["jobs"]["gate"]


class TestAction:
    @staticmethod
    def use(runner: Runner, **inputs: str) -> Done:
        """Run the steps as `uses` with these inputs does; the last one only to promote."""
        names = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert names.keys() <= ACTION["inputs"].keys()
        defaults = {name: found.get("default", "") for name, found in ACTION["inputs"].items()}
        given = {"file": "predictions.csv", "gates": "gates.yaml"} | names
        contexts = {"inputs": defaults | given}
        steps = ACTION["runs"]["steps"][: None if "promote" in inputs else -1]
        assert {step["shell"] for step in steps} == {"bash"}
        ended: list[Done] = []
        for step in steps:
            variables = runner.variables | _variables(step.get("env", {}), contexts)
            ended.append(in_turn([(BASH, step["run"], variables)], runner.folder))
            if ended[-1].returncode:
                break
            # What the earlier steps have written is there for the next ones.
            if "id" in step:
                contexts["steps"] = {
                    f"{step['id']}.outputs.{name}": value for name, value in runner.outputs.items()
                }
        return ended[-1]

    def test_a_good_model_passes(self, runner: Runner) -> None:
        done = self.use(runner, baseline="champion.csv")
        assert done.returncode == 0, done.stderr
        assert runner.outputs["verdict"] == "pass"
        assert Path(runner.outputs["report"]).read_text().startswith("{")
        ET.parse(runner.outputs["junit"])  # noqa: S314 (ours) (our own)
        assert "Gate passed" in runner.summary
        assert "::notice" in done.stdout

    def test_a_bad_one_fails(self, runner: Runner) -> None:
        write_csv(runner.folder / "predictions.csv", y_true=TRUE, y_pred=BAD)
        done = self.use(runner, baseline="champion.csv")
        assert done.returncode == 1
        assert runner.outputs["verdict"] == "fail"
        assert "::error" in done.stdout

    @pytest.mark.parametrize(("strict", "status"), [("false", 0), ("true", 3)])
    def test_too_few_items_tell_nothing(self, runner: Runner, strict: str, status: int) -> None:
        write_csv(runner.folder / "predictions.csv", y_true=TRUE[FEW], y_pred=GOOD[FEW])
        write_csv(runner.folder / "champion.csv", y_true=TRUE[FEW], y_pred=GOOD[FEW])
        done = self.use(runner, baseline="champion.csv", strict=strict)
        assert done.returncode == status
        assert runner.outputs["verdict"] == "inconclusive"

    @pytest.mark.parametrize(("on_service_error", "status"), [("fail", 4), ("warn", 0)])
    def test_an_outage_is_no_verdict(
        self, runner: Runner, on_service_error: str, status: int
    ) -> None:
        done = self.use(runner, server=stopped(), on_service_error=on_service_error)
        assert done.returncode == status
        assert runner.outputs == {"verdict": "none"}

    def test_a_missing_file_is_no_verdict(self, runner: Runner) -> None:
        done = self.use(runner, file="missing.csv")
        assert done.returncode == 2
        assert runner.outputs == {"verdict": "none"}

    def test_without_rules_there_is_a_report_and_no_verdict(self, runner: Runner) -> None:
        done = self.use(runner, gates="")
        assert done.returncode == 0
        assert runner.outputs["verdict"] == "none"
        assert "report" in runner.outputs

    def test_a_service_keeps_it(self, runner: Runner, history: httpx.Client) -> None:
        given = {"project": "shop", "baseline": "alias=champion", "promote": "champion"}
        for predicted in (GOOD, TRUE):
            write_csv(runner.folder / "predictions.csv", y_true=TRUE, y_pred=predicted)
            done = self.use(runner, server=str(history.base_url), **given)
            assert done.returncode == 0, done.stderr
            assert champion(history, "shop") == kept(history, "shop")[0]["id"]
        assert [found["verdict"] for found in kept(history, "shop")] == ["pass", "inconclusive"]

    def test_an_input_is_never_a_program(self, runner: Runner) -> None:
        for bad in ("$(touch hacked)", "; touch hacked", "--html=hacked"):
            assert self.use(runner, file=bad).returncode == 2
        assert not (runner.folder / "hacked").exists()

    def test_it_installs_itself_where_the_runner_has_none(
        self, runner: Runner, tmp_path: Path
    ) -> None:
        python = _python_with_pip()
        if python is None:
            missing("installing the action needs a Python with venv and pip")
        links = tmp_path / "bin"
        links.mkdir()
        (links / "python3").symlink_to(str(python))
        install = ACTION["runs"]["steps"][0]["run"]
        given = {"PATH": f"{links}:/usr/bin:/bin"}
        # Without the registry: the package alone is built and installed, and what it depends on is
        # that of this environment. With it, which takes minutes, all of it is installed.
        if not REGISTRIES:
            given |= {"PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
            given["PYTHONPATH"] = sysconfig.get_path("purelib")
        done = run(
            *BASH, install, cwd=runner.folder, variables=runner.variables | given, timeout=600
        )
        if done.returncode != 0 and "No matching distribution" in done.stderr:
            out_of_reach(done.stderr)
        assert done.returncode == 0, done.stderr
        program = Path((runner.folder / "path").read_text().strip()) / "rprime"
        assert (program.parents[1] / "pyvenv.cfg").exists()
        found = run(program, "--version", cwd=runner.folder, variables=given)
        assert found.stdout == f"rprime {library.__version__}\n", found.stderr
        (package,) = program.parents[1].glob("lib/*/site-packages/rprime")
        assert (package / "docs" / "index.md").exists()
        matrix = EXAMPLES / "mnist.json"
        found = run(program, "evaluate", matrix, "--json", cwd=runner.folder, variables=given)
        assert '"accuracy":{"value":0.9806' in found.stdout, found.stderr


def _python_with_pip() -> str | None:
    """Find a Python that makes environments with pip; Debian keeps that apart."""
    base = Path(sys.base_prefix, "bin", "python3")
    # Another version could not import what this environment has.
    for python in (str(base), "/usr/bin/python3")[: None if REGISTRIES else 1]:
        check = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"
        if (
            Path(python).exists()
            and not subprocess.run(
                [python, "-c", check], env=environment(), stderr=subprocess.DEVNULL, check=False
            ).returncode
        ):
            return python
    return None


class TestGitLab:
    @staticmethod
    def job(folder: Path, **variables: str) -> Done:
        """Run the script as a runner does: all lines in one shell, up to the first failure."""
        script = "\n".join([*GITLAB["before_script"], *GITLAB["script"]])
        given = {
            "CI_COMMIT_SHA": "0123456789abcdef0123456789abcdef01234567",
            "CI_COMMIT_REF_NAME": "main",
            "CI_DEFAULT_BRANCH": "main",
            "CI_JOB_URL": "https://gitlab.example/owner/repository/-/jobs/7",
        }
        return run("sh", "-e", "-c", script, cwd=folder, variables=given | variables)

    def test_the_digits_pass_and_every_report_is_there(self, runner: Runner) -> None:
        done = self.job(runner.folder)
        assert done.returncode == 0, done.stderr
        reports = GITLAB["artifacts"]["reports"]
        root = ET.parse(runner.folder / reports["junit"]).getroot()  # noqa: S314 (ours) (our own)
        assert len(list(root.iter("testcase"))) == 11
        assert (runner.folder / reports["metrics"]).read_text().endswith("# EOF\n")
        for path in GITLAB["artifacts"]["paths"]:
            assert (runner.folder / path).exists()

    def test_a_service_keeps_it_and_the_first_run_warns(
        self, runner: Runner, history: httpx.Client
    ) -> None:
        history.request("DELETE", "/v1/projects/digits")
        server = str(history.base_url)
        first = self.job(runner.folder, RPRIME_SERVER=server)
        assert first.returncode == 3, first.stderr
        (oldest,) = kept(history, "digits")
        second = self.job(runner.folder, RPRIME_SERVER=server, CI_COMMIT_REF_NAME="better")
        assert second.returncode == 0, second.stderr
        found = [(one["branch"], one["verdict"]) for one in kept(history, "digits")]
        assert found == [("better", "pass"), ("main", "inconclusive")]
        assert champion(history) == oldest["id"]
        third = self.job(runner.folder, RPRIME_SERVER=server, CI_COMMIT_SHA="1")
        assert third.returncode == 0, third.stderr
        assert champion(history) == kept(history, "digits")[0]["id"]

    def test_only_what_says_nothing_of_the_model_may_fail(self, runner: Runner) -> None:
        done = self.job(runner.folder, RPRIME_SERVER=stopped())
        assert done.returncode == 4
        assert GITLAB["allow_failure"] == {"exit_codes": [3, 4]}
