"""Sheet: what a figure is drawn on, with its title above and its notes below."""

import re
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

from rprime.report.figures.axes import palette
from rprime.report.text import shortened, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from matplotlib.figure import Figure

ScoreFigure = Literal["roc", "precision_recall", "reliability", "risk_coverage", "scores"]
EvaluationFigure = Literal["confusion", "radar", "per_class", ScoreFigure]
Form = Literal["svg", "png"]
MEDIA_TYPES: dict[Form, str] = {"svg": "image/svg+xml", "png": "image/png"}
PIXELS = 96
"""Of the parameter `width` in an inch, as in CSS."""
MARGIN = 0.16
GAP = 0.08
"""Between the head and the plot, in inches."""
LONGEST_NAME = 24
"""Characters of a class name that stand beside a plot."""
FAMILY = "DejaVu Sans"
"""The font that comes with matplotlib."""

_BOXES = ("Last Resort", "LastResort", "Adobe Blank")
"""How the names of families begin that have a box, or nothing, for every letter."""
_MISSING = re.compile(r"Glyph (\d+) .*missing from font")
_NORMAL = 400

_NO_GLYPHS = "The fonts installed here lack letters of some names: they are boxes. An SVG has them."

# The settings of matplotlib are those of the whole process.
_DRAWING = Lock()


class NoFiguresError(Exception):
    """Matplotlib is not installed."""

    def __init__(self) -> None:
        super().__init__("Figures need the extra `figures`: pip install 'rprime[figures]'.")


class NothingToDrawError(ValueError):
    """The evaluation has nothing that the figure shows."""


class TooMuchToDrawError(ValueError):
    """More was asked for than a figure can show."""


def form_of(path: Path) -> Form:
    """Return the form of an image by its file name; raises ValueError for any other."""
    for form in MEDIA_TYPES:
        if path.suffix.lower() == f".{form}":
            return form
    raise ValueError(f"{path}: a figure is .svg or .png")


@dataclass(frozen=True, slots=True)
class Canvas:
    """The form and size of a figure. The same picture always gives the same bytes."""

    form: Form = "svg"
    width: int = 800
    """In pixels of CSS, 96 to an inch."""
    scale: float = 2.0
    """Pixels of a PNG for each of these."""

    @property
    def inches(self) -> float:
        """The width."""
        return self.width / PIXELS


@dataclass(frozen=True, eq=False)
class Picture:
    """What a figure shows, of what, and, in notes, what has to be known to read it.

    `fill` draws the plot alone, which has a height in inches.
    """

    title: str
    about: str
    height: float
    fill: "Callable[[Figure], None]"
    notes: tuple[str, ...] = ()


def draw(picture: Picture, canvas: Canvas) -> bytes:
    """Draw a picture; raises NoFiguresError if matplotlib is not installed."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise NoFiguresError from None
    style: Any = _style()
    with _DRAWING, mpl.rc_context(style):
        image, codes = _drawn(picture, canvas)
        if codes and (others := _families_with(codes)):
            mpl.rcParams["font.family"] = [FAMILY, *others, "sans-serif"]
            image, codes = _drawn(picture, canvas)
        # In an SVG the reader's fonts have them.
        if codes and canvas.form == "png":
            image, _ = _drawn(replace(picture, notes=(*picture.notes, _NO_GLYPHS)), canvas)
    return image


def library() -> str:
    """Return the version of matplotlib, which has a part in every byte; empty without it."""
    try:
        return version("matplotlib")
    except PackageNotFoundError:
        return ""


def named(label: str, most: int = LONGEST_NAME) -> str:
    """Return the name of a class as a plot shows it."""
    return shortened(shown(label), most)


_COLOURED = {
    "ink": ("text.color", "axes.titlecolor", "xtick.labelcolor", "ytick.labelcolor"),
    "ink-soft": ("axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"),
    "surface": ("axes.facecolor", "figure.facecolor"),
    "line": ("grid.color",),
}
"""Settings of matplotlib by their colour, a name of tokens.css."""


def _style() -> dict[str, Any]:
    coloured = ((name, palette()[role]) for role, names in _COLOURED.items() for name in names)
    return {
        "font.family": "sans-serif",
        "font.sans-serif": [FAMILY, "Verdana", "Helvetica", "Arial"],
        "font.size": 9.0,
        "axes.titlesize": 10.0,
        "axes.titlelocation": "left",
        "axes.labelsize": 9.0,
        **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 8.5),
        **dict.fromkeys(("legend.frameon", "axes.spines.top", "axes.spines.right"), False),
        "axes.unicode_minus": True,
        # Texts stay texts: to be found, read aloud and set in the reader's font.
        "svg.fonttype": "none",
        # Names of parts of an SVG are otherwise drawn at random.
        "svg.hashsalt": "rprime",
        # A class may be called $x$.
        "text.parse_math": False,
        "axes.axisbelow": True,
        "grid.linewidth": 0.8,
        **dict(coloured),
    }


@dataclass(frozen=True, slots=True)
class _Font:
    """Lines of text: their size in points, their height and mean letter in inches."""

    size: float
    weight: str
    colour: str
    height: float
    letter: float

    def wrapped(self, text: str, width: float) -> list[tuple[str, "_Font"]]:
        """Break a text, each line with its font."""
        return [(line, self) for line in wrap(text, int(width / self.letter))]


def _drawn(picture: Picture, canvas: Canvas) -> tuple[bytes, frozenset[int]]:
    """Draw a picture, and return the code points that its fonts lack."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", "Glyph .* missing from font", UserWarning)
        image = _saved(_filled(picture, canvas), picture, canvas)
    return image, _missing(caught)


def _filled(picture: Picture, canvas: Canvas) -> "Figure":
    """Draw the plot between its title and its notes."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    colours, width = palette(), canvas.inches
    room = width - 2 * MARGIN
    head = [
        *_Font(12, "bold", colours["ink"], 0.27, 0.112).wrapped(picture.title, room),
        *_Font(9, "normal", colours["ink-soft"], 0.21, 0.067).wrapped(picture.about, room),
    ]
    small = _Font(8, "normal", colours["ink-soft"], 0.17, 0.063)
    foot = [line for note in picture.notes for line in small.wrapped(note, room)]
    above, below = (MARGIN + sum(font.height for _, font in lines) for lines in (head, foot))
    height = above + GAP + picture.height + below
    figure = Figure((width, height))
    _write(figure, head, height - MARGIN)
    _write(figure, foot, below)
    rect = (0.0, below / height, 1.0, picture.height / height)
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.06, rect=rect))
    picture.fill(figure)
    return figure


def _write(figure: "Figure", lines: list[tuple[str, _Font]], top: float) -> None:
    """Write lines from a height on downwards, in inches."""
    width, height = figure.get_size_inches()
    for text, font in lines:
        top -= font.height
        style: dict[str, Any] = {"size": font.size, "weight": font.weight, "color": font.colour}
        figure.text(MARGIN / width, top / height, text, va="bottom", **style)


def _saved(figure: "Figure", picture: Picture, canvas: Canvas) -> bytes:
    image = BytesIO()
    if canvas.form == "png":
        dpi = PIXELS * canvas.scale
        figure.savefig(image, format="png", dpi=dpi, metadata={"Title": picture.title})
    else:
        title = ", ".join(filter(None, (picture.title, picture.about)))
        figure.savefig(image, format="svg", metadata={"Title": title, "Date": None})
    return image.getvalue()


def _missing(caught: "Iterable[warnings.WarningMessage]") -> frozenset[int]:
    """Return the code points that matplotlib warned of, as no font of the figure has them."""
    matches = (_MISSING.match(str(warning.message)) for warning in caught)
    return frozenset(int(match[1]) for match in matches if match)


@lru_cache(maxsize=256)
def _families_with(codes: frozenset[int]) -> tuple[str, ...]:
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

    fonts = [
        font
        for font in fontManager.ttflist
        if (font.weight, font.style) == (_NORMAL, "normal") and not font.name.startswith(_BOXES)
    ]
    return sorted(fonts, key=lambda font: ("Mono" in font.name, "Sans" not in font.name, font.name))
