"""Answer requests that lint a gate or plan its test set."""

from collections.abc import Callable
from math import inf

from pydantic import TypeAdapter

from rprime import evidence
from rprime.application.assessment import side_of
from rprime.application.population import population_of
from rprime.application.request import gate_of, read_members
from rprime.core.gates.lint import LintReport, lint
from rprime.core.gates.plan import PlanReport, plan_items
from rprime.core.gates.rules import Gate
from rprime.core.gates.simulation import FEWEST, MOST_SLICED, LintError
from rprime.core.options import Options
from rprime.core.population import Population
from rprime.evidence import Evidence
from rprime.evidence.reader import EVIDENCE_ARRAYS
from rprime.problems.problem import pointer, refuse
from rprime.schemas.document import Body, parse
from rprime.schemas.simulation import LintRest, PlanRest
from rprime.settings import Limits

Rest = LintRest | PlanRest
Simulate = Callable[..., LintReport | PlanReport]


def lint_request(body: Body, limits: Limits, *, most_seconds: float = inf) -> bytes:
    """Lint the gate of a request by simulation; 422 if it would take too much processor time."""
    return _simulated(body, limits, LintRest, lint, most_seconds)


def plan_request(body: Body, limits: Limits, *, most_seconds: float = inf) -> bytes:
    """Plan the items that the gate of a request needs; 422 as for `lint_request`."""
    return _simulated(body, limits, PlanRest, plan_items, most_seconds)


def _simulated(
    body: Body, limits: Limits, kind: type[Rest], simulate: Simulate, most_seconds: float
) -> bytes:
    """Read the evidence, the options and the gate of a request, and render the result as JSON."""
    document = parse(body, limits.json_depth)
    rest, read = read_members(kind, document, lambda: evidence.read(document, limits))
    gate = gate_of(rest.gates, Options())
    _refuse_dear(rest, gate, read, most_seconds)
    named = {"pairing", "discordance", "drop", "width", "replicates", "seed"}
    options = rest.model_dump(include=named) | {"population": _population(rest, read)}
    try:
        simulation = simulate(gate, side_of(read, None), **options)
    except LintError as error:
        place = error.place or EVIDENCE_ARRAYS[read.kind][-1:]
        raise refuse(pointer(*place), "not_for_lint", str(error)) from None
    adapter: TypeAdapter[LintReport | PlanReport] = TypeAdapter(type(simulation))
    return adapter.dump_json(simulation, by_alias=True)


PLANNED_REPLICATES = 3000
"""Of a plan: about six sizes, each simulated in up to 500 replicates."""
_LINTED = 2.75
"""Simulations of a lint: two more tables and five worse models, each in a quarter of them."""
_SECONDS_OF_CELL, _SECONDS_OF_RESULT = 5.5e-7, 1e-6
_SECONDS_OF_RULES: dict[type[Rest], float] = {LintRest: 1e-6, PlanRest: 2e-6}
"""Processor time of a replicate for each cell, each result and each pair of rules, as measured
with 3 to 100 classes and 1 to 60 rules; a plan finds the drops of all pairs at 57 sizes, too."""


def price(rest: Rest, gate: Gate, read: Evidence) -> float:
    """Return how many seconds of processor time a simulation takes, within a factor of three."""
    k, slices = read.table.k, 0 if read.slices is None else len(read.slices.names)
    results = sum(1 if rule.classes is None else k for rule in gate.rules)
    rules = _SECONDS_OF_RULES[type(rest)] * len(gate.rules) ** 2
    each = _SECONDS_OF_CELL * k**2 * (1 + slices) + _SECONDS_OF_RESULT * results + rules
    if isinstance(rest, PlanRest):
        return PLANNED_REPLICATES * each / (1 + slices)
    replicates = min(rest.replicates, max(MOST_SLICED // max(slices, 1), FEWEST))
    return _LINTED * replicates * each


def _refuse_dear(rest: Rest, gate: Gate, read: Evidence, most_seconds: float) -> None:
    """Refuse a simulation that takes more processor time than a request may take."""
    seconds = price(rest, gate, read)
    if seconds <= most_seconds:
        return
    start = (
        f"The simulation would take about {seconds:,.0f} s of processor time; a request has at "
        f"most {most_seconds:,.0f} s. "
    )
    if isinstance(rest, LintRest):
        fewer = int(rest.replicates * most_seconds / seconds)
        if fewer > FEWEST:
            cure = f"Ask for at most {fewer:,} replicates."
            raise refuse("/replicates", "too_much", start + cure)
    cure = "Name fewer rules, merge classes, or simulate parts of the gate one by one."
    raise refuse("/gates/rules", "too_much", start + cure)


def _population(rest: Rest, read: Evidence) -> Population | None:
    """Return the population of a request; 422 unless it is given by the prevalence of classes."""
    if rest.population is None:
        return None
    population = population_of(rest.population, read, rest.gates)
    if population is None or population.strata != "true":
        detail = "A simulation needs a population that is given by the `prevalence` of each class."
        raise refuse("/population", "not_for_lint", detail)
    return population
