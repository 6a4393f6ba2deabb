"""The populations that the values of stored evaluations are about."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.populations.population import MOST_CLASSES, Population
from rprime.report.population import shares_text
from rprime.store import Stack

STRATA_OF_ITEMS, NOT_WITH_POPULATION = "strata_of_items", "not_with_population"
"""Reasons for a missing value: only the report has it, or the table has no population."""


class OneKind(NamedTuple):
    """Evaluations of a stack that are computed together.

    Parameters
    ----------
    rows
        Their positions in the stack.
    population
        None: their items.
    about
        What the value of each is about, "" for its items.
    reason
        Why they have no values; "" if they have.
    """

    rows: Array
    population: Population | None = None
    about: Sequence[str] = ()
    reason: str = ""


def kept_with(population: Population) -> dict[str, Any]:
    """Return what is stored beside an evaluation, so that a series need not read its options."""
    if population.strata == "own":
        return {"strata": "own"}
    return {"strata": population.strata, "shares": population.shares.tolist()}


def extras_of(stack: Stack) -> list[dict[str, Any]]:
    """Return what is stored beside each evaluation of a stack."""
    return [{} if given is None else orjson.loads(given) for given in stack.extras]


def kinds_of(
    stack: Stack, extras: Sequence[Mapping[str, Any]], *, uniform: bool
) -> Iterator[OneKind]:
    """Divide evaluations by the populations stored beside them, or at equal shares of classes."""
    if uniform:
        yield from _uniform(stack)
        return
    found: dict[str, list[int]] = {}
    for row, one in enumerate(extras):
        found.setdefault(one.get("population", {}).get("strata", ""), []).append(row)
    for strata, rows in found.items():
        places = np.array(rows)
        if strata == "":
            yield OneKind(places)
        elif strata == "own":
            about = ["about a population with shares of strata of the items"] * len(rows)
            yield OneKind(places, None, about, STRATA_OF_ITEMS)
        else:
            shares = np.array([extras[row]["population"]["shares"] for row in rows])
            each = [Population(strata, own) for own in shares]  # type: ignore[arg-type]  # JSON
            about = [shares_text(one, stack.labels) for one in each]
            yield OneKind(places, Population(each[0].strata, shares), about)


def _uniform(stack: Stack) -> Iterator[OneKind]:
    """Yield the evaluations at equal shares of the classes of which each has items."""
    table, refused = stack.table, np.full(len(stack.ids), stack.table.k > MOST_CLASSES)
    if table.spurious is not None:
        refused |= table.spurious.any(-1)
    rows = np.flatnonzero(refused)
    yield OneKind(rows, None, [""] * len(rows), NOT_WITH_POPULATION)
    rows = np.flatnonzero(~refused)
    found = Population.uniform(table[rows])
    each = [Population("true", own) for own in found.shares]
    yield OneKind(rows, found, [shares_text(one, stack.labels) for one in each])
