"""Page: the report as one HTML file that needs nothing else, neither script nor network."""

import base64
import hashlib
import re
from functools import lru_cache

from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rprime.report.charts.page import FUNCTIONS
from rprime.report.subject import ReportSubject
from rprime.report.text import MINUS, shortened
from rprime.report.view import view_of

SHEETS = ("tokens.css", "components.css", "report.css")


def render_html(subject: ReportSubject) -> str:
    """Render as HTML; every foreign text is escaped by the template and isolated by `bdi`."""
    environment, style, style_hash = _template()
    return environment.get_template("report.html").render(
        style=Markup(style),  # noqa: S704 (our own file)
        style_hash=style_hash,
        **view_of(subject),
    )


def render_frame(subject: ReportSubject) -> str:
    """Render as a frame within another page, such as a notebook, that holds the page."""
    return Markup(
        '<iframe title="Evaluation report" sandbox="allow-popups" srcdoc="{}" '
        'style="width: 100%; height: 36em; resize: vertical; border: 0"></iframe>'
    ).format(render_html(subject))


_MINUS = re.compile(r"(?<![\w-])-(?=[\d. ])")


def prose(text: str) -> Markup:
    """Escape a text of ours, in which names stand between backticks; a minus is a true one."""
    return Markup("").join(
        Markup("<code><bdi>{}</bdi></code>").format(part) if place % 2 else _MINUS.sub(MINUS, part)
        for place, part in enumerate(text.split("`"))
    )


def environment_of(loader: BaseLoader) -> Environment:
    """Return templates that escape every foreign text."""
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["prose"] = prose
    environment.filters["shortened"] = shortened
    environment.globals["charts"] = FUNCTIONS
    return environment


@lru_cache(maxsize=1)
def _template() -> tuple[Environment, str, str]:
    """Read the templates once: the environment, the style, and its hash for the policy."""
    loader = PackageLoader("rprime.report")
    environment = environment_of(loader)
    style = "".join(loader.get_source(environment, canvas)[0] for canvas in SHEETS)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment, style, f"sha256-{digest}"
