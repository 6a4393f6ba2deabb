"""ARCHITECTURE.md agrees with the import contracts and with the files."""

import re
import runpy
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "service/rprime"
TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def drawn_layers() -> list[set[str]]:
    """Return the layers of the picture, from the top, as sets of packages."""
    [picture] = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)
    names = [re.split(r"\s{2,}", line)[0] for line in picture.splitlines()]
    return [set(re.split(r"\s*\|\s*", line)) for line in names]


def test_the_picture_shows_the_layers_of_the_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    [contract] = [c for c in project["tool"]["importlinter"]["contracts"] if "layers" in c]
    declared = [set(re.findall(r"\w+", layer)) for layer in contract["layers"]]
    assert drawn_layers() == declared


def test_every_layer_is_there() -> None:
    for name in set().union(*drawn_layers()):
        assert (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file(), name


def test_every_module_that_is_named_is_there() -> None:
    paths = re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", TEXT)
    modules = [name.replace(".", "/") for name in re.findall(r"`([a-z]+\.(?!py`)[a-z_]+)`", TEXT)]
    named = [PACKAGE / path for path in [*paths, *modules] if not path.startswith("rprime/")]
    assert len(named) > 20
    for path in named:
        assert path.is_file() or path.is_dir() or path.with_suffix(".py").is_file(), path


def test_the_picture_of_the_imports_follows_from_the_code() -> None:
    written = runpy.run_path(str(ROOT / "docs/site/imports.py"))["written"]
    assert "```mermaid" in TEXT
    assert written(TEXT) == TEXT, "run: sh .ci/venv python docs/site/imports.py"
