"""From the bytes of a request to compare to its answer."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from rprime import __version__, evidence
from rprime.application import request
from rprime.application.assessment import Assessment, side_of
from rprime.application.changed_items import ChangedItemsPage
from rprime.application.population import refuse_evidence
from rprime.application.stored_sides import comparison_options, stored_prevalence_of
from rprime.application.work import RemoteStore
from rprime.core.comparison.alignment import Side, comparability
from rprime.core.index_names import nearest_slices
from rprime.core.options import DEFAULT_PAGE_VALUES, Options
from rprime.core.population import Population
from rprime.core.selection import select
from rprime.core.slices.comparison import side_of_slice, sides_of_slice
from rprime.core.slices.slices import Slice
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.evidence import Evidence
from rprime.problems.problem import Problem, Violation, refuse
from rprime.report.comparison import CELLS, comparison_of_classes, gate_excerpt
from rprime.report.document import MOST_COMPARED_VALUES, REPORT_VERSION, WARNINGS
from rprime.schemas.document import Body, Document, parse
from rprime.schemas.provenance import ResolvedSide
from rprime.schemas.request import ComparisonRest
from rprime.schemas.violations import validated
from rprime.settings import Limits

if TYPE_CHECKING:
    # Who compares in-process has no history, and needs no database for it.
    from rprime.application.stored_sides import VisibleHistory
    from rprime.store import StoredEvaluation

PARTS = ("candidate", "baseline", "options")
SLICES_APART = Warning(
    "slices_not_compared",
    "/comparison/slices",
    "The slices have other shares of the classes, so they are not compared at equal shares all at "
    "once: choose one of them by `slice`, or leave `prevalence` out.",
    "docs/slices.md",
)


def compare_request(body: Body, limits: Limits) -> bytes:
    """Compare the evidence of a request; the answer as JSON."""
    return render_assessment(assess(body, limits, None))


def _answered(assessment: Assessment) -> tuple[bytes, str | None]:
    return render_assessment(assessment), assessment.verdict.verdict if assessment.verdict else None


def compare_in_worker(
    body: bytes, store: RemoteStore, *, limits: Limits, may_use: Callable[[str], bool]
) -> tuple[bytes, str | None]:
    """Compare as `compare_request`, with what the caller may see of the store of the service."""
    assessment = assess(body, limits, store.visible(may_use))
    _refuse_large(assessment)
    return _answered(assessment)


def _refuse_large(assessment: Assessment) -> None:
    """Refuse a comparison of more values of classes than a report shows unasked."""
    baseline = assessment.baseline_side
    sides = [assessment.candidate, *(() if baseline is None else (baseline.side,))]
    k = max(len(side.labels) for side in sides)
    scored = assessment.candidate.scores is not None
    indices = select(assessment.compared, scored=scored).reported
    if k * indices > DEFAULT_PAGE_VALUES:
        detail = (
            f"A comparison has at most {DEFAULT_PAGE_VALUES:,} values of classes, and each of the "
            f"{k:,} classes has {indices}: name at most {DEFAULT_PAGE_VALUES // k} `indices` of "
            "classes in `options`, or merge classes."
        )
        raise refuse("/options/indices", "too_many_values", detail)


def render_assessment(assessment: Assessment) -> bytes:
    """Render a comparison as the JSON document of the contract."""
    members = {
        "report_version": REPORT_VERSION,
        "gate": b"",
        "candidate": _named(assessment),
        **_excerpts(assessment),
        "warnings": orjson.dumps(assessment.warnings, **WARNINGS),
        "slice": orjson.dumps(dict(assessment.slice) or None),
        "population": orjson.dumps(assessment.population_text),
        "engine_version": orjson.dumps(__version__),
    }
    return b"{%b}" % b",".join(b'"%b":%b' % (k.encode(), v) for k, v in members.items() if v)


def _named(assessment: Assessment) -> bytes:
    named = assessment.named
    return b"" if named is None else orjson.dumps(named.model_dump())


def _excerpts(assessment: Assessment) -> dict[str, bytes]:
    """Return the comparison and the verdict as far as an answer shows them unasked."""
    members, candidate = dict(assessment.members), assessment.candidate
    fitting = MOST_COMPARED_VALUES // max(select(assessment.compared).reported, 1)
    compared = assessment.compared_members(CELLS)
    if compared is not None and len(candidate.labels) > fitting:
        order = np.argsort(-candidate.table.support, kind="stable")[:fitting].tolist()
        labels = [candidate.labels[place] for place in order]
        members["comparison"] = orjson.dumps(comparison_of_classes(compared, labels))
    if "gate" in members and not assessment.every_result:
        members["gate"] = gate_excerpt(members["gate"])
    return members


@dataclass(frozen=True)
class CandidateSide:
    """One side: evidence from the request, or an evaluation of the history."""

    side: Side
    evidence: Evidence | None = None
    stored: "StoredEvaluation | None" = None
    resolved: ResolvedSide | None = None


def assess(
    body: Body, limits: Limits, history: "VisibleHistory | None", *, or_items: bool = False
) -> Assessment:
    """Read a request as `compare_request` does, and find its sides.

    With `or_items` the items are compared where the baseline lacks a class of the population that
    a stored candidate is about.
    """
    document = parse(body, limits.json_depth, PARTS, ())
    errors: list[Violation] = []
    rest = validated(ComparisonRest, document, errors)
    if rest is None or not {"candidate", "baseline"} <= document.inner.keys():
        raise Problem("invalid_request", errors=errors)
    candidate = _candidate(rest, document.inner["candidate"], limits, history)
    matrices: dict[str, Any] = {}
    other_side = None
    try:
        if "options" in document.inner:
            size = len(candidate.side.labels)
            matrices = evidence.read_matrices(document.inner["options"], size)
        other_side = _other_side(rest, document, candidate, limits)
    except Problem as problem:
        errors.extend(problem.errors)
    if errors:
        raise Problem("invalid_request", errors=errors)
    custom = request.custom_of(rest.options.custom or {}, candidate.side.labels, "/options")
    request.refuse_unknown_custom(rest.options, "/options/indices")
    options = rest.options.into(
        Options,
        average_over=request.averaged_classes(rest.options, candidate.side.labels, "/options"),
        top_confusions=limits.top_confusions,
        custom=custom,
        **matrices,
    )
    of_slices: tuple[str, ...] = ()
    if candidate.stored is not None and "options" not in document.inner:
        options, of_slices = comparison_options(candidate.stored.options, limits.top_confusions)
    assessment = Assessment(
        candidate=candidate.side,
        baseline_side=request.baseline_side_of(other_side, rest.baseline, candidate.side, options),
        options=options,
        gate=None if rest.gates is None else request.gate_of(rest.gates, options),
        notes=request.notes_of(candidate.evidence, other_side),
        every_result=rest.gates is not None and rest.gates.results == "all",
        slice_indices=of_slices,
        named=candidate.resolved,
        changed_items=ChangedItemsPage.of(rest.changed_items, candidate.evidence, other_side),
    )
    assessment = _with_stored_sides(assessment, rest, candidate, history)
    if rest.slice:
        assessment = _at_slice(assessment, rest.slice)
    if rest.prevalence is not None:
        return _at_equal_shares(assessment)
    stored = candidate.stored
    return assessment if stored is None else _at_prevalence(assessment, stored, or_items=or_items)


def _with_stored_sides(
    assessment: Assessment,
    rest: ComparisonRest,
    candidate: CandidateSide,
    history: "VisibleHistory | None",
) -> Assessment:
    """Add the stored baseline and the stored anchor that a request names."""
    named = (request.reference_of(rest.baseline), request.anchor_of(rest.gates))
    for query, place in zip(named, ("/baseline", "/gates/anchor"), strict=True):
        if query is not None:
            from rprime.application.stored_sides import with_side  # noqa: PLC0415 (see above)

            history, anchor = _opened(history), place != "/baseline"
            sought_for = history.sought_for(candidate.stored, query, place)
            assessment = with_side(
                assessment, history.open(), sought_for, query, anchor=anchor, must_exist=not anchor
            )
    return assessment


def _at_prevalence(
    assessment: Assessment, stored: "StoredEvaluation", *, or_items: bool
) -> Assessment:
    """Compare at the prevalence that a stored candidate is about, if it is about one."""
    try:
        return assessment.about(stored_prevalence_of(stored.options))
    except Problem:
        if not or_items:
            raise
        return assessment


def _at_equal_shares(assessment: Assessment) -> Assessment:
    """Compare at equal shares of the candidate's classes, without the slices, which have others."""
    whole, gate, notes = assessment.candidate, assessment.gate, assessment.notes
    side, options = replace(whole, slices=None), assessment.options
    refuse_evidence(side, weighed=options.cell_weights is not None)
    for i, rule in enumerate(() if gate is None else gate.rules):
        if rule.slices is not None:
            detail = "A rule about slices is judged without `prevalence`, or with their `slice`."
            raise refuse(f"/gates/rules/{i}/slices", "not_with_population", detail)
    notes += () if whole.slices is None else (SLICES_APART,)
    assessment = replace(assessment, candidate=side, notes=notes)
    return assessment.about(Population.uniform(side.table))


def _at_slice(assessment: Assessment, slice_: Slice) -> Assessment:
    """Keep only the items of a slice on each side; 422 if a side has no such slice."""
    whole = assessment.candidate
    changed: dict[str, Any] = {"slice": slice_, "candidate": side_of_slice(whole, slice_)}
    lacking = [whole] if changed["candidate"] is None else []
    for name in ("baseline_side", "anchor_side"):
        if (baseline_side := getattr(assessment, name)) is not None:
            other = baseline_side.side
            same = whole.labels == other.labels and comparability(whole, other) == "same_items"
            # With ids, items that are in the slice on one side alone are known to be missing.
            same = same and (whole.items is None or whole.items.ids is None)
            _, side = sides_of_slice(whole, other, slice_, same_items=same)
            changed[name] = replace(baseline_side, side=side)
            lacking += [other] if side is None else []
    if lacking:
        names = () if lacking[0].slices is None else lacking[0].slices.names
        detail = "One of the sides has no such slice." + nearest_slices(dict(slice_), names)
        raise refuse("/slice", "unknown_slice", detail)
    return replace(assessment, **changed)


def _candidate(
    rest: ComparisonRest, source: Document, limits: Limits, history: "VisibleHistory | None"
) -> CandidateSide:
    query = None
    if request.is_reference(source):
        query = request.reference_of(rest.candidate)
    if query is None:
        read = evidence.read(source, limits)
        return CandidateSide(side_of(read, rest.candidate.test_set), evidence=read)
    history = _opened(history)
    stored, why = history.candidate(query)
    from rprime.application.stored_sides import side_of_stored  # noqa: PLC0415 (see above)

    return CandidateSide(
        side_of_stored(stored, history.open()),
        stored=stored,
        resolved=ResolvedSide(requested=query.requested, resolved=stored.id, why=why),
    )


def _other_side(
    rest: ComparisonRest, document: Document, candidate: CandidateSide, limits: Limits
) -> Evidence | None:
    """Read the baseline; None where it is in the history."""
    source, other = document.inner["candidate"], document.inner["baseline"]
    if request.is_reference(other) or rest.baseline.ways:
        return None
    if candidate.evidence is None:
        return evidence.read(other, limits)
    return evidence.read_baseline(other, source, candidate.evidence, limits)


def _opened(history: "VisibleHistory | None") -> "VisibleHistory":
    if history is None:
        raise Problem("no_store")
    return history
