"""How often gates give each verdict over many draws of two models."""

from collections import Counter
from datetime import date

import numpy as np

from rprime.core.comparison.compare import compare
from rprime.core.gates.gate import run_gate
from rprime.core.gates.results import GateResult
from rprime.core.gates.rules import Gate
from rprime.core.options import Options
from tests.simulation.pairs import Pair

TODAY = date(2026, 11, 22)


def run(gate: Gate, pair: Pair, random: np.random.Generator, *, paired: bool) -> GateResult:
    """Draw both models once and run the gate."""
    candidate, baseline = (pair.paired if paired else pair.unpaired)(random)
    options = Options(indices=gate.indices)
    return run_gate(gate, candidate, compare(candidate, baseline, options), options, today=TODAY)


def results(
    gate: Gate, pair: Pair, replicates: int, seed: int, *, paired: bool = True
) -> list[GateResult]:
    """Run the gate on many draws."""
    random = np.random.default_rng(seed)
    return [run(gate, pair, random, paired=paired) for _ in range(replicates)]


def verdicts(gate_results: list[GateResult]) -> Counter[str]:
    """Count the verdicts of the gate."""
    return Counter(result.verdict for result in gate_results)
