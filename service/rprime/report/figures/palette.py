"""Palette: the colours of tokens.css, so that figures and pages have the same."""

import re
from functools import lru_cache
from importlib.resources import files
from typing import Any

from rprime.report.styles import SeriesStyle

_TOKEN = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}),")
MARKERS = {"circle": "o", "rect": "s", "diamond": "D", "triangle": "^"}
"""Symbols by their names in matplotlib."""


@lru_cache(maxsize=1)
def palette() -> dict[str, str]:
    """Read the colours for light surfaces: a figure is printed more often than not."""
    tokens = files("rprime.report").joinpath("templates/tokens.css").read_text(encoding="utf-8")
    return dict(_TOKEN.findall(tokens))


def line_style(style: SeriesStyle) -> dict[str, Any]:
    """Return the colour and dashes of a line."""
    return {"color": palette()[style.colour], "linestyle": (0, style.dash) if style.dash else "-"}
