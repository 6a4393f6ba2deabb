"""Badge: a verdict or one value as a small SVG, or as the JSON of a shields.io endpoint."""

from dataclasses import dataclass
from html import escape

import orjson

from rprime.core.gates.results import GateVerdict
from rprime.core.index import Index
from rprime.report.text import cut_text, decimal, shown
from rprime.report.verdicts import HEADLINES, Tone

COLOURS: dict[Tone, str] = {
    "good": "#00694e",
    "bad": "#a8330a",
    "open": "#7a5200",
    "none": "#4a5560",
}
"""White on each of them has a contrast of at least 6; the words say what the colour does."""
LABEL_COLOUR = "#333a42"
LONGEST = 40
HEIGHT = 20
PADDING = 7
SQUARE_FROM = 0x2E80
"""Characters of Chinese, Japanese and Korean are as wide as they are high."""
_WIDTHS = dict.fromkeys("iljtfrI.,:;|'!()[] ", 4.3) | dict.fromkeys("mwMW@%", 10.0)


@dataclass(frozen=True, slots=True)
class Badge:
    """Two words: what it is about, and what holds."""

    label: str
    message: str
    tone: Tone


def verdict_badge(verdict: GateVerdict | None) -> Badge:
    """Say a verdict; None for an evaluation without a gate."""
    heading = HEADLINES[verdict]
    return Badge("rprime", heading.word, heading.tone)


def value_badge(index: Index, value: float | None, of: str = "", options: str = "") -> Badge:
    """Say one value of a class or slice. It is neither good nor bad: that is for a gate to say."""
    name = f"{index.name} of {of}" if of else index.name
    name = f"{name} with {options}" if options else name
    return Badge(name, "undefined" if value is None else decimal(value), "none")


def render_badge(badge: Badge) -> str:
    """Draw a badge as SVG, its text as title, too."""
    label, message = (cut_text(shown(text), LONGEST) for text in (badge.label, badge.message))
    left, right = (_width(text) + 2 * PADDING for text in (label, message))
    title = escape(f"{label}: {message}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{HEIGHT}" '
        f'role="img" aria-label="{title}"><title>{title}</title>'
        f'<clipPath id="r"><rect width="{left + right}" height="{HEIGHT}" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left}" height="{HEIGHT}" fill="{LABEL_COLOUR}"/>'
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{COLOURS[badge.tone]}"/></g>'
        '<g fill="#fff" text-anchor="middle" font-size="11" '
        'font-family="Verdana,Geneva,DejaVu Sans,sans-serif">'
        f"{_text(label, 0, left)}{_text(message, left, right)}</g></svg>\n"
    )


def render_endpoint(badge: Badge) -> bytes:
    """Return a badge as JSON for shields.io."""
    label, message = (cut_text(shown(text), LONGEST) for text in (badge.label, badge.message))
    content = {"schemaVersion": 1, "label": label, "message": message}
    colours = {"color": COLOURS[badge.tone], "labelColor": LABEL_COLOUR}
    return orjson.dumps({**content, **colours, "isError": badge.tone == "bad"})


def _text(text: str, start: int, width: int) -> str:
    # textLength holds the text in its box whatever font the reader has.
    return (
        f'<text x="{start + width / 2:g}" y="14" textLength="{width - 2 * PADDING}" '
        f'lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
    )


def _width(text: str) -> int:
    """Estimate the width of a text in Verdana of 11 pixels."""
    widths = (_WIDTHS.get(c, 11.0 if ord(c) >= SQUARE_FROM else 7.0) for c in text)
    return max(1, round(sum(widths)))
