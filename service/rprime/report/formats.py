"""Formats: the renderings of a report, each declared once for routes, pages and commands."""

from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rprime.report.subject import ReportSubject

UTF8 = "charset=utf-8"


@dataclass(frozen=True, slots=True)
class Format:
    """One rendering of a whole report."""

    name: str
    """The option `--<name>` of the commands, and the link in a stored report."""
    words: str
    """What the option writes, for its help."""
    media_type: str
    """For negotiation, without parameters."""
    suffix: str
    """Of the file `report.<suffix>`."""
    renderer: str
    """The module and the function below `rprime` that renders as text or as UTF-8. It is imported
    at its first use, since commands read the formats at their start.
    """
    parameters: str = UTF8
    """What the header `Content-Type` adds to the media type."""

    @property
    def content_type(self) -> str:
        """The whole header."""
        return f"{self.media_type}; {self.parameters}"

    def render(self, subject: "ReportSubject") -> bytes:
        """Render as UTF-8."""
        rendered: str | bytes = resolve_name(f"rprime.{self.renderer}")(subject)
        return rendered.encode() if isinstance(rendered, str) else rendered


FORMATS = (
    Format("markdown", "Markdown", "text/markdown", "md", "report.markdown:render_markdown"),
    Format("html", "one page of HTML", "text/html", "html", "report.page:render_html"),
    Format(
        "csv",
        "a table",
        "text/csv",
        "csv",
        "report.csv:render_csv",
        parameters=f"header=present; {UTF8}",
    ),
    Format(
        "junit",
        "JUnit XML with a case for each rule and class",
        "application/xml",
        "junit.xml",
        "report.junit:render_junit",
    ),
    Format(
        "openmetrics",
        "OpenMetrics",
        "application/openmetrics-text",
        "openmetrics.txt",
        "report.openmetrics:render_openmetrics",
        parameters=f"version=1.0.0; {UTF8}",
    ),
)
BY_NAME = {entry.name: entry for entry in FORMATS}
BY_MEDIA_TYPE = {entry.media_type: entry for entry in FORMATS}
BY_SUFFIX = {entry.suffix: entry for entry in FORMATS}
