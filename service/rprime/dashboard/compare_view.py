"""Two stored evaluations, compared for their page."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

import numpy as np
import orjson
from pydantic import Field
from scipy.sparse import csr_array

from rprime.application.assessment import Assessment
from rprime.application.compare import assess
from rprime.application.population import stands_for_population
from rprime.application.stored_sides import VisibleHistory
from rprime.application.work import RemoteStore
from rprime.core.catalog import CLASS_INDICES
from rprime.dashboard.class_query import ClassQuery, slice_text
from rprime.dashboard.listings import listing_entry, pointing
from rprime.history.stored_report import stored_report
from rprime.problems.problem import Problem
from rprime.report.charts.axes import shown_class as named_class
from rprime.report.charts.confusion import HeatMap
from rprime.report.class_selection import ClassSelection
from rprime.report.heat_map import LEVELS
from rprime.report.marks import Axis, Mark
from rprime.report.measures import Change, class_changes
from rprime.report.slices import shown_slice
from rprime.report.subject import ReportSubject, read_comparison, read_gate
from rprime.report.text import MINUS, PLACES, bound, count, decimal, explained, shown, signed
from rprime.report.verdicts import compares, threshold
from rprime.report.view import term, view_of
from rprime.schemas.comparison import Comparison
from rprime.schemas.gate import Gate
from rprime.settings import Limits
from rprime.store import Store, StoredEvaluation

THE_ITEMS = "about the items, not about the population of the candidate's report"

RELATIVE = {"share_of_errors"}
"""Indices of a class that change with the errors of other classes."""


class CompareQuery(ClassQuery):
    """Which two evaluations, and which of their classes."""

    candidate: Annotated[str, Field(min_length=1, max_length=64)]
    baseline: Annotated[str, Field(min_length=1, max_length=64)]
    all: bool = False
    """Whether classes without any change are shown, too."""

    @property
    def given(self) -> dict[str, str]:
        """What a form hands on."""
        return {"candidate": self.candidate, "baseline": self.baseline, **super().given}

    def row(self, name: str) -> str:
        """Return the query of this page with the row of a class alone, as its links have it."""
        return f"{self.link(name=name, all=True)}#class-{quote(name)}"


def comparison_in_worker(
    _body: bytes,
    store: RemoteStore,
    *,
    query: CompareQuery,
    limits: Limits,
    may_use: Callable[[str], bool],
) -> dict[str, Any]:
    """Compare two stored evaluations in a worker, as `comparison_view`."""
    return comparison_view(query, limits, store.visible(may_use))


def comparison_view(
    query: CompareQuery, limits: Limits, visible_history: VisibleHistory
) -> dict[str, Any]:
    """Compare two stored evaluations as `POST /v1/compare` does, for the template. It reads.

    The rules are those of the gate that the candidate was stored with, if it had one. 404 if one of
    the two is not there for the caller.
    """
    candidate, baseline = map(visible_history.find, (query.candidate, query.baseline))
    if candidate is None or baseline is None:
        raise Problem("not_found", "One of the two evaluations is not there.")
    assessment = assess(_request(query, candidate), limits, visible_history, or_items=True)
    if query.family:
        options = replace(assessment.options, indices=None, families=query.families)
        assessment = replace(assessment, options=options)
    store, most = visible_history.open(), limits.top_confusions
    report = stored_report(candidate, store, most, query.slice)
    families = query.family_links(report.options)
    report = report.of_indices((), query.families)
    slices = store.slices(candidate)
    subject = report.at(assessment.options.population).subject
    assert assessment.baseline_side is not None  # noqa: S101 (it was found)
    candidate = replace(candidate, table=assessment.candidate.table)
    baseline = replace(baseline, table=assessment.baseline_side.side.table)
    aliases = pointing(store.aliases(baseline.project)).get(baseline.id, ())
    subject = _compared(subject, assessment, baseline, aliases)
    comparison = subject.comparison
    assert comparison is not None  # noqa: S101 (the baseline was found)
    view, comparable = view_of(subject), comparison.comparability != "different"
    moved = change_map(candidate, baseline) if comparable else None
    if moved is None:
        view["sections"] = [section for section in view["sections"] if section[0] != "confusion"]
    return {
        **view,
        "project": candidate.project,
        "candidate_entry": listing_entry(candidate),
        "baseline_entry": listing_entry(baseline),
        "changes": changes_of(comparison, subject.gate, query) if comparable else None,
        "asked": query,
        "families": families,
        "equal_shares": query.prevalence or _may_stand_for_equal_shares(assessment),
        "moved": moved,
        "flips": _flips(comparison),
        "slice": subject.slice,
        "population": assessment.population_text or (report.options.population and THE_ITEMS),
        "evaluations": _evaluations(store, candidate, baseline),
        "choice": [] if slices is None else [(slice_text(n), shown_slice(n)) for n in slices.names],
    }


def _evaluations(store: RemoteStore | Store, *sides: StoredEvaluation) -> list[dict[str, Any]]:
    """Return the evaluations to choose from: the newest of the project, and both sides."""
    newest = store.page(sides[0].project, limit=MOST_OFFERED).items
    entries = {summary.id: listing_entry(summary) for summary in newest}
    return list((entries | {side.id: listing_entry(side) for side in sides}).values())


def _compared(
    subject: ReportSubject,
    assessment: Assessment,
    baseline: StoredEvaluation,
    aliases: Sequence[str],
) -> ReportSubject:
    """Return the report of the candidate with the comparison of the page, not its own."""
    return replace(
        subject,
        evaluation=replace(subject.evaluation, warnings=assessment.warnings, slices=None),
        comparison=read_comparison(assessment.members["comparison"]),
        gate=read_gate(assessment.members.get("gate")),
        baseline=", ".join([listing_entry(baseline)["name"], *aliases]),
    )


def _may_stand_for_equal_shares(assessment: Assessment) -> bool:
    return stands_for_population(
        replace(assessment.candidate, slices=None),
        weighed=assessment.options.cell_weights is not None,
    )


def _request(query: CompareQuery, candidate: StoredEvaluation) -> bytes:
    """Ask for the comparison of a page; the rules are about all items, as they are."""
    rules, apart = orjson.loads(candidate.options).get("gates", {}), query.slice or query.prevalence
    members = {
        "candidate": {"evaluation": candidate.id},
        "baseline": {"evaluation": query.baseline},
        "slice": dict(query.slice),
        "prevalence": query.prevalence,
        # Compared with the baseline of the page alone.
        "gates": {} if apart else {name: rules[name] for name in rules if name != "anchor"},
    }
    return orjson.dumps({name: member for name, member in members.items() if member})


def changes_of(comparison: Comparison, gate: Gate | None, query: CompareQuery) -> dict[str, Any]:
    """Put the changes of the classes into words and marks, the surest losses first.

    `columns`, the indices, that of the order first; the `ends` of the axis of the first one, which
    is drawn; `rows`, a name and a change for each index; the `selection` and the `selected` page of
    classes; how many classes did not change (`same`), and whether rules have `limits`.
    """
    compared = next(iter(comparison.per_class.values()), {})
    keys = list(compared)
    limits = {} if gate is None else _limits(gate)
    ruled = {key for key, label in limits if label is not None}
    selection = query.selection
    # By itself the page shows first what a rule is about.
    keys.sort(key=lambda key: (key != selection.by, key not in ruled))
    if not selection.order and keys:
        selection = replace(selection, order=keys[0])
    by_index = {key: class_changes(comparison, key) for key in keys}
    labels = _ordered(comparison, by_index, selection)
    of_class = [key for key in keys if key not in RELATIVE] or keys
    differing = [
        label for label in labels if any(by_index[key][label].value != 0 for key in of_class)
    ]
    kept = labels if query.all else differing
    selected = selection.of(kept, str)
    first, *others = keys or [""]
    axis = _around_zero((by_index[first][label] for label in selected.lines), limits, first)
    rows = []
    for label in selected.lines:
        drawn = _drawn(by_index[first][label], axis, limits.get((first, label)))
        told = [_told(by_index[key][label]) for key in others]
        rows.append((label, shown(label), [drawn, *told]))
    return {
        "columns": [term(CLASS_INDICES[key]) for key in keys],
        "ends": axis.ends,
        "rows": rows,
        "selection": selection,
        "selected": selected,
        "same": len(labels) - len(differing),
        "limits": any((first, label) in limits for label in selected.lines),
    }


def _ordered(
    comparison: Comparison, by_index: dict[str, dict[str, Change]], selection: ClassSelection
) -> list[str]:
    """Sort the classes by the change of the first index, the surest loss first."""
    labels = list(comparison.per_class)
    if selection.by == "labels" or not by_index:
        return labels[:: -1 if selection.reversed else 1]
    key, changes = next(iter(by_index.items()))
    falling = CLASS_INDICES[key].higher_is_better is not False
    lowest = falling != selection.reversed
    return selection.sorted(
        labels, lambda label: changes[label].surest(lowest=lowest), lowest_first=falling
    )


def _limits(gate: Gate) -> dict[tuple[str | None, str | None], float]:
    """Return the limits of changes by index and class; of several rules the first one's."""
    return {
        (result.index, result.class_): threshold(result)
        for result in reversed(gate.results)
        if compares(result) and result.against == "baseline" and result.average_of is None
    }


def _around_zero(
    changes: Iterator[Change], limits: dict[tuple[str | None, str | None], float], key: str
) -> Axis:
    ends = [number for c in changes for number in (c.value, c.low, c.high) if number is not None]
    ends += [limit for (index, label), limit in limits.items() if index == key and label]
    widest = max(map(abs, ends), default=0.0)
    axis = Axis.around([-widest, widest])
    return Axis(-axis.high, axis.high) if axis.high > 0 else Axis(-1.0, 1.0)


def _drawn(change: Change, axis: Axis, limit: float | None) -> dict[str, Any]:
    """Put the change of the first index into words, with its mark around no change."""
    members = _told(change)
    if change.value is None:
        return members
    words = f"change {signed(change.value)}"
    words += f", interval {members['interval']}" if members["interval"] else ""
    words += "" if limit is None else f", limit {signed(limit)}"
    mark = Mark.of(axis, change.value, (change.low, change.high), limit, words)
    return members | {"mark": mark}


def _told(change: Change) -> dict[str, Any]:
    """Put a change into words; what its interval says only where that is a finding."""
    told = {"value": signed(change.value), "tone": change.tone, "judged": "", "interval": ""}
    if change.value is None:
        return told | {"judged": explained(change.reason), "mark": None}
    if change.low is not None:
        told["interval"] = f"[{signed(change.low)}, {signed(change.high)}]"
    judged = "" if change.judged in _NO_FINDINGS else change.judged
    return told | {"judged": judged, "mark": None}


def _flips(comparison: Comparison) -> list[tuple[str, str]]:
    """Say what changed item by item, as names and numbers; nothing where items are not known."""
    flips = comparison.flips
    if flips is None:
        return []
    facts = [
        ("Predictions that changed", count(flips.moved)),
        ("From right to wrong", count(flips.right_to_wrong)),
        ("From wrong to right", count(flips.wrong_to_right)),
    ]
    tests = [("McNemar test, p (candidate worse)", flips.mid_p)]
    if comparison.shift is not None:
        tests.append(("Bowker, p", comparison.shift.bowker.p_value))
        tests.append(("Stuart and Maxwell, p", comparison.shift.stuart_maxwell.p_value))
    smallest = 10.0**-PLACES
    few = f"below {decimal(smallest)}"
    return facts + [(n, few if p < smallest else decimal(p)) for n, p in tests if p is not None]


_NO_FINDINGS = ("no clear difference", "no interval")
MOST_OFFERED = 100
"""Evaluations to choose from."""
MOST_MAPPED = 15
"""Classes of the map of changes."""
DARKEST_CHANGE = 0.2
"""At least this change of a share is the darkest, so that no small one is."""


def change_map(candidate: StoredEvaluation, baseline: StoredEvaluation) -> dict[str, Any] | None:
    """Draw candidate minus baseline, cell by cell, in shares of the true class.

    The `heat` map; how many classes are `common` to both, how many of them are `shown`, those whose
    rows and columns moved most, and `darkest`, the change that is drawn darkest. None where nothing
    moved.
    """
    labels = [label for label in candidate.labels if label in set(baseline.labels)]
    after, before = (_shares(side, labels) for side in (candidate, baseline))
    moved = abs(after - before)
    total = moved.sum(axis=1) + moved[:, : len(labels)].sum(axis=0)
    places = np.sort(np.argsort(-total, kind="stable")[:MOST_MAPPED])
    places = places[total[places] > 0]
    if not places.size:
        return None
    tables = (candidate.table, baseline.table)
    silent = [len(labels)] if any(table.unclassified is not None for table in tables) else []
    cells = np.ix_(places, [*places, *silent])
    new, old = after.tocsr()[cells].toarray(), before.tocsr()[cells].toarray()
    darkest = max(float(abs(new - old).max()), DARKEST_CHANGE)
    change = new - old
    # Rounded, so that equal changes are equally dark.
    levels = np.ceil(np.round(LEVELS * np.abs(change) / darkest, 9))
    better = np.where(np.eye(*change.shape) > 0, change, -change)
    names = [named_class(labels[place]) for place in places]
    columns = [*names, *["unclassified"] * len(silent)]
    texts = [[_points(number) for number in row] for row in change.tolist()]
    number = {label: place for place, label in enumerate(candidate.labels)}
    items_of_class = candidate.table.class_items[[number[labels[place]] for place in places]]
    items = [count(n) for n in items_of_class.tolist()]
    heat = HeatMap(names, columns, levels * np.sign(better), texts, items, apart=bool(silent))
    return {"heat": heat, "darkest": bound(darkest), "common": len(labels), "shown": len(names)}


def _points(change: float) -> str:
    """Write a change of a share in points of per cent; nothing where there is none."""
    return f"{'+' if change > 0 else MINUS}{100 * abs(change):.1f}" if change else ""


def _shares(side: StoredEvaluation, labels: list[str]) -> csr_array:
    """Return shares of the true class, shape (k, k + 1); unclassified items are the last column."""
    table, k = side.table, len(labels)
    numbers = {label: i for i, label in enumerate(labels)}
    number = np.array([numbers.get(label, -1) for label in side.labels])
    rows, columns, items = table.cells.coordinates()
    if table.unclassified is not None:
        rows = np.concatenate((rows, np.arange(number.size)))
        columns = np.concatenate((columns, np.full(number.size, number.size)))
        items = np.concatenate((items, table.unclassified))
    true, predicted = number[rows], np.append(number, k)[columns]
    kept = (true >= 0) & (predicted >= 0) & (items > 0)
    shares = items[kept] / table.support[rows[kept]]
    return csr_array((shares, (true[kept], predicted[kept])), shape=(k, k + 1))
