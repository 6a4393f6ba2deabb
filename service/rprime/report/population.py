"""The population that a report is about, in words and as a member of the document."""

from collections.abc import Sequence

import orjson

from rprime.core.evaluate import Evaluation
from rprime.core.populations.population import Population
from rprime.core.suggestions import listed

_WHAT = {
    "true": "a population with this prevalence of the classes",
    "predicted": "a population with these shares of the predicted classes",
    "own": "a population with these shares of the strata",
}


def population_text(evaluation: Evaluation) -> str:
    """Say in one line what the numbers are about; nothing where it is the items themselves."""
    population = evaluation.options.population
    return "" if population is None else shares_text(population, evaluation.labels)


def shares_text(population: Population, labels: Sequence[str]) -> str:
    """Say in one line what numbers at a population are about."""
    shares = _shares(population, labels)
    source = (
        "" if population.evaluation is None else f" (that of evaluation {population.evaluation})"
    )
    left_out = [name for name, share in shares.items() if not share]
    if population.strata == "true" and len({share for share in shares.values() if share}) == 1:
        but = f" but {listed(left_out)}" if left_out else ""
        return f"about a population with equal shares of all classes{but}{source}"
    text = listed([f"{name} {share:.4g}" for name, share in shares.items()])
    return f"about {_WHAT[population.strata]}{source}: {text}"


def population_member(population: Population, evaluation: Evaluation) -> dict[str, bytes]:
    """Render the member of the document."""
    content = {
        "detail": f"The numbers are {population_text(evaluation)}.",
        "strata": population.strata,
        "shares": _shares(population, evaluation.labels),
        **({} if population.evaluation is None else {"evaluation": population.evaluation}),
        "effective_items": population.effective_items(evaluation.table),
    }
    return {"population": orjson.dumps(content)}


def _shares(population: Population, labels: Sequence[str]) -> dict[str, float]:
    return dict(zip(population.names or labels, population.shares.tolist(), strict=True))
