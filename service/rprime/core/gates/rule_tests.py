"""Test rules on values and differences, as many as possible in one pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.gates.rules import Rule
from rprime.core.gates.verdict import Codes, RuleTests

LimitPair = tuple[FloatArray, FloatArray]


class Statistic(Protocol):
    """Values or differences with limits and p-values, shape (..., m)."""

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Concatenate parts of one source along the last axis."""
        ...

    @property
    def source(self) -> object:
        """What the limits are computed from: only statistics with the same source can be joined."""
        ...

    @property
    def value(self) -> FloatArray:
        """The numbers themselves, NaN where undefined."""
        ...

    @property
    def standard_error(self) -> FloatArray:
        """The standard error, to first order."""
        ...

    def limits(self, level: float) -> LimitPair:
        """Return the one-sided limits, each at this level."""
        ...

    def p(self, threshold: FloatArray) -> LimitPair:
        """Return the smallest levels at which a number is below, and above, its threshold."""
        ...

    @property
    def p_of_no_change(self) -> LimitPair:
        """The smallest levels at which a number is below, and above, 0."""
        ...


@dataclass(frozen=True, eq=False)
class Untested:
    """Values that nothing is known of."""

    value: FloatArray

    @property
    def standard_error(self) -> FloatArray:
        """NaN."""
        return self.value * np.nan

    @property
    def source(self) -> type["Untested"]:
        """Return what no other statistic has."""
        return Untested

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Concatenate parts along the last axis."""
        return cls(np.concatenate([part.value for part in parts], axis=-1))

    def limits(self, level: float) -> LimitPair:  # noqa: ARG002 (there are none)
        """Return NaN."""
        return self.standard_error, self.standard_error

    def p(self, threshold: FloatArray) -> LimitPair:  # noqa: ARG002 (nothing is tested)
        """Return NaN."""
        return self.standard_error, self.standard_error

    @property
    def p_of_no_change(self) -> LimitPair:
        """NaN."""
        return self.standard_error, self.standard_error


class Testable(Protocol):
    """A rule and the statistic that it bounds."""

    @property
    def rule(self) -> Rule:
        """The rule."""
        ...

    @property
    def statistic(self) -> Statistic:
        """What it bounds."""
        ...

    @property
    def fixed(self) -> Codes:
        """Codes of `VerdictCode` where no test decides the verdict, shape (..., m)."""
        ...


@dataclass(frozen=True, eq=False)
class Tested:
    """The tests of a rule, its limits at a level, and its standard errors."""

    tests: RuleTests
    limits: Callable[[], LimitPair]
    error: Callable[[], FloatArray]


def judge_together(parts: Sequence[Testable], level: float) -> list[Tested]:
    """Test rules: those whose statistics have one source in one pass.

    Parameters
    ----------
    level
        Of the limits.

    Returns
    -------
    One for each part, in their order.
    """
    groups: dict[object, list[int]] = {}
    for i, part in enumerate(parts):
        groups.setdefault(part.statistic.source, []).append(i)
    found: dict[int, Tested] = {}
    for members in groups.values():
        group = _Group([parts[i] for i in members], level)
        found |= zip(members, map(group.tested, range(len(members))), strict=True)
    return [found[i] for i in range(len(parts))]


@dataclass(frozen=True, eq=False)
class _Group:
    """Rules with statistics of one source."""

    parts: Sequence[Testable]
    level: float

    @cached_property
    def joined(self) -> Statistic:
        first = self.parts[0].statistic
        return first.join([part.statistic for part in self.parts])

    @cached_property
    def ends(self) -> list[int]:
        return np.cumsum([part.fixed.shape[-1] for part in self.parts]).tolist()

    @cached_property
    def p(self) -> LimitPair:
        thresholds = [np.full(p.fixed.shape[-1], p.rule.threshold) for p in self.parts]
        return self.joined.p(np.concatenate(thresholds))

    @cached_property
    def limits(self) -> LimitPair:
        return self.joined.limits(self.level)

    @cached_property
    def error(self) -> FloatArray:
        return self.joined.standard_error

    @cached_property
    def p_of_no_change(self) -> LimitPair:
        return self.joined.p_of_no_change

    def tested(self, place: int) -> Tested:
        """Return the tests of one rule."""
        part = self.parts[place]
        own = slice(self.ends[place] - part.fixed.shape[-1], self.ends[place])
        unknown, below = np.full(part.fixed.shape, np.nan), part.rule.guards_below
        p_fail = p_pass = unknown

        tested = part.rule.test == "auto"

        def worse() -> FloatArray:
            if not (tested and part.rule.knows_suspects):
                return unknown
            return self.p_of_no_change[not below][..., own]

        if tested:
            p_fail, p_pass = (self.p[end][..., own] for end in (not below, below))
        return Tested(
            RuleTests(part.statistic.value, p_fail, p_pass, part.fixed, worse),
            lambda: (self.limits[0][..., own], self.limits[1][..., own]),
            lambda: self.error[..., own],
        )
