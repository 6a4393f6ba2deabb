"""Annotations: workflow commands by which a job on GitHub marks what failed."""

from collections.abc import Iterator

from rprime.report.decimals import plural
from rprime.report.names import clipped, isolated, shown
from rprime.report.subject import ReportSubject
from rprime.report.verdicts import finding, headline, said, separate, summary
from rprime.schemas.gate import Result

MOST_OF_A_KIND = 10
"""GitHub shows so many errors and so many warnings of one step; the last one counts the rest."""
LONGEST_TITLE = 200
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_ESCAPE_DATA = str.maketrans(_DATA)
_ESCAPE_PROPERTY = str.maketrans({**_DATA, ":": "%3A", ",": "%2C"})


def render_annotations(subject: ReportSubject) -> str:
    """Render the gate as workflow commands: errors, warnings, and the verdict as a notice.

    Returns
    -------
    Lines for standard output; one line in any case.
    """
    results = [] if subject.gate is None else separate(subject.gate.results)
    lines = [
        *_commands("error", [r for r in results if r.effect == "fail"]),
        *_commands("warning", [r for r in results if r.effect == "warn"]),
        *_verdict(subject),
    ]
    return "\n".join(lines) + "\n"


def command(kind: str, title: str, message: str) -> str:
    """Write one command; what would end it, or start another one, is escaped."""
    heading = clipped(title, LONGEST_TITLE).translate(_ESCAPE_PROPERTY)
    return f"::{kind} title={heading}::{clipped(message).translate(_ESCAPE_DATA)}"


def _commands(kind: str, results: list[Result]) -> Iterator[str]:
    fitting = MOST_OF_A_KIND if len(results) <= MOST_OF_A_KIND else MOST_OF_A_KIND - 1
    for result in results[:fitting]:
        yield command(kind, _title(result), said(result))
    if rest := len(results) - fitting if len(results) > fitting else 0:
        text = f"{plural(rest, 'result')} more; the report names them all."
        yield command(kind, "and more", text)


def _title(result: Result) -> str:
    where = "" if result.class_ is None else f", class {isolated(shown(result.class_))}"
    return f"{shown(result.rule)}{where}: {finding(result)}"


def _verdict(subject: ReportSubject) -> Iterator[str]:
    """Say the verdict; as an error or a warning where no result of its own says why."""
    found, gate = headline(subject.gate), subject.gate
    text = found.words if gate is None else f"{found.words}. {summary(gate)}"
    if gate is not None and (common := [r for r in gate.results if r not in separate([r])]):
        failing = any(result.effect == "fail" for result in common)
        yield command("error" if failing else "warning", shown(subject.title), shown(gate.message))
    yield command("notice", shown(subject.title), text)
