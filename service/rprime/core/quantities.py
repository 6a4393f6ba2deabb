"""Numbers of things, and slices, in sentences."""

import re
from collections.abc import Mapping

VERBS = {"are": "is", "have": "has", "need": "needs"}
"""The verbs of one thing."""


def plural(number: float, noun: str, verb: str = "") -> str:
    """Write a number of things, `1 class` or `2,000 classes`, and a verb that fits."""
    if number == 1:
        return " ".join(filter(None, ("1", noun, VERBS.get(verb, verb))))
    digits = f"{number:,.0f}" if float(number).is_integer() else f"{number:,.4f}"
    return " ".join(filter(None, (digits, f"{noun}{'es' if noun.endswith('s') else 's'}", verb)))


_RANGE = re.compile(r"\[(\S+), (\S+)\)")


def condition(column: str, value: str) -> str:
    """Write a value of a column as people write it: `region=EU`, `age < 30`, `30 <= age < 50`."""
    if value.startswith(("< ", ">= ")):
        return f"{column} {value}"
    if between := _RANGE.fullmatch(value):
        return f"{between[1]} <= {column} < {between[2]}"
    return f"{column}={value}"


def conditions(name: Mapping[str, str]) -> str:
    """Write the name of a slice, the value of each of its columns."""
    return ", ".join(condition(column, value) for column, value in name.items())
