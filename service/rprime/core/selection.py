"""The indices that an evaluation computes, and their order."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rprime.core.arrays import Array, integers, positions
from rprime.core.catalog import CLASS_INDICES, FAMILY_OF, KEYS, OVERALL_INDICES, SCORE_KEYS
from rprime.core.families.averages import AVERAGES
from rprime.core.index import Index
from rprime.core.options import Options


@dataclass(frozen=True, eq=False)
class Selection:
    """The indices to report, and those that they depend on.

    Parameters
    ----------
    computed
        Per-class indices to compute: reported ones first, then those that averages need.
    reported, overall
        Number of these to report, and the overall indices, all reported.
    ratios, numerators, denominators
        Positions of the ratios of counts among `computed`, and the rows of their terms.
    functions
        Positions of the functions of `Counts`, and of the table, among `computed`.
    place, overall_place
        Position of each computed per-class key, and of each overall one.
    averages
        For macro, weighted and micro: positions among `overall`, rows among `computed`.
    formulas
        Positions among `overall` of the entries that are not averages.
    scored, overall_scored
        Positions of the entries that exist only if the request has scores.
    """

    computed: tuple[Index, ...]
    reported: int
    overall: tuple[Index, ...]
    ratios: Array
    numerators: Array
    denominators: Array
    functions: tuple[int, ...]
    place: dict[str, int]
    overall_place: dict[str, int]
    averages: dict[str, tuple[Array, Array]]
    formulas: tuple[int, ...]
    scored: tuple[int, ...]
    overall_scored: tuple[int, ...]

    @property
    def per_class(self) -> tuple[Index, ...]:
        """Per-class indices to report."""
        return self.computed[: self.reported]

    @cached_property
    def class_ranges(self) -> Array:
        """The ranges of the computed per-class indices, shape (2, computed)."""
        return _ranges(self.computed)

    @cached_property
    def overall_ranges(self) -> Array:
        """The ranges of the overall indices, shape (2, overall)."""
        return _ranges(self.overall)

    @cached_property
    def intervals(self) -> frozenset[str | None]:
        """The interval methods of the selected indices."""
        return frozenset(entry.interval for entry in (*self.computed, *self.overall))

    def averaged(self, index: Index) -> int:
        """Return the row of the per-class index that an average is of."""
        return self.place[index.of[0]]


def select(options: Options, *, scored: bool = False) -> Selection:
    """Select the indices that the options request; a KeyError if the catalog lacks one."""
    needs = {"cost": options.cost is not None, "kappa_weights": options.kappa_weights is not None}
    given = frozenset(name for name, present in needs.items() if present)
    return _select(options.indices, options.families, given, scored)


def default_keys(families: Collection[str] = ("core",), *, scored: bool) -> tuple[str, ...]:
    """Return the keys of families that evidence with or without scores allows."""
    chosen = (key for key in KEYS if "all" in families or FAMILY_OF[key] in families)
    return tuple(key for key in chosen if scored or key not in SCORE_KEYS)


DEFAULT_KEYS = frozenset(default_keys(scored=False))
"""Keys of a report without scores whose request names none."""


@lru_cache(maxsize=256)
def _select(
    indices: tuple[str, ...] | None,
    families: tuple[str, ...],
    given: frozenset[str],
    scored: bool,  # noqa: FBT001 (a key of the cache)
) -> Selection:
    wanted = {*(default_keys(scored=scored) if indices is None else indices)}
    wanted.update(default_keys(families, scored=scored))
    if unknown := wanted - set(KEYS):
        raise KeyError(min(unknown))
    computable = (e for e in OVERALL_INDICES.values() if e.needs is None or e.needs in given)
    overall = [entry for entry in computable if entry.key in wanted]
    reported = [entry for key, entry in CLASS_INDICES.items() if key in wanted]
    return arranged((*reported, *_needed_besides(overall, wanted)), len(reported), overall)


def arranged(computed: tuple[Index, ...], reported: int, overall: Sequence[Index]) -> Selection:
    """Arrange entries as a selection: per-class ones, how many of them to report, overall ones."""
    place = {entry.key: i for i, entry in enumerate(computed)}
    ratios = positions(entry.reads == "ratio" for entry in computed)
    return Selection(
        computed=computed,
        reported=reported,
        overall=tuple(overall),
        ratios=ratios,
        numerators=integers(computed[i].rows[0] for i in ratios),
        denominators=integers(computed[i].rows[1] for i in ratios),
        functions=tuple(i for i, e in enumerate(computed) if e.reads in ("counts", "table")),
        place=place,
        overall_place={entry.key: i for i, entry in enumerate(overall)},
        averages={kind: _averages(kind, overall, place) for kind in AVERAGES},
        formulas=tuple(i for i, e in enumerate(overall) if e.reads not in AVERAGES),
        scored=tuple(i for i, e in enumerate(computed) if e.scored),
        overall_scored=tuple(i for i, e in enumerate(overall) if e.scored),
    )


def _ranges(entries: Sequence[Index]) -> Array:
    return np.array([entry.range for entry in entries], dtype=np.float64).reshape(-1, 2).T


def _needed_besides(overall: list[Index], wanted: set[str]) -> list[Index]:
    """Return the per-class indices that averages need but the report omits."""
    averaged = [key for entry in overall for key in entry.of]
    # The interval of informedness: a warning about R' depends on it, and another interval.
    if wanted & {"r_prime", "peirce_skill_score"}:
        averaged.append("informedness")
    return [CLASS_INDICES[key] for key in dict.fromkeys(averaged) if key not in wanted]


def _averages(kind: str, overall: Sequence[Index], place: dict[str, int]) -> tuple[Array, Array]:
    found = positions(entry.reads == kind for entry in overall)
    return found, integers(place[overall[i].of[0]] for i in found)
