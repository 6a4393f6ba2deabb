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
    """The option `--<name>` of the commands, and the link in a stored report. The function
    `render_<name>` of the module `report.<name>` renders as text or as UTF-8.
    """
    words: str
    """What the option writes, for its help."""
    media_type: str
    """For negotiation, without parameters."""
    suffix: str
    """Of the file `report.<suffix>`."""
    parameters: str = UTF8
    """What the header `Content-Type` adds to the media type."""

    @property
    def content_type(self) -> str:
        """The whole header."""
        return f"{self.media_type}; {self.parameters}"

    def render(self, subject: "ReportSubject") -> bytes:
        """Render as UTF-8."""
        # Imported at its first use, since commands read the formats at their start.
        renderer = resolve_name(f"rprime.report.{self.name}:render_{self.name}")
        rendered: str | bytes = renderer(subject)
        return rendered.encode() if isinstance(rendered, str) else rendered


_JUNIT = "JUnit XML with a case for each rule and class"
_METRICS = "application/openmetrics-text"
FORMATS = (
    Format("markdown", "Markdown", "text/markdown", "md"),
    Format("html", "one page of HTML", "text/html", "html"),
    Format("csv", "a table", "text/csv", "csv", f"header=present; {UTF8}"),
    Format("junit", _JUNIT, "application/xml", "junit.xml"),
    Format("openmetrics", "OpenMetrics", _METRICS, "openmetrics.txt", f"version=1.0.0; {UTF8}"),
)
BY_NAME = {entry.name: entry for entry in FORMATS}
BY_MEDIA_TYPE = {entry.media_type: entry for entry in FORMATS}
BY_SUFFIX = {entry.suffix: entry for entry in FORMATS}
