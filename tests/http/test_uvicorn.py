"""The private names of uvicorn that the server uses are declared in all allowed versions."""

import ast
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import uvicorn

import rprime.server
from rprime.server.protocol import HttpProtocol
from tests.examples.recipes import out_of_reach

SOURCES = Path(rprime.server.__file__).parent
EXPECTED = Path(__file__).parents[1] / "reference" / "uvicorn.json"
"""Their declarations. Where one changes in a new version, look at what uses it before this file."""

OTHERS = {"on_chunk_header", "on_chunk_complete", "abort"}
"""Callbacks of httptools, and of the bound of connections; `test_framing` and `test_connections`
show that they are called."""


def used() -> tuple[set[tuple[str, str]], set[str]]:
    """Return what the server imports from uvicorn, and each name of a member in those modules."""
    imports, members = set[tuple[str, str]](), set[str]()
    classes = {Path(inspect.getfile(base)) for base in HttpProtocol.__mro__[:-1]}
    for path in SOURCES.glob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        pairs = {
            (node.module, alias.name)
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module and "uvicorn" in node.module
            for alias in node.names
        }
        if pairs or path in classes:
            imports |= pairs
            members |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
            members |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    return imports, members


def declarations(module: str) -> Iterator[tuple[str, str, str]]:
    """Yield the class, if any, the name and the declaration of all that a module declares."""
    for node in ast.parse(inspect.getsource(import_module(module))).body:
        if isinstance(node, ast.ClassDef):
            yield "", node.name, f"class({', '.join(map(ast.unparse, node.bases))})"
            for member in node.body:
                if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                    kind = "async def" if isinstance(member, ast.AsyncFunctionDef) else "def"
                    returns = ast.unparse(member.returns) if member.returns else "None"
                    yield node.name, member.name, f"{kind}({ast.unparse(member.args)}) -> {returns}"
                if isinstance(member, ast.FunctionDef) and member.name == "__init__":
                    yield from ((node.name, *attribute) for attribute in attributes(member))
        elif isinstance(node, ast.Assign):
            yield "", ast.unparse(node.targets[0]), ast.unparse(node.value)


def attributes(constructor: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Yield the attributes that a constructor sets: the type, or else the value."""
    for node in ast.walk(constructor):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            yield node.target.attr, ast.unparse(node.annotation)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            yield node.targets[0].attr, f"= {ast.unparse(node.value)}"


def surface() -> dict[str, str]:
    """Return the declaration of every name of uvicorn that the server uses."""
    imports, members = used()
    classes = {name for _, name in imports}
    signatures = {f"{module}.{name}": "missing" for module, name in imports}
    for module in {module for module, _ in imports}:
        for owner, name, declaration in declarations(module):
            if (module, name) in imports or (owner in classes and name in members):
                signatures[".".join(filter(None, (module, owner, name)))] = declaration
    return dict(sorted(signatures.items()))


def test_uvicorn_declares_the_private_names_as_the_server_expects_them() -> None:
    expected, declared = json.loads(EXPECTED.read_text()), surface()
    changes = [
        f"{name}\n  expected: {expected.get(name)}\n  found:    {declared.get(name)}"
        for name in sorted(expected | declared)
        if expected.get(name) != declared.get(name)
    ]
    told = f"uvicorn {uvicorn.__version__}: update server/*.py first, then {EXPECTED}"
    assert not changes, "\n".join([told, *changes])


def test_nothing_is_overridden_that_uvicorn_does_not_have() -> None:
    """Else a protection would never run."""
    public = {name for name, value in vars(HttpProtocol).items() if inspect.isfunction(value)}
    callbacks = {name for name in public if not name.startswith("_")}
    assert callbacks - OTHERS == {
        name for name in callbacks if hasattr(HttpProtocol.__base__, name)
    }
    assert len(callbacks) > 10


@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.51.0", "0.52.4", "0.53.0"])
def test_the_connections_hold_on_other_allowed_versions(version: str, tmp_path: Path) -> None:
    install = (sys.executable, "-m", "pip", "install", "--no-deps", "--target", tmp_path)
    done = subprocess.run(
        [*install, f"uvicorn=={version}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        out_of_reach(done.stderr)
    root = Path(__file__).parents[2]
    names = ("test_uvicorn", "test_framing", "test_connections", "test_other_clients")
    tests = [f"tests/http/{name}.py" for name in names]
    paths = os.pathsep.join((str(tmp_path), str(root / "service")))
    checked = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *tests],
        cwd=root,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
