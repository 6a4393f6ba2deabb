"""The catalog of all indices, collected from the families."""

from types import ModuleType

from rprime.core.families import accuracy, agreement, association, errors, ground_truth, one_vs_rest
from rprime.core.families.averages import averages_of
from rprime.core.index import Index, IndexScope
from rprime.core.scores import scores

FAMILIES = (one_vs_rest, ground_truth, accuracy, agreement, association, errors, scores)


def declared(family: ModuleType) -> list[Index]:
    """Collect the indices that a family module declares, in the order of the module."""
    return [entry for entry in vars(family).values() if isinstance(entry, Index)]


def collect() -> tuple[Index, ...]:
    """Collect all entries: per class, overall, then the averages.

    Raises
    ------
    ValueError
        If a key is declared twice within a scope.
    """
    entries = [entry for family in FAMILIES for entry in declared(family)]
    per_class = [entry for entry in entries if entry.scope == "class"]
    entries = per_class + [entry for entry in entries if entry.scope == "overall"]
    entries += [average for entry in per_class for average in averages_of(entry)]
    names = [(entry.scope, entry.key) for entry in entries]
    if twice := {name for name in names if names.count(name) > 1}:
        message = f"declared twice: {sorted(twice)}"
        raise ValueError(message)
    return tuple(entries)


INDICES = collect()
CLASS_INDICES = {entry.key: entry for entry in INDICES if entry.scope == "class"}
OVERALL_INDICES = {entry.key: entry for entry in INDICES if entry.scope == "overall"}
KEYS = tuple(dict.fromkeys(entry.key for entry in INDICES))
SCORE_KEYS = frozenset(entry.key for entry in INDICES if entry.scored)
"""Keys of the indices that exist only if the request has scores."""


def find(scope: IndexScope, key: str) -> Index | None:
    """Return an entry; None if the catalog has no such key in the scope."""
    return (CLASS_INDICES if scope == "class" else OVERALL_INDICES).get(key)
