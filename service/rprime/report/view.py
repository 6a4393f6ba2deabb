"""View: everything that a page says of an evaluation, in words and marks, for its template."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from rprime.core.index import Index
from rprime.report.changed_predictions import changed_predictions
from rprime.report.changes import Change
from rprime.report.decimals import MINUS, bound, count, decimal, percent, plural, signed, span
from rprime.report.formulas import formula
from rprime.report.gate_results import gate_groups
from rprime.report.grouped_warnings import GroupedWarning, grouped_warnings
from rprime.report.heat_map import heat_map
from rprime.report.marks import Axis, Mark, axis_of, mark_of
from rprime.report.measures import ClassLine, Measure, Measures
from rprime.report.names import address, isolated, shown
from rprime.report.reasons import explained
from rprime.report.sections import SECTIONS
from rprime.report.subject import ReportSubject
from rprime.report.verdicts import compared, headline, summary
from rprime.schemas.comparison import Attribution

MOST_CLASSES = 200
MOST_CELLS = 6
"""Of an attribution."""
OPTIONAL_SECTIONS = {
    "gate": "results",
    "changes": "movements",
    "warnings": "cautions",
    "causes": "attributions",
}
"""The member that a section shows; without any content there is no section."""


def view_of(subject: ReportSubject) -> dict[str, Any]:
    """Return the content of a page; templates must escape every foreign text."""
    measures = Measures(subject)
    content = {
        **_opening(subject),
        **_overall(measures),
        **_classes(measures),
        **_confusion(measures),
        "results": gate_groups(subject.gate),
        "movements": changed_predictions(subject.comparison),
        "attributions": _attributions(subject),
        "cautions": [_shown(warning) for warning in grouped_warnings(subject)],
        "terms": list(_terms(measures)),
    }
    empty = {name for name, member in OPTIONAL_SECTIONS.items() if not content[member]}
    sections = [(name, title) for name, title in SECTIONS.items() if name not in empty]
    return {**content, "sections": sections}


def _opening(subject: ReportSubject) -> dict[str, Any]:
    """Return the verdict, its basis and its origin."""
    comparison, evaluation = subject.comparison, subject.evaluation
    before, after = compared(comparison)
    facts = {**subject.provenance, "items": count(subject.items)}
    facts["classes"] = f"{len(evaluation.labels):,}"
    links = {"stored report": address(subject.link), "run": address(subject.source)}
    return {
        "title": shown(subject.title),
        "verdict": headline(subject.gate),
        "tally": "" if subject.gate is None else summary(subject.gate),
        "compared": "" if comparison is None else before,
        "baseline": shown(subject.baseline or "the baseline"),
        "evidence": after,
        "facts": [(name, shown(value)) for name, value in facts.items()],
        "links": [(name, link) for name, link in links.items() if link],
        "engine_version": subject.engine_version,
        "digest": subject.input_digest,
        "confidence": percent(evaluation.options.confidence),
    }


@dataclass(frozen=True, slots=True)
class Term:
    """An index and what it means."""

    key: str
    anchor: str
    name: str
    scope: str
    range: str
    description: str
    tex: str
    formula: Markup
    source: str

    @classmethod
    def of(cls, index: Index) -> "Term":
        """Read the catalog."""
        low, high = (bound(end) if abs(end) < float("inf") else "∞" for end in index.range)
        low = f"{MINUS}{low}" if low == "∞" else low
        best = "" if index.best is None else f", best {bound(index.best)}"
        scope = "of a class" if index.scope == "class" else "overall"
        return cls(
            index.key,
            f"{index.scope}-{index.key}",
            index.name,
            scope,
            f"{low} to {high}{best}",
            index.description,
            index.tex,
            formula(index.tex),
            index.source,
        )


@dataclass(frozen=True, slots=True)
class Moved:
    """A change in words."""

    value: str
    tone: str
    judged: str

    @classmethod
    def of(cls, change: Change | None, *, words: bool) -> "Moved | None":
        """Read a change; None where nothing was compared."""
        if change is None:
            return None
        if change.value is None:
            return cls(explained(change.reason), "open", "") if words else None
        tone = change.judged if change.demonstrated else "open"
        return cls(signed(change.value), tone, change.judged if words else "")


@dataclass(frozen=True, slots=True)
class FigureLink:
    """A measure in words, with its mark."""

    term: Term
    value: str
    absent: bool
    interval: str
    why: str
    mark: Mark | None
    change: Moved | None
    signs: str
    remark: str


def _figure(measure: Measure, axis: Axis | None, term: Term, *, words: bool = True) -> FigureLink:
    absent = measure.value is None
    reason = explained(measure.reason) if measure.reason else ""
    return FigureLink(
        term=term,
        value=(reason if words else decimal(None)) if absent else decimal(measure.value),
        absent=absent,
        interval="" if measure.low is None else span(measure.low, measure.high),
        why="" if absent else reason,
        mark=None if axis is None else mark_of(measure, axis),
        change=Moved.of(measure.change, words=words),
        signs=measure.marks,
        remark="; ".join(remark.text(_isolated) for remark in measure.remarks),
    )


def _isolated(label: str) -> str:
    return isolated(shown(label))


def _overall(measures: Measures) -> dict[str, Any]:
    axis = axis_of(measures.headlines)
    return {
        "headlines": [_figure(m, axis, Term.of(m.index)) for m in measures.headlines],
        "headline_axis": axis.ends,
        "legend": measures.legend(_isolated),
        "everything": [_figure(m, None, Term.of(m.index)) for m in measures.overall.values()],
    }


def _classes(measures: Measures) -> dict[str, Any]:
    """Return the table of classes: all in their order where they fit, else the worst ones."""
    sorted_ = measures.changes is not None or len(measures.classes) > MOST_CLASSES
    lines = (measures.worst_first if sorted_ else measures.classes)[:MOST_CLASSES]
    order = measures.order if sorted_ else measures.own_order
    left_out = len(measures.classes) - len(lines) + measures.left_out
    terms = [Term.of(entry) for entry in measures.class_headlines]
    axes = [axis_of(line.measures[i] for line in lines) for i in range(len(terms))]
    everywhere = "the JSON report and the CSV have them all"
    rest = "a request pages through them by its option classes" if measures.left_out else everywhere
    more = f"{plural(left_out, 'class')} more: {rest}."
    return {
        "columns": [
            {"term": term, "axis": axis.ends, "signs": signs}
            for term, axis, signs in zip(terms, axes, measures.class_marks, strict=True)
        ],
        "classes": [_line(line, axes, terms) for line in lines],
        "classes_note": f"{plural(len(measures.classes), 'class')}, {order}.",
        "classes_more": more if left_out else "",
    }


def _line(line: ClassLine, axes: list[Axis], terms: list[Term]) -> dict[str, Any]:
    rows = zip(line.measures, axes, terms, strict=True)
    return {
        "label": shown(line.label),
        "support": count(line.support),
        "failing": line.failing,
        "cells": [_figure(measure, axis, term, words=False) for measure, axis, term in rows],
    }


def _confusion(measures: Measures) -> dict[str, Any]:
    found = heat_map(measures.subject.evaluation)
    confusions = [
        {
            "true": shown(c.true),
            "predicted": shown(c.predicted),
            "number": count(c.items),
            "share": decimal(c.share),
        }
        for c in measures.confusions()
    ]
    return {"heat": found, "confusions": confusions}


def _attributions(subject: ReportSubject) -> list[dict[str, Any]]:
    if subject.comparison is None:
        return []
    return [_attribution(name, found) for name, found in subject.comparison.attribution.items()]


def _attribution(name: str, found: Attribution) -> dict[str, Any]:
    kept, others = found.cells[:MOST_CELLS], found.cells[MOST_CELLS:]
    rest = None if found.rest is None else found.rest + sum(cell.contribution for cell in others)
    return {
        "title": shown(name.replace("/", ", ", 1)),
        "rows": [
            (_name(cell.true), _name(cell.predicted), signed(cell.contribution)) for cell in kept
        ],
        "rest": signed(rest),
    }


def _name(label: str | None) -> str | None:
    return None if label is None else shown(label)


def _shown(warning: GroupedWarning) -> GroupedWarning:
    """Make the foreign text of a warning fit to be shown."""
    return replace(
        warning,
        before=shown(warning.before),
        label=_name(warning.label),
        others=tuple(map(shown, warning.others)),
    )


def _terms(measures: Measures) -> Iterator[Term]:
    """Define what the page shows first, overall and of the classes."""
    for measure in measures.headlines:
        yield Term.of(measure.index)
    for index in measures.class_headlines:
        yield Term.of(index)
