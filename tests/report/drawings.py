"""What stands in a figure: its elements and texts, or its size in pixels."""

import re
import struct
from itertools import combinations
from math import cos, radians, sin
from typing import Any
from xml.etree import ElementTree as ET

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

SVG = "{http://www.w3.org/2000/svg}"


def drawing(content: bytes) -> ET.Element:
    return ET.fromstring(content)  # noqa: S314 (our own)


def texts(content: bytes) -> list[str]:
    """Return every text as it reads; matplotlib puts what it drew as text into text elements."""
    elements = drawing(content).iter(f"{SVG}text")
    return ["".join(element.itertext()).strip() for element in elements]


def size(content: bytes) -> tuple[int, int]:
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def boxes(content: bytes) -> list[dict[str, Any]]:
    """Return the texts of an SVG of ours with their rectangles, in points, as they are drawn."""
    rectangles = []
    for element in drawing(content).iter(f"{SVG}text"):
        text = "".join(element.itertext()).strip()
        numbers = list(map(float, re.findall(r"-?[\d.]+", element.get("transform", ""))))
        style = element.get("style", "")
        size = re.search(r"([\d.]+)px", style)
        assert size is not None, style
        height = float(size[1])
        place = element.get("transform", "")
        if place.startswith("rotate"):
            turn, x, y = numbers
        else:
            x, y, turn = (
                (*numbers, 0.0)[:3]
                if numbers
                else (_place(element, "x"), _place(element, "y"), 0.0)
            )
        width = _width(text, height)
        start = {"middle": -width / 2, "end": -width}.get(_anchor(style), 0.0)
        edges = [(start + a, b) for a in (0, width) for b in (-0.72 * height, 0.0)]
        angle = radians(turn)
        xs = [x + a * cos(angle) - b * sin(angle) for a, b in edges]
        ys = [y + a * sin(angle) + b * cos(angle) for a, b in edges]
        rect = {"x": min(xs), "y": min(ys), "width": max(xs) - min(xs), "height": max(ys) - min(ys)}
        rectangles.append({"text": text, **rect})
    return rectangles


def _place(element: ET.Element, axis: str) -> float:
    return float(element.get(axis, 0))


def _anchor(style: str) -> str:
    anchor = re.search(r"text-anchor: (\w+)", style)
    return anchor[1] if anchor else "start"


def _width(text: str, height: float) -> float:
    """Measure a text in the font that figures are drawn with."""
    path = TextPath((0, 0), text or " ", size=height, prop=FontProperties(family="DejaVu Sans"))
    return float(path.get_extents().width)


def overlaps(rectangles: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Name the texts whose rectangles, less a point at each side, cover each other."""
    return [
        (box["text"], other["text"])
        for box, other in combinations(rectangles, 2)
        if min(box["x"] + box["width"], other["x"] + other["width"]) - max(box["x"], other["x"]) > 2
        and min(box["y"] + box["height"], other["y"] + other["height"]) - max(box["y"], other["y"])
        > 2
    ]
