"""What the simulations of gates share: counted verdicts, and other test sets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.comparison.alignment import Side
from rprime.core.gates.verdict import (
    Decisions,
    GateVerdictCode,
    Plan,
    VerdictCode,
    conclude,
    effects,
)

if TYPE_CHECKING:
    from rprime.core.gates.score_lint import NormalGate
    from rprime.core.gates.table_lint import LintRun

ENDS = (0.025, 0.975)
"""Quantiles over other test sets."""
SimulatedGate: TypeAlias = "LintRun | NormalGate"
"""A gate and the model that it is simulated on."""


class LintError(ValueError):
    """A gate cannot be simulated.

    `place` is where, as tokens of a JSON pointer: ("gates", "rules", 2, "slices"); empty: it is the
    evidence.
    """

    def __init__(self, message: str, place: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.place = place


def check_independent(side: Side) -> None:
    """Refuse items in groups or with weights: they are drawn one by one, as if all were alike."""
    items = side.items
    if items is not None and items.groups is not None:
        text = (
            "A simulation draws items one by one, but items of a group are alike, so that a gate "
            "needs more of them than it would say. Leave `groups` out to learn what independent "
            "items would do, and collect more than that."
        )
        raise LintError(text, ("groups",))
    if items is not None and items.weights is not None:
        raise LintError("A simulation needs items that count once.", ("sample_weight",))


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
class OtherSets:
    """Other test sets like that of a run, as the model might have behaved on them.

    `drops` are what each result detects on them, shape (runs, m), infinite for nothing; `chances`
    the logarithms of the chance that all results of an unchanged model pass, if these were
    independent, shape (runs,).
    """

    runs: Sequence[SimulatedGate]
    drops: FloatArray
    chances: FloatArray

    def ends(self, order: FloatArray) -> list[SimulatedGate]:
        """Return the runs at both `ENDS` of an order, shape (runs,)."""
        places = np.argsort(order, kind="stable")
        return [self.runs[places[round(end * (len(places) - 1))]] for end in ENDS]
