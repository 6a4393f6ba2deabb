"""View: everything that a page says of an evaluation, in words and marks, for its template."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import Any

import orjson
from markupsafe import Markup

from rprime.core.catalog import find
from rprime.core.index import Index
from rprime.core.quantities import plural
from rprime.report.answer import answer
from rprime.report.changed_predictions import changed_predictions
from rprime.report.class_selection import ClassSelection, ordered_classes
from rprime.report.grouped_warnings import grouped_warnings
from rprime.report.heat_map import ConfusionChart, count_table
from rprime.report.marks import Axis, common_axis, mark_of
from rprime.report.measures import Measure, Measures, counted_noun
from rprime.report.score_charts import plots
from rprime.report.slices import SliceLine, SliceTable, slice_table
from rprime.report.subject import ReportSubject
from rprime.report.text import (
    MINUS,
    SECTIONS,
    address,
    bound,
    count,
    decimal,
    explained,
    isolated,
    percent,
    shown,
    shown_if_any,
    signed,
    span,
)
from rprime.report.verdicts import compared, gate_groups, headline, summary
from rprime.schemas.comparison import Attribution

MOST_CELLS = 6
"""Of an attribution."""
MOST_TILES = 15
"""Overall values with a tile each: the summary with scores. With more there is a table, too."""
OPTIONAL_SECTIONS = {
    "gate": "results",
    "changes": "changed",
    "warnings": "warnings",
    "causes": "attributions",
    "slices": "slices",
    "scores": "plots",
    "all": "everything",
}
"""The member that a section shows; without any content there is no section."""
NOTES = {"scores_not_kept"}
"""Warnings that say what is kept, and cast no doubt on the values: they stand beside these."""
WHOLE = ClassSelection()


def view_of(subject: ReportSubject, selection: ClassSelection = WHOLE) -> dict[str, Any]:
    """Return the content of a page; templates must escape every foreign text."""
    measures = Measures(subject)
    tiles = list(measures.overall.values())[:MOST_TILES]
    explained_here = (*(measure.index for measure in tiles), *measures.class_indices)
    attributed = {} if subject.comparison is None else subject.comparison.attribution or {}
    # The request asked for curves, now or when it was stored.
    warnings = grouped_warnings(subject)
    curves = subject.evaluation.options.curves or subject.kept_scores is not None
    content = {
        **_opening(subject),
        **_overall(measures, tiles),
        **_classes(measures, selection),
        "heat": ConfusionChart.of(subject.evaluation),
        "counts": count_table(subject.evaluation),
        "confusions": [
            (shown(true), shown(predicted), count(number), decimal(share))
            for true, predicted, number, share in measures.confusions()
        ],
        "counted": counted_noun(subject.evaluation.table),
        "results": list(gate_groups(subject.gate)),
        "changed": changed_predictions(subject.comparison),
        "attributions": [
            _attribution(name, attribution)
            for name, attribution in attributed.items()
            if attribution.cells
        ],
        "slices": slice_plot(slice_table(subject.evaluation)),
        "plots": plots(subject) if curves else {},
        "warnings": [warning for warning in warnings if warning.code not in NOTES],
        "notes": [warning for warning in warnings if warning.code in NOTES],
        "terms": [term(index) for index in explained_here],
    }
    empty = {name for name, member in OPTIONAL_SECTIONS.items() if not content[member]}
    sections = [(name, title) for name, title in SECTIONS.items() if name not in empty]
    return {**content, "sections": sections}


def _opening(subject: ReportSubject) -> dict[str, Any]:
    comparison, evaluation = subject.comparison, subject.evaluation
    before, after = compared(comparison)
    counted_as = "items" if evaluation.table.is_numbered else "weight"
    facts = {**subject.provenance, counted_as: count(subject.items)}
    facts["classes"] = f"{len(evaluation.labels):,}"
    links = {"stored report": address(subject.link), "run": address(subject.source)}
    return {
        "title": shown(subject.title),
        "verdict": headline(subject.gate),
        "tally": "" if subject.gate is None else summary(subject.gate),
        "answer": answer(comparison),
        "compared": "" if comparison is None else before,
        "baseline": shown(subject.baseline or "the baseline"),
        "evidence": after,
        "facts": [(name, shown(value)) for name, value in facts.items()],
        "links": [(name, link) for name, link in links.items() if link],
        "engine_version": subject.engine_version,
        "digest": subject.input_digest,
        "confidence": percent(evaluation.options.confidence),
    }


def term(index: Index) -> dict[str, Any]:
    """Say what an index means: its range and formula in words."""
    low, high = (bound(end) if abs(end) < float("inf") else "∞" for end in index.range)
    low = f"{MINUS}{low}" if low == "∞" else low
    best = "" if index.best is None else f", best {bound(index.best)}"
    return {
        "key": index.key,
        "anchor": f"{index.scope}-{index.key}",
        "name": index.name,
        "scope": "of a class" if index.scope == "class" else "overall",
        "range": f"{low} to {high}{best}",
        "description": index.description,
        "formula": formula(index.tex),
        "source": index.source,
    }


def _figure(measure: Measure, axis: Axis | None, *, words: bool = True) -> dict[str, Any]:
    """Put a measure into words, with its mark on an axis."""
    absent, change, moved = measure.value is None, measure.change, None
    reason = explained(measure.reason) if measure.reason else ""
    if change is not None and change.value is not None:
        judged = change.judged if words else ""
        moved = {"value": signed(change.value), "tone": change.tone, "judged": judged}
    elif change is not None and words:
        moved = {"value": explained(change.reason), "tone": "open", "judged": ""}
    return {
        "value": reason if absent and words else decimal(measure.value),
        "absent": absent,
        "interval": "" if measure.low is None else span(measure.low, measure.high),
        "why": "" if absent else reason,
        "mark": None if axis is None else mark_of(measure, axis),
        "change": moved,
        "signs": measure.marks,
        "remark": "; ".join(remark.text(_isolated) for remark in measure.remarks),
    }


def _isolated(label: str) -> str:
    return isolated(shown(label))


def _overall(measures: Measures, tiles: Sequence[Measure]) -> dict[str, Any]:
    headlines = _merged(tiles)
    # Without an upper bound a value, as a chi-square, would crowd all others at one end.
    bounded = [measure for measure in headlines if isfinite(measure.index.range[1])]
    axis = common_axis(bounded)
    every = measures.overall.values() if len(measures.overall) > len(tiles) else ()
    return {
        "headlines": [
            {"term": term(m.index), **_figure(m, axis if m in bounded else None)} for m in headlines
        ],
        "headline_axis": axis.ends,
        "legend": measures.legend(_isolated),
        "everything": [{"term": term(m.index), **_figure(m, None)} for m in every],
    }


def _merged(headlines: Sequence[Measure]) -> list[Measure]:
    """Show R' and accuracy as one where all their numbers are equal: no item is left out."""
    by_key = {measure.index.key: measure for measure in headlines}
    first, other = by_key.get("r_prime"), by_key.get("accuracy")
    if first is None or other is None or replace(other, index=first.index) != first:
        return list(headlines)
    both = replace(first, index=replace(first.index, name="R' = accuracy"))
    return [both if m is first else m for m in headlines if m is not other]


def _classes(measures: Measures, selection: ClassSelection) -> dict[str, Any]:
    """Return the table of classes, as far as it is asked for."""
    everything, order = ordered_classes(measures, selection)
    selected = selection.of(everything, lambda line: line.label)
    lines = selected.lines
    left_out = selected.found - len(lines) + measures.left_out
    entries = measures.class_indices
    axes = [common_axis(line.measures[i] for line in lines) for i in range(len(entries))]
    everywhere = "the JSON report and the CSV have them all"
    rest = "a request pages through them by its option classes" if measures.left_out else everywhere
    more = f"{plural(left_out, 'class')} more: {rest}."
    rows = []
    for line in lines:
        cells = [_figure(m, axis, words=False) for m, axis in zip(line.measures, axes, strict=True)]
        head = {"label": shown(line.label), "support": count(line.support)}
        rows.append({**head, "failing": line.failing, "cells": cells})
    return {
        "columns": [
            {"term": term(entry), "axis": axis.ends, "signs": name.removeprefix(entry.name)}
            for entry, axis, name in zip(entries, axes, measures.class_names, strict=True)
        ],
        "classes": rows,
        "support_name": measures.support_name,
        "classes_note": f"{plural(selected.found, 'class')}, {order}.",
        "classes_more": more if left_out else "",
        "selected": selected,
    }


def _attribution(name: str, attribution: Attribution) -> dict[str, Any]:
    kept, others = attribution.cells[:MOST_CELLS], attribution.cells[MOST_CELLS:]
    rest = (
        None
        if attribution.rest is None
        else attribution.rest + sum(cell.contribution for cell in others)
    )
    key, _, label = name.partition("/")
    index = find("class" if label else "overall", key)
    assert index is not None  # noqa: S101 (a key of the comparison)
    rows = [
        (shown_if_any(cell.true), shown_if_any(cell.predicted), signed(cell.contribution))
        for cell in kept
    ]
    title = index.name + (f" of {shown(label)}" if label else "")
    return {"title": title, "rows": rows, "rest": signed(rest)}


def slice_plot(
    table: SliceTable | None, lines: Sequence[SliceLine] | None = None
) -> dict[str, Any] | None:
    """Put slices into words and marks on one axis, each with the value of all items as a line.

    `lines` are shown on the axis of all slices; None: the weakest, on an axis of their own.
    """
    if table is None:
        return None
    around = table.weakest if lines is None else table.lines
    axis = common_axis([table.whole, *(line.measure for line in around)])
    against = None if table.whole.value is None else axis.at(table.whole.value)
    return {
        "term": term(table.index),
        "axis": axis.ends,
        "note": table.note if lines is None else f"{table.order}.{table.differing}",
        "columns": table.columns,
        "whole": decimal(table.whole.value),
        "rows": [
            (line, (mark := mark_of(line.measure, axis)) and replace(mark, against=against))
            for line in (table.weakest if lines is None else lines)
        ],
    }


DATA = "data/formulas.json"
"""Made by the build of `dashboard/script`."""


def formula(tex: str) -> Markup:
    """Return the MathML of a formula of the catalog; one that was not built yet stays TeX."""
    mathml = _built().get(tex)
    return Markup("<code>{}</code>").format(tex) if mathml is None else Markup(mathml)  # noqa: S704 (our own file)


@cache
def _built() -> dict[str, str]:
    formulas: dict[str, str] = orjson.loads(files("rprime").joinpath(DATA).read_bytes())
    return formulas
