"""An interval method is one function and one row of one table."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import special

import rprime.core
from rprime.core.arrays import Array
from rprime.core.catalog import CLASS_INDICES, INDICES, OVERALL_INDICES
from rprime.core.intervals.intervals import intervals
from rprime.core.intervals.methods import (
    INTERVALS,
    LINEAR,
    METHODS,
    IntervalMethod,
    Needs,
    require_methods,
)
from rprime.core.intervals.prepared import ScopeLimits
from rprime.core.intervals.universe import at
from rprime.core.items import Items
from rprime.core.options import Options
from rprime.core.selection import Selection, arranged
from rprime.core.values import compute
from tests.core.index_values import dense

Z = float(special.ndtri(0.975))
TABLE = dense([[50, 7, 3], [4, 38, 8], [0, 9, 81]])


def of_agresti(limits: ScopeLimits, places: Array) -> None:
    counts, z = limits.ratios(places), at(limits.quantile, places)
    number = counts.trials + z * z
    centre = (counts.successes + z * z / 2) / number
    half = z * np.sqrt(centre * (1 - centre) / number)
    limits.set_shares(places, np.array((centre - half, centre + half)))


AGRESTI = IntervalMethod(
    "agresti",
    of_agresti,
    Needs.RATIO | Needs.INDEPENDENT_ITEMS,
    ("agresti_coull",),
    LINEAR,
    "Agresti and Coull",
)


def agresti(hits: float, trials: float) -> tuple[float, float]:
    centre = (hits + Z * Z / 2) / (trials + Z * Z)
    half = Z * float(np.sqrt(centre * (1 - centre) / (trials + Z * Z)))
    return centre - half, centre + half


@pytest.fixture
def selection(monkeypatch: pytest.MonkeyPatch) -> Selection:
    """Indices beside each other, some of the added method."""
    monkeypatch.setitem(INTERVALS, "agresti", AGRESTI)
    recall = replace(CLASS_INDICES["recall"], interval="agresti")
    whole = replace(OVERALL_INDICES["accuracy"], interval="agresti")
    entries = recall, CLASS_INDICES["precision"], CLASS_INDICES["f1"]
    return arranged(entries, 3, [OVERALL_INDICES["r_prime"], whole])


def test_a_row_and_a_function_are_enough(selection: Selection) -> None:
    bounds = intervals(compute(TABLE, Options(), selection))
    ends = bounds.per_class_low[0, 2], bounds.per_class_high[0, 2]
    assert ends == pytest.approx(agresti(81, 90), rel=1e-12)
    assert (bounds.overall_low[1], bounds.overall_high[1]) == pytest.approx(agresti(169, 200))
    assert bounds.per_class_methods == ("agresti_coull", "wilson", "wilson_mapped")
    assert bounds.overall_methods == ("wilson", "agresti_coull")
    plain = intervals(compute(TABLE, Options(), arranged(selection.computed[1:], 2, [])))
    assert np.array_equal(bounds.per_class_low[1:], plain.per_class_low)


def test_an_added_method_takes_part_in_averages_and_in_groups(selection: Selection) -> None:
    macro = OVERALL_INDICES["macro_recall"]
    averaged = arranged(selection.computed, 3, [macro])
    bounds = intervals(compute(TABLE, Options(), averaged))
    usual = [CLASS_INDICES["recall"], *selection.computed[1:]]
    same = intervals(compute(TABLE, Options(), arranged(tuple(usual), 3, [macro])))
    assert bounds.overall_low == pytest.approx(same.overall_low, rel=1e-12)
    true, predicted = np.nonzero(np.ones((3, 3)))
    number = TABLE.cells.counts[true, predicted].astype(int)
    items = Items(np.repeat(true, number), np.repeat(predicted, number), np.arange(200) // 4)
    grouped = intervals(compute(TABLE, Options(), selection), items)
    width = grouped.overall_high[1] - grouped.overall_low[1]
    assert width > 1.2 * (bounds.overall_high[0] - bounds.overall_low[0])


def test_a_forgotten_column_fails_at_import() -> None:
    with pytest.raises(TypeError, match="missing 5 required positional arguments: 'limits'"):
        IntervalMethod("agresti")  # type: ignore[call-arg] # what the test is about
    with pytest.raises(TypeError, match="'agresti' lacks a function, needs, a name or words"):
        replace(AGRESTI, limits=None)  # type: ignore[arg-type] # what the test is about
    with pytest.raises(TypeError, match="lacks a function, needs"):
        replace(AGRESTI, needs=Needs(0))


def test_an_index_of_an_unknown_method_fails_at_import() -> None:
    entry = replace(CLASS_INDICES["recall"], interval="forgotten")
    with pytest.raises(TypeError, match="no row for 'forgotten', the interval of 'recall'"):
        require_methods([entry])
    require_methods(INDICES)


def test_the_table_alone_spells_the_names_of_methods_in_comparisons() -> None:
    names = {method.name for method in METHODS} | {n for m in METHODS for n in m.reported}
    uses = []
    for file in Path(rprime.core.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and ".interval" in ast.unparse(node.left):
                spelled = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)}
                uses += [(file.name, node.lineno)] if spelled & names else []
    assert uses == []
