"""Answer requests that lint a gate or plan its test set."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import orjson

from rprime import evidence
from rprime.application.assessment import side_of
from rprime.application.request import gate_of
from rprime.core.gates.lint import GateLint, LintError, lint
from rprime.core.gates.plan import plan_items
from rprime.core.gates.rules import Gate
from rprime.core.gates.score_lint import lint_scores
from rprime.core.options import Options
from rprime.evidence import Evidence
from rprime.problems.problem import Problem, Violation, refuse
from rprime.schemas.document import parse
from rprime.schemas.simulation import LintRest, PlanRest
from rprime.schemas.violations import validated
from rprime.settings import Limits


def lint_request(body: bytes, limits: Limits) -> bytes:
    """Lint the gate of a request by simulation.

    Raises
    ------
    Problem
        400 or 422.
    """
    read, wanted, gate = _read(body, limits, LintRest)
    with _lint_errors(read):
        options: Any = wanted.model_dump(include={"pairing", "discordance", "replicates", "seed"})
        if any(rule.target.scored for rule in gate.rules):
            found = lint_scores(gate, side_of(read, None), **options)
        else:
            found = lint(gate, read.table, read.labels, **options)
    return lint_document(found)


Rest = TypeVar("Rest", LintRest, PlanRest)


def _read(body: bytes, limits: Limits, kind: type[Rest]) -> tuple[Evidence, Rest, Gate]:
    """Read the evidence, the options and the gate of a request."""
    document = parse(body, limits.json_depth)
    errors: list[Violation] = []
    wanted, read = validated(kind, document, errors), None
    try:
        read = evidence.read(document, limits)
    except Problem as problem:
        errors.extend(problem.errors)
    if errors or wanted is None or read is None:
        raise Problem("invalid_request", errors=errors)
    gate = gate_of(wanted.gates, Options())
    assert gate is not None  # noqa: S101 (the request has gates)
    return read, wanted, gate


@contextmanager
def _lint_errors(read: Evidence) -> Iterator[None]:
    """Answer what cannot be simulated with 422."""
    try:
        yield
    except LintError as error:
        raise refuse(f"/{read.kind}", "not_for_lint", str(error)) from None


def plan_request(body: bytes, limits: Limits) -> bytes:
    """Plan the items that the gate of a request needs.

    Raises
    ------
    Problem
        400 or 422.
    """
    read, wanted, gate = _read(body, limits, PlanRest)
    with _lint_errors(read):
        found = plan_items(
            gate,
            read.table,
            read.labels,
            pairing=wanted.pairing,
            discordance=wanted.discordance,
            drop=wanted.drop,
            seed=wanted.seed,
        )
    return orjson.dumps(
        {
            "items": found.items,
            "for_passing": found.for_passing,
            "for_finding": found.for_finding,
            "classes": [
                {"class": c.label, "items": c.items, "needed": c.needed} for c in found.classes
            ],
            "advice": found.advice,
        }
    )


def lint_document(found: GateLint) -> bytes:
    """Render the result of linting as JSON."""
    return orjson.dumps(
        {
            "false_fail_rate": found.false_fail_rate,
            "inconclusive_rate": found.inconclusive_rate,
            "rules": [
                {
                    "id": rule.id,
                    "class": rule.class_,
                    "false_fail_rate": rule.false_fail_rate,
                    "inconclusive_rate": rule.inconclusive_rate,
                    "detectable_drop": rule.detectable_drop,
                }
                for rule in found.rules
            ],
            "advice": found.advice,
        }
    )
