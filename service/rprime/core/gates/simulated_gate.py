"""What the simulations of gates share: a simulated gate, counted verdicts, other test sets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.gates.advice import RuleLint
from rprime.core.gates.verdict import (
    Decisions,
    GateVerdictCode,
    Plan,
    VerdictCode,
    conclude,
    effects,
)

if TYPE_CHECKING:
    from rprime.core.gates.lint import LintRun
    from rprime.core.gates.score_lint import NormalGate

ENDS = (0.025, 0.975)
"""Quantiles over these tables."""
Span = tuple[float | None, float | None]
"""Ends of an interval; None where there is no such number."""


SimulatedGate: TypeAlias = "LintRun | NormalGate"
"""A gate and the model that it is simulated on."""
Run = TypeVar("Run", "LintRun", "NormalGate")


@dataclass(frozen=True, eq=False)
class VerdictCounts:
    """Counts of verdicts: of the results, shape (m,), and of the gate, by `GateVerdictCode`."""

    replicates: int
    failed: FloatArray
    inconclusive: FloatArray
    gate: FloatArray

    @classmethod
    def of(cls, decisions: Decisions, plan: Plan) -> "VerdictCounts":
        """Count decisions of shape (replicates, m), or (m,) for a single one."""
        verdicts = np.atleast_2d(decisions.verdicts)
        gate = np.atleast_1d(conclude(decisions, effects(decisions, plan), plan))
        return cls(
            len(verdicts),
            np.add.reduce(verdicts == VerdictCode.fail, axis=0, dtype=np.float64),
            np.add.reduce(verdicts == VerdictCode.inconclusive, axis=0, dtype=np.float64),
            np.bincount(gate, minlength=len(GateVerdictCode)).astype(np.float64),
        )

    @classmethod
    def none(cls) -> "VerdictCounts":
        """Return the counts of a gate without rules."""
        return cls(1, np.zeros(0), np.zeros(0), np.zeros(len(GateVerdictCode)))

    def rate(self, counts: FloatArray) -> list[float]:
        """Return counts as shares of the replicates."""
        return [float(count) / self.replicates for count in counts]

    def __add__(self, other: "VerdictCounts") -> "VerdictCounts":
        return VerdictCounts(
            self.replicates + other.replicates,
            self.failed + other.failed,
            self.inconclusive + other.inconclusive,
            self.gate + other.gate,
        )


@dataclass(frozen=True, eq=False)
class OtherSets(Generic[Run]):
    """Other test sets like that of a run, as the model might have behaved on them.

    Parameters
    ----------
    runs
        The gate on each of them.
    drops
        What each result detects on them, shape (runs, m); infinite for nothing.
    chances
        Logarithm of the chance that all results of an unchanged model pass, if these were
        independent, shape (runs,).
    """

    runs: Sequence[Run]
    drops: FloatArray
    chances: FloatArray

    def ends(self, order: FloatArray) -> list[Run]:
        """Return the runs at both `ENDS` of an order, shape (runs,)."""
        places = np.argsort(order, kind="stable")
        return [self.runs[places[round(end * (len(places) - 1))]] for end in ENDS]


def rule_lints(
    run: Run, counted: VerdictCounts, others: OtherSets[Run], items: FloatArray
) -> Iterator[RuleLint]:
    """Yield the rates of every result, its items, shape (m,), and the drop that it detects."""
    rates = zip(counted.rate(counted.failed), counted.rate(counted.inconclusive), strict=True)
    own = run.detectable()
    drops = zip(own, span(others.drops, own), strict=True)
    slices = run.plan.slices or (None,) * len(run.plan.rules)
    results = zip(run.plan.rules, run.plan.labels, slices, items.tolist(), strict=True)
    for (rule, label, part, count), (failed, open_), (drop, interval) in zip(
        results, rates, drops, strict=True
    ):
        yield RuleLint(
            id=rule.name,
            class_=label,
            slice=None if part is None else dict(part),
            items=round(count) if np.isfinite(count) else 0,
            false_fail_rate=failed,
            inconclusive_rate=open_,
            detectable_drop=float(drop) if np.isfinite(drop) else None,
            detectable_interval=interval,
        )


def span(values: FloatArray, own: FloatArray) -> list[Span]:
    """Return intervals of numbers over tables, which contain those of the own table.

    Parameters
    ----------
    values
        Shape (tables, m); infinite for nothing.
    own
        Shape (m,): NaN for nothing. A table without errors lies outside of most that are drawn.

    Returns
    -------
    The ends; None where they are infinite.
    """
    here = np.nan_to_num(own, nan=np.inf)
    low, high = np.quantile(values, ENDS, axis=0, method="nearest")
    ends = zip(np.minimum(low, here).tolist(), np.maximum(high, here).tolist(), strict=True)
    return [(_finite(lowest), _finite(highest)) for lowest, highest in ends]


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
