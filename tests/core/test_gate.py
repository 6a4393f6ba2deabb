"""Gates: what each verdict means, and that nothing which was not seen can pass."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rprime.core.comparison.alignment import Side
from rprime.core.gates.gate import run_gate
from rprime.core.gates.result import GateResult, Result
from rprime.core.gates.rules import Effect, Gate, Rule, RuleError, Waiver, check_gate, mistakes
from rprime.core.gates.sentences import number
from rprime.core.items import Items
from rprime.core.options import Options
from tests.core.comparison_sides import JOINT, PAIRED, paper_side, side_of, sides_of
from tests.core.gate_cases import TODAY, compared, drop, floor, gate_of, judged, tabled, waiver

TABLES = {name: case for name, case in PAIRED.items() if "gain" in case}


def paired(gains: int, losses: int, right: int, wrong: int) -> tuple[Side, Side]:
    """Candidate and baseline: class 0 as given, class 1 with 60 items and never wrong."""
    joint = np.zeros((2, 3, 3), dtype=int)
    joint[0, :2, :2] = [[right, losses], [gains, wrong]]
    joint[1, 1, 1] = 60
    return sides_of(joint)


def one(result: GateResult) -> Result:
    assert len(result.results) == 1
    return result.results[0]


def verdicts(result: GateResult) -> list[str]:
    return [r.verdict for r in result.results]


def dropped(share: float, items: int = 1000) -> tuple[Side, Side]:
    """Candidate that lost a share of class 0, on the items of its baseline."""
    lost = round(share * items)
    return paired(0, lost, items - lost, 0)


# Verdicts


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("margin", ["0.01", "0.02", "0.05", "0.1"])
def test_reference_outcomes_are_reproduced(name: str, margin: str) -> None:
    case = TABLES[name]
    sides = paired(case["gain"], case["loss"], case["both_right"], case["both_wrong"])
    result = one(judged(drop(float(margin), classes=("0",)), *sides))
    expected = case["ni"][margin]
    assert result.verdict == expected["outcome_alpha05"]
    assert result.p_value == pytest.approx(expected["p_fail"], rel=1e-9)
    assert result.interval == pytest.approx(case["tango_ci90"], abs=1e-6)
    assert (result.method, result.pairing, result.n) == ("tango", "paired", case["n"])


def test_reference_joint_table_is_judged_and_adjusted() -> None:
    result = judged(drop(), *sides_of(JOINT["joint_truth_old_new"]))
    assert [r.p_value for r in result.results] == pytest.approx(
        [case["p_fail"] for case in JOINT["per_class"]], rel=1e-9
    )
    assert [r.p_adjusted for r in result.results] == JOINT["holm_p_fail"]
    assert verdicts(result) == ["pass", "pass", "inconclusive"]
    assert result.verdict == "pass"


@pytest.mark.parametrize(
    ("dataset", "fallen"),
    [("table7_mnist", "0 4 6 8"), ("table8_cifar10", "cat deer dog horse")],
)
def test_the_paper_is_told_by_its_tables(dataset: str, fallen: str) -> None:
    before, after = (paper_side(f"{dataset}_{which}") for which in ("before", "after"))
    rule = drop(index="r_prime")
    worse, better = judged(rule, before, after), judged(rule, after, before)
    assert [r.class_ for r in worse.results if r.verdict == "fail"] == fallen.split()
    assert worse.verdict == "fail"
    assert set(verdicts(better)) == {"pass"}
    assert better.verdict == "pass"
    assert {r.pairing for r in worse.results} == {"unpaired"}


def test_a_drop_is_told_with_its_numbers() -> None:
    result = judged(drop(classes=("0",)), *dropped(0.1))
    assert one(result).message == (
        "recall of class `0` dropped by 0.1 (95 % one-sided limits -0.1167 to -0.0855), "
        "more than the 0.05 allowed."
    )
    assert (one(result).verdict, one(result).effect, result.verdict) == ("fail", "fail", "fail")


def test_too_few_items_are_inconclusive_and_say_what_they_could_see() -> None:
    result = one(judged(drop(classes=("0",)), *paired(1, 2, 35, 3)))
    assert (result.verdict, result.effect, result.reason) == (
        "inconclusive",
        "warn",
        "not_enough_items",
    )
    assert result.min_detectable_drop is not None
    assert result.min_detectable_drop > 0.05
    assert "41 items are too few" in result.message


def test_underpowered_rules_are_warned_of_once() -> None:
    result = judged(drop(0.02), *paired(1, 2, 35, 3))
    (warning,) = result.warnings
    assert (warning.code, warning.pointer) == (
        "underpowered",
        "/gate/results/0/min_detectable_drop",
    )
    assert (
        judged(drop(), *dropped(0.0, 4000))
        .warnings[0]
        .detail.startswith(
            "Rule recall.max_drop allows 0.05, but its items show only larger changes for 1 of 2"
        )
    )


def test_tiny_numbers_are_not_told_as_nothing() -> None:
    assert [number(x) for x in (0.0, -0.00001, 0.12345678, 2e7, -0.5)] == [
        "0",
        "-1e-05",
        "0.1235",
        "2e+07",
        "-0.5",
    ]


def test_a_gain_is_limited_for_what_should_be_low() -> None:
    candidate, baseline = dropped(0.1)
    rule = Rule(index="error_rate", kind="max_gain", limit=0.02)
    assert one(judged(rule, candidate, baseline)).verdict == "fail"
    assert one(judged(rule, baseline, candidate)).verdict == "pass"
    assert "rose by" in one(judged(rule, candidate, baseline)).message


@pytest.mark.parametrize(
    ("kind", "limit", "verdict"),
    [
        ("min_value", 0.8, "pass"),
        ("min_value", 0.905, "inconclusive"),
        ("min_value", 0.97, "fail"),
        ("max_value", 0.97, "pass"),
        ("max_value", 0.895, "inconclusive"),
        ("max_value", 0.8, "fail"),
    ],
)
def test_floors_and_ceilings_use_the_limits_of_the_value(
    kind: str, limit: float, verdict: str
) -> None:
    table = tabled([[450, 50], [50, 450]])
    result = one(judged(floor(limit, kind=kind), table))
    assert result.verdict == verdict
    assert result.interval is not None
    low, high = result.interval
    assert (low > limit, high < limit) == {
        ("min_value", "pass"): (True, False),
        ("min_value", "fail"): (False, True),
        ("max_value", "pass"): (False, True),
        ("max_value", "fail"): (True, False),
    }.get((kind, verdict), (False, False))


@pytest.mark.parametrize(
    ("index", "classes"),
    [
        ("recall", "all"),
        ("f1", "all"),
        ("jaccard", "all"),
        ("r_prime", "all"),
        ("class_mcc", "all"),
        ("positive_likelihood_ratio", "all"),
        ("r", "all"),
        ("accuracy", None),
        ("kappa", None),
        ("macro_f1", None),
        ("balanced_accuracy", None),
    ],
)
@pytest.mark.parametrize("exact", [False, True])
def test_p_is_the_smallest_level_at_which_a_floor_fails(
    index: str, classes: Literal["all"] | None, *, exact: bool
) -> None:
    table = tabled([[45, 6, 4], [5, 36, 9], [8, 7, 50]])
    options = Options(exact=exact)
    for level in (0.2, 0.05, 0.003):
        rule = Rule(index=index, classes=classes, kind="min_value", limit=0.5)
        at_level = judged(Gate(rules=(rule,), alpha=level), table, None, options)
        for place, result in enumerate(at_level.results):
            assert result.interval is not None
            again = judged(replace(rule, limit=result.interval[1]), table, None, options)
            assert again.results[place].p_value == pytest.approx(level, rel=1e-3)


def test_point_values_are_compared_without_a_test_where_asked() -> None:
    candidate, baseline = paired(0, 1, 12, 0)
    result = one(judged(drop(test="none", classes=("0",)), candidate, baseline))
    assert (result.verdict, result.method, result.interval) == ("fail", "point", None)
    assert result.p_adjusted is None
    assert "without a test" in result.message
    assert (
        one(judged(drop(0.1, test="none", classes=("0",)), candidate, baseline)).verdict == "pass"
    )


def test_a_point_value_on_the_limit_keeps_it_in_spite_of_rounding() -> None:
    candidate, baseline = paired(0, 5, 85, 10)  # .9 - .85 is above .05 in binary
    result = one(judged(drop(0.05, test="none", classes=("0",)), candidate, baseline))
    assert result.delta is not None
    assert result.delta < -0.05
    assert result.verdict == "pass"


# Many results at once


def worsened(losses: list[int], items: int = 200) -> tuple[Side, Side]:
    """Candidate that lost so many items of each class."""
    k = len(losses)
    joint = np.zeros((k, k + 1, k + 1), dtype=int)
    for i, lost in enumerate(losses):
        joint[i, i, i] = items - lost
        joint[i, i, (i + 1) % k] = lost
    return sides_of(joint)


def test_a_fail_must_stand_out_from_all_results_together() -> None:
    alone = judged(drop(classes=("0",)), *worsened([17] + 9 * [0]))
    together = judged(drop(), *worsened([17] + 9 * [0]))
    assert one(alone).verdict == "fail"
    first = together.results[0]
    assert (first.verdict, first.reason) == ("inconclusive", "not_significant_together")
    assert first.p_value == one(alone).p_value
    assert first.p_adjusted == pytest.approx(10 * (first.p_value or 0))
    assert "among 10 results tested together" in first.message


def test_results_that_cannot_fail_do_not_weaken_the_others() -> None:
    rules = (drop(classes=("0",)), drop(id="points", test="none"), drop(id="gone", classes=("x",)))
    result = judged(Gate(rules=rules), *worsened([17] + 9 * [0]))
    assert result.results[0].p_adjusted == result.results[0].p_value


def test_the_level_is_spent_over_looks_where_asked() -> None:
    sides = worsened([18, 0])
    gate = Gate(rules=(drop(classes=("0",)),), looks="spend")
    assert judged(gate, *sides).alpha == pytest.approx(0.0303963551)
    late = judged(gate, *sides, look=5)
    assert late.alpha == pytest.approx(0.0012158542)
    assert (one(judged(gate, *sides)).verdict, one(late).verdict) == ("fail", "inconclusive")
    assert judged(replace(gate, looks="ignore"), *sides, look=5).alpha == 0.05
    with pytest.raises(ValueError, match="counted from 1"):
        gate.level(0)


# Failing closed


def test_a_gate_without_rules_never_passes() -> None:
    result = judged(Gate(), *dropped(0.0))
    assert (result.verdict, result.results) == ("no_rules", ())


@pytest.mark.parametrize("rule", [drop(), drop(index="accuracy", classes=None)])
def test_without_a_baseline_nothing_passes(rule: Rule) -> None:
    result = judged(rule, dropped(0.0)[0])
    assert {(r.verdict, r.effect, r.reason) for r in result.results} == {
        ("no_baseline", "warn", "no_baseline")
    }
    assert result.verdict == "inconclusive"
    assert result.results[0].observed == 1.0
    strict = Gate(rules=(rule,), on={"no_baseline": "fail"})
    assert judged(strict, dropped(0.0)[0]).verdict == "fail"


def test_a_class_on_one_side_only_is_not_comparable() -> None:
    baseline = tabled([[950, 50], [5, 95]])
    renamed = replace(baseline, labels=("0", "new"))
    result = judged(drop(), renamed, baseline)
    assert [(r.class_, r.verdict, r.reason) for r in result.results] == [
        ("0", "pass", "within_limit"),
        ("new", "not_comparable", "class_missing_in_baseline"),
        ("1", "not_comparable", "class_missing"),
    ]
    assert result.verdict == "fail"
    lenient = Gate(rules=(drop(),), on={"not_comparable": "warn"})
    assert judged(lenient, renamed, baseline).verdict == "inconclusive"


@pytest.mark.parametrize("rule", [drop(classes=("x",)), floor(0.5, index="recall", classes=("x",))])
@pytest.mark.parametrize("with_baseline", [True, False])
def test_a_class_that_nobody_has_is_not_comparable(rule: Rule, *, with_baseline: bool) -> None:
    candidate, baseline = dropped(0.0)
    result = judged(rule, candidate, baseline if with_baseline else None)
    assert (one(result).verdict, one(result).reason) == ("not_comparable", "class_missing")
    assert result.verdict == "fail"


def test_sides_without_a_common_class_are_not_comparable() -> None:
    candidate, baseline = dropped(0.0)
    result = judged(drop(), replace(candidate, labels=("x", "y")), baseline)
    assert [(r.class_, r.reason) for r in result.results] == [
        *(("x", "class_missing_in_baseline"), ("y", "class_missing_in_baseline")),
        *(("0", "class_missing"), ("1", "class_missing")),
    ]
    assert {r.verdict for r in result.results} == {"not_comparable"}
    assert result.verdict == "fail"


def test_different_test_sets_are_not_comparable() -> None:
    here, there = (tabled(np.eye(2) * 500, name) for name in "ab")
    result = judged(drop(), here, there)
    assert {(r.verdict, r.reason) for r in result.results} == {
        ("not_comparable", "different_test_sets")
    }
    assert result.verdict == "fail"


def test_a_precision_that_the_candidate_gave_up_counts_as_zero() -> None:
    true = np.repeat([0, 1], 50)
    never, fair = np.zeros(100, dtype=int), true.copy()
    candidate, baseline = side_of(true, never, 2), side_of(true, fair, 2)
    rule = drop(index="precision", classes=("1",))
    assert one(judged(rule, candidate, baseline)).verdict == "fail"
    assert one(judged(rule, baseline, candidate)).verdict == "pass"
    assert one(judged(rule, candidate, candidate)).verdict == "pass"


def test_a_value_that_the_candidate_lost_is_undefined() -> None:
    true = np.repeat([0, 1], 50)
    never, fair = np.zeros(100, dtype=int), true.copy()
    candidate, baseline = side_of(true, never, 2), side_of(true, fair, 2)
    rule = drop(index="class_mcc", classes=("1",))
    result = judged(rule, candidate, baseline)
    assert one(result).verdict == "undefined"
    assert result.verdict == "fail"
    assert one(judged(rule, baseline, candidate)).verdict == "inconclusive"
    assert one(judged(rule, candidate, candidate)).verdict == "inconclusive"


def test_dropping_the_worst_class_does_not_raise_a_macro_average_past_the_gate() -> None:
    true = np.repeat([0, 1, 2], 50)
    poor = np.concatenate([np.zeros(50), np.ones(50), np.full(25, 2), np.zeros(25)]).astype(int)
    without = np.where(poor == 2, 0, poor)
    rule = drop(index="macro_precision", classes=None)
    result = judged(rule, side_of(true, without, 3), side_of(true, poor, 3))
    assert one(result).verdict == "fail"


def test_replaced_undefined_values_never_reach_a_gate() -> None:
    table = tabled([[50, 0], [0, 0]])
    for undefined in ("zero", "one"):
        options = Options(undefined=undefined)
        result = judged(floor(0.5, index="recall", classes=("1",)), table, None, options)
        assert one(result).verdict == "undefined"


def test_weights_leave_a_tested_rule_inconclusive() -> None:
    heavy = tabled([[450, 50], [50, 450]], weighted=True)
    result = one(judged(floor(0.5), heavy))
    assert (result.verdict, result.reason) == ("inconclusive", "weighted")
    assert "weighted" in result.message
    compared_with = one(judged(drop(classes=("0",)), heavy, heavy))
    assert (compared_with.verdict, compared_with.reason) == ("inconclusive", "weighted")
    assert one(judged(floor(0.5, test="none"), heavy)).verdict == "pass"


def test_an_index_without_an_interval_is_inconclusive_and_says_what_to_do() -> None:
    table = tabled([[450, 50], [50, 450]])
    result = one(judged(floor(0.2, index="cramers_v"), table))
    assert (result.verdict, result.reason) == ("inconclusive", "no_interval")
    assert '`test: "none"`' in result.message


@pytest.mark.parametrize("policy", ["not_fail", "pass"])
def test_a_rule_none_of_whose_results_was_tested_does_not_pass(policy: str) -> None:
    heavy = tabled([[450, 50], [50, 450]], weighted=True)
    result = judged(drop(policy=policy), heavy, heavy)
    assert result.verdict == "inconclusive"


def test_a_class_without_items_takes_no_part() -> None:
    true = np.repeat([0, 1], 500)
    side = side_of(true, true, 3)
    result = judged(drop(), side, side)
    assert verdicts(result) == ["pass", "pass"]
    assert result.verdict == "pass"


def test_no_discordant_pair_passes_only_with_enough_items() -> None:
    assert one(judged(drop(classes=("0",)), *paired(0, 0, 500, 0))).verdict == "pass"
    assert one(judged(drop(classes=("0",)), *paired(0, 0, 5, 0))).verdict == "inconclusive"


def test_a_thousand_tiny_classes_do_not_fail_by_noise() -> None:
    random = np.random.default_rng(0)
    true = random.integers(0, 1000, 4000)
    old, new = (np.where(random.random(4000) < 0.1, (true + 1) % 1000, true) for _ in range(2))
    result = judged(drop(), side_of(true, new, 1000), side_of(true, old, 1000))
    assert "fail" not in verdicts(result)
    assert verdicts(result).count("inconclusive") > 0.99 * len(np.unique(true))
    assert len(result.warnings) == 1
    assert result.verdict == "pass"


@pytest.mark.parametrize("lost", ["value", "gains", "losses", "trials"])
@pytest.mark.parametrize("test", ["auto", "none"])
def test_nothing_that_is_not_a_number_passes(lost: str, test: Literal["auto", "none"]) -> None:
    candidate, baseline = dropped(0.0)
    gate = Gate(rules=(drop(classes=("0",), test=test),))
    comparison = compared(candidate, baseline, gate, Options())
    assert comparison is not None
    nothing = np.full_like(comparison.per_class.value, np.nan)
    changed: dict[str, Any] = {lost: nothing}
    broken = replace(comparison, per_class=replace(comparison.per_class, **changed))
    result = one(run_gate(gate, candidate, broken, Options(), today=TODAY))
    by_points = "pass" if test == "none" else "inconclusive"
    assert result.verdict == ("undefined" if lost == "value" else by_points)


# Policies, effects, severity


def test_named_classes_can_be_made_mandatory() -> None:
    sides = paired(1, 2, 35, 3)
    rule = drop(classes=("0",))
    assert judged(rule, *sides).verdict == "pass"
    assert judged(replace(rule, policy="pass"), *sides).verdict == "inconclusive"


def test_an_overall_rule_is_mandatory_unless_said_otherwise() -> None:
    sides = paired(1, 2, 35, 3)
    rule = drop(0.005, index="accuracy", classes=None)
    assert one(judged(rule, *sides)).verdict == "inconclusive"
    assert judged(rule, *sides).verdict == "inconclusive"
    assert judged(replace(rule, policy="not_fail"), *sides).verdict == "pass"


@pytest.mark.parametrize(
    ("effect", "verdict"), [("pass", "pass"), ("warn", "inconclusive"), ("fail", "fail")]
)
def test_inconclusive_leads_where_on_says(effect: Effect, verdict: str) -> None:
    rule = drop(0.005, index="accuracy", classes=None)
    result = judged(gate_of(rule, on={"inconclusive": effect}), *paired(1, 2, 35, 3))
    assert (one(result).verdict, one(result).effect) == ("inconclusive", effect)
    assert result.verdict == verdict


def test_severity_keeps_every_effect_at_a_warning() -> None:
    advisory = drop(severity="warn", classes=("0",))
    result = judged(advisory, *dropped(0.1))
    assert (one(result).verdict, one(result).effect) == ("fail", "warn")
    assert result.verdict == "pass"
    missing = judged(drop(severity="warn", classes=("x",)), *dropped(0.1))
    assert (one(missing).verdict, one(missing).effect) == ("not_comparable", "warn")
    overall = drop(severity="warn", index="accuracy", classes=None)
    assert judged(overall, *dropped(0.1)).verdict == "inconclusive"


def test_one_failing_effect_fails_the_gate() -> None:
    rules = (drop(classes=("0",)), floor(0.5))
    assert judged(Gate(rules=rules), *dropped(0.1)).verdict == "fail"
    assert judged(Gate(rules=rules), *dropped(0.0)).verdict == "pass"


# Waivers


def waived(*waivers: Waiver, **fields: Any) -> GateResult:
    return judged(gate_of(drop(classes=("0",)), waivers=waivers), *dropped(0.1), **fields)


def test_a_waiver_turns_a_known_fail_into_a_warning() -> None:
    result = waived(waiver())
    assert (one(result).verdict, one(result).effect, one(result).reason) == (
        "waived",
        "warn",
        "waived",
    )
    assert result.verdict == "pass"
    assert "waived by ana up to 0.12 through 2026-11-22: relabelled" in one(result).message


def test_a_waiver_holds_through_its_last_day_and_not_longer() -> None:
    late = waived(waiver(), today=date(2026, 11, 23))
    assert (one(late).verdict, one(late).reason, late.verdict) == ("fail", "waiver_expired", "fail")
    assert "expired after 2026-11-22" in one(late).message


def test_a_waiver_ends_at_its_ceiling() -> None:
    result = waived(waiver(ceiling=0.09))
    assert (one(result).verdict, one(result).reason) == ("fail", "waiver_exceeded")
    assert one(waived(waiver(ceiling=0.09), waiver(class_="0"))).verdict == "waived"


def test_a_waiver_for_another_class_does_not_help() -> None:
    gate = gate_of(drop(), waivers=(waiver(class_="1"),))
    assert judged(gate, *dropped(0.1)).verdict == "fail"


def test_a_waiver_of_a_floor_ends_at_the_lowest_value_it_names() -> None:
    table = tabled([[450, 50], [50, 450]])
    for ceiling, verdict in ((0.89, "waived"), (0.91, "fail")):
        held = waiver(rule="accuracy.min_value", ceiling=ceiling)
        assert one(judged(gate_of(floor(0.95), waivers=(held,)), table)).verdict == verdict


def test_a_waiver_speaks_to_what_would_fail_through_on_as_well() -> None:
    sides = paired(1, 2, 35, 3)
    gate = gate_of(drop(0.04, classes=("0",)), waivers=(waiver(),), on={"inconclusive": "fail"})
    assert one(judged(gate, *sides)).verdict == "waived"
    assert one(judged(replace(gate, on={}), *sides)).verdict == "inconclusive"


def test_what_has_no_value_is_never_waived() -> None:
    here, there = (tabled(np.eye(2) * 500, name) for name in "ab")
    result = judged(gate_of(drop(), waivers=(waiver(ceiling=9.0),)), here, there)
    assert set(verdicts(result)) == {"not_comparable"}


# What a gate may ask


@pytest.mark.parametrize(
    ("gate", "place", "code"),
    [
        (gate_of(floor(0.9, index="acuracy")), ("rules", 0, "index"), "unknown_index"),
        (gate_of(drop(index="kappa")), ("rules", 0, "index"), "unknown_index"),
        (gate_of(floor(0.9, index="recall")), ("rules", 0, "index"), "unknown_index"),
        (gate_of(floor(0.9, index="expected_cost")), ("rules", 0, "index"), "option_missing"),
        (
            gate_of(drop(index="error_rate", classes=None)),
            ("rules", 0, "max_drop"),
            "use_max_gain",
        ),
        (gate_of(drop(0.0)), ("rules", 0, "max_drop"), "needs_superiority"),
        (gate_of(drop(0.0, test="none")), ("rules", 0, "max_drop"), "needs_superiority"),
        (gate_of(drop(-0.1)), ("rules", 0, "max_drop"), "out_of_range"),
        (gate_of(drop(5.0)), ("rules", 0, "max_drop"), "out_of_range"),
        (gate_of(drop(float("nan"))), ("rules", 0, "max_drop"), "not_finite"),
        (gate_of(floor(95.0)), ("rules", 0, "min_value"), "out_of_range"),
        (gate_of(drop(classes=())), ("rules", 0, "classes"), "empty"),
        (gate_of(drop(classes=("a", "a"))), ("rules", 0, "classes"), "duplicate"),
        (Gate(rules=(drop(), drop(0.1))), ("rules", 1, "id"), "duplicate_id"),
        (gate_of(drop(), waivers=(waiver(rule="x"),)), ("waivers", 0, "rule"), "unknown_rule"),
        (
            gate_of(drop(classes=("0",)), waivers=(waiver(class_="1"),)),
            ("waivers", 0, "class"),
            "unknown_class",
        ),
        (
            gate_of(floor(0.9), waivers=(waiver(rule="accuracy.min_value", class_="1"),)),
            ("waivers", 0, "class"),
            "unknown_class",
        ),
        (
            gate_of(drop(), waivers=(waiver(ceiling=float("inf")),)),
            ("waivers", 0, "ceiling"),
            "not_finite",
        ),
        (gate_of(drop(), alpha=0.5), ("alpha",), "out_of_range"),
        (gate_of(drop(), on={"no_baseline": "pass"}), ("on", "no_baseline"), "invalid_effect"),
        (gate_of(drop(), on={"fial": "warn"}), ("on", "fial"), "unknown_verdict"),
        (gate_of(drop(kind="drop")), ("rules", 0, "kind"), "unknown_kind"),
    ],
)
def test_a_gate_that_cannot_mean_anything_is_refused_at_its_place(
    gate: Gate, place: tuple[Any, ...], code: str
) -> None:
    with pytest.raises(RuleError) as refused:
        check_gate(gate)
    assert (refused.value.place, refused.value.code) == (place, code)
    with pytest.raises(RuleError):
        judged(gate, tabled(np.eye(2) * 9))


def test_every_mistake_is_found_at_once() -> None:
    gate = Gate(rules=(drop(0.0), floor(0.9, index="x")), waivers=(waiver(rule="y"),))
    assert [m.code for m in mistakes(gate)] == [
        "needs_superiority",
        "unknown_index",
        "unknown_rule",
    ]


def test_refusals_say_what_to_write_instead() -> None:
    texts = [str(next(mistakes(gate_of(rule)))) for rule in (drop(0.0), floor(1, index="recall"))]
    assert "superiority" in texts[0]
    assert "macro_recall" in texts[1]


# Laws


def outcomes() -> Iterator[st.SearchStrategy[int]]:
    yield from (st.integers(0, 60) for _ in range(4))


@given(*outcomes(), st.sampled_from([0.01, 0.05, 0.2]))
def test_a_verdict_is_what_the_printed_limits_say(
    gains: int, losses: int, right: int, wrong: int, limit: float
) -> None:
    assume(gains + losses + right + wrong)
    result = one(judged(drop(limit, classes=("0",)), *paired(gains, losses, right, wrong)))
    if result.interval is None:
        assert result.verdict == "inconclusive"
        return
    low, high = result.interval
    if min(abs(low + limit), abs(high + limit)) > 1e-9:
        expected = "pass" if low > -limit else "fail" if high < -limit else "inconclusive"
        assert result.verdict == expected


@given(*outcomes())
def test_losing_more_never_improves_a_verdict(
    gains: int, losses: int, right: int, wrong: int
) -> None:
    order = ["pass", "inconclusive", "fail"]
    before = one(judged(drop(classes=("0",)), *paired(gains, losses, right + 1, wrong)))
    after = one(judged(drop(classes=("0",)), *paired(gains, losses + 1, right, wrong)))
    assert order.index(after.verdict) >= order.index(before.verdict)


def test_groups_of_items_widen_the_limits() -> None:
    random = np.random.default_rng(5)
    blocks = random.random((100, 1)) < 0.1
    new = np.where(np.broadcast_to(blocks, (100, 10)).ravel(), 1, 0)
    true = np.concatenate([np.zeros(1000, dtype=int), np.ones(100, dtype=int)])
    predicted = np.concatenate([new, np.ones(100, dtype=int)])
    groups = np.arange(1100) // 10
    widths = []
    for of_items in (None, groups):
        side = side_of(true, predicted, 2, of_items)
        result = one(judged(floor(0.5), replace(side, items=Items(true, predicted, of_items))))
        assert result.interval is not None
        widths.append(result.interval[1] - result.interval[0])
    assert widths[1] > 2 * widths[0]
