"""A client that openapi-python-client generates from the OpenAPI document, asked for real.

It is installed from the package registry: `RPRIME_TEST_REGISTRIES=1`, as in `.ci/run --full`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.recipes import EXAMPLES, out_of_reach, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "RPRIME_TEST_REGISTRIES" not in os.environ, reason="needs RPRIME_TEST_REGISTRIES=1"
    ),
]
OPENAPI = EXAMPLES.parent / "openapi" / "openapi.json"
GENERATOR = "openapi-python-client==0.29.1"
PROGRAM = """
import sys
from rprime_client import Client
from rprime_client.api.evaluation import evaluate
from rprime_client.api.history import get_trend, list_evaluations
from rprime_client.models import IndexKey, LabelsRequest

client = Client(base_url=sys.argv[1], raise_on_unexpected_status=True)
labels = ["cat", "dog"] * 50
body = {"y_true": labels, "y_pred": labels, "project": "generated"}
report = evaluate.sync(client=client, body=LabelsRequest.from_dict(body))
body["gates"] = {"rules": [{"index": "accuracy", "min_value": 0.5}]}
judged = evaluate.sync(client=client, body=LabelsRequest.from_dict(body))
page = list_evaluations.sync("generated", client=client)
trend = get_trend.sync("generated", client=client, index=IndexKey.ACCURACY)
print(report.overall.accuracy.value, judged.gate.verdict, len(page.items), len(trend.items))
"""


def test_openapi_python_client(server: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    programs = tmp_path / "venv" / "bin"
    installed = run(programs / "pip", "install", "-q", GENERATOR, cwd=tmp_path, timeout=300)
    if re.search("No matching distribution|NewConnectionError", installed.stderr):
        out_of_reach(installed.stderr)
    assert installed.returncode == 0, installed.stderr
    places = ("--path", OPENAPI, "--output-path", tmp_path / "client")
    done = run(programs / "openapi-python-client", "generate", *places, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    # It knows no lines of JSON; all other operations are there.
    left_out = re.findall(r"parsing (.*) within .*Endpoint will not", done.stdout + done.stderr)
    assert left_out == ["POST /v1/import"]
    (tmp_path / "client" / "calls.py").write_text(PROGRAM)
    called = run(programs / "python", "calls.py", server, cwd=tmp_path / "client")
    assert called.stdout.split() == ["1.0", "pass", "2", "2"], called.stderr
