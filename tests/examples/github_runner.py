"""Run the steps of a workflow of GitHub as its runner does: contexts, conditions, files, shells."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.examples.recipes import EXAMPLES, Done, load, run

Contexts = Mapping[str, Any]
ACTION = load("github/action.yml")
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
DEFAULT_SHELL = ("bash", "-e", "-c")
_WORD = re.compile(r"\s*(&&|\|\||!|\(|\)|'(?:[^']|'')*'|[\w.-]+)")


def evaluated(text: str, contexts: Contexts) -> Any:
    """Evaluate an expression as docs.github.com describes: what is not there is empty."""
    tokens = _WORD.findall(text)
    assert "".join(tokens) == re.sub(r"\s+(?=(?:[^']*'[^']*')*[^']*$)", "", text), text

    def either() -> Any:
        value = both()
        while tokens[:1] == ["||"]:
            del tokens[0]
            other = both()
            value = value or other
        return value

    def both() -> Any:
        value = one()
        while tokens[:1] == ["&&"]:
            del tokens[0]
            other = one()
            value = value and other
        return value

    def one() -> Any:
        word = tokens.pop(0)
        if word == "!":
            return not one()
        if word.startswith("'"):
            return word[1:-1].replace("''", "'")
        if tokens[:2] == ["(", ")"]:
            del tokens[:2]
            return {"cancelled": False, "always": True}[word]
        value: Any = contexts
        for part in word.split("."):
            value = value.get(part, "") if isinstance(value, Mapping) else ""
        return value

    return either()


def filled(text: str, contexts: Contexts) -> str:
    """Put values in the place of expressions."""
    return re.sub(
        r"\$\{\{(.*?)\}\}", lambda match: str(evaluated(match[1].strip(), contexts) or ""), text
    )


@dataclass
class Runner:
    """A job in a repository.

    Parameters
    ----------
    folder
        The workspace.
    api
        Address of the API.
    variables, secrets
        Of the repository.
    event, event_name
        What made the job run; by default a pull request, if the event has one, else a push.
    branch
        Of the commit; of a pull request, that which it comes from.
    token
        Of the job.
    """

    folder: Path
    api: str = "http://127.0.0.1:9"
    variables: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    event: dict[str, Any] = field(default_factory=dict)
    event_name: str = ""
    branch: str = "main"
    token: str = ""
    kept: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        return (self.folder / "summary.md").read_text(encoding="utf-8")

    @property
    def contexts(self) -> dict[str, Any]:
        event = {"repository": {"default_branch": "main"}, **self.event}
        return {
            "github": {"token": self.token, "event": event},
            "vars": self.variables,
            "secrets": self.secrets,
        }

    def environment(self, output: Path) -> dict[str, str]:
        """What each step has, by the variables reference of docs.github.com/actions."""
        event = self.folder / "temp" / "event.json"
        event.parent.mkdir(exist_ok=True)
        event.write_text(json.dumps(self.contexts["github"]["event"]))
        number = self.event.get("pull_request", {}).get("number")
        name = self.event_name or ("pull_request" if number else "push")
        # For pull_request_target and others the default branch is built.
        ref = f"heads/{self.branch}" if name == "push" else "heads/main"
        ref = f"pull/{number}/merge" if name == "pull_request" else ref
        return {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.api,
            "GITHUB_ACTION_PATH": str(EXAMPLES / "github"),
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_HEAD_REF": self.branch if number else "",
            "GITHUB_OUTPUT": str(output),
            "GITHUB_PATH": str(self.folder / "path"),
            "GITHUB_REF": f"refs/{ref}",
            "GITHUB_REF_NAME": ref.partition("/")[2],
            "GITHUB_REPOSITORY": "owner/repository",
            "GITHUB_RUN_ID": "7",
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_SHA": "0123456789abcdef0123456789abcdef01234567",
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "GITHUB_WORKSPACE": str(self.folder),
            "RUNNER_TEMP": str(event.parent),
        }

    def job(self, steps: list[dict[str, Any]]) -> Done:
        """Run the steps of a job; return the one that failed, else the last one."""
        contexts = self.contexts
        contexts["steps"] = outputs = {}
        ended: Done | None = None
        for step in steps:
            failed = ended is not None and ended.returncode
            condition = step.get("if", "").removeprefix("${{").removesuffix("}}").strip()
            # Without a function of the status, success() stands before a condition.
            if (failed and "cancelled()" not in condition) or (
                condition and not evaluated(condition, contexts)
            ):
                continue
            done, step_outputs = self.step(step, contexts)
            if done is not None and not failed:
                ended = done
            if "id" in step:
                outputs[step["id"]] = {"outputs": step_outputs}
        assert ended is not None
        return ended

    def step(
        self, step: dict[str, Any], contexts: Contexts
    ) -> tuple[Done | None, Mapping[str, str]]:
        inputs = {
            name: filled(str(value), contexts) for name, value in step.get("with", {}).items()
        }
        if "/examples/github@" in step.get("uses", ""):
            return self.use(inputs)
        if "uses" in step:
            self.kept += [inputs["path"]] if "upload-artifact" in step["uses"] else []
            return None, {}
        assert "${{" not in step["run"], "an expression in a script is an injection"
        output = self.folder / "temp" / "output"
        variables = self.environment(output)
        variables |= {name: filled(value, contexts) for name, value in step.get("env", {}).items()}
        output.write_text("")
        shell = BASH if step.get("shell") == "bash" else DEFAULT_SHELL
        done = run(*shell, step["run"], cwd=self.folder, variables=variables)
        lines = output.read_text(encoding="utf-8").splitlines()
        return done, dict(line.split("=", 1) for line in lines)

    def use(self, inputs: Mapping[str, str]) -> tuple[Done, dict[str, str]]:
        """Run the action with these inputs; return its last step and its outputs."""
        declared = ACTION["inputs"]
        assert inputs.keys() <= declared.keys()
        assert {
            name for name, member in declared.items() if member.get("required")
        } <= inputs.keys()
        defaults = {
            name: filled(member.get("default", ""), self.contexts)
            for name, member in declared.items()
        }
        outputs: dict[str, Any] = {}
        # Neither `vars` nor `secrets` is there in an action.
        contexts = {
            "github": self.contexts["github"],
            "inputs": {**defaults, **inputs},
            "steps": outputs,
        }
        done: Done | None = None
        for step in ACTION["runs"]["steps"]:
            done, step_outputs = self.step(step, contexts)
            outputs[step.get("id", "")] = {"outputs": step_outputs}
            assert done is not None
            if done.returncode:
                break
        assert done is not None
        named = {
            name: filled(member["value"], contexts) for name, member in ACTION["outputs"].items()
        }
        return done, {name: value for name, value in named.items() if value}
