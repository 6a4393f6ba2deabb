"""Annotations: workflow commands by which a job on GitHub marks the rules that are not kept."""

from collections.abc import Iterator, Mapping

from rprime.core.gates.results import Result
from rprime.core.quantities import plural
from rprime.report.slices import shown_slice
from rprime.report.subject import ReportSubject
from rprime.report.text import cut_text, isolated, shown
from rprime.report.verdicts import (
    COMMON_CAUSES,
    averaged,
    finding,
    headline,
    said,
    separate,
    summary,
)

MOST_OF_A_KIND = 10
"""GitHub shows so many errors, warnings and notices of one step; the last one counts the rest."""
MOST_SENTENCES = 10
"""Of one rule."""
LONGEST_TITLE = 200
KINDS = {"error": "fail the gate", "warning": "with a warning", "notice": "undecided"}
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_ESCAPE_DATA = str.maketrans(_DATA)
_ESCAPE_PROPERTY = str.maketrans({**_DATA, ":": "%3A", ",": "%2C"})

Place = Mapping[str, str | int]
"""`file`, `line` and `col`, from 1; empty where it is not known."""


def render_annotations(subject: ReportSubject, places: Mapping[str, Place] | None = None) -> str:
    """Render the gate as workflow commands: one for each rule, and the verdict as a notice.

    `places` has where each rule stands, by its id: its annotation is shown there.
    """
    results = separate(subject.gate)
    lines = [
        line
        for kind in KINDS
        for line in _commands(kind, [r for r in results if _kind(r) == kind], places or {})
    ]
    return "\n".join([*lines, *_verdict(subject)]) + "\n"


def command(kind: str, title: str, message: str, place: Place | None = None) -> str:
    """Write one command; what would end it, or start another one, is escaped."""
    heading = {**(place or {}), "title": cut_text(title, LONGEST_TITLE)}
    properties = ",".join(
        f"{name}={str(value).translate(_ESCAPE_PROPERTY)}" for name, value in heading.items()
    )
    return f"::{kind} {properties}::{message.translate(_ESCAPE_DATA)}"


def _kind(result: Result) -> str | None:
    undecided = None if result.verdict == "pass" else "notice"
    return {"fail": "error", "warn": "warning"}.get(result.effect, undecided)


def _commands(kind: str, results: list[Result], places: Mapping[str, Place]) -> Iterator[str]:
    by_rule: dict[str, list[Result]] = {}
    for result in results:
        by_rule.setdefault(result.rule, []).append(result)
    rules = list(by_rule.items())
    # The last notice is that of the verdict.
    most = MOST_OF_A_KIND - (kind == "notice")
    fitting = most if len(rules) <= most else most - 1
    for rule, group in rules[:fitting]:
        sentences = [cut_text(said(result)) for result in group[:MOST_SENTENCES]]
        if rest := len(group) - len(sentences):
            sentences.append(f"{rest:,} more; the report names them all.")
        yield command(kind, _title(kind, group), "\n".join(sentences), places.get(rule))
    if rest := len(rules) - min(fitting, len(rules)):
        yield command(kind, "and more", f"{plural(rest, 'rule')} more; the report names them all.")


def _title(kind: str, results: list[Result]) -> str:
    first = results[0]
    if len(results) > 1:
        return f"{shown(first.rule)}: {plural(len(results), 'result')} {KINDS[kind]}"
    where = "" if first.class_ is None else f", class {isolated(shown(first.class_))}"
    where += f", {isolated(shown_slice(first.slice))}" if first.slice else ""
    where += f", {isolated(averaged(first))}" if first.average_of is not None else ""
    return f"{shown(first.rule)}{where}: {finding(first)}"


def _verdict(subject: ReportSubject) -> Iterator[str]:
    """Say the verdict; as an error or a warning where no result of its own says why."""
    heading, gate = headline(subject.gate), subject.gate
    text = heading.words if gate is None else f"{heading.words}. {summary(gate)}"
    if gate is not None and (common := [r for r in gate.results if r.reason in COMMON_CAUSES]):
        failing = any(result.effect == "fail" for result in common)
        yield command("error" if failing else "warning", shown(subject.title), shown(gate.message))
    yield command("notice", shown(subject.title), text)
