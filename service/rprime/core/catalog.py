"""The catalog of all indices, collected from the families."""

from dataclasses import replace
from types import ModuleType

from rprime.core.families import (
    accuracy,
    agreement,
    association,
    classic,
    errors,
    information,
    one_vs_rest,
    pair_counting,
    probabilities,
    rater_agreement,
)
from rprime.core.families.averages import averages_of
from rprime.core.index import Family, Index, IndexScope
from rprime.core.scores import scores

FAMILIES: dict[Family, tuple[ModuleType, ...]] = {
    "core": (one_vs_rest, accuracy, agreement, association, errors, scores),
    "agreement": (rater_agreement,),
    "association": (pair_counting,),
    "information": (information,),
    "ranking": (probabilities,),
    "classic": (classic,),
}
"""The modules that declare the indices of every family."""


def declared(family: Family) -> list[Index]:
    """Collect the indices that the modules of a family declare, in their order."""
    entries = [entry for module in FAMILIES[family] for entry in vars(module).values()]
    return [replace(entry, family=family) for entry in entries if isinstance(entry, Index)]


def collect() -> tuple[Index, ...]:
    """Collect all entries: per class, overall, then the averages; no key twice within a scope."""
    entries = [entry for family in FAMILIES for entry in declared(family)]
    per_class = [entry for entry in entries if entry.scope == "class"]
    entries = per_class + [entry for entry in entries if entry.scope == "overall"]
    entries += [average for entry in per_class for average in averages_of(entry)]
    names = [(entry.scope, entry.key) for entry in entries]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"declared twice: {sorted(twice)}")
    return tuple(entries)


INDICES = collect()
CLASS_INDICES = {entry.key: entry for entry in INDICES if entry.scope == "class"}
OVERALL_INDICES = {entry.key: entry for entry in INDICES if entry.scope == "overall"}
FAMILY_OF = {entry.key: entry.family for entry in INDICES}
KEYS = tuple(dict.fromkeys(entry.key for entry in INDICES))
SCORE_KEYS = frozenset(entry.key for entry in INDICES if entry.scored)
"""Keys of the indices that exist only if the request has scores."""


def find(scope: IndexScope, key: str) -> Index | None:
    """Return an entry; None if the catalog has no such key in the scope."""
    return (CLASS_INDICES if scope == "class" else OVERALL_INDICES).get(key)
