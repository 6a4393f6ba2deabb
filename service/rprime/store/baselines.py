"""Find the stored evaluation that a request names as its baseline."""

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import ColumnElement, Connection, func, or_, select

from rprime.store import aliases
from rprime.store.evaluations import EvaluationMissingError, get
from rprime.store.records import StoredEvaluation
from rprime.store.schema import evaluations

_of = evaluations.c


@dataclass(frozen=True)
class BaselineQuery:
    """A baseline as a request names it."""

    by: Literal["alias", "version", "branch", "evaluation"]
    name: str


@dataclass(frozen=True)
class Baseline:
    """A resolved baseline.

    Parameters
    ----------
    evaluation
        None if nothing matches; then no comparison is possible.
    why
        Why this evaluation, or why none.
    """

    evaluation: StoredEvaluation | None
    why: str


def resolve(connection: Connection, project: str, query: BaselineQuery) -> Baseline:
    """Find the evaluation of a project that a request names."""
    return _RESOLVERS[query.by](connection, project, query.name)


def _by_alias(connection: Connection, project: str, name: str) -> Baseline:
    try:
        alias = aliases.get(connection, project, name)
    except aliases.AliasMissingError:
        return Baseline(None, f"The project has no alias {name}.")
    return Baseline(get(connection, alias.evaluation), f"The alias {name} points at it.")


def _by_version(connection: Connection, project: str, name: str) -> Baseline:
    found = _newest(connection, _of.project == project, _of.version == name)
    if found is None:
        return Baseline(None, f"The project has no evaluation of version {name}.")
    return Baseline(get(connection, found), f"It is the newest evaluation of version {name}.")


def _by_branch(connection: Connection, project: str, name: str) -> Baseline:
    on_branch = (_of.project == project, _of.branch == name)
    failed = or_(_of.verdict == "fail", _of.waived)
    # Not `NOT failed`: without a gate the verdict is null.
    passed = (or_(_of.verdict.is_(None), _of.verdict != "fail"), _of.waived.is_(False))
    found = _newest(connection, *on_branch, *passed)
    newer = [_of.id > found] if found else []
    skipped = connection.scalar(select(func.count()).where(*on_branch, failed, *newer)) or 0
    passed_over = f"{skipped} newer skipped, failed or waived" if skipped else "none skipped"
    if found is not None:
        why = f"It is the newest evaluation on branch {name} to compare with ({passed_over})."
        return Baseline(get(connection, found), why)
    if skipped:
        return Baseline(None, f"All {skipped} evaluations on branch {name} failed or were waived.")
    return Baseline(None, f"The project has no evaluation on branch {name}.")


def _by_id(connection: Connection, project: str, name: str) -> Baseline:
    try:
        evaluation = get(connection, name)
    except EvaluationMissingError:
        evaluation = None
    if evaluation is None or evaluation.project != project:
        return Baseline(None, "The project has no evaluation with this id.")
    return Baseline(evaluation, "The request named its id.")


_RESOLVERS = {
    "alias": _by_alias,
    "version": _by_version,
    "branch": _by_branch,
    "evaluation": _by_id,
}


def _newest(connection: Connection, *fits: ColumnElement[bool]) -> str | None:
    return connection.scalar(select(_of.id).where(*fits).order_by(_of.id.desc()).limit(1))
