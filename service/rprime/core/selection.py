"""The indices that an evaluation computes, and their order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import compress
from typing import NamedTuple

import numpy as np

from rprime.core.arrays import Array, integers, positions
from rprime.core.catalog import (
    CLASS_INDICES,
    CUSTOM,
    FAMILY_OF,
    KEYS,
    OVERALL_INDICES,
    SCORE_KEYS,
    custom_entry,
)
from rprime.core.families.averages import AVERAGES
from rprime.core.index import Index
from rprime.core.options import Options

SUMMARY = (
    *("accuracy", "r_prime", "balanced_accuracy", "macro_precision", "macro_recall", "macro_f1"),
    *("weighted_f1", "kappa", "mcc", "coverage"),
    *("macro_roc_auc", "macro_average_precision"),
    *("log_loss", "brier_score", "expected_calibration_error"),
    *("recall", "precision", "f1", "informedness", "share_of_errors"),
)
"""The family `summary`: the indices that every answer, page and list shows first, in this order.

It has `coverage` where items have no prediction, and indices of scores where there are scores.
"""
BY_OPTION = {
    "beta": ("f_beta", "macro_f_beta", "weighted_f_beta", "micro_f_beta"),
    "cost": ("expected_cost", "normalized_expected_cost"),
    "kappa_weights": ("weighted_kappa",),
    "top_k": ("top_k_accuracy",),
    "calibration": (
        *("root_mean_square_calibration_error", "maximum_calibration_error"),
        *("debiased_calibration_error", "macro_class_calibration_error"),
        *("brier_reliability", "brier_resolution", "brier_uncertainty"),
        *("class_calibration_error", "calibration_slope", "calibration_intercept"),
    ),
    "population": ("prevalence",),
}
"""The indices that an option adds to the summary; a population only if it has to be estimated."""
_RANK = {key: rank for rank, key in enumerate(SUMMARY)}


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


def select(options: Options, *, scored: bool = False, omits: bool = False) -> Selection:
    """Select the indices that the options request; a KeyError if the catalog lacks one.

    Parameters
    ----------
    scored, omits
        Whether the evidence has scores, and whether items may have no prediction.
    """
    return _select(_request(options, scored=scored, omits=omits))


def requested_keys(
    options: Options, *, scored: bool = False, omits: bool = False
) -> frozenset[str]:
    """Return the keys that the options request, by name or by family."""
    return _keys(_request(options, scored=scored, omits=omits))


class _Request(NamedTuple):
    """All that a selection depends on."""

    indices: tuple[str, ...] | None
    families: tuple[str, ...]
    options: tuple[str, ...]
    scored: bool
    omits: bool
    custom: tuple[str, ...]


def _request(options: Options, *, scored: bool, omits: bool) -> _Request:
    custom = tuple(index.key for index in options.custom) if options.custom else ()
    selecting = options.indices, options.families, _set_options(options)
    return _Request(*selecting, scored, omits, custom)


def _set_options(options: Options) -> tuple[str, ...]:
    """Return which of the options that add indices are set."""
    is_set = (
        options.beta != 1,
        options.cost is not None,
        options.kappa_weights is not None,
        options.top_k is not None,
        options.calibration is not None,
        options.population is not None and options.population.strata != "true",
    )
    return tuple(compress(BY_OPTION, is_set))


@lru_cache(maxsize=256)
def _keys(request: _Request) -> frozenset[str]:
    families = request.families or (("summary",) if request.indices is None else ())
    of_families = (key for family in families for key in _keys_of(family, request))
    return frozenset(request.indices or ()).union(of_families)


def _keys_of(family: str, request: _Request) -> Iterator[str]:
    """Yield the keys of a family that the evidence and the options allow."""
    if family == "summary":
        by_option = (key for option in request.options for key in BY_OPTION[option])
        summary = (key for key in SUMMARY if request.omits or key != "coverage")
        keys = (*summary, *by_option, *request.custom)
    elif family == "all":
        keys = KEYS
    else:
        repeats = () if "beta" in request.options else BY_OPTION["beta"]
        keys = tuple(k for k in KEYS if FAMILY_OF[k] == family and k not in repeats)
    return (key for key in keys if request.scored or key not in SCORE_KEYS)


@lru_cache(maxsize=256)
def _select(request: _Request) -> Selection:
    keys = _keys(request)
    custom = [key for key in (*request.custom, *(request.indices or ())) if key.startswith(CUSTOM)]
    if unknown := keys - set(custom) - set(KEYS):
        raise KeyError(min(unknown))
    overall, reported = (
        sorted(
            (entry for key, entry in entries.items() if key in keys),
            key=lambda entry: _RANK.get(entry.key, len(_RANK)),
        )
        for entries in (OVERALL_INDICES, CLASS_INDICES)
    )
    overall = [entry for entry in overall if entry.needs is None or entry.needs in request.options]
    overall += [custom_entry(key) for key in dict.fromkeys(custom) if key in keys]
    return arranged((*reported, *_needed_besides(overall, keys)), len(reported), overall)


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


def _needed_besides(overall: list[Index], keys: frozenset[str]) -> list[Index]:
    """Return the per-class indices that averages need but the report omits."""
    averaged = [key for entry in overall for key in entry.of]
    # The interval of informedness: a warning about R' depends on it, and another interval.
    if keys & {"r_prime", "peirce_skill_score"}:
        averaged.append("informedness")
    return [CLASS_INDICES[key] for key in dict.fromkeys(averaged) if key not in keys]


def _averages(kind: str, overall: Sequence[Index], place: dict[str, int]) -> tuple[Array, Array]:
    places = positions(entry.reads == kind for entry in overall)
    return places, integers(place[overall[i].of[0]] for i in places)
