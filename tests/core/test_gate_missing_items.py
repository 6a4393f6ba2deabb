"""Gates on sides with ids: leaving items out never passes what wrong answers would not."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import compare
from rprime.core.gates.gate import run_gate
from rprime.core.gates.results import GateResult
from rprime.core.gates.rules import Gate, Rule
from rprime.core.options import Options
from rprime.core.slices.slices import SliceColumn, Slices
from tests.core.comparison_sides import side_of
from tests.core.gate_cases import TODAY, drop, floor, gate_of

Codes = NDArray[np.intp]
ITEMS = 2000
TRUE = (np.arange(ITEMS) % 10 == 0).astype(np.intp)
"""200 items of class 1."""
OLD = np.where(np.arange(ITEMS) % 7 == 0, 0, TRUE)
BAD = np.where((TRUE == 1) & (np.arange(ITEMS) > 200), 0, OLD)
"""179 of the items of class 1 are called 0."""
LOST = (TRUE == 1) & (np.arange(ITEMS) > 200)
RULES = (drop(0.02, index="accuracy", classes=None), drop(0.1, min_items=10))


def side(
    predicted: Codes, kept: NDArray[np.bool_] | None = None, true: Codes = TRUE, k: int = 2
) -> Side:
    """Some items with their ids."""
    places = np.flatnonzero(np.ones(len(true), bool) if kept is None else kept)
    plain = side_of(true[places], predicted[places], k)
    assert plain.items is not None
    items = replace(plain.items, ids=places.astype(np.uint64))
    return replace(plain, items=items, fingerprint=f"{hash((places.tobytes(), true.tobytes()))}")


def judged(gate: Gate, candidate: Side, baseline: Side) -> GateResult:
    options = Options(indices=gate.indices)
    comparison = compare(
        candidate,
        baseline,
        options,
        accept_removed=gate.accept_removed,
        accept_relabelled=gate.accept_relabelled,
    )
    return run_gate(gate, candidate, comparison, options, today=TODAY)


def test_items_that_are_all_there_change_nothing() -> None:
    gate = gate_of(*RULES)
    assert judged(gate, side(OLD), side(OLD)).verdict == "pass"
    assert judged(gate, side(BAD), side(OLD)).verdict == "fail"


def test_leaving_out_the_wrong_rows_of_a_class_does_not_pass() -> None:
    result = judged(gate_of(*RULES), side(BAD, ~LOST), side(OLD))
    assert (result.verdict, result.judged) == ("fail", False)
    verdicts = {
        (r.index, r.class_): (r.verdict, r.missing_items)
        for r in result.results
        if r.average_of is None
    }
    assert verdicts == {
        ("accuracy", None): ("not_comparable", 179),
        ("recall", "0"): ("pass", None),
        ("recall", "1"): ("not_comparable", 179),
    }
    (lost,) = [r for r in result.results if r.class_ == "1"]
    assert lost.message == (
        "recall of class `1` cannot be compared: with the 179 missing items of the baseline "
        "counted as wrong, the rule would fail."
    )


def test_a_few_missing_items_leave_open_what_they_could_change() -> None:
    kept = np.ones(ITEMS, bool)
    kept[np.flatnonzero(TRUE == 1)[:20]] = False  # ten points of class 1
    result = judged(gate_of(drop(0.1)), side(OLD, kept), side(OLD))
    (of_class,) = [r for r in result.results if r.class_ == "1"]
    assert (of_class.verdict, of_class.reason) == ("undecided", "missing_items")
    assert of_class.message.endswith(
        "but with the 20 missing items of the baseline counted as wrong a drop of more than the "
        "0.1 allowed is not ruled out."
    )
    (average,) = [r for r in result.results if r.average_of]
    assert average.verdict == "pass"
    assert (result.verdict, result.undecided) == ("pass", 1)
    few = judged(gate_of(drop(0.2)), side(OLD, kept), side(OLD))
    assert {r.verdict for r in few.results} == {"pass"}


def test_a_class_that_wrong_answers_would_make_suspect_is_suspect_without_them() -> None:
    true = np.repeat(np.arange(10), 90)
    old = np.where(np.arange(900) % 10 == 0, (true + 1) % 10, true)
    lost = (true == 0) & (old == 0) & (np.arange(900) < 14)
    new = np.where(lost, 1, old)
    wrong = judged(gate_of(drop(0.1)), side(new, true=true, k=10), side(old, true=true, k=10))
    missing = judged(
        gate_of(drop(0.1)), side(new, ~lost, true=true, k=10), side(old, true=true, k=10)
    )
    suspects = [[r for r in result.results if r.suspect] for result in (wrong, missing)]
    assert [[r.class_ for r in named] for named in suspects] == [["0"], ["0"]]
    assert (wrong.verdict, missing.verdict) == ("inconclusive", "inconclusive")
    assert suspects[1][0].reason == "missing_items"
    assert suspects[1][0].message.endswith(
        ", but with the 12 missing items of the baseline counted as wrong a drop of more than the "
        "0.1 allowed is not ruled out."
    )


def test_a_missing_item_is_no_better_than_a_wrong_answer() -> None:
    """For each number of items: what is left out does not pass where wrong answers fail."""
    order = {"pass": 0, "inconclusive": 1, "fail": 2}
    places = np.flatnonzero((TRUE == 1) & (OLD == 1))
    for count in (1, 3, 6, 10, 15, 20, 30, 60):
        wrong, kept = OLD.copy(), np.ones(ITEMS, bool)
        wrong[places[:count]], kept[places[:count]] = 0, False
        gate = gate_of(drop(0.05, classes=("1",)))
        answered = judged(gate, side(wrong), side(OLD)).verdict
        left_out = judged(gate, side(wrong, kept), side(OLD)).verdict
        assert order[left_out] >= order[answered], count


def test_relabelled_items_count_as_missing_until_they_are_accepted() -> None:
    true = np.where(LOST, 0, TRUE)  # 179 wrong items now have the class that was predicted
    candidate, baseline = side(BAD, true=true), side(OLD)
    result = judged(gate_of(*RULES), candidate, baseline)
    assert (result.verdict, result.judged) == ("fail", False)
    accepted = judged(gate_of(*RULES, accept_relabelled=True), candidate, baseline)
    assert accepted.verdict == "pass"
    assert accepted.message.startswith(
        "The gate passed (179 relabelled items (179 become right for the candidate, "
    )
    removed = judged(gate_of(*RULES, accept_removed=True), side(BAD, ~LOST), baseline)
    assert removed.verdict == "pass"
    assert removed.message.startswith("The gate passed (179 removed items accepted)")


def test_a_class_that_is_gone_is_not_comparable() -> None:
    true = np.repeat(np.arange(30), 400)
    true[-20:] = 29
    kept = ~np.isin(true, (4, 17)) | (np.arange(true.size) % 1 != 0)
    candidate, baseline = (side(true, part, true, 30) for part in (kept, None))
    result = judged(gate_of(drop(0.1)), candidate, baseline)
    lost = {r.class_: (r.verdict, r.reason) for r in result.results if r.reason == "class_lost"}
    assert lost == dict.fromkeys(("4", "17"), ("not_comparable", "class_lost"))
    assert (result.verdict, result.judged) == ("fail", False)


def test_most_items_of_one_class_are_missed_although_they_are_few_of_all() -> None:
    true = np.concatenate([np.zeros(691, int), np.repeat(np.arange(1, 12), 800)])
    old = np.where(np.arange(true.size) % 9 == 0, (true + 1) % 12, true)
    kept = np.ones(true.size, bool)
    kept[:600] = False
    result = judged(gate_of(drop(0.1)), side(old, kept, true, 12), side(old, None, true, 12))
    (first,) = [r for r in result.results if r.class_ == "0"]
    assert (first.verdict, first.missing_items) == ("not_comparable", 600)
    assert result.verdict == "fail"


@pytest.mark.parametrize("rule", [floor(0.6), floor(0.5, index="recall", classes=("1",))])
def test_floors_count_missing_items_as_wrong(rule: Rule) -> None:
    every = judged(gate_of(rule), side(OLD), side(OLD))
    assert every.verdict == "pass"
    result = judged(gate_of(rule), side(OLD, ~LOST), side(OLD))
    verdict = "pass" if rule.classes is None else "not_comparable"
    assert result.results[0].verdict == verdict
    tight = judged(gate_of(floor(0.9, index="accuracy")), side(TRUE, ~LOST), side(TRUE))
    assert (tight.results[0].verdict, tight.results[0].missing_items) == ("undecided", 179)


def sliced(plain: Side, regions: Codes) -> Side:
    assert plain.items is not None
    column = SliceColumn(("EU", "US"), regions)
    cells = plain.items.true * 3 + plain.items.predicted
    return replace(plain, slices=Slices.of_items({"region": column}, (), cells, 2))


def test_a_slice_that_loses_its_wrong_items_is_not_comparable() -> None:
    regions = (np.arange(ITEMS) >= 190).astype(np.intp)
    wrong = OLD.copy()
    wrong[:170] = 1 - TRUE[:170]
    kept = np.arange(ITEMS) >= 170
    rule = drop(0.05, index="accuracy", classes=None, slices="region")
    baseline = sliced(side(OLD), regions)
    with_them = judged(gate_of(rule), sliced(side(wrong), regions), baseline)
    assert with_them.verdict == "fail"
    without = judged(gate_of(rule), sliced(side(wrong, kept), regions[kept]), baseline)
    (europe,) = [r for r in without.results if r.slice == {"region": "EU"}]
    assert (europe.verdict, europe.missing_items) == ("not_comparable", 170)
    assert without.verdict == "fail"


def test_a_cell_counts_all_missing_items_of_its_row() -> None:
    rule = Rule(confusion=("1", "0"), kind="max_gain", limit=0.1)
    kept = np.ones(ITEMS, bool)
    kept[np.flatnonzero(TRUE == 1)[:40]] = False
    result = judged(gate_of(rule), side(OLD, kept), side(OLD)).results[0]
    assert (result.verdict, result.missing_items) == ("not_comparable", 40)
    other = replace(rule, confusion=("0", "1"))
    assert judged(gate_of(other), side(OLD, kept), side(OLD)).results[0].verdict == "pass"


def test_more_than_a_tenth_missing_is_not_compared_at_all() -> None:
    kept = np.arange(ITEMS) >= 250
    result = judged(gate_of(*RULES), side(OLD, kept), side(OLD))
    assert {r.verdict for r in result.results} == {"not_comparable"}
