"""Stored evaluations as sides of a comparison, and those that a caller may see."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import orjson

from rprime.application.assessment import Assessment, BaselineSide
from rprime.core.catalog import CUSTOM
from rprime.core.comparison.alignment import Side
from rprime.core.custom import CustomIndex
from rprime.core.index import Index
from rprime.core.index_names import listed, nearest_names, resembling
from rprime.core.options import SCORE_OPTIONS, SHAPING, Options
from rprime.core.population import Population
from rprime.core.scores.calibration import DEFAULT_BINNING, Binning
from rprime.core.scores.kept import KeptScores
from rprime.core.slices.evaluation import slice_indices
from rprime.core.slices.slices import Slice
from rprime.core.table import ConfusionTable
from rprime.evidence.tables import MATRICES
from rprime.problems.problem import Problem, Violation, pointer, refuse
from rprime.report.subject import evaluation_name
from rprime.schemas.gate import Gates
from rprime.store import EvaluationMissingError, Store, StoredEvaluation, is_id
from rprime.store.baselines import BaselineNotFoundError, BaselineQuery, Candidate
from rprime.store.errors import decoding
from rprime.store.packing import read_score_values

_WRITTEN = orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY
_DEFAULTS = Options()
_NOT_KEPT = {"top_confusions", "classes", *SCORE_OPTIONS} - {"calibration"}
"""Not stored: listing options belong to each report, and scores are not stored."""
_KEPT = tuple(name for name in Options.__dataclass_fields__ if name not in _NOT_KEPT)


@dataclass(frozen=True, eq=False, kw_only=True)
class StoreRequest:
    """What a request stores beside the evidence.

    Parameters
    ----------
    asked
        The options and the gates, written by `write_options`.
    reference, anchor, prevalence_of
        The stored baselines that the request and its gate name, and the id of the evaluation whose
        prevalence the population has.
    id
        Of the evaluation, where the answer needs it before the evaluation is stored.
    payload
        The body or a digest of it.
    """

    project: str
    asked: bytes
    reference: "BaselineQuery | None"
    anchor: "BaselineQuery | None" = None
    prevalence_of: str | None = None
    id: str | None = None
    is_first: bool = False
    keeps_slices: bool = False
    payload: bytes = b""


def write_options(options: Options, gates: Gates | None) -> bytes:
    """Write options and gates as JSON, the same bytes for the same request."""
    document: dict[str, Any] = {"options": _changed(options)}
    if gates is not None:
        document["gates"] = gates.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return orjson.dumps(document, option=_WRITTEN)


def with_options(content: bytes, options: Options) -> bytes:
    """Write other options beside the same gates."""
    document = orjson.loads(content) | {"options": _changed(options)}
    return orjson.dumps(document, option=_WRITTEN)


def _changed(options: Options) -> dict[str, Any]:
    pairs = ((name, getattr(options, name)) for name in _KEPT)
    return {
        name: value
        for name, value in pairs
        if isinstance(value, np.ndarray) or value != getattr(_DEFAULTS, name)
    }


def read_options(content: bytes, top_confusions: int) -> Options:
    """Read the options that `write_options` wrote."""
    members = _read(content)
    matrices: dict[str, Any] = {
        name: np.array(members[name]) for name in MATRICES if isinstance(members.get(name), list)
    }
    others: dict[str, Any] = {"top_confusions": top_confusions}
    for name in ("indices", "families", "average_over"):
        if members.get(name) is not None:
            others[name] = tuple(members[name])
    if (binning := members.get("calibration")) is not None:
        others["calibration"] = Binning(**binning)
    if (population := members.get("population")) is not None:
        counts = population["counts"]
        arrays = {
            "shares": np.array(population["shares"]),
            "names": tuple(population["names"]),
            "counts": None if counts is None else np.array(counts),
        }
        others["population"] = Population(**population | arrays)
    if "custom" in members:
        others["custom"] = tuple(map(_read_custom, members["custom"]))
    return Options(**members | matrices | others)


def _read_custom(content: dict[str, Any]) -> CustomIndex:
    places = tuple((str(label), int(place)) for label, place in content["places"])
    return CustomIndex(content["name"], content["expression"], places)


def asks_every_result(options: bytes) -> bool:
    """Whether the gates that were written ask for all results."""
    gates: dict[str, Any] = orjson.loads(options).get("gates") or {}
    return gates.get("results") == "all"


def comparison_options(content: bytes, top_confusions: int) -> tuple[Options, tuple[str, ...]]:
    """Return the options that a stored candidate is compared by, and the indices of its slices.

    They are those of its report, so that a comparison finds in the slices what the report does;
    but the summary is compared besides, and the population is chosen apart.
    """
    options = read_options(content, top_confusions)
    families = tuple(dict.fromkeys(("summary", *options.families)))
    return replace(options, families=families, population=None), slice_indices(options)


def stored_prevalence_of(content: bytes) -> Population | None:
    """Return the prevalence that a stored evaluation is about, which others can be compared at."""
    population = read_options(content, 0).population
    return population if population is not None and population.strata == "true" else None


@lru_cache(maxsize=256)
def shaping_options(content: bytes) -> bytes:
    """Keep of the written options those that a series honours; the same bytes for the same ones."""
    members = _read(content)
    return orjson.dumps({"options": {name: members[name] for name in SHAPING if name in members}})


def shaping_text(content: bytes, index: Index) -> str:
    """Name the options that make values of an index incomparable; "" for the default ones."""
    members = _read(content)
    binning = Binning(**members.get("calibration", {}))
    named = {
        _expression(members, index.key): index.reads == "custom",
        f"beta {members.get('beta', 1):g}": "beta" in members
        and "f_beta" in {index.key, *index.of},
        "cell weights": "cell_weights" in members,
        f"{binning.bins} bins of {binning.binning.replace('_', ' ')}": binning != DEFAULT_BINNING
        and index.takes == "calibration",
        f"undefined as {members.get('undefined')}": "undefined" in members and bool(index.of),
        "chosen classes": "average_over" in members and bool(index.of),
    }
    return ", ".join(text for text, holds in named.items() if text and holds)


def _expression(members: dict[str, Any], key: str) -> str:
    """Return the expression of an index of one's own; empty without one."""
    own = (c["expression"] for c in members.get("custom", ()) if f"{CUSTOM}{c['name']}" == key)
    return next(own, "")


@lru_cache(maxsize=256)
def _read(content: bytes) -> dict[str, Any]:
    members: dict[str, Any] = orjson.loads(content)["options"]
    return members


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

    @property
    def projects(self) -> list[str]:
        """The names of the projects of the caller; slow if there are many. Blocks."""
        names = (project.name for project in self.open().projects())
        return list(filter(self.may_use, names))

    def nearest(self, project: str) -> str:
        """Say which projects of the caller are nearest to one that is not there. Blocks."""
        return nearest_names(project, self.projects)

    def refuse_misspelt(self, project: str, place: str) -> None:
        """Answer 404 if a project that has not begun resembles another one. Blocks."""
        near = resembling(project, self.projects)
        if near and project not in near:
            detail = (
                f"There is no project `{project}` to look a baseline up in. The nearest: "
                f"{listed([f'`{name}`' for name in near])}. If it is a new project, store its "
                "first evaluation without a baseline."
            )
            raise _absent(place, "project", "baseline_not_found", detail)

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
    must_exist: bool = False,
) -> Assessment:
    """Add the stored baseline or anchor that a request names, or the reason why there is none.

    Problem 404 if it does not exist and resembles one that does, or if it `must_exist`: where
    nothing is stored, there is nothing to do without it.
    """
    try:
        baseline = store.baseline(candidate, query)
    except BaselineNotFoundError as error:
        place = pointer(*(("gates", "anchor") if anchor else ("baseline",)), query.by)
        detail = "This names no stored evaluation."
        errors = [Violation(place, "baseline_not_found", detail)]
        raise Problem("baseline_not_found", str(error), errors=errors) from None
    stored = baseline.evaluation
    if stored is None and must_exist:
        raise _absent("/baseline", query.by, "baseline_not_found", baseline.why)
    if stored is None:
        cure = "" if baseline.command is None else f" To set one: `{baseline.command}`."
        why = baseline.why + cure.replace("{id}", candidate.id or "ID")
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
