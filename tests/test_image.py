"""What the image is made of: the Dockerfile, and the programs that its build runs."""

import json
import re
import runpy
import shutil
import stat
import subprocess
import sys
import sysconfig
from importlib.metadata import distributions, requires
from pathlib import Path
from typing import Any

import pytest
import zstandard

import rprime as library
from tests.examples.recipes import run
from tests.services import RPRIME, Serve, environment, stop

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / ".ci" / "image"
PACKAGES = Path(sysconfig.get_path("platlib"))
SLIM: dict[str, Any] = runpy.run_path(str(PROGRAMS / "slim.py"))
EXTENSION = next(Path(zstandard.__file__).parent.glob("backend_c.*.so"))


# The Dockerfile


def test_both_stages_start_from_the_image_that_an_argument_names() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert re.search(
        r"^ARG PYTHON_IMAGE=\S+:3\.13-slim-bookworm(@sha256:[0-9a-f]{64})?$", text, re.MULTILINE
    )
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${PYTHON_IMAGE}"] * 2


def test_the_context_has_what_is_copied_and_nothing_else() -> None:
    copied = re.findall(
        r"^COPY (?!--from)(.*) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE
    )
    paths = {path for line in copied for path in line.split()}
    first, *others = (ROOT / ".dockerignore").read_text().split()
    assert first == "*"
    assert {line[1:] for line in others if line.startswith("!")} == paths


# The health check


def test_the_health_check_asks_where_the_service_listens(serve: Serve, tmp_path: Path) -> None:
    def status(**variables: str) -> int:
        command = [sys.executable, str(PROGRAMS / "health.py")]
        env = environment(**variables)
        return subprocess.run(command, env=env, stderr=subprocess.DEVNULL, check=False).returncode

    with serve(RPRIME_STORE="none", RPRIME_HOST="127.0.0.2") as client:
        port = str(client.base_url.port)
        assert status(RPRIME_HOST="127.0.0.2", RPRIME_PORT=port) == 0
        assert status(RPRIME_PORT=port) != 0
    path = tmp_path / "s"
    variables = {"RPRIME_UDS": str(path), "RPRIME_STORE": "none"}
    process = subprocess.Popen(
        [RPRIME, "serve"], env=environment(**variables), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        process.stdout.readline()
        assert status(**variables) == 0
        assert stop(process) == 0


# Slimming


def test_a_stripped_library_is_smaller_and_still_works(tmp_path: Path) -> None:
    package = tmp_path / "zstandard"
    shutil.copytree(EXTENSION.parent, package)
    path = package / EXTENSION.name
    before = path.stat()
    SLIM["strip"](path)
    after = path.stat()
    assert after.st_size < before.st_size / 2
    assert stat.S_IMODE(after.st_mode) == stat.S_IMODE(before.st_mode)
    code = (
        "import zstandard as z; text = z.decompress(z.compress(b'seven')); print(text.decode())\n"
        "print(z.backend_c.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["seven", str(path)]
    SLIM["strip"](path)
    assert path.stat().st_size == after.st_size


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x01\x01" + bytes(100), b"#!/bin/sh\n"])
def test_what_is_no_library_of_64_bits_stays(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    SLIM["strip"](path)
    assert path.read_bytes() == content


def test_slimming_removes_what_is_listed_and_keeps_the_rest(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python3.13" / "site-packages"
    kept = ["pyarrow/lib.so", "pyarrow/libarrow_python.so.2600", "scipy/special/a.py", "one/b.py"]
    removed = [
        "one/tests/c.py",
        "one/deep/tests/d.txt",
        "one/e.pyx",
        "pyarrow/libarrow_flight.so.2600",
        "pyarrow/libarrow_python.so.2600.1.0",
        "scipy/stats/f.py",
    ]
    for name in (*kept, *removed):
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text("x")
    done = run("python", PROGRAMS / "slim.py", tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    left = {str(path.relative_to(packages)) for path in packages.rglob("*") if path.is_file()}
    assert left == set(kept)


@pytest.mark.parametrize("pattern", SLIM["UNUSED"].split())
def test_every_pattern_still_finds_something(pattern: str) -> None:
    assert next(PACKAGES.glob(pattern), None)


# The bill of materials


def test_the_bill_of_materials_has_every_distribution_once() -> None:
    done = run("python", PROGRAMS / "sbom.py", "rprime", cwd=ROOT)
    bill = json.loads(done.stdout)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    top = bill["metadata"]["component"]
    assert (top["name"], top["version"]) == ("rprime", library.__version__)
    interpreter, *others = bill["components"]
    assert interpreter["version"] == sys.version.split()[0]
    packages = {component["purl"] for component in (top, *others)}
    assert len(packages) == len(others) + 1
    installed = (
        (distribution.metadata["Name"].lower(), distribution.version)
        for distribution in distributions()
    )
    plain = {f"pkg:pypi/{re.sub('[-_.]+', '-', name)}@{version}" for name, version in installed}
    assert packages == plain


def test_the_bill_of_materials_says_who_requires_what() -> None:
    bill = json.loads(run("python", PROGRAMS / "sbom.py", "rprime", cwd=ROOT).stdout)
    references = {
        component["bom-ref"] for component in (bill["metadata"]["component"], *bill["components"])
    }
    listed = {dependency["ref"]: dependency["dependsOn"] for dependency in bill["dependencies"]}
    assert set(listed) <= references
    assert all(set(needed) <= references for needed in listed.values())
    mine = listed[f"pkg:pypi/rprime@{library.__version__}"]
    names = {re.split("[^a-z0-9-]", line.lower())[0] for line in requires("rprime") or ()}
    assert {"numpy", "fastapi", "resvg-py"} <= names
    assert {"numpy", "fastapi", "resvg-py"} <= {re.split("[/@]", url)[1] for url in mine}


# The smoke test


@pytest.mark.slow
def test_the_smoke_test_passes_here() -> None:
    done = run("python", PROGRAMS / "smoke.py", cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("module", ["pyarrow.parquet", "resvg_py", "scipy.special"])
def test_the_smoke_test_finds_what_is_missing(tmp_path: Path, module: str) -> None:
    text = f"import sys\nsys.modules[{module!r}] = None\n"
    (tmp_path / "sitecustomize.py").write_text(text)
    program = tmp_path / "rprime"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {RPRIME} "$@"\n')
    program.chmod(0o755)
    done = run("python", PROGRAMS / "smoke.py", program, cwd=ROOT)
    assert done.returncode == 1, done.stderr[-2000:]
