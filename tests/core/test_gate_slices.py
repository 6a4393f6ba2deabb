"""Rules that hold in each slice of the test set."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rprime.core.arrays import Array
from rprime.core.cells import DenseCells
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import compare
from rprime.core.gates.average import AverageOfSlices
from rprime.core.gates.candidate import GateCandidate, gather_evidence
from rprime.core.gates.lint import LintReport, lint
from rprime.core.gates.plan import plan_items
from rprime.core.gates.results import GateResult, Result
from rprime.core.gates.rules import Rule, RuleError
from rprime.core.gates.simulation import LintError
from rprime.core.multiplicity import holm
from rprime.core.options import Options
from rprime.core.slices.comparison import align_slices, compare_slices
from rprime.core.slices.slices import SliceColumn, Slices
from rprime.core.table import ConfusionTable
from tests.core.comparison_sides import names, side_of
from tests.core.gate_cases import drop, floor, gate_of, judged
from tests.simulation.test_gates import at_least

K, N = 3, 3000
TRUE = np.arange(N) % K
REGION = np.repeat([0, 1], N // 2)
REGIONS = ("EU", "US")


def predictions(wrong: Array) -> Array:
    """Predict right, except for the items that are wrong."""
    return np.where(wrong, (TRUE + 1) % K, TRUE)


OLD = predictions(np.arange(N) % 50 == 0)
WORSE = predictions((np.arange(N) % 50 == 0) | ((REGION == 1) & (np.arange(N) % 4 == 0)))


def sliced(side: Side, codes: Array = REGION, values: tuple[str, ...] = REGIONS) -> Side:
    """Add slices by one column of the items."""
    assert side.items is not None
    k = len(side.labels)
    cells = side.items.true.astype(np.intp) * (k + 1) + side.items.predicted
    columns = {"region": SliceColumn(values, codes.astype(np.uint8))}
    return replace(side, slices=Slices.of_items(columns, (), cells, k))


def tables(side: Side) -> Side:
    """Keep the tables of the slices alone."""
    assert side.slices is not None
    slices = replace(side.slices, columns={})
    return replace(side, items=None, fingerprint=None, test_set="t", slices=slices)


def single(gate_result: GateResult) -> list[Result]:
    """The results of single slices and classes, without averages."""
    return [result for result in gate_result.results if result.average_of is None]


def only(side: Side, inside: Array) -> Side:
    assert side.items is not None
    return side_of(side.items.true[inside], side.items.predicted[inside], K)


def test_each_slice_is_judged_as_its_items_alone() -> None:
    candidate, baseline = side_of(TRUE, WORSE, K), side_of(TRUE, OLD, K)
    rule = drop(0.05, index="accuracy", classes=None, slices="region")
    gate_result = judged(gate_of(rule), sliced(candidate), sliced(baseline))
    assert [result.slice for result in single(gate_result)] == [{"region": "EU"}, {"region": "US"}]
    assert [result.verdict for result in single(gate_result)] == ["pass", "fail"]
    assert gate_result.verdict == "fail"
    assert "accuracy.max_drop.region on slice region=US" in gate_result.message
    for code, result in enumerate(single(gate_result)):
        ours, theirs = (only(side, np.equal(REGION, code)) for side in (candidate, baseline))
        (alone,) = judged(gate_of(replace(rule, slices=None)), ours, theirs).results
        for member in ("observed", "baseline", "delta", "lower_limit", "upper_limit", "p_value"):
            assert getattr(result, member) == pytest.approx(getattr(alone, member), abs=1e-12)
        assert (result.pairing, result.n) == ("paired", N // 2)


@pytest.mark.parametrize("index", ["accuracy", "macro_f1", "mcc", "kappa", "weighted_precision"])
def test_the_stack_of_slices_has_the_evidence_of_each_alone(index: str) -> None:
    random, codes = np.random.default_rng(5), np.arange(600) % 20
    true, *guesses = random.integers(0, K, (3, 600))
    ours, theirs = (np.where(random.random(600) < 0.8, true, guess) for guess in guesses)
    values = tuple(str(code) for code in range(20))
    candidate, baseline = (sliced(side_of(true, p, K), codes, values) for p in (ours, theirs))
    options = Options(indices=(index,))
    whole = compare(candidate, baseline, options)
    parts = [(("region", value),) for value in values]
    stack = align_slices(whole, parts, options)
    assert stack is not None
    together = stack.of_overall(index)
    for i, alone in enumerate(compare_slices(whole, parts, options)):
        assert alone is not None
        difference = alone.of_overall(index)
        np.testing.assert_allclose(together.numbers[:, i], difference.numbers, rtol=1e-12)
        np.testing.assert_array_equal(together.codes[:, i], difference.codes)
        guards = (
            np.maximum(*(side.overall_guard for side in of_sides.gradients))
            for of_sides in (stack, alone.aligned)
        )
        here, there = (guard[..., i] if guard.ndim > 1 else guard for guard in guards)
        np.testing.assert_allclose(here, there, rtol=1e-12)


def test_a_rule_about_slices_compares_none_of_them_alone() -> None:
    candidate, baseline = (sliced(side_of(TRUE, part, K)) for part in (WORSE, OLD))
    gate = gate_of(drop(0.05, index="accuracy", classes=None, slices="region"))
    options = Options(indices=gate.indices)
    whole = compare(candidate, baseline, options)
    side = GateCandidate(candidate, {"baseline": whole}, options, gate.indices)
    evidence = gather_evidence(gate, side, 0.05)
    assert [result.slice for result in evidence[:2]] == [(("region", name),) for name in REGIONS]
    assert side.stack(gate.rules[0], "baseline", [part.slice or () for part in evidence[:2]])
    assert {part.statistic.source for part in evidence[:2]} == {None}
    assert "_sliced" not in vars(side)


def test_items_without_a_prediction_leave_each_slice_a_comparison() -> None:
    silent = np.where(np.arange(N) % 7 == 0, K, WORSE)
    candidate, baseline = (sliced(side_of(TRUE, part, K)) for part in (silent, OLD))
    whole = compare(candidate, baseline, Options())
    assert align_slices(whole, [(("region", "EU"),)], Options(indices=("accuracy",))) is None


def test_a_gap_is_judged_where_one_slice_alone_has_items_without_a_prediction() -> None:
    silent = np.where((np.arange(N) % 7 == 0) & (REGION == 1), K, OLD)
    rule = drop(0.3, index="accuracy", classes=None, slices="region", kind="max_gap")
    (result,) = judged(gate_of(rule), sliced(side_of(TRUE, silent, K)), None, Options()).results
    rates = [(silent == TRUE)[code == REGION].mean() for code in (0, 1)]
    assert result.verdict == "pass"
    assert result.observed == pytest.approx(rates[0] - rates[1])


def test_slices_and_classes_are_one_family() -> None:
    ours, theirs = (sliced(side_of(TRUE, codes, K)) for codes in (WORSE, OLD))
    gate_result = judged(gate_of(drop(0.05, slices="all"), floor(0.5)), ours, theirs)
    assert [(r.class_, r.slice) for r in single(gate_result)[:-1]] == [
        (label, {"region": region}) for region in REGIONS for label in names(K)
    ]
    p = [result.p_value for result in single(gate_result)]
    assert [r.p_adjusted for r in single(gate_result)] == pytest.approx(holm(np.array(p, float)))


def test_a_slice_that_the_candidate_lacks_is_never_passed() -> None:
    half = side_of(TRUE[REGION == 0], OLD[REGION == 0], K)
    sides = sliced(half, REGION[REGION == 0], ("EU",)), sliced(side_of(TRUE, OLD, K))
    for ours, theirs, reason in (
        (*sides, "slice_missing"),
        (*sides[::-1], "slice_missing_in_baseline"),
    ):
        candidate, other = (replace(tables(side), test_set=None) for side in (ours, theirs))
        gate_result = judged(gate_of(drop(slices=("region",))), candidate, other)
        lost = [result for result in gate_result.results if result.slice == {"region": "US"}]
        assert [(r.verdict, r.reason) for r in lost] == [("not_comparable", reason)]
        assert gate_result.verdict == "fail"
        assert "on slice region=US cannot be compared" in lost[0].message


@pytest.mark.parametrize("rule", [drop(slices="device"), floor(0.5, slices=("device", "region"))])
def test_a_column_that_is_not_there_is_not_comparable(rule: Rule) -> None:
    side = sliced(side_of(TRUE, OLD, K))
    gate_result = judged(rule, side, side)
    assert [r.reason for r in gate_result.results if r.slice is None] == ["slice_missing"]
    assert gate_result.verdict == "fail"
    plain = replace(side, slices=None)
    bare = judged(gate_of(drop(slices="all")), plain, plain)
    assert [r.reason for r in bare.results] == ["slice_missing"]


def test_a_missing_column_names_the_nearest_one() -> None:
    side = sliced(side_of(TRUE, OLD, K))
    (lost,) = judged(gate_of(drop(slices="regoin")), side, side).results
    assert lost.message.endswith("There is no column `regoin`: did you mean `region`?")
    (bare,) = judged(gate_of(drop(slices="all")), replace(side, slices=None), side).results[:1]
    assert bare.verdict == "not_comparable"


def test_a_baseline_without_slices_is_never_passed() -> None:
    baseline = replace(side_of(TRUE, OLD, K), items=None, fingerprint=None)
    gate_result = judged(gate_of(drop(slices="all")), sliced(side_of(TRUE, OLD, K)), baseline)
    assert {(r.verdict, r.reason) for r in gate_result.results} == {
        ("not_comparable", "slices_missing_in_baseline")
    }
    assert gate_result.verdict == "fail"
    assert not gate_result.judged
    assert "the store does not keep" in gate_result.results[0].message


def test_a_class_without_items_in_a_slice_is_left_out_there() -> None:
    codes = np.where((TRUE == 2) | (np.arange(N) % 2 == 0), 0, 1)
    side = sliced(side_of(TRUE, OLD, K), codes)
    results = judged(gate_of(drop(slices="all")), side, side).results
    assert [(r.class_, r.slice) for r in results if r.slice == {"region": "US"}] == [
        ("0", {"region": "US"}),
        ("1", {"region": "US"}),
    ]
    named = judged(gate_of(drop(slices="all", classes=("2",))), side, side)
    assert [(r.verdict, r.reason) for r in named.results] == [
        ("pass", "within_limit"),
        ("not_comparable", "no_items"),
    ]


def test_slices_known_as_tables_are_compared_unpaired() -> None:
    ours, theirs = (tables(sliced(side_of(TRUE, codes, K))) for codes in (WORSE, OLD))
    gate_result = judged(
        gate_of(drop(slices="region", index="accuracy", classes=None)), ours, theirs
    )
    assert [r.verdict for r in single(gate_result)] == ["pass", "fail"]
    assert {r.pairing for r in gate_result.results} == {"unpaired"}


def test_a_bound_on_the_value_holds_in_each_slice() -> None:
    side = sliced(side_of(TRUE, WORSE, K))
    gate_result = judged(gate_of(floor(0.9, slices="all")), side, None)
    assert [r.verdict for r in single(gate_result)] == ["pass", "fail"]
    assert gate_result.results[1].observed == pytest.approx(
        np.mean(WORSE[REGION == 1] == TRUE[REGION == 1])
    )
    assert gate_result.results[1].message.startswith("accuracy on slice region=US is ")


def test_items_that_both_sides_share_keep_their_slices() -> None:
    ids = np.arange(N, dtype=np.uint64)
    sides = []
    for codes, kept in ((WORSE, slice(60, None)), (OLD, slice(0, -60))):
        side = side_of(TRUE[kept], codes[kept], K)
        assert side.items is not None
        side = replace(side, items=replace(side.items, ids=ids[kept]), fingerprint=str(kept))
        sides.append(sliced(side, REGION[kept]))
    rule = drop(index="accuracy", classes=None, slices="region")
    gate_result = judged(gate_of(rule), sides[0], sides[1])
    assert [r.n for r in single(gate_result)] == [N // 2 - 60] * 2
    assert [r.verdict for r in single(gate_result)] == ["pass", "fail"]


# Lint and plan


def even(slices: int, items: int, k: int = 3, accuracy: float = 0.9) -> Side:
    """Return a model with as many items in each class of each slice, and its errors spread."""
    class_items = items // k
    wrong = round(class_items * (1 - accuracy))
    table = np.diag(np.full(k, class_items - wrong)) + np.roll(
        np.diag(np.full(k, wrong)), 1, axis=1
    )
    counts = np.repeat(table[None].astype(np.float64), slices, axis=0)
    slice_tables = Slices(
        tuple({"region": str(i)} for i in range(slices)), ConfusionTable.dense(counts)
    )
    return Side(labels=names(k), table=ConfusionTable.dense(counts.sum(0)), slices=slice_tables)


def linted(rule: Rule, side: Side, **fields: Any) -> LintReport:
    return lint(gate_of(rule), side, **fields)


def test_a_slice_that_is_the_whole_test_set_is_linted_like_it() -> None:
    rule = drop(0.05, index="accuracy", classes=None)
    (plain,) = linted(rule, even(1, 300)).rules
    (part,) = linted(replace(rule, slices="region"), even(1, 300)).rules
    assert (plain.slice, part.slice, part.items) == (None, {"region": "0"}, 300)
    assert part.detectable_drop == pytest.approx(plain.detectable_drop)
    assert abs(part.inconclusive_rate - plain.inconclusive_rate) < 0.05


def test_lint_and_plan_name_the_slices_that_are_too_small() -> None:
    side = even(3, 600)
    small = side.slices
    assert small is not None
    cells = small.tables.cells
    assert isinstance(cells, DenseCells)
    counts = cells.counts * np.array([1, 1, 0.1])[:, None, None]
    part = replace(small, tables=ConfusionTable.dense(counts))
    side = replace(side, slices=part, table=ConfusionTable.dense(counts.sum(0)))
    rule = drop(0.05, index="accuracy", classes=None, slices="all")
    report = linted(rule, side)
    assert [r.items for r in report.rules if r.average_of is None] == [600, 600, 60]
    assert any(text.startswith("Slice `region=2` has 60 items: ") for text in report.advice)
    plan = plan_items(gate_of(rule), side)
    assert [slice_plan.slice for slice_plan in plan.slices] == [
        {"region": str(i)} for i in range(3)
    ]
    lacking = [
        slice_plan.slice["region"]
        for slice_plan in plan.slices
        if (slice_plan.needed or 0) > slice_plan.items
    ]
    assert lacking == ["2"]
    assert any(text.startswith("Slice `region=2` has 60 items and needs") for text in plan.advice)


@pytest.mark.parametrize("column", ["regoin", "all"])
def test_lint_and_plan_need_the_slices(column: str) -> None:
    rule, side = drop(index="accuracy", classes=None, slices=column), even(2, 60)
    lacking = replace(side, slices=None) if column == "all" else side
    with pytest.raises(LintError, match="no slices" if column == "all" else "`region`") as caught:
        linted(rule, lacking)
    assert caught.value.place == ("gates", "rules", 0, "slices")
    with pytest.raises(LintError):
        plan_items(gate_of(rule), lacking)


def test_the_drop_of_a_gap_is_said_to_be_one_of_the_worst_slice() -> None:
    rule = drop(0.15, index="accuracy", classes=None, slices="region", kind="max_gap")
    advice = linted(rule, even(2, 300)).advice, plan_items(gate_of(rule), even(2, 300)).advice
    for sentences in advice:
        assert any("the slice that is worst now" in text for text in sentences)


RULES = (
    drop(0.05, index="accuracy", classes=None, slices="region"),
    drop(0.15, index="accuracy", classes=None, slices="region", kind="max_gap"),
    drop(0.8, index="accuracy", classes=None, slices="region", kind="min_value"),
)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
@pytest.mark.parametrize(("slices", "rounds"), [(3, 12), (20, 150)])
def test_the_planned_items_of_slices_suffice(rule: Rule, slices: int, rounds: int) -> None:
    k, d = 3, {"max_drop": 0.1, "max_gap": 0.3, "min_value": 0.2}[rule.kind]
    plan = plan_items(gate_of(rule), even(slices, 600), drop=d)
    n = max(slice_plan.needed or 0 for slice_plan in plan.slices)
    random, passed, detected = np.random.default_rng(2), 0, 0
    regions = np.repeat(np.arange(slices), n)
    for lost in [False, True] * rounds:
        true = random.integers(k, size=n * slices)
        wrong, again = random.random((2, n * slices)) < 0.1
        old = np.where(wrong, (true + 1) % k, true)
        anew = random.random(n * slices) < 0.06 / 0.18  # a discordance of .06
        new = np.where(anew, np.where(again, (true + 1) % k, true), old)
        fallen = (regions == 0) & (new == true) & (random.random(n * slices) < lost * d / 0.9)
        new = np.where(fallen, (true + 1) % k, new)
        values = tuple(map(str, range(slices)))
        ours, theirs = (sliced(side_of(true, part, k), regions, values) for part in (new, old))
        verdict = judged(gate_of(rule), ours, theirs).verdict
        passed += not lost and verdict == "pass"
        detected += lost and verdict == "fail"
    assert at_least(passed, rounds, 0.9)
    assert at_least(detected, rounds, 0.8)


# The largest difference between slices


def gap(limit: float, **fields: Any) -> Rule:
    defaults = {"index": "accuracy", "kind": "max_gap", "slices": "region", "classes": None}
    return drop(limit, **defaults | fields)


def test_the_gap_of_two_slices_is_newcombes_interval_of_their_difference() -> None:
    side = sliced(side_of(TRUE, WORSE, K))
    gate_result = judged(gate_of(gap(0.05), gap(0.4, id="wide")), side)
    (narrow, wide) = gate_result.results
    right = [int((WORSE == TRUE)[code == REGION].sum()) for code in (0, 1)]
    n, z = N // 2, 1.959963984540054  # the lower limit at .05 / 2, for two ordered pairs
    shares = np.array(right) / n
    centre = (shares + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(shares * (1 - shares) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    low, high = centre - half, centre + half
    difference = shares[0] - shares[1]
    expected = difference - np.hypot(shares[0] - low[0], high[1] - shares[1])
    assert narrow.observed == pytest.approx(difference)
    assert narrow.lower_limit == pytest.approx(expected)
    assert (narrow.verdict, wide.verdict, gate_result.verdict) == ("fail", "pass", "fail")
    assert narrow.message.startswith(
        "the largest difference of accuracy between the slices of region is "
    )
    assert narrow.p_value is not None
    assert narrow.p_value < 1e-6


def test_the_p_value_of_a_gap_is_hardly_above_the_level_of_its_limit() -> None:
    side = sliced(side_of(TRUE, WORSE, K))
    limit = judged(gate_of(gap(0.2)), side).results[0].lower_limit
    assert limit is not None
    at_limit = judged(gate_of(gap(limit)), side).results[0]
    assert at_limit.p_value is not None
    assert 0.0499 < at_limit.p_value < 0.15  # the exact tail is a little more cautious


@pytest.mark.slow
def test_gaps_of_equal_slices_are_hardly_ever_found() -> None:
    random, fails, passes = np.random.default_rng(4), 0, 0
    for _ in range(200):
        wrong = random.random(N) < 0.1
        codes = random.integers(0, 6, N)
        side = sliced(side_of(TRUE, predictions(wrong), K), codes, tuple("abcdef"))
        (result,) = judged(gate_of(gap(0.02)), side).results
        fails += result.verdict == "fail"
        (result,) = judged(gate_of(gap(0.15)), side).results
        passes += result.verdict == "pass"
    assert fails <= 4
    assert passes >= 190


def test_a_gap_of_classes_has_a_result_for_each() -> None:
    gate_result = judged(
        gate_of(gap(0.05, index="recall", classes="all")), sliced(side_of(TRUE, WORSE, K))
    )
    assert [(r.class_, r.verdict) for r in gate_result.results] == [(c, "fail") for c in names(K)]


def test_a_gap_needs_two_slices_and_one_column() -> None:
    (result,) = judged(gate_of(gap(0.05)), sliced(side_of(TRUE, OLD, K), 0 * REGION)).results
    assert (result.verdict, result.reason) == ("undefined", "fewer_than_two_slices")
    for rule in (gap(0.05, slices="all"), gap(0.05, slices=None), gap(0.05, slices=("a", "b"))):
        with pytest.raises(RuleError, match="one column"):
            judged(gate_of(rule), sliced(side_of(TRUE, OLD, K)))
    with pytest.raises(RuleError, match="above 0"):
        judged(gate_of(gap(0.0)), sliced(side_of(TRUE, OLD, K)))
    (lost,) = judged(gate_of(gap(0.05)), side_of(TRUE, OLD, K)).results
    assert (lost.verdict, lost.reason) == ("not_comparable", "slice_missing")


@pytest.mark.parametrize("key", ["macro_recall", "geometric_mean_recall"])
def test_the_gap_of_an_average_is_over_the_classes_that_all_slices_have(key: str) -> None:
    region = np.where(TRUE == 2, 1, REGION)  # the first slice lacks class 2, which is half wrong
    wrong = (np.arange(N) % 20 == 0) | ((TRUE == 2) & (np.arange(N) % 2 == 0))
    side = sliced(side_of(TRUE, predictions(wrong), K), region)
    rule = gap(0.05, index=key)
    gate_result = judged(gate_of(rule), side)
    (result,) = gate_result.results
    assert result.observed == pytest.approx(0.0, abs=0.02)
    assert result.verdict == "pass"
    (warning,) = (w for w in gate_result.warnings if w.code == "classes_left_out")
    assert warning.detail.endswith("which do not have items in every slice: class `2`.")
    assert side.slices is not None
    simulated = lint(gate_of(rule), side, replicates=100)
    assert simulated.false_fail_rate == 0
    assert simulated.rules[0].detectable_drop == pytest.approx(result.min_detectable_drop, rel=0.2)


def test_slices_without_a_common_class_have_no_gap_of_an_average() -> None:
    side = sliced(side_of(TRUE, WORSE, K), (TRUE == 2).astype(np.uint8))
    (result,) = judged(gate_of(gap(0.05, index="macro_recall")), side).results
    assert (result.verdict, result.reason) == ("not_comparable", "no_class")


def test_classes_with_few_items_in_one_slice_leave_the_gap_of_an_average() -> None:
    region = np.where((TRUE == 2) & (np.arange(N) > 30), 1, REGION)
    side = sliced(side_of(TRUE, predictions((TRUE == 2) & (np.arange(N) < 30)), K), region)
    (whole,) = judged(gate_of(gap(0.05, index="macro_recall")), side).results
    assert whole.observed is not None
    assert whole.observed > 0.3
    (kept,) = judged(gate_of(gap(0.05, index="macro_recall", min_items=30)), side).results
    assert (kept.verdict, kept.observed) == ("pass", 0.0)


def test_an_undecided_gap_has_too_few_items() -> None:
    (result,) = judged(gate_of(gap(0.23)), sliced(side_of(TRUE, WORSE, K))).results
    assert result.upper_limit is not None
    assert (result.verdict, result.reason) == ("undecided", "not_enough_items")


def test_an_average_over_slices_has_the_variances_of_all_and_the_largest_guard_once() -> None:
    random, means = np.random.default_rng(4), []
    for items in (120, 300):
        true = random.integers(0, 3, items)
        sides = (np.where(random.random(items) < 0.9, true, (true + 1) % 3) for _ in range(2))
        candidate, baseline = (side_of(true, codes, 3) for codes in sides)
        options = Options(indices=("macro_f1",))
        means.append(compare(candidate, baseline, options).of_overall("macro_f1")[None])
    shares = np.array([0.5, 0.5])
    average = AverageOfSlices.of(means, shares)
    guards = [mean.guard[0] for mean in means]
    assert all(guard > 0 for guard in guards)
    variances = [
        mean.standard_error[0] ** 2 - guard for mean, guard in zip(means, guards, strict=True)
    ]
    assert average.error[0] ** 2 == pytest.approx((sum(variances) + max(guards)) / 4)
    cubes = sum(mean.skewness[0] * mean.standard_error[0] ** 3 for mean in means)
    assert average.skewness[0] * average.error[0] ** 3 == pytest.approx(cubes / 8)
