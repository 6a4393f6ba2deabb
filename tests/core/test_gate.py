"""Gates: what each verdict means, and that nothing which was not seen can pass."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from rprime.core.comparison.alignment import Side
from rprime.core.gates.gate import run_gate
from rprime.core.gates.kinds import POLICIES, Effect, PolicyName
from rprime.core.gates.results import GateResult, Result
from rprime.core.gates.rules import Gate, Rule, RuleError, Waiver, check_gate, mistakes
from rprime.core.gates.sentences import number
from rprime.core.items import Items
from rprime.core.multiplicity import holm
from rprime.core.options import Options
from rprime.core.scores.scores import Scores
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
    """The verdicts on single results, without averages."""
    return [r.verdict for r in result.results if r.average_of is None]


def mean(result: GateResult) -> Result:
    """The only average."""
    (average,) = [r for r in result.results if r.average_of is not None]
    return average


def limits(result: Result) -> tuple[float, float]:
    assert result.lower_limit is not None
    assert result.upper_limit is not None
    return result.lower_limit, result.upper_limit


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
    outcome = expected["outcome_alpha05"].replace("inconclusive", "undecided")
    assert result.verdict == outcome
    assert result.p_value == pytest.approx(expected["p_fail"], rel=1e-9)
    assert limits(result) == pytest.approx(case["tango_ci90"], abs=1e-6)
    assert result.level == 0.95
    assert (result.method, result.pairing, result.n) == ("tango", "paired", case["n"])


def test_reference_joint_table_is_judged_and_adjusted() -> None:
    result = judged(drop(), *sides_of(JOINT["joint_truth_old_new"]))
    classes = [r for r in result.results if r.average_of is None]
    assert [r.p_value for r in classes] == pytest.approx(
        [case["p_fail"] for case in JOINT["per_class"]], rel=1e-9
    )
    assert [r.p_adjusted for r in classes] == JOINT["holm_p_fail"]
    assert verdicts(result) == ["pass", "pass", "undecided"]
    assert result.verdict == "pass"


@pytest.mark.parametrize(
    ("dataset", "fallen"), [("table7_mnist", "0 4 6 8"), ("table8_cifar10", "cat deer dog horse")]
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
        "recall of class `0` dropped by 0.1 (limits 0.0855 and 0.1167, each with 95 % confidence), "
        "more than the 0.05 allowed."
    )
    assert (one(result).verdict, one(result).effect, result.verdict) == ("fail", "fail", "fail")


def test_a_rule_that_has_been_judged_can_leave_its_process() -> None:
    rule = Rule(kind="max_drop", limit=0.1, index="accuracy")
    assert rule.target.entry.key == "accuracy"
    assert pickle.loads(pickle.dumps(rule)) == rule  # noqa: S301 (made here)


def test_too_few_items_are_inconclusive_and_say_what_they_could_see() -> None:
    result = one(judged(drop(classes=("0",)), *paired(1, 2, 35, 3)))
    assert (result.verdict, result.effect, result.reason) == (
        "undecided",
        "warn",
        "not_enough_items",
    )
    assert result.min_detectable_drop is not None
    assert result.min_detectable_drop > 0.05
    assert "41 items are too few" in result.message


def test_underpowered_rules_are_warned_of_once() -> None:
    result = judged(drop(0.02, policy="each"), *paired(1, 2, 35, 3))
    (warning,) = result.warnings
    assert (warning.code, warning.pointer) == (
        "underpowered",
        "/gate/results/0/min_detectable_drop",
    )
    (other,) = judged(drop(0.02, policy="each"), *dropped(0.0, 4000)).warnings
    assert other.detail.startswith(
        "Rule recall.max_drop allows 0.02, but an unchanged model passes it in fewer than 8 of 10 "
        "builds for 1 of 2 classes"
    )


def test_a_changed_candidate_does_not_make_a_rule_underpowered() -> None:
    worse, better = paired(0, 95, 905, 0), paired(95, 0, 905, 0)
    assert one(judged(drop(0.02, classes=("0",)), *worse)).verdict == "fail"
    assert one(judged(drop(0.02, classes=("0",)), *better)).verdict == "pass"
    for sides in (worse, better):
        assert judged(drop(0.02, classes=("0",)), *sides).warnings == ()
    undecided = judged(drop(0.02, classes=("0",)), *paired(40, 40, 920, 0))
    assert [w.code for w in undecided.warnings] == ["underpowered"]


def test_what_fails_had_enough_items() -> None:
    result = judged(drop(0.02, classes=("0",)), *paired(30, 100, 870, 0))
    assert (one(result).verdict, result.warnings) == ("fail", ())


@pytest.mark.parametrize("with_scores", [False, True])
def test_scores_that_were_not_sent_leave_a_rule_undefined(*, with_scores: bool) -> None:
    candidate, baseline = paired(5, 5, 190, 0)
    assert baseline.items is not None
    scored = Scores(baseline.items.true, np.tile([0.4, 0.6], (260, 1)))
    baseline = replace(baseline, scores=scored if with_scores else None)
    for index in ("macro_roc_auc", "log_loss"):
        kind: str = "max_drop" if index == "macro_roc_auc" else "max_gain"
        result = judged(Rule(index=index, kind=kind, limit=0.02), candidate, baseline)
        assert (result.verdict, result.judged, one(result).verdict) == ("fail", False, "undefined")
        assert one(result).message == (
            f"{index} is undefined (no scores: send `y_score`, or columns `score:<label>`), which "
            "never passes."
        )


def test_a_value_that_no_side_has_is_not_told_as_zero() -> None:
    side = side_of(np.zeros(200, dtype=int), np.zeros(200, dtype=int), 2)
    result = one(judged(Rule(index="mcc", kind="max_drop", limit=0.02), side, side))
    assert (result.verdict, result.observed) == ("undecided", None)
    assert result.message == "mcc has no value on either side (single class)."


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
        ("min_value", 0.905, "undecided"),
        ("min_value", 0.97, "fail"),
        ("max_value", 0.2, "pass"),
        ("max_value", 0.105, "undecided"),
        ("max_value", 0.03, "fail"),
    ],
)
def test_floors_and_ceilings_use_the_limits_of_the_value(
    kind: str, limit: float, verdict: str
) -> None:
    table = tabled([[450, 50], [50, 450]])
    index = "accuracy" if kind == "min_value" else "error_rate"
    result = one(judged(floor(limit, kind=kind, index=index), table))
    assert result.verdict == verdict
    low, high = limits(result)
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
    options = Options(exact=exact, families=("core",))
    for level in (0.2, 0.05, 0.003):
        rule = Rule(index=index, classes=classes, kind="min_value", limit=0.5)
        at_level = judged(Gate(rules=(rule,), alpha=level), table, None, options)
        for place, result in enumerate(at_level.results):
            again = judged(replace(rule, limit=limits(result)[1]), table, None, options)
            p = again.results[place].p_value
            assert p is not None
            if classes is None:
                assert p == pytest.approx(level, rel=1e-3)
            else:  # among many classes the exact tail decides, too
                assert p >= level * (1 - 1e-3)


def test_bounds_of_classes_take_the_larger_of_limit_and_binomial_tail() -> None:
    counts = np.array([[45, 6, 4], [5, 36, 9], [8, 7, 50]])
    rule = Rule(index="recall", classes="all", kind="min_value", limit=0.9)
    for code, result in enumerate(judged(rule, tabled(counts)).results):
        right, items = counts[code, code], counts[code].sum()
        score = (right / items - 0.9) / np.sqrt(0.9 * 0.1 / items)
        tail = stats.binom.cdf(right, items, 0.9)
        assert result.p_value == pytest.approx(max(stats.norm.cdf(score), tail), rel=1e-4)


def test_point_values_are_compared_without_a_test_where_asked() -> None:
    candidate, baseline = paired(0, 1, 12, 0)
    result = one(judged(drop(test="none", classes=("0",)), candidate, baseline))
    assert (result.verdict, result.method) == ("fail", "point")
    assert (result.lower_limit, result.upper_limit, result.level) == (None, None, None)
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
    assert (first.verdict, first.reason) == ("undecided", "suspect")
    assert first.p_value == one(alone).p_value
    assert first.p_value is not None
    # Nearly independent results: max-T is a little below Holm's 10 p.
    assert first.p_adjusted == pytest.approx(1 - (1 - first.p_value) ** 10, rel=0.02)


def test_what_only_stands_out_alone_says_among_how_many_it_was_tested() -> None:
    rules = [floor(0.93, id=f"floor {i}") for i in range(10)]
    first = judged(gate_of(*rules), tabled([[455, 45], [45, 455]])).results[0]
    assert (first.verdict, first.reason) == ("undecided", "not_significant_together")
    assert first.p_adjusted == pytest.approx(10 * (first.p_value or 0))
    assert "among 10 results tested together" in first.message
    assert "by chance" not in first.message


def test_results_that_cannot_fail_do_not_weaken_the_others() -> None:
    rules = (drop(classes=("0",)), drop(id="points", test="none"), drop(id="gone", classes=("x",)))
    result = judged(Gate(rules=rules), *worsened([17] + 9 * [0]))
    assert result.results[0].p_adjusted == result.results[0].p_value


def test_a_budget_of_looks_divides_the_level() -> None:
    sides = worsened([18, 0])
    rules = (drop(classes=("0",)),)
    ignoring, few = judged(Gate(rules=rules), *sides, look=5), Gate(rules=rules, max_looks=2)
    assert (ignoring.alpha, ignoring.look, ignoring.max_looks) == (0.05, 5, None)
    assert one(ignoring).verdict == "fail"
    for look in (1, 2):
        result = judged(few, *sides, look=look)
        assert (result.alpha, result.look, result.max_looks) == (0.025, look, 2)
        assert one(result).level == 0.975
        assert "looks_exceeded" not in [warning.code for warning in result.warnings]
    assert one(judged(replace(few, max_looks=50), *sides)).verdict == "fail"
    kept = worsened([3, 0])
    assert one(judged(few, *kept)).verdict == "pass"
    assert one(judged(replace(few, max_looks=50), *kept)).verdict == "undecided"


def test_spending_gives_later_looks_smaller_parts_of_alpha() -> None:
    gate = Gate(rules=(drop(classes=("0",)),), spend=True)
    sides = worsened([1, 0])
    results = {look: judged(gate, *sides, look=look) for look in (1, 2, 9)}
    assert [result.alpha for result in results.values()] == [0.025, 0.05 / 6, 0.05 / 90]
    assert [one(result).verdict for result in results.values()] == ["pass", "pass", "undecided"]
    assert sum(gate.pass_level(look) for look in range(1, 10_000)) < 0.05
    assert one(judged(gate, *worsened([18, 0]), look=9)).verdict == "fail"


@pytest.mark.parametrize(
    ("rule", "looks"),
    [
        (drop(classes=("0",)), {10, 20, 40, 80}),
        (Rule(kind="min_gain", limit=0.0, index="accuracy"), set(range(2, 100))),
    ],
)
def test_reuse_of_a_test_set_is_warned_about(rule: Rule, looks: set[int]) -> None:
    sides = worsened([3, 0])
    warned = {
        look
        for look in range(1, 100)
        if "repeated_looks" in [w.code for w in judged(rule, *sides, look=look).warnings]
    }
    assert warned == looks


def test_a_look_past_the_budget_is_warned_of() -> None:
    gate = Gate(rules=(drop(classes=("0",)),), max_looks=2)
    result = judged(gate, *worsened([18, 0]), look=3)
    (warning,) = [w for w in result.warnings if w.code == "looks_exceeded"]
    assert "This is look 3 at the test set, but the gate divides alpha over 2" in warning.detail
    assert result.alpha == 0.025


# Suspects and policies


SUSPECTS = (15, 14, 3, 0, 0, 0, 0, 0, 0, 0)
"""Losses of items, of 90 in each class: beyond a limit of .1 twice, but not shown to be."""


def suspecting(**fields: Any) -> GateResult:
    return judged(gate_of(drop(0.1), **fields), *worsened(list(SUSPECTS), 90))


def test_a_class_that_lost_17_points_at_a_limit_of_10_does_not_pass() -> None:
    result = suspecting()
    assert [r.class_ for r in result.results if r.suspect] == ["0", "1"]
    assert {r.verdict for r in result.results if r.suspect} == {"undecided"}
    assert (result.verdict, result.judged) == ("inconclusive", True)
    assert result.message == (
        "The gate is inconclusive, with these results suspect: recall.max_drop of classes `0`, `1`."
    )
    first = result.results[0]
    assert (first.reason, first.effect) == ("suspect", "warn")
    assert first.message == (
        "recall of class `0` dropped by 0.1667 (limits 0.112 and 0.2408, each with 95 % "
        "confidence): suspect, tested alone it would be beyond the 0.1 allowed, but among 10 "
        "results tested together only a drop is shown."
    )
    second = judged(drop(0.13), *worsened(list(SUSPECTS), 90)).results[0]
    assert second.message.endswith(
        ": suspect, a drop is shown, but not one of more than the 0.13 allowed."
    )


@pytest.mark.parametrize(("effect", "verdict"), [("warn", "inconclusive"), ("fail", "fail")])
def test_the_gate_says_what_suspects_lead_to(effect: Effect, verdict: str) -> None:
    result = suspecting(effects={"suspect": effect})
    assert {r.effect for r in result.results if r.suspect} == {effect}
    assert (result.verdict, result.judged) == (verdict, True)
    assert "recall.max_drop of classes `0`, `1`" in result.message


def test_undecided_classes_without_suspicion_let_the_gate_pass_and_are_named() -> None:
    result = judged(drop(0.05), *worsened([4, 1, 0], 90))
    assert verdicts(result) == ["undecided", "pass", "pass"]
    assert not result.results[0].suspect
    assert (result.verdict, result.undecided) == ("pass", 1)
    assert result.message == (
        "The gate passed; 1 result has too few items to pass alone: recall.max_drop of class `0`."
    )
    assert mean(result).message == (
        "recall on average over 3 classes dropped by 0.0185 (limits 0.0045 and 0.0359, each with "
        "95 % confidence): a drop of more than the 0.05 allowed is ruled out on average."
    )


def test_a_suspect_does_not_pass_although_undecided_results_may() -> None:
    lenient = suspecting(effects={"undecided": "pass"})
    assert {r.effect for r in lenient.results if r.suspect} == {"warn"}
    assert lenient.verdict == "inconclusive"


def test_an_accepted_suspect_can_be_waived() -> None:
    held = (waiver(ceiling=0.2, class_="0"), waiver(ceiling=0.1, class_="1"))
    gate = gate_of(drop(0.1), waivers=held, effects={"suspect": "fail"})
    result = judged(gate, *worsened(list(SUSPECTS), 90))
    assert [r.verdict for r in result.results[:2]] == ["waived", "undecided"]
    assert result.results[1].reason == "waiver_exceeded"
    assert result.verdict == "fail"


def test_rises_have_suspects_and_floors_have_none() -> None:
    candidate, baseline = worsened(list(SUSPECTS), 90)
    misses = Rule(index="false_negative_rate", kind="max_gain", limit=0.1, classes="all")
    result = judged(misses, candidate, baseline)
    assert [r.class_ for r in result.results if r.suspect] == ["0", "1"]
    assert "tested together only a rise is shown" in result.results[0].message
    floors = judged(floor(0.85, index="recall", classes="all"), candidate)
    assert verdicts(floors)[:2] == ["undecided", "undecided"]
    assert not any(r.suspect for r in floors.results)
    assert floors.verdict == "inconclusive"


def test_suspicion_is_adjusted_over_all_results() -> None:
    """Losses of 6 of 12 items (p 1/64) are shown to be worse among 5 results, not among 10."""
    for count, suspect in ((5, True), (10, False)):
        result = judged(drop(0.3), *worsened([6] + (count - 1) * [0], 12))
        assert (result.results[0].verdict, result.results[0].suspect) == ("undecided", suspect)


def test_one_judged_class_is_its_own_average() -> None:
    result = judged(drop(0.3, classes=("0",)), *worsened([5] + 9 * [0], 12))
    assert (one(result).verdict, one(result).suspect) == ("undecided", False)
    assert result.verdict == "inconclusive"


def test_an_average_that_lost_more_than_allowed_is_suspect() -> None:
    losing = worsened([5] * 40, 30)
    result = judged(drop(0.1), *losing)
    assert set(verdicts(result)) == {"undecided"}
    average = mean(result)
    assert (average.average_of, average.verdict, average.suspect) == (40, "undecided", True)
    assert average.p_adjusted is None
    assert average.message.endswith(
        "each with 95 % confidence): suspect, tested alone it would be beyond the 0.1 allowed."
    )
    assert result.verdict == "inconclusive"
    assert judged(gate_of(drop(0.1), effects={"suspect": "fail"}), *losing).verdict == "fail"


def test_classes_too_small_for_an_average_are_named_and_still_judged() -> None:
    joint = np.zeros((7, 8, 8), dtype=int)
    for i in range(6):
        joint[i, i, i] = 200
    joint[6, 6, 0] = 4
    result = judged(drop(0.1), *sides_of(joint))
    assert mean(result).average_of == 6
    (warning,) = [w for w in result.warnings if w.code == "average_leaves_out"]
    assert "leaves out 1 classes that are too small for it: class `6`." in warning.detail
    assert (result.results[6].verdict, result.undecided) == ("undecided", 1)


def test_a_change_beyond_the_limit_that_cannot_be_tested_never_passes() -> None:
    heavy, light = (tabled([[95, 5], wrong], weighted=True) for wrong in ([50, 0], [0, 50]))
    points = drop(id="points", index="accuracy", classes=None, test="none", limit=0.9)
    for policy in POLICIES:
        rules = (drop(policy=policy, classes=("0", "1")), points)
        result = judged(gate_of(*rules, effects={"undecided": "pass"}), heavy, light)
        assert verdicts(result) == ["undecided", "undecided", "pass"]
        assert {r.effect for r in result.results if (r.delta or 0) < -0.5} == {"warn"}
        assert result.verdict == "inconclusive"


@pytest.mark.parametrize("index", ["recall", "precision", "f1"])
def test_a_collapsed_class_fails(index: str) -> None:
    """From 50 of 50 to none, compared as two tables: nothing varies, and all is lost."""
    result = judged(drop(index=index), tabled([[95, 5], [50, 0]]), tabled([[95, 5], [0, 50]]))
    assert result.results[1].verdict == "fail"
    assert result.message.startswith(f"The gate failed: {index}.max_drop of class")


@pytest.mark.parametrize("index", ["macro_f1", "macro_precision"])
def test_a_class_of_the_list_without_items_fails_no_unchanged_model(index: str) -> None:
    """One error of each model, one of them into the class that the test set lacks."""
    true = np.repeat([0, 1], 50)
    old, new = true.copy(), true.copy()
    old[0], new[0] = 1, 2
    rules = (drop(index=index, classes=None), drop(0.1, index="f1"))
    for one_way, other in ((new, old), (old, new)):
        result = judged(gate_of(*rules), side_of(true, one_way, 3), side_of(true, other, 3))
        assert (verdicts(result), result.verdict) == (["pass"] * 3, "pass")


# Superiority


@pytest.mark.parametrize(
    ("limit", "verdict"), [(0.0, "pass"), (0.05, "pass"), (0.09, "undecided"), (0.15, "fail")]
)
def test_a_gain_is_required_where_a_challenger_is_promoted(limit: float, verdict: str) -> None:
    candidate, baseline = reversed(dropped(0.1))
    rule = drop(limit, kind="min_gain", index="accuracy", classes=None)
    result = judged(rule, candidate, baseline)
    low, high = limits(one(result))
    of_gate = verdict.replace("undecided", "inconclusive")
    assert (one(result).verdict, result.verdict) == (verdict, of_gate)
    assert (low > limit, high < limit) == (verdict == "pass", verdict == "fail")


def test_an_unchanged_model_has_no_gain() -> None:
    candidate, baseline = paired(10, 10, 980, 0)
    rule = drop(0.0, kind="min_gain", classes=("0",))
    assert one(judged(rule, candidate, baseline)).verdict == "undecided"
    assert one(judged(replace(rule, limit=0.05), candidate, baseline)).verdict == "fail"
    assert one(judged(rule, *dropped(0.05))).verdict == "fail"
    assert one(judged(rule, candidate, None)).verdict == "no_baseline"


def test_rules_on_the_same_classes_are_nearly_one_test() -> None:
    """Recall, R' and F1 of a class: by Holm's procedure they would count three times."""
    random = np.random.default_rng(5)
    true = np.repeat(np.arange(10), 100)
    wrong = (true + random.integers(1, 10, 1000)) % 10
    old, new = (np.where(random.random(1000) < 0.95, true, wrong) for _ in range(2))
    new[:11] = 1
    sides = side_of(true, new, 10), side_of(true, old, 10)
    rules = tuple(drop(0.03, index=index) for index in ("recall", "r_prime", "f1"))
    three = judged(gate_of(*rules), *sides)
    by_holm = holm([r.p_value or np.nan for r in three.results])
    smallest = int(np.argmin(by_holm))
    adjusted = three.results[smallest].p_adjusted or 1
    assert adjusted < 0.05 < by_holm[smallest]
    assert three.results[smallest].verdict == "fail"


# Cells


def confused(before: int, after: int, items: int = 500) -> tuple[Side, Side]:
    """Candidate and baseline on the same items: so many of class 0 predicted as 1."""
    true = np.repeat([0, 1, 2], items)
    sides = []
    for count in (after, before):
        predicted = true.copy()
        predicted[:count] = 1
        sides.append(side_of(true, predicted, 3))
    return sides[0], sides[1]


def cell(limit: float, **fields: Any) -> Rule:
    defaults: dict[str, Any] = {"confusion": ("0", "1"), "kind": "max_gain"}
    return Rule(limit=limit, **defaults | fields)


@pytest.mark.parametrize(("after", "verdict"), [(10, "pass"), (18, "undecided"), (60, "fail")])
def test_a_cell_is_the_share_of_a_class_that_is_predicted_as_another(
    after: int, verdict: str
) -> None:
    sides = confused(10, after)
    result = one(judged(cell(0.02), *sides))
    assert (result.verdict, result.method, result.pairing) == (verdict, "tango", "paired")
    assert (result.rule, result.index, result.class_) == ("confusion(0, 1).max_gain", None, None)
    assert result.confusion == ("0", "1")
    assert (result.observed, result.baseline, result.n) == (after / 500, 0.02, 500)
    assert result.message.startswith("the share of class `0` predicted as `1`")
    as_recall = Rule(index="false_negative_rate", kind="max_gain", limit=0.02, classes=("0",))
    other = one(judged(as_recall, *sides))
    assert limits(result) == pytest.approx(limits(other))
    assert result.p_value == pytest.approx(other.p_value)


def test_a_cell_of_two_tables_is_compared_as_a_proportion() -> None:
    candidate, baseline = (tabled([[500 - n, n], [0, 500]]) for n in (60, 10))
    result = one(judged(cell(0.02), candidate, baseline))
    recall = Rule(index="false_negative_rate", kind="max_gain", limit=0.02, classes=("0",))
    assert (result.verdict, result.pairing) == ("fail", "unpaired")
    assert limits(result) == pytest.approx(limits(one(judged(recall, candidate, baseline))))
    candidate, baseline = (tabled([[500 - n, n], [0, 500]], "t") for n in (60, 10))
    bracketed = one(judged(recall, candidate, baseline))
    assert limits(one(judged(cell(0.02), candidate, baseline))) == pytest.approx(limits(bracketed))


def test_a_cell_has_a_ceiling_of_its_own() -> None:
    candidate, _ = confused(10, 60)
    for limit, verdict in ((0.2, "pass"), (0.12, "undecided"), (0.05, "fail")):
        rule = cell(limit, kind="max_value")
        assert one(judged(rule, candidate)).verdict == verdict
    items = candidate.items
    assert items is not None
    grouped = replace(items, groups=np.arange(1500) // 30)
    wide, narrow = (
        limits(one(judged(cell(0.1, kind="max_value"), replace(candidate, items=sample))))
        for sample in (grouped, items)
    )
    assert wide[1] - wide[0] > 2 * (narrow[1] - narrow[0])


@pytest.mark.parametrize("confusion", [("0", "nine"), ("nine", "0"), ("3", "1")])
@pytest.mark.parametrize("kind", ["max_gain", "max_value"])
def test_a_cell_of_an_unknown_class_or_one_without_items_never_passes(
    confusion: tuple[str, str], kind: Any
) -> None:
    true = np.repeat([0, 1], 50)
    side = side_of(true, true, 4)
    result = judged(cell(0.5, confusion=confusion, kind=kind), side, side)
    assert one(result).verdict == "not_comparable"
    assert one(result).reason == ("class_missing" if "nine" in confusion else "no_items")
    assert (result.verdict, result.judged) == ("fail", False)


# The anchor


def test_rules_hold_against_the_baseline_and_the_anchor_in_one_family() -> None:
    joint = np.zeros((2, 3, 3), dtype=int)
    joint[0, 0, 0], joint[0, 0, 1], joint[1, 1, 1] = 900, 100, 1000
    candidate, anchor = sides_of(joint)
    gate = gate_of(drop(index="accuracy", classes=None), floor(0.5), anchor_requested=True)
    result = judged(gate, candidate, candidate, anchor=anchor)
    assert [(r.rule, r.against, r.verdict) for r in result.results] == [
        ("accuracy.max_drop", "baseline", "pass"),
        ("accuracy.max_drop", "anchor", "undecided"),
        ("accuracy.min_value", None, "pass"),
    ]
    assert result.results[1].p_adjusted == pytest.approx(2 * (result.results[1].p_value or 0))
    assert "dropped by 0.05 since the anchor" in result.results[1].message
    assert result.verdict == "inconclusive"
    assert "accuracy.max_drop against the anchor" in result.message
    alone = judged(replace(gate, anchor_requested=False), candidate, candidate, anchor=anchor)
    assert [r.against for r in alone.results] == ["baseline", None]


def test_a_missing_anchor_is_no_baseline() -> None:
    gate = gate_of(drop(index="accuracy", classes=None), anchor_requested=True)
    candidate, baseline = dropped(0.0)
    result = judged(gate, candidate, baseline)
    assert [(r.against, r.verdict) for r in result.results] == [
        ("baseline", "pass"),
        ("anchor", "no_baseline"),
    ]
    assert result.results[1].message.endswith("there is no anchor.")
    assert (result.verdict, result.judged) == ("no_baseline", False)
    assert result.message == "The gate could not be judged. There is no anchor."


# Sentences


@pytest.mark.parametrize(
    ("gains", "losses", "text"),
    [
        (0, 100, "dropped by 0.1 (limits 0.0855 and 0.1167, each with 95 % confidence)"),
        (100, 0, "rose by 0.1 (limits 0.0855 and 0.1167, each with 95 % confidence)"),
        (10, 12, "(limits: a drop of 0.0103 and a rise of 0.006, each with 95 % confidence)"),
        (10, 10, "did not change (limits: a drop of 0.0078 and a rise of 0.0078, each with 95"),
    ],
)
def test_no_sign_changes_within_a_sentence(gains: int, losses: int, text: str) -> None:
    result = one(judged(drop(classes=("0",)), *paired(gains, losses, 1000 - gains - losses, 0)))
    assert text in result.message


def test_the_verdict_of_a_gate_names_what_it_rests_on() -> None:
    rules = (drop(0.05), floor(0.5), floor(0.99, id="high", severity="warn"))
    good, bad = judged(gate_of(*rules[:2]), *dropped(0.0)), judged(gate_of(*rules), *dropped(0.1))
    assert good.message == "The gate passed."
    assert bad.message == "The gate failed: recall.max_drop of class `0`."
    many = judged(drop(), *worsened([60] * 14))
    assert "`3`, `4` and 9 more." in many.message
    assert judged(Gate(), *dropped(0.0)).message == "The gate has no rules, so nothing was judged."


def test_a_gate_that_fails_for_lack_of_evidence_was_not_judged() -> None:
    here, there = (tabled([[400, 100], [100, 400]], name) for name in "ab")
    rules = (drop(), floor(0.5))
    passing_floor = judged(gate_of(*rules), here, there)
    assert (passing_floor.verdict, passing_floor.judged) == ("fail", False)
    failing_floor = judged(gate_of(drop(), floor(0.95)), here, there)
    assert (failing_floor.verdict, failing_floor.judged) == ("fail", True)
    assert failing_floor.message.startswith(
        "The gate failed: accuracy.min_value. The test sets differ: both have 1,000 items, but "
    )
    first_run = judged(drop(), here)
    assert (first_run.verdict, first_run.judged) == ("no_baseline", False)
    strict = judged(gate_of(drop(), effects={"no_baseline": "fail"}), here)
    assert (strict.verdict, strict.judged) == ("fail", False)
    assert strict.message == "The gate could not be judged. There is no baseline."


# The drop that a rule sees


def test_the_detectable_drop_is_found_in_eight_of_ten_cases() -> None:
    """1000 items, 6 % of them discordant, limit .02; see the simulation of such gates."""
    result = one(judged(drop(0.02, index="accuracy", classes=None), *paired(30, 30, 880, 0)))
    assert result.min_detectable_drop == pytest.approx(0.045, abs=0.001)
    family = judged(gate_of(*(drop(0.02, id=str(i)) for i in range(11))), *paired(30, 30, 880, 0))
    assert (family.results[0].min_detectable_drop or 0) > 0.045


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
    assert result.verdict == "no_baseline"
    assert result.results[0].observed == 1.0
    strict = Gate(rules=(rule,), effects={"no_baseline": "fail"})
    assert judged(strict, dropped(0.0)[0]).verdict == "fail"


def test_a_class_on_one_side_only_is_not_comparable() -> None:
    baseline = tabled([[950, 50], [5, 95]])
    renamed = replace(baseline, labels=("0", "new"))
    result = judged(drop(), renamed, baseline)
    assert [(r.class_, r.verdict, r.reason) for r in result.results] == [
        ("0", "pass", "within_limit"),
        ("new", "no_baseline", "class_missing_in_baseline"),
        ("1", "not_comparable", "class_lost"),
    ]
    assert result.results[1].message == (
        "recall of class `new` was not compared: the baseline has no such class."
    )
    named = judged(drop(classes=("0", "new", "1")), renamed, baseline)
    assert [(r.class_, r.verdict, r.reason) for r in named.results] == [
        ("0", "pass", "within_limit"),
        ("new", "no_baseline", "class_missing_in_baseline"),
        ("1", "not_comparable", "class_lost"),
    ]
    assert (named.verdict, named.judged) == ("fail", False)
    lenient = Gate(rules=(drop(classes=("0", "new")),), effects={"not_comparable": "warn"})
    assert judged(lenient, renamed, baseline).verdict == "inconclusive"


def test_a_lost_class_of_few_items_is_undecided() -> None:
    baseline = tabled(np.diag([500.0, 500, 9]))
    candidate = replace(tabled(np.diag([500.0, 500])), labels=("0", "1"))
    result = judged(drop(0.1), candidate, baseline)
    assert [(r.class_, r.verdict, r.reason) for r in result.results[:3]] == [
        ("0", "pass", "within_limit"),
        ("1", "pass", "within_limit"),
        ("2", "undecided", "class_lost"),
    ]
    assert result.undecided == 1
    assert "the candidate has none of its few items" in result.results[2].message


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
    assert [(r.class_, r.verdict, r.reason) for r in result.results] == [
        (None, "not_comparable", "no_class")
    ]
    assert (result.verdict, result.judged) == ("fail", False)


def test_different_test_sets_are_not_comparable() -> None:
    here, there = (tabled(np.eye(2) * 500, name) for name in "ab")
    result = judged(drop(), here, there)
    assert {(r.verdict, r.reason) for r in result.results} == {
        ("not_comparable", "different_test_sets")
    }
    assert (result.verdict, result.judged) == ("fail", False)
    assert result.message.startswith(
        "The gate could not be judged. The test sets differ: both have 1,000 items, but not "
    )
    assert result.message.count("differ") == 1


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
    assert one(judged(rule, baseline, candidate)).verdict == "undecided"
    assert one(judged(rule, candidate, candidate)).verdict == "undecided"


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
        assert (one(result).verdict, one(result).reason) == ("not_comparable", "no_items")


def test_weights_leave_a_tested_rule_inconclusive() -> None:
    heavy = tabled([[450, 50], [50, 450]], weighted=True)
    result = one(judged(floor(0.5), heavy))
    assert (result.verdict, result.reason) == ("undecided", "weighted")
    assert "weighted" in result.message
    compared_with = one(judged(drop(classes=("0",)), heavy, heavy))
    assert (compared_with.verdict, compared_with.reason) == ("undecided", "weighted")
    assert one(judged(floor(0.5, test="none"), heavy)).verdict == "pass"


def test_a_rule_that_nothing_can_decide_is_refused() -> None:
    def codes(rule: Rule, intervals: Literal["all"] | None = None) -> list[str]:
        options = Options(intervals=intervals or True)
        return [mistake.code for mistake in mistakes(gate_of(rule), options)]

    for kind in ("min_value", "max_drop"):
        assert codes(floor(0.2, index="cramers_v", kind=kind)) == ["no_interval"]
    assert codes(floor(0.2, index="cramers_v", test="none")) == []
    bootstrapped = floor(0.2, index="normalized_mutual_information")
    assert codes(bootstrapped) == ["no_interval"]
    assert codes(bootstrapped, "all") == []
    assert codes(replace(bootstrapped, kind="max_drop"), "all") == ["no_interval"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_rule_none_of_whose_results_was_tested_does_not_pass(policy: PolicyName) -> None:
    heavy = tabled([[450, 50], [50, 450]], weighted=True)
    result = judged(drop(policy=policy), heavy, heavy)
    assert result.verdict == "inconclusive"


def test_a_class_without_items_takes_no_part() -> None:
    true = np.repeat([0, 1], 500)
    side = side_of(true, true, 3)
    result = judged(drop(), side, side)
    assert verdicts(result) == ["pass", "pass"]
    assert result.verdict == "pass"
    (warning,) = [w for w in result.warnings if w.code == "classes_left_out"]
    assert "leaves out 1 of its classes" in warning.detail
    assert "class `2`" in warning.detail
    named = judged(drop(classes=("0", "2")), side, side)
    assert [(r.verdict, r.reason) for r in named.results] == [
        ("pass", "within_limit"),
        ("not_comparable", "no_items"),
    ]
    assert (named.verdict, named.judged) == ("fail", False)


def test_classes_with_few_items_are_left_out_where_the_rule_says_so() -> None:
    true = np.repeat([0, 1, 2], [500, 19, 20])
    side = side_of(true, true, 3)
    for classes in ("all", ("0", "1", "2")):
        result = judged(drop(min_items=20, classes=classes), side, side)
        assert [r.class_ for r in result.results if r.average_of is None] == ["0", "2"]
        (warning,) = [w for w in result.warnings if w.code == "classes_left_out"]
        assert "which do not have 20 items on both sides" in warning.detail
        assert "class `1`" in warning.detail
    nothing = judged(drop(min_items=1000), side, side)
    assert [(r.verdict, r.reason) for r in nothing.results] == [("not_comparable", "no_class")]
    assert nothing.verdict == "fail"


AVERAGED = ("macro_f1", "macro_recall", "macro_precision", "csi", "geometric_mean_recall")


@pytest.mark.parametrize("index", AVERAGED)
def test_an_average_leaves_out_classes_with_few_items(index: str) -> None:
    """One class of four items makes a rule on an average undecided; without it, it passes."""
    true = np.repeat([0, 1, 2], [1000, 1000, 4])
    side = side_of(true, true, 3)
    rule = drop(0.02, index=index, classes=None)
    assert one(judged(rule, side, side)).verdict == "undecided"
    without = judged(replace(rule, min_items=20), side, side)
    assert (one(without).verdict, without.verdict) == ("pass", "pass")
    (warning,) = [w for w in without.warnings if w.code == "classes_left_out"]
    assert "class `2`" in warning.detail
    two = side_of(true[:2000], true[:2000], 2)
    alone = one(judged(rule, two, two))
    assert limits(one(without)) == pytest.approx(limits(alone), rel=0.02)
    everything = one(judged(replace(rule, min_items=5000), side, side))
    assert (everything.verdict, everything.reason) == ("not_comparable", "no_class")


def test_a_floor_of_an_average_leaves_out_classes_with_few_items() -> None:
    table = tabled([[95, 5, 0], [5, 95, 0], [4, 0, 0]])
    rule = floor(0.85, index="balanced_accuracy")
    assert one(judged(rule, table)).verdict == "fail"
    without = one(judged(replace(rule, min_items=5), table))
    assert without.verdict == "pass"
    assert without.observed == pytest.approx(0.95)


def test_an_average_leaves_out_what_has_few_items_on_one_side() -> None:
    many, few = tabled(np.diag([500.0, 500, 50])), tabled(np.diag([500.0, 500, 5]))
    rule = drop(0.02, index="macro_recall", classes=None, min_items=20)
    for candidate, baseline in ((many, few), (few, many)):
        result = judged(rule, candidate, baseline)
        assert "class `2`" in result.warnings[0].detail
        assert one(result).verdict == "pass"


def test_no_rule_but_one_about_classes_leaves_any_out() -> None:
    for rule in (floor(0.5, min_items=3), cell(0.1, min_items=3)):
        with pytest.raises(RuleError) as refused:
            check_gate(gate_of(rule))
        assert refused.value.code == "no_classes"


def test_no_discordant_pair_passes_only_with_enough_items() -> None:
    assert one(judged(drop(classes=("0",)), *paired(0, 0, 500, 0))).verdict == "pass"
    assert one(judged(drop(classes=("0",)), *paired(0, 0, 5, 0))).verdict == "undecided"


def test_a_thousand_tiny_classes_do_not_fail_by_noise() -> None:
    random = np.random.default_rng(0)
    true = random.integers(0, 1000, 4000)
    old, new = (np.where(random.random(4000) < 0.1, (true + 1) % 1000, true) for _ in range(2))
    result = judged(drop(), side_of(true, new, 1000), side_of(true, old, 1000))
    assert "fail" not in verdicts(result)
    assert verdicts(result).count("undecided") > 980
    codes = [w.code for w in result.warnings]
    assert codes == ["classes_left_out", "average_leaves_out"]
    assert result.verdict == "pass"


@pytest.mark.parametrize("lost", ["value", "gains", "losses", "trials"])
@pytest.mark.parametrize("test", ["auto", "none"])
def test_nothing_that_is_not_a_number_passes(lost: str, test: Literal["auto", "none"]) -> None:
    candidate, baseline = dropped(0.0)
    gate = Gate(rules=(drop(classes=("0",), test=test),))
    comparison = compared(candidate, baseline, gate, Options())
    assert comparison is not None
    getattr(comparison.per_class, lost)[...] = np.nan
    result = one(run_gate(gate, candidate, comparison, Options(), today=TODAY))
    by_points = "pass" if test == "none" else "undecided"
    assert result.verdict == ("undefined" if lost == "value" else by_points)


# Policies, effects, severity


def test_each_class_has_to_pass_where_the_policy_says_so() -> None:
    sides = paired(1, 2, 35, 3)
    rule = drop(classes=("0", "1"))
    assert verdicts(judged(rule, *sides)) == ["undecided", "pass"]
    assert judged(replace(rule, policy="each"), *sides).verdict == "inconclusive"
    wide = judged(replace(rule, limit=0.1), *sides)
    assert (verdicts(wide), wide.verdict) == (["undecided", "pass"], "pass")
    assert judged(replace(rule, limit=0.1, policy="each"), *sides).verdict == "inconclusive"


def test_a_rule_that_no_class_is_shown_to_keep_does_not_pass() -> None:
    before = np.array([[15, 0], [0, 15]])
    for lost in (4, 8, 12):
        after = np.array([[15, 0], [lost, 15 - lost]])
        gate_result = judged(drop(0.1, classes="all"), tabled(after, "t"), tabled(before, "t"))
        assert gate_result.verdict != "pass", lost
    sides = paired(1, 2, 35, 3)
    assert judged(drop(classes=("0",)), *sides).verdict == "inconclusive"
    rules = (drop(classes=("0",), id="a", severity="warn"), drop(classes=("1",), id="b"))
    assert judged(gate_of(*rules), *sides).verdict == "pass"


def test_an_overall_rule_has_to_pass() -> None:
    sides = paired(1, 2, 35, 3)
    rule = drop(0.005, index="accuracy", classes=None)
    assert one(judged(rule, *sides)).verdict == "undecided"
    assert judged(rule, *sides).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("effect", "verdict"), [("pass", "pass"), ("warn", "inconclusive"), ("fail", "fail")]
)
def test_undecided_results_lead_where_the_effects_say(effect: Effect, verdict: str) -> None:
    rule = drop(0.005, index="accuracy", classes=None)
    result = judged(gate_of(rule, effects={"undecided": effect}), *paired(1, 2, 35, 3))
    assert (one(result).verdict, one(result).effect) == ("undecided", effect)
    assert result.verdict == verdict


def test_severity_keeps_every_effect_at_a_warning() -> None:
    advisory = drop(severity="warn", classes=("0",))
    result = judged(advisory, *dropped(0.1))
    assert (one(result).verdict, one(result).effect) == ("fail", "warn")
    assert result.verdict == "inconclusive"
    missing = judged(drop(severity="warn", classes=("x",)), *dropped(0.1))
    assert (one(missing).verdict, one(missing).effect) == ("not_comparable", "warn")
    assert missing.verdict == "inconclusive"
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


def test_a_waiver_speaks_to_what_would_fail_through_effects_as_well() -> None:
    sides = paired(1, 2, 35, 3)
    gate = gate_of(drop(0.04, classes=("0",)), waivers=(waiver(),), effects={"undecided": "fail"})
    assert one(judged(gate, *sides)).verdict == "waived"
    assert one(judged(replace(gate, effects={}), *sides)).verdict == "undecided"


def test_what_has_no_value_is_never_waived() -> None:
    here, there = (tabled(np.eye(2) * 500, name) for name in "ab")
    result = judged(gate_of(drop(), waivers=(waiver(ceiling=0.9),)), here, there)
    assert set(verdicts(result)) == {"not_comparable"}


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (drop(id="a"), 0.99, 3.0),
        (drop(id="a"), 0.0, -0.01),
        (floor(0.8, id="a"), 0.7, 70.0),
        (floor(9.0, id="a", index="log_loss", kind="max_value"), 12.0, -1.0),
    ],
)
def test_a_ceiling_has_the_unit_of_its_rule(rule: Rule, good: float, bad: float) -> None:
    for ceiling, codes in ((good, []), (bad, ["out_of_range"])):
        gate = gate_of(rule, waivers=(waiver(rule="a", ceiling=ceiling),))
        assert [mistake.code for mistake in mistakes(gate)] == codes


# What a gate may ask


@pytest.mark.parametrize(
    ("gate", "place", "code"),
    [
        (gate_of(floor(0.9, index="acuracy")), ("rules", 0, "index"), "unknown_index"),
        (gate_of(drop(index="kappa")), ("rules", 0, "index"), "unknown_index"),
        (gate_of(floor(0.9, index="recall")), ("rules", 0, "index"), "unknown_index"),
        (gate_of(floor(0.9, index="expected_cost")), ("rules", 0, "index"), "option_missing"),
        (gate_of(drop(index="error_rate", classes=None)), ("rules", 0, "max_drop"), "use_max_gain"),
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
        (
            gate_of(drop(), effects={"no_baseline": "pass"}),
            ("effects", "no_baseline"),
            "invalid_effect",
        ),
        (gate_of(drop(), effects={"fial": "warn"}), ("effects", "fial"), "unknown_verdict"),
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
    rules = (drop(0.0), floor(1, index="recall"), drop(2.0))
    texts = [str(next(mistakes(gate_of(rule)))) for rule in rules]
    assert "min_gain: 0" in texts[0]
    assert "macro_recall" in texts[1]
    assert "max_drop of recall must be below 1" in texts[2]


# Laws


def outcomes() -> Iterator[st.SearchStrategy[int]]:
    yield from (st.integers(0, 60) for _ in range(4))


@given(*outcomes(), st.sampled_from([0.01, 0.05, 0.2]))
def test_a_verdict_is_what_the_printed_limits_say(
    gains: int, losses: int, right: int, wrong: int, limit: float
) -> None:
    assume(gains + losses + right + wrong)
    result = one(judged(drop(limit, classes=("0",)), *paired(gains, losses, right, wrong)))
    if result.lower_limit is None:
        assert (result.verdict, result.reason) == ("not_comparable", "no_items")
        return
    low, high = limits(result)
    if min(abs(low + limit), abs(high + limit)) > 1e-9:
        expected = "pass" if low > -limit else "fail" if high < -limit else "undecided"
        assert result.verdict == expected


@given(*outcomes())
def test_losing_more_never_improves_a_verdict(
    gains: int, losses: int, right: int, wrong: int
) -> None:
    order = ["pass", "undecided", "fail"]
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
        low, high = limits(result)
        widths.append(high - low)
    assert widths[1] > 2 * widths[0]


# Groups


def grouped(groups: int, size: int) -> Side:
    """A model of recall .95 on items in groups."""
    true = np.arange(groups * size) % 2
    wrong = np.random.default_rng(groups).random(true.size) < 0.05
    predicted = np.where(wrong, 1 - true, true)
    side = side_of(true, predicted, 2)
    assert side.items is not None
    items = replace(side.items, groups=np.repeat(np.arange(groups), size))
    return replace(side, items=items)


@pytest.mark.parametrize(
    "rule",
    [
        floor(0.5),
        floor(0.5, index="recall", classes=("0",)),
        drop(0.9),
        drop(0.9, index="macro_f1", classes=None),
    ],
)
def test_nothing_passes_with_fewer_than_eight_effective_groups(rule: Rule) -> None:
    many, few = (judged(rule, side, side) for side in (grouped(40, 40), grouped(7, 400)))
    assert many.verdict == "pass"
    assert few.verdict == "inconclusive"
    assert {(r.verdict, r.reason) for r in few.results} == {("undecided", "few_groups")}
    assert few.results[0].message.endswith(
        "but its items are in fewer than 8 effective groups: nothing passes."
    )


@pytest.mark.parametrize("with_averages", [True, False])
def test_rules_about_one_index_decide_as_each_does_alone(*, with_averages: bool) -> None:
    """An average of classes is an overall index, too, that another rule may be about."""
    sides = tabled([[80, 24], [12, 84]]), tabled([[93, 11], [8, 88]])
    rules = [
        Rule(index="macro_f1", kind="max_drop", limit=0.02),
        Rule(index="macro_f1", kind="max_change", limit=0.09),
        Rule(index="macro_f1", kind="min_gain", limit=0.01),
        Rule(index="accuracy", kind="min_value", limit=0.75),
        Rule(index="balanced_accuracy", kind="min_value", limit=0.75),
    ]
    if with_averages:
        rules.append(Rule(index="f1", classes="all", kind="max_drop", limit=0.05))
    together = [each.p_value for each in judged(gate_of(*rules), *sides).results]
    alone = [each.p_value for rule in rules for each in judged(gate_of(rule), *sides).results]
    assert None not in alone
    assert together == alone
