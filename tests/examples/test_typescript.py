"""The client from the OpenAPI document: generated, compiled and asked for real."""

import os
import shutil
from pathlib import Path

import pytest

from tests.examples.recipes import EXAMPLES, OPENAPI, Done, npm_ci, run
from tests.failing_service import BUSY, flaky, stopped

pytestmark = pytest.mark.slow

CALLS = """
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const { GET, POST } = createClient<paths>({ baseUrl: process.argv[2]! });
const project = "openapi-typescript";
const labels = Array.from({ length: 50 }, () => ["cat", "dog"]).flat();
const body = { y_true: labels, y_pred: labels, project };
const { data: report } = await POST("/v1/evaluate", { body });
const { data: judged } = await POST("/v1/evaluate", {
  body: {
    ...body,
    baseline: { latest: true },
    gates: { rules: [{ index: "accuracy", min_value: 0.5 }] },
  },
});
const params = { path: { project } };
const page = await GET("/v1/projects/{project}/evaluations", { params });
const trend = await GET("/v1/projects/{project}/trend", {
  params: { ...params, query: { index: "accuracy" } },
});
if (typeof report !== "object" || typeof judged !== "object") throw new Error("no reports");
const found = judged.comparison?.baseline.resolved === report.id;
const value = report.overall["accuracy"]?.value;
console.log(found, value, judged.gate?.verdict, page.data?.items.length, trend.data?.items.length);
"""
"""What `tests/examples/test_generators.py` asks of other clients."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the program, compiled."""
    folder = tmp_path_factory.mktemp("typescript")
    for file in sorted((EXAMPLES / "typescript").iterdir()):
        if file.is_file():
            shutil.copy(file, folder)
    npm_ci(folder)
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


def test_the_history_is_asked(built: Path, server: str) -> None:
    calls = built / "calls"
    calls.mkdir()
    (calls / "evaluate.ts").write_text(CALLS)
    for name in ("schema.d.ts", "tsconfig.json", "package.json"):
        shutil.copy(built / name, calls)
    (calls / "node_modules").symlink_to(built / "node_modules")
    done = run("npm", "run", "build", cwd=calls)
    assert done.returncode == 0, done.stdout
    assert node(calls, server).stdout.split() == ["true", "1", "pass", "2", "2"]


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
