"""The templates of the pages, where their links lead, and the files that they load."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import orjson
from jinja2 import Environment, PackageLoader, PrefixLoader
from markupsafe import Markup

from rprime.report.html import environment_of
from rprime.report.text import decimal

# What stands in a script element must not end it, nor start a comment in it.
_UNSAFE = {b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026"}


def render(template: str, root: str, /, **content: object) -> str:
    """Render a page or a part of it; root: the way from that page to the root of the service."""
    return _environment().get_template(template).render(root=root, **content)


def macros(template: str) -> Any:  # noqa: ANN401 (its members are the macros)
    """Return the macros of a template, for parts of pages that stand elsewhere."""
    return _environment().get_template(f"pages/{template}").module


def embedded(content: object) -> Markup:
    """Write data as JSON that can stand in a script element; NaN becomes null."""
    text = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    for sign, escape in _UNSAFE.items():
        text = text.replace(sign, escape)
    return Markup(text.decode())  # noqa: S704 (nothing in it can end the element)


@cache
def _environment() -> Environment:
    # The report's components and the pages' are the same.
    loader = PrefixLoader(
        {"pages": PackageLoader("rprime.dashboard"), "report": PackageLoader("rprime.report")}
    )
    environment = environment_of(loader)
    environment.globals["asset"] = asset_address
    environment.globals["decimal"] = decimal
    environment.filters["embedded"] = embedded
    return environment


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that pages load. An address with its digest never shows anything else."""

    content: bytes
    compressed: bytes
    media_type: str
    digest: str


STYLE = "style.css"
_SHEETS = (
    ("rprime.report", "templates/tokens.css"),
    ("rprime.report", "templates/components.css"),
    ("rprime.dashboard", "static/pages.css"),
    ("rprime.dashboard", "static/history.css"),
)
_SCRIPTS = ("dashboard.js", "theme.js")
ASSETS = {STYLE: "text/css"} | dict.fromkeys(_SCRIPTS, "text/javascript")
"""By name, with the media type."""


@cache
def asset(name: str) -> Asset:
    """Read one of the `ASSETS`."""
    media_type = ASSETS[name]
    parts = _SHEETS if name == STYLE else (("rprime.dashboard", f"static/{name}"),)
    content = b"\n".join(files(room).joinpath(path).read_bytes() for room, path in parts)
    digest = hashlib.sha256(content).hexdigest()[:16]
    return Asset(content, gzip.compress(content, mtime=0), f"{media_type}; charset=utf-8", digest)


def asset_address(name: str) -> str:
    """Return the address of an asset from the root of the service."""
    return f"ui/static/{name}?v={asset(name).digest}"
