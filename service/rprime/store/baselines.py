"""Find the stored evaluation that a request names as its baseline."""

from dataclasses import dataclass
from difflib import get_close_matches
from shlex import quote
from typing import Any, Literal

import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, func, select

from rprime.core.index_names import MOST_NAMED, listed, resembling
from rprime.store import aliases
from rprime.store.compression import digest_text
from rprime.store.errors import decoding
from rprime.store.evaluations import SUMMARY, EvaluationMissingError, check, document, get
from rprime.store.records import StoredEvaluation
from rprime.store.schema import evaluations

_MOST_SEARCHED = 1000
"""Most names, from the newest, among which the nearest ones are sought."""
_LONGEST = 64
"""Characters of a name that are compared."""
_STEP = 50
"""Evaluations read at a time to find one that is not skipped."""

_of = evaluations.c


@dataclass(frozen=True)
class BaselineQuery:
    """A stored evaluation as a request names it; the name of `latest` is not read.

    It may also name the model for `version`, `branch` or `latest`, and the project.
    """

    by: Literal["alias", "version", "branch", "latest", "evaluation"]
    name: str
    model: str | None = None
    project: str | None = None

    @property
    def requested(self) -> dict[str, str | bool]:
        """The reference as the request had it."""
        named = {"model": self.model, "project": self.project}
        beside = {name: value for name, value in named.items() if value is not None}
        return {self.by: self.by == "latest" or self.name, **beside}


@dataclass(frozen=True)
class Baseline:
    """A resolved baseline, or why there is none yet; then no comparison is possible.

    A command sets a missing one; `{id}` stands there for the candidate's id. `begins` says that
    the model has no evaluation before the candidate.
    """

    evaluation: StoredEvaluation | None
    why: str
    command: str | None = None
    begins: bool = False


@dataclass(frozen=True)
class Candidate:
    """What a baseline is sought for, and what its other runs share with it; None: unknown.

    Without a model it is compared with evaluations without one. `is_sought`: it is looked up,
    whatever its gate said, and if no model is named, the model that has such evaluations.
    """

    project: str
    model: str | None = None
    id: str | None = None
    commit: str | None = None
    input_digest: str | None = None
    is_sought: bool = False


class BaselineNotFoundError(Exception):
    """A baseline is named that does not exist; the text says what was sought, and what is near."""


@dataclass(frozen=True)
class _Scope:
    """Where a baseline is sought: the evaluations of one model of a project.

    The model is None for those without one, and own if it is that of the candidate.
    `branch` and `latest` skip other runs of the candidate, which shares nothing with other models.
    """

    connection: Connection
    project: str
    model: str | None
    is_own: bool
    candidate: Candidate

    @property
    def fits(self) -> tuple[ColumnElement[bool], ...]:
        """The SQL conditions."""
        of_model = _of.model.is_(None) if self.model is None else _of.model == self.model
        return _of.project == self.project, of_model

    def __str__(self) -> str:
        model = "without a model" if self.model is None else f"of model `{self.model}`"
        return f"{model} in project `{self.project}`"

    def names(self, column: ColumnElement[Any]) -> list[str]:
        """Return the distinct names in a column, newest first."""
        query = select(column).where(*self.fits, column.is_not(None)).order_by(_of.id.desc())
        return list(dict.fromkeys(self.connection.scalars(query.limit(_MOST_SEARCHED))))

    def newest(self, *fits: ColumnElement[bool]) -> StoredEvaluation | None:
        """Return the newest evaluation that fits."""
        query = select(_of.id).where(*self.fits, *fits).order_by(_of.id.desc()).limit(1)
        identifier = self.connection.scalar(query)
        return None if identifier is None else get(self.connection, identifier)

    def nothing_yet(self, more: str) -> Baseline | None:
        """Return that the model has no evaluation yet; None if it has.

        It is an error if the request names this model, and the project has others.
        """
        if self.is_begun:
            return None
        why = f"There is no evaluation {self} yet."
        name, models = self.model or "", _models(self.connection, self.project)
        if not self.is_own and models:
            raise BaselineNotFoundError(f"{why} {_nearest(name, models, 'models')}")
        others = f" Models with evaluations: {_listed(name, models)}." if models else ""
        return Baseline(None, f"{why}{others}", self.storing(more), begins=self.is_own)

    @property
    def is_begun(self) -> bool:
        """Whether the model has an evaluation."""
        return self.connection.scalar(select(_of.id).where(*self.fits).limit(1)) is not None

    def storing(self, more: str) -> str:
        """Return the command that stores an evaluation of the model."""
        model = "" if self.model is None else f" --model {quote(self.model)}"
        return f"rprime evaluate FILE --project {quote(self.project)}{model}{more}"


def resolve(connection: Connection, candidate: Candidate, query: BaselineQuery) -> Baseline:
    """Find the evaluation that a candidate has as its baseline, with the reason.

    `BaselineNotFoundError` if there is no such id or named model, and if an alias, a branch or a
    version that does not exist resembles one that does. Any other one is no error: there is none
    yet.
    """
    project = query.project or candidate.project
    model = query.model or candidate.model
    if candidate.is_sought and query.model is None:
        model = _only_model(connection, project, query)
    is_own = (project, model) == (candidate.project, candidate.model)
    sought_for = candidate if is_own or candidate.is_sought else Candidate(project)
    scope = _Scope(connection, project, model, is_own=is_own, candidate=sought_for)
    return _RESOLVERS[query.by](scope, query.name)


def _only_model(connection: Connection, project: str, query: BaselineQuery) -> str | None:
    """Return the model of the evaluations that a query without a model fits; None: without one."""
    if query.by not in _OF_A_MODEL:
        return None
    fits = [] if query.by == "latest" else [_of[query.by] == query.name]
    models = connection.scalars(select(_of.model).distinct().where(_of.project == project, *fits))
    several = list(models.fetchmany(_MOST_SEARCHED))
    if len(several) > 1:
        named = listed([f"`{model}`" for model in several if model is not None])
        text = f"Several models of project `{project}` have such evaluations; `model` names one:"
        raise BaselineNotFoundError(f"{text} {named}.")
    return several[0] if several else None


def _by_alias(scope: _Scope, name: str) -> Baseline:
    pointed = {a.name: a.evaluation for a in aliases.read_all(scope.connection, scope.project)}
    if name in pointed:
        return Baseline(get(scope.connection, pointed[name]), f"The alias `{name}` points at it.")
    names = list(pointed)
    if scope.candidate.is_sought or resembling(name, names):
        text = f"Project `{scope.project}` has no alias `{name}`."
        raise BaselineNotFoundError(f"{text} {_nearest(name, names, 'aliases')}")
    others = f" Other aliases: {_listed(name, names)}." if names else ""
    why = f"The alias `{name}` of project `{scope.project}` is not set.{others}"
    command = f"rprime promote {{id}} {quote(name)} --project {quote(scope.project)} --if-absent"
    return Baseline(None, why, command, begins=scope.is_own and not scope.is_begun)


def _by_version(scope: _Scope, name: str) -> Baseline:
    evaluation = scope.newest(_of.version == name)
    if evaluation is not None:
        return Baseline(evaluation, f"It is the newest evaluation of version `{name}` {scope}.")
    more = f" --version {quote(name)}"
    nothing = scope.nothing_yet(more)
    if nothing is not None:
        return nothing
    versions, text = scope.names(_of.version), f"of version `{name}` {scope}"
    models = _models(scope.connection, scope.project, _of.version == name)
    if models:
        others = f"Other models have it; `model` names one: {_listed('', models)}."
        raise BaselineNotFoundError(f"There is no evaluation {text}. {others}")
    if name == "latest":
        others = 'The newest evaluation of any version is {"latest": true}.'
        raise BaselineNotFoundError(f"There is no evaluation {text}. {others}")
    if resembling(name, versions):
        near = _nearest(name, versions, "versions")
        raise BaselineNotFoundError(f"There is no evaluation {text}. {near}")
    there = f"Known versions: {_listed(name, versions)}." if versions else "None has a version."
    every = _models(scope.connection, scope.project)
    others = f" `model` may name {_listed('', every)}." if scope.model is None and every else ""
    why = f"There is no evaluation {text} yet. {there}{others}"
    return Baseline(None, why, scope.storing(more))


def _by_branch(scope: _Scope, name: str) -> Baseline:
    on_branch = f"on branch `{name}` {scope}"
    more = f" --branch {quote(name)}"
    baseline = _newest_not_skipped(scope, on_branch, _of.branch == name) or scope.nothing_yet(more)
    if baseline is not None:
        return baseline
    branches = scope.names(_of.branch)
    if resembling(name, branches):
        text = f"There is no evaluation {on_branch}."
        raise BaselineNotFoundError(f"{text} {_nearest(name, branches, 'branches')}")
    there = f"Known branches: {_listed(name, branches)}." if branches else "None has a branch."
    why = f"There is no evaluation {on_branch} yet. {there}"
    return Baseline(None, why, scope.storing(more))


def _latest(scope: _Scope, _: str) -> Baseline:
    baseline = _newest_not_skipped(scope, str(scope)) or scope.nothing_yet("")
    assert baseline is not None  # noqa: S101 (a model without evaluations has nothing yet)
    return baseline


def _newest_not_skipped(scope: _Scope, where: str, *fits: ColumnElement[bool]) -> Baseline | None:
    """Return the newest evaluation to compare with, or that all are skipped; None without any."""
    columns: Select[Any] = select(*SUMMARY, _of.extras)
    query = columns.where(*scope.fits, *fits).order_by(_of.id.desc()).limit(_STEP)
    skipped: list[str] = []
    rows = scope.connection.execute(query).all()
    while rows:
        for row in rows:
            check(row)
            reason = None if scope.candidate.is_sought else _skipped(row, scope.candidate)
            if reason is None:
                why = f"It is the newest evaluation {where} that is not skipped; "
                why += f"skipped newer ones: {listed(skipped)}." if skipped else _NONE_SKIPPED
                return Baseline(get(scope.connection, row.id), why)
            skipped.append(f"`{row.version or row.id}` ({reason})")
        rows = scope.connection.execute(query.where(_of.id < rows[-1].id)).all()
    if not skipped:
        return None
    return Baseline(None, f"Every evaluation {where} is skipped: {listed(skipped)}.")


def _of_candidate(row: Row[Any], candidate: Candidate) -> str | None:
    """Return why an evaluation is another run of the candidate, or else None.

    An undecided gate that is run again must not pass because it is compared with its first run.
    """
    if row.id == candidate.id:
        return "it is the candidate"
    if row.commit is not None and row.commit == candidate.commit:
        return "it is of the same commit"
    same = digest_text(row.input_digest) == candidate.input_digest
    if same and row.verdict in {"inconclusive", "no_baseline"}:
        return "it has the same predictions, and its gate decided nothing"
    return None


@decoding()
def _skipped(row: Row[Any], candidate: Candidate) -> str | None:
    """Return why `branch` and `latest` skip a baseline; None if they do not."""
    if (reason := _of_candidate(row, candidate)) is not None:
        return reason
    if row.verdict == "fail":
        return "its gate failed"
    if row.waived:
        return "its failure was waived"
    if row.extras is not None and orjson.loads(document("extras", row.extras) or b"{}").get(
        "not_comparable"
    ):
        return "its gate could not compare"
    return None


def _by_id(scope: _Scope, name: str) -> Baseline:
    try:
        evaluation = get(scope.connection, name)
    except EvaluationMissingError:
        evaluation = None
    if evaluation is None or evaluation.project != scope.project:
        newest = select(_of.id).where(_of.project == scope.project).order_by(_of.id.desc())
        ids = list(scope.connection.scalars(newest.limit(_MOST_SEARCHED)))
        text = f"Project `{scope.project}` has no evaluation with the id `{name}`."
        raise BaselineNotFoundError(f"{text} {_nearest(name, ids, 'ids')}")
    return Baseline(evaluation, "The request named its id.")


_OF_A_MODEL = ("version", "branch", "latest")
_NONE_SKIPPED = "no newer one was skipped."
_RESOLVERS = {
    "alias": _by_alias,
    "version": _by_version,
    "branch": _by_branch,
    "latest": _latest,
    "evaluation": _by_id,
}


def _models(connection: Connection, project: str, *fits: ColumnElement[bool]) -> list[str]:
    """List the models of a project, the most recently evaluated first."""
    query = select(_of.model).where(_of.project == project, _of.model.is_not(None), *fits)
    newest = query.group_by(_of.model).order_by(func.max(_of.id).desc())
    return list(connection.scalars(newest.limit(_MOST_SEARCHED)))


def _nearest(name: str, names: list[str], kind: str) -> str:
    """Name the nearest names; without any, the newest ones."""
    if near := _near(name, names):
        return f"The nearest {kind}: {_listed(name, near)}."
    return f"Known {kind}: {_listed(name, names)}." if names else f"There are no {kind}."


def _near(name: str, names: list[str]) -> list[str]:
    near = get_close_matches(name[:_LONGEST], names, n=MOST_NAMED)
    return list(dict.fromkeys([*resembling(name, names), *near]))


def _listed(name: str, names: list[str]) -> str:
    """List names, those nearest to a name first."""
    return listed([f"`{other}`" for other in dict.fromkeys([*_near(name, names), *names])])
