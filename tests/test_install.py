"""What `pip install` makes of the wheel and of the source archive, in environments of their own.

What they depend on comes from the package registry: `RPRIME_TEST_REGISTRIES=1`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import rprime as library
from tests.examples.recipes import EXAMPLES, new_environment, pip, run
from tests.services import environment, stop

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "RPRIME_TEST_REGISTRIES" not in os.environ, reason="needs RPRIME_TEST_REGISTRIES=1"
    ),
]


@pytest.mark.parametrize("suffix", [".whl", ".tar.gz"])
def test_what_is_built_works_alone(tmp_path: Path, suffix: str) -> None:
    target = {".whl": "wheel", ".tar.gz": "sdist"}[suffix]
    build = (sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(tmp_path / "dist"))
    subprocess.run(build, cwd=EXAMPLES.parent, check=True)
    (built,) = (tmp_path / "dist").glob(f"*{suffix}")
    programs = new_environment(tmp_path / "venv")
    pip(programs, str(built))
    rprime = programs / "rprime"
    assert run(rprime, "--version", cwd=tmp_path).stdout == f"rprime {library.__version__}\n"
    done = run(rprime, "evaluate", EXAMPLES / "mnist.json", "--json", cwd=tmp_path)
    assert '"accuracy":{"value":0.9806' in done.stdout, done.stderr
    service = subprocess.Popen(
        [rprime, "serve", "--port", "0"],
        cwd=tmp_path,
        env=environment(RPRIME_STORE="none"),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert service.stdout is not None
    try:
        found = re.search(r"http://\S+(?=,)", service.stdout.readline())
        assert found
        body = {"confusion_matrix": [[5, 1], [0, 4]]}
        assert httpx.post(f"{found[0]}/evaluate", json=body, timeout=60).status_code == 200
        for page in ("/docs/index.md", "/docs", "/"):
            answer = httpx.get(found[0] + page, follow_redirects=True, timeout=60)
            assert answer.status_code == 200, page
    finally:
        status = stop(service)
        service.stdout.close()
    assert status == 0
