"""Texts that all renderings share: names fit to be shown, numbers, reasons, titles of sections."""

import re
import unicodedata

from rprime.core.labels import HIDDEN

REPLACEMENT = "\ufffd"
FIRST_STRONG_ISOLATE, POP_ISOLATE = "\u2068", "\u2069"
JOINER = "\u2060"
"""Has no width and keeps two characters from being read as one sign."""
LONGEST = 1_000
"""Characters of a sentence that is not ours."""
_UNFIT = re.compile(f"[{HIDDEN}\ud800-\udfff\ufffe\uffff]")
_RIGHT_TO_LEFT = {"R", "AL", "AN"}


def shown(text: str) -> str:
    """Replace what cannot be seen: control characters, overrides, surrogates, zero widths.

    Nothing else is escaped: each rendering has its own signs.
    """
    return _UNFIT.sub(REPLACEMENT, text)


def shown_if_any(text: str | None) -> str | None:
    """Make a name fit to be shown; None, for unclassified items or for no class, stays."""
    return None if text is None else shown(text)


def cut_text(text: str, most: int = LONGEST) -> str:
    """Cut a text, and show that it was cut."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def shortened(name: str, most: int) -> str:
    """Cut a name in its middle: names of classes often differ in their last characters."""
    tail = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - tail]}…{name[-tail:]}"


def isolated(text: str) -> str:
    """Keep right-to-left text from reordering what stands beside it."""
    if text.isascii() or not any(unicodedata.bidirectional(c) in _RIGHT_TO_LEFT for c in text):
        return text
    return f"{FIRST_STRONG_ISOLATE}{text}{POP_ISOLATE}"


def address(link: str | None) -> str | None:
    """Return a link that is safe to follow, else None."""
    if link is None or shown(link) != link or re.search(r"[\s\\\"'<>`]", link):
        return None
    return link if re.match(r"https?://[^/]|/(?!/)", link) else None


_WORDS = {
    "no_true_samples": "no item of the class",
    "no_predictions": "the class is never predicted",
    "no_samples": "no items",
    "single_class": "needs two classes",
    "chance_agreement_is_one": "chance agreement is one",
    "non_integer_counts": "no interval: fractional counts",
    "weighted": "no interval: weighted counts",
    "no_interval": "no interval for this index",
    "not_resampled": "no bootstrap interval here",
    "no_scores": "needs scores",
    "not_probabilities": "the scores are not probabilities",
    "no_class_defined": "defined in no class",
    "excluded_classes_differ": "a class is undefined on one side",
    "classes_differ": "the lists of classes differ",
    "no_evidence": "no variance can be estimated",
}


def explained(reason: str) -> str:
    """Say why a value or its interval is not there; nothing where it is."""
    return _WORDS.get(reason, reason.replace("_", " "))


SECTIONS = {
    "gate": "Gate",
    "changes": "What changed",
    "warnings": "Before you trust these numbers",
    "overall": "Overall",
    "slices": "Slices",
    "classes": "Classes",
    "confusion": "Confusion",
    "scores": "Scores",
    "causes": "Where the change comes from",
    "all": "All overall indices",
}
"""Their titles. The reasons of a verdict come first, what everybody can look up comes last."""


PLACES = 4
ABSENT = "\u2013"
MINUS = "\u2212"


def fixed(value: float) -> str:
    """Write a number for machines: fixed decimals, no separator, never a negative zero."""
    text = f"{value:.{PLACES}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def decimal(value: float | None) -> str:
    """Write a value."""
    if value is None:
        return ABSENT
    text = f"{abs(value):,.{PLACES}f}"
    return f"{MINUS}{text}" if value < 0 and text.strip("0.,") else text


def signed(value: float | None) -> str:
    """Write a change: with its sign, unless nothing changed at all."""
    if value is None:
        return ABSENT
    sign = "" if value == 0 else MINUS if value < 0 else "+"
    return f"{sign}{abs(value):,.{PLACES}f}"


def span(low: float | None, high: float | None) -> str:
    """Write an interval; without an upper end it is infinite."""
    if low is None:
        return ABSENT
    return f"[{decimal(low)}, {decimal(high)}]" if high is not None else f"[{decimal(low)}, ∞)"


def count(items: float) -> str:
    """Write a number of items: whole ones without decimals."""
    return f"{items:,.0f}" if float(items).is_integer() else decimal(items)


def percent(share: float) -> str:
    """Write a level of confidence."""
    return f"{100 * share:g} %"


def bound(value: float) -> str:
    """Write the end of an axis or range: no more decimals than it needs."""
    text = f"{abs(value):.{PLACES}f}".rstrip("0").rstrip(".")
    return f"{MINUS}{text}" if value < 0 and text != "0" else text
