"""The differentiable indices of a selection, grouped by the form of their derivatives."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rprime.core.arrays import Array
from rprime.core.selection import Selection


@dataclass(frozen=True, eq=False)
class SmoothClassIndices:
    """The differentiable per-class indices of a selection, by the form of their derivatives.

    Parameters
    ----------
    ratios, numerators, denominators
        Ratios of counts, and their `CountRow`s.
    functions
        Differentiable functions of the counts; `bounded` lists those with a finite range.
    rough
        Indices without a derivative.
    """

    ratios: Array
    numerators: Array
    denominators: Array
    functions: tuple[int, ...]
    rough: Array
    bounded: Array

    @classmethod
    def of(cls, selection: Selection) -> "SmoothClassIndices":
        """Group the per-class entries of a selection."""
        computed = selection.computed
        functions = tuple(i for i in selection.functions if computed[i].interval is not None)
        rough = [i for i in selection.functions if computed[i].interval is None]
        bounded = [i for i in functions if np.isfinite(computed[i].range).all()]
        return cls(
            selection.ratios,
            selection.numerators,
            selection.denominators,
            functions,
            np.array(rough, dtype=np.intp),
            np.array(bounded, dtype=np.intp),
        )


smooth_class_indices = lru_cache(maxsize=256)(SmoothClassIndices.of)


@dataclass(frozen=True, eq=False)
class SmoothOverallIndices:
    """The differentiable overall indices of a selection, by what they read.

    Parameters
    ----------
    macro, weighted, means, pooled, moments, by_cell
        Positions among the overall entries.
    macro_of, weighted_of, means_of
        Positions of the averaged per-class entries, in the same order, several for a function
        of several means.
    means_from
        Start of the averages of each function of means.
    numerators, denominators
        Terms of the pooled ratios, as `CountRow`s.
    """

    macro: Array
    macro_of: Array
    weighted: Array
    weighted_of: Array
    means: Array
    means_of: Array
    means_from: Array
    pooled: Array
    numerators: Array
    denominators: Array
    moments: Array
    by_cell: Array

    @classmethod
    def of(cls, selection: Selection) -> "SmoothOverallIndices":
        """Group the overall entries of a selection."""
        overall, place = selection.overall, selection.place

        def reading(*kinds: str) -> Array:
            found = [(i, e) for i, e in enumerate(overall) if e.interval and not e.scored]
            return _integers(i for i, e in found if e.reads in kinds)

        def averaged(entries: Array) -> Array:
            return _integers(place[key] for i in entries for key in overall[i].of)

        macro, weighted, means = reading("macro"), reading("weighted"), reading("means")
        pooled = reading("micro", "ratio")
        sizes = [len(overall[i].of) for i in means]
        return cls(
            macro=macro,
            macro_of=averaged(macro),
            weighted=weighted,
            weighted_of=averaged(weighted),
            means=means,
            means_of=averaged(means),
            means_from=_integers(sum(sizes[:i]) for i in range(len(sizes))),
            pooled=pooled,
            numerators=_integers(overall[i].rows[0] for i in pooled),
            denominators=_integers(overall[i].rows[1] for i in pooled),
            moments=reading("moments"),
            by_cell=reading("table", "association"),
        )

    @cached_property
    def order(self) -> Array:
        """Positions among the overall entries in the order of `overall_terms`."""
        parts = (self.macro, self.weighted, self.means, self.pooled, self.moments, self.by_cell)
        return np.concatenate(parts)


smooth_overall_indices = lru_cache(maxsize=256)(SmoothOverallIndices.of)


def _integers(values: Iterable[int]) -> Array:
    return np.fromiter(values, dtype=np.intp)
