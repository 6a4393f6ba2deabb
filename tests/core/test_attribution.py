"""Attribution: the change of an index, cell by cell, adds up to the whole of it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rprime.core.catalog import CLASS_INDICES, OVERALL_INDICES
from rprime.core.comparison.attribution import HEADLINES, Attribution, TablePath, Target, attribute
from rprime.core.comparison.compare import compare
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import compute
from tests.core.comparison_sides import JOINT, names, paper_side, sides_of, table_side
from tests.core.index_values import dense

COST = np.array([[0.0, 1, 5], [2, 0, 1], [1, 3, 0]])
EVERY_CELL = Options(top_confusions=10_000, cost=COST, kappa_weights="quadratic")
SMOOTH: tuple[Target, ...] = tuple(
    (entry.key, None) for entry in OVERALL_INDICES.values() if entry.interval and not entry.scored
) + tuple(
    (entry.key, "1") for entry in CLASS_INDICES.values() if entry.interval and not entry.scored
)
OLD = np.array([[60.0, 8, 2], [5, 70, 9], [3, 1, 42]])
NEW = np.array([[50.0, 10, 10], [9, 71, 4], [3, 3, 40]])
# Its value does depend on the number of items, to which the old table is scaled.
UNSCALED = ("krippendorff_alpha", None)


def value(table: ConfusionTable, target: Target, options: Options) -> float:
    key, label = target
    index_options = replace(options, indices=(key,))
    values = compute(table, index_options, select(index_options))
    return float(
        values.lookup("class", key)[int(label)] if label else values.lookup("overall", key)
    )


def found(
    old: ConfusionTable, new: ConfusionTable, targets: tuple[Target, ...]
) -> tuple[Attribution, ...]:
    return attributed(old, new, targets, EVERY_CELL)


def attributed(
    old: ConfusionTable, new: ConfusionTable, targets: tuple[Target, ...], options: Options
) -> tuple[Attribution, ...]:
    index_options = replace(options, indices=tuple({key for key, _ in targets}))
    before, after = (compute(table, index_options, select(index_options)) for table in (old, new))
    return attribute(TablePath.between(old, new), (before, after), names(old.k), targets)


def check(attribution: Attribution, old: ConfusionTable, new: ConfusionTable) -> None:
    target = (attribution.key, attribution.label)
    change = value(new, target, EVERY_CELL) - value(old, target, EVERY_CELL)
    total = np.add.reduce(attribution.contributions) + attribution.rest
    assert total == pytest.approx(change, rel=1e-6, abs=1e-6), target
    assert abs(attribution.residual) <= 1e-9 * max(1, abs(change)), target


def test_every_smooth_index_adds_up() -> None:
    old, new = ConfusionTable.dense(OLD), ConfusionTable.dense(NEW)
    for attribution in found(old, new, SMOOTH):
        check(attribution, old, new)


def test_contributions_are_those_of_small_steps_along_the_path() -> None:
    old, new = ConfusionTable.dense(OLD), ConfusionTable.dense(NEW)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    slopes = np.zeros((3, 3))
    for share, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        for cell in np.ndindex(3, 3):
            step = np.zeros((3, 3))
            step[cell] = 1e-4
            here = OLD + share * (NEW - OLD)
            above, below = (ConfusionTable.dense(here + s * step) for s in (1, -1))
            target = ("mcc", None)
            slope = value(above, target, EVERY_CELL) - value(below, target, EVERY_CELL)
            slopes[cell] += weight * slope / 2e-4
    (attribution,) = found(old, new, (("mcc", None),))
    got = np.zeros((3, 3))
    got[attribution.true, attribution.predicted] = attribution.contributions
    assert got == pytest.approx((NEW - OLD) * (slopes - slopes.diagonal()[:, None]), abs=1e-8)


@pytest.mark.parametrize("key", ["accuracy", "weighted_recall"])
def test_an_error_contributes_its_own_items_to_accuracy(key: str) -> None:
    old, new = (dense(c) for c in ([[90, 10], [0, 100]], [[95, 5], [0, 100]]))
    (attribution,) = attributed(old, new, ((key, None),), EVERY_CELL)
    assert (attribution.true.tolist(), attribution.predicted.tolist()) == ([0], [1])
    assert attribution.contributions == pytest.approx([5 / 200])
    assert attribution.rest == pytest.approx(0)


def test_the_errors_of_the_paper_contribute_their_items() -> None:
    before, after = (paper_side(f"table7_mnist_{side}") for side in ("before", "after"))
    (attribution,) = compare(
        after, before, Options(), attributed=(("accuracy", None),)
    ).attributions
    old, new = (side.table.cells.counts for side in (before, after))
    change = (
        old[attribution.true, attribution.predicted] - new[attribution.true, attribution.predicted]
    )
    np.testing.assert_allclose(attribution.contributions, change / old.sum())
    assert (attribution.true != attribution.predicted).all()
    assert (attribution.true[0], attribution.predicted[0], attribution.contributions[0]) == (
        4,
        9,
        pytest.approx(0.0173),
    )


def test_classes_that_grew_contribute_to_the_rest_alone() -> None:
    # Twice the items of class a, all of them right: no confusion became more frequent within a row.
    old, new = (dense(c) for c in ([[80, 20], [50, 50]], [[160, 40], [50, 50]]))
    recall, accuracy = attributed(
        old, new, (("macro_recall", None), ("accuracy", None)), EVERY_CELL
    )
    for attribution in (recall, accuracy):
        assert (attribution.true != attribution.predicted).all()
        total = np.add.reduce(attribution.contributions) + attribution.rest
        assert total + attribution.residual == pytest.approx(
            0 if attribution is recall else 210 / 300 - 130 / 200
        )


def test_unclassified_items_and_unequal_totals_add_up_too() -> None:
    old = ConfusionTable.dense(OLD, np.array([3.0, 0, 1]))
    new = ConfusionTable.dense(2 * NEW + 1, np.array([0.0, 7, 2]))
    for attribution in found(old, new, tuple(target for target in SMOOTH if target != UNSCALED)):
        check(attribution, old, new)
    (alpha,) = found(old, new, (UNSCALED,))
    assert 0 < abs(alpha.residual) < 1e-3


def test_spurious_predictions_add_up_in_the_headline_indices() -> None:
    old = ConfusionTable.dense(OLD, None, np.array([3.0, 0, 1]))
    new = ConfusionTable.dense(NEW, None, np.array([0.0, 9, 2]))
    targets: tuple[Target, ...] = (
        *((key, None) for key in HEADLINES),
        ("precision", "1"),
        ("r_prime", "1"),
    )
    for attribution in found(old, new, targets):
        check(attribution, old, new)
    (overall,) = found(old, new, (("r_prime", None),))
    assert 3 in overall.true


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from([0, 0, 1, 2, 9, 400]), min_size=9, max_size=9),
    st.lists(st.sampled_from([0, 0, 1, 2, 9, 400]), min_size=9, max_size=9),
)
def test_headline_indices_add_up_between_any_two_tables(
    first: list[int], second: list[int]
) -> None:
    side, other = (
        table_side(ConfusionTable.dense(np.reshape(counts, (3, 3))), "t")
        for counts in (first, second)
    )
    every = tuple((key, None) for key in HEADLINES)
    comparison = compare(side, other, EVERY_CELL, attributed=every)
    attributions = {attribution.key: attribution for attribution in comparison.attributions}
    for key in HEADLINES:
        difference = comparison.of_overall(key).value
        if np.isnan(difference):
            assert key not in attributions
        else:
            total = np.add.reduce(attributions[key].contributions) + attributions[key].rest
            assert total == pytest.approx(float(difference), abs=1e-6), key


def test_where_an_end_is_undefined_nothing_is_attributed() -> None:
    old = ConfusionTable.dense(OLD)
    new = ConfusionTable.dense(np.array([[60.0, 0, 10], [5, 0, 79], [3, 0, 43]]))
    precision, recall = found(old, new, (("precision", "1"), ("recall", "1")))
    assert np.isnan(precision.residual)
    assert precision.contributions.size == 0
    check(recall, old, new)


def test_only_the_largest_cells_are_named_and_the_rest_is_summed() -> None:
    old, new = (ConfusionTable.dense(counts) for counts in (OLD, NEW))
    options = replace(EVERY_CELL, top_confusions=2)
    (short,) = attributed(old, new, (("kappa", None),), options)
    (full,) = found(old, new, (("kappa", None),))
    np.testing.assert_allclose(short.contributions, full.contributions[:2])
    assert short.rest == pytest.approx(full.contributions[2:].sum())
    assert (np.diff(np.abs(full.contributions)) <= 0).all()


def test_a_confusion_that_grew_costs_and_one_that_shrank_pays() -> None:
    old, new = (ConfusionTable.dense(counts) for counts in (OLD, NEW))
    (attribution,) = found(old, new, (("macro_recall", None),))
    for true, predicted, part in zip(
        attribution.true, attribution.predicted, attribution.contributions, strict=True
    ):
        if true != predicted:
            assert part * (NEW - OLD)[true, predicted] < 0


def test_identical_tables_have_nothing_to_attribute() -> None:
    table = ConfusionTable.dense(OLD)
    for attribution in found(table, table, (("kappa", None), ("r_prime", "1"))):
        assert attribution.contributions.size == 0
        assert attribution.rest == 0
        assert attribution.residual == 0


def test_a_sparse_path_gives_what_a_dense_one_does() -> None:
    k = 120
    rng = np.random.default_rng(0)
    joint = np.zeros((k, k, k), dtype=int)
    np.add.at(joint, tuple(rng.integers(0, k, (3, 3000))), 1)
    few = joint[:60, :60, :60]
    for part in (joint, few):
        comparison = compare(*sides_of(part), Options(indices=("kappa", "macro_recall")))
        for attribution in comparison.attributions:
            assert abs(attribution.residual) < 1e-9
            difference = comparison.of_overall(attribution.key).value
            total = np.add.reduce(attribution.contributions) + attribution.rest
            assert total == pytest.approx(float(difference), abs=1e-9)


def test_the_default_attributes_the_first_headline_that_was_asked_for() -> None:
    sides = sides_of(JOINT["joint_truth_old_new"])
    assert [one.key for one in compare(*sides, Options()).attributions] == ["accuracy"]
    some = compare(*sides, Options(indices=("kappa", "recall")))
    assert [one.key for one in some.attributions] == ["kappa"]
    asked = compare(sides[0], sides[1], Options(indices=("kappa",)), attributed=(("r_prime", "2"),))
    assert [(one.key, one.label) for one in asked.attributions] == [("r_prime", "2")]
    assert compare(sides[0], sides[1], Options(), attributed=()).attributions == ()


def test_the_papers_confusions_are_named() -> None:
    before, after = (paper_side(f"table7_mnist_{side}") for side in ("before", "after"))
    comparison = compare(
        before, after, Options(), attributed=tuple(("r_prime", c) for c in ("4", "8"))
    )
    for attribution in comparison.attributions:
        digit = int(str(attribution.label))
        assert digit in (attribution.true[0], attribution.predicted[0])
        total = np.add.reduce(attribution.contributions) + attribution.rest
        place = comparison.aligned.selection.place["r_prime"]
        assert total == pytest.approx(float(comparison.per_class.value[place, digit]), abs=1e-9)
        assert attribution.contributions[0] < 0


def test_a_sure_change_comes_before_a_larger_one_by_chance() -> None:
    # Of 5,000 items 45 more is noise, of 14 items 60 more is none.
    old = ConfusionTable.dense(np.array([[5000.0, 100, 14], [3, 400, 4], [0, 5, 600]]))
    new = ConfusionTable.dense(np.array([[4895.0, 145, 74], [3, 400, 4], [0, 6, 599]]))
    changes = TablePath.between(old, new).largest_changes(names(3), 100)
    cells = list(zip(changes.true.tolist(), changes.predicted.tolist(), strict=True))
    assert cells[:2] == [(0, 2), (0, 1)]
    assert cells[-1] == (0, 0)
    assert len(cells) == 5


def test_changes_are_of_shares_where_the_totals_differ() -> None:
    old, new = ConfusionTable.dense(OLD), ConfusionTable.dense(NEW, np.array([0.0, 0, 50]))
    changes = TablePath.between(old, new).largest_changes(names(3), 100)
    assert (changes.true[0], changes.predicted[0]) == (2, 3)
    assert changes.change[0] == 50 / 250
    assert changes.candidate[0] == 50
    assert changes.change.sum() == pytest.approx(0)
    same = TablePath.between(old, ConfusionTable.dense(NEW)).largest_changes(names(3), 3)
    np.testing.assert_array_equal(same.change, same.candidate - same.baseline)
    assert (same.true[0], same.predicted[0], same.change[0]) == (0, 2, 8)
    assert len(same.change) == 3
