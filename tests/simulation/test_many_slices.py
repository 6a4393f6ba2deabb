"""Gates over many slices: false fails of an unchanged model, false passes and limits of the gap."""

import os
from dataclasses import replace

import numpy as np
import pytest

from rprime.core.arrays import Array
from rprime.core.comparison.compared_side import LimitSource
from rprime.core.gates.evidence import GapLimits
from rprime.core.gates.rules import Gate, Rule
from rprime.core.gates.simulation import LintRun, VerdictCounts
from rprime.core.gates.targets import Estimate
from rprime.core.gates.verdict import GateVerdictCode
from rprime.core.options import Options
from rprime.core.selection import select
from tests.simulation.test_gates import at_least, at_most

DRAWS = int(os.environ.get("RPRIME_TEST_SLICE_DRAWS", "500"))
FEW = 200
SHARES = (0.5, 0.3, 0.2)
"""Of the classes in every slice."""
RECALL = 0.9
GAP = 0.1
LABELS = tuple("abc")
CHANGES = Gate(
    rules=(
        Rule(index="accuracy", kind="max_drop", limit=0.05, slices="all"),
        Rule(index="macro_f1", kind="max_drop", limit=0.05, slices="all"),
        Rule(index="recall", kind="max_drop", limit=0.1, classes="all", slices="all"),
    )
)
GAPS = Gate(
    rules=(
        Rule(index="accuracy", kind="max_gap", limit=GAP, slices="region"),
        Rule(index="recall", kind="max_gap", limit=GAP, classes="all", slices="region"),
        Rule(index="precision", kind="max_gap", limit=GAP, classes="all", slices="region"),
    )
)


def sizes_from(least: int, slices: int) -> np.ndarray:
    """Return numbers of items of slices, the largest ten times the smallest."""
    return np.geomspace(least, 10 * least, slices).round().astype(int)


def simulated(gate: Gate, sizes: np.ndarray, recall: np.ndarray, *, paired: bool) -> LintRun:
    """Return a gate on slices of these sizes, whose classes have this recall each."""
    k, random = len(SHARES), np.random.default_rng(len(sizes))
    support = np.array([random.multinomial(size, SHARES) for size in sizes], dtype=np.float64)
    wrong = ((1 - recall) / (k - 1))[:, None, None] * (1 - np.eye(k))
    law = recall[:, None, None] * np.eye(k) + wrong
    return LintRun(
        gate=gate,
        labels=LABELS,
        counts=np.diag(support.sum(0)),
        pairing="paired" if paired else "unpaired",
        discordance=0.06,
        slices=tuple((("region", str(i)),) for i in range(len(sizes))),
        sliced=support[..., None] * law,
    )


def share(counts: VerdictCounts, verdict: GateVerdictCode) -> int:
    """Return the draws with this verdict of the gate."""
    return int(counts.gate[verdict])


def unchanged(gate: Gate, slices: int, least: int, draws: int, *, paired: bool) -> int:
    """Return how many of the draws of an unchanged model fail."""
    run = simulated(gate, sizes_from(least, slices), np.full(slices, RECALL), paired=paired)
    return share(run.counted(draws, slices + least), GateVerdictCode.fail)


def at_margin(slices: int, items: int, draws: int, worse: int = 1) -> tuple[int, int, np.ndarray]:
    """Draw slices of which some are worse by exactly the limit of a gap.

    Returns
    -------
    How often a gate on the accuracy passes and fails, and how often the lower and the upper limit
    are on their side of the true gap.
    """
    recall = np.full(slices, RECALL)
    recall[:worse] -= GAP
    run = simulated(Gate(rules=GAPS.rules[:1]), np.full(slices, items), recall, paired=False)
    counted = run.counted(draws, items)
    drawn = run.models[1].draw(draws, np.random.default_rng(items))
    options = Options(indices=("accuracy",))
    estimates = drawn.compared(options, LABELS, None).candidate.estimates
    entry = select(options).overall[0]
    limits = GapLimits.of_stack(Estimate(estimates, entry), list(range(slices)), 0)
    low, high = limits.limits(GAPS.pass_level())
    covered = np.array([(low <= GAP).sum(), (high >= GAP).sum()])
    passed, failed = (
        share(counted, code) for code in (GateVerdictCode.passed, GateVerdictCode.fail)
    )
    return passed, failed, covered


@pytest.mark.parametrize("paired", [True, False], ids=["paired", "unpaired"])
def test_an_unchanged_model_seldom_fails_on_twenty_slices(*, paired: bool) -> None:
    assert at_most(unchanged(CHANGES, 20, 10, FEW, paired=paired), FEW, 0.01)


def test_limits_of_all_slices_are_computed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step towards a p-value once computed the limits of every slice, for every slice."""
    calls = 0

    def counted(source: LimitSource, quantile: float | Array) -> Array:
        nonlocal calls
        calls += 1
        return at(source, quantile)

    at = LimitSource.at
    monkeypatch.setattr(LimitSource, "at", counted)
    unchanged(CHANGES, 5, 50, 2, paired=False)
    few, calls = calls, 0
    unchanged(CHANGES, 50, 50, 2, paired=False)
    assert 0 < calls < 2 * few


def test_point_values_fail_an_unchanged_model() -> None:
    """The count of fails sees what there is to see."""
    plain = Gate(rules=tuple(replace(rule, test="none") for rule in CHANGES.rules))
    assert unchanged(plain, 20, 10, FEW, paired=True) > FEW // 2


def test_a_gap_of_exactly_its_limit_seldom_passes_or_fails() -> None:
    passed, failed, covered = at_margin(5, 200, FEW)
    assert at_most(passed, FEW, 0.065)
    assert at_most(failed, FEW, 0.05)
    assert all(at_least(count, FEW, 0.935) for count in covered)


@pytest.mark.slow
@pytest.mark.parametrize("paired", [True, False], ids=["paired", "unpaired"])
@pytest.mark.parametrize("least", [10, 50, 500])
@pytest.mark.parametrize("slices", [20, 200])
@pytest.mark.parametrize("gate", [CHANGES, GAPS], ids=["max_drop", "max_gap"])
def test_an_unchanged_model_fails_in_at_most_one_build_of_a_hundred(
    gate: Gate, slices: int, least: int, *, paired: bool
) -> None:
    draws = DRAWS // 20 if gate is GAPS and slices > 100 else DRAWS  # it compares all pairs
    failed = unchanged(gate, slices, least, draws, paired=paired)
    print(f"{failed / draws:.4f} fail")  # noqa: T201 (docs/coverage.md has these figures)
    assert at_most(failed, draws, 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("items", [10, 50, 200, 1000, 5000])
@pytest.mark.parametrize(("slices", "worse"), [(2, 1), (20, 1), (20, 10)])
def test_limits_of_a_gap_hold_at_its_margin(slices: int, worse: int, items: int) -> None:
    passed, failed, covered = at_margin(slices, items, DRAWS, worse)
    rates = [count / DRAWS for count in (passed, failed, *covered)]
    print("pass, fail, lower and upper limit hold:", rates)  # noqa: T201 (as above)
    assert at_most(passed, DRAWS, 0.065)
    assert at_most(failed, DRAWS, 0.05)
    assert all(at_least(count, DRAWS, 0.935) for count in covered)
