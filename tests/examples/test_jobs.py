"""The jobs for GitHub and GitLab: valid, and their scripts run as they are run there."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import rprime as library
from tests.examples.forge import JOB, READS, TOKEN, Forge, forge_of
from tests.examples.github_runner import ACTION, BASH, Runner
from tests.examples.recipes import (
    BAD,
    EXAMPLES,
    FEW,
    GOOD,
    PROGRAMS,
    TRUE,
    Done,
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
STEPS = WORKFLOW["jobs"]["gate"]["steps"]
GITLAB = load("gitlab/.gitlab-ci.yml")["model-quality"]
REGISTRIES = bool(os.environ.get("RPRIME_TEST_REGISTRIES"))
PULL_REQUEST = {"pull_request": {"number": 7}}


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
    archive = f"/rprime/archive/refs/tags/v{library.__version__}.tar.gz"
    assert archive in (EXAMPLES / "gitlab/.gitlab-ci.yml").read_text()
    for file in ("github/workflow.yml", "github/action.yml"):
        assert f"examples/github@v{library.__version__}" in (EXAMPLES / file).read_text()


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    shutil.copy(EXAMPLES / "gates.yaml", tmp_path)
    shutil.copy(EXAMPLES / "train_digits.py", tmp_path)
    write_csv(tmp_path / "predictions.csv", y_true=TRUE, y_pred=GOOD)
    write_csv(tmp_path / "champion.csv", y_true=TRUE, y_pred=GOOD)
    return Runner(tmp_path)


@pytest.fixture
def github() -> Iterator[Forge]:
    with forge_of("github") as forge:
        yield forge


@pytest.fixture(scope="module")
def history(serve: Serve) -> Iterator[httpx.Client]:
    """A service that keeps, and has nothing yet."""
    with serve() as client:
        yield client


def kept(history: httpx.Client, project: str) -> list[dict[str, str]]:
    items: list[dict[str, str]] = history.get(f"/v1/projects/{project}/evaluations").json()["items"]
    return items


def champion(history: httpx.Client, project: str = "digits", alias: str = "champion") -> str:
    record = history.get(f"/v1/projects/{project}/aliases/{alias}").json()
    return str(record["evaluation"])


class TestWorkflow:
    @staticmethod
    def gate(runner: Runner, *, without: str = "Predict") -> Done:
        """Run the job, by default on predictions that are there."""
        return runner.job([step for step in STEPS if step.get("name") != without])

    def test_all_of_it_passes_on_the_digits(self, runner: Runner) -> None:
        # pip has nothing to do where scikit-learn is installed; the environment here has no pip.
        (predict,) = (step for step in STEPS if step.get("name") == "Predict")
        predict = predict | {"run": re.sub("python -m pip .*\n", "", predict["run"])}
        done = runner.job([predict if step.get("name") == "Predict" else step for step in STEPS])
        assert done.returncode == 0, done.stderr
        assert "::notice title=Evaluation::Gate passed" in done.stdout
        assert "Gate passed" in runner.summary
        (html,) = runner.kept
        assert Path(html).read_text().startswith("<!doctype html>")

    def test_a_worse_model_ends_with_1_and_says_where(self, runner: Runner) -> None:
        write_csv(runner.folder / "predictions.csv", y_true=TRUE, y_pred=BAD)
        done = self.gate(runner)
        assert done.returncode == 1, done.stderr
        # The class, and with it the average, which is suspect.
        place = "::error file=gates.yaml,line=7,col=5,title=recall.max_drop: 2 results fail"
        assert place in done.stdout.replace("%3A", ":")
        assert "recall of class `cat` dropped by 0.36" in done.stdout
        assert "Gate failed" in runner.summary
        assert len(runner.kept) == 1

    def test_with_a_service_only_a_pass_moves_the_champion(
        self, runner: Runner, history: httpx.Client
    ) -> None:
        runner.variables["RPRIME_SERVER"] = str(history.base_url)
        first = self.gate(runner)
        assert first.returncode == 0, first.stderr
        assert "no baseline" in runner.summary
        (oldest,) = kept(history, "digits")
        assert champion(history) == oldest["id"]
        write_csv(runner.folder / "predictions.csv", y_true=TRUE, y_pred=BAD)
        runner.branch = "worse"
        worse = self.gate(runner)
        assert worse.returncode == 1, worse.stderr
        newest = kept(history, "digits")[0]
        assert (newest["verdict"], oldest["verdict"]) == ("fail", "no_baseline")
        report = history.get(f"/v1/evaluations/{newest['id']}").json()
        assert report["comparison"]["pairing"] == "paired"
        assert report["comparison"]["baseline"]["resolved"] == oldest["id"]
        assert champion(history) == oldest["id"]
        write_csv(runner.folder / "predictions.csv", y_true=TRUE, y_pred=TRUE)
        for branch, moved in (("better", False), ("main", True)):
            runner.branch = branch
            better = self.gate(runner)
            assert better.returncode == 0, better.stderr
            newest = kept(history, "digits")[0]
            assert (newest["verdict"], champion(history) == newest["id"]) == ("pass", moved)

    def test_an_outage_ends_with_4(self, runner: Runner) -> None:
        runner.variables["RPRIME_SERVER"] = stopped()
        done = self.gate(runner)
        assert done.returncode == 4
        assert "NO VERDICT" in done.stderr
        assert runner.kept == []

    def test_it_may_write_comments_and_nothing_else(self) -> None:
        assert WORKFLOW["permissions"] == {"contents": "read", "pull-requests": "write"}
        assert "permissions" not in WORKFLOW["jobs"]["gate"]
        (checkout,) = (step for step in STEPS if "actions/checkout" in step.get("uses", ""))
        assert checkout["with"]["persist-credentials"] is False


class TestAction:
    @staticmethod
    def use(runner: Runner, **inputs: str) -> tuple[Done, dict[str, str]]:
        """Use the action with these inputs."""
        names = {name.replace("_", "-"): value for name, value in inputs.items()}
        return runner.use({"file": "predictions.csv", "gates": "gates.yaml"} | names)

    def test_every_input_and_output_is_described(self) -> None:
        for entry in (*ACTION["inputs"].values(), *ACTION["outputs"].values()):
            assert len(entry["description"]) > 15
            assert "value" in entry or entry.get("required") is True or "default" in entry
        assert {step["shell"] for step in ACTION["runs"]["steps"]} == {"bash"}

    def test_a_good_model_passes(self, runner: Runner) -> None:
        done, outputs = self.use(runner, baseline="champion.csv")
        assert done.returncode == 0, done.stderr
        assert outputs["verdict"] == "pass"
        assert outputs.keys() == {"verdict", "undecided", "report", "html", "markdown", "junit"}
        assert json.loads(Path(outputs["report"]).read_text())["gate"]["verdict"] == "pass"
        ET.parse(outputs["junit"])  # noqa: S314 (ours)
        assert Path(outputs["markdown"]).read_text() in runner.summary
        assert "Gate passed" in runner.summary
        assert "(<https://github.example/owner/repository/actions/runs/7>)" in runner.summary
        assert "::notice" in done.stdout

    def test_a_bad_one_fails(self, runner: Runner) -> None:
        write_csv(runner.folder / "predictions.csv", y_true=TRUE, y_pred=BAD)
        done, outputs = self.use(runner, baseline="champion.csv")
        assert done.returncode == 1
        assert outputs["verdict"] == "fail"
        assert "::error file=gates.yaml,line=" in done.stdout

    def test_what_cannot_be_judged_ends_with_5(self, runner: Runner) -> None:
        write_csv(runner.folder / "champion.csv", y_true=TRUE[:300], y_pred=["cat"] * 300)
        (runner.folder / "gates.yaml").write_text(
            "rules: [{index: recall, classes: [eel], max_drop: 0.1}]\n"
        )
        done, outputs = self.use(runner, baseline="champion.csv")
        assert done.returncode == 5, done.stderr
        assert outputs["verdict"] == "fail"

    def test_a_pull_request_has_one_comment_with_the_change_and_what_is_confused(
        self, runner: Runner, github: Forge
    ) -> None:
        runner.api, runner.token, runner.event = github.url, JOB, PULL_REQUEST
        for predicted, status, word in ((BAD, 1, "failed"), (GOOD, 0, "passed")):
            write_csv(runner.folder / "predictions.csv", y_true=TRUE, y_pred=predicted)
            done, _ = self.use(runner, baseline="champion.csv")
            assert done.returncode == status, done.stderr
            (body,) = github.bodies
            assert f"Gate {word}" in body
            assert re.search(r"^  [✗✓] cat [ ┆]+├─*●", body, re.MULTILINE), body
            assert ("| `cat` | `cat` | `dog` | 72 |" in body) is (status == 1)

    @pytest.mark.parametrize(("token", "comment"), [(READS, "True"), (JOB, "FALSE"), ("", "true")])
    def test_without_a_comment_the_verdict_stays(
        self, runner: Runner, github: Forge, token: str, comment: str
    ) -> None:
        """A pull request from a fork has a token that may only read."""
        runner.api, runner.token, runner.event = github.url, token, PULL_REQUEST
        write_csv(runner.folder / "predictions.csv", y_true=TRUE, y_pred=BAD)
        done, outputs = self.use(runner, baseline="champion.csv", comment=comment)
        assert (done.returncode, outputs["verdict"], github.bodies) == (1, "fail", [])
        assert ("NO COMMENT" in done.stderr) is (token == READS)

    @pytest.mark.parametrize(("strict", "status"), [("False", 0), ("true", 3), ("TRUE", 3)])
    def test_too_few_items_tell_nothing(self, runner: Runner, strict: str, status: int) -> None:
        write_csv(runner.folder / "predictions.csv", y_true=TRUE[FEW], y_pred=GOOD[FEW])
        write_csv(runner.folder / "champion.csv", y_true=TRUE[FEW], y_pred=GOOD[FEW])
        done, outputs = self.use(runner, baseline="champion.csv", strict=strict)
        assert done.returncode == status
        assert outputs["verdict"] == "inconclusive"
        assert "::warning file=gates.yaml,line=" in done.stdout

    @pytest.mark.parametrize(
        ("inputs", "said"),
        [
            ({"strict": "yes"}, "`strict` is 'yes'; it must be true or false"),
            ({"comment": ""}, "`comment` is ''; it must be true or false"),
            ({"promote": "champion"}, "`promote` needs the inputs `server` and `project`"),
            ({"promote": "champion", "server": "http://x"}, "needs the inputs `server` and `proj"),
            ({"anchor": "agreed"}, "`anchor` needs the inputs `server` and `project`"),
        ],
    )
    def test_a_wrong_input_is_refused_at_once_in_every_event(
        self, runner: Runner, inputs: dict[str, str], said: str
    ) -> None:
        runner.branch = "other"
        done, outputs = self.use(runner, baseline="champion.csv", **inputs)
        assert (done.returncode, outputs) == (2, {"verdict": "none"})
        assert said in done.stderr

    @pytest.mark.parametrize(("on_service_error", "status"), [("fail", 4), ("warn", 0)])
    def test_an_outage_is_no_verdict(
        self, runner: Runner, on_service_error: str, status: int
    ) -> None:
        inputs = {"server": stopped(), "baseline": "champion.csv"}
        done, outputs = self.use(runner, on_service_error=on_service_error, **inputs)
        assert done.returncode == status
        assert outputs == {"verdict": "none"}

    def test_a_missing_file_is_no_verdict(self, runner: Runner) -> None:
        done, outputs = self.use(runner, file="missing.csv")
        assert done.returncode == 2
        assert outputs == {"verdict": "none"}

    def test_a_mistake_in_the_rules_is_matched_at_its_line(self, runner: Runner) -> None:
        (runner.folder / "gates.yaml").write_text(
            "rules:\n  - index: recal\n    max_drop: 0.1\n  - index: accuracy\n    max_dorp: 0.1\n"
        )
        done, _ = self.use(runner)
        assert done.returncode == 2
        file = re.search(r"^::add-matcher::(.*)$", done.stdout, re.MULTILINE)
        assert file is not None
        (matcher,) = json.loads(Path(file[1]).read_text())["problemMatcher"]
        assert f"::remove-matcher owner={matcher['owner']}::" in done.stdout
        (pattern,) = matcher["pattern"]
        matches = [
            tuple(match[pattern[name]] for name in ("file", "line", "column"))
            for line in done.stderr.splitlines()
            if (match := re.search(pattern["regexp"], line))
        ]
        assert matches == [("gates.yaml", "2", "12"), ("gates.yaml", "5", "5")], done.stderr

    @pytest.mark.parametrize(("strict", "status"), [("false", 0), ("true", 3)])
    def test_without_a_gate_there_is_a_report_and_no_verdict(
        self, runner: Runner, strict: str, status: int
    ) -> None:
        done, outputs = self.use(runner, gates="", strict=strict)
        assert done.returncode == status
        assert ("NO GATE" in done.stderr) is (strict == "true")
        assert outputs["verdict"] == "none"
        assert "report" in outputs

    def test_a_service_keeps_it(self, runner: Runner, history: httpx.Client) -> None:
        inputs = {"project": "shop", "baseline": "alias=champion", "promote": "champion"}
        for predicted in (GOOD, TRUE):
            write_csv(runner.folder / "predictions.csv", y_true=TRUE, y_pred=predicted)
            done, outputs = self.use(runner, server=str(history.base_url), **inputs)
            assert done.returncode == 0, done.stderr
            newest = kept(history, "shop")[0]
            assert champion(history, "shop") == newest["id"] == outputs["evaluation"]
        assert [item["verdict"] for item in kept(history, "shop")] == ["pass", "no_baseline"]

    def test_five_builds_and_a_second_model(self, runner: Runner, history: httpx.Client) -> None:
        """The rules hold against the alias, which a pass moves, and against the anchor."""
        with (runner.folder / "gates.yaml").open("a") as file:
            file.write("anchor: {alias: agreed}\n")
        inputs = {"server": str(history.base_url), "project": "five", "anchor": "agreed"}
        builds = [
            (GOOD, 0, "no_baseline", True),
            (GOOD, 0, "pass", True),
            (BAD, 1, "fail", False),
            (GOOD[:300], 5, "fail", False),
            (TRUE, 0, "pass", True),
        ]
        first = ""
        for predicted, status, verdict, moved in builds:
            write_csv(
                runner.folder / "predictions.csv", y_true=TRUE[: len(predicted)], y_pred=predicted
            )
            done, outputs = self.use(
                runner, model="one", baseline="alias=champion", promote="champion", **inputs
            )
            assert (done.returncode, outputs["verdict"]) == (status, verdict), done.stderr
            assert ("FIRST, not judged" in done.stderr) is (verdict == "no_baseline")
            first = first or outputs["evaluation"]
            assert (champion(history, "five") == outputs["evaluation"]) is moved
            assert champion(history, "five", "agreed") == first
        done, outputs = self.use(
            runner, model="two", baseline="alias=other", promote="other", **inputs
        )
        assert (done.returncode, outputs["verdict"]) == (0, "no_baseline"), done.stderr
        assert champion(history, "five", "other") == outputs["evaluation"]

    def test_a_lost_alias_is_red_once(self, runner: Runner, history: httpx.Client) -> None:
        given = {"server": str(history.base_url), "project": "lost", "baseline": "alias=champion"}
        assert self.use(runner, **given)[0].returncode == 0
        for status in (5, 0):
            write_csv(runner.folder / "predictions.csv", y_true=TRUE, y_pred=TRUE)
            done, _ = self.use(runner, promote="champion", **given)
            assert done.returncode == status, done.stderr
            assert ("champion --project lost --if-absent" in done.stderr) is (status == 5)

    def test_strict_keeps_the_first_build_and_ends_with_0(
        self, runner: Runner, history: httpx.Client
    ) -> None:
        given = {"server": str(history.base_url), "project": "strict", "promote": "champion"}
        for _ in range(2):
            done, outputs = self.use(runner, strict="true", baseline="alias=champion", **given)
            assert done.returncode == 0, done.stderr
            assert champion(history, "strict") == outputs["evaluation"]

    @pytest.mark.parametrize(
        ("event_name", "moved"),
        [
            ("pull_request", False),
            ("pull_request_target", False),
            ("workflow_run", False),
            ("schedule", True),
        ],
    )
    def test_what_is_not_merged_never_moves_the_alias(
        self, runner: Runner, history: httpx.Client, event_name: str, moved: bool
    ) -> None:
        inputs = {"server": str(history.base_url), "project": event_name, "promote": "champion"}
        first, outputs = self.use(runner, baseline="alias=champion", **inputs)
        assert first.returncode == 0, first.stderr
        runner.event_name, runner.branch = event_name, "other"
        runner.event = PULL_REQUEST if event_name.startswith("pull") else {}
        write_csv(runner.folder / "predictions.csv", y_true=TRUE, y_pred=TRUE)
        done, later = self.use(runner, baseline="champion.csv", **inputs)
        assert (done.returncode, later["verdict"]) == (0, "pass"), done.stderr
        assert champion(history, event_name) == (later if moved else outputs)["evaluation"]

    @pytest.mark.parametrize(("figure", "shown"), [("per_class", True), ("none", False)])
    def test_a_figure_of_a_public_service_is_in_the_comment(
        self, runner: Runner, history: httpx.Client, github: Forge, figure: str, shown: bool
    ) -> None:
        runner.api, runner.token, runner.event = github.url, JOB, PULL_REQUEST
        inputs = {"server": str(history.base_url), "project": "pictures", "figure": figure}
        done, outputs = self.use(runner, baseline="champion.csv", **inputs)
        assert done.returncode == 0, done.stderr
        addresses = re.findall(r"!\[\w+\]\(<(.*)>\)", github.bodies[0])
        assert len(addresses) == shown
        for address in addresses:
            assert outputs["evaluation"] in address
            assert httpx.get(address).headers["content-type"].startswith("image/svg+xml")

    def test_an_input_is_never_a_program(self, runner: Runner) -> None:
        for bad in ("$(touch hacked)", "; touch hacked", "--html=hacked"):
            assert self.use(runner, file=bad)[0].returncode == 2
        assert not (runner.folder / "hacked").exists()

    def test_it_is_clean_by_shellcheck(self, tmp_path: Path) -> None:
        for number, step in enumerate(ACTION["runs"]["steps"]):
            script = tmp_path / f"{number}.sh"
            script.write_text(step["run"])
            done = run(PROGRAMS / "shellcheck", "--shell", "bash", script, cwd=tmp_path)
            assert done.returncode == 0, done.stdout

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
        variables = {"PATH": f"{links}:/usr/bin:/bin"}
        # Without the registry: the package alone is built and installed, and what it depends on is
        # that of this environment. With it, which takes minutes, all of it is installed.
        if not REGISTRIES:
            variables |= {"PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
            variables["PYTHONPATH"] = sysconfig.get_path("purelib")
        variables = runner.environment(tmp_path / "output") | variables
        done = run(*BASH, install, cwd=runner.folder, variables=variables, timeout=600)
        if done.returncode != 0 and "No matching distribution" in done.stderr:
            out_of_reach(done.stderr)
        assert done.returncode == 0, done.stderr
        program = Path((runner.folder / "path").read_text().strip()) / "rprime"
        assert (program.parents[1] / "pyvenv.cfg").exists()
        output = run(program, "--version", cwd=runner.folder, variables=variables)
        assert output.stdout == f"rprime {library.__version__}\n", output.stderr
        (package,) = program.parents[1].glob("lib/*/site-packages/rprime")
        assert (package / "docs" / "index.md").exists()
        matrix = EXAMPLES / "mnist.json"
        output = run(program, "evaluate", matrix, "--json", cwd=runner.folder, variables=variables)
        assert '"accuracy":{"value":0.9806' in output.stdout, output.stderr


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
        settings = {
            "CI_COMMIT_SHA": "0123456789abcdef0123456789abcdef01234567",
            "CI_COMMIT_REF_NAME": "main",
            "CI_COMMIT_BRANCH": "main",
            "CI_DEFAULT_BRANCH": "main",
            "CI_JOB_URL": "https://gitlab.example/owner/repository/-/jobs/7",
            "CI_PROJECT_ID": "5",
        }
        return run("sh", "-e", "-c", script, cwd=folder, variables=settings | variables)

    def test_the_digits_pass_and_every_report_is_there(self, runner: Runner) -> None:
        done = self.job(runner.folder)
        assert done.returncode == 0, done.stderr
        reports = GITLAB["artifacts"]["reports"]
        root = ET.parse(runner.folder / reports["junit"]).getroot()  # noqa: S314 (ours) (our own)
        assert len(list(root.iter("testcase"))) == 12
        metrics = (runner.folder / reports["metrics"]).read_text()
        families = {m.name: m for m in text_string_to_metric_families(metrics)}  # type: ignore[no-untyped-call] # the library has none
        states = {s.labels["rprime_verdict"]: s.value for s in families["rprime_verdict"].samples}
        assert states["pass"] == 1
        for path in GITLAB["artifacts"]["paths"]:
            assert (runner.folder / path).exists()

    def test_a_service_keeps_it_and_the_first_run_says_so(
        self, runner: Runner, history: httpx.Client
    ) -> None:
        history.request("DELETE", "/v1/projects/digits")
        server = str(history.base_url)
        first = self.job(runner.folder, RPRIME_SERVER=server)
        assert first.returncode == 0, first.stderr
        assert "FIRST, not judged" in first.stderr
        (oldest,) = kept(history, "digits")
        # The merge request of a fork, whose branch has the name of the default branch.
        merge_request = {"CI_COMMIT_BRANCH": "", "CI_COMMIT_SHA": "2"}
        second = self.job(runner.folder, RPRIME_SERVER=server, **merge_request)
        assert second.returncode == 0, second.stderr
        assert [one["verdict"] for one in kept(history, "digits")] == ["pass", "no_baseline"]
        assert champion(history) == oldest["id"]
        third = self.job(runner.folder, RPRIME_SERVER=server, CI_COMMIT_SHA="1")
        assert third.returncode == 0, third.stderr
        assert champion(history) == kept(history, "digits")[0]["id"]

    def test_five_builds(self, runner: Runner, history: httpx.Client) -> None:
        history.request("DELETE", "/v1/projects/digits")
        (runner.folder / "train_digits.py").write_text("")
        first = ""
        for number, (predicted, status, moved) in enumerate(
            [
                (GOOD, 0, True),
                (TRUE, 0, True),
                (BAD, 1, False),
                (GOOD[:300], 5, False),
                (TRUE, 0, True),
            ]
        ):
            write_csv(
                runner.folder / "predictions.csv", y_true=TRUE[: len(predicted)], y_pred=predicted
            )
            variables = {"RPRIME_SERVER": str(history.base_url), "CI_COMMIT_SHA": str(number)}
            done = self.job(runner.folder, **variables)
            assert done.returncode == status, done.stderr
            newest = kept(history, "digits")[0]["id"]
            first = first or newest
            assert (champion(history) == newest) is moved
            assert champion(history, alias="agreed") == first

    def test_only_what_says_nothing_of_the_model_may_fail(self, runner: Runner) -> None:
        done = self.job(runner.folder, RPRIME_SERVER=stopped())
        assert done.returncode == 4
        assert GITLAB["allow_failure"] == {"exit_codes": [3, 4]}

    def test_a_merge_request_has_one_note(self, runner: Runner) -> None:
        with forge_of("gitlab") as forge:
            variables = {
                "CI_API_V4_URL": forge.url,
                "CI_MERGE_REQUEST_PROJECT_ID": "5",
                "CI_MERGE_REQUEST_IID": "7",
                "GITLAB_TOKEN": TOKEN,
            }
            for rounds in range(2):
                done = self.job(runner.folder, **variables)
                assert done.returncode == 0, done.stderr
                (body,) = forge.bodies
                assert body == (runner.folder / "rprime.md").read_text()
                assert ("brought up to date" in done.stderr) is bool(rounds)
            reading = self.job(runner.folder, **variables | {"GITLAB_TOKEN": READS})
            assert (reading.returncode, len(forge.bodies)) == (0, 1)
            requests = len(forge.requests)
            without = self.job(runner.folder, **variables | {"GITLAB_TOKEN": ""})
            assert (without.returncode, len(forge.requests)) == (0, requests)
