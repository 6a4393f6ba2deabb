"""What the names of axes, of totals and of counts say, in tables of counts as people have them."""

import re
from collections.abc import Hashable
from typing import Literal

Axis = Literal["rows_are_true", "rows_are_predicted"]

_WORD = re.compile(r"[A-Z]*[a-z]+|[A-Z]+|[^\W\d_a-zA-Z]+")
_TRUE = re.compile(
    "true|truths?|actuals?|act|references?|ref|gold(?:en)?|observed|obs|targets?|expected|y(?:true|test)"
)
_PREDICTED = re.compile(
    "predict(?:ed|ions?|or)?|y?preds?|y?hat|guess(?:ed)?|classifie[dr]|estimate[ds]?|map(?:ped)?|outputs?"
)
_TOTALS = re.compile(
    "all|(?:grand |row |column )?totals?|sums?|\N{GREEK SMALL LETTER SIGMA}|\u2211"
)
_COUNTS = re.compile(
    r"n|n_?items|freq(?:uency)?|counts?(?:\(\*\))?|count_star\(\)|items", re.IGNORECASE
)
BOTH = "Both axes are named as {}: name one true and the other predicted."


def axis_of(rows: object, columns: object) -> Axis | None:
    """Return what the rows are by the names of both axes; None if these do not say it.

    Raises
    ------
    ValueError
        If both have names of the same side.
    """
    sides = _side(rows), _side(columns)
    if sides[0] == sides[1] and sides[0] is not None:
        raise ValueError(BOTH.format("true classes" if sides[0] else "predictions"))
    if sides == (None, None):
        return None
    is_true = not sides[1] if sides[0] is None else sides[0]
    return "rows_are_true" if is_true else "rows_are_predicted"


def contradiction(axis: Axis, stated: object) -> str:
    """Say that the names of the axes contradict the option `axis`."""
    kind = "true classes" if axis == "rows_are_true" else "predictions"
    return (
        f"The names of the axes say that the rows are {kind}, and `axis` is {stated}: "
        "leave `axis` out, or correct the names."
    )


def is_total(name: Hashable) -> bool:
    """Whether a row or a column of this name holds totals, as `All` or `Sum`."""
    return isinstance(name, str) and bool(_TOTALS.fullmatch(name.casefold().strip(" :")))


def is_count(name: str) -> bool:
    """Whether a column of this name holds numbers of items, as `n` or `Freq`."""
    return bool(_COUNTS.fullmatch(name))


def _side(name: object) -> bool | None:
    """Return True for a name of true classes, False for predictions; None if it says neither."""
    words = {word.casefold() for word in _WORD.findall(name)} if isinstance(name, str) else set()
    is_true, is_predicted = (any(map(side.fullmatch, words)) for side in (_TRUE, _PREDICTED))
    return is_true if is_true != is_predicted else None
