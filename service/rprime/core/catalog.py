"""The catalog of all indices, collected from the families."""

from dataclasses import replace
from functools import lru_cache
from types import ModuleType

import numpy as np

from rprime.core.families import (
    accuracy,
    agreement,
    association,
    calibration,
    classic,
    errors,
    information,
    one_vs_rest,
    ordinal,
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
    "ordinal": (ordinal,),
    "association": (pair_counting,),
    "information": (information,),
    "ranking": (probabilities,),
    "calibration": (calibration,),
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
ORDERED_KEYS = frozenset(entry.key for entry in INDICES if entry.ordered)
"""Keys of the indices that depend on the order of the classes."""


CUSTOM = "custom."
"""How the keys of indices of one's own begin, which a request declares by expressions."""


def find(scope: IndexScope, key: str) -> Index | None:
    """Return an entry, also of an index of one's own; None if there is no such key in the scope."""
    if key.startswith(CUSTOM):
        return custom_entry(key) if scope == "overall" else None
    return (CLASS_INDICES if scope == "class" else OVERALL_INDICES).get(key)


@lru_cache(maxsize=1024)
def custom_entry(key: str) -> Index:
    """Return what is the same of all indices of one's own; options have the expression of each."""
    name = key.removeprefix(CUSTOM)
    return Index(
        key=key,
        scope="overall",
        symbol=name,
        name=name.replace("_", " ").capitalize(),
        description="An index of one's own: the request has its expression.",
        tex=rf"\text{{{name.replace('_', ' ')}}}",
        source="the request",
        reads="custom",
        formula=_no_formula,
        range=(-np.inf, np.inf),
        best=None,
        undefined=("zero_denominator", "no_expression"),
        interval="score",
        averaged=False,
    )


def _no_formula() -> None:
    """Stand for the formula, which the options have."""
