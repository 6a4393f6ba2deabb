"""Slices: tables of parts of a test set, and what they tell."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from rprime.core.cells import DenseCells
from rprime.core.slices.slices import SliceColumn, Slices
from rprime.core.table import ConfusionTable

REGIONS, DEVICES = ("EU", "US", "Asia"), ("ios", "web")


def drawn_slices(
    seed: int = 0, items: int = 400, k: int = 4
) -> tuple[Slices, ConfusionTable, dict[str, np.ndarray]]:
    """Draw items with a region and a device each; some items have no device."""
    rng = np.random.default_rng(seed)
    true = rng.integers(k, size=items)
    predicted = np.where(rng.random(items) < 0.7, true, rng.integers(k + 1, size=items))
    region, device = rng.integers(3, size=items), rng.integers(3, size=items)
    columns = {"region": SliceColumn(REGIONS, region), "device": SliceColumn(DEVICES, device)}
    found = Slices.of_items(columns, [("region", "device")], true * (k + 1) + predicted, k)
    counts = np.zeros((k, k + 1))
    np.add.at(counts, (true, predicted), 1)
    arrays = {"true": true, "predicted": predicted, "region": region, "device": device}
    return found, ConfusionTable.dense(counts[:, :k], counts[:, k]), arrays


def counts_of(table: ConfusionTable) -> np.ndarray:
    assert isinstance(table.cells, DenseCells)
    return table.cells.counts


def test_tables_are_those_of_a_loop_over_the_items() -> None:
    found, whole, arrays = drawn_slices()
    rest = found.rest(whole)
    assert len(found.names) == 3 + 2 + 3 * 2
    texts = {"region": REGIONS, "device": (*DEVICES, None)}
    for i, name in enumerate(found.names):
        inside = np.array(
            [all(texts[c][arrays[c][item]] == v for c, v in name.items()) for item in range(400)]
        )
        np.testing.assert_array_equal(found.inside(i), inside)
        for table, chosen in ((found.tables, inside), (rest, ~inside)):
            true, predicted = arrays["true"][chosen], arrays["predicted"][chosen]
            expected = confusion_matrix(true, predicted, labels=range(5))[:4]
            np.testing.assert_array_equal(counts_of(table)[i], expected[:, :4])
            assert table.unclassified is not None
            np.testing.assert_array_equal(table.unclassified[i], expected[:, 4])


def test_crossings_have_only_slices_with_items() -> None:
    columns = {
        "a": SliceColumn(("x", "y"), np.array([0, 1, 1])),
        "b": SliceColumn(("p", "q"), np.array([0, 1, 2])),  # the last item has no value
    }
    found = Slices.of_items(columns, [("a", "b")], np.array([0, 1, 3]), 2)
    assert found.names == (
        {"a": "x"},
        {"a": "y"},
        {"b": "p"},
        {"b": "q"},
        {"a": "x", "b": "p"},
        {"a": "y", "b": "q"},
    )
    assert found.of_column("b") == (2, 3)
    assert found.positions[frozenset({("b", "q"), ("a", "y")})] == 5
    assert found.tables.total.tolist() == [1, 2, 1, 1, 1, 1]


def test_tables_alone_know_no_items() -> None:
    found = Slices(({"a": "x"},), ConfusionTable.dense(np.ones((1, 2, 2))))
    with pytest.raises(KeyError):
        found.inside(0)


def test_slices_move_to_more_classes() -> None:
    found, _, _ = drawn_slices()
    moved = found.over(np.array([4, 1, 0, 2]), 5)
    np.testing.assert_array_equal(
        counts_of(moved.tables)[:, [4, 1, 0, 2]][:, :, [4, 1, 0, 2]], counts_of(found.tables)
    )
    assert moved.tables.support[:, 3].sum() == 0
    assert moved.tables.unclassified is not None
    np.testing.assert_array_equal(
        moved.tables.unclassified[:, [4, 1, 0, 2]], found.tables.unclassified
    )
