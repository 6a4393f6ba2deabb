"""Lint of rules about scores: an unchanged model hardly ever fails."""

from typing import Literal

import numpy as np
import pytest

from rprime.core.comparison.alignment import Side
from rprime.core.gates.lint import lint
from rprime.core.gates.simulated_gate import LintError
from tests.core.comparison_sides import names, side_of
from tests.core.gate_cases import drop, gate_of
from tests.core.score_values import drawn

GATE = gate_of(drop(0.05, index="roc_auc"), drop(0.05, index="top_k_accuracy", classes=None))


def scored(n: int = 400, seed: int = 3) -> Side:
    scores = drawn(np.random.default_rng(seed), n, 3, 2.0)
    side = side_of(scores.true, scores.values.argmax(-1).astype(np.uint8), 3)
    return Side(labels=names(3), table=side.table, items=side.items, scores=scores)


@pytest.mark.parametrize("pairing", ["paired", "unpaired"])
def test_unchanged_models_hardly_ever_fail(pairing: Literal["paired", "unpaired"]) -> None:
    found = lint(GATE, scored(), pairing=pairing, replicates=100)
    assert found.false_fail_rate <= 0.03
    assert [rule.class_ for rule in found.rules] == ["0", "1", "2", None]
    assert all(rule.detectable_drop is not None for rule in found.rules)


def test_points_alone_fail_unchanged_models() -> None:
    gate = gate_of(drop(0.005, index="roc_auc", test="none"))
    found = lint(gate, scored(), pairing="unpaired", replicates=100)
    assert found.false_fail_rate > 0.3
    assert lint(gate, scored(), pairing="unpaired", replicates=100) == found


def test_a_table_has_no_scores() -> None:
    side = scored()
    with pytest.raises(LintError, match="items with scores"):
        lint(GATE, Side(labels=side.labels, table=side.table))
