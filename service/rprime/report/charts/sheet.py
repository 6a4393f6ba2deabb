"""Sheet: a chart as a file, with its title above and its notes below, as SVG, PNG or PDF."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Literal

from rprime.report.charts.drawing import (
    AXIS,
    HEADING,
    NOTE,
    Drawing,
    Shape,
    Text,
    moved,
    width_of,
    write_svg,
)
from rprime.report.charts.fonts import lacking, write_png
from rprime.report.charts.pdf import write_pdf

ScoreFigure = Literal["roc", "precision_recall", "reliability", "risk_coverage", "scores"]
EvaluationFigure = Literal["confusion", "radar", "per_class", "card", ScoreFigure]
Form = Literal["svg", "png", "pdf"]
MEDIA_TYPES: dict[Form, str] = {
    "svg": "image/svg+xml",
    "png": "image/png",
    "pdf": "application/pdf",
}
MARGIN = 16.0
_NO_GLYPHS = "The fonts installed here lack letters of some names: they are boxes. An SVG has them."


class NothingToDrawError(ValueError):
    """The evaluation has nothing that the figure shows."""


class TooMuchToDrawError(ValueError):
    """More was asked for than a figure can show."""


def library() -> str:
    """Return the version of what paints PNG, which has a part in every byte."""
    from importlib.metadata import version  # noqa: PLC0415 (slow, and for PNG alone)

    return version("resvg-py")


def form_of(path: FilePath) -> Form:
    """Return the form of an image by its file name; raises ValueError for any other."""
    for form in MEDIA_TYPES:
        if path.suffix.lower() == f".{form}":
            return form
    raise ValueError(f"{path}: a figure is .svg, .png or .pdf")


@dataclass(frozen=True, slots=True)
class Canvas:
    """The form and size of a figure. The same picture always gives the same bytes."""

    form: Form = "svg"
    width: int = 800
    """In pixels of CSS, 96 to an inch."""
    scale: float = 2.0
    """Pixels of a PNG for each of these."""

    @property
    def room(self) -> float:
        """The width of what stands between the margins."""
        return self.width - 2 * MARGIN


@dataclass(frozen=True, eq=False)
class Picture:
    """What a figure shows, of what, and, in notes, what has to be known to read it.

    `plot` draws the chart alone in a width.
    """

    title: str
    about: str
    plot: Callable[[float], Drawing]
    notes: tuple[str, ...] = ()


def draw(picture: Picture, canvas: Canvas) -> bytes:
    """Draw a picture into a file."""
    drawing = _laid_out(picture, canvas, picture.notes)
    if canvas.form == "svg":
        return write_svg(drawing).encode()
    # In an SVG the reader's fonts have them.
    if lacking(drawing):
        drawing = _laid_out(picture, canvas, (*picture.notes, _NO_GLYPHS))
    if canvas.form == "pdf":
        return write_pdf(drawing)
    return write_png(drawing, canvas.scale)


def _laid_out(picture: Picture, canvas: Canvas, notes: tuple[str, ...]) -> Drawing:
    """Put the chart between its title and its notes."""
    shapes: list[Shape] = []
    top = _written(shapes, picture.title, MARGIN, canvas.room, (HEADING, "ink"))
    top = _written(shapes, picture.about, top, canvas.room, (NOTE, "ink-soft")) + 12
    chart = picture.plot(canvas.room)
    shapes += moved(chart.shapes, MARGIN, top)
    top += chart.height + (8 if notes else 0)
    for note in notes:
        top = _written(shapes, note, top, canvas.room, (AXIS, "ink-soft"))
    title = ", ".join(filter(None, (picture.title, picture.about)))
    return Drawing(canvas.width, top + MARGIN, shapes, title)


def _written(
    shapes: list[Shape], text: str, top: float, room: float, look: tuple[float, str]
) -> float:
    """Write a text in lines from a height on; return where it ends."""
    size, colour = look
    for line in wrapped(text, room, size):
        top += size * 1.4
        bold = size == HEADING
        shapes.append(Text(MARGIN, top - size * 0.35, line, "start", size, colour, bold))
    return top


def wrapped(text: str, room: float, size: float) -> list[str]:
    """Break a text into lines."""
    lines: list[str] = []
    # What a no-break space holds together stays together.
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
