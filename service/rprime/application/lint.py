"""Answer requests that lint a gate or plan its test set."""

from collections.abc import Callable
from dataclasses import asdict

import orjson

from rprime import evidence
from rprime.application.assessment import side_of
from rprime.application.population import population_of
from rprime.application.request import gate_of, read_members
from rprime.core.gates.lint import GateLint, lint
from rprime.core.gates.plan import ItemPlan, plan_items
from rprime.core.gates.simulation import LintError
from rprime.core.options import Options
from rprime.core.populations.population import Population
from rprime.evidence import Evidence
from rprime.evidence.reader import EVIDENCE_ARRAYS
from rprime.problems.problem import pointer, refuse
from rprime.schemas.document import parse
from rprime.schemas.simulation import LintRest, PlanRest
from rprime.settings import Limits

Rest = LintRest | PlanRest
Simulate = Callable[..., GateLint | ItemPlan]


def lint_request(body: bytes, limits: Limits) -> bytes:
    """Lint the gate of a request by simulation."""
    return _simulated(body, limits, LintRest, lint)


def plan_request(body: bytes, limits: Limits) -> bytes:
    """Plan the items that the gate of a request needs."""
    return _simulated(body, limits, PlanRest, plan_items)


def _simulated(body: bytes, limits: Limits, kind: type[Rest], simulate: Simulate) -> bytes:
    """Read the evidence, the options and the gate of a request, and render the result as JSON."""
    document = parse(body, limits.json_depth)
    wanted, read = read_members(kind, document, lambda: evidence.read(document, limits))
    gate = gate_of(wanted.gates, Options())
    named = {"pairing", "discordance", "drop", "replicates", "seed"}
    options = wanted.model_dump(include=named) | {"population": _population(wanted, read)}
    try:
        found = simulate(gate, side_of(read, None), **options)
    except LintError as error:
        place = error.place or EVIDENCE_ARRAYS[read.kind][-1:]
        raise refuse(pointer(*place), "not_for_lint", str(error)) from None
    # `class_` is `class` in JSON.
    return orjson.dumps(
        asdict(found, dict_factory=lambda pairs: {name.rstrip("_"): value for name, value in pairs})
    )


def _population(wanted: Rest, read: Evidence) -> Population | None:
    """Return the population of a request; 422 unless it is given by the prevalence of classes."""
    if wanted.population is None:
        return None
    found = population_of(wanted.population, read, wanted.gates)
    if found is None or found.strata != "true":
        detail = "A simulation needs a population that is given by the `prevalence` of each class."
        raise refuse("/population", "not_for_lint", detail)
    return found
