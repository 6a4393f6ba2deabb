"""Rules about scores are not simulated, and lint and plan say so."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rprime.core.gates.lint import lint
from rprime.core.gates.plan import plan_items
from rprime.core.gates.simulation import LintError
from tests.core.comparison_sides import side_of
from tests.core.gate_cases import drop, gate_of

SIDE = side_of(np.repeat([0, 1, 2], 40), np.repeat([0, 1, 2, 2], 30), 3)


@pytest.mark.parametrize("simulate", [lint, plan_items])
def test_a_gate_about_scores_alone_is_refused(simulate: Callable[..., Any]) -> None:
    with pytest.raises(LintError, match="Rules about scores are not simulated") as refusal:
        simulate(gate_of(drop(0.05, index="roc_auc")), SIDE)
    assert refusal.value.place == ("gates", "rules", 0, "index")


@pytest.mark.parametrize("simulate", [lint, plan_items])
def test_other_rules_are_simulated_and_the_advice_names_the_rest(
    simulate: Callable[..., Any],
) -> None:
    plain = gate_of(drop(0.05))
    gate = gate_of(drop(0.05, index="macro_roc_auc", classes=None), drop(0.05))
    answer, alone = (simulate(variant, SIDE, replicates=60) for variant in (gate, plain))
    assert answer.advice[0] == ("Not simulated, because they read scores: macro_roc_auc.max_drop.")
    assert answer.advice[1:] == alone.advice
