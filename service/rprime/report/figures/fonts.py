"""Fonts: which of those installed here have the letters that matplotlib's own font lacks."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from warnings import WarningMessage

FAMILY = "DejaVu Sans"
"""The font that comes with matplotlib."""

_BOXES = ("Last Resort", "LastResort", "Adobe Blank")
"""How the names of families begin that have a box, or nothing, for every letter."""
_MISSING = re.compile(r"Glyph (\d+) .*missing from font")
_NORMAL = 400


def missing(caught: "Iterable[WarningMessage]") -> frozenset[int]:
    """Return the code points that matplotlib warned of, as no font of the figure has them."""
    found = (_MISSING.match(str(warning.message)) for warning in caught)
    return frozenset(int(match[1]) for match in found if match)


@lru_cache(maxsize=256)
def families_with(codes: frozenset[int]) -> tuple[str, ...]:
    """Return the installed families that together have the given code points, as far as any has.

    Matplotlib looks for a letter in each family that a figure names, and opens all of them: so a
    figure names those that it needs.
    """
    from matplotlib.font_manager import get_font

    chosen, lacking = [], set(codes)
    for entry in _installed():
        font = get_font(entry.fname)
        if had := {code for code in lacking if font.get_char_index(code)}:
            chosen.append(entry.name)
            lacking -= had
        if not lacking:
            break
    return tuple(chosen)


def _installed() -> list[Any]:
    """Return the upright fonts of normal weight, proportional sans-serif ones first."""
    from matplotlib.font_manager import fontManager

    return sorted(
        (
            font
            for font in fontManager.ttflist
            if (font.weight, font.style) == (_NORMAL, "normal") and not font.name.startswith(_BOXES)
        ),
        key=lambda font: ("Mono" in font.name, "Sans" not in font.name, font.name),
    )
