"""Prepare an evaluation for the store: its baseline, its look and its record."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import orjson

from rprime import __version__
from rprime.application.assessment import Assessment
from rprime.application.population import stored_prevalence
from rprime.application.request import EvaluationRequest
from rprime.application.stored_sides import (
    StoreRequest,
    stored_prevalence_of,
    with_options,
    with_side,
)
from rprime.core.evaluate import Evaluation, kept_scores
from rprime.core.scores.curves import ScoreSummary
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.history.stored_values import kept_with
from rprime.problems.problem import Problem, Violation, rooted
from rprime.report.formats import FORMATS
from rprime.report.subject import ReportSubject
from rprime.schemas.document import from_json
from rprime.schemas.provenance import ORIGIN
from rprime.store import EvaluationMissingError, NewEvaluation, Store, StoredEvaluation, ids, new_id
from rprime.store.baselines import Candidate
from rprime.store.packing import fits, write_score_values

SCORES_NOT_KEPT = Warning(
    "scores_not_kept",
    "",
    "The scores are not stored, but the overall indices of scores are, with their intervals. Those "
    "of classes are in the first answer only, and a later comparison of scores is not paired. "
    "With `curves` the curves are stored, too.",
    "docs/operations.md#what-the-store-keeps",
)
SLICES_NOT_KEPT = Warning(
    "slices_not_kept",
    "/slices",
    "The slices are not stored, since the project forbids it or they take more than 2 MiB: they "
    "are in the first answer only.",
    "docs/slices.md#what-is-stored",
)


_FIRST = ("project", "model", "version", "branch", "commit")
"""The origin of version 2, whose order in stored digests never changes."""


def store_warnings(project: str, *, scored: bool, sliced: bool, first: bool) -> tuple[Warning, ...]:
    """Return the warnings about how an evaluation is stored.

    They say that its scores or its slices are not, or that the project is new, which a misspelt one
    is, too.
    """
    text = (
        f"This is the first evaluation of project `{project}`. If you stored some before, they are "
        "in a project of another name."
    )
    begun = Warning("first_evaluation", "/project", text, "docs/gates.md#baselines")
    conditions = {SCORES_NOT_KEPT: scored, SLICES_NOT_KEPT: sliced, begun: first}
    return tuple(warning for warning, holds in conditions.items() if holds)


def needs_store(evaluation_request: EvaluationRequest, store: Store) -> bool:
    """Whether `with_stored_baseline` must read the store."""
    assessment, store_request = evaluation_request.assessment, evaluation_request.store_request
    if store_request is None:
        return False
    references = (store_request.reference, store_request.anchor, store_request.prevalence_of)
    if any(references) or not store.has_begun(store_request.project):
        return True
    if evaluation_request.evidence.slices is not None:  # whose setting is read
        return True
    return assessment is not None and _counts(assessment)


def with_stored_baseline(evaluation_request: EvaluationRequest, store: Store) -> EvaluationRequest:
    """Look up what the request needs of the history: baseline, looks, whether it begins. Blocks."""
    assessment, store_request = evaluation_request.assessment, evaluation_request.store_request
    if store_request is None:
        return evaluation_request
    project, slices = store_request.project, evaluation_request.evidence.slices
    keeps = slices is not None and fits(slices) and store.setting(project, "keeps_slices")
    store_request = replace(
        store_request, id=new_id(), is_first=store.is_empty(project), keeps_slices=keeps
    )
    request, digest = evaluation_request.given, evaluation_request.evidence.input_digest
    candidate = Candidate(project, request.model, store_request.id, request.commit, digest)
    evaluation_request = replace(evaluation_request, store_request=store_request)
    if store_request.prevalence_of is not None:
        evaluation_request = _with_prevalence(evaluation_request, store, store_request)
        assessment = evaluation_request.assessment
    for query, anchor in ((store_request.reference, False), (store_request.anchor, True)):
        if assessment is not None and query is not None:
            assessment = with_side(assessment, store, candidate, query, anchor=anchor)
    if assessment is not None and _counts(assessment):
        fingerprint = assessment.candidate.fingerprint or ""
        assessment = replace(assessment, look=store.next_look(project, fingerprint, digest))
    return replace(evaluation_request, assessment=assessment)


def _with_prevalence(
    evaluation_request: EvaluationRequest, store: Store, store_request: StoreRequest
) -> EvaluationRequest:
    """Set the population to the prevalence in the stored evaluation that the request names."""
    identifier = store_request.prevalence_of or ""
    try:
        stored = store.get(identifier)
    except EvaluationMissingError:
        stored = None
    if stored is None or stored.project != store_request.project:
        place, detail = "/population/prevalence/evaluation", "The project has no such evaluation."
        violation = Violation(place, "baseline_not_found", detail)
        raise Problem("baseline_not_found", detail, errors=[violation])
    about = stored_prevalence_of(stored.options)
    counts = stored.table.support if about is None else about.shares
    population = stored_prevalence(identifier, (stored.labels, counts), evaluation_request.evidence)
    options = replace(evaluation_request.options, population=population)
    assessment = evaluation_request.assessment
    if assessment is not None:
        assessment = replace(assessment.about(population), options=options)
    content = with_options(store_request.asked, options)
    store_request = replace(store_request, asked=content)
    changed = replace(evaluation_request, options=options, assessment=assessment)
    return replace(changed, store_request=store_request)


def _counts(assessment: Assessment) -> bool:
    return assessment.gate is not None and assessment.candidate.fingerprint is not None


@dataclass(frozen=True, eq=False)
class PendingEvaluation:
    """An evaluation that is about to be stored, of a request after `with_stored_baseline`."""

    evaluation_request: EvaluationRequest
    store_request: StoreRequest
    evaluation: Evaluation
    id: str

    @classmethod
    def of(cls, evaluation_request: EvaluationRequest, evaluation: Evaluation) -> Self:
        """Make the evaluation to be stored, with a new id if it has none."""
        store_request, evidence = evaluation_request.store_request, evaluation_request.evidence
        assert store_request is not None  # noqa: S101 (callers check it)
        scored, first = evidence.scores is not None, store_request.is_first
        sliced = evidence.slices is not None and not store_request.keeps_slices
        added = store_warnings(store_request.project, scored=scored, sliced=sliced, first=first)
        evaluation = replace(evaluation, warnings=evaluation.warnings + added)
        return cls(evaluation_request, store_request, evaluation, store_request.id or new_id())

    def at_look(self, look: int) -> Self:
        """Return the evaluation with another number of its look."""
        evaluation_request = self.evaluation_request
        if evaluation_request.assessment is None:
            return self
        assessment = replace(evaluation_request.assessment, look=look)
        return replace(self, evaluation_request=replace(evaluation_request, assessment=assessment))

    @cached_property
    def record(self) -> NewEvaluation:
        """The record for the store."""
        request, evidence = self.evaluation_request.given, self.evaluation_request.evidence
        assessment, scores = self.evaluation_request.assessment, self.evaluation.values.scores
        declared, members = request.test_set, assessment.members if assessment else {}
        verdict = assessment.verdict if assessment else None
        kept, options = kept_scores(self.evaluation, evidence.items), self.evaluation.options
        return NewEvaluation(
            id=self.id,
            **{name: getattr(request, name) for name in ORIGIN},
            tags=tuple(request.tags or ()),
            test_set=declared.id if declared else None,
            fingerprint=evidence.fingerprint or (declared.fingerprint if declared else None),
            labels=evidence.labels,
            table=evidence.table,
            items=evidence.items if request.keep_items in {None, True} else None,
            scores=ScoreSummary.of(scores, options.calibration)
            if scores and options.curves
            else None,
            slices=evidence.slices if self.store_request.keeps_slices else None,
            input_digest=evidence.input_digest,
            engine_version=__version__,
            options=self.store_request.asked,
            source=None if request.source is None else orjson.dumps(request.source),
            gate=members.get("gate"),
            comparison=self._comparison(members.get("comparison")),
            extras=self._extras,
            score_values=None if kept is None else write_score_values(kept),
            verdict=self.evaluation_request.verdict,
            waived=verdict is not None and any(r.verdict == "waived" for r in verdict.results),
            submission=self._submission,
            look=assessment.look if assessment and assessment.counts_looks else None,
        )

    def already(self, stored: StoredEvaluation) -> Warning:
        """Say which equal evaluation is stored already, and what it lacks."""
        new = self.record
        lacks = {
            "these `tags`": not {*new.tags} <= {*stored.tags},
            "its items": new.items is not None and not stored.keeps_items,
            "this `source`": new.source not in {None, stored.source},
        }
        parts = " and ".join(name for name, holds in lacks.items() if holds)
        rest = f" without {parts}, and stays so: delete it to store it anew" if parts else ""
        detail = f"This evaluation is stored already, as {stored.id}{rest}."
        return Warning("already_stored", "", detail, "docs/http-api.md#storing")

    @property
    def listed(self) -> dict[str, bytes]:
        """The members of the answer that are not stored."""
        assessment = self.evaluation_request.assessment
        members = assessment.members if assessment else {}
        return {name: members[name] for name in ("changed_items",) if name in members}

    def report(self, *, include: Collection[str] = ()) -> bytes:
        """Render the report, equal to a later one from the store."""
        return self.evaluation_request.report(
            self.evaluation, include=include, members=metadata_members(self.record)
        )

    @property
    def subject(self) -> ReportSubject:
        """What a rendering shows of it."""
        subject = self.evaluation_request.subject(self.evaluation)
        return replace(subject, id=self.id, created_at=ids.created_at(self.id))

    def _comparison(self, content: bytes | None) -> bytes | None:
        """Return a comparison as it is stored: without slices that are not kept."""
        if content is None or self.store_request.keeps_slices or b'"slices"' not in content:
            return content
        document = from_json(content)
        return orjson.dumps({name: document[name] for name in document if name != "slices"})

    @property
    def _extras(self) -> bytes | None:
        """What a report needs beside the evidence."""
        assessment, evidence = self.evaluation_request.assessment, self.evaluation_request.evidence
        options = self.evaluation_request.options
        extras: dict[str, Any] = {}
        if warnings := (assessment or evidence).warnings:
            extras["warnings"] = [warning.document for warning in warnings]
        if evidence.items is not None and evidence.items.groups is not None:
            extras["grouped"] = True
        if evidence.table.items is not None:  # numbers that no later reader sees in the weights
            extras["items"] = evidence.table.items.astype(np.int64).tolist()
        if assessment is not None and assessment.gate and not assessment.is_comparable:
            extras["not_comparable"] = True
        if assessment is not None and assessment.anchor_side is not None:
            extras["anchor"] = assessment.anchor_side.resolved
        if evidence.scores is not None:
            extras["scored"] = True
            extras |= {"curves": True} if options.curves else {}
        if evidence.slices is not None:
            extras["sliced"] = self.store_request.keeps_slices
        if options.population is not None:
            extras["population"] = kept_with(options.population)
        if self.store_request.is_first:
            extras["first"] = True
        return orjson.dumps(extras) if extras else None

    @property
    def _submission(self) -> bytes:
        """The digest that recognises a repetition: names, evidence, options and baseline."""
        request, assessment = self.evaluation_request.given, self.evaluation_request.assessment
        sides = (assessment.baseline_side, assessment.anchor_side) if assessment else ()
        queries = (self.store_request.reference, self.store_request.anchor)
        missing = (
            query.requested
            for query, side in zip(queries, sides, strict=False)
            if query is not None and side is None
        )
        declared = request.test_set
        # Names that came later are added only if they were sent: stored digests stay as they are.
        later = ((name, getattr(request, name)) for name in ORIGIN if name not in _FIRST)
        identity = (
            *(getattr(request, name) for name in _FIRST[1:]),
            declared and (declared.id, declared.fingerprint),
            self.evaluation_request.evidence.input_digest,
            *(None if side is None else side.identity for side in sides),
            *missing,
            *(pair for pair in later if pair[1] is not None),
        )
        digest = hashlib.blake2b(orjson.dumps(identity), digest_size=32)
        digest.update(self.store_request.asked)
        return digest.digest()


def metadata_members(evaluation: NewEvaluation | StoredEvaluation) -> dict[str, bytes]:
    """Return the metadata members of a stored report, as JSON by name."""
    declared = {"id": evaluation.test_set, "fingerprint": evaluation.fingerprint}
    members: dict[str, Any] = {
        "id": evaluation.id,
        "created_at": ids.created_at(evaluation.id),
        "links": links_of(evaluation.id, judged=evaluation.verdict is not None),
        **{name: getattr(evaluation, name) for name in ORIGIN},
        "tags": evaluation.tags or None,
        "test_set": {name: value for name, value in declared.items() if value is not None} or None,
    }
    content = {name: orjson.dumps(value) for name, value in members.items() if value is not None}
    return content if evaluation.source is None else {**content, "source": evaluation.source}


def links_of(identifier: str, *, judged: bool) -> Mapping[str, str]:
    """Return the paths of the resources of an evaluation."""
    place = rooted(f"/v1/evaluations/{identifier}")
    reports = {entry.name: f"{place}/report.{entry.suffix}" for entry in FORMATS}
    verdict = {"verdict": f"{place}/verdict"} if judged else {}
    return {"self": place, **verdict, **reports}
