"""Drawing: shapes in pixels of CSS, whose colours are names of tokens.css, and the SVG of them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from importlib.resources import files
from itertools import chain
from typing import Literal

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]
Lines = Sequence[Sequence[Point]]

AXIS, NOTE, TEXT, HEADING = 12.0, 13.0, 15.0, 18.0
"""Sizes of type: at an axis, of a note, of a text, of a title."""
FAMILY = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
LINE_HEIGHT = 1.35
_TOKEN = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}),")
_WIDTHS = (
    "32 40 46 84 64 95 78 27 39 39 50 84 32 36 32 34 64 64 64 64 64 64 64 64 64 64 34 34 84 "
    "84 84 53 100 68 69 70 77 63 58 77 75 29 29 66 56 86 75 79 60 79 69 63 61 73 68 99 69 61 "
    "69 39 34 39 84 50 50 61 63 55 63 62 35 63 63 28 28 58 28 97 63 61 63 63 41 52 39 63 59 "
    "82 59 59 52 64 34 64 84 "
)
"""Of the letters of ASCII in DejaVu Sans, in parts of a hundred of its size; most fonts are
narrower."""
_LETTERS = dict(zip(map(chr, range(32, 127)), map(int, _WIDTHS.split()), strict=True))
_ROUNDING = 1e-6
_SQUARE_FROM = 0x2E80
"""Characters of Chinese, Japanese and Korean are as wide as they are high."""
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def width_of(text: str, size: float = AXIS) -> float:
    """Estimate the width of a text from above."""
    hundredths = (_LETTERS.get(c) or (100 if ord(c) >= _SQUARE_FROM else 68) for c in text)
    return sum(hundredths) * size / 100


def widest(texts: Iterable[str], size: float = AXIS) -> float:
    """Estimate the width of the longest text."""
    return max((width_of(text, size) for text in texts), default=0.0)


def fitted(text: str, room: float, size: float = AXIS) -> str:
    """Cut a text in its middle until it fits: names often differ in their last characters."""
    if width_of(text, size) <= room + _ROUNDING:
        return text
    for kept in range(len(text) - 1, 1, -1):
        tail = (kept - 1) // 2
        cut = f"{text[: kept - 1 - tail]}…{text[len(text) - tail :] if tail else ''}"
        if width_of(cut, size) <= room:
            return cut
    return "…"


@lru_cache(maxsize=1)
def palette() -> dict[str, str]:
    """Read the colours of tokens.css for light surfaces: most files are printed."""
    tokens = files("rprime.report").joinpath("templates/tokens.css").read_text(encoding="utf-8")
    return dict(_TOKEN.findall(tokens))


def tinted(role: str, share: float) -> str:
    """Name a colour mixed with the surface."""
    return f"{role}*{share:.3g}"


def channels(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue of a colour by its name, on a light surface."""
    role, _, share = colour.partition("*")
    hue, surface = (_hex(palette()[name]) for name in (role, "surface"))
    part = float(share or 1)
    red, green, blue = (round(s + part * (h - s)) for h, s in zip(hue, surface, strict=True))
    return red, green, blue


def _hex(text: str) -> tuple[int, ...]:
    return tuple(int(text[i : i + 2], 16) for i in (1, 3, 5))


@dataclass(frozen=True, slots=True)
class Paint:
    """How a shape is painted: its colours are names, or none."""

    fill: str = ""
    stroke: str = ""
    width: float = 1.0
    dash: tuple[float, ...] = ()
    """Lengths of dashes and gaps in widths of the line."""
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Path:
    """Lines through points, each closed or open."""

    lines: Lines
    paint: Paint
    closed: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class Marks:
    """The same symbol at several points: circle, rect, diamond or triangle."""

    points: Sequence[Point]
    paint: Paint
    symbol: str = "circle"
    radius: float = 4.0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text; `turn` in degrees, clockwise around its point."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    size: float = AXIS
    colour: str = "ink"
    bold: bool = False
    turn: float = 0.0

    @property
    def width(self) -> float:
        """Estimate the width."""
        return width_of(self.text, self.size)


@dataclass(frozen=True, slots=True)
class Group:
    """Shapes that belong together: what a script and a reader of the SVG take for one."""

    shapes: "Sequence[Shape]"
    name: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    """Attributes for the script of the pages, without the `data-` before their names."""
    tip: str = ""
    """What it says when it is pointed at."""
    link: str = ""
    """Where it leads to, on a page."""


Shape = Path | Marks | Text | Group


@dataclass(frozen=True, slots=True)
class Drawing:
    """Shapes on a surface of some size, with a title for those who do not see it."""

    width: float
    height: float
    shapes: Sequence[Shape]
    title: str = ""
    data: Mapping[str, str] = field(default_factory=dict)


def rectangle(x: float, y: float, width: float, height: float) -> list[Point]:
    """Return the corners of a rectangle."""
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]


def moved(shapes: Iterable[Shape], across: float, down: float) -> list[Shape]:
    """Move shapes."""
    return [_moved(shape, across, down) for shape in shapes]


def _moved(shape: Shape, across: float, down: float) -> Shape:
    if isinstance(shape, Group):
        parts = moved(shape.shapes, across, down)
        return Group(parts, shape.name, shape.data, shape.tip, shape.link)
    if isinstance(shape, Text):
        x, y = shape.x + across, shape.y + down
        look = (shape.anchor, shape.size, shape.colour, shape.bold, shape.turn)
        return Text(x, y, shape.text, *look)
    if isinstance(shape, Marks):
        points = [(x + across, y + down) for x, y in shape.points]
        return Marks(points, shape.paint, shape.symbol, shape.radius, shape.name)
    lines = [[(x + across, y + down) for x, y in line] for line in shape.lines]
    return Path(lines, shape.paint, shape.closed, shape.name)


def flat(shapes: Iterable[Shape]) -> Iterable[Path | Marks | Text]:
    """Return all shapes without their groups."""
    return chain.from_iterable(
        flat(shape.shapes) if isinstance(shape, Group) else (shape,) for shape in shapes
    )


SYMBOLS: dict[str, list[Point]] = {
    "rect": [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
    "diamond": [(0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)],
    "triangle": [(0, -1.15), (1.1, 0.85), (-1.1, 0.85)],
}
"""Corners of the symbols that are no circles, in parts of the radius."""


def write_svg(drawing: Drawing, *, themed: bool = False, css: str = "") -> str:
    """Write a drawing as SVG.

    Parameters
    ----------
    themed
        Whether colours follow the theme of the page that it stands in, and links lead somewhere;
        else it is a file by itself.
    css
        The class of the element on the page.
    """
    width, height = _number(drawing.width), _number(drawing.height)
    title = f"<title>{_escaped(drawing.title)}</title>"
    body = "".join(_written(shape, themed=themed) for shape in drawing.shapes)
    data = _data(drawing.data) if themed else ""
    if themed:
        # What leads somewhere is no image, whose parts nobody could reach.
        role = "group" if any(map(_leads, drawing.shapes)) else "img"
        head = f'class="{css or "figure"}" viewBox="0 0 {width} {height}" role="{role}"'
        label = f' aria-label="{_escaped(drawing.title)}"'
        return f'<svg {head} width="{width}" height="{height}"{label}{data}>{body}</svg>'
    head = f'xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
    font = f'font-family="{FAMILY}" font-size="{_number(AXIS)}"'
    surface = f'<rect width="{width}" height="{height}" fill="{palette()["surface"]}"/>'
    box = f'viewBox="0 0 {width} {height}" role="img"'
    return f"<svg {head} {box} {font}>{title}{surface}{body}</svg>\n"


def _leads(shape: Shape) -> bool:
    return isinstance(shape, Group) and (bool(shape.link) or any(map(_leads, shape.shapes)))


def _written(shape: Shape, *, themed: bool) -> str:
    if isinstance(shape, Group):
        return _group(shape, themed=themed)
    if isinstance(shape, Text):
        return _text(shape, themed=themed)
    name = f' data-name="{shape.name}"' if shape.name else ""
    path = _symbols(shape) if isinstance(shape, Marks) else _lines(shape)
    return f'<path{name} d="{path}"{_painted(shape.paint, themed=themed)}/>' if path else ""


def _group(group: Group, *, themed: bool) -> str:
    body = "".join(_written(shape, themed=themed) for shape in group.shapes)
    name = f' data-name="{group.name}"' if group.name else ""
    tip = f"<title>{_escaped(group.tip)}</title>" if group.tip else ""
    data = _data(group.data) if themed else ""
    if group.link and themed:
        return f'<a{name} href="{_escaped(group.link)}"{data}>{tip}{body}</a>'
    return f"<g{name}{data}>{tip}{body}</g>" if name or data or tip else body


def _data(data: Mapping[str, str]) -> str:
    return "".join(f' data-{key}="{_escaped(value)}"' for key, value in data.items())


def _text(text: Text, *, themed: bool) -> str:
    x, y = _number(text.x), _number(text.y)
    attributes = f'x="{x}" y="{y}" fill="{_colour(text.colour, themed=themed)}"'
    if text.anchor != "start":
        attributes += f' text-anchor="{text.anchor}"'
    if text.size != AXIS:
        attributes += f' font-size="{_number(text.size)}"'
    if text.bold:
        attributes += ' font-weight="600"'
    if text.turn:
        attributes += f' transform="rotate({_number(text.turn)} {x} {y})"'
    return f"<text {attributes}>{_escaped(text.text)}</text>"


def _painted(paint: Paint, *, themed: bool) -> str:
    fill = _colour(paint.fill, themed=themed) if paint.fill else "none"
    attributes = f' fill="{fill}"'
    if paint.stroke:
        attributes += f' stroke="{_colour(paint.stroke, themed=themed)}"'
        attributes += f' stroke-width="{_number(paint.width)}" stroke-linejoin="round"'
    if paint.dash:
        lengths = " ".join(_number(part * paint.width) for part in paint.dash)
        attributes += f' stroke-dasharray="{lengths}"'
    if paint.opacity != 1:
        attributes += f' opacity="{paint.opacity:g}"'
    return attributes


def _colour(colour: str, *, themed: bool) -> str:
    if not themed:
        return "#{:02x}{:02x}{:02x}".format(*channels(colour))
    role, _, share = colour.partition("*")
    if not share:
        return f"var(--{role})"
    return f"color-mix(in srgb,var(--{role}) {100 * float(share):.3g}%,var(--surface))"


def _lines(path: Path) -> str:
    end = "z" if path.closed else ""
    return "".join(_box(line) or f"M{_points(line)}{end}" for line in path.lines if line)


_CORNERS = 4


def _box(line: Sequence[Point]) -> str:
    """Write a rectangle in short; nothing of other lines."""
    if len(line) != _CORNERS or line[0][1] != line[1][1] or line[1][0] != line[2][0]:
        return ""
    (x, y), (right, _), (_, bottom), (left, low) = line
    if (left, low) != (x, bottom):
        return ""
    across = _number(right - x)
    return f"M{_number(x)} {_number(y)}h{across}v{_number(bottom - y)}h-{across}z"


def _points(points: Iterable[Point]) -> str:
    return "L".join(f"{_number(x)} {_number(y)}" for x, y in points)


def _symbols(marks: Marks) -> str:
    radius = marks.radius
    if marks.symbol == "circle":
        r, across = _number(radius), _number(2 * radius)
        arc = f"a{r} {r} 0 1 0 {across} 0a{r} {r} 0 1 0 -{across} 0z"
        return "".join(f"M{_number(x - radius)} {_number(y)}{arc}" for x, y in marks.points)
    corners = SYMBOLS[marks.symbol]
    return "".join(
        f"M{_points((x + radius * a, y + radius * b) for a, b in corners)}z"
        for x, y in marks.points
    )


def _number(value: float) -> str:
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")


def _escaped(text: str) -> str:
    return escape(_CONTROL.sub("\ufffd", text))
