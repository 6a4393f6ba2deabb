"""Names of classes and of axes: which characters and texts are allowed, and what they say."""

import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, TypeVar

LONGEST_NAME = 128
"""Characters."""

HIDDEN = (
    r"\u0000-\u001f\u007f-\u009f"  # control characters
    r"\u00ad\u061c\u180e\u200b\u200e\u200f\u2060-\u2064\ufeff"  # zero-width, marks of direction
    r"\u2028-\u202e\u2066-\u206f"  # line separators, bidirectional overrides and isolates
)
"""Characters that make two names look alike or reverse the text of a page, as the inside of a
regular expression's character class. Surrogates are missing: UTF-8 cannot encode them. So are the
zero-width joiner and non-joiner: Persian and Indic spellings and emoji need them."""

JOINERS = r"\u200c\u200d"
"""The zero-width non-joiner and joiner; a name has other characters besides."""


LabelT = TypeVar("LabelT")

MOST = 2**53 - 1
"""The largest integer label."""
_LONGEST_INTEGER = len(str(-MOST))
_INTEGRAL = re.compile(r"(-?[0-9]+)\.0+")
_NUMBER = re.compile(r"\+?(-?)0*([0-9]+)(?:\.([0-9]*?)0*)?")
_EXPONENT = re.compile(r"[+-]?[0-9]{1,20}(?:\.[0-9]{0,20})?e([+-]?[0-9]{1,3})", re.ASCII)
_MOST_ZEROS = 20
_JOINERS = re.compile(f"[{JOINERS}]")
_TRUTH = {"true": "1", "false": "0"}
_MISSING = {"nan", "<na>"}
_MARKS = {*_MISSING, "null", "none", "na", "n/a", "#n/a", "?", "1:?"}
_PADDINGS = ("-100", "255")
_BELOW_100 = re.compile("[0-9]{1,2}")
_JOIN = re.compile(r"[|,;+&/]")
_LIST = re.compile(r"\s*[\[({]\s*'.*'\s*,?\s*[\])}]\s*")
"""How Python writes lists of texts."""
_FRACTION = re.compile(r"-?[0-9]*\.[0-9]+(?:e-?[0-9]+)?", re.IGNORECASE)


def read_texts(
    texts: Sequence[str], declared: Collection[str] | None
) -> tuple[list[str | None], bool]:
    """Return the class that each distinct text means, and whether all of them are integers.

    * A declared class is itself.
    * NaN, as data frames write it, is a missing value: None.
    * If all other texts are integers or floats without a fraction, 7.0 is the class 7: in many data
      frames, a column of integers with a missing value is one of floats.
    * If all other texts are true or false, in any case, the classes are True and False.
    """
    classes = frozenset(declared or ())
    present = [text for text in texts if text in classes or text.strip().lower() not in _MISSING]
    integers = {text: integer_text(text) for text in present}
    numeric = None not in integers.values()
    if {text.strip().lower() for text in present} <= _TRUTH.keys():
        meant = {text: text.strip().capitalize() for text in present}
    elif numeric or classes:
        meant = {text: integer or text for text, integer in integers.items()}
    else:
        meant = {text: text for text in present}
    if classes:
        meant = {a: a if a in classes or b not in classes else b for a, b in meant.items()}
    return [meant.get(text) for text in texts], numeric


def integer_text(text: str) -> str | None:
    """Return the decimal text of an integer, also of 7.0; None for a name, as 07 and +7 are."""
    match = _INTEGRAL.fullmatch(text)
    text = text if match is None else match[1]
    if len(text) > _LONGEST_INTEGER:
        return None
    try:
        return text if str(int(text)) == text and abs(int(text)) <= MOST else None
    except ValueError:
        return None


@lru_cache(maxsize=256)
def twins(labels: tuple[str, ...]) -> tuple[str, str] | None:
    """Return two classes that may be one in two spellings, as 2 and 02, True and 1, Cat and cat."""
    seen: dict[object, str] = {}
    for label in labels:
        text = " ".join(_JOINERS.sub("", label).casefold().split())
        number = _NUMBER.fullmatch(_TRUTH.get(text) or _without_exponent(text))
        meant = text if number is None else (number[1], number[2], number[3] or "")
        first = seen.setdefault(meant, label)
        if first is not label:
            return first, label
    return None


def _without_exponent(text: str) -> str:
    """Write 1e3 as 1000; another text, and a number of very many digits, as it is."""
    exponent = _EXPONENT.fullmatch(text)
    return f"{Decimal(text):f}" if exponent and abs(int(exponent[1])) <= _MOST_ZEROS else text


@lru_cache(maxsize=256)
def doubtful(labels: tuple[str, ...]) -> dict[str, str]:
    """Return classes that may be none: a missing value, a padding, a score, and several classes.

    The keys are `missing_mark`, `padding`, `score` and `several`. A padding is -100, or 255 where
    all other classes are integers below 100. A score is a fraction, and most labels are fractions.
    """
    doubts = {}
    mark = next((label for label in labels if label.lower() in _MARKS), None)
    if mark is not None:
        doubts["missing_mark"] = mark
    if (padding := _padding(labels)) is not None:
        doubts["padding"] = padding
    fractions = [label for label in labels if _FRACTION.fullmatch(label)]
    fractions = [label for label in fractions if integer_text(label) is None]
    if 2 * len(fractions) > len(labels):
        doubts["score"] = fractions[0]
    several = next((label for label in labels if _is_several(label, labels)), None)
    if several is not None:
        doubts["several"] = several
    return doubts


def _is_several(label: str, labels: tuple[str, ...]) -> bool:
    """Whether a label is a list, or joins others by a sign."""
    parts = [part.strip() for part in _JOIN.split(label)]
    return bool(_LIST.fullmatch(label)) or (len(parts) > 1 and {*parts} <= {*labels})


def _padding(labels: tuple[str, ...]) -> str | None:
    """Return the label by which libraries of deep learning mark what they ignore."""
    for padding in _PADDINGS:
        others = [label for label in labels if label != padding]
        if padding in labels and others and all(map(_BELOW_100.fullmatch, others)):
            return padding
    return None


def ordered_categories(values: Any) -> Any | None:  # noqa: ANN401 (of any library)
    """Return the ordered categories of a column of pandas, polars or Arrow; None without order.

    The categories of a polars `Enum` are in their order; a pandas `Categorical` and a dictionary
    of Arrow say whether theirs are.
    """
    kind = getattr(values, "dtype", getattr(values, "type", None))
    if type(kind).__name__ != "Enum" and getattr(kind, "ordered", False) is not True:
        return None
    names = getattr(kind, "categories", None)
    if names is not None:
        return names
    # The dictionary of an array of Arrow, or that which all of its chunks share.
    chunks = getattr(values, "chunks", [values])
    first = next((chunk.dictionary for chunk in chunks), None)
    return first if all(chunk.dictionary.equals(first) for chunk in chunks) else None


def common_order(orders: Mapping[str, list[LabelT] | None]) -> list[LabelT] | None:
    """Return the order that holds the others; None if no column has one.

    Raises
    ------
    ValueError
        If two columns order their categories differently.
    """
    stated = [order for order in orders.values() if order is not None]
    if not stated:
        return None
    longest = max(stated, key=len)
    if any([label for label in longest if label in order] != order for order in stated):
        raise ValueError(
            f"The ordered categories of {' and '.join(f'`{name}`' for name in orders)} differ; "
            "pass `labels`, all classes in their order"
        )
    return longest


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
    r"n|n_?(?:items|obs)|freq(?:uency)?|cnt|counts?(?:\(\*\))?|count_star\(\)|items|cases|tally",
    re.IGNORECASE,
)
_COLUMNS_OF_LONG_FORM = 3
_NEUTRAL = {"label", "labels", "class", "classes", "category", "y"}
"""What the true class is called beside a prediction."""
BOTH = "Both axes are named as {}: name one true and the other predicted."


def axis_by_names(rows: object, columns: object) -> Axis | None:
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


def long_form(names: Sequence[str], count: str | None = None) -> dict[str, str]:
    """Return the columns `y_true`, `y_pred` and `count` of a table in long form; else none.

    It has three columns. One of them is called as counts are, or is the `count`; the names of the
    others say which of them has the predictions.
    """
    if len(names) != _COLUMNS_OF_LONG_FORM:
        return {}
    counts = [name for name in names if (is_count(name) if count is None else name == count)]
    pair = [name for name in names if name not in counts]
    if (len(counts), len(pair)) != (1, 2):
        return {}
    sides = [_side(name) for name in pair]
    if sides.count(False) != 1:
        return {}
    predicted = sides.index(False)
    true = pair[1 - predicted]
    is_true = sides[1 - predicted] or not _words(true).isdisjoint(_NEUTRAL)
    return {"y_true": true, "y_pred": pair[predicted], "count": counts[0]} if is_true else {}


def _words(name: object) -> set[str]:
    return {word.casefold() for word in _WORD.findall(name)} if isinstance(name, str) else set()


def _side(name: object) -> bool | None:
    """Return True for a name of true classes, False for predictions; None if it says neither."""
    words = _words(name)
    is_true, is_predicted = (any(map(side.fullmatch, words)) for side in (_TRUE, _PREDICTED))
    return is_true if is_true != is_predicted else None
