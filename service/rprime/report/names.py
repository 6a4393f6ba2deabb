"""Names and other foreign text, made fit to be shown anywhere."""

import re
import unicodedata

from rprime.core.naming import HIDDEN

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


def clipped(text: str, most: int = LONGEST) -> str:
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
