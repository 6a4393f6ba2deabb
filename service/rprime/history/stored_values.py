"""Compute indices over the stored tables of a project, each at its population."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import orjson

from rprime.application.stored_sides import read_options, shaping_options, write_options
from rprime.core.arrays import Array
from rprime.core.estimates import Estimates
from rprime.core.index import Index
from rprime.core.options import Options
from rprime.core.population import MOST_CLASSES, Population
from rprime.core.selection import Selection, select
from rprime.core.table import ConfusionTable
from rprime.problems.problem import refuse
from rprime.report.measures import finite
from rprime.report.subject import shares_text
from rprime.server.pools import check_time
from rprime.store import Filters, Stack, Store

MOST_VALUES = 2_000_000
"""Most values over all classes and evaluations, for each index."""
MOST_BYTES = 256 << 20
"""Of the counts of tables that are in memory together."""
_TOO_MANY = "Too many classes for so many evaluations: lower `limit`."
TOGETHER = 1000
"""Tables in one part: larger parts leave the cache of the processor."""
MOST_CELLS = 1 << 17
"""Most cells in one part of tables that stand for populations: each takes 100 numbers."""
STRATA_OF_ITEMS, NOT_WITH_POPULATION = "strata_of_items", "not_with_population"
"""Reasons for a missing value: only the report has it, or the table has no population."""


PLAIN = write_options(Options(), None)


class OneKind(NamedTuple):
    """Evaluations of a stack, by their positions, that are computed in one way.

    They have one kind of population and the same `shaping_options`. About is what the value of each
    is about, "" for its items; the reason says why they have no values, "" if they have.
    """

    rows: Array
    population: Population | None = None
    about: Sequence[str] = ()
    reason: str = ""
    asked: bytes = PLAIN


def kept_with(population: Population) -> dict[str, Any]:
    """Return what is stored beside an evaluation, so that a series need not read its options."""
    if population.strata == "own":
        return {"strata": "own"}
    return {"strata": population.strata, "shares": population.shares.tolist()}


def extras_of(stack: Stack) -> list[dict[str, Any]]:
    """Return what is stored beside each evaluation of a stack."""
    return [{} if content is None else orjson.loads(content) for content in stack.extras]


def kinds_of(stack: Stack, extras: Sequence[dict[str, Any]], *, uniform: bool) -> Iterator[OneKind]:
    """Divide evaluations by their options and populations, or at equal shares of the classes."""
    shaping = list(map(shaping_options, stack.options))
    if uniform:
        yield from _uniform(stack, shaping)
        return
    groups: dict[tuple[bytes, str], list[int]] = {}
    for row, (content, extra) in enumerate(zip(shaping, extras, strict=True)):
        strata = extra.get("population", {}).get("strata", "")
        groups.setdefault((content, strata), []).append(row)
    for (content, strata), rows in groups.items():
        places = np.array(rows)
        if strata == "":
            yield OneKind(places, asked=content)
        elif strata == "own":
            about = ["about a population with shares of strata of the items"] * len(rows)
            yield OneKind(places, None, about, STRATA_OF_ITEMS, content)
        else:
            shares = np.array([extras[row]["population"]["shares"] for row in rows])
            each = [Population(strata, row_shares) for row_shares in shares]  # type: ignore[arg-type]  # JSON
            about = [shares_text(population, stack.labels) for population in each]
            yield OneKind(places, Population(each[0].strata, shares), about, asked=content)


def _uniform(stack: Stack, shaping: Sequence[bytes]) -> Iterator[OneKind]:
    """Yield the evaluations at equal shares of the classes of which each has items."""
    table, refused = stack.table, np.full(len(stack.ids), stack.table.k > MOST_CLASSES)
    if table.spurious is not None:
        refused |= table.spurious.any(-1)
    weighed = {options for options in shaping if read_options(options, 0).cell_weights is not None}
    refused |= [options in weighed for options in shaping]
    rows = np.flatnonzero(refused)
    yield OneKind(rows, None, [""] * len(rows), NOT_WITH_POPULATION)
    for content in dict.fromkeys(shaping):
        rows = np.flatnonzero([options == content for options in shaping] & ~refused)
        populations = Population.uniform(table[rows])
        each = [Population("true", shares) for shares in populations.shares]
        about = [shares_text(population, stack.labels) for population in each]
        yield OneKind(rows, populations, about, asked=content)


def with_item_numbers(stack: Stack, extras: Sequence[Mapping[str, Any]]) -> ConfusionTable:
    """Return the tables of a stack, with the numbers of items behind weights if all have them."""
    if not stack.table.weighted or not all("items" in extra for extra in extras):
        return stack.table
    items = np.array([extra["items"] for extra in extras], dtype=np.float64)
    return replace(stack.table, items=items)


def estimates_of(
    table: ConfusionTable, kind: OneKind, selection: Selection, keys: tuple[str, ...] | None = None
) -> Iterator[tuple[Array, Estimates]]:
    """Yield positions of evaluations in a stack, and their estimates; none without a value."""
    options, together = replace(read_options(kind.asked, 0), indices=keys), TOGETHER
    if kind.population is not None:
        together = max(1, min(TOGETHER, MOST_CELLS // table.k**2))
    for start in range(0, 0 if kind.reason else len(kind.rows), together):
        part = slice(start, start + together)
        if kind.population is not None:
            population = replace(kind.population, shares=kind.population.shares[part])
            options = replace(options, population=population)
        yield kind.rows[part], Estimates.of(table[kind.rows[part]], options, selection)


class StoredValues:
    """Indices over stored evaluations, oldest first; uniform: at equal shares of the classes.

    Else each is at the population that it was stored with. Options of each are honoured, too.

    Attributes
    ----------
    labels
        All classes, those of the newest evaluation first.
    overall
        Shape (overall, evaluation) by `ids`; NaN for undefined values.
    per_class
        Shape (reported, evaluation, class); NaN for undefined values.
    low, high
        Limits of `per_class`, where they are asked for.
    """

    def __init__(
        self,
        stacks: list[Stack],
        selection: Selection,
        *,
        uniform: bool = False,
        limits: bool = False,
    ) -> None:
        self.stacks = stacks
        self.selection = selection
        self.ids = sorted(identifier for stack in stacks for identifier in stack.ids)
        self.labels = _labels(stacks)
        count = len(self.ids)
        self.overall = np.full((len(selection.overall), count), np.nan)
        self.per_class = np.full((selection.reported, count, len(self.labels)), np.nan)
        self.low, self.high = (np.full(self.per_class.shape, np.nan) for _ in "ab")
        row = {identifier: i for i, identifier in enumerate(self.ids)}
        column = {label: i for i, label in enumerate(self.labels)}
        for stack in stacks:
            rows = np.array([row[identifier] for identifier in stack.ids])
            columns = np.array([column[label] for label in stack.labels])
            extras = extras_of(stack)
            table = with_item_numbers(stack, extras)
            for kind in kinds_of(stack, extras, uniform=uniform):
                for places, estimates in estimates_of(table, kind, selection):
                    part, values = rows[places], estimates.values
                    self.overall[:, part] = finite(values.overall)
                    per_class = values.per_class[: selection.reported]
                    self.per_class[:, part[:, None], columns] = finite(per_class)
                    if limits and (intervals := estimates.intervals) is not None:
                        low, high = intervals.per_class_low, intervals.per_class_high
                        self.low[:, part[:, None], columns] = finite(low[: selection.reported])
                        self.high[:, part[:, None], columns] = finite(high[: selection.reported])

    def of_classes(self, index: Index) -> Array:
        """Return one index of the classes, shape (evaluation, class)."""
        values: Array = self.per_class[self.selection.place[index.key]]
        return values


def values_of_classes(
    store: Store,
    project: str,
    filters: Filters,
    *,
    newest: int,
    indices: Sequence[Index],
    uniform: bool = False,
    limits: bool = False,
) -> StoredValues:
    """Compute per-class indices over the newest evaluations of a project. Reads the store."""
    stacks = gathered(store, project, filters, newest=newest)
    if sum(len(stack.ids) for stack in stacks) * len(_labels(stacks)) > MOST_VALUES:
        raise refuse("/query/limit", "too_much", _TOO_MANY)
    selection = select(Options(indices=tuple(index.key for index in indices)))
    return StoredValues(stacks, selection, uniform=uniform, limits=limits)


def gathered(store: Store, project: str, filters: Filters, *, newest: int) -> list[Stack]:
    """Read tables that are in memory together; problem 422 if they take too much of it."""
    stacks, size = list[Stack](), 0
    with closing(timed(store.tables(project, filters, newest=newest))) as tables:
        for stack in tables:
            size += stack.table.cells.counts.nbytes
            if size > MOST_BYTES:
                raise refuse("/query/limit", "too_much", _TOO_MANY)
            stacks.append(stack)
    return stacks


def timed(stacks: Iterable[Stack]) -> Generator[Stack]:
    """Yield stacks, as long as the request has processor time left."""
    for stack in stacks:
        yield stack
        check_time()


def _labels(stacks: Iterable[Stack]) -> tuple[str, ...]:
    newest_first = sorted(stacks, key=lambda stack: max(stack.ids), reverse=True)
    return tuple(dict.fromkeys(label for stack in newest_first for label in stack.labels))
