"""Unpaired differences: limits and p-values of an independent implementation."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rprime.core.comparison.compare import compare
from rprime.core.table import ConfusionTable
from tests.core.comparison_sides import table_side
from tests.core.index_values import CORE

FILE = Path(__file__).parents[1] / "reference/unpaired_differences.json"
CASES: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_limits_and_p_values_are_those_of_the_reference(case: dict[str, Any]) -> None:
    tables = (ConfusionTable.dense(np.array(case[side])) for side in ("candidate", "baseline"))
    candidate, baseline = (table_side(table) for table in tables)
    comparison = compare(candidate, baseline, CORE, attributed=())
    for index, label, low, high, p in case["differences"]:
        if label is None:
            difference = comparison.of_overall(index)[np.newaxis]
        else:
            difference = comparison.of_classes(index, (str(label),))
        lower, upper = difference.limits(0.05)
        reach = difference.reach[0]
        expected = (max(low, -reach), min(high, reach))
        assert (lower[0], upper[0]) == pytest.approx(expected, abs=1e-9), (index, label)
        assert difference.p(-0.05)[0][0] == pytest.approx(p, abs=1e-6), (index, label)
