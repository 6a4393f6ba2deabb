"""The guide to the recipes tells the truth: its commands end as it says, its links lead on."""

import re
from pathlib import Path

import pytest

from tests.examples.recipes import EXAMPLES, run

GUIDE = (EXAMPLES / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    texts = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert texts
    return texts


@pytest.mark.slow
def test_every_command_ends_as_it_says(server: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    for line in "".join(blocks("sh")).splitlines():
        command, _, status = line.partition("  # ends with ")
        command = command.replace("http://127.0.0.1:8000", server)
        done = run("sh", "-c", command, cwd=tmp_path)
        assert done.returncode == int(status or 0), f"{line}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "rprime.html").exists()


def test_every_recipe_is_named_and_every_link_leads_to_one() -> None:
    linked = {link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", GUIDE)}
    assert all((EXAMPLES / link).exists() for link in linked)
    recipes = [*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.sh"), *EXAMPLES.glob("*/*.yml")]
    for path in recipes:
        name = path.relative_to(EXAMPLES)
        assert {name.as_posix(), f"{name.parent.as_posix()}/"} & linked, name
