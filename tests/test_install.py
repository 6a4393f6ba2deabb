"""What `pip install` makes of the wheel and of the source archive, in environments of their own.

What they depend on comes from the package registry: `RPRIME_TEST_REGISTRIES=1`.
"""

import os
import re
import subprocess
from pathlib import Path

import httpx
import pytest

import rprime as library
from tests.examples.recipes import EXAMPLES, new_environment, pip, run
from tests.integrations.test_guide import blocks
from tests.services import environment, stop

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "RPRIME_TEST_REGISTRIES" not in os.environ, reason="needs RPRIME_TEST_REGISTRIES=1"
    ),
]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source archive, and the wheel from it, as for a release."""
    folder = tmp_path_factory.mktemp("release")
    programs = new_environment(folder / "venv")
    pip(programs, "build", "twine")
    dist = folder / "dist"
    for arguments in (("build", "--outdir", dist), ("twine", "check", "--strict")):
        files = sorted(dist.glob("*")) if arguments[0] == "twine" else [EXAMPLES.parent]
        done = run(programs / "python", "-m", *arguments, *files, cwd=folder, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in dist.iterdir()} == {
        f"rprime-{library.__version__}-py3-none-any.whl",
        f"rprime-{library.__version__}.tar.gz",
    }
    return dist


@pytest.mark.parametrize("suffix", [".whl", ".tar.gz"])
def test_what_is_built_works_alone(tmp_path: Path, dist: Path, suffix: str) -> None:
    (built,) = dist.glob(f"*{suffix}")
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
        match = re.search(r"http://\S+(?=,)", service.stdout.readline())
        assert match
        body = {"confusion_matrix": [[5, 1], [0, 4]]}
        assert httpx.post(f"{match[0]}/evaluate", json=body, timeout=60).status_code == 200
        for page in ("/docs/index.md", "/docs", "/"):
            answer = httpx.get(match[0] + page, follow_redirects=True, timeout=60)
            assert answer.status_code == 200, page
    finally:
        status = stop(service)
        service.stdout.close()
    assert status == 0


def test_the_integrations_work_for_those_who_install_them(tmp_path: Path, dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    programs = new_environment(tmp_path / "venv")
    pip(programs, f"rprime[pytest,sklearn] @ {wheel.as_uri()}")
    (tmp_path / "test_digits.py").write_text(blocks("pytest")[0])
    for option, warned in (("--rprime-update", "1 warning"), ("-Werror", "1 passed in")):
        done = run(programs / "pytest", "test_digits.py", option, cwd=tmp_path)
        assert done.returncode == 0, done.stdout
        assert warned in done.stdout
    (tmp_path / "scorers.py").write_text(blocks("scikit-learn")[0])
    done = run(programs / "python", "scorers.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
