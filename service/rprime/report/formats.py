"""Formats: the renderings by media type and file suffix, declared once for routes and command."""

from collections.abc import Callable
from dataclasses import dataclass

from rprime.report.csv import render_csv
from rprime.report.junit import render_junit
from rprime.report.markdown import render_markdown
from rprime.report.openmetrics import render_openmetrics
from rprime.report.page import render_html
from rprime.report.subject import ReportSubject


@dataclass(frozen=True, slots=True)
class Format:
    """One rendering of a whole report.

    Parameters
    ----------
    name
        As an option of the command.
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
    media_type: str
    parameters: str
    suffix: str
    text: Callable[[ReportSubject], str | bytes]

    @property
    def content_type(self) -> str:
        """The whole header."""
        return f"{self.media_type}; {self.parameters}"

    def render(self, subject: ReportSubject) -> bytes:
        """Render as UTF-8."""
        rendered = self.text(subject)
        return rendered.encode() if isinstance(rendered, str) else rendered


UTF8 = "charset=utf-8"
FORMATS = (
    Format("markdown", "text/markdown", UTF8, "md", render_markdown),
    Format("html", "text/html", UTF8, "html", render_html),
    Format("csv", "text/csv", f"header=present; {UTF8}", "csv", render_csv),
    Format("junit", "application/xml", UTF8, "junit.xml", render_junit),
    Format(
        "openmetrics",
        "application/openmetrics-text",
        f"version=1.0.0; {UTF8}",
        "openmetrics.txt",
        render_openmetrics,
    ),
)
BY_NAME = {entry.name: entry for entry in FORMATS}
BY_MEDIA_TYPE = {entry.media_type: entry for entry in FORMATS}
BY_SUFFIX = {entry.suffix: entry for entry in FORMATS}
