"""What stands in a figure: its shapes and texts, or its size in pixels."""

import re
import struct
from functools import cache
from itertools import combinations
from math import cos, radians, sin
from typing import Any
from xml.etree import ElementTree as ET

from rprime.report.charts.fonts import Font, bundled

SVG = "{http://www.w3.org/2000/svg}"


def drawing(content: bytes) -> ET.Element:
    return ET.fromstring(content)  # noqa: S314 (our own)


def texts(content: bytes) -> list[str]:
    """Return every text as it reads."""
    elements = drawing(content).iter(f"{SVG}text")
    return ["".join(element.itertext()).strip() for element in elements]


def size(content: bytes) -> tuple[int, int]:
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def paths(content: bytes, name: str) -> list[ET.Element]:
    """Return the paths of a name."""
    return [p for p in drawing(content).iter(f"{SVG}path") if p.get("data-name") == name]


def starts(content: bytes, name: str) -> list[tuple[float, float]]:
    """Return where each line or mark of a name begins."""
    data = "".join(path.get("d", "") for path in paths(content, name))
    return [(float(x), float(y)) for x, y in re.findall(r"M(-?[\d.]+) (-?[\d.]+)", data)]


def marks(content: bytes, name: str) -> int:
    """Count the lines, cells or marks of a name."""
    return len(starts(content, name))


def boxes(content: bytes) -> list[dict[str, Any]]:
    """Return the texts of an SVG of ours with their rectangles, as they are drawn."""
    rectangles = []
    for element in drawing(content).iter(f"{SVG}text"):
        text = "".join(element.itertext()).strip()
        x, y = float(element.get("x", 0)), float(element.get("y", 0))
        height = float(element.get("font-size", 12))
        turn = re.search(r"rotate\((-?[\d.]+)", element.get("transform", ""))
        width = _width(text, height)
        anchor = element.get("text-anchor", "start")
        start = {"middle": -width / 2, "end": -width}.get(anchor, 0.0)
        edges = [(start + a, b) for a in (0, width) for b in (-0.72 * height, 0.0)]
        angle = radians(float(turn[1]) if turn else 0.0)
        xs = [x + a * cos(angle) - b * sin(angle) for a, b in edges]
        ys = [y + a * sin(angle) + b * cos(angle) for a, b in edges]
        rect = {"x": min(xs), "y": min(ys), "width": max(xs) - min(xs), "height": max(ys) - min(ys)}
        rectangles.append({"text": text, **rect})
    return rectangles


@cache
def _glyphs() -> dict[int, int]:
    return Font.read(bundled()[0]).glyphs


def _width(text: str, height: float) -> float:
    """Measure a text in the font of the package."""
    font = Font.read(bundled()[0])
    units = font.numbers("head", 18, "H")[0]
    advances = (font.numbers("hmtx", 4 * _glyphs().get(ord(c), 0), "H")[0] for c in text)
    return sum(advances) * height / units


def overlaps(rectangles: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Name the texts whose rectangles, less a pixel at each side, cover each other."""
    return [
        (box["text"], other["text"])
        for box, other in combinations(rectangles, 2)
        if min(box["x"] + box["width"], other["x"] + other["width"]) - max(box["x"], other["x"]) > 2
        and min(box["y"] + box["height"], other["y"] + other["height"]) - max(box["y"], other["y"])
        > 2
    ]
