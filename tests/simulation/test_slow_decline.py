"""Ten builds that each lose a little: what an alias that only passes move, and an anchor, stop."""

import numpy as np
import pytest

from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import compare
from rprime.core.gates.gate import run_gate
from rprime.core.gates.rules import Gate, Rule
from rprime.core.options import Options
from tests.core.comparison_sides import side_of
from tests.simulation.rates import TODAY

ITEMS, BUILDS, LOSS, LIMIT = 5000, 10, 0.005, 0.02
OPTIONS = Options(indices=("accuracy",))
TRUE = np.arange(ITEMS) % 3


def side(right: np.ndarray) -> Side:
    return side_of(TRUE, np.where(right, TRUE, (TRUE + 1) % 3), 3)


def worse(right: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return a model that loses a little, and differs by chance on 3 % of the items."""
    accuracy = right.mean()
    churn = np.where(right, 0.015 / accuracy, 0.015 / (1 - accuracy))
    after = right ^ (random.random(ITEMS) < churn)
    return np.asarray(after & (random.random(ITEMS) >= LOSS / accuracy))


def lost(random: np.random.Generator, *, anchored: bool) -> float:
    """Return what the champion has lost after all builds."""
    first = champion = random.random(ITEMS) < 0.9
    rule = Rule(kind="max_drop", limit=LIMIT, index="accuracy")
    gate = Gate(rules=(rule,), anchor_requested=anchored)
    for _ in range(BUILDS):
        candidate = worse(champion, random)
        candidate_side = side(candidate)
        against, since = (
            compare(candidate_side, side(other), OPTIONS, attributed=())
            for other in (champion, first)
        )
        anchor = since if anchored else None
        result = run_gate(gate, candidate_side, against, OPTIONS, today=TODAY, anchor=anchor)
        champion = candidate if result.verdict == "pass" else champion
    return float(first.mean() - champion.mean())


@pytest.mark.parametrize(("anchored", "low", "high"), [(False, 0.035, 0.06), (True, 0.0, 0.02)])
def test_an_anchor_stops_a_slow_decline(low: float, high: float, *, anchored: bool) -> None:
    random = np.random.default_rng(8)
    losses = np.array([lost(random, anchored=anchored) for _ in range(40)])
    error = losses.std() / np.sqrt(losses.size)
    assert low - 3 * error <= losses.mean() <= high + 3 * error, losses.mean()
