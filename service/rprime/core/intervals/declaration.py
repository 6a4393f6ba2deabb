"""The declaration of an interval method, and the inputs of its limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.intervals.design_effect import DesignEffects
from rprime.core.intervals.gradient import ClassGradient
from rprime.core.intervals.proportions import clopper_pearson, confidence_of, wilson
from rprime.core.intervals.scales import DeltaScales, ScaleDistance
from rprime.core.values import Values


@dataclass(frozen=True, eq=False)
class IntervalInputs:
    """The shared inputs of the limits of all indices.

    Parameters
    ----------
    successes, trials
        Shape (p, ..., k + 1): counts of the distinct proportions, pooled ones last; divided by
        the design effects if items are grouped. The first four are the union
        (TP of TP + FP + FN), recall, the false positive rate and the prevalence.
    wilson
        Shape (2, p, ..., k + 1): their Wilson limits.
    gradient
        Gradients of the per-class indices.
    deviations
        Shape (computed, ..., k): their delta standard deviations.
    effects, class_effects
        Design effects of the groups, if any, and those on the per-class indices.
    """

    values: Values
    quantile: float
    successes: Array
    trials: Array
    wilson: Array
    gradient: ClassGradient
    deviations: Array
    effects: DesignEffects | None
    class_effects: Array | float

    def at(self, quantile: float) -> "IntervalInputs":
        """Return the same inputs for another quantile."""
        found = np.array(wilson(self.successes, self.trials, quantile))
        return replace(self, quantile=quantile, wilson=found)

    @cached_property
    def proportion_limits(self) -> Array:
        """Requested limits of the distinct proportions: Wilson or exact."""
        options = self.values.options
        if not options.exact:
            return self.wilson
        return np.array(clopper_pearson(self.successes, self.trials, confidence_of(self.quantile)))

    @cached_property
    def rates(self) -> Array:
        """Recall, false positive rate and prevalence, shape (3, ..., k)."""
        return self.successes[1:4, ..., :-1] / self.trials[1:4, ..., :-1]

    @cached_property
    def rate_squares(self) -> Array:
        """Squared distances of the rates from their Wilson limits, shape (2, 3, ..., k)."""
        return np.asarray((self.wilson[:, 1:4, ..., :-1] - self.rates) ** 2)


@dataclass(frozen=True, eq=False)
class EntryGroup:
    """The per-class entries of a selection with one interval method.

    Parameters
    ----------
    positions
        Shape (n,), among the computed per-class entries.
    proportions
        For proportions: their positions among the distinct ones.
    scales
        For delta limits.
    """

    positions: Array
    proportions: Array
    scales: DeltaScales


@dataclass(frozen=True, eq=False, kw_only=True)
class IntervalMethod:
    """A kind of interval that an index can declare.

    Parameters
    ----------
    name
        The name of the decorated function; an index declares it as its `interval`.
    words
        Description for people.
    scales
        The reported methods, each with the scale on which its limits are proportional to the
        quantile; None where the gate must search for the quantile.
    choose
        Chooses the reported method of an entry; the flag requests exact limits.
    limits
        Returns the limits (2, n, ..., k) of a group of per-class entries, or the limits (2, ...)
        of an entry of scores.
    mixes_spurious
        Whether it has no limits if there are spurious items, which are not a sample.
    lowest
        Smallest possible limit, if the range of the index is wider.
    """

    name: str
    words: str
    scales: Mapping[str, ScaleDistance | None]
    choose: Callable[[Index, bool], str]
    limits: Callable[..., Array]
    mixes_spurious: bool = False
    lowest: float = -np.inf


def interval(
    *,
    words: str,
    scales: Mapping[str, ScaleDistance | None],
    choose: Callable[[Index, bool], str] | None = None,
    **fields: Any,  # noqa: ANN401 (the other fields of IntervalMethod)
) -> Callable[[Callable[..., Array]], IntervalMethod]:
    """Declare an interval method by the function of its limits."""
    first = next(iter(scales))

    def declare(limits: Callable[..., Array]) -> IntervalMethod:
        return IntervalMethod(
            name=limits.__name__,
            words=words,
            scales=scales,
            choose=choose or (lambda *_: first),
            limits=limits,
            **fields,
        )

    return declare
