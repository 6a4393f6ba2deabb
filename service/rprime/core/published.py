"""Dataclasses of the core that answers publish as they are, described where they are declared."""

from typing import Any


def _describe(schema: dict[str, Any]) -> None:
    """Make a JSON schema say what every answer has; what defaults to None may be absent."""
    required = schema.setdefault("required", [])
    for name, member in schema["properties"].items():
        member["description"] = " ".join(member["description"].split())
        if "default" not in member:
            continue
        if member.pop("default") is not None:
            required.append(name)
            continue
        options = [option for option in member.pop("anyOf") if option != {"type": "null"}]
        member.update(options[0] if len(options) == 1 else {"anyOf": options})


PUBLISHED = {
    "use_attribute_docstrings": True,
    "alias_generator": lambda name: name.removesuffix("_"),
    "json_schema_extra": _describe,
}
"""The `__pydantic_config__` of such a class. What stands under a member is its description; one
that defaults to None is absent where it does not apply. `class_` is `class` in JSON."""
