"""Fonts: the one that the package has, others of this machine, and PNG, which needs them."""

import os
import struct
import unicodedata
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from rprime.report.charts.drawing import FAMILY, Drawing, Text, flat, write_svg

NAME = "DejaVu Sans"
_FOLDERS = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "~/.local/share/fonts",
    "~/.fonts",
    "/System/Library/Fonts",
    "/Library/Fonts",
    "C:/Windows/Fonts",
)
_SUFFIXES = {".ttf", ".otf", ".ttc"}
_BOXES = ("lastresort", "adobeblank", "unifont")
"""Of file names of fonts that have a box, or nothing, for every letter."""
_FORMAT_4, _FORMAT_12 = 4, 12
_SILENT = {"Cc", "Cf", "Zs"}
"""Categories of characters that need no glyph."""


@cache
def bundled() -> tuple[Path, Path]:
    """Return the files of the regular and the bold font of the package."""
    folder = files("rprime").joinpath("static/fonts")
    return Path(str(folder / "DejaVuSans.ttf")), Path(str(folder / "DejaVuSans-Bold.ttf"))


@dataclass(frozen=True, eq=False)
class Font:
    """A font file: its bytes, and where its tables are."""

    content: bytes
    tables: dict[str, tuple[int, int]]

    @classmethod
    @lru_cache(maxsize=8)
    def read(cls, path: Path) -> "Font":
        """Read a file, of a collection its first font; raises ValueError for anything else."""
        content = path.read_bytes()
        start = struct.unpack_from(">I", content, 12)[0] if content[:4] == b"ttcf" else 0
        (number,) = struct.unpack_from(">H", content, start + 4)
        tables = {}
        for place in range(start + 12, start + 12 + 16 * number, 16):
            tag, _, offset, length = struct.unpack_from(">4sIII", content, place)
            tables[tag.decode("latin-1")] = (offset, length)
        return cls(content, tables)

    def numbers(self, table: str, place: int, form: str) -> tuple[int, ...]:
        """Read numbers of a table."""
        return struct.unpack_from(f">{form}", self.content, self.tables[table][0] + place)

    @property
    def glyphs(self) -> dict[int, int]:
        """The number of the glyph of each code point."""
        (number,) = self.numbers("cmap", 2, "H")
        glyphs: dict[int, int] = {}
        for record in range(number):
            platform, encoding, offset = self.numbers("cmap", 4 + 8 * record, "HHI")
            if platform == 0 or (platform == 3 and encoding in {1, 10}):  # noqa: PLR2004 (Windows)
                glyphs |= self._subtable(offset)
        return glyphs

    def _subtable(self, offset: int) -> dict[int, int]:
        (form,) = self.numbers("cmap", offset, "H")
        if form == _FORMAT_12:
            (number,) = self.numbers("cmap", offset + 12, "I")
            groups = self.numbers("cmap", offset + 16, f"{3 * number}I")
            return {
                code: glyph + code - first
                for first, last, glyph in zip(*[iter(groups)] * 3, strict=True)
                for code in range(first, last + 1)
            }
        return dict(self._segments(offset)) if form == _FORMAT_4 else {}

    def _segments(self, offset: int) -> Iterator[tuple[int, int]]:
        (twice,) = self.numbers("cmap", offset + 6, "H")
        count, form = twice // 2, f"{twice // 2}H"
        ends, starts = (self.numbers("cmap", offset + at, form) for at in (14, 16 + twice))
        deltas = self.numbers("cmap", offset + 16 + 2 * twice, form)
        ranges = offset + 16 + 3 * twice
        shifts = self.numbers("cmap", ranges, form)
        for i in range(count):
            for code in range(starts[i], min(ends[i], 0xFFFE) + 1):
                if not shifts[i]:
                    yield code, (code + deltas[i]) % 0x10000
                    continue
                place = ranges + 2 * i + shifts[i] + 2 * (code - starts[i])
                (glyph,) = self.numbers("cmap", place, "H")
                if glyph:
                    yield code, (glyph + deltas[i]) % 0x10000


@lru_cache(maxsize=256)
def code_points(path: Path) -> AbstractSet[int]:
    """Return the code points that a font has; none of a file that is no font."""
    try:
        return frozenset(Font.read(path).glyphs)
    except (OSError, ValueError, KeyError, struct.error):
        return frozenset()


@cache
def installed() -> tuple[Path, ...]:
    """Return the font files of this machine, in the order of their names."""
    paths: list[Path] = []
    for folder in map(os.path.expanduser, _FOLDERS):
        for root, _, names in os.walk(folder):
            paths += [Path(root, name) for name in names]
    fonts = [path for path in paths if path.suffix.lower() in _SUFFIXES]
    return tuple(sorted(p for p in fonts if not p.stem.lower().startswith(_BOXES)))


def letters(drawing: Drawing) -> frozenset[int]:
    """Return the code points of all texts that need a glyph."""
    texts = (shape.text for shape in flat(drawing.shapes) if isinstance(shape, Text))
    return frozenset(
        ord(letter)
        for text in texts
        for letter in set(text)
        if not letter.isascii() and unicodedata.category(letter) not in _SILENT
    )


@lru_cache(maxsize=256)
def fonts_with(codes: frozenset[int]) -> tuple[tuple[Path, ...], frozenset[int]]:
    """Return font files that together have the code points, and those that none has."""
    missing, chosen = set(codes - code_points(bundled()[0])), list[Path]()
    for path in installed() if missing else ():
        has = missing & code_points(path)
        if has:
            chosen.append(path)
            missing -= has
    return tuple(chosen), frozenset(missing)


def lacking(drawing: Drawing) -> frozenset[int]:
    """Return the code points of a drawing that no font of this machine has."""
    return fonts_with(letters(drawing))[1]


def write_png(drawing: Drawing, scale: float) -> bytes:
    """Write a drawing as PNG; letters that the font of the package lacks are of other fonts."""
    # Loads a library of its own, which most requests do not need.
    import resvg_py  # noqa: PLC0415 - see above

    fonts = (*bundled(), *fonts_with(letters(drawing))[0])
    content = resvg_py.svg_to_bytes(
        svg_string=write_svg(drawing).replace(FAMILY, NAME),
        zoom=scale,
        skip_system_fonts=True,
        font_files=[str(path) for path in fonts],
        font_family=NAME,
        sans_serif_family=NAME,
    )
    return bytes(content)
