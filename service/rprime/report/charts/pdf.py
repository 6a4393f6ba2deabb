"""PDF: a drawing as a page of vectors, its texts as texts, with the fonts that they need."""

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import cos, radians, sin
from pathlib import Path as FilePath

from rprime.report.charts.drawing import (
    SYMBOLS,
    Drawing,
    Marks,
    Paint,
    Path,
    Point,
    Text,
    channels,
    flat,
    rectangle,
)
from rprime.report.charts.fonts import Font, bundled, code_points, fonts_with, letters

POINT = 0.75
"""Points of PDF in a pixel of CSS."""
_ROUND = 0.5523
"""How far the handles of a quarter of a circle reach, in parts of its radius."""
_UNITS = 1000
_TRUE_TYPE = b"\x00\x01\x00\x00"
_NEEDED = {"cvt ", "fpgm", "glyf", "head", "hhea", "hmtx", "loca", "maxp", "prep"}
"""Tables of a font in a PDF, which names glyphs by their numbers."""
_SCALES = ((0x8, 2), (0x40, 4), (0x80, 8))
_MORE = 0x20
"""Flags of a part of a glyph: the bytes of its scale, and whether another one follows."""


@dataclass(eq=False)
class _Embedded:
    """A font of the page: the glyphs that texts use, with the characters that they stand for."""

    name: str
    path: FilePath
    font: Font
    glyphs: dict[int, int]
    used: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, path: FilePath) -> "_Embedded":
        """Read a font file."""
        font = Font.read(path)
        return cls(name, path, font, font.glyphs)

    @property
    def scale(self) -> float:
        """Thousandths of the size in a unit of the font."""
        return _UNITS / self.font.numbers("head", 18, "H")[0]

    def advance(self, glyph: int) -> float:
        """Return the width of a glyph, in thousandths of the size."""
        (number,) = self.font.numbers("hhea", 34, "H")
        place = 4 * min(glyph, number - 1)
        return self.font.numbers("hmtx", place, "H")[0] * self.scale

    @property
    def subset(self) -> bytes:
        """The file with the outlines of the glyphs that are used, and without what a page lacks."""
        offsets = self._offsets()
        outlines, places = bytearray(), list[int]()
        start = self.font.tables["glyf"][0]
        kept = self._with_parts(offsets)
        for glyph in range(len(offsets) - 1):
            places.append(len(outlines))
            if glyph in kept:
                outlines += self.font.content[start + offsets[glyph] : start + offsets[glyph + 1]]
                outlines += bytes(-len(outlines) % 4)
        places.append(len(outlines))
        tables = {
            tag: self.font.content[offset : offset + length]
            for tag, (offset, length) in self.font.tables.items()
            if tag in _NEEDED
        }
        head = bytearray(tables["head"])
        struct.pack_into(">h", head, 50, 1)
        loca = struct.pack(f">{len(places)}I", *places)
        return _packed(tables | {"glyf": bytes(outlines), "loca": loca, "head": bytes(head)})

    def _offsets(self) -> list[int]:
        """Return where the outline of each glyph begins, and where the last one ends."""
        (long,) = self.font.numbers("head", 50, "h")
        number = self.font.tables["loca"][1] // (4 if long else 2)
        offsets = self.font.numbers("loca", 0, f"{number}{'I' if long else 'H'}")
        return [offset if long else 2 * offset for offset in offsets]

    def _with_parts(self, offsets: list[int]) -> set[int]:
        """Return the glyphs that are used, and those that they are put together from."""
        kept, waiting = {0}, list(self.used)
        while waiting:
            glyph = waiting.pop()
            if glyph in kept:
                continue
            kept.add(glyph)
            if offsets[glyph + 1] > offsets[glyph]:
                waiting += self._parts(offsets[glyph])
        return kept

    def _parts(self, place: int) -> list[int]:
        if self.font.numbers("glyf", place, "h")[0] >= 0:
            return []
        parts, place, more = list[int](), place + 10, True
        while more:
            flags, glyph = self.font.numbers("glyf", place, "HH")
            parts.append(glyph)
            scale = next((size for bit, size in _SCALES if flags & bit), 0)
            place += 4 + (4 if flags & 1 else 2) + scale
            more = bool(flags & _MORE)
        return parts

    def encoded(self, text: str) -> tuple[str, float]:
        """Return the glyphs of a text as hexadecimal numbers, and their width."""
        numbers = [self.glyphs.get(ord(letter), 0) for letter in text]
        self.used |= dict(zip(numbers, map(ord, text), strict=True))
        return "".join(f"{n:04X}" for n in numbers), sum(map(self.advance, numbers))


def write_pdf(drawing: Drawing) -> bytes:
    """Write a drawing as PDF of one page."""
    fonts = [_Embedded.of(f"F{i}", path) for i, path in enumerate(bundled())]
    others = [path for path in fonts_with(letters(drawing))[0] if _embeddable(path)]
    fonts += [_Embedded.of(f"F{i}", path) for i, path in enumerate(others, 2)]
    surface = Path([rectangle(0, 0, drawing.width, drawing.height)], Paint("surface"), closed=True)
    content = [f"{POINT} 0 0 {-POINT} 0 {drawing.height * POINT:g} cm"]
    states: dict[float, str] = {}
    for shape in flat([surface, *drawing.shapes]):
        if isinstance(shape, Text):
            content += _texts(shape, fonts)
        else:
            content += _painted(shape, states)
    size = (drawing.width * POINT, drawing.height * POINT)
    return _document("\n".join(content), size, fonts, states, drawing.title)


def _packed(tables: dict[str, bytes]) -> bytes:
    """Put tables into a font file; nobody checks its sums."""
    place = 12 + 16 * len(tables)
    head = struct.pack(">4sHHHH", _TRUE_TYPE, len(tables), 0, 0, 0)
    body = bytearray()
    for tag, content in sorted(tables.items()):
        head += struct.pack(">4sIII", tag.encode("latin-1"), 0, place + len(body), len(content))
        body += content + bytes(-len(content) % 4)
    return head + bytes(body)


def _embeddable(path: FilePath) -> bool:
    with path.open("rb") as file:
        return file.read(4) == _TRUE_TYPE


def _painted(shape: Path | Marks, states: dict[float, str]) -> list[str]:
    paint = shape.paint
    state = states.setdefault(paint.opacity, f"G{len(states)}")
    lines = ["q", f"/{state} gs", "1 j"]
    if paint.fill:
        lines.append(f"{_rgb(paint.fill)} rg")
    if paint.stroke:
        dash = " ".join(f"{part * paint.width:g}" for part in paint.dash)
        lines.append(f"{_rgb(paint.stroke)} RG {paint.width:g} w [{dash}] 0 d")
    lines += _symbols(shape) if isinstance(shape, Marks) else _lines(shape.lines, shape.closed)
    operator = {(True, True): "B", (True, False): "f", (False, True): "S", (False, False): "n"}
    return [*lines, operator[bool(paint.fill), bool(paint.stroke)], "Q"]


def _lines(lines: Iterable[Iterable[Point]], closed: bool) -> list[str]:  # noqa: FBT001 (a part of a path)
    written = []
    for line in lines:
        for number, (x, y) in enumerate(line):
            written.append(f"{x:.2f} {y:.2f} {'l' if number else 'm'}")
        written += ["h"] if closed else []
    return written


def _symbols(marks: Marks) -> list[str]:
    radius = marks.radius
    if marks.symbol == "circle":
        return [line for x, y in marks.points for line in _circle(x, y, radius)]
    corners = SYMBOLS[marks.symbol]
    outlines = [[(x + radius * a, y + radius * b) for a, b in corners] for x, y in marks.points]
    return _lines(outlines, closed=True)


def _circle(x: float, y: float, r: float) -> list[str]:
    h = r * _ROUND
    quarters = [
        (x + h, y - r, x + r, y - h, x + r, y),
        (x + r, y + h, x + h, y + r, x, y + r),
        (x - h, y + r, x - r, y + h, x - r, y),
        (x - r, y - h, x - h, y - r, x, y - r),
    ]
    curves = [" ".join(f"{n:.2f}" for n in quarter) + " c" for quarter in quarters]
    return [f"{x:.2f} {y - r:.2f} m", *curves, "h"]


def _texts(text: Text, fonts: list[_Embedded]) -> list[str]:
    """Write a text in the pieces that one font has each."""
    pieces = list(_pieces(text.text, fonts[1:] if text.bold else [fonts[0], *fonts[2:]]))
    encoded = [(font, *font.encoded(piece)) for font, piece in pieces]
    width = sum(advance for *_, advance in encoded) * text.size / _UNITS
    start = {"start": 0.0, "middle": -width / 2, "end": -width}[text.anchor]
    c, s = cos(radians(text.turn)), sin(radians(text.turn))
    x, y = text.x + start * c, text.y + start * s
    shown = [f"/{font.name} {text.size:g} Tf <{codes}> Tj" for font, codes, _ in encoded]
    matrix = f"{c:.4f} {s:.4f} {s:.4f} {-c:.4f} {x:.2f} {y:.2f} Tm"
    return ["BT", f"{_rgb(text.colour)} rg", matrix, *shown, "ET"]


def _pieces(text: str, fonts: list[_Embedded]) -> Iterable[tuple[_Embedded, str]]:
    start, current = 0, fonts[0]
    for place, letter in enumerate(text):
        font = next((f for f in fonts if ord(letter) in code_points(f.path)), fonts[0])
        if font is not current:
            if place > start:
                yield current, text[start:place]
            start, current = place, font
    yield current, text[start:]


def _rgb(colour: str) -> str:
    return " ".join(f"{channel / 255:.4g}" for channel in channels(colour))


def _document(
    content: str,
    size: tuple[float, float],
    fonts: list[_Embedded],
    states: dict[float, str],
    title: str,
) -> bytes:
    """Put the objects of the file together."""
    objects: list[bytes] = [b"", b"", b"", _stream(content.encode())]
    places = []
    for font in (font for font in fonts if font.used):
        places.append(f"/{font.name} {len(objects) + 1} 0 R")
        objects += _font_objects(font, len(objects) + 1)
    looks = " ".join(f"/{name} << /ca {o:g} /CA {o:g} >>" for o, name in states.items())
    box = f"/MediaBox [0 0 {size[0]:g} {size[1]:g}]"
    resources = f"/Resources << /Font << {' '.join(places)} >> /ExtGState << {looks} >> >>"
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R >>"
    objects[1] = b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
    page = f"<< /Type /Page /Parent 2 0 R {box} {resources} /Contents 4 0 R >>"
    objects[2] = page.encode()
    name = title.encode("utf-16-be").hex().upper()
    objects.append(f"<< /Title <FEFF{name}> /Producer (rprime) >>".encode())
    return _file(objects)


def _font_objects(font: _Embedded, first: int) -> list[bytes]:
    """Describe a font: its glyphs by number, their widths, and the characters that they mean."""
    name = font.path.stem.replace(" ", "")
    glyphs = sorted(font.used)
    widths = " ".join(f"{glyph} [{font.advance(glyph):.0f}]" for glyph in glyphs)
    ends = font.font.numbers("head", 36, "4h")
    box = " ".join(f"{end * font.scale:.0f}" for end in ends)
    rise, fall = (n * font.scale for n in font.font.numbers("hhea", 4, "2h"))
    meanings = "\n".join(
        f"<{glyph:04X}> <{chr(font.used[glyph]).encode('utf-16-be').hex().upper()}>"
        for glyph in glyphs
    )
    unicode = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /U def "
        "/CMapType 2 def 1 begincodespacerange <0000> <FFFF> endcodespacerange\n"
        f"{len(glyphs)} beginbfchar\n{meanings}\nendbfchar endcmap end end"
    )
    return [
        f"<< /Type /Font /Subtype /Type0 /BaseFont /{name} /Encoding /Identity-H "
        f"/DescendantFonts [{first + 1} 0 R] /ToUnicode {first + 4} 0 R >>".encode(),
        f"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /{name} /CIDToGIDMap /Identity "
        "/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> "
        f"/FontDescriptor {first + 2} 0 R /W [{widths}] >>".encode(),
        f"<< /Type /FontDescriptor /FontName /{name} /Flags 4 /FontBBox [{box}] /ItalicAngle 0 "
        f"/Ascent {rise:.0f} /Descent {fall:.0f} /CapHeight {rise:.0f} /StemV 80 "
        f"/FontFile2 {first + 3} 0 R >>".encode(),
        _stream(font.subset),
        _stream(unicode.encode()),
    ]


def _stream(content: bytes) -> bytes:
    packed = zlib.compress(content, 9)
    head = f"<< /Length {len(packed)} /Length1 {len(content)} /Filter /FlateDecode >>"
    return head.encode() + b"\nstream\n" + packed + b"\nendstream"


def _file(objects: list[bytes]) -> bytes:
    written, places = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(written))
        written += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    start = len(written)
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    ends = f"/Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R"
    written += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode()
    written += f"trailer\n<< {ends} >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(written)
