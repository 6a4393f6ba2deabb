"""compare: what holds between a candidate and a baseline, and what is refused to be concluded."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy import stats

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.comparison.difference import INFLUENCE, METHODS, MOVER, REASONS, TANGO, Difference
from rprime.core.comparison.difference_intervals import probability_worse
from rprime.core.comparison.flips import Move, bowker, stuart_maxwell
from rprime.core.comparison.paired_variance import PairedItems
from rprime.core.counts import CountRow
from rprime.core.intervals.delta import class_gradient, overall_gradient
from rprime.core.intervals.design_effect import RESTS_ON
from rprime.core.items import Items
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import compute
from tests.core.comparison_sides import (
    JOINT,
    PAPER,
    names,
    paper_side,
    side_of,
    sides_of,
    table_of,
    table_side,
    unrolled,
)
from tests.core.index_values import CORE, at_every_cell, values_of

REFERENCE_KEYS = {
    "acc": "accuracy",
    "kappa": "kappa",
    "mcc": "mcc",
    "mrec": "macro_recall",
    "mf1": "macro_f1",
    "mrprime": "macro_r_prime",
}
SMALL = Options(indices=("accuracy", "recall", "precision", "r_prime", "f1", "kappa"))


def plain(candidate: Side, baseline: Side, options: Options | None = None) -> Comparison:
    return compare(candidate, baseline, options or CORE, attributed=())


def between(sides: Iterable[Side], options: Options | None = None) -> Comparison:
    candidate, baseline = sides
    return plain(candidate, baseline, options)


def reason(difference: Difference) -> list[str]:
    return [REASONS[code] for code in np.ravel(difference.reasons)]


def random_items(seed: int, k: int, n: int, *, missing: bool) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    true = rng.integers(0, k, n)
    top = k + missing
    old = np.where(rng.random(n) < 0.7, true, rng.integers(0, top, n))
    new = np.where(rng.random(n) < 0.8, old, rng.integers(0, top, n))
    return true, old, new


def guard_of(candidate: Side, baseline: Side, options: Options) -> tuple[Array, Array]:
    """Guard cell by cell: 2 max |G_rj - G_rr|^2, of a class over its row and column."""
    largest_overall, largest_class = np.zeros(()), np.zeros(())
    for side in (candidate, baseline):
        values, k = compute(side.table, options, select(options)), side.table.k
        with np.errstate(all="ignore"):
            by_class = class_gradient(values)
            dense = at_every_cell(overall_gradient(values, by_class))
        columns = k + (side.table.unclassified is not None)
        flip = np.abs(dense - np.diagonal(dense, axis1=1, axis2=2)[..., None])
        flip = np.where(side.table.support[:, None] > 0, flip, 0.0)[..., :columns]
        largest_overall = np.maximum(largest_overall, flip.max((1, 2)))
        of_class = np.zeros(by_class.kinds.shape[1:])
        for place, entry in enumerate(values.selection.computed):
            for i, r, j in np.ndindex(k, k, columns):
                if i not in (r, j) and j < k:
                    continue
                kinds = by_class.kinds[:, place, i]
                right = kinds[0] if r == i else kinds[3]
                there = kinds[(1 if r == i else 3) if i != j else (0 if r == i else 2)]
                if j == k and entry.universe == "classified":
                    there = 0.0
                if side.table.support[r] > 0:
                    of_class[place, i] = max(of_class[place, i], abs(there - right))
        largest_class = np.maximum(largest_class, of_class)
    reported = select(options).reported
    return 2 * largest_overall**2, 2 * largest_class[:reported] ** 2


def test_the_joint_table_gives_the_reference_differences_and_standard_errors() -> None:
    candidate, baseline = sides_of(JOINT["joint_truth_old_new"])
    paired, options = plain(candidate, baseline), CORE
    guard, _ = guard_of(candidate, baseline, options)
    for name, key in REFERENCE_KEYS.items():
        expected, difference = JOINT["indices"][name], paired.of_overall(key)
        assert difference.value == pytest.approx(expected["diff"], rel=1e-9)
        if key == "accuracy":
            assert METHODS[int(difference.methods)] == "tango"
            continue
        place = paired.aligned.selection.overall_place[key]
        average = paired.aligned.selection.overall[place].reads in {"macro", "weighted", "means"}
        # 74 items changed: an average has a quarter of the guard.
        squared = difference.standard_error**2 - guard[place] * (0.25 if average else 1.0)
        assert np.sqrt(squared) == pytest.approx(expected["se_paired"], rel=1e-9)


def test_the_joint_table_gives_the_reference_verdicts_per_class() -> None:
    comparison = between(sides_of(JOINT["joint_truth_old_new"]))
    recall = comparison.of_classes("recall")
    assert comparison.flips is not None
    for i, expected in enumerate(JOINT["per_class"]):
        assert recall.gains[i] == expected["gain"]
        assert recall.losses[i] == expected["loss"]
        assert recall.trials[i] == expected["m"]
        assert recall.p(-0.05)[1][i] == pytest.approx(expected["p_pass"], rel=1e-9)
        assert recall.p(-0.05)[0][i] == pytest.approx(expected["p_fail"], rel=1e-9)
        of_class = comparison.flips.per_class[str(i)]
        assert of_class.mid_p == pytest.approx(expected["midp_one_sided_worse"])


def student(groups: ArrayLike) -> Array:
    ratio = stats.t.ppf(0.975, np.asarray(groups) - 1) / stats.norm.ppf(0.975)
    return np.asarray(ratio**2)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_paired_variances_are_those_of_the_items_one_by_one(
    *, missing: bool, grouped: bool
) -> None:
    k, n = 4, 300
    true, old, new = random_items(3, k, n, missing=missing)
    groups = np.random.default_rng(5).integers(0, 40, n) if grouped else None
    candidate, baseline = side_of(true, new, k, groups), side_of(true, old, k, groups)
    options = CORE
    comparison = plain(candidate, baseline, options)
    phi_overall, phi_class = np.zeros(()), np.zeros(())
    for sign, side, predicted in ((1, candidate, new), (-1, baseline, old)):
        values = compute(side.table, options, select(options))
        with np.errstate(all="ignore"):
            by_class = class_gradient(values)
            phi_overall = phi_overall + sign * overall_gradient(values, by_class).at(
                true, predicted
            )
        kind = np.where(
            true[:, None] == np.arange(k),
            np.where((predicted == true)[:, None], 0, 1),
            np.where(predicted[:, None] == np.arange(k), 2, 3),
        )
        influence = np.stack([by_class.kinds[kind[:, c], :, c] for c in range(k)])
        classified = [e.universe == "classified" for e in values.selection.computed]
        influence[:, predicted == k] *= ~np.array(classified)
        phi_class = phi_class + sign * influence

    # Items first; `held` are the items of each group on which an index rests.
    def guarded(phi: Array, guard: Array, held: Array) -> Array:
        centred = phi - phi.mean(0)
        alone = (centred**2).sum(0)
        if groups is None:
            return np.asarray(alone + guard)
        sums = np.zeros((40, *phi.shape[1:]))
        np.add.at(sums, groups, centred)
        shares = held / held.sum(0)
        with np.errstate(all="ignore"):
            effect = np.maximum(((sums / (1 - shares)) ** 2).sum(0) / alone, 1)
            number = (sums**2).sum(0) ** 2 / (sums**4).sum(0)
            degrees = np.minimum(2 * number - 1, 1 / (shares**2).sum(0) - 1)
        effect *= student(np.fmax(degrees, 1) + 1)
        return np.asarray(alone * effect + guard * effect**2)

    guards = guard_of(candidate, baseline, options)
    selection = select(options)
    with np.errstate(all="ignore"):
        number = (phi_overall**2).sum(-1) ** 2 / (phi_overall**4).sum(-1)
    averages = [e.reads in {"macro", "weighted", "means"} for e in selection.overall]
    shares = np.where(averages, np.clip(1 / number, 0.25, 1), 1.0) if groups is None else 1.0
    sizes = np.bincount(groups, minlength=40) if groups is not None else np.zeros(40)
    expected = np.sqrt(guarded(phi_overall.T, guards[0] * shares, sizes[:, None]))
    errors = comparison.overall.standard_error
    at = comparison.overall.methods == INFLUENCE
    np.testing.assert_allclose(errors[at], expected[at], rtol=1e-7)
    if groups is None:
        cubes = np.where(averages, (phi_overall**3).sum(-1), 0.0)[at]
        np.testing.assert_allclose(
            comparison.overall.skewness[at] * errors[at] ** 3, cubes, atol=1e-12
        )
    of_classes = np.moveaxis(phi_class, 1, 0)[..., : selection.reported]
    at = comparison.per_class.methods == INFLUENCE
    held = np.broadcast_to(sizes[:, None, None], (40, k, selection.reported)).copy()
    for i, entry in enumerate(selection.per_class):
        if groups is not None and entry.reads == "ratio" and CountRow(entry.rows[1]) in RESTS_ON:
            of_group = [np.bincount(groups[true == c], minlength=40) for c in range(k)]
            held[:, :, i] = np.transpose(of_group)
    expected = np.sqrt(guarded(of_classes, guards[1].T, held)).T[at]
    np.testing.assert_allclose(comparison.per_class.standard_error[at], expected, rtol=1e-7)


def test_few_groups_show_little_of_a_difference() -> None:
    true = np.repeat([0, 1, 2], 200)
    new = np.where(np.arange(600) % 40 == 0, (true + 1) % 3, true)

    def found(groups: Array) -> Comparison:
        return between(side_of(true, predicted, 3, groups) for predicted in (new, true))

    widths = []
    for size in (10, 100):
        lower, upper = found(np.arange(600) // size).of_overall("accuracy").limits(0.025)
        widths.append(float(upper - lower))
    assert widths[0] < widths[1]
    comparison = found(np.where(true == 2, 0, 1 + np.arange(600) // 10))
    methods = [METHODS[method] for method in comparison.of_classes("recall").methods.tolist()]
    assert methods == ["tango", "tango", ""]
    assert METHODS[int(comparison.of_overall("accuracy").methods)] == "tango"
    alone = found(np.zeros(600, dtype=int))
    assert not alone.overall.methods.any()
    assert not alone.per_class.methods.any()


def test_proportions_and_their_equals_are_paired_by_their_flips() -> None:
    comparison = between(sides_of(JOINT["joint_truth_old_new"]))
    for key in ("accuracy", "r_prime", "micro_recall", "micro_f1", "weighted_recall"):
        difference = comparison.of_overall(key)
        assert (int(difference.gains), int(difference.losses), int(difference.trials)) == (
            30,
            44,
            1000,
        )
    for key in ("error_rate", "weighted_false_negative_rate", "micro_false_discovery_rate"):
        difference = comparison.of_overall(key)
        assert (int(difference.gains), int(difference.losses)) == (44, 30)
    for key in ("recall", "false_negative_rate", "specificity", "predicted_prevalence"):
        difference = comparison.of_classes(key)
        assert (difference.methods == TANGO).all()
        np.testing.assert_allclose(
            (difference.gains - difference.losses) / difference.trials, difference.value, atol=1e-12
        )


def test_an_unclassified_item_is_not_right_but_not_wrong_for_r_prime() -> None:
    true, old, new = np.zeros(10, int), np.ones(10, int), np.full(10, 2)
    comparison = plain(side_of(true, new, 2), side_of(true, old, 2))
    assert comparison.of_overall("accuracy").gains == 0
    assert comparison.of_overall("r_prime").gains == 10
    assert comparison.of_overall("coverage").losses == 10
    assert comparison.of_overall("micro_precision").methods != TANGO


def test_groups_of_copies_count_once() -> None:
    true, old, new = random_items(11, 3, 400, missing=False)
    single = plain(side_of(true, new, 3), side_of(true, old, 3), SMALL)
    copies = np.repeat(np.arange(400), 5)
    five = plain(
        side_of(true[copies], new[copies], 3, copies),
        side_of(true[copies], old[copies], 3, copies),
        SMALL,
    )
    for difference, other in ((single.overall, five.overall), (single.per_class, five.per_class)):
        at = difference.methods == TANGO
        # Groups have Student's quantile, of fewer degrees of freedom where few items changed.
        changed = (difference.gains + difference.losses)[at]
        least = stats.norm.ppf(0.975) ** 2 / stats.t.ppf(0.975, changed - 1) ** 2
        for exact, counted in (
            (difference.trials, other.trials),
            (difference.losses, other.losses),
        ):
            assert (counted[at] <= exact[at]).all()
            assert (counted[at] >= 0.98 * least * exact[at]).all()
    kappa = single.of_overall("kappa").standard_error
    assert five.of_overall("kappa").standard_error == pytest.approx(kappa, rel=0.03)


def test_grouped_flips_have_no_tests_of_independent_items() -> None:
    true = np.repeat([0, 1], 50)
    wrong = np.where(np.arange(100) < 20, 1 - true, true)  # two groups of ten got worse
    for groups, reason in ((None, None), (np.arange(100) // 10, "grouped")):
        candidate, baseline = side_of(true, wrong, 2, groups), side_of(true, true, 2, groups)
        flips = plain(candidate, baseline, SMALL).flips
        assert flips is not None
        assert flips.right_to_wrong == 20
        assert {name: counts.right_to_wrong for name, counts in flips.per_class.items()} == {
            "0": 20
        }
        assert flips.reason == reason
        for counts in (flips, *flips.per_class.values()):
            assert (counts.mid_p is None) == (counts.p_worse is None) == (reason is not None)


def test_groups_widen_an_unpaired_comparison_too() -> None:
    true, old, new = random_items(11, 3, 400, missing=True)
    copies = np.repeat(np.arange(400), 5)
    single = between(table_side(side_of(true, p, 3).table) for p in (new, old))
    five = between(
        replace(side_of(true[copies], p[copies], 3, copies), fingerprint=None) for p in (new, old)
    )
    assert five.comparability == "unknown"
    scale_free = [key != "krippendorff_alpha" for key in single.aligned.selection.overall_place]
    for difference, other in (
        (single.overall[scale_free], five.overall[scale_free]),
        (single.per_class, five.per_class),
    ):
        # Student's quantile and half a group more widen; additions to an item are fewer.
        ratio = other.standard_error / difference.standard_error
        ratio = ratio[np.isfinite(ratio)]
        assert ((ratio > 0.97) & (ratio < 1.15)).all()


def test_groups_in_which_nothing_changed_are_worth_one_item_each() -> None:
    true = np.repeat([0, 1], 50)
    groups = np.repeat(np.arange(20), 5)
    side = side_of(true, true, 2, groups)
    comparison = plain(side, replace(side, items=Items(true, true.copy(), groups)), SMALL)
    assert comparison.of_overall("accuracy").trials == pytest.approx(20 / student(20))
    assert comparison.of_classes("recall").trials == pytest.approx([10 / student(10)] * 2)


def test_comparability_follows_fingerprints_then_identifiers() -> None:
    true, old, new = random_items(1, 3, 60, missing=False)
    a, b = side_of(true, new, 3), side_of(true, old, 3)

    def relation(**baseline: Any) -> str:
        return plain(a, replace(b, **baseline), SMALL).comparability

    assert relation() == "same_items"
    assert relation(items=None) == "same_test_set"
    assert relation(fingerprint="other") == "same_items", "the very same items"
    apart = Items(true.copy(), old)
    assert relation(items=apart) == "same_items"
    assert relation(items=apart, fingerprint="other") == "different"
    assert relation(items=Items(true[::-1].copy(), old)) == "same_test_set"
    assert relation(items=None, fingerprint=None) == "unknown"
    named = replace(a, fingerprint=None, test_set="t")
    tables = replace(b, items=None, fingerprint=None)
    assert plain(named, replace(tables, test_set="t"), SMALL).comparability == "same_test_set"
    assert plain(named, replace(tables, test_set="u"), SMALL).comparability == "different"


def test_what_is_weaker_than_it_looks_is_said() -> None:
    true, old, new = random_items(1, 3, 60, missing=False)
    a, b = (table_side(side_of(true, p, 3).table) for p in (new, old))
    unknown = plain(a, b, SMALL)
    assert [w.code for w in unknown.warnings] == ["test_set_unknown"]
    assert unknown.pairing == "unpaired"
    assert not unknown.overall.bracketed.any()
    same = between((replace(side, test_set="t") for side in (a, b)), SMALL)
    assert [w.code for w in same.warnings] == ["unpaired"]
    assert same.of_classes("recall").bracketed.all()
    assert same.of_classes("recall").methods.tolist() == [MOVER] * 3
    assert between(sides_of(JOINT["joint_truth_old_new"]), SMALL).warnings == ()


def test_different_test_sets_are_not_compared() -> None:
    true, old, new = random_items(1, 3, 60, missing=False)
    a = replace(side_of(true, new, 3), fingerprint="a")
    b = replace(side_of(true.copy(), old, 3), fingerprint="b")
    comparison = compare(a, b, SMALL)
    assert comparison.pairing is None
    assert comparison.flips is None
    assert comparison.changes is None
    assert comparison.attributions == ()
    for difference in (comparison.overall, comparison.per_class):
        assert np.isnan(difference.value).all()
        assert not difference.methods.any()
        assert set(reason(difference)) == {"different_test_sets"}


def test_classes_are_aligned_by_name() -> None:
    true, old, new = random_items(2, 3, 200, missing=True)
    candidate = side_of(true, new, 3, labels=("a", "b", "c"))
    turned = np.array([2, 0, 1, 3])
    baseline = side_of(turned[true], turned[old], 3, labels=("b", "c", "a"))
    comparison = plain(candidate, baseline)
    expected = plain(candidate, side_of(true, old, 3, labels=("a", "b", "c")))
    assert comparison.comparability == "same_items"
    assert comparison.classes == ("a", "b", "c")
    for difference, other in (
        (comparison.overall, expected.overall),
        (comparison.per_class, expected.per_class),
    ):
        np.testing.assert_allclose(difference.value, other.value, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(difference.gains, other.gains)
        np.testing.assert_allclose(difference.standard_error, other.standard_error, rtol=1e-9)


def test_a_class_on_one_side_only_is_reported_and_not_compared() -> None:
    true, old, new = random_items(2, 3, 200, missing=False)
    candidate = side_of(true, new, 4, labels=("a", "b", "c", "extra"))
    baseline = side_of(true + 1, old + 1, 4, labels=("gone", "a", "b", "c"))
    comparison = plain(candidate, baseline)
    assert comparison.candidate_only == ("extra",)
    assert comparison.baseline_only == ("gone",)
    assert comparison.classes == ("a", "b", "c")
    assert comparison.per_class.shape[1] == 3
    assert comparison.comparability == "same_items"
    assert "classes_differ" in [w.code for w in comparison.warnings]
    assert comparison.of_overall("accuracy").methods
    with pytest.raises(ValueError, match="not in tuple"):
        comparison.of_classes("recall", ("gone",))


def test_an_index_that_depends_on_the_declared_classes_is_not_compared_across_them() -> None:
    true, old, _ = random_items(2, 3, 200, missing=False)
    comparison = plain(side_of(true, old, 5), side_of(true, old.copy(), 3))
    for key in ("maxwell_re", "gwet_ac1"):
        difference = comparison.of_overall(key)
        assert difference.candidate != difference.baseline
        assert np.isnan(difference.value)
        assert difference.undefined
        assert reason(difference) == ["classes_differ"]
    assert comparison.of_overall("kappa").value == 0
    assert comparison.of_overall("macro_recall").value == 0


def test_matrices_are_in_the_order_of_the_candidate() -> None:
    true, old, new = random_items(2, 3, 200, missing=False)
    cost = np.array([[0.0, 1, 5], [2, 0, 1], [1, 3, 0]])
    options = Options(indices=("expected_cost", "weighted_kappa"), cost=cost, kappa_weights=cost)
    candidate = side_of(true, new, 3, labels=("a", "b", "c"))
    turned = np.array([2, 0, 1])
    comparison = plain(candidate, side_of(true, old, 3, labels=("a", "b", "c")), options)
    other = plain(candidate, side_of(turned[true], turned[old], 3, labels=("b", "c", "a")), options)
    np.testing.assert_allclose(comparison.overall.value, other.overall.value)
    assert comparison.overall.methods.all()
    wider = plain(candidate, side_of(true, old, 4, labels=("a", "b", "c", "d")), options)
    assert reason(wider.overall) == ["classes_differ"] * 2
    assert np.isnan(wider.overall.value).all()


def test_a_candidate_that_stops_predicting_its_worst_class_does_not_gain() -> None:
    old = np.array([[40, 5, 5], [5, 40, 5], [20, 20, 10]])
    new = np.array([[45, 5, 0], [5, 45, 0], [25, 25, 0]])
    comparison = between(
        (table_side(ConfusionTable.dense(c), test_set="t") for c in (new, old)), CORE
    )
    for key in ("macro_precision", "f1_of_macro_averages", "weighted_precision", "csi"):
        assert comparison.of_overall(key).value < -0.1, key
    precision = comparison.of_classes("precision")
    assert not precision.undefined.any()
    assert precision.candidate[2] == 0
    swapped = between((table_side(ConfusionTable.dense(c), test_set="t") for c in (old, new)), CORE)
    assert swapped.of_classes("precision").value[2] == -precision.value[2]


def test_a_class_without_items_is_listed_and_takes_no_part() -> None:
    true = np.repeat([0, 1], 40)
    new, old = true.copy(), np.where(np.arange(80) % 9 == 0, 1 - true, true)
    comparison = plain(side_of(true, new, 3), side_of(true, old, 3))
    assert comparison.classes == ("0", "1")
    assert comparison.without_items == ("2",)
    assert comparison.of_overall("macro_f1").methods
    with pytest.raises(ValueError, match="not in tuple"):
        comparison.of_classes("recall", ("2",))


def test_without_discordant_items_every_index_has_limits() -> None:
    true = np.repeat([0, 1, 2], [41, 50, 3])
    pred = np.where(np.arange(94) % 11 == 0, 0, true)
    comparison = plain(side_of(true, pred, 3), side_of(true, pred.copy(), 3))
    recall = comparison.of_classes("recall")
    lower, upper = recall.limits(0.05)
    assert (upper - lower > 0).all()
    assert upper[2] - lower[2] > 0.4, "three items show next to nothing"
    kappa = comparison.of_overall("kappa")
    assert kappa.value == 0
    assert kappa.methods
    assert comparison.of_overall("macro_recall").standard_error > 0, "the small-class guard"


def test_all_correct_classes_give_no_interval_of_width_zero() -> None:
    counts = np.diag([30.0, 50, 8])
    for test_set in ("t", None):
        side = table_side(ConfusionTable.dense(counts), test_set)
        comparison = plain(side, side)
        for part in (comparison.overall, comparison.per_class):
            lower, upper = part.limits(0.05)
            assert (np.isnan(lower) | (upper > lower)).all()
            assert np.isnan(part.p(-0.01)[0])[part.methods == 0].all()


def test_a_thousand_tiny_classes_are_compared() -> None:
    k = 1000
    true, old, new = random_items(8, k, 3000, missing=True)
    comparison = plain(side_of(true, new, k), side_of(true, old, k), SMALL)
    for part in (comparison.overall, comparison.per_class):
        lower, upper = part.limits(0.05)
        assert (np.isnan(lower) | (upper > lower)).all()
        assert (part.standard_error[~np.isnan(part.standard_error)] > 0).all()
        assert not (part.p(-0.05)[0] == 0)[part.methods == TANGO].any()
    few = comparison.of_classes("recall")
    at = few.trials <= 2
    assert (few.p(-0.05)[1][at] > 0.05).all(), "two items never show a margin of 5 points"


def weighted_sides(
    true: Array, predictions: tuple[Array, Array], weights: tuple[Array, Array], *, paired: bool
) -> list[Side]:
    sides = []
    for predicted, item_weights in zip(predictions, weights, strict=True):
        counts = np.zeros((3, 3))
        np.add.at(counts, (true, predicted), item_weights)
        items = Items(true if paired else true.copy(), predicted, weights=item_weights)
        table = ConfusionTable.dense(counts, weighted=True)
        fingerprint = "f" if paired else None
        sides.append(Side(labels=names(3), table=table, items=items, fingerprint=fingerprint))
    return sides


def test_weighted_items_have_the_larger_of_two_variances() -> None:
    true, old, new = random_items(4, 3, 100, missing=False)
    weights = np.linspace(0.5, 2, 100)
    comparison = between(weighted_sides(true, (new, old), (weights, weights), paired=True), SMALL)
    assert comparison.pairing == "paired"
    difference = comparison.of_overall("accuracy")
    change, total = (new == true) - 1.0 * (old == true), weights.sum()
    centred = change - (weights @ change) / total
    item_weight = (weights @ weights) / total  # the weight of an effective item (Kish)
    linearised, kish = np.sum((weights * centred) ** 2), item_weight * np.sum(weights * centred**2)
    expected = np.sqrt(max(linearised, kish) + 2 * item_weight**2) / total
    assert float(difference.influence_error) == pytest.approx(expected, rel=1e-12)
    assert comparison.flips is not None
    assert {flips.mid_p for flips in comparison.flips.per_class.values()} == {None}
    assert (comparison.flips.mid_p, comparison.flips.reason) == (None, "weighted")


def test_weights_that_are_one_change_nothing() -> None:
    true, old, new = random_items(4, 3, 100, missing=False)
    ones = np.ones(100)
    sides = weighted_sides(true, (new, old), (ones, ones), paired=True)
    plain_sides = [
        replace(s, table=replace(s.table, weighted=False), items=replace(s.items, weights=None))
        for s in sides
        if s.items is not None
    ]
    of_ones = [replace(s, table=replace(s.table, weighted=False)) for s in sides]
    ours, theirs = between(of_ones, SMALL).overall, between(plain_sides, SMALL).overall
    assert np.array_equal(ours.limits(0.05), theirs.limits(0.05), equal_nan=True)


@pytest.mark.parametrize("paired", [True, False])
def test_limits_of_weighted_items_cover_no_change(*, paired: bool) -> None:
    """Two models of one law do not differ in truth."""
    covered: dict[str, list[Array]] = {"accuracy": [], "kappa": [], "macro_f1": [], "recall": []}
    for seed in range(250):
        rng = np.random.default_rng(seed)
        true = rng.integers(0, 3, 200)
        ours, theirs = (
            np.where(rng.random(200) < 0.8, true, rng.integers(0, 3, 200)) for _ in "ab"
        )
        weights = np.exp(rng.normal(0, 0.8, 200))
        sides = weighted_sides(true, (ours, theirs), (weights, weights), paired=paired)
        comparison = between(sides, Options(indices=tuple(covered)))
        for key, hits in covered.items():
            difference = (
                comparison.of_classes(key) if key == "recall" else comparison.of_overall(key)
            )
            low, high = difference.limits(0.025)
            hits.append(np.atleast_1d((low <= 0) & (high >= 0)))
    for hits in covered.values():
        assert np.mean(hits, axis=0).min() >= 0.92


def test_weights_that_are_not_known_or_differ_have_no_test() -> None:
    true, old, new = random_items(4, 3, 100, missing=False)
    weights = np.linspace(0.5, 2, 100)
    sides = weighted_sides(true, (new, old), (weights, weights[::-1]), paired=True)
    assert set(reason(between(sides, SMALL).overall)) == {"weighted"}
    bare = [replace(side, items=None) for side in sides]
    assert set(reason(between(bare, SMALL).overall)) == {"weighted"}
    weighty = replace(SMALL, cell_weights=np.full((3, 3), 2.0))
    assert set(reason(between(sides_of(JOINT["joint_truth_old_new"]), weighty).overall)) == {
        "weighted"
    }
    both = weighted_sides(true, (new, old), (weights, weights), paired=True)
    assert set(reason(between(both, weighty).overall)) == {"weighted"}
    fractional = table_side(ConfusionTable.dense(np.full((3, 3), 1.5)))
    assert set(reason(plain(fractional, fractional, SMALL).overall)) == {"non_integer_counts"}


def test_flips_and_moves_count_the_items() -> None:
    joint = np.array(JOINT["joint_truth_old_new"])
    comparison = between(sides_of(joint))
    flips = comparison.flips
    assert flips is not None
    counts = [*flips.per_class.values(), flips]
    assert [count.wrong_to_right for count in counts] == [6, 14, 10, 30]
    assert [count.right_to_wrong for count in counts] == [16, 16, 12, 44]
    assert flips.moved == joint.sum() - np.einsum("rjj->", joint)
    assert flips.p_worse == pytest.approx(probability_worse(30, 44))
    assert comparison.moves is not None
    assert comparison.moves[0] == Move("0", from_="0", to="1", items=13)
    numbers = [move.items for move in comparison.moves]
    assert numbers == sorted(numbers, reverse=True)
    assert len(numbers) == Options().top_confusions
    predictions = joint.sum(0)
    assert comparison.shift is not None
    assert comparison.shift.bowker.statistic == pytest.approx(bowker(predictions).statistic)
    homogeneity = comparison.shift.stuart_maxwell
    assert homogeneity.p_value == pytest.approx(stuart_maxwell(predictions).p_value)


def test_a_move_to_no_prediction_has_no_name() -> None:
    true = np.zeros(6, int)
    comparison = plain(side_of(true, np.full(6, 2), 2), side_of(true, true.copy(), 2), SMALL)
    assert comparison.moves is not None
    assert (comparison.moves[0].from_, comparison.moves[0].to) == ("0", None)


@pytest.mark.parametrize("name", ["table7_mnist", "table8_cifar10"])
def test_the_papers_tables_give_the_printed_changes(name: str) -> None:
    before, after = f"{name}_before", f"{name}_after"
    comparison = compare(paper_side(before), paper_side(after), CORE)
    printed = [np.array(PAPER[side]["r_prime_per_class"]) for side in (before, after)]
    r_prime = comparison.of_classes("r_prime")
    np.testing.assert_allclose(np.round(r_prime.candidate, 4), printed[0], atol=1e-9)
    np.testing.assert_allclose(np.round(r_prime.baseline, 4), printed[1], atol=1e-9)
    np.testing.assert_allclose(r_prime.value, printed[0] - printed[1], atol=1.01e-4)
    failed = r_prime.p(-0.05)[0] < 0.05 / 10
    expected = {
        "table7_mnist": ("0", "4", "6", "8"),
        "table8_cifar10": ("cat", "deer", "dog", "horse"),
    }
    assert tuple(np.array(comparison.classes)[failed]) == expected[name]
    back = compare(paper_side(after), paper_side(before), CORE, attributed=())
    assert not (back.of_classes("r_prime").p(-0.05)[0] < 0.5).any()
    assert comparison.changes is not None
    assert (comparison.changes.change[0] < 0) == (
        comparison.changes.true[0] == comparison.changes.predicted[0]
    )


def test_a_sparse_table_is_compared_as_a_dense_one() -> None:
    true, old, new = random_items(6, 5, 300, missing=True)
    dense = [side_of(true, p, 5) for p in (new, old)]
    sparse = [
        replace(
            s,
            table=ConfusionTable.sparse(
                *s.table.cells.coordinates(), 5, unclassified=s.table.unclassified
            ),
        )
        for s in dense
    ]
    for kept in (True, False):
        pairs = [
            sides if kept else [replace(s, items=None) for s in sides] for sides in (dense, sparse)
        ]
        comparison, other = (between(pair) for pair in pairs)
        np.testing.assert_allclose(
            comparison.overall.value, other.overall.value, rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(
            comparison.overall.standard_error, other.overall.standard_error, rtol=1e-9
        )
        np.testing.assert_allclose(comparison.per_class.value, other.per_class.value, rtol=1e-9)


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([0, 0, 0, 1, 2, 30]), min_size=3 * 4 * 4, max_size=3 * 4 * 4),
    st.booleans(),
)
def test_whatever_does_not_exist_is_never_evidence(cells: list[int], paired: bool) -> None:
    candidate, baseline = sides_of(np.array(cells).reshape(3, 4, 4))
    if not paired:
        candidate, baseline = (replace(s, items=None) for s in (candidate, baseline))
    comparison = compare(candidate, baseline, CORE)
    for part in (comparison.overall, comparison.per_class):
        lower, upper = part.limits(0.05)
        missing = np.isnan(part.value)
        assert np.isnan(lower[missing]).all()
        assert np.isnan(part.p(0.0)[0][missing]).all()
        assert (part.reasons[missing] > 0).all()
        untested = part.methods == 0
        assert (part.reasons[untested] > 0).all()
        assert np.isnan(part.p(-0.5)[1][untested]).all()
        assert (part.reasons[part.methods > 0] == 0).all()
        tested = part.methods > 0
        assert (upper[tested] > lower[tested]).all()
        assert (lower[tested] <= part.value[tested] + 1e-9).all()
        assert (part.value[tested] <= upper[tested] + 1e-9).all()


@pytest.mark.parametrize("grouped", [False, True])
def test_paired_variances_are_the_sums_over_items_that_define_them(*, grouped: bool) -> None:
    rng = np.random.default_rng(5)
    true, old, new = rng.integers(0, 3, (3, 60)).astype(np.uint8)
    old[:3], new[2:6] = 3, 3  # unclassified
    groups = np.arange(60, dtype=np.uint32) // (4 if grouped else 1)
    items = [Items(true, predicted, groups if grouped else None) for predicted in (old, new)]
    pairs = PairedItems.of(items[0], items[1], 3)
    values = [values_of(table_of(true, predicted, 3)) for predicted in (old, new)]
    of_classes = [class_gradient(side) for side in values]
    overall = [overall_gradient(*side) for side in zip(values, of_classes, strict=True)]
    before, after = (g.at(true, p) for g, p in zip(overall, (old, new), strict=True))
    phi = after - before
    centred = phi - phi.mean(-1, keepdims=True)
    expected = [(np.bincount(groups, row) ** 2).sum() for row in centred]
    variance = pairs.overall_variance(*overall)
    np.testing.assert_allclose(variance.grouped, expected, rtol=1e-9, atol=1e-15)


def test_grouped_items_have_no_p_values_of_a_shift() -> None:
    true, old, new = unrolled(JOINT["joint_truth_old_new"])
    groups = np.arange(len(true)) // 5
    candidate, baseline = side_of(true, new, 3, groups), side_of(true, old, 3, groups)
    shift = compare(candidate, baseline, Options(indices=("accuracy",))).shift
    assert shift is not None
    assert shift.reason == "grouped"
    assert (shift.bowker.p_value, shift.stuart_maxwell.p_value) == (None, None)
    assert shift.bowker.statistic


def test_sparse_tables_are_compared_in_class_indices_alone() -> None:
    """No overall index has influences then."""
    k = 1200
    places = np.arange(k)
    labels = tuple(map(str, range(k)))
    ours, theirs = (
        Side(labels=labels, table=ConfusionTable.sparse(places, places, np.full(k, items), k))
        for items in (50.0, 51.0)
    )
    comparison = compare(ours, theirs, Options(indices=("recall", "f1")))
    assert comparison.of_classes("recall").value.tolist() == [0.0] * k
