"""Test sets that share most of their items are compared on these."""

from dataclasses import replace

import numpy as np
import pytest

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import compare
from rprime.core.items import Items
from rprime.core.options import Options
from tests.core.comparison_sides import side_of, table_side

OPTIONS = Options(indices=("accuracy", "macro_f1", "recall"))


def identified(true: Array, predicted: Array, ids: Array, fingerprint: str) -> Side:
    side = side_of(true, predicted, 3)
    items = Items(true, predicted, ids=ids.astype(np.uint64))
    return replace(side, items=items, fingerprint=fingerprint)


def drawn(n: int = 1000) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(5)
    true = rng.integers(0, 3, n)
    old, new = (np.where(rng.random(n) < 0.9, true, rng.integers(0, 4, n)) for _ in range(2))
    return true, old, new


def test_shared_items_are_paired_and_the_others_counted() -> None:
    true, old, new = drawn()
    labelled = true.copy()
    labelled[500:510] = (true[500:510] + 1) % 3
    ids = np.arange(1000)
    here, there = np.arange(40, 1000)[::-1], np.arange(0, 970)
    found = compare(
        identified(true[here], new[here], ids[here], "new"),
        identified(labelled[there], old[there], ids[there], "old"),
        OPTIONS,
    )
    assert found.comparability == "common_items"
    assert found.pairing == "paired"
    assert found.common_items is not None
    counts = found.common_items
    assert (counts.shared, counts.added, counts.removed, counts.relabelled) == (930, 30, 40, 10)
    both = np.arange(40, 970)
    expected = compare(
        side_of(true[both], new[both], 3), side_of(true[both], old[both], 3), OPTIONS
    )
    for one, other in ((found.overall, expected.overall), (found.per_class, expected.per_class)):
        np.testing.assert_allclose(one.value, other.value)
        np.testing.assert_allclose(one.p(-0.02)[0], other.p(-0.02)[0])


@pytest.mark.parametrize(("kept", "paired"), [(900, True), (899, False)])
def test_nine_tenths_of_either_side_are_needed(kept: int, *, paired: bool) -> None:
    true, old, new = drawn()
    ids = np.arange(1000)
    found = compare(
        identified(true, new, ids, "new"),
        identified(true[:kept], old[:kept], ids[:kept], "old"),
        OPTIONS,
    )
    assert found.comparability == ("common_items" if paired else "different")


def test_test_sets_that_differ_are_described() -> None:
    true, old, new = drawn()
    ids = np.arange(1000)
    found = compare(
        identified(true, new, ids, "new"),
        identified(true[:500], old[:500], ids[:500], "old"),
        OPTIONS,
    )
    assert found.sets_differ is not None
    assert "the candidate has 1,000 items and the baseline 500" in found.sets_differ
    assert "they share 500 items by their ids" in found.sets_differ
    assert [w.detail for w in found.warnings] == [found.sets_differ]
    tables = (replace(table_side(side_of(true, new, 3).table), fingerprint=name) for name in "ab")
    apart = compare(next(tables), next(tables), OPTIONS).sets_differ
    assert apart is not None
    assert "`item_id`" in apart
