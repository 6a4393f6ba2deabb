"""From the bytes of a request to compare to its answer."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson

from rprime import __version__, evidence
from rprime.core.comparison.alignment import Side
from rprime.evidence import Document, Evidence
from rprime.inquiry.reading import (
    Faults,
    Refusals,
    class_limits,
    gate_of,
    is_reference,
    opponent,
    reference_of,
)
from rprime.inquiry.review import Review, side_of
from rprime.problems import Problem, Violation
from rprime.schemas.request import ComparisonRest
from rprime.settings import Limits

if TYPE_CHECKING:
    # Who compares in-process has no history, and needs no database for it.
    from rprime.inquiry.archive import Archive
    from rprime.store import Evaluation

PARTS = ("candidate", "baseline", "options")


def answer_comparison(
    body: bytes, limits: Limits, archive: "Archive | None" = None
) -> tuple[bytes, str | None]:
    """Compare what a request asks for.

    Parameters
    ----------
    body
        JSON, UTF-8.
    limits
        What a request may cost.
    archive
        The history; None: there is none.

    Returns
    -------
    The answer, JSON; and the verdict of the gate, where there is one.

    Raises
    ------
    Problem
        400, 409 or 422.
    """
    review = _review(body, limits, archive)
    return render_review(review), review.verdict.verdict if review.verdict else None


def render_review(review: Review) -> bytes:
    """Render a comparison as the JSON document of the contract."""
    members = {"engine_version": orjson.dumps(__version__), **review.members}
    members["warnings"] = orjson.dumps(review.warnings)
    return b"{%b}" % b",".join(b'"%b":%b' % (k.encode(), v) for k, v in members.items())


@dataclass(frozen=True)
class Candidate:
    """One side: evidence from the request, or an evaluation of the history."""

    side: Side
    evidence: Evidence | None = None
    kept: "Evaluation | None" = None


def _review(body: bytes, limits: Limits, archive: "Archive | None") -> Review:
    with Refusals():
        document = evidence.parse(body, limits.json_depth, PARTS)
    faults = Faults(document)
    wanted = faults.validated(ComparisonRest)
    if wanted is None or not {"candidate", "baseline"} <= document.inner.keys():
        faults.refuse()
        raise Problem("invalid_request")
    candidate = _candidate(wanted, document.inner["candidate"], faults, limits, archive)
    matrices: Any = {}
    if "options" in document.inner:
        size = len(candidate.side.labels)
        matrices = faults.read(lambda: evidence.read_matrices(document.inner["options"], size))
    opposing = _opposing(wanted, document, candidate, faults, limits)
    faults.refuse()
    options = wanted.options.options(matrices, limits.top_confusions)
    review = Review(
        candidate=candidate.side,
        opponent=None,
        options=options,
        gate=gate_of(wanted.gates, options),
    )
    if opposing is not None:
        return replace(review, opponent=opponent(opposing, wanted.baseline))
    return _from_history(review, candidate, wanted, archive)


def _candidate(
    wanted: ComparisonRest,
    source: Document,
    faults: Faults,
    limits: Limits,
    archive: "Archive | None",
) -> Candidate:
    identifier = wanted.candidate.evaluation
    if identifier is None:
        read = faults.read(lambda: evidence.read(source, class_limits(limits)))
        faults.refuse()
        assert read is not None  # noqa: S101 (nothing was refused)
        return Candidate(side_of(read, wanted.candidate.test_set), evidence=read)
    if len(source.names) > 1:
        raise _refusal("/candidate", "several_kinds", "A stored evaluation stands alone.")
    archive = _opened(archive)
    kept = archive.find(identifier)
    if kept is None:
        raise _refusal("/candidate/evaluation", "unknown_evaluation", "There is no such one.")
    return Candidate(archive.side(kept), kept=kept)


def _opposing(
    wanted: ComparisonRest,
    document: Document,
    candidate: Candidate,
    faults: Faults,
    limits: Limits,
) -> Evidence | None:
    """Read the baseline; None where it is in the history, or wrong."""
    source, other = document.inner["candidate"], document.inner["baseline"]
    if is_reference(other, faults) or wanted.baseline.ways:
        return None
    if candidate.evidence is None:
        return faults.read(lambda: evidence.read(other, class_limits(limits)))
    read = candidate.evidence
    return faults.read(lambda: evidence.read_baseline(other, source, read, class_limits(limits)))


def _from_history(
    review: Review, candidate: Candidate, wanted: ComparisonRest, archive: "Archive | None"
) -> Review:
    """Look the baseline up: by its id, or by a name in the project of the candidate."""
    query = reference_of(wanted.baseline)
    assert query is not None  # noqa: S101 (it is no evidence)
    archive = _opened(archive)
    project = None if candidate.kept is None else candidate.kept.project
    if query.by == "evaluation":
        found = archive.find(query.name)
        if found is None:
            return replace(review, missing="There is no evaluation with this id.")
        project = found.project
    if project is None:
        detail = "A name is looked up in the project of a stored candidate; else give an id."
        raise _refusal("/baseline", "needs_project", detail)
    return archive.opposed(review, project, query)


def _opened(archive: "Archive | None") -> "Archive":
    if archive is None:
        raise Problem("no_store")
    return archive


def _refusal(pointer: str, code: str, detail: str) -> Problem:
    return Problem("invalid_request", errors=[Violation(pointer, code, detail)])
