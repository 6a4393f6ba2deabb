"""What stands in a figure: its elements and texts, or its size in pixels."""

import struct
from xml.etree import ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"


def drawing(content: bytes) -> ET.Element:
    return ET.fromstring(content)  # noqa: S314 (our own)


def texts(content: bytes) -> list[str]:
    """Return every text as it reads; matplotlib puts what it drew as text into text elements."""
    found = drawing(content).iter(f"{SVG}text")
    return ["".join(element.itertext()).strip() for element in found]


def size(content: bytes) -> tuple[int, int]:
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    return width, height
