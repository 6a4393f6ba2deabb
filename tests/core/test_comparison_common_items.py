"""Test sets that share most of their items are compared on these."""

from dataclasses import replace

import numpy as np
import pytest

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import compare
from rprime.core.items import Items
from rprime.core.options import Options
from rprime.core.population import Population
from rprime.core.scores.scores import Scores
from rprime.core.table import ConfusionTable
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
    comparison = compare(
        identified(true[here], new[here], ids[here], "new"),
        identified(labelled[there], old[there], ids[there], "old"),
        OPTIONS,
    )
    assert comparison.comparability == "common_items"
    assert comparison.pairing == "paired"
    assert comparison.common_items is not None
    counts = comparison.common_items
    assert (counts.shared, counts.added, counts.removed, counts.relabelled) == (930, 30, 40, 10)
    (warning,) = comparison.warnings
    assert (warning.code, warning.pointer) == ("items_differ", "/comparison/items")
    by_class = np.bincount(labelled[[*range(40), *range(500, 510)]], minlength=3)
    in_class = np.bincount(labelled[there], minlength=3)
    order = np.argsort(-by_class / in_class)
    lacking = ", ".join(f"class `{i}` {by_class[i]} of {in_class[i]}" for i in order)
    assert warning.detail == (
        "920 items are compared, by their ids, of the 970 of the baseline: the candidate lacks 40; "
        f"10 items have another true class; 30 items are new. Not compared: {lacking}. Evaluate "
        "the predictions of the baseline again on the new true classes (`rprime evaluate "
        "BASELINE.csv`, with the new `y_true`), and compare with that. Values are of all items of "
        "the candidate; baselines and changes are of the compared ones."
    )
    both = np.array([*range(40, 500), *range(510, 970)])
    expected = compare(
        side_of(true[both], new[both], 3), side_of(true[both], old[both], 3), OPTIONS
    )
    for difference, other in (
        (comparison.overall, expected.overall),
        (comparison.per_class, expected.per_class),
    ):
        np.testing.assert_allclose(difference.value, other.value)
        np.testing.assert_allclose(difference.p(-0.02)[0], other.p(-0.02)[0])


@pytest.mark.parametrize(("kept", "paired"), [(900, True), (899, False)])
def test_nine_tenths_of_the_baseline_are_needed(kept: int, *, paired: bool) -> None:
    true, old, new = drawn()
    ids = np.arange(1000)
    comparison = compare(
        identified(true[:kept], new[:kept], ids[:kept], "new"),
        identified(true, old, ids, "old"),
        OPTIONS,
    )
    assert comparison.comparability == ("common_items" if paired else "different")


def test_new_items_are_counted_however_many_there_are() -> None:
    true, old, new = drawn()
    ids = np.arange(1000)
    candidate = identified(true, new, ids, "new")
    comparison = compare(candidate, identified(true[:400], old[:400], ids[:400], "old"), OPTIONS)
    assert comparison.comparability == "common_items"
    assert comparison.common_items is not None
    assert comparison.common_items.added == 600


@pytest.mark.parametrize(
    ("kept", "relabelled", "paired"),
    [(1000, 100, True), (1000, 101, False), (950, 95, True), (950, 96, False)],
)
def test_relabelled_items_are_not_shared(kept: int, relabelled: int, *, paired: bool) -> None:
    true, old, new = drawn()
    ids, labelled = np.arange(1000), true.copy()
    labelled[:relabelled] = (true[:relabelled] + 1) % 3
    candidate = identified(true, new, ids, "new")
    comparison = compare(
        candidate, identified(labelled[:kept], old[:kept], ids[:kept], "old"), OPTIONS
    )
    assert comparison.comparability == ("common_items" if paired else "different")
    assert (comparison.sets_differ is None) == paired
    if comparison.sets_differ is not None:
        sentence = f"they share {kept} items by their ids, {relabelled} with another true class"
        assert sentence in comparison.sets_differ.replace(",000", "000")


def test_identical_predictions_are_said() -> None:
    true, old, new = drawn()
    side = side_of(true, new, 3)
    codes = [w.code for w in compare(side, side_of(true, new.copy(), 3), OPTIONS).warnings]
    assert codes == ["same_predictions"]
    assert compare(side, side_of(true, old, 3), OPTIONS).warnings == ()
    scores = np.random.default_rng(1).random((2, true.size, 3))
    mine, other = (replace(side, scores=Scores(true, values)) for values in scores)
    assert [w.code for w in compare(mine, mine, OPTIONS).warnings] == ["same_predictions"]
    assert compare(mine, other, OPTIONS).warnings == ()


def test_what_keeps_equal_numbers_of_items_apart_is_named() -> None:
    true, old, new = drawn()
    here = replace(side_of(true, new, 3), fingerprint="here")
    moved = replace(side_of(true[::-1], old[::-1], 3), fingerprint="there")
    assert compare(here, moved, OPTIONS).sets_differ == (
        "The test sets differ: both have 1,000 items, in another order or with other true classes. "
        "Bring the items of both into one order, or compare two sides with `item_id`, "
        "which need no order."
    )
    ids = identified(true.copy(), old, np.arange(1000), "there")
    for sides, lacking in (((here, ids), "candidate"), ((ids, here), "baseline")):
        assert compare(*sides, OPTIONS).sets_differ == (
            f"The items cannot be matched: the {lacking} has no `item_id`, unlike the other "
            "side. Send it with both, or leave it out of both."
        )


def test_test_sets_that_differ_are_described() -> None:
    true, old, new = drawn()
    ids = np.arange(1000)
    comparison = compare(
        identified(true[:500], new[:500], ids[:500], "new"),
        identified(true, old, ids, "old"),
        OPTIONS,
    )
    assert comparison.sets_differ is not None
    assert "the candidate has 500 items and the baseline 1,000" in comparison.sets_differ
    assert "they share 500 items by their ids" in comparison.sets_differ
    assert [w.detail for w in comparison.warnings] == [comparison.sets_differ]
    tables = (replace(table_side(side_of(true, new, 3).table), fingerprint=name) for name in "ab")
    apart = compare(next(tables), next(tables), OPTIONS).sets_differ
    assert apart is not None
    assert "`item_id`" in apart


def test_other_shares_of_the_classes_are_named_with_the_population_that_would_help() -> None:
    here, there = (
        table_side(ConfusionTable.dense(np.diag(n))) for n in ([900.0, 100], [500.0, 500])
    )
    comparison = compare(here, there, OPTIONS)
    assert comparison.comparability == "different"
    assert comparison.sets_differ == (
        "The test sets differ: both have 1,000 items; class `0` has 90 % of them instead of 50 %. "
        "Compare with a baseline that was evaluated on this test set, or send as `population` the "
        "shares of the classes in use: at these the sides are comparable."
    )
    population = Population("true", np.array([0.5, 0.5]))
    on_population = compare(here, there, replace(OPTIONS, population=population))
    assert on_population.comparability == "unknown"
