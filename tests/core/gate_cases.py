"""Gates and tables that the tests of gates and of their simulation share."""

from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.gates.gate import run_gate
from rprime.core.gates.results import GateResult
from rprime.core.gates.rules import Gate, Rule, Waiver
from rprime.core.gates.unchanged_model import SimulatedPredictions
from rprime.core.options import Options
from rprime.core.table import ConfusionTable
from tests.core.comparison_sides import table_side
from tests.core.index_values import CORE

TODAY = date(2026, 11, 22)

# Any: the fields of the dataclass that each of these makes.


def drop(limit: float = 0.05, **fields: Any) -> Rule:
    defaults: dict[str, Any] = {"index": "recall", "kind": "max_drop", "classes": "all"}
    return Rule(limit=limit, **defaults | fields)


def floor(limit: float, **fields: Any) -> Rule:
    defaults: dict[str, Any] = {"index": "accuracy", "kind": "min_value"}
    return Rule(limit=limit, **defaults | fields)


def gate_of(*rules: Rule, **fields: Any) -> Gate:
    return Gate(rules=rules, **fields)


def waiver(**fields: Any) -> Waiver:
    defaults: dict[str, Any] = {"rule": "recall.max_drop", "ceiling": 0.12, "expires": TODAY}
    return Waiver(**defaults | {"reason": "relabelled", "by": "ana"} | fields)


def tabled(counts: ArrayLike, test_set: str | None = None, *, weighted: bool = False) -> Side:
    """Side that is a table alone."""
    table = ConfusionTable.dense(np.asarray(counts), weighted=weighted)
    return table_side(table, test_set)


def compared(
    candidate: Side, baseline: Side | None, gate: Gate, options: Options
) -> Comparison | None:
    if baseline is None:
        return None
    return compare(candidate, baseline, replace(options, indices=gate.indices))


def judged(
    gate: Gate | Rule,
    candidate: Side,
    baseline: Side | None = None,
    options: Options | None = None,
    *,
    look: int | None = None,
    today: date = TODAY,
    anchor: Side | None = None,
) -> GateResult:
    gate = Gate(rules=(gate,)) if isinstance(gate, Rule) else gate
    options = options or CORE
    comparison = compared(candidate, baseline, gate, options)
    pinned = compared(candidate, anchor, gate, options)
    return run_gate(gate, candidate, comparison, options, today=today, look=look, anchor=pinned)


def predictions_of(joint: Array) -> SimulatedPredictions:
    """Take joint tables (..., k, k, k) of true class, old and new prediction apart."""
    kept = np.diagonal(joint, axis1=-2, axis2=-1)
    old, new = joint.sum(-1) - kept, joint.sum(-2) - kept
    return SimulatedPredictions(kept, old, new, np.zeros_like(old), joint)
