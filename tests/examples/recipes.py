"""The recipes of examples/, run as their users run them."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import pytest
import yaml

from tests.forked_command import forkserver
from tests.services import environment

EXAMPLES = Path(__file__).parents[2] / "examples"
OPENAPI = EXAMPLES.parent / "openapi" / "openapi.json"
PROGRAMS = Path(sys.executable).parent
NONE: Mapping[str, str] = MappingProxyType({})
Done = subprocess.CompletedProcess[str]

TRUE = ["cat"] * 200 + ["dog"] * 200
GOOD = ["cat"] * 192 + ["dog"] * 8 + ["dog"] * 194 + ["cat"] * 6
BAD = ["cat"] * 120 + ["dog"] * 80 + ["dog"] * 194 + ["cat"] * 6
FEW = slice(180, 220)
"""Too few items to tell."""


def load(name: str) -> Any:
    return yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))


def run(
    *command: str | Path, cwd: Path, variables: Mapping[str, str] = NONE, timeout: float = 120
) -> Done:
    """Run a recipe with the programs of this environment in PATH."""
    address = forkserver()
    forked = [] if address is None else [str(address.with_name("bin"))]
    path = os.pathsep.join([*forked, str(PROGRAMS), os.environ["PATH"]])
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment(**{"PATH": path, **variables}),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def write_csv(path: Path, **columns: list[str]) -> None:
    rows = [",".join(row) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *rows, ""]), encoding="utf-8")


def missing(what: str) -> NoReturn:
    """Skip a test and say loudly that it did not run; in CI fail."""
    if os.environ.get("CI_RUN"):
        pytest.fail(what)
    pytest.skip(f"NOT TESTED: {what}")


def out_of_reach(reason: str) -> NoReturn:
    """Skip a test for want of a package registry, in CI, too: it says nothing about the code."""
    pytest.skip(f"NOT TESTED: the package registry gives nothing: {reason[-500:]}")


def npm_ci(folder: Path) -> None:
    """Install what a lock file names; skip the test without a registry."""
    if not (shutil.which("npm") and shutil.which("node")):
        missing("calls from TypeScript need node and npm")
    done = run("npm", "ci", "--no-audit", "--no-fund", cwd=folder, timeout=300)
    if re.search(r"\b(ENOTFOUND|EAI_AGAIN|ECONN\w+|ETIMEDOUT|ENETUNREACH)\b", done.stderr):
        out_of_reach(done.stderr)
    assert done.returncode == 0, done.stderr


def new_environment(folder: Path) -> Path:
    """Return the programs of a new environment that has nothing but pip."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder / "bin"


def pip(programs: Path, *packages: str) -> None:
    """Install packages into an environment; skip the test without a registry."""
    done = run(programs / "pip", "install", "-q", *packages, cwd=programs, timeout=600)
    if re.search("No matching distribution|NewConnectionError", done.stderr):
        out_of_reach(done.stderr)
    assert done.returncode == 0, done.stderr
