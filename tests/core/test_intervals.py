"""Every index has the interval of its method, or a reason why it has none."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from rprime.core.catalog import KEYS, SCORE_KEYS
from rprime.core.index import REASONS
from rprime.core.intervals.intervals import Intervals, intervals
from rprime.core.intervals.proportions import clopper_pearson, wilson
from rprime.core.items import Items
from rprime.core.table import ConfusionTable
from tests.core.index_values import dense, values_of

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference/statistics_visible.json").read_text(encoding="utf-8")
)["matrices"]
OVERALL = {
    "acc": "accuracy",
    "rover": "r_prime",
    "mrec": "macro_recall",
    "mf1": "macro_f1",
    "mrprime": "macro_r_prime",
    "kappa": "kappa",
    "mcc": "mcc",
}
Z = float(special.ndtri(0.975))
GOOD = [[90, 6, 4], [8, 85, 7], [5, 10, 85]]
RNG = np.random.default_rng(11)


class Found:
    """Intervals by key."""

    def __init__(
        self,
        table: ConfusionTable,
        items: Items | None = None,
        **options: Any,
    ) -> None:
        self.values = values_of(table, **options)
        self.intervals = intervals(self.values, items)
        self.place = self.values.selection.place
        self.overall_place = {e.key: i for i, e in enumerate(self.values.selection.overall)}

    def of_class(self, key: str) -> Any:
        """Limits, shape (2, ..., k)."""
        place, found = self.place[key], self.intervals
        return np.stack((found.per_class_low[place], found.per_class_high[place]))

    def overall(self, key: str) -> Any:
        """Limits, shape (2, ...)."""
        place, found = self.overall_place[key], self.intervals
        return np.stack((found.overall_low[place], found.overall_high[place]))

    def class_reason(self, key: str, c: int) -> str:
        return REASONS[self.intervals.per_class_reasons[self.place[key], c]]

    def reason(self, key: str) -> str:
        return REASONS[self.intervals.overall_reasons[self.overall_place[key]]]


def reference_interval(entry: dict[str, Any]) -> list[float] | None:
    for key in ("ci95_mover_cor", "ci95_fisher_z"):
        if key in entry:
            return list(entry[key])
    return list(entry["ci"]["wilson"]) if "ci" in entry else None


@pytest.mark.parametrize("name", REFERENCE)
def test_overall_intervals_of_the_reference_are_reproduced(name: str) -> None:
    found = Found(dense(REFERENCE[name]["matrix"]))
    exact = Found(dense(REFERENCE[name]["matrix"]), exact=True)
    for short, key in OVERALL.items():
        entry = REFERENCE[name]["scalar"][short]
        expected = reference_interval(entry)
        if expected is None:
            assert found.reason(key) == "no_interval", key
            continue
        assert found.overall(key) == pytest.approx(np.array(expected), abs=1e-9), key
        if "ci" in entry:
            limits = np.array(entry["ci"]["clopper_pearson"])
            assert exact.overall(key) == pytest.approx(limits, abs=1e-9), key


@pytest.mark.parametrize("name", REFERENCE)
def test_intervals_of_the_classes_of_the_reference_are_reproduced(name: str) -> None:
    case = REFERENCE[name]
    found, exact = (Found(dense(case["matrix"]), exact=exact) for exact in (False, True))
    for c, reference in enumerate(case["per_class"]):
        for key in ("recall", "precision"):
            if reference[key] is None:
                assert found.class_reason(key, c) == ""
                continue
            limits = np.array(reference[key]["wilson"])
            assert found.of_class(key)[:, c] == pytest.approx(limits, abs=1e-9)
            limits = np.array(reference[key]["clopper_pearson"])
            assert exact.of_class(key)[:, c] == pytest.approx(limits, abs=1e-9)
        for key, family, method in (
            ("f1", "f1", "ci95_wilson"),
            ("f_beta", "f1", "ci95_wilson"),
            ("r_prime", "rprime", "ci95_mover"),
        ):
            limits = np.array(reference[family][method])
            assert found.of_class(key)[:, c] == pytest.approx(limits, abs=1e-9), key


def test_every_entry_names_its_method() -> None:
    found = Found(dense(GOOD), beta=2.0, kappa_weights="linear", cost=1 - np.eye(3))
    per_class = dict(zip(found.place, found.intervals.per_class_methods, strict=True))
    overall = dict(zip(found.overall_place, found.intervals.overall_methods, strict=True))
    assert per_class["recall"] == overall["accuracy"] == overall["r_prime"] == "wilson"
    assert per_class["f1"] == per_class["jaccard"] == "jaccard_wilson"
    assert per_class["r_prime"] == per_class["informedness"] == overall["macro_f1"] == "mover"
    assert per_class["f_beta"] == overall["weighted_f1"] == overall["micro_f1"] == "delta_logit"
    assert per_class["class_mcc"] == overall["kappa"] == overall["mcc"] == "delta_fisher_z"
    assert overall["scott_pi_true_margin"] == overall["weighted_kappa"] == "delta_fisher_z"
    assert per_class["lift"] == overall["weighted_diagnostic_odds_ratio"] == "delta_log"
    assert per_class["conditional_kappa_true"] == overall["expected_cost"] == "delta"
    for key in ("chi2", "kappa_max", "no_information_rate", "macro_gt_index"):
        assert overall[key] == ""
    assert Found(dense(GOOD), exact=True).intervals.overall_methods[0] == "clopper_pearson"


def test_informedness_is_mover_of_recall_and_false_positive_rate() -> None:
    found = Found(dense(GOOD))
    recall, fall_out = 90 / 100, 13 / 200
    (l1, u1), (l2, u2) = wilson(90, 100, Z), wilson(13, 200, Z)
    expected = [
        recall - fall_out - np.hypot(recall - l1, u2 - fall_out),
        recall - fall_out + np.hypot(u1 - recall, fall_out - l2),
    ]
    assert found.of_class("informedness")[:, 0] == pytest.approx(expected, rel=1e-12)


def test_fixed_class_sizes_take_the_prevalence_out_of_r_prime() -> None:
    random, fixed = (Found(dense(GOOD), sampling=s) for s in ("random", "fixed_rows"))
    informedness, r_prime = fixed.of_class("informedness"), fixed.of_class("r_prime")
    assert r_prime == pytest.approx(1 / 3 + 2 / 3 * informedness, rel=1e-12)
    assert (np.ptp(r_prime, axis=0) < np.ptp(random.of_class("r_prime"), axis=0)).all()
    assert np.ptp(fixed.overall("kappa")) < np.ptp(random.overall("kappa"))


def test_delta_limits_are_symmetric_on_their_scale() -> None:
    found = Found(dense(GOOD), cost=1 - np.eye(3))
    for key, scale in (
        ("weighted_f1", special.logit),
        ("mcc", np.arctanh),
        ("weighted_lift", np.log),
        ("expected_cost", np.asarray),
    ):
        low, high = scale(found.overall(key))
        value = found.values.overall[found.overall_place[key]]
        assert (low + high) / 2 == pytest.approx(scale(value), rel=1e-12), key


def test_agreement_without_a_lower_bound_is_untransformed_below_minus_one() -> None:
    found = Found(dense([[0, 90], [5, 5]]))
    place = found.overall_place["scott_pi_true_margin"]
    value = found.values.overall[place]
    assert value < -1
    assert found.overall("scott_pi_true_margin").mean() == pytest.approx(value, rel=1e-9)


def macro_by_definition(found: Found, key: str, correlations: Any) -> list[float]:
    """Limits of a macro average from those of the classes."""
    values = found.values.per_class[found.place[key]]
    low, high = np.abs(found.of_class(key) - values) / len(values)
    widths = [np.sqrt(d @ correlations @ d) for d in (low, high)]
    return [values.mean() - widths[0], values.mean() + widths[1]]


def test_macro_recall_combines_its_classes_as_independent() -> None:
    found = Found(dense(GOOD))
    expected = macro_by_definition(found, "recall", np.eye(3))
    assert found.overall("macro_recall") == pytest.approx(expected, rel=1e-9)
    assert found.overall("balanced_accuracy") == pytest.approx(expected, rel=1e-9)


def test_an_all_correct_class_enters_a_macro_average_uncorrelated() -> None:
    found = Found(dense([[40, 0, 0], [0, 30, 3], [0, 5, 20]]))
    recall = found.overall("macro_recall")
    assert recall == pytest.approx(macro_by_definition(found, "recall", np.eye(3)), rel=1e-9)
    f1 = found.overall("macro_f1")
    independent = macro_by_definition(found, "f1", np.eye(3))
    assert (f1[0] < independent[0]) & (f1[1] > independent[1])


def test_the_macro_average_of_shares_of_one_total_has_no_interval() -> None:
    found = Found(dense(GOOD))
    assert found.reason("macro_prevalence") == "no_interval"
    assert found.reason("macro_predicted_prevalence") == "no_interval"


def test_counts_that_are_no_items_have_no_interval() -> None:
    weighted = Found(ConfusionTable.dense(np.array(GOOD), weighted=True))
    assert weighted.reason("kappa") == weighted.class_reason("recall", 0) == "weighted"
    assert weighted.reason("chi2") == "no_interval"
    fractional = Found(dense(np.array(GOOD) + 0.5))
    assert fractional.reason("accuracy") == "non_integer_counts"
    assert fractional.class_reason("f1", 1) == "non_integer_counts"
    by_cell = Found(dense(GOOD), cell_weights=np.full((3, 3), 100.0))
    assert by_cell.reason("accuracy") == "weighted"
    for found in (weighted, fractional, by_cell):
        assert np.isnan(found.intervals.overall_low).all()
        assert np.isnan(found.intervals.per_class_high).all()


def test_spurious_items_take_the_interval_from_what_mixes_them_with_real_ones() -> None:
    found = Found(dense(GOOD, [0, 0, 0], [3, 0, 4]))
    for key in ("r_prime", "informedness", "predicted_prevalence"):
        assert found.class_reason(key, 0) == "no_interval"
    for key in ("r_prime", "macro_r_prime", "weighted_r_prime", "macro_informedness"):
        assert found.reason(key) == "no_interval"
    assert np.isfinite(found.overall("accuracy")).all()
    assert found.of_class("precision")[:, 0] == pytest.approx(np.array(wilson(90, 106, Z)))


def test_unclassified_items_count_where_the_universe_is_all() -> None:
    found = Found(dense(GOOD, [10, 0, 5]))
    assert found.overall("coverage") == pytest.approx(np.array(wilson(300, 315, Z)))
    assert found.overall("accuracy_on_answered") == pytest.approx(np.array(wilson(260, 300, Z)))
    assert found.of_class("recall")[:, 0] == pytest.approx(np.array(wilson(90, 110, Z)))
    whole = Found(dense(GOOD))
    assert found.overall("kappa") == pytest.approx(whole.overall("kappa"), rel=1e-12)
    mixed = found.of_class("class_mcc")
    assert mixed == pytest.approx(whole.of_class("class_mcc"), rel=1e-12)


def test_what_is_faultless_has_score_intervals_and_no_others() -> None:
    found = Found(dense(np.diag([50, 20, 5, 2])))
    assert found.overall("accuracy")[1] == 1
    assert found.overall("macro_f1")[1] == 1
    assert found.of_class("r_prime")[1] == pytest.approx(np.ones(4))
    for key in ("kappa", "mcc", "weighted_f1", "micro_recall", "csi"):
        assert found.reason(key) == "no_interval", key
    assert found.class_reason("class_mcc", 0) == "no_interval"


def test_intervals_that_rest_on_few_items_are_marked() -> None:
    found = Found(dense([[90, 6, 1], [8, 85, 0], [1, 2, 4]]))
    low, place = found.intervals.per_class_low_reliability, found.place
    assert low[place["recall"]].tolist() == [False, False, True]
    assert low[place["precision"]].tolist() == [False, False, True]
    assert low[place["r_prime"]].tolist() == [False, False, True]
    assert low[place["jaccard"]].tolist() == [False, False, True]
    assert not low[place["specificity"]].any()
    overall = found.intervals.overall_low_reliability
    assert overall[found.overall_place["macro_recall"]]
    assert not overall[found.overall_place["accuracy"]]
    assert not overall[found.overall_place["macro_specificity"]]
    tiny = Found(dense([[3, 1], [0, 2]]))
    assert tiny.intervals.overall_low_reliability[tiny.overall_place["micro_specificity"]]


def test_few_classified_items_are_few_items() -> None:
    found = Found(dense([[4, 1], [1, 3]], [50, 60]))
    low = found.intervals.per_class_low_reliability
    assert low[found.place["class_mcc"]].all()
    assert not low[found.place["recall"]].any()
    assert found.intervals.overall_low_reliability[found.overall_place["kappa"]]


@st.composite
def tables(draw: st.DrawFn) -> ConfusionTable:
    """Draw tables of one to five classes with empty, tiny and large cells."""
    k = draw(st.integers(1, 5))
    cell = st.one_of(st.integers(0, 3), st.integers(0, 60), st.just(10**9))
    counts = draw(arrays(np.float64, (k, k), elements=cell))
    beside = draw(arrays(np.float64, (2, k), elements=st.sampled_from([0, 0, 0, 1, 7])))
    return dense(counts, beside[0], beside[1])


def check(found: Found) -> None:
    """What holds for all intervals: about the value, with a width, in range, or a reason."""
    values, known = found.values, found.intervals
    for entries, own, low, high, reasons, few, names in (
        (
            values.selection.computed,
            values.per_class,
            known.per_class_low,
            known.per_class_high,
            known.per_class_reasons,
            known.per_class_low_reliability,
            known.per_class_methods,
        ),
        (
            values.selection.overall,
            values.overall,
            known.overall_low,
            known.overall_high,
            known.overall_reasons,
            known.overall_low_reliability,
            known.overall_methods,
        ),
    ):
        exists = np.isfinite(low)
        assert (exists == np.isfinite(high)).all()
        assert not (exists & ~np.isfinite(own)).any()
        assert ((reasons == 0) == (exists | ~np.isfinite(own))).all()
        assert not (few & ~exists).any()
        ends = np.array([entry.range for entry in entries]).T
        lowest, highest = ends.reshape(2, -1, *(1,) * (low.ndim - 1))
        bounded = np.where(exists, own, np.nan)
        slack = 1e-9 * np.abs(bounded)
        right = (low < high) & (low <= bounded + slack) & (bounded - slack <= high)
        right &= (low >= lowest - 1e-12) & (high <= highest + 1e-12)
        of_entries = (flags.reshape(len(entries), -1) for flags in (exists, right | ~exists))
        for entry, name, there, fine in zip(entries, names, *of_entries, strict=True):
            assert fine.all(), entry.key
            assert name or not there.any(), entry.key


ASKED = st.fixed_dictionaries(
    {
        "sampling": st.sampled_from(["random", "fixed_rows"]),
        "exact": st.booleans(),
        "undefined": st.sampled_from(["null", "zero", "one"]),
        "beta": st.sampled_from([1.0, 2.0]),
        "confidence": st.sampled_from([0.5, 0.95, 0.999]),
        "kappa_weights": st.sampled_from(["linear", "quadratic"]),
    }
)


@settings(max_examples=150)
@given(tables(), ASKED)
def test_intervals_enclose_their_value_or_say_why_there_is_none(
    table: ConfusionTable, asked: dict[str, Any]
) -> None:
    check(Found(table, cost=np.ones((table.k, table.k + 1)), **asked))


@pytest.mark.parametrize(
    "counts",
    [
        np.eye(4) * [50, 20, 5, 2],
        [[0, 5, 5], [5, 0, 5], [5, 5, 0]],
        [[0, 50], [50, 0]],
        [[5]],
        [[5, 3], [0, 0]],
        np.zeros((3, 3)),
        [[1e12, 1], [1, 1e11]],
        RNG.poisson(0.001, (1000, 1000)) + np.diag(RNG.poisson(1.0, 1000)),
    ],
    ids=["perfect", "wrong", "swapped", "one", "single", "empty", "large", "thousand"],
)
def test_extreme_tables_leak_nothing(counts: Any) -> None:
    k = len(counts)
    check(Found(dense(counts), kappa_weights="quadratic", cost=1 - np.eye(k)))


@pytest.mark.parametrize("key", [key for key in KEYS if key not in SCORE_KEYS])
def test_an_index_asked_for_alone_has_the_interval_it_has_among_all(key: str) -> None:
    options: dict[str, Any] = {"kappa_weights": "linear", "cost": 1 - np.eye(3)}
    alone, all_of_them = (
        Found(dense(GOOD), indices=(key,), **options),
        Found(dense(GOOD), **options),
    )
    for entry in alone.values.selection.overall:
        expected = all_of_them.overall(entry.key)
        np.testing.assert_allclose(alone.overall(entry.key), expected, rtol=1e-9)
    for entry in alone.values.selection.per_class:
        expected = all_of_them.of_class(entry.key)
        np.testing.assert_allclose(alone.of_class(entry.key), expected, rtol=1e-9)


def assert_same(one: Intervals, other: Intervals, place: Any = ...) -> None:
    for field in fields(one):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, tuple):
            assert left == right
        else:
            right = right if place is ... else right[:, place]
            np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-12, err_msg=field.name)


@pytest.mark.parametrize("sampling", ["random", "fixed_rows"])
def test_a_stack_gives_what_its_members_give(sampling: str) -> None:
    counts = np.array(GOOD, dtype=float)
    beside = np.array([[4.0, 0, 1], [0, 2, 2]])
    members = [
        dense(counts, *beside),
        dense(counts + 0.5, beside[0]),
        dense(counts.T),
        dense(np.diag(counts.diagonal())),
        dense(counts // 20),
    ]
    options: dict[str, Any] = {
        "sampling": sampling,
        "kappa_weights": "linear",
        "cost": np.arange(12.0).reshape(3, 4),
    }
    stack = Found(ConfusionTable.stack(members), **options)
    for i, member in enumerate(members):
        assert_same(Found(member, **options).intervals, stack.intervals, i)


def test_sparse_cells_give_what_dense_cells_give() -> None:
    counts = np.array(GOOD, dtype=float)
    rows, columns = np.indices((3, 3))
    sparse = ConfusionTable.sparse(rows.ravel(), columns.ravel(), counts.ravel(), 3)
    assert_same(Found(sparse).intervals, Found(dense(GOOD)).intervals)


def items_of(table: Any) -> tuple[Any, Any]:
    true, predicted = np.nonzero(table)
    times = table[true, predicted].astype(int)
    return np.repeat(true, times), np.repeat(predicted, times)


OMITTING = np.column_stack((np.array(GOOD), [5, 0, 3]))


def grouped(groups: Any, times: int = 1, **options: Any) -> Found:
    true, predicted = items_of(OMITTING)
    items = Items(np.tile(true, times), np.tile(predicted, times), groups)
    return Found(dense(OMITTING[:, :3] * times, OMITTING[:, 3] * times), items, **options)


def test_groups_of_one_item_change_nothing() -> None:
    n = int(OMITTING.sum())
    single = grouped(np.arange(n))
    assert_same(single.intervals, Found(dense(OMITTING[:, :3], OMITTING[:, 3])).intervals)


@pytest.mark.parametrize("sampling", ["random", "fixed_rows"])
def test_twins_count_once(sampling: str) -> None:
    n = int(OMITTING.sum())
    twins = grouped(np.tile(np.arange(n), 2), times=2, sampling=sampling)
    once = Found(dense(OMITTING[:, :3], OMITTING[:, 3]), sampling=sampling)
    for key in once.overall_place:
        if key != "krippendorff_alpha":  # the one that changes with the scale
            np.testing.assert_allclose(twins.overall(key), once.overall(key), rtol=1e-8)
    for key in once.place:
        np.testing.assert_allclose(twins.of_class(key), once.of_class(key), rtol=1e-8)


def test_the_design_effect_is_the_ratio_of_grouped_to_ungrouped_variance() -> None:
    true, predicted = items_of(OMITTING)
    groups = RNG.integers(0, 40, len(true))
    found = grouped(groups)
    right = (true == predicted) - np.mean(true == predicted)
    effect = np.square(np.bincount(groups, right)).sum() / np.square(right).sum()
    correct, n = np.sum(true == predicted) / effect, len(true) / effect
    assert found.overall("accuracy") == pytest.approx(np.array(wilson(correct, n, Z)), rel=1e-9)
    own = true == 0
    right = np.where(own, (predicted == 0) - np.mean(predicted[own] == 0), 0.0)
    effect = np.square(np.bincount(groups, right)).sum() / np.square(right).sum()
    correct, n = np.sum(own & (predicted == 0)) / effect, own.sum() / effect
    expected = np.array(wilson(correct, n, Z))
    assert found.of_class("recall")[:, 0] == pytest.approx(expected, rel=1e-9)
    exact = grouped(groups, exact=True).of_class("recall")[:, 0]
    assert exact == pytest.approx(np.array(clopper_pearson(correct, n, 0.95)), rel=1e-9)


def test_a_single_group_says_nothing_about_groups() -> None:
    found = grouped(np.zeros(int(OMITTING.sum()), dtype=int))
    for key in ("accuracy", "kappa", "macro_recall", "weighted_f1"):
        assert found.reason(key) == "no_interval", key


def test_faultless_groups_count_as_their_number() -> None:
    true = np.repeat([0, 1], 100)
    found = Found(dense(np.diag([100, 100])), Items(true, true, np.arange(200) // 10))
    assert found.overall("accuracy") == pytest.approx(np.array(wilson(20, 20, Z)), rel=1e-9)
    assert found.of_class("recall")[:, 0] == pytest.approx(np.array(wilson(10, 10, Z)), rel=1e-9)
    few = Found(dense(np.diag([100, 100])), Items(true, true, np.arange(200) // 40))
    assert few.intervals.overall_low_reliability[few.overall_place["accuracy"]]
    assert few.intervals.per_class_low_reliability[few.place["recall"]].all()


COVERED = ("accuracy", "kappa", "mcc", "macro_recall", "macro_f1", "macro_r_prime", "weighted_f1")


def coverage(truth: Any, n: int, replicates: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Share of the intervals that contain the value of the whole population."""
    drawn = np.random.default_rng(5).multinomial(n, truth.ravel(), replicates)
    found = Found(ConfusionTable.dense(drawn.reshape(-1, *truth.shape).astype(float)))
    population = values_of(dense(truth))
    overall, per_class = {}, {}
    for key in COVERED:
        low, high = found.overall(key)
        value = population.overall[found.overall_place[key]]
        overall[key] = float(((low <= value) & (value <= high)).mean())
    for key in ("recall", "precision", "f1", "r_prime", "informedness", "class_mcc"):
        low, high = found.of_class(key)
        value = population.per_class[found.place[key]]
        per_class[key] = ((low <= value) & (value <= high)).mean(0)
    return overall, per_class


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    truth = np.array([[0.40, 0.03, 0.02], [0.04, 0.24, 0.02], [0.03, 0.02, 0.20]])
    overall, per_class = coverage(truth, 500, 2000)
    for key, share in overall.items():
        assert 0.93 <= share <= 0.97, key
    for key, shares in per_class.items():
        assert (shares >= 0.93).all(), key
        assert (shares <= 0.975).all(), key


def test_more_confidence_is_more_width() -> None:
    widths = [np.ptp(Found(dense(GOOD), confidence=c).overall("kappa")) for c in (0.8, 0.95, 0.99)]
    assert widths == sorted(widths)
    assert stats.norm.ppf(0.975) == pytest.approx(Z)


@pytest.mark.parametrize("k", [2, 3, 10, 50])
def test_a_stack_gives_each_table_what_it_gets_alone_to_the_last_digit(k: int) -> None:
    draw = np.random.default_rng(k)
    tables = [dense(draw.integers(0, 40, (k, k)) + 50 * np.eye(k)) for _ in range(7)]
    stacked = intervals(values_of(ConfusionTable.stack(tables)))
    for i, table in enumerate(tables):
        alone = intervals(values_of(table))
        np.testing.assert_array_equal(stacked.per_class_low[:, i], alone.per_class_low)
        np.testing.assert_array_equal(stacked.per_class_high[:, i], alone.per_class_high)
        np.testing.assert_array_equal(stacked.overall_low[:, i], alone.overall_low)
        np.testing.assert_array_equal(stacked.overall_high[:, i], alone.overall_high)
