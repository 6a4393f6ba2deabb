"""Labels in formats without types, such as CSV: which of them are integers, and which mistakes."""

import re
from collections.abc import Iterable

MOST = 2**53 - 1
"""The largest integer label."""
_LONGEST_INTEGER = len(str(-MOST))
_INTEGRAL = re.compile(r"(-?[0-9]+)\.0+")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")
_TRUTH = {"true": 1.0, "false": 0.0}
_MISSING = {"nan", "<na>"}


def integer_text(text: str) -> str | None:
    """Return the decimal text of an integer; None if a text is a name.

    7.0 is the integer 7: a column of integers with a missing value is one of floats in many data
    frames. 07 and +7 are names.
    """
    found = _INTEGRAL.fullmatch(text)
    text = text if found is None else found[1]
    if len(text) > _LONGEST_INTEGER:
        return None
    try:
        return text if str(int(text)) == text and abs(int(text)) <= MOST else None
    except ValueError:
        return None


def likely_mistake(texts: Iterable[str]) -> str | None:
    """Say what is most likely wrong with labels that are not all integers; None if nothing is.

    Parameters
    ----------
    texts
        The distinct labels that occur, without declared classes.
    """
    plain = [text.strip().lower() for text in texts]
    if not _MISSING.isdisjoint(plain):
        return (
            "A label is the text NaN, which data frames write for a missing value. Leave the field "
            "empty if the item is unclassified, or declare the class in `labels`."
        )
    values = [_TRUTH[text] if text in _TRUTH else float(text) for text in plain if _is_value(text)]
    if len(set(values)) < len(values):
        return (
            "Two labels are one value in different spellings, such as 2 and 02, 1 and 1.0, or True "
            "and 1. Use a single spelling, or declare both in `labels`."
        )
    return None


def _is_value(text: str) -> bool:
    return text in _TRUTH or _NUMBER.fullmatch(text) is not None
