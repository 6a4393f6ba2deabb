"""The help groups the commands, and each has an example that runs."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from rprime.cli import app
from tests.command import Run
from tests.examples.recipes import EXAMPLES, run

STORED = ["serve", "promote", "export", "import", "backup", "comment", "history", "keys", "study"]


def commands(group: Any, *above: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *above, name)
        else:
            yield " ".join([*above, name]), command


EVERY = dict(commands(typer.main.get_command(app)))
TITLES = ["Evaluate", "Gate", "Service and history", "Reference"]


def test_a_help_imports_nothing_that_only_an_evaluation_needs() -> None:
    heavy = {"fastapi", "httpx", "numpy", "pyarrow", "pydantic", "scipy", "sqlalchemy"}
    code = f"import sys, rprime.cli; print({heavy} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_the_commands_are_grouped(rprime: Run) -> None:
    shown = rprime("--help", COLUMNS="100").stdout
    titles = re.findall(r"╭─ (.+?) ─+╮", shown)
    assert titles == ["Options", *TITLES]
    for name in {each.split()[0] for each in EVERY}:
        assert len(re.findall(rf"^│ {name} ", shown, re.MULTILINE)) == 1, name


@pytest.mark.parametrize("name", EVERY)
def test_each_help_ends_with_an_example_of_its_command(rprime: Run, name: str) -> None:
    example = EVERY[name].epilog.removeprefix("Example: rprime ")
    assert example == name or example.startswith(f"{name} ")
    options = {option for parameter in EVERY[name].params for option in parameter.opts}
    assert set(re.findall(r"(?<= )--?[a-z][\w-]*", example)) <= options
    shown = " ".join(rprime(*name.split(), "--help", COLUMNS="150").stdout.split())
    assert shown.endswith(f"Example: rprime {example}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what the examples read."""
    folder = tmp_path_factory.mktemp("examples")
    done = run("python", EXAMPLES / "train_digits.py", "--write", ".", cwd=folder)
    assert done.returncode == 0, done.stderr
    lines = (folder / "predictions.csv").read_text(encoding="utf-8").splitlines()
    rows = [f"{line},{'EU' if i % 3 else 'US'}" for i, line in enumerate(lines[1:])]
    text = "\n".join([f"{lines[0]},region", *rows, ""])
    (folder / "predictions.csv").write_text(text, encoding="utf-8")
    (folder / "gates.yaml").write_bytes((EXAMPLES / "gates.yaml").read_bytes())
    return folder


@pytest.mark.parametrize("name", [each for each in EVERY if each.split()[0] not in STORED])
def test_an_example_that_needs_no_service_runs(folder: Path, name: str) -> None:
    done = run("sh", "-c", EVERY[name].epilog.removeprefix("Example: "), cwd=folder)
    assert done.returncode == 0, done.stderr
