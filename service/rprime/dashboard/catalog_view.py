"""Glossary: the catalog as the pages show it, in words."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from rprime.core.aliases import canonical
from rprime.core.catalog import INDICES
from rprime.core.index import Index
from rprime.core.intervals.methods import INTERVALS
from rprime.report.reasons import explained
from rprime.report.view import term
from rprime.schemas import IndexEntry, entry_of

INVARIANCES = {
    "class_order": "the classes are renamed or reordered",
    "scale": "all counts are multiplied by one factor",
    "prevalence": "the proportions of the true classes change, each class treated as before",
    "own_prevalence": "the proportion of its own class changes, that class treated as before",
    "transposition": "truth and predictions are exchanged",
}
"""What an index may stay the same under, where the classifier stays the same."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """An index of the catalog.

    Parameters
    ----------
    invariances
        What happens to the table, and whether the index stays the same.
    repeats, repeats_on_a_test_set
        Keys of other indices that order models the same way, or exactly the other way round:
        always, or among models on one test set; with whether they rise together.
    """

    term: dict[str, Any]
    facts: IndexEntry
    invariances: tuple[tuple[str, bool], ...]
    repeats: tuple[tuple[str, bool], ...]
    repeats_on_a_test_set: tuple[tuple[str, bool], ...]

    @classmethod
    def of(cls, index: Index) -> "CatalogEntry":
        """Read the catalog."""
        facts = entry_of(index)
        related = facts.properties.relations if facts.properties else []
        by_extent = {
            extent: tuple((one.key, one.rising) for one in related if one.extent == extent)
            for extent in ("always", "same_test_set")
        }
        return cls(
            term(index),
            facts,
            tuple(_invariances(facts)),
            by_extent["always"],
            by_extent["same_test_set"],
        )

    @property
    def words(self) -> str:
        """What a search looks at, in small letters."""
        facts = self.facts
        parts = (
            facts.name,
            facts.key,
            *facts.aliases,
            facts.symbol,
            facts.family,
            facts.description,
            facts.source,
        )
        return " ".join(parts).lower()

    @property
    def interval(self) -> str:
        """How its interval is made."""
        name = self.facts.interval
        return "none" if name is None else INTERVALS[name].words

    @property
    def undefined(self) -> str:
        """For which reasons it may not exist."""
        return "; ".join(explained(reason) for reason in self.facts.undefined_when)


def _invariances(facts: IndexEntry) -> Iterator[tuple[str, bool]]:
    for name, words in INVARIANCES.items():
        holds = getattr(facts.properties, name, None)
        if holds is not None:
            yield words, holds


@cache
def catalog() -> tuple[CatalogEntry, ...]:
    """Describe every index."""
    return tuple(map(CatalogEntry.of, INDICES))


def entries_of(key: str) -> tuple[CatalogEntry, ...]:
    """Describe the index of a key or an alias, overall and of a class, as far as there are both."""
    return tuple(entry for entry in catalog() if entry.facts.key == canonical(key))
