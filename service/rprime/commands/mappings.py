"""Gates and options from files of YAML or JSON."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rprime.commands.exit_status import refuse
from rprime.commands.inputs import read_document
from rprime.core.gates.rules import mistakes
from rprime.core.published import Json
from rprime.problems.problem import Violation, pointer
from rprime.schemas.document import Document
from rprime.schemas.gate import Gates
from rprime.schemas.violations import validated


def read_mapping(path: Path, what: str) -> Json:
    """Read a file of YAML, and with it JSON, that holds a mapping; `what` it is, for messages."""
    import yaml

    from rprime.commands.yaml_loader import Loader

    try:
        content = yaml.load(read_document(path), Loader=Loader)  # noqa: S506 - made of SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        hint = "; indent by spaces" if "\\t" in f"{error.problem}" else ""
        message = f"this is no YAML: {error.problem}{hint}"
        if error.problem == "but found another document":
            message = "a second document begins here; a file holds one"
        refuse(f"{path}{place}: {message}")
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        refuse(f"{path}: this is no YAML: {' '.join(str(error).split())}")
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        example = ", as in `rules: [...]`" if what == "gates" else ""
        refuse(f"{path} must hold {what} as a mapping of names to values{example}")
    return content


def read_gates(path: Path) -> Json:
    """Read a file of gates, or end and say which line of it is wrong."""
    content = read_mapping(path, "gates")
    violations: list[Violation] = []
    gates = validated(Gates, Document(content, names=tuple(content)), violations)
    if gates is not None and not violations:
        # What needs the options of a request is found with it.
        violations += (
            Violation(pointer(*mistake.place), mistake.code, str(mistake))
            for mistake in mistakes(gates.core())
        )
    if violations:
        refuse("\n".join(f"{path}:{violation}" for violation in _located(path, violations)))
    return content


def rule_places(path: Path) -> dict[str, Json]:
    """Return file, line and column of each rule of a valid file of gates, by the rule's id."""
    import yaml

    from rprime.commands.yaml_loader import Loader

    root: Any = yaml.compose(path.read_bytes(), Loader=Loader)
    rules = Gates.model_validate(read_mapping(path, "gates")).core().rules
    marks = [node.start_mark for node in _child(root, "rules").value]
    return {
        rule.name: {"file": str(path), "line": mark.line + 1, "col": mark.column + 1}
        for rule, mark in zip(rules, marks, strict=True)
    }


def _located(path: Path, violations: Iterable[Violation]) -> Iterator[str]:
    """Say where in a file of YAML each violation is, with the wrong name or value."""
    import yaml

    from rprime.commands.yaml_loader import Loader

    root: Any = yaml.compose(path.read_bytes(), Loader=Loader)
    for violation in violations:
        *outer, name = *violation.pointer.split("/")[1:], getattr(violation, "name", None)
        node = root
        for part in outer:
            node = _child(node, part)
        if name is not None and isinstance(node, yaml.MappingNode):
            # The place of an unknown member is that of its name.
            node = next((key for key, _ in node.value if key.value == name), node)
        word = f"'{node.value}': " if isinstance(node, yaml.ScalarNode) and node.value else ""
        mark, place = node.start_mark, f"/gates{violation.pointer}"
        yield f"{mark.line + 1}:{mark.column + 1}: {word}{violation.detail} ({place})"


def _child(node: Any, part: str) -> Any:  # noqa: ANN401 (a node of YAML)
    """Return the member of a node; the node itself if it lacks the member."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == part), node)
    return node.value[int(part)] if isinstance(node, yaml.SequenceNode) else node
