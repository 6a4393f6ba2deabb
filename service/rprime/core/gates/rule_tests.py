"""Test rules on values and differences, as many as possible in one pass."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.comparison.compare import Pairing
from rprime.core.comparison.difference import Difference
from rprime.core.comparison.mover import MoverLimits
from rprime.core.gates.rows import Rows
from rprime.core.gates.rules import Rule
from rprime.core.gates.verdict import Against, Codes, RuleTests

LimitPair = tuple[FloatArray, FloatArray]


Statistic = Difference | MoverLimits
"""Values or differences with limits and p-values, shape (..., m)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Draft:
    """What is known of a rule before it is tested: a column for each row of its evidence.

    Parameters
    ----------
    rule, rows, against, reasons
        As in `RuleEvidence`.
    statistic
        To be tested.
    fixed
        Codes of `VerdictCode` where no test decides the verdict.
    numbers
        Observed value and items, and for a difference baseline and delta.
    methods
        Of the limits; empty where nobody asks.
    pairing
        Of a comparison.
    """

    rule: Rule
    rows: Rows
    statistic: Statistic
    fixed: Codes
    numbers: Mapping[str, FloatArray]
    reasons: tuple[str, ...] = ()
    methods: Sequence[str | None] = ()
    against: Against | None = None
    pairing: Pairing | None = None


@dataclass(frozen=True, eq=False)
class Tested:
    """The tests of a rule, its limits at a level, and its standard errors."""

    tests: RuleTests
    limits: Callable[[], LimitPair]
    error: Callable[[], FloatArray]


def judge_together(parts: Sequence[Draft], level: float) -> list[Tested]:
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

    parts: Sequence[Draft]
    level: float

    @cached_property
    def joined(self) -> Statistic:
        parts: list[Any] = [part.statistic for part in self.parts]  # of one type: one source
        found: Statistic = type(parts[0]).join(parts)
        return found

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
