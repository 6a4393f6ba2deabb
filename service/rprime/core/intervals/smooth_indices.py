"""The differentiable indices of a selection, grouped by the form of their derivatives."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rprime.core.arrays import Array, integers
from rprime.core.selection import Selection


@lru_cache(maxsize=256)
def smooth_class_indices(selection: Selection) -> tuple[tuple[int, ...], Array, Array]:
    """Return the functions of counts with a derivative, without one, and those of finite range."""
    computed = selection.computed
    smooth = tuple(i for i in selection.functions if computed[i].interval is not None)
    rough = integers(i for i in selection.functions if computed[i].interval is None)
    return smooth, rough, integers(i for i in smooth if np.isfinite(computed[i].range).all())


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
            return integers(i for i, e in found if e.reads in kinds)

        def averaged(entries: Array) -> Array:
            return integers(place[key] for i in entries for key in overall[i].of)

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
            means_from=integers(sum(sizes[:i]) for i in range(len(sizes))),
            pooled=pooled,
            numerators=integers(overall[i].rows[0] for i in pooled),
            denominators=integers(overall[i].rows[1] for i in pooled),
            moments=reading("moments"),
            by_cell=reading("table", "association"),
        )

    @cached_property
    def order(self) -> Array:
        """Positions among the overall entries in the order of `overall_terms`."""
        parts = (self.macro, self.weighted, self.means, self.pooled, self.moments, self.by_cell)
        return np.concatenate(parts)


smooth_overall_indices = lru_cache(maxsize=256)(SmoothOverallIndices.of)
