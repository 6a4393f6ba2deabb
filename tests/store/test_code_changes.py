"""What CONTRIBUTING describes, done to a copy of the code: stores of before must stay readable."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rprime
from rprime.store.packing import PACKED_VERSION
from rprime.store.schema import SCHEMA_VERSION

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "tests/store/schemas"
FILES = ("schema_1", "schema_2", "schema_1_full", "schema_2_full")
MIGRATION = f'''"""Add a column."""

import sqlalchemy as sa
from alembic import op

revision = "{SCHEMA_VERSION + 1}"
down_revision = "{SCHEMA_VERSION}"


def upgrade() -> None:
    op.add_column("evaluations", sa.Column("runner", sa.Text))
'''
READ = """
import json, sys
from rprime.history.stored_report import stored_report
from rprime.report.formats import FORMATS
from rprime.store import Filters, open_store

gates = {}
for url in sys.argv[1:]:
    store, found = open_store(url), {}
    for project in [project.name for project in store.projects()]:
        for item in store.page(project, limit=200).items:
            report = stored_report(store.get(item.id), store, 10)
            document = json.loads(report.report())
            # The gate of schema_2 is none of a service.
            for entry in () if url.endswith("schema_2.db") else FORMATS:
                entry.render(report.subject)
            found[item.id] = document.get("gate")
        list(store.tables(project, Filters()))
    assert len(list(store.export())) > len(found)
    store.close()
    gates[url] = found
print()
print(json.dumps(gates))
"""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """Return a copy of the package, with the bytecode of what stays, to be changed."""
    copy = tmp_path / "code" / "rprime"
    shutil.copytree(Path(rprime.__file__).parent, copy)
    return copy


def change(path: Path, pattern: str, text: str) -> None:
    """Change the one place of a file that a pattern finds."""
    changed, places = re.subn(pattern, text, path.read_text("utf-8"), flags=re.MULTILINE)
    assert places == 1, (path, pattern, places)
    path.write_text(changed, "utf-8")


def run(code: Path, script: str, *arguments: str) -> str:
    """Run a script by the changed code."""
    command = [sys.executable, "-c", script, *arguments]
    path = os.pathsep.join((str(code.parent), str(ROOT)))
    variables = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        command, env=variables, cwd=code.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.fixture
def urls(tmp_path: Path) -> dict[str, str]:
    """Return the URLs of copies of old stores."""
    for name in FILES:
        shutil.copy(SCHEMAS / f"{name}.db", tmp_path)
    return {name: f"sqlite:///{tmp_path}/{name}.db" for name in FILES}


def read(code: Path, urls: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Read every evaluation of old stores, and return the gates of each."""
    gates = json.loads(run(code, READ, *urls.values()))
    return {name: gates[url] for name, url in urls.items()}


def add_names(code: Path) -> None:
    """Add the name of a runner in the three files that CONTRIBUTING names."""
    change(code / "store/records.py", r"^    verdict: .*$", r"\g<0>\n    runner: str | None = None")
    client = r"^(class OriginFields.*\n(?:    .*\n|\n)*?    commit: str \| None)$"
    change(code / "client/request.py", client, r"\1\n    runner: str | None")
    for kind, declared in (
        ("Provenance", 'Name | None = optional("The runner.")'),
        ("OriginShown", 'str | Absent = optional("The runner.")'),
        ("OriginListed", 'str | None = Field(description="The runner.")'),
        ("OriginWanted", 'Wanted | None = optional("The runner.")'),
    ):
        members = rf"^(class {kind}\(.*\n(?:    .*\n|\n)*?    commit: .*)$"
        change(code / "schemas/provenance.py", members, rf"\1\n    runner: {declared}")


def test_a_new_column_leaves_old_stores_readable(
    code: Path, urls: dict[str, str], tmp_path: Path
) -> None:
    version = rf"^SCHEMA_VERSION = {SCHEMA_VERSION}$"
    change(code / "store/schema.py", version, f"SCHEMA_VERSION = {SCHEMA_VERSION + 1}")
    add_names(code)
    number = SCHEMA_VERSION + 1
    (code / f"store/migrations/versions/v{number}_runner.py").write_text(MIGRATION, "utf-8")
    served = tmp_path / "served.db"
    shutil.copy(SCHEMAS / "schema_2_full.db", served)
    assert all(read(code, urls).values())
    # Now that they are migrated, the column is written, found and protected.
    assert run(code, WRITE, *urls.values()) == "noticed"
    assert run(code, SERVE, f"sqlite:///{served}") == "served"


WRITE = """
import sys
from sqlalchemy import text
from rprime.store import Filters, open_store
from rprime.store.errors import StoreDamagedError
from tests.store import samples

for url in sys.argv[1:]:
    store = open_store(url)
    given = samples.evaluation(77, project="runs", runner="gpu-7")
    samples.put(store, given).result()
    samples.put(store, samples.evaluation(78, project="runs")).result()
    assert store.get(given.id).runner == "gpu-7"
    [item] = store.page("runs", Filters(runner="gpu-7")).items
    assert item.runner == "gpu-7"
    lines = list(store.export("runs"))
    assert b'"runner":"gpu-7"' in lines[1]
    store.write(lambda c: c.execute(text("UPDATE evaluations SET runner = 'gpu-8'")))
    try:
        store.get(given.id)
    except StoreDamagedError:
        store.close()
    else:
        sys.exit(url)
print("noticed")
"""


SERVE = """
import sys
from starlette.testclient import TestClient
from rprime.app import create_app
from rprime.settings import Settings

table = {"confusion_matrix": [[50, 3], [2, 70]], "project": "runs"}
with TestClient(create_app(Settings(store=sys.argv[1])), base_url="http://localhost") as client:
    for named in ({"runner": "gpu-7"}, {}):
        answer = client.post("/v1/evaluate", json=table | named)
        assert answer.status_code == 201, answer.text
        assert answer.json().get("runner") == named.get("runner")
        path = answer.headers["location"]
        assert client.get(path).content == answer.content
        assert client.post("/v1/evaluate", json=table | named).status_code == 200
        assert ("gpu-7" in client.get(path + "/report.md").text) == bool(named)
    whole = client.get("/v1/projects/runs/evaluations").json()["items"]
    assert [item["runner"] for item in whole] == [None, "gpu-7"]
    for page in ("evaluations?runner=gpu-7", "trend?index=accuracy&runner=gpu-7"):
        assert len(client.get("/v1/projects/runs/" + page).json()["items"]) == 1
    exported = client.get("/v1/export").content
    assert client.delete("/v1/projects/runs").status_code == 204
    headers = {"Content-Type": "application/x-ndjson"}
    assert client.post("/v1/import", content=exported, headers=headers).status_code == 200
    page = client.get("/v1/projects/runs/evaluations?runner=gpu-7").json()
    assert len(page["items"]) == 1, page
print("served")
"""


def test_a_new_member_of_a_result_leaves_old_stores_readable(
    code: Path, urls: dict[str, str]
) -> None:
    result = r"^    min_detectable_drop: float \| None$"
    member = r'    margin: float | None\n    """The margin."""\n\g<0>'
    path = code / "core/gates/results.py"
    change(path, result, member)
    change(path, r'^( +)"n": tests.items,$', r'\g<0>\n\1"margin": tests.items,')
    for name, gates in read(code, urls).items():
        results = [result for gate in gates.values() if gate for result in gate.get("results", ())]
        assert results or name == "schema_2"
    assert json.loads(run(code, JUDGE)) == {"margin": 93, "described": "The margin."}


JUDGE = """
import ast
import json
import rprime
from rprime.schemas.report import Report

gates = {"rules": [{"index": "accuracy", "min_value": 0.5}]}
report = rprime.evaluate(confusion_matrix=[[50, 1], [2, 40]], gates=gates)
schema = Report.model_json_schema()["$defs"]["Result"]
described = schema["properties"]["margin"]["description"]
print(json.dumps({"margin": report.gate.results[0].margin, "described": described}))
"""


def test_a_new_array_of_scores_leaves_old_stores_readable(code: Path, urls: dict[str, str]) -> None:
    summary = code / "core/scores/curves.py"
    change(summary, r"^    risk: Array$", r"\g<0>\n    spread: Array")
    change(summary, r"fits = actual\[:-2\] == shapes", "fits = actual[:-3] == shapes")
    change(summary, r"^    return ScoreSummary\($", r"\g<0>\n        spread=np.ones(3),")
    packing, version = code / "store/packing.py", PACKED_VERSION
    change(packing, rf"^PACKED_VERSION = {version}$", f"PACKED_VERSION = {version + 1}")
    step = f'{version}: lambda arrays: {{**arrays, "spread": np.zeros(3)}}'
    change(packing, r'"scores": \{(.+)\}', rf'"scores": {{\1, {step}}}')
    seen = json.loads(run(code, SPREAD, *urls.values()))
    assert {name for name, url in urls.items() if seen[url]} == {"schema_2_full"}


SPREAD = """
import json, sys
from rprime.store import open_store

seen = {}
for url in sys.argv[1:]:
    store, seen[url] = open_store(url), 0
    for project in [project.name for project in store.projects()]:
        for item in store.page(project, limit=200).items:
            store.items(item.id)
            scores = store.scores(item.id)
            assert scores is None or scores.spread.tolist() == [0, 0, 0]
            seen[url] += scores is not None
    store.close()
print(json.dumps(seen))
"""


def test_what_reads_old_stores_imports_nothing_that_changes() -> None:
    """Migrations and the steps of documents know the old forms by themselves."""
    store = Path(rprime.__file__).parent / "store"
    allowed = {"rprime.store.errors", "rprime.store.migrations"}
    for path in (store / "documents.py", *(store / "migrations").glob("**/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                modules = {alias.name for alias in node.names}
            else:
                modules = {node.module or ""} if isinstance(node, ast.ImportFrom) else set()
            ours = {module for module in modules if module.startswith("rprime")}
            assert ours <= allowed, path
