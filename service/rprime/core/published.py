"""Dataclasses of the core that answers publish as they are, described where they are declared."""

import ast
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import getsource
from itertools import pairwise
from math import isnan
from operator import attrgetter
from typing import Any

Json = dict[str, Any]
"""An object of JSON."""


def _describe(schema: dict[str, Any], kind: type[Any]) -> None:
    """Make a JSON schema say what every answer has; what defaults to None may be absent."""
    required, described = set(schema.get("required", ())), _descriptions(kind)
    for name, member in schema["properties"].items():
        member["description"] = " ".join(described[name].split())
        if "default" not in member:
            continue
        if member.pop("default") is not None:
            required.add(name)
            continue
        options = [option for option in member.pop("anyOf") if option != {"type": "null"}]
        member.update(options[0] if len(options) == 1 else {"anyOf": options})
    schema["required"] = [name for name in schema["properties"] if name in required]


def _descriptions(kind: type[Any]) -> dict[str, str]:
    """Return what stands under each member, those of base classes, too."""
    texts: dict[str, str] = {}
    for base in filter(is_dataclass, reversed(kind.__mro__)):
        (declared,) = ast.parse(getsource(base)).body
        for member, text in pairwise(getattr(declared, "body", ())):
            if isinstance(member, ast.AnnAssign) and isinstance(text, ast.Expr):
                name = ast.unparse(member.target).removesuffix("_")
                texts[name] = ast.literal_eval(text.value)
    return texts


PUBLISHED = {"alias_generator": lambda name: name.removesuffix("_"), "json_schema_extra": _describe}
"""The `__pydantic_config__` of such a class. What stands under a member is its description; one
that defaults to None is absent where it does not apply. `class_` is `class` in JSON."""


def members(published: object) -> dict[str, Any]:
    """Return the members of a published object by their names in JSON, those that apply."""
    names, values_of, optional = _layout(type(published))  # type: ignore[arg-type] # classes are hashable
    result = dict(zip(names, values_of(published), strict=True))
    for name in optional:
        if result[name] is None:
            del result[name]
    return result


@cache
def _layout(
    kind: type[Any],
) -> tuple[tuple[str, ...], Callable[[object], tuple[Any, ...]], tuple[str, ...]]:
    """Return the names of the members in JSON, what reads them, and which may be absent."""
    declared = fields(kind)
    names = tuple(member.name.removesuffix("_") for member in declared)
    absent = [n for n, member in zip(names, declared, strict=True) if member.default is None]
    return names, attrgetter(*(member.name for member in declared)), tuple(absent)


def defined(value: float) -> float | None:
    """Return a value as JSON has it: null if it is NaN."""
    return None if isnan(value) else value


_PLAIN = (str, float, int)


def document(published: object) -> Any:  # noqa: ANN401 (JSON)
    """Return published objects, alone or in lists and mappings, as JSON has them."""
    if published is None or isinstance(published, _PLAIN):
        return published
    if isinstance(published, dict):
        return {name: document(value) for name, value in published.items()}
    if isinstance(published, list | tuple):
        return [document(value) for value in published]
    if is_dataclass(published):
        return document(members(published))
    return published
