"""The tutorial, the guides and the explanations tell the truth: their blocks run in order.

What `sh` and `python` blocks print is what the next `text` block shows, apart from the widths of
columns. A block that begins with the name of a file is one to be saved; other `yaml` is a gate.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from rprime.core.gates.rules import mistakes
from rprime.schemas.gate import Gates
from tests.examples.recipes import EXAMPLES, run

DOCUMENTS = EXAMPLES.parent / "docs"
GUIDES = (
    "tutorial",
    "baselines",
    "coming-from",
    "large-data",
    "populations",
    "r-prime",
    "uncertainty",
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SERVICE = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def service(serve: Callable[..., AbstractContextManager[httpx.Client]]) -> Iterator[str]:
    with serve() as client:
        yield str(client.base_url).rstrip("/")


def squeezed(text: str) -> str:
    """Return text without the widths of columns and the breaks of lines."""
    return " ".join(text.split())


def saved(block: str, folder: Path) -> bool:
    """Save a block that begins with the name of its file."""
    name = re.match(r"# ([\w-]+\.\w+)\n", block)
    if name is not None:
        (folder / name[1]).write_text(block, encoding="utf-8")
    return name is not None


@pytest.mark.slow
@pytest.mark.parametrize("guide", GUIDES)
def test_every_block_runs_and_prints_what_is_shown(
    guide: str, service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    text = (DOCUMENTS / f"{guide}.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    printed: str | None = ""
    for language, block in BLOCK.findall(text):
        if language == "text" and printed is not None:
            assert block.strip(), "nothing is shown"
            for line in map(squeezed, block.splitlines()):
                assert line in printed, f"{line}\n\n{printed}"
        elif saved(block, tmp_path):
            continue
        elif language == "sh":
            done = run("sh", "-ec", block.replace(SERVICE, service), cwd=tmp_path)
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
            printed = squeezed(done.stdout)
        elif language == "python":
            with redirect_stdout(StringIO()) as out:
                exec(block, names)  # noqa: S102 (the text of the page is what is tested)
            printed = squeezed(out.getvalue())
        elif language == "yaml":
            assert not list(mistakes(Gates.model_validate(yaml.safe_load(block)).core()))
        elif language == "py":
            # Another tool runs it: tests/integrations/test_coming_from.py.
            printed = None
        else:
            assert (language, printed) == ("text", None)


def test_the_tutorial_is_read_in_ten_minutes() -> None:
    text = (DOCUMENTS / "tutorial.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 2000


@pytest.mark.slow
def test_a_job_promotes_only_what_passed(service: str, tmp_path: Path) -> None:
    """The page of baselines says so; a broken model must not become the champion."""
    (tmp_path / "examples").symlink_to(EXAMPLES)
    script = f"""
        export RPRIME_SERVER={service}
        python examples/train_digits.py --candidate naive_bayes --write .
        rprime evaluate champion.csv --project kept --version 1 --json-file first.json
        rprime promote first.json champion --project kept
        rprime evaluate predictions.csv --project kept --version 2 --baseline alias=champion \
            --gates examples/gates.yaml --json-file report.json || test $? -eq 1
        rprime promote report.json champion --project kept --if-passed
    """
    done = run("sh", "-ec", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with httpx.Client(base_url=service) as client:
        alias = client.get("/v1/projects/kept/aliases/champion").json()
        stored = client.get("/v1/projects/kept/evaluations").json()["items"]
    versions = {entry["id"]: entry["version"] for entry in stored}
    assert versions[alias["evaluation"]] == "1"
