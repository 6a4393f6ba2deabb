"""Dataclasses of the core that answers publish as they are, described where they are declared."""

PUBLISHED = {
    "use_attribute_docstrings": True,
    "alias_generator": lambda name: name.removesuffix("_"),
}
"""The `__pydantic_config__` of such a class. What stands under a member is its description; one
that defaults to None is absent where it does not apply. `class_` is `class` in JSON."""
