"""Ten builds that each lose a little: what an alias that only passes move, and an anchor, stop."""

from dataclasses import dataclass

import numpy as np
import pytest

from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import compare
from rprime.core.gates.gate import run_gate
from rprime.core.gates.rules import Gate, Rule
from rprime.core.options import Options
from tests.core.comparison_sides import side_of
from tests.simulation.rates import TODAY

OPTIONS = Options(indices=("accuracy",))


@dataclass(frozen=True)
class Decline:
    """Builds on so many items that each lose a share of them, under a rule with a limit."""

    items: int
    builds: int
    loss: float
    limit: float

    @property
    def true(self) -> np.ndarray:
        """The true classes."""
        return np.arange(self.items) % 3

    def side(self, right: np.ndarray) -> Side:
        """Return the side of a model that is right there."""
        return side_of(self.true, np.where(right, self.true, (self.true + 1) % 3), 3)

    def worse(self, right: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Return a model that loses a little, and differs by chance on 3 % of the items."""
        accuracy = right.mean()
        churn = np.where(right, 0.015 / accuracy, 0.015 / (1 - accuracy))
        after = right ^ (random.random(self.items) < churn)
        return np.asarray(after & (random.random(self.items) >= self.loss / accuracy))

    def lost(self, random: np.random.Generator, *, anchored: bool) -> float:
        """Return what the champion has lost after all builds."""
        first = champion = random.random(self.items) < 0.9
        rule = Rule(kind="max_drop", limit=self.limit, index="accuracy")
        gate = Gate(rules=(rule,), anchor_requested=anchored)
        for _ in range(self.builds):
            candidate = self.worse(champion, random)
            candidate_side = self.side(candidate)
            against, since = (
                compare(candidate_side, self.side(other), OPTIONS, attributed=())
                for other in (champion, first)
            )
            anchor = since if anchored else None
            result = run_gate(gate, candidate_side, against, OPTIONS, today=TODAY, anchor=anchor)
            champion = candidate if result.verdict == "pass" else champion
        return float(first.mean() - champion.mean())


TEN = Decline(5000, 10, 0.005, 0.02)
SECOND = (Decline(2000, 10, 0.01, 0.03), Decline(10_000, 20, 0.003, 0.01))


def losses(decline: Decline, draws: int, *, anchored: bool) -> tuple[float, float]:
    """Return the mean loss after all builds, and three standard errors of it."""
    random = np.random.default_rng(8)
    lost = np.array([decline.lost(random, anchored=anchored) for _ in range(draws)])
    return float(lost.mean()), 3 * float(lost.std() / np.sqrt(draws))


@pytest.mark.parametrize(("anchored", "low", "high"), [(False, 0.035, 0.06), (True, 0.0, 0.02)])
def test_an_anchor_stops_a_slow_decline(low: float, high: float, *, anchored: bool) -> None:
    mean, error = losses(TEN, 40, anchored=anchored)
    assert low - error <= mean <= high + error


@pytest.mark.slow
@pytest.mark.parametrize("decline", SECOND)
def test_an_anchor_keeps_its_limit_at_other_sizes(decline: Decline) -> None:
    mean, error = losses(decline, 30, anchored=True)
    assert mean <= decline.limit + error
