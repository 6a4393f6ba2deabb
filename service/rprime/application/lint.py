"""Answer requests that lint a gate or plan its test set."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import orjson

from rprime import evidence
from rprime.application.assessment import side_of
from rprime.application.population import population_of
from rprime.application.request import gate_of
from rprime.core.gates.lint import GateLint, lint
from rprime.core.gates.plan import ItemPlan, plan_items
from rprime.core.gates.simulated_gate import LintError
from rprime.core.options import Options
from rprime.core.populations.population import Population
from rprime.evidence import Evidence
from rprime.problems.problem import Problem, Violation, pointer, refuse
from rprime.schemas.document import parse
from rprime.schemas.simulation import LintRest, PlanRest
from rprime.schemas.violations import validated
from rprime.settings import Limits

OPTIONS = {"pairing", "discordance", "drop", "replicates", "seed"}
"""The members of a request that are options of its simulation."""


def lint_request(body: bytes, limits: Limits) -> bytes:
    """Lint the gate of a request by simulation.

    Raises
    ------
    Problem
        400 or 422.
    """
    return _simulated(body, limits, LintRest, lint)


def plan_request(body: bytes, limits: Limits) -> bytes:
    """Plan the items that the gate of a request needs.

    Raises
    ------
    Problem
        400 or 422.
    """
    return _simulated(body, limits, PlanRest, plan_items)


def _simulated(
    body: bytes,
    limits: Limits,
    kind: type[LintRest | PlanRest],
    simulate: Callable[..., GateLint | ItemPlan],
) -> bytes:
    """Read the evidence, the options and the gate of a request, and render the result as JSON."""
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
    options = wanted.model_dump(include=OPTIONS) | {"population": _population(wanted, read)}
    try:
        found = simulate(gate, side_of(read, None), **options)
    except LintError as error:
        place = pointer("gates", *error.place) if error.place else f"/{read.kind}"
        raise refuse(place, "not_for_lint", str(error)) from None
    return orjson.dumps(asdict(found, dict_factory=_members))


def _population(wanted: LintRest | PlanRest, read: Evidence) -> Population | None:
    """Return the population of a request.

    Raises
    ------
    Problem
        422 unless it is given by the prevalence of the classes.
    """
    if wanted.population is None:
        return None
    found = population_of(wanted.population, read, wanted.gates)
    if found is None or found.strata != "true":
        detail = "A simulation needs a population that is given by the `prevalence` of each class."
        raise refuse("/population", "not_for_lint", detail)
    return found


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object; `class_` is `class` in JSON."""
    return {name.rstrip("_"): value for name, value in pairs}
