"""Stored evaluations as sides of a comparison, and those that a caller may see."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson

from rprime.application.assessment import Assessment, BaselineSide
from rprime.application.stored_options import stored_prevalence_of
from rprime.core.comparison.alignment import Side
from rprime.core.scores.kept import KeptScores
from rprime.core.slices.slices import Slice
from rprime.core.suggestions import nearest_names
from rprime.core.table import ConfusionTable
from rprime.problems.problem import Problem, Violation, pointer, refuse
from rprime.report.subject import evaluation_name
from rprime.store import EvaluationMissingError, Store, StoredEvaluation, is_id
from rprime.store.baselines import BaselineNotFoundError, BaselineQuery, Candidate
from rprime.store.errors import decoding
from rprime.store.score_values import read_score_values


@dataclass(frozen=True)
class VisibleHistory:
    """The stored evaluations of the projects that a caller may use.

    To open the store raises a problem without one.
    """

    open: Callable[[], Store]
    may_use: Callable[[str], bool]

    def find(self, identifier: str) -> StoredEvaluation | None:
        """Read an evaluation; None if the caller may not see it. Blocks."""
        store = self.open()
        try:
            stored = store.get(identifier) if is_id(identifier) else None
        except EvaluationMissingError:
            return None
        return stored if stored is not None and self.may_use(stored.project) else None

    def candidate(self, query: BaselineQuery) -> tuple[StoredEvaluation, str]:
        """Return the evaluation that a candidate names, and why it is this one. Blocks."""
        project = self._project(query, None, "/candidate", "candidate_not_found")
        try:
            resolved = self.open().baseline(Candidate(project, is_sought=True), query)
        except BaselineNotFoundError as error:
            raise _absent("/candidate", query.by, "candidate_not_found", str(error)) from None
        if resolved.evaluation is None:
            raise _absent("/candidate", query.by, "candidate_not_found", resolved.why)
        return resolved.evaluation, resolved.why

    def sought_for(
        self, stored: StoredEvaluation | None, query: BaselineQuery, place: str
    ) -> Candidate:
        """Return what to look a baseline up for: in a project of its own, or the candidate's."""
        default = None if stored is None else stored.project
        project = self._project(query, default, place, "baseline_not_found")
        if stored is None or query.by == "evaluation":
            return Candidate(project)
        run = stored.id, stored.commit, stored.input_digest
        return Candidate(stored.project, stored.model, *run)

    def nearest(self, project: str) -> str:
        """Say which projects of the caller are nearest to one that is not there."""
        names = (other.name for other in self.open().projects())
        return nearest_names(project, list(filter(self.may_use, names)))

    def _project(self, query: BaselineQuery, default: str | None, place: str, code: str) -> str:
        """Return the project of a query; the same problem if it is absent or not to be seen."""
        if query.project is not None:
            if not self.may_use(query.project) or self.open().is_empty(query.project):
                detail = f"You have no such project.{self.nearest(query.project)}"
                raise _absent(place, "project", code, detail)
            return query.project
        if query.by == "evaluation":
            if (named := self.find(query.name)) is None:
                raise _absent(place, "evaluation", code, "You have no evaluation with this id.")
            return named.project
        if default is None:
            detail = "A name is looked up in a project: name it in `project`."
            raise refuse(place, "needs_project", detail)
        return default


def _absent(place: str, member: str, code: str, detail: str) -> Problem:
    return Problem(code, detail, errors=[Violation(f"{place}/{member}", code, detail)])


def with_side(
    assessment: Assessment,
    store: Store,
    candidate: Candidate,
    query: BaselineQuery,
    *,
    anchor: bool,
) -> Assessment:
    """Add the stored baseline or anchor that a request names, or the reason why there is none.

    Problem 404 if it does not exist.
    """
    try:
        baseline = store.baseline(candidate, query)
    except BaselineNotFoundError as error:
        place = pointer(*(("gates", "anchor") if anchor else ("baseline",)), query.by)
        detail = "This names no stored evaluation."
        errors = [Violation(place, "baseline_not_found", detail)]
        raise Problem("baseline_not_found", str(error), errors=errors) from None
    stored = baseline.evaluation
    if stored is None:
        mend = "" if baseline.command is None else f" To set one: `{baseline.command}`."
        why = baseline.why + mend.replace("{id}", candidate.id or "ID")
        model = "without a model" if candidate.model is None else f"of model `{candidate.model}`"
        begins = (
            f"{model} in project `{candidate.project}`" if baseline.begins else assessment.begins
        )
        if anchor:
            return replace(assessment, missing_anchor=why, begins=begins)
        return replace(assessment, missing=why, begins=begins)
    side = BaselineSide(
        side=side_of_stored(stored, store, with_items=assessment.candidate.items is not None),
        requested=query.requested,
        resolved=stored.id,
        why=baseline.why,
        has_population=stored_prevalence_of(stored.options) is not None,
        name=evaluation_name(stored.model, stored.version, stored.created_at),
    )
    if anchor:
        return replace(assessment, anchor_side=side)
    return replace(assessment, baseline_side=side)


def side_of_stored(
    stored: StoredEvaluation, store: Store, *, with_items: bool = True, slice_: Slice = ()
) -> Side:
    """Return a stored evaluation as a side of a comparison, with one slice or all of them."""
    sliced_items = store.sliced_items(stored.id) if with_items and stored.keeps_items else None
    items, columns = sliced_items or (None, {})
    slices = store.slices(stored, slice_) if extras_of(stored).get("sliced") else None
    return Side(
        labels=stored.labels,
        table=table_of_stored(stored),
        items=items,
        fingerprint=stored.fingerprint,
        test_set=stored.test_set,
        slices=None if slices is None else replace(slices, columns=columns),
        kept_scores=kept_scores_of(stored),
    )


def table_of_stored(stored: StoredEvaluation) -> ConfusionTable:
    """Return the table of an evaluation, with the numbers of items behind its weights.

    Evaluations that were stored before version 0.3 lack these.
    """
    numbers = extras_of(stored).get("items") if stored.table.weighted else None
    if numbers is None:
        return stored.table
    return replace(stored.table, items=np.array(numbers, dtype=np.float64))


def kept_scores_of(stored: StoredEvaluation) -> KeptScores | None:
    """Return the overall indices of scores that are stored; None without any."""
    document = stored.score_values
    with decoding():
        return None if document is None else read_score_values(document)


def extras_of(stored: StoredEvaluation) -> dict[str, Any]:
    """Return what is stored beside the evidence, the verdict and the comparison."""
    return {} if stored.extras is None else orjson.loads(stored.extras)
