"""Prepare an evaluation for the store: its baseline, its look and its record."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import orjson

from rprime import __version__
from rprime.application.assessment import Assessment, BaselineSide
from rprime.application.request import EvaluationRequest
from rprime.application.stored_options import StoreRequest
from rprime.core.comparison.alignment import Side
from rprime.core.evaluate import Evaluation
from rprime.core.items import Items
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.report.formats import FORMATS
from rprime.store import BaselineQuery, NewEvaluation, Store, StoredEvaluation, ids

SCORES_NOT_KEPT = Warning(
    "scores_not_kept",
    "",
    "Only the table is stored, not the scores. Indices of scores are in the first answer and its "
    "verdict, but in no later report, trend, leaderboard or comparison.",
    "docs/operations.md#what-the-store-keeps",
)


def needs_store(evaluation_request: EvaluationRequest) -> bool:
    """Whether `with_stored_baseline` must read the store."""
    assessment, store_request = evaluation_request.assessment, evaluation_request.store_request
    if assessment is None or store_request is None:
        return False
    return store_request.reference is not None or _counts(assessment)


def with_stored_baseline(evaluation_request: EvaluationRequest, store: Store) -> EvaluationRequest:
    """Look up the baseline and count the looks, if the request needs them. Blocks."""
    assessment, store_request = evaluation_request.assessment, evaluation_request.store_request
    if assessment is None or store_request is None:
        return evaluation_request
    if store_request.reference is not None:
        assessment = with_baseline(
            assessment, store, store_request.project, store_request.reference
        )
    if _counts(assessment):
        fingerprint = assessment.candidate.fingerprint or ""
        assessment = replace(assessment, look=store.looks(store_request.project, fingerprint) + 1)
    return replace(evaluation_request, assessment=assessment)


def at_look(evaluation_request: EvaluationRequest, look: int) -> EvaluationRequest:
    """Return the request with another number of its look."""
    assessment = evaluation_request.assessment
    return (
        evaluation_request
        if assessment is None
        else replace(evaluation_request, assessment=replace(assessment, look=look))
    )


def _counts(assessment: Assessment) -> bool:
    return assessment.gate is not None and assessment.candidate.fingerprint is not None


def with_baseline(
    assessment: Assessment, store: Store, project: str, query: BaselineQuery
) -> Assessment:
    """Add the stored baseline that a request names, or the reason why there is none."""
    found = store.baseline(project, query)
    if found.evaluation is None:
        return replace(assessment, missing=found.why)
    stored = found.evaluation
    baseline_side = BaselineSide(
        side=side_of_stored(stored, store, with_items=assessment.candidate.items is not None),
        requested={query.by: query.name},
        resolved=stored.id,
        why=found.why,
        identity=stored.id,
    )
    return replace(assessment, baseline_side=baseline_side)


def side_of_stored(stored: StoredEvaluation, store: Store, *, with_items: bool = True) -> Side:
    """Return a stored evaluation as a side of a comparison.

    Parameters
    ----------
    stored, store
        The evaluation and its store.
    with_items
        Whether to read its items.
    """
    items = store.items(stored.id) if with_items and stored.keeps_items else None
    return Side(
        labels=stored.labels,
        table=stored.table,
        items=items,
        fingerprint=stored.fingerprint,
        test_set=stored.test_set,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class PendingEvaluation:
    """An evaluation that is about to be stored.

    Parameters
    ----------
    evaluation_request
        The request after `with_stored_baseline`.
    store_request
        What the request stores beside the evidence.
    evaluation
        The evaluation of its evidence.
    id
        Its id in the store.
    """

    evaluation_request: EvaluationRequest
    store_request: StoreRequest
    evaluation: Evaluation
    id: str

    @cached_property
    def record(self) -> NewEvaluation:
        """The record for the store."""
        evaluation_request, given, assessment = (
            self.evaluation_request,
            self.store_request.given,
            self.evaluation_request.assessment,
        )
        declared, members = given.test_set, assessment.members if assessment else {}
        verdict = assessment.verdict if assessment else None
        return NewEvaluation(
            id=self.id,
            project=self.store_request.project,
            model=given.model,
            version=given.version,
            branch=given.branch,
            commit=given.commit,
            tags=tuple(given.tags or ()),
            test_set=declared.id if declared else None,
            fingerprint=evaluation_request.evidence.fingerprint
            or (declared.fingerprint if declared else None),
            labels=evaluation_request.evidence.labels,
            table=evaluation_request.evidence.table,
            items=self._items,
            input_digest=evaluation_request.evidence.input_digest,
            engine_version=__version__,
            options=self.store_request.asked,
            source=None if given.source is None else orjson.dumps(given.source),
            gate=members.get("gate"),
            comparison=members.get("comparison"),
            extras=self._extras,
            verdict=evaluation_request.verdict,
            waived=verdict is not None and any(r.verdict == "waived" for r in verdict.results),
            submission=self._submission,
            look=assessment.look if assessment and assessment.has_budget else None,
        )

    def report(self, *, with_table: bool = False) -> bytes:
        """Render the report, equal to a later one from the store."""
        return self.evaluation_request.report(
            self.evaluation, with_table=with_table, members=metadata_members(self.record)
        )

    @property
    def _items(self) -> Items | None:
        items = self.evaluation_request.evidence.items
        wanted = self.store_request.given.keep_items in {None, True}
        return items if wanted else None

    @property
    def _extras(self) -> bytes | None:
        """What a report needs beside the evidence."""
        assessment, items = (
            self.evaluation_request.assessment,
            self.evaluation_request.evidence.items,
        )
        extras: dict[str, Any] = {}
        if assessment is not None and assessment.warnings:
            extras["warnings"] = assessment.warnings
        if items is not None and items.groups is not None:
            extras["grouped"] = True
        if self.evaluation_request.evidence.scores is not None:
            extras["scored"] = True
        return orjson.dumps(extras) if extras else None

    @property
    def _submission(self) -> bytes:
        """The digest that recognises a repetition: names, evidence, options and baseline."""
        given, assessment = self.store_request.given, self.evaluation_request.assessment
        baseline_side = assessment.baseline_side if assessment else None
        declared = given.test_set
        identity = (
            given.model,
            given.version,
            declared and (declared.id, declared.fingerprint),
            self.evaluation_request.evidence.input_digest,
            None if baseline_side is None else baseline_side.identity,
        )
        digest = hashlib.blake2b(orjson.dumps(identity), digest_size=32)
        digest.update(self.store_request.asked)
        return digest.digest()


def metadata_members(found: NewEvaluation | StoredEvaluation) -> dict[str, bytes]:
    """Return the metadata members of a stored report, as JSON by name."""
    members: dict[str, Any] = {
        "id": found.id,
        "created_at": ids.created_at(found.id),
        "links": links_of(found.id, judged=found.verdict is not None),
        "project": found.project,
        "model": found.model,
        "version": found.version,
        "branch": found.branch,
        "commit": found.commit,
        "tags": found.tags or None,
        "test_set": _test_set(found),
    }
    known = {name: orjson.dumps(value) for name, value in members.items() if value is not None}
    return known if found.source is None else {**known, "source": found.source}


def links_of(identifier: str, *, judged: bool) -> Mapping[str, str]:
    """Return the paths of the resources of an evaluation."""
    place = f"/v1/evaluations/{identifier}"
    reports = {entry.name: f"{place}/report.{entry.suffix}" for entry in FORMATS}
    verdict = {"verdict": f"{place}/verdict"} if judged else {}
    return {"self": place, **verdict, **reports}


def _test_set(found: NewEvaluation | StoredEvaluation) -> dict[str, str] | None:
    given = {"id": found.test_set, "fingerprint": found.fingerprint}
    return {name: value for name, value in given.items() if value is not None} or None
