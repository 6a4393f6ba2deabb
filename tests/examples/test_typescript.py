"""The client from the OpenAPI document: generated, compiled and asked for real."""

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.examples.recipes import EXAMPLES, Done, missing, out_of_reach, run
from tests.failing_service import BUSY, flaky, stopped

pytestmark = pytest.mark.slow

OPENAPI = EXAMPLES.parent / "openapi" / "openapi.json"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the program, compiled."""
    if not (shutil.which("npm") and shutil.which("node")):
        missing("calls from TypeScript need node and npm")
    folder = tmp_path_factory.mktemp("typescript")
    for file in sorted((EXAMPLES / "typescript").iterdir()):
        if file.is_file():
            shutil.copy(file, folder)
    installed = run("npm", "ci", "--no-audit", "--no-fund", cwd=folder, timeout=300)
    if re.search(r"\b(ENOTFOUND|EAI_AGAIN|ECONN\w+|ETIMEDOUT|ENETUNREACH)\b", installed.stderr):
        out_of_reach(installed.stderr)
    assert installed.returncode == 0, installed.stderr
    generated = run("npm", "run", "generate", cwd=folder, variables={"OPENAPI": str(OPENAPI)})
    assert generated.returncode == 0, generated.stdout + generated.stderr
    return folder


@pytest.fixture(scope="module")
def compiled(built: Path) -> Path:
    done = run("npm", "run", "build", cwd=built)
    assert done.returncode == 0, done.stdout
    return built


def node(folder: Path, url: str) -> Done:
    return run("node", "evaluate.js", url, cwd=folder)


def test_a_call_is_answered(compiled: Path, server: str) -> None:
    done = node(compiled, server)
    assert done.returncode == 0, done.stderr
    assert "accuracy: 0.965" in done.stdout
    assert "verdict: pass" in done.stdout


def test_an_outage_is_no_verdict(compiled: Path) -> None:
    assert node(compiled, stopped()).returncode == 4
    with flaky(BUSY) as service:
        done = node(compiled, service.url)
    assert done.returncode == 4
    assert "overloaded" in done.stderr


def test_a_misspelt_member_does_not_compile(compiled: Path) -> None:
    source = (compiled / "evaluate.ts").read_text()
    bad = compiled / "bad"
    bad.mkdir()
    (bad / "evaluate.ts").write_text(source.replace("gates:", "gate:"))
    for name in ("schema.d.ts", "tsconfig.json", "package.json"):
        shutil.copy(compiled / name, bad)
    (bad / "node_modules").symlink_to(compiled / "node_modules")
    done = run("npm", "run", "build", cwd=bad)
    assert done.returncode != 0
    assert "'gate' does not exist" in done.stdout


def test_the_lock_names_no_registry() -> None:
    lock = (EXAMPLES / "typescript" / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert '"integrity"' in lock
    assert os.fspath(OPENAPI.parent.parent) not in lock
