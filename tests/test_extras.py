"""The table of extras tells what they weigh: the files of the packages that each one adds."""

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
ROWS = {
    name: size
    for name, size in re.findall(r"^\| `(\w+)` \| .* \| ([\w ]+) \|$", PAGE, re.MULTILINE)
    if name in EXTRAS
}


def closure(name: str, extras: set[str]) -> set[str]:
    """Return a package and all that it requires, by their normalised names."""
    packages: set[str] = set()
    waiting = [(name, frozenset(extras))]
    seen = set()
    while waiting:
        requirement = waiting.pop()
        if requirement in seen:
            continue
        seen.add(requirement)
        packages.add(requirement[0])
        for line in distribution(requirement[0]).requires or ():
            needed = Requirement(line)
            if needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in (*requirement[1], "")
            ):
                dependency = re.sub(r"[-_.]+", "-", needed.name).lower()
                waiting.append((dependency, frozenset(needed.extras)))
    return packages


def megabytes(names: set[str]) -> float:
    files = [file for name in names for file in distribution(name).files or ()]
    sizes = (path.stat().st_size for file in files if (path := Path(str(file.locate()))).is_file())
    return sum(sizes) / 1e6


def test_every_extra_has_a_row() -> None:
    assert list(ROWS) == list(EXTRAS)


@pytest.mark.parametrize("name", sorted(EXTRAS.keys() - {"spark"}))
def test_an_extra_weighs_what_its_row_says(name: str) -> None:
    added = closure("rprime", {name}) - closure("rprime", set())
    assert int(ROWS[name]) == pytest.approx(megabytes(added), rel=0.1, abs=1)


def test_the_package_alone_weighs_what_the_page_says() -> None:
    (size,) = re.findall(r"(?m)^rprime takes (\d+) MB", PAGE)
    assert int(size) == pytest.approx(megabytes(closure("rprime", set())), rel=0.1)
