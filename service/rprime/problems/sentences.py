"""What is wrong with a member of a request, in a sentence that names it and says what to do."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

_MOMENT = "a date such as 2026-01-31 or a datetime such as 2026-01-31T12:00:00Z"
_VALUES = {
    "bool": "true or false",
    "byte": "a number of bytes such as 512MiB",
    "date": "a date such as 2026-01-31",
    "datetime": _MOMENT,
    "dict": "an object",
    "finite": "a finite number",
    "float": "a number",
    "int": "an integer",
    "list": "a list",
    "model_type": "an object",
    "not_a_moment": _MOMENT,
    "string_type": "a string",
    "tuple": "a list",
}
"""What a member must be, by the type of an error of Pydantic or its first word."""
_SENTENCES = {
    "extra_forbidden": "A name is not known here: correct or remove it; /docs lists the names",
    "missing": "Add {name}, which is required",
    "null": "Leave {name} out instead of sending null",
    "required_null": "Give {name} a value: it is required, and null is none",
    "union_tag_invalid": "The tag is none of the expected ones",
}
_WORDS = {
    r"^Value should have at least (\d+) items": r"{name} must have at least \1 characters",
    "^(?:Dictionary|Input|List|String|Tuple|Value) should": "{name} must",
    r"match pattern '\^\[\^.*": "have no control characters",
    r"match pattern '\^\[0-9a-f\].*": "be 64 digits of 0-9 and a-f",
    r"match pattern '\^\[A-Za-z0-9\]\[A-Za-z0-9(.*)\]\*\$'": (
        r"begin with a letter or a digit, then have letters, digits and the signs \1 only"
    ),
    " after validation": "",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "must be True": "must be true",
    "^Path does": "{name} does",
    "^Value error, ": "",
    "^value is not": "{name} is not",
}
"""The words of other messages of Pydantic, and those that a reader understands."""


def member(parts: Sequence[str | int], *, within: bool = False) -> str:
    """Name the member at a place, or a value `within` it; no part may be a value of the request."""
    if not parts:
        return "the body"
    *outer, last = parts
    if isinstance(last, int):
        return f"item {last + 1} of {member(outer)}"
    return f"a value in `{last}`" if within else f"`{last}`"


def sentence(error: Mapping[str, Any], name: str) -> str:
    """Say what is wrong with a member, by an error of Pydantic, without repeating its value."""
    kind = error["type"]
    if value := _VALUES.get(kind) or _VALUES.get(kind.partition("_")[0]):
        text = f"{name} must be {value}"
    elif kind in _SENTENCES:
        text = _SENTENCES[kind].format(name=name)
    else:
        text = error["msg"]
        for theirs, ours in _WORDS.items():
            text = re.sub(theirs, ours.replace("{name}", name), text)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('?', '.')) else '.'}"
