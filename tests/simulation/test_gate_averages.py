"""How often gates about all classes pass: those of the table in docs/coverage.md."""

import os
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import compare
from rprime.core.gates.gate import run_gate
from rprime.core.gates.results import GateResult
from rprime.core.gates.rules import Gate, Rule
from rprime.core.options import Options
from tests.core.comparison_sides import side_of
from tests.simulation.rates import TODAY

BUILDS = int(os.environ.get("RPRIME_TEST_GATES", "40"))
"""Builds of each setting; `bash .ci/run --full` asks for 2 000."""
RECALL = 0.9
Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class Setting:
    """Classes of equal size whose recall falls, and the range of the rate at which gates pass.

    `churn` is the share of items that only one of two equally good models gets right; the first
    `losing` classes lose `loss` of their recall.
    """

    k: int
    items: int
    lowest: float
    highest: float
    loss: float = 0.0
    losing: int = 0
    churn: float = 0.06
    limit: float = 0.1

    def build(self, random: np.random.Generator) -> tuple[Codes, Codes, Codes]:
        """Draw the true classes, and the predictions of the baseline and of the candidate."""
        true = np.repeat(np.arange(self.k), self.items)
        wrong = (true + random.integers(1, self.k, true.size)) % self.k
        right = random.random(true.size) < RECALL
        share = np.where(right, self.churn / 2 / RECALL, self.churn / 2 / (1 - RECALL))
        after = right ^ (random.random(true.size) < share)
        lost = np.where(true < self.losing, self.loss, 0.0)
        after &= random.random(true.size) >= lost / RECALL
        old, new = (np.where(flags, true, wrong) for flags in (right, after))
        return true.astype(np.uint8), old.astype(np.uint8), new.astype(np.uint8)

    def gates(self, builds: int, seed: int) -> list[GateResult]:
        """Judge that many builds."""
        random = np.random.default_rng((seed, self.k, self.items, self.losing))
        gate, options, results = recall_gate(self.limit), Options(indices=("recall",)), []
        for _ in range(builds):
            true, old, new = self.build(random)
            # One array of true classes: the same items.
            candidate, baseline = (side_of(true, codes, self.k) for codes in (new, old))
            comparison = compare(candidate, baseline, options, attributed=())
            results.append(run_gate(gate, candidate, comparison, options, today=TODAY))
        return results

    def __str__(self) -> str:
        lost = f"{self.losing} lose {self.loss}" if self.losing else "unchanged"
        return f"{self.k} x {self.items}, {lost}"


SETTINGS = (
    Setting(10, 30, 0.95, 1.0),
    Setting(100, 30, 0.95, 1.0),
    Setting(10, 30, 0.02, 0.07, 0.1, 10),
    Setting(50, 30, 0.0, 0.02, 0.1, 50),
    Setting(100, 30, 0.0, 0.01, 0.1, 100),
    Setting(100, 30, 0.15, 0.35, 0.05, 100),
    Setting(50, 30, 0.0, 0.01, 0.15, 25),
    Setting(100, 30, 0.0, 0.01, 0.15, 50),
    Setting(10, 30, 0.45, 0.65, 0.2, 1),
    Setting(10, 30, 0.15, 0.30, 0.3, 1),
    Setting(100, 30, 0.50, 0.70, 0.2, 1),
    Setting(100, 30, 0.20, 0.36, 0.3, 1),
    Setting(10, 90, 0.02, 0.09, 0.2, 1),
    # Losses at other sizes.
    Setting(20, 30, 0.0, 0.06, 0.1, 20),
    Setting(10, 60, 0.0, 0.06, 0.1, 10),
    Setting(20, 30, 0.65, 0.82, 0.05, 20),
    Setting(10, 30, 0.10, 0.20, 0.15, 5),
    Setting(20, 30, 0.04, 0.12, 0.15, 10),
    Setting(20, 30, 0.50, 0.66, 0.2, 1),
    Setting(20, 30, 0.20, 0.35, 0.3, 1),
    Setting(10, 60, 0.13, 0.25, 0.2, 1),
    Setting(10, 60, 0.0, 0.05, 0.3, 1),
    Setting(10, 120, 0.0, 0.04, 0.2, 1),
    Setting(20, 90, 0.02, 0.09, 0.2, 1),
    # Unchanged models at other sizes, churn and limits.
    Setting(10, 90, 0.95, 1.0),
    Setting(50, 30, 0.95, 1.0),
    Setting(10, 30, 0.85, 1.0, churn=0.2),
    Setting(10, 300, 0.92, 1.0, churn=0.1, limit=0.03),
    Setting(10, 1000, 0.90, 1.0, limit=0.01),
    Setting(10, 300, 0.94, 1.0, limit=0.03),
    Setting(10, 90, 0.94, 1.0, churn=0.2),
    Setting(10, 300, 0.90, 0.96, churn=0.2, limit=0.03),
    Setting(20, 500, 0.90, 0.96, churn=0.1, limit=0.02),
    Setting(50, 30, 0.75, 0.85, churn=0.2),
    Setting(10, 1000, 0.64, 0.76, churn=0.2, limit=0.01),
)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_gates_about_all_classes_pass_as_often_as_the_documentation_says(setting: Setting) -> None:
    builds = max(BUILDS * 10 // setting.k, BUILDS // 4) if BUILDS <= 40 else BUILDS
    results = setting.gates(builds, 1)
    counted = Counter(result.verdict for result in results)
    rate = counted["pass"] / builds
    assert setting.lowest - 3 * _error(setting.lowest, builds) <= rate, counted
    assert rate <= setting.highest + 3 * _error(setting.highest, builds), counted
    if not setting.losing:
        assert counted["fail"] / builds <= 0.01 + 3 * _error(0.01, builds)


@pytest.mark.parametrize(
    "setting", [Setting(10, 90, 0, 0.09, 0.2, 1), Setting(20, 60, 0, 0.12, 0.25, 1)], ids=str
)
def test_leaving_out_what_a_class_lost_passes_no_more_often_than_wrong_answers(
    setting: Setting,
) -> None:
    random, gate = np.random.default_rng(6), recall_gate(setting.limit)
    builds, passed = max(BUILDS, 40), np.zeros(2)
    for _ in range(builds):
        true, old, new = setting.build(random)
        baseline = with_ids(side_of(true, old, setting.k), np.arange(true.size))
        there = (new == true) | (old != true) | (true >= setting.losing)
        for i, kept in enumerate((np.ones(true.size, bool), there)):
            places = np.flatnonzero(kept)
            candidate = with_ids(side_of(true[places], new[places], setting.k), places)
            options = Options(indices=("recall",))
            comparison = compare(candidate, baseline, options, attributed=())
            result = run_gate(gate, candidate, comparison, options, today=TODAY)
            passed[i] += result.verdict == "pass"
    wrong, left_out = passed / builds
    assert left_out <= wrong + 3 * _error(wrong, builds) / 2
    assert left_out <= setting.highest + 3 * _error(setting.highest, builds)


def recall_gate(limit: float) -> Gate:
    return Gate(rules=(Rule(kind="max_drop", limit=limit, index="recall", classes="all"),))


def with_ids(side: Side, places: NDArray[np.intp]) -> Side:
    """Return a side whose items have ids, in a test set of its own."""
    assert side.items is not None
    items = replace(side.items, ids=places.astype(np.uint64))
    return replace(side, items=items, fingerprint=str(hash(places.tobytes())))


def _error(share: float, builds: int) -> float:
    """Return the standard error of a share."""
    return float(np.sqrt(max(share * (1 - share), 0.01) / builds))
