"""Axes: the colours of all figures, and names and numbers beside an axis."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rprime.report.styles import SeriesStyle
from rprime.report.text import bound

if TYPE_CHECKING:
    from matplotlib.axis import Axis

_TOKEN = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}),")
MARKERS = {"circle": "o", "rect": "s", "diamond": "D", "triangle": "^"}
"""Symbols by their names in matplotlib."""
LINE = 0.17
"""Height of a name, in inches."""
_LETTER = 0.082
_TURNED = 30
"""Names that are rather turned than left out."""


@lru_cache(maxsize=1)
def palette() -> dict[str, str]:
    """Read the colours of tokens.css for light surfaces: most figures are printed."""
    tokens = files("rprime.report").joinpath("templates/tokens.css").read_text(encoding="utf-8")
    return dict(_TOKEN.findall(tokens))


def line_style(style: SeriesStyle) -> dict[str, Any]:
    """Return the colour and dashes of a line."""
    return {"color": palette()[style.colour], "linestyle": (0, style.dash) if style.dash else "-"}


def width_of(names: Iterable[str]) -> float:
    """Estimate the width of the longest name, in inches."""
    return _LETTER * max(map(len, names), default=0)


def label_classes(axis: "Axis", names: Sequence[str], room: float, *, turned: bool = False) -> None:
    """Name the places 0, 1, ... of an axis, each in `room` inches; of too many, every nth."""
    step = max(1, -int(-LINE // room))
    places = range(0, len(names), step)
    axis.set_ticks(list(places), [names[p] for p in places], rotation=90 if turned else 0)


def label_steps(axis: "Axis", names: Sequence[str], width: float) -> None:
    """Name the evaluations 0, 1, ... below an axis of a width in inches."""
    room = width / max(len(names), 1)
    wide = width_of(names) + _LETTER
    if room < wide and len(names) <= _TURNED:
        label_classes(axis, names, room, turned=True)
    else:
        # As many as stand beside each other.
        label_classes(axis, names, room * LINE / wide)


def number_values(axis: "Axis", most: int = 6) -> None:
    """Put numbers at round places of an axis, with no more decimals than they need."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: bound(value)))
