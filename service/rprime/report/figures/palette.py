"""Palette: the colours of tokens.css, so that figures and pages have one look."""

import re
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

_TOKEN = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}),")
_DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))


class Palette(NamedTuple):
    """Colours by what they are for, `series` in the order in which they are taken."""

    ink: str
    soft: str
    line: str
    track: str
    surface: str
    right: str
    wrong: str
    bad: str
    series: tuple[str, ...]

    def look(self, number: int) -> dict[str, Any]:
        """Return the colour and dashes of a line: two that share a colour differ in dashes."""
        colours = len(self.series)
        return {
            "color": self.series[number % colours],
            "linestyle": _DASHES[(number + 2 * (number // colours)) % len(_DASHES)],
        }


@lru_cache(maxsize=1)
def palette() -> Palette:
    """Read the colours for light surfaces: a figure is printed more often than not."""
    canvas = files("rprime.report").joinpath("templates/tokens.css").read_text(encoding="utf-8")
    tokens = dict(_TOKEN.findall(canvas))
    return Palette(
        ink=tokens["ink"],
        soft=tokens["ink-soft"],
        line=tokens["line"],
        track=tokens["track"],
        surface=tokens["surface"],
        right=tokens["right"],
        wrong=tokens["wrong"],
        bad=tokens["bad"],
        series=tuple(tokens[name] for name in sorted(tokens) if name.startswith("series-")),
    )
