"""Formats: the renderings of a report, each declared once for routes, pages and commands."""

from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rprime.report.subject import ReportSubject


@dataclass(frozen=True, slots=True)
class Format:
    """One rendering of a whole report.

    Parameters
    ----------
    name
        The option `--<name>` of the commands, and the link in a stored report.
    words
        What the option writes, for its help.
    media_type
        For negotiation, without parameters.
    parameters
        What the header `Content-Type` adds to it.
    suffix
        Of the file `report.<suffix>`.
    text
        Renders as text or as UTF-8.
    """

    name: str
    words: str
    media_type: str
    parameters: str
    suffix: str
    text: Callable[["ReportSubject"], str | bytes]

    @property
    def content_type(self) -> str:
        """The whole header."""
        return f"{self.media_type}; {self.parameters}"

    def render(self, subject: "ReportSubject") -> bytes:
        """Render as UTF-8."""
        rendered = self.text(subject)
        return rendered.encode() if isinstance(rendered, str) else rendered


@dataclass(frozen=True, slots=True)
class LazyRenderer:
    """A renderer that is imported at its first use, since commands read the formats at their start.

    It is an object and not a closure, because requests with large bodies send it to a worker.

    Parameters
    ----------
    name
        The module and the function, below `rprime.report`.
    """

    name: str

    def __call__(self, subject: "ReportSubject") -> str | bytes:
        """Render a report."""
        renderer: Any = resolve_name(f"rprime.report.{self.name}")
        rendered: str | bytes = renderer(subject)
        return rendered


UTF8 = "charset=utf-8"
FORMATS = (
    Format(
        "markdown",
        "Markdown",
        "text/markdown",
        UTF8,
        "md",
        LazyRenderer("markdown:render_markdown"),
    ),
    Format("html", "one page of HTML", "text/html", UTF8, "html", LazyRenderer("page:render_html")),
    Format(
        "csv",
        "a table",
        "text/csv",
        f"header=present; {UTF8}",
        "csv",
        LazyRenderer("csv:render_csv"),
    ),
    Format(
        "junit",
        "JUnit XML with a case for each rule and class",
        "application/xml",
        UTF8,
        "junit.xml",
        LazyRenderer("junit:render_junit"),
    ),
    Format(
        "openmetrics",
        "OpenMetrics",
        "application/openmetrics-text",
        f"version=1.0.0; {UTF8}",
        "openmetrics.txt",
        LazyRenderer("openmetrics:render_openmetrics"),
    ),
)
BY_NAME = {entry.name: entry for entry in FORMATS}
BY_MEDIA_TYPE = {entry.media_type: entry for entry in FORMATS}
BY_SUFFIX = {entry.suffix: entry for entry in FORMATS}
