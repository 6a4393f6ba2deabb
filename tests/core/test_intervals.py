"""Every index has the interval of its method, or a reason why it has none."""

import json
import tracemalloc
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from rprime.core.catalog import KEYS, SCORE_KEYS
from rprime.core.estimates import Estimates
from rprime.core.evaluate import evaluate
from rprime.core.index import REASONS
from rprime.core.intervals.intervals import Intervals, intervals, prepare
from rprime.core.intervals.proportions import clopper_pearson, wilson
from rprime.core.items import Items
from rprime.core.items import table_of as counted
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.report.document import render
from tests.core.index_values import CORE, dense, values_of

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference/statistics_visible.json").read_text(encoding="utf-8")
)["matrices"]
SECOND = json.loads(
    (Path(__file__).parents[1] / "reference/intervals.json").read_text(encoding="utf-8")
)["tables"]
Z = float(special.ndtri(0.975))
GOOD = [[90, 6, 4], [8, 85, 7], [5, 10, 85]]
RNG = np.random.default_rng(11)


class Found:
    """Intervals by key."""

    def __init__(self, table: ConfusionTable, items: Items | None = None, **options: Any) -> None:
        self.values = values_of(table, **options)
        self.intervals = intervals(self.values, items)
        self.place = self.values.selection.place
        self.overall_place = {e.key: i for i, e in enumerate(self.values.selection.overall)}

    def of_class(self, key: str) -> Any:
        """Limits, shape (2, ..., k)."""
        place, bounds = self.place[key], self.intervals
        return np.stack((bounds.per_class_low[place], bounds.per_class_high[place]))

    def overall(self, key: str) -> Any:
        """Limits, shape (2, ...)."""
        place, bounds = self.overall_place[key], self.intervals
        return np.stack((bounds.overall_low[place], bounds.overall_high[place]))

    def class_reason(self, key: str, c: int) -> str:
        return REASONS[self.intervals.per_class_reasons[self.place[key], c]]

    def reason(self, key: str) -> str:
        return REASONS[self.intervals.overall_reasons[self.overall_place[key]]]


def table_of(matrix: Any) -> ConfusionTable:
    """Build a table from rows of k columns, or of k + 1 with the unclassified items last."""
    counts = np.array(matrix, dtype=float)
    k = len(counts)
    return dense(counts[:, :k]) if counts.shape[1] == k else dense(counts[:, :k], counts[:, k])


def ends(limits: list[float | None]) -> Any:
    """Limits of the reference, where an infinite end is null."""
    low, high = limits
    return np.array([low, np.inf if high is None else high], dtype=float)


@pytest.mark.parametrize("name", SECOND)
def test_every_interval_of_the_second_edition_is_reproduced(name: str) -> None:
    estimates = Found(table_of(SECOND[name]["matrix"]))
    for key, expected in SECOND[name]["overall"].items():
        value = estimates.values.overall[estimates.overall_place[key]]
        assert value == pytest.approx(expected["value"], rel=1e-12, abs=1e-15), key
        assert estimates.overall(key) == pytest.approx(ends(expected["interval"]), rel=1e-9), key
    for c, keys in enumerate(SECOND[name]["per_class"]):
        for key, limits in keys.items():
            assert estimates.of_class(key)[:, c] == pytest.approx(ends(limits), rel=1e-9), (key, c)


@pytest.mark.parametrize("name", REFERENCE)
def test_wilson_and_exact_limits_of_the_reference_are_reproduced(name: str) -> None:
    case = REFERENCE[name]
    estimates, exact = (Found(dense(case["matrix"]), exact=exact) for exact in (False, True))
    for short, key in (("acc", "accuracy"), ("rover", "r_prime")):
        limits = case["scalar"][short]["ci"]
        for side, method in ((estimates, "wilson"), (exact, "clopper_pearson")):
            assert side.overall(key) == pytest.approx(np.array(limits[method]), abs=1e-9), key
    for c, reference in enumerate(case["per_class"]):
        for key in ("recall", "precision"):
            if reference[key] is None:
                assert estimates.class_reason(key, c) == ""
                continue
            for side, method in ((estimates, "wilson"), (exact, "clopper_pearson")):
                limits = np.array(reference[key][method])
                assert side.of_class(key)[:, c] == pytest.approx(limits, abs=1e-9)
        for key in ("f1", "f_beta"):
            limits = np.array(reference["f1"]["ci95_wilson"])
            assert estimates.of_class(key)[:, c] == pytest.approx(limits, abs=1e-9), key


def test_every_entry_names_its_method() -> None:
    estimates = Found(dense(GOOD), beta=2.0, kappa_weights="linear", cost=1 - np.eye(3))
    per_class = dict(zip(estimates.place, estimates.intervals.per_class_methods, strict=True))
    overall = dict(zip(estimates.overall_place, estimates.intervals.overall_methods, strict=True))
    for key in ("accuracy", "r_prime", "micro_recall", "weighted_recall", "micro_f1", "maxwell_re"):
        assert overall[key] == "wilson", key
    assert per_class["recall"] == "wilson"
    assert per_class["f1"] == per_class["jaccard"] == "wilson_mapped"
    for key in ("r_prime", "informedness", "class_balanced_accuracy", "markedness", "kulczynski"):
        assert per_class[key] == "wilson_mover", key
    for key in ("macro_f1", "csi", "weighted_r_prime", "peirce_skill_score", "macro_class_mcc"):
        assert overall[key] == "wilson_stratified", key
    for key in ("kappa", "mcc", "weighted_f1", "micro_jaccard", "weighted_kappa", "expected_cost"):
        assert overall[key] == "wilson_effective", key
    assert per_class["class_mcc"] == per_class["f_beta"] == "wilson_effective"
    assert per_class["positive_likelihood_ratio"] == "mover_r"
    assert per_class["lift"] == per_class["diagnostic_odds_ratio"] == "delta_log"
    for key in ("chi2", "kappa_max", "no_information_rate"):
        assert overall[key] == "", key
    exact = Found(dense(GOOD), exact=True).intervals
    assert exact.overall_methods[0] == "clopper_pearson"


AFFINE = [
    ("class", "class_balanced_accuracy", "informedness", 0.5, 0.5),
    ("class", "kulczynski", "icsi", 0.5, 0.5),
    ("overall", "macro_class_balanced_accuracy", "macro_informedness", 0.5, 0.5),
    ("overall", "macro_kulczynski", "csi", 0.5, 0.5),
    ("overall", "balanced_accuracy", "macro_recall", 1.0, 0.0),
    ("overall", "adjusted_balanced_accuracy", "balanced_accuracy", 1.5, -0.5),
    ("overall", "macro_r_prime", "macro_recall", 1.0, 0.0),
    ("overall", "macro_icsi", "csi", 1.0, 0.0),
    ("overall", "maxwell_re", "accuracy", 1.5, -0.5),
    *(
        ("overall", key, "accuracy", 1.0, 0.0)
        for key in ("micro_recall", "micro_precision", "micro_f1", "weighted_recall", "r_prime")
    ),
    ("overall", "expected_cost", "accuracy", -1.0, 1.0),
    ("overall", "macro_false_negative_rate", "macro_recall", -1.0, 1.0),
    ("overall", "weighted_false_negative_rate", "accuracy", -1.0, 1.0),
]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("matrix", [GOOD, np.diag([50, 20, 5]), [[5, 1, 0], [1, 3, 1], [0, 1, 4]]])
def test_equal_indices_and_affine_maps_share_one_interval(matrix: Any, *, exact: bool) -> None:
    estimates = Found(dense(matrix), cost=1 - np.eye(3), exact=exact)
    for scope, key, other, slope, offset in AFFINE:
        of = estimates.of_class if scope == "class" else estimates.overall
        if exact and key == "expected_cost":
            continue  # a cost is no proportion, although this one equals the error rate
        expected = slope * of(other) + offset
        expected = expected if slope > 0 else expected[::-1]
        np.testing.assert_allclose(of(key), expected, rtol=1e-12, atol=1e-14, err_msg=key)


def test_adjusted_balanced_accuracy_counts_the_classes_with_items() -> None:
    estimates = Found(dense([[30, 2, 1], [4, 12, 0], [0, 0, 0]]))
    expected = 2 * estimates.overall("balanced_accuracy") - 1
    np.testing.assert_allclose(
        estimates.overall("adjusted_balanced_accuracy"), expected, rtol=1e-12
    )


def score_by_definition(
    counts: Any, key: str, *, scope: str = "overall", low: float = 0.0, fixed_rows: bool = False
) -> Any:
    """Wilson's limits on the effective number of items, from numerical gradients."""
    counts = np.array(counts, dtype=float)

    def value(table: Any) -> Any:
        values = values_of(dense(table), indices=(key,))
        places = values.selection.place if scope == "class" else values.selection.overall_place
        return (values.per_class if scope == "class" else values.overall)[places[key]]

    k, w = len(counts), counts.sum()
    share = (w - np.trace(counts) + 0.5) / (w + 1)
    pooled = counts.copy()
    for row in range(k):
        others = counts.sum(0) + 0.5
        others[row] = 0
        pooled[row] += 0.5 * share * others / others.sum()
        pooled[row, row] += 0.5 * (1 - share)
    step, gradient = 1e-4, np.empty((k, k, *np.shape(value(pooled))))
    for row, column in np.ndindex(k, k):
        more, less = pooled.copy(), pooled.copy()
        more[row, column] += step
        less[row, column] -= step
        gradient[row, column] = (value(more) - value(less)) / (2 * step)
    weight = pooled.reshape(k, k, *(1,) * (gradient.ndim - 2))
    squares, sums = (weight * gradient**2).sum((0, 1)), (weight * gradient).sum(1)
    if fixed_rows:
        size = pooled.sum(1).reshape(-1, *(1,) * (gradient.ndim - 2))
        variance = squares - (sums**2 / size).sum(0)
    else:
        variance = squares - sums.sum(0) ** 2 / pooled.sum()
    at, there = (value(counts) - low) / (1 - low), (value(pooled) - low) / (1 - low)
    n = there * (1 - there) / variance * (1 - low) ** 2 * w / pooled.sum()
    return low + (1 - low) * np.array(wilson(at * n, n, Z))


@pytest.mark.parametrize("sampling", ["random", "fixed_rows"])
def test_score_intervals_follow_their_definition(sampling: str) -> None:
    fixed = sampling == "fixed_rows"
    matrix = [[30, 2, 1], [4, 12, 0], [1, 3, 5]]
    estimates = Found(dense(matrix), sampling=sampling)
    keys = {"scott_pi": -1.0, "gwet_ac1": -1.0, "krippendorff_alpha": -1.0, "micro_jaccard": 0.0}
    keys |= {
        "bangdiwala_b": 0.0,
        "f1_of_macro_averages": 0.0,
        "weighted_precision": 0.0,
        "scott_pi_true_margin": -1.0,
    }
    if fixed:
        keys |= {"accuracy": 0.0, "kappa": -1.0, "micro_f1": 0.0, "coverage": 0.0}
        keys.pop("coverage")
    for key, low in keys.items():
        expected = score_by_definition(matrix, key, low=low, fixed_rows=fixed)
        assert estimates.overall(key) == pytest.approx(expected, rel=1e-6), key
    of_class = {"fowlkes_mallows": 0.0, "conditional_kappa_true": -1.0}
    if fixed:
        of_class |= {"precision": 0.0, "specificity": 0.0, "f1": 0.0}
    for key, low in of_class.items():
        expected = score_by_definition(matrix, key, scope="class", low=low, fixed_rows=fixed)
        assert estimates.of_class(key) == pytest.approx(expected, rel=1e-6), key


def test_fixed_class_sizes_have_no_prevalence_to_estimate() -> None:
    random, fixed = (Found(dense(GOOD), sampling=s) for s in ("random", "fixed_rows"))
    assert fixed.class_reason("prevalence", 0) == "no_interval"
    np.testing.assert_allclose(fixed.of_class("recall"), random.of_class("recall"), rtol=1e-12)
    for key in ("kappa", "accuracy"):
        assert np.ptp(fixed.overall(key)) < np.ptp(random.overall(key)), key
    assert (
        np.ptp(fixed.of_class("r_prime"), axis=0) < np.ptp(random.of_class("r_prime"), axis=0)
    ).all()


def test_the_odds_ratio_is_symmetric_on_the_logarithm() -> None:
    matrix = np.array([[90, 10], [20, 80]])
    limits = Found(dense(matrix)).of_class("diagnostic_odds_ratio")[:, 0]
    # One item more in each row, half of it right and half of it wrong.
    error = np.sqrt((1 / (matrix + 0.5)).sum())
    assert limits == pytest.approx(36 * np.exp([-Z * error, Z * error]), rel=1e-9)
    faultless = Found(dense([[90, 10], [0, 80]])).of_class("diagnostic_odds_ratio")[:, 0]
    cells = np.array([90.5, 10.5, 0.5, 80.5])
    lower = 90.5 * 80.5 / (10.5 * 0.5) * np.exp(-Z * np.sqrt((1 / cells).sum()))
    assert faultless == pytest.approx([lower, np.inf], rel=1e-9)


@pytest.mark.parametrize(
    "matrix", [GOOD, [[90, 10], [0, 80]], [[0, 0, 47], [0, 9000, 3], [2, 0, 0]]]
)
def test_the_interval_of_yules_q_is_that_of_the_odds_ratio(matrix: Any) -> None:
    estimates = Found(dense(matrix), indices=("yule_q", "diagnostic_odds_ratio"))
    ratios = estimates.of_class("diagnostic_odds_ratio")
    assert estimates.of_class("yule_q") == pytest.approx(1 - 2 / (ratios + 1), abs=1e-9)


def test_the_lift_is_symmetric_on_the_logarithm() -> None:
    low, high = Found(dense([[90, 10], [20, 80]])).of_class("lift")[:, 0]
    lift = 200 * 90 / (100 * 110)
    # Katz et al. 1978: the ratio of 90 / 110 to 100 / 200, of which one includes the other.
    influences = np.array([1 / 200 + 1 / 90 - 1 / 100 - 1 / 110, 1 / 200 - 1 / 100])
    influences = np.append(influences, [1 / 200 - 1 / 110, 1 / 200])
    error = np.sqrt((np.array([90, 10, 20, 80]) * influences**2).sum())
    assert [low, high] == pytest.approx(lift * np.exp([-Z * error, Z * error]), rel=1e-9)


def test_one_true_class_fixes_aickins_alpha_in_any_order_of_the_classes() -> None:
    counts = np.zeros((9, 9))
    counts[5] = [7, 0, 0, 7, 3, 23, 7, 3, 0]
    for shift in range(9):
        moved = np.roll(counts, shift, axis=(0, 1))
        assert np.isnan(
            Found(dense(moved), indices=("aickin_alpha",)).overall("aickin_alpha")
        ).all()


def test_agreement_below_minus_one_has_no_interval() -> None:
    estimates = Found(dense([[0, 90], [5, 5]]))
    assert estimates.values.overall[estimates.overall_place["scott_pi_true_margin"]] < -1
    assert estimates.reason("scott_pi_true_margin") == "no_interval"
    assert np.isfinite(estimates.overall("kappa")).all()


def test_biased_and_unbounded_averages_have_no_interval() -> None:
    found = Found(dense(GOOD))
    powers = [f"{kind}_discriminant_power" for kind in ("macro", "weighted")]
    for key in ("weighted_detection_rate", *powers):
        assert found.reason(key) == "no_interval", key


GIVEN_UP = [[50, 5, 0], [10, 60, 0], [12, 13, 0]]


def test_precision_of_a_class_given_up_varies_inside_averages_alone() -> None:
    estimates = Found(dense(GIVEN_UP))
    assert np.isnan(estimates.of_class("precision")[:, 2]).all()
    prepared = prepare(estimates.values).class_limits(Z)
    upper = wilson(0, 25, Z)[1]
    assert prepared[:, estimates.place["precision"], 2] == pytest.approx(
        [0, float(upper)], rel=1e-12
    )
    discovery = prepared[:, estimates.place["false_discovery_rate"], 2]
    assert discovery == pytest.approx([1 - float(upper), 1], rel=1e-12)
    assert (
        estimates.overall("macro_precision")[1]
        > estimates.values.overall[estimates.overall_place["macro_precision"]]
    )


@pytest.mark.parametrize("undefined", ["zero", "one"])
def test_a_replaced_class_shifts_an_average_and_brings_no_width(undefined: str) -> None:
    within = Found(dense([[50, 5], [10, 60]]))
    beside = Found(dense([[50, 5, 0], [10, 60, 0], [0, 0, 0]]), undefined=undefined)
    filler = float(undefined == "one")
    expected = (2 * within.overall("macro_recall") + filler) / 3
    assert beside.overall("macro_recall") == pytest.approx(expected, rel=0.02)


def test_counts_that_are_no_items_have_no_interval() -> None:
    weighted = Found(ConfusionTable.dense(np.array(GOOD), weighted=True))
    assert weighted.reason("kappa") == weighted.class_reason("recall", 0) == "weighted"
    assert weighted.reason("phi") == "no_interval"
    fractional = Found(dense(np.array(GOOD) + 0.5))
    assert fractional.reason("accuracy") == "non_integer_counts"
    assert fractional.class_reason("f1", 1) == "non_integer_counts"
    by_cell = Found(dense(GOOD), cell_weights=np.full((3, 3), 100.0))
    assert by_cell.reason("accuracy") == "weighted"
    for estimates in (weighted, fractional, by_cell):
        assert np.isnan(estimates.intervals.overall_low).all()
        assert np.isnan(estimates.intervals.per_class_high).all()


def test_spurious_predictions_are_no_items() -> None:
    estimates = Found(dense(GOOD, [0, 0, 0], [3, 0, 4]))
    assert estimates.class_reason("predicted_prevalence", 0) == "no_interval"
    assert estimates.of_class("precision")[:, 0] == pytest.approx(np.array(wilson(90, 106, Z)))
    for key in ("r_prime", "macro_r_prime", "weighted_r_prime", "macro_informedness", "accuracy"):
        assert np.isfinite(estimates.overall(key)).all(), key
    flooded = Found(dense(GOOD, [0, 0, 0], [3, 900, 4]))
    assert flooded.reason("r_prime") == flooded.class_reason("r_prime", 1) == "no_interval"
    assert np.isfinite(flooded.of_class("r_prime")[:, 0]).all()
    assert flooded.overall("accuracy") == pytest.approx(np.array(wilson(260, 300, Z)))


def test_unclassified_items_count_where_the_universe_is_all() -> None:
    estimates = Found(dense(GOOD, [10, 0, 5]))
    assert estimates.overall("coverage") == pytest.approx(np.array(wilson(300, 315, Z)))
    assert estimates.overall("accuracy_on_answered") == pytest.approx(np.array(wilson(260, 300, Z)))
    assert estimates.of_class("recall")[:, 0] == pytest.approx(np.array(wilson(90, 110, Z)))
    whole = Found(dense(GOOD))
    assert estimates.overall("kappa") == pytest.approx(whole.overall("kappa"), rel=1e-12)
    mixed = estimates.of_class("class_mcc")
    assert mixed == pytest.approx(whole.of_class("class_mcc"), rel=1e-12)


def test_what_is_faultless_has_intervals_with_its_value_at_an_end() -> None:
    estimates = Found(dense(np.diag([50, 20, 5, 2])))
    for key in ("accuracy", "kappa", "mcc", "weighted_f1", "micro_recall", "csi", "macro_f1"):
        low, high = estimates.overall(key)
        assert 0 < low < high == pytest.approx(1, abs=1e-15), key
    assert estimates.of_class("class_mcc")[1] == pytest.approx(np.ones(4))
    assert estimates.of_class("r_prime")[1] == pytest.approx(np.ones(4))
    single = Found(dense([[7, 3], [0, 0]]))
    for key in ("kappa", "mcc", "peirce_skill_score"):
        assert np.isnan(single.overall(key)).all(), key


def test_intervals_that_rest_on_few_items_are_marked() -> None:
    estimates = Found(dense([[90, 6, 1], [8, 85, 0], [1, 2, 4]]))
    low, place = estimates.intervals.per_class_low_reliability, estimates.place
    assert low[place["recall"]].tolist() == [False, False, True]
    assert low[place["precision"]].tolist() == [False, False, True]
    assert low[place["r_prime"]].tolist() == [False, False, True]
    assert low[place["jaccard"]].tolist() == [False, False, True]
    # One of the others' items is predicted as the third class, none more.
    assert low[place["specificity"]].tolist() == [False, False, True]
    overall = estimates.intervals.overall_low_reliability
    assert overall[estimates.overall_place["macro_recall"]]
    assert not overall[estimates.overall_place["accuracy"]]
    assert not overall[estimates.overall_place["macro_specificity"]]
    faultless = Found(dense(np.diag([500, 500]))).intervals
    assert faultless.overall_low_reliability[faultless.overall_methods.index("wilson")]
    assert faultless.per_class_low_reliability.any()
    assert not faultless.per_class_few_items.any()
    tiny = Found(dense([[3, 1], [0, 2]]))
    assert tiny.intervals.overall_low_reliability[tiny.overall_place["micro_specificity"]]


def test_few_classified_items_are_few_items() -> None:
    estimates = Found(dense([[4, 1], [1, 3]], [50, 60]))
    low = estimates.intervals.per_class_few_items
    assert low[estimates.place["class_mcc"]].all()
    assert not low[estimates.place["recall"]].any()
    assert estimates.intervals.overall_low_reliability[estimates.overall_place["kappa"]]


@st.composite
def tables(draw: st.DrawFn) -> ConfusionTable:
    """Draw tables of one to five classes with empty, tiny and large cells."""
    k = draw(st.integers(1, 5))
    cell = st.one_of(st.integers(0, 3), st.integers(0, 60), st.just(10**9))
    counts = draw(arrays(np.float64, (k, k), elements=cell))
    beside = draw(arrays(np.float64, (2, k), elements=st.sampled_from([0, 0, 0, 1, 7])))
    return dense(counts, beside[0], beside[1])


def check(estimates: Found) -> None:
    """What holds for all intervals: about the value, with a width, in range, or a reason."""
    values, bounds = estimates.values, estimates.intervals
    for entries, points, low, high, reasons, few, names in (
        (
            values.selection.computed,
            values.per_class,
            bounds.per_class_low,
            bounds.per_class_high,
            bounds.per_class_reasons,
            bounds.per_class_low_reliability,
            bounds.per_class_methods,
        ),
        (
            values.selection.overall,
            values.overall,
            bounds.overall_low,
            bounds.overall_high,
            bounds.overall_reasons,
            bounds.overall_low_reliability,
            bounds.overall_methods,
        ),
    ):
        exists = np.isfinite(low)
        assert (exists == ~np.isnan(high)).all()
        assert not (exists & ~np.isfinite(points) & ~(points == np.inf)).any()
        assert ((reasons == 0) == (exists | ~np.isfinite(points))).all()
        assert not (few & ~exists).any()
        ends = np.array([entry.range for entry in entries]).T
        lowest, highest = ends.reshape(2, -1, *(1,) * (low.ndim - 1))
        bounded = np.where(exists, points, np.nan)
        bounded = np.where(bounded == np.inf, high, bounded)
        # A difference of shares is rounded to 1e-16, however small it is; with 10^9 items of one
        # class and 3 of another, 1 less a sum of squares keeps 8 digits.
        slack = np.where(np.isinf(bounded), 0.0, 2e-8 * np.abs(bounded) + 1e-15)
        right = (low < high) & (low <= bounded + slack) & (bounded - slack <= high)
        right &= (low >= lowest - 1e-12) & (high <= highest + 1e-12)
        of_entries = (flags.reshape(len(entries), -1) for flags in (exists, right | ~exists))
        rows = zip(entries, names, *of_entries, points, low, high, strict=True)
        for entry, name, there, fine, *drawn in rows:
            assert fine.all(), (entry.key, *drawn, values.table)
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


@given(tables(), ASKED)
def test_intervals_enclose_their_value_or_say_why_there_is_none(
    table: ConfusionTable, options: dict[str, Any]
) -> None:
    check(Found(table, cost=np.ones((table.k, table.k + 1)), **options))


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
    # With spurious predictions in one of two tables.
    stack = dense([GOOD, GOOD], np.zeros((2, 3)), [[0, 0, 0], [3, 0, 1]])
    alone, all_of_them = (Found(stack, indices=(key,), **options), Found(stack, **options))
    for entry in alone.values.selection.overall:
        expected = all_of_them.overall(entry.key)
        np.testing.assert_allclose(alone.overall(entry.key), expected, rtol=1e-9)
    for entry in alone.values.selection.per_class:
        expected = all_of_them.of_class(entry.key)
        np.testing.assert_allclose(alone.of_class(entry.key), expected, rtol=1e-9)


def assert_same(bounds: Intervals, other: Intervals, place: Any = ...) -> None:
    for field in fields(bounds):
        left, right = getattr(bounds, field.name), getattr(other, field.name)
        if left is not None and not isinstance(left, tuple):
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


def test_groups_of_one_item_change_hardly_anything() -> None:
    n = int(OMITTING.sum())
    single = grouped(np.arange(n))
    once = Found(dense(OMITTING[:, :3], OMITTING[:, 3]))
    # Student's quantile takes the place of the normal one, and half a group more is added.
    for key in ("accuracy", "kappa", "mcc", "weighted_f1"):
        ratio = np.ptp(single.overall(key)) / np.ptp(once.overall(key))
        assert 1 < ratio < 1.06, key
    assert n > 200


@pytest.mark.parametrize("sampling", ["random", "fixed_rows"])
def test_twins_count_once(sampling: str) -> None:
    n = int(OMITTING.sum())
    twins = grouped(np.tile(np.arange(n), 2), times=2, sampling=sampling)
    once = grouped(np.arange(n), sampling=sampling)
    for key in once.overall_place:
        if once.reason(key):
            assert twins.reason(key) == once.reason(key)
        else:
            np.testing.assert_allclose(twins.overall(key), once.overall(key), rtol=0.02)
    for key in ("recall", "precision", "false_positive_rate"):
        np.testing.assert_allclose(twins.of_class(key), once.of_class(key), rtol=1e-4)


def student(groups: float) -> float:
    return float(stats.t.ppf(0.975, groups - 1))


def test_the_design_effect_is_the_ratio_of_grouped_to_ungrouped_variance() -> None:
    true, predicted = items_of(OMITTING)
    groups = RNG.integers(0, 40, len(true))
    estimates = grouped(groups)

    def about(right: Any, held: Any) -> tuple[float, float, float, Any]:
        """Return effective successes and trials, Student's quantile and half a group more."""
        share = right[held].mean()
        influence = np.where(held, right - share, 0.0)
        sums, sizes = (np.bincount(groups, part.astype(float)) for part in (influence, held))
        weights = sizes / sizes.sum()
        shrink = np.square(sums / (1 - weights)).sum() / np.square(influence).sum()
        number = np.square(sums).sum() ** 2 / (sums**4).sum()
        effective = 1 / np.square(weights).sum()
        t = student(max(1, min(2 * number - 1, effective - 1)) + 1)
        large = weights >= np.quantile(weights[weights > 0], 0.5, method="lower")
        rates = sums[large] / sizes[large]
        more = np.clip(5 / number, 0.5, 1) / effective * np.array([rates.min(), rates.max()])
        return right[held].sum() / shrink, held.sum() / shrink, t, more

    every = np.ones(len(true), dtype=bool)
    hits, n, t, more = about(true == predicted, every)
    expected = np.array(wilson(hits, n, t)) + more
    assert estimates.overall("accuracy") == pytest.approx(expected, rel=1e-9)
    hits, n, t, more = about(predicted == 0, true == 0)
    expected = np.array(wilson(hits, n, t)) + more
    assert estimates.of_class("recall")[:, 0] == pytest.approx(expected, rel=1e-9)
    level = 1 - 2 * float(stats.norm.sf(t))
    exact = grouped(groups, exact=True).of_class("recall")[:, 0]
    expected = np.array(clopper_pearson(hits, n, level)) + more
    assert exact == pytest.approx(expected, rel=1e-9)
    hits, n, t, more = about(true == 0, predicted == 0)
    expected = np.array(wilson(hits, n, t)) + more
    assert estimates.of_class("precision")[:, 0] == pytest.approx(expected, rel=1e-9)


def test_r_prime_and_informedness_have_the_design_effect_of_their_own() -> None:
    # Groups that differ in recall and in false positives alike: J varies more than either.
    true = np.tile([0, 1], 200)
    group = np.arange(400) // 20
    good = group % 2 == 0
    predicted = np.where(good | (np.arange(400) % 7 > 2), true, 1 - true)
    estimates = Found(ConfusionTable.dense(joint(true, predicted)), Items(true, predicted, group))
    balanced, informed = (
        estimates.of_class("class_balanced_accuracy"),
        estimates.of_class("informedness"),
    )
    np.testing.assert_allclose(balanced, (1 + informed) / 2, rtol=1e-12)
    influence = (
        np.where(true == 0, predicted == 0, 0) / 200 - np.where(true == 1, predicted == 0, 0) / 200
    )
    influence = influence - np.where(
        true == 0, influence[true == 0].mean(), influence[true == 1].mean()
    )
    grouped_variance = np.square(np.bincount(group, influence)).sum() * 20 / 19
    widths = np.ptp(informed, axis=0)[0]
    assert widths > 2 * student(20) * np.sqrt(grouped_variance) * 0.95


def joint(true: Any, predicted: Any) -> Any:
    return np.histogram2d(true, predicted, bins=(np.arange(3), np.arange(3)))[0]


def test_one_group_says_nothing_about_groups() -> None:
    estimates = grouped(np.zeros(int(OMITTING.sum()), dtype=int))
    for key in ("accuracy", "kappa", "macro_recall", "weighted_f1"):
        assert estimates.reason(key) == "no_interval", key
    for key in ("r_prime", "f1", "positive_likelihood_ratio", "negative_likelihood_ratio"):
        assert estimates.class_reason(key, 0) == "no_interval", key


def test_a_class_of_one_group_counts_as_one_item_in_averages() -> None:
    true = np.repeat([0, 1, 2], [100, 60, 5])
    items = Items(true, true, np.where(true == 2, 1000, np.arange(165) // 5))
    estimates, alone = (
        Found(dense(np.diag([100, 60, 5])), items),
        Found(dense(np.diag([100, 60, 5]))),
    )
    assert estimates.class_reason("recall", 2) == "no_interval"
    for key in ("macro_recall", "macro_precision", "geometric_mean_recall", "macro_informedness"):
        # Perhaps the other groups of this class are all predicted wrongly.
        assert estimates.overall(key)[0] < alone.overall(key)[0] - 0.05, key


def share_of_a_group(errors: int, groups: int) -> float:
    """How much of a group more the limits have if so many equal groups have one error each."""
    influences = np.arange(groups) < errors
    squares = (influences - influences.mean()) ** 2
    return float(np.clip(5 * sum(squares**2) / sum(squares) ** 2, 0.5, 1)) if errors else 0.5


def test_an_error_in_few_groups_does_not_narrow_the_interval() -> None:
    true = np.repeat([0, 1], 300)
    group = np.arange(600) // 30
    for errors in (0, 1, 4):
        predicted = true.copy()
        predicted[np.arange(errors) * 60] = 1
        estimates = Found(dense(joint(true, predicted)), Items(true, predicted, group))
        # 20 groups of 30 items, each of which counts as one item.
        n, some = 600 / 30, errors > 0
        # Half a group more, or a whole one, has the rate of the worst or of the best one.
        more = (
            np.array([errors / 600 - some / 30, errors / 600]) / 20 * share_of_a_group(errors, 20)
        )
        expected = np.array(wilson(n * (1 - errors / 600), n, student(20))) + more
        assert estimates.overall("accuracy") == pytest.approx(np.minimum(expected, 1), rel=1e-9)
        more = (
            np.array([errors / 300 - some / 30, errors / 300]) / 10 * share_of_a_group(errors, 10)
        )
        expected = np.array(wilson(10 * (1 - errors / 300), 10, student(10))) + more
        limits = estimates.of_class("recall")[:, 0]
        assert limits == pytest.approx(np.minimum(expected, 1), rel=1e-9), errors
    few = Found(dense(np.diag([300, 300])), Items(true, true, np.arange(600) // 120))
    assert few.intervals.overall_low_reliability[few.overall_place["accuracy"]]
    assert few.intervals.per_class_low_reliability[few.place["recall"]].all()


def weighted(weights: Any, **options: Any) -> Found:
    true, predicted = items_of(OMITTING)
    table = np.zeros((3, 4))
    np.add.at(table, (true, predicted), weights)
    counts = ConfusionTable.dense(table[:, :3], table[:, 3], weighted=True)
    return Found(counts, Items(true, predicted, weights=np.asarray(weights)), **options)


@pytest.mark.parametrize("sampling", ["random", "fixed_rows"])
def test_equal_weights_count_every_item_once(sampling: str) -> None:
    estimates = weighted(np.full(int(OMITTING.sum()), 0.125), sampling=sampling)
    once = Found(dense(OMITTING[:, :3], OMITTING[:, 3]), sampling=sampling)
    for key in once.overall_place:
        if key != "krippendorff_alpha":  # the one that changes with the scale
            np.testing.assert_allclose(estimates.overall(key), once.overall(key), rtol=1e-9)
    for key in once.place:
        np.testing.assert_allclose(estimates.of_class(key), once.of_class(key), rtol=1e-9)


def test_weights_have_no_unit() -> None:
    true = np.repeat([0, 1, 2], [40, 20, 5])
    weights = RNG.choice([0.5, 1.0, 2.0, 3.0], len(true))
    for predicted in (true, np.where(true == 2, 0, true)):
        by_unit = []
        for unit in (1.0, 7.0, 1e-3):
            counts = np.zeros((3, 3))
            np.add.at(counts, (true, predicted), weights * unit)
            table = ConfusionTable.dense(counts, weighted=True)
            by_unit.append(Found(table, Items(true, predicted, weights=weights * unit)))
        for key in by_unit[0].overall_place:
            if key != "krippendorff_alpha":  # it changes with the number of items
                for other in by_unit[1:]:
                    np.testing.assert_allclose(
                        other.overall(key), by_unit[0].overall(key), rtol=1e-6, err_msg=key
                    )
        for other in by_unit[1:]:
            np.testing.assert_allclose(
                other.of_class("class_mcc"), by_unit[0].of_class("class_mcc"), rtol=1e-6
            )


def test_a_lift_that_the_margins_fix_has_no_interval() -> None:
    assert Found(dense([[0, 1], [0, 2]])).class_reason("lift", 1) == "no_interval"


def test_what_replaces_an_infinite_value_has_no_interval() -> None:
    table = dense([[9, 1], [0, 10]])
    shown = Found(table).of_class("positive_likelihood_ratio")[:, 0]
    assert np.isfinite(shown[0])
    assert shown[1] == np.inf
    replaced = Found(table, undefined="one").of_class("positive_likelihood_ratio")[:, 0]
    assert np.isnan(replaced).all()


def test_weighted_shares_rest_on_the_smaller_effective_number() -> None:
    true, predicted = items_of(OMITTING)
    weights = RNG.gamma(1.0, size=len(true))
    estimates = weighted(weights)
    for key, members, hits in (
        ("accuracy", np.ones(len(true), dtype=bool), true == predicted),
        ("recall", true == 1, predicted == 1),
        ("precision", predicted == 1, true == 1),
    ):
        w, right = weights[members], hits[members]
        share = np.sum(w * right) / w.sum()
        kish = w.sum() ** 2 / np.sum(w**2)
        linearised = share * (1 - share) * w.sum() ** 2 / np.sum(w**2 * (right - share) ** 2)
        n = min(kish, linearised)
        limits = estimates.overall(key) if key == "accuracy" else estimates.of_class(key)[:, 1]
        assert limits == pytest.approx(np.array(wilson(share * n, n, Z)), rel=1e-9), key
        place, bounds = estimates.place.get(key, 0), estimates.intervals
        assert bounds.per_class_items is not None
        assert bounds.overall_items is not None
        items = bounds.overall_items[0] if key == "accuracy" else bounds.per_class_items[place, 1]
        assert items == pytest.approx(n), key
    assert estimates.intervals.kish == pytest.approx(weights.sum() ** 2 / np.sum(weights**2))
    # What only the margins and the influences know is no narrower than with Kish's number alone.
    for key in ("kappa", "mcc", "macro_f1", "csi"):
        assert np.isfinite(estimates.overall(key)).all(), key


def test_weighted_counts_without_their_items_stay_without_interval() -> None:
    estimates = Found(ConfusionTable.dense(np.array(GOOD), weighted=True))
    assert estimates.reason("kappa") == "weighted"
    true, predicted = items_of(OMITTING)
    both = Items(true, predicted, np.arange(len(true)) // 5, np.full(len(true), 2.0))
    table = ConfusionTable.dense(OMITTING[:, :3] * 2, OMITTING[:, 3] * 2, weighted=True)
    assert Found(table, both).reason("kappa") == "weighted"


COVERED = ("accuracy", "kappa", "mcc", "macro_recall", "macro_f1", "macro_r_prime", "weighted_f1")


def coverage(truth: Any, n: int, replicates: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Share of the intervals that contain the value of the whole population."""
    drawn = np.random.default_rng(5).multinomial(n, truth.ravel(), replicates)
    estimates = Found(ConfusionTable.dense(drawn.reshape(-1, *truth.shape).astype(float)))
    population = values_of(dense(truth))
    overall, per_class = {}, {}
    for key in COVERED:
        low, high = estimates.overall(key)
        value = population.overall[estimates.overall_place[key]]
        overall[key] = float(((low <= value) & (value <= high)).mean())
    for key in ("recall", "precision", "f1", "r_prime", "informedness", "class_mcc"):
        low, high = estimates.of_class(key)
        value = population.per_class[estimates.place[key]]
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


def test_grouped_items_have_no_p_value_of_independent_items() -> None:
    true, predicted = items_of(OMITTING)
    table = dense(OMITTING[:, :3], OMITTING[:, 3])
    for groups in (None, np.arange(len(true)) // 5):
        evaluation = evaluate(table, ("a", "b", "c"), CORE, Items(true, predicted, groups))
        p = evaluation.values.p_values["no_information_rate"]
        assert np.isnan(p) == (groups is not None)
        rendered = json.loads(render(evaluation, engine_version="1", input_digest="x"))
        shown = rendered["overall"]["no_information_rate"]["p_value"]
        assert shown == (None if groups is not None else float(p))


def test_smoothing_many_classes_stores_no_matrix_of_them() -> None:
    k, items = 5000, 20_000
    draw = np.random.default_rng(3)
    true = draw.integers(0, k, items)
    predicted = np.where(draw.random(items) < 0.9, true, draw.integers(0, k, items))
    table = ConfusionTable.sparse(true, predicted, np.ones(items), k)
    keys = ("kappa", "macro_f1", "weighted_kappa")
    values = values_of(table, indices=keys, kappa_weights="linear")
    tracemalloc.start()
    try:
        bounds = intervals(values)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    place = values.selection.overall_place
    for key in ("kappa", "macro_f1"):
        low, high = bounds.overall_low[place[key]], bounds.overall_high[place[key]]
        assert low < values.overall[place[key]] < high, key
    # It reads single cells, of which smoothing leaves none empty.
    assert 0 < values.overall[place["weighted_kappa"]] < 1
    assert REASONS[bounds.overall_reasons[place["weighted_kappa"]]] == "no_interval"
    assert peak < k * k * 8 / 4  # bytes of one matrix of float64, and no more than a quarter of it


def test_groups_without_an_answer_have_intervals_of_what_exists() -> None:
    true = np.array([0, 1] * 6)
    items = Items(true, np.full(12, 2), np.repeat(np.arange(4), 3))
    options = Options(indices=("accuracy", "kappa"))
    estimates = Estimates.of(counted(items, 2), options, select(options), items)
    low, high = estimates.intervals.overall_low[0], estimates.intervals.overall_high[0]
    assert (low, high > 0.5) == (0.0, True)
    assert np.isnan(estimates.intervals.overall_low[1])
