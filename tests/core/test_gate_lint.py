"""Lint: what a gate would do to a model that has not changed, and what it would see."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from rprime.core.arrays import Array
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.compare import compare
from rprime.core.comparison.difference import TANGO, Difference
from rprime.core.gates.evidence import Rows, evidence_of
from rprime.core.gates.kinds import VerdictCode
from rprime.core.gates.lint import LintReport, lint
from rprime.core.gates.rules import Gate, Rule, RuleError
from rprime.core.gates.sentences import number
from rprime.core.gates.simulation import LintError
from rprime.core.gates.unchanged_model import SimulatedPredictions, UnchangedModel
from rprime.core.gates.verdict import Plan, RuleTests, decide
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import compute
from tests.core.comparison_sides import names, sides_of, table_side
from tests.core.gate_cases import drop, floor, gate_of, predictions_of, tabled

Pairing = Literal["paired", "unpaired"]


def even(recall: float, items: int = 200, k: int = 10) -> Array:
    """Table of k classes of equal size and recall, errors spread evenly."""
    wrong = round(items * (1 - recall))
    counts = np.zeros((k, k))
    for i in range(k):
        others = [j for j in range(k) if j != i]
        np.add.at(counts[i], [others[e % (k - 1)] for e in range(wrong)], 1)
        counts[i, i] = items - wrong
    return counts


def linted(
    gate: Gate | Rule,
    counts: Array,
    pairing: Pairing = "paired",
    *,
    replicates: int = 1000,
    seed: int = 0,
    discordance: float = 0.06,
) -> LintReport:
    gate = gate_of(gate) if isinstance(gate, Rule) else gate
    return lint(
        gate,
        tabled(counts),
        pairing=pairing,
        replicates=replicates,
        seed=seed,
        discordance=discordance,
    )


# What docs/gates.md says of gates


def test_two_points_on_any_class_fail_most_unchanged_models() -> None:
    loose = drop(0.02, test="none")
    report = linted(loose, even(0.94), "unpaired")
    assert 0.75 < report.false_fail_rate < 0.92
    assert report.inconclusive_rate == 0
    assert any("compares point values" in sentence for sentence in report.advice)


@pytest.mark.parametrize("pairing", ["paired", "unpaired"])
@pytest.mark.parametrize("index", ["recall", "r_prime", "precision", "f1", "class_mcc"])
def test_tested_rules_hardly_ever_fail_an_unchanged_model(pairing: Pairing, index: str) -> None:
    report = linted(drop(0.02, index=index), even(0.94), pairing)
    assert report.false_fail_rate < 0.01


def test_proof_in_every_class_is_almost_never_attained() -> None:
    rule = drop(0.05, policy="each")
    report = linted(rule, even(0.7, items=1000), discordance=0.4)
    assert report.inconclusive_rate > 0.85
    assert any("must pass" in sentence for sentence in report.advice)
    average = linted(replace(rule, policy=None), even(0.7, items=1000), discordance=0.4)
    assert (average.false_fail_rate, average.inconclusive_rate < 0.4) == (0.0, True)


# The answer itself


def test_the_same_seed_gives_the_same_answer() -> None:
    gate = gate_of(drop(0.02), floor(0.9), drop(index="macro_f1", classes=None))
    assert linted(gate, even(0.9), seed=3) == linted(gate, even(0.9), seed=3)
    assert linted(drop(0.02, test="none"), even(0.9), seed=3) != linted(
        drop(0.02, test="none"), even(0.9), seed=4
    )


def test_every_result_has_its_line_in_order() -> None:
    gate = gate_of(drop(classes=("2", "0")), floor(0.9))
    report = linted(gate, even(0.9, k=3))
    assert [(r.id, r.class_) for r in report.rules] == [
        ("recall.max_drop", "2"),
        ("recall.max_drop", "0"),
        ("recall.max_drop", None),
        ("accuracy.min_value", None),
    ]


def test_chunks_of_replicates_do_not_change_what_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rprime.core.gates.simulation.CHUNK", 100 * 7)
    report = linted(drop(0.02, test="none"), even(0.94), "unpaired", replicates=500)
    assert 0.7 < report.false_fail_rate < 0.95
    assert report.false_fail_rate * 500 == pytest.approx(round(report.false_fail_rate * 500))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (floor(0.95, index="accuracy", classes=None), "fails an unchanged model in"),
        (floor(0.95, index="recall", classes="all"), "fails an unchanged model for class `"),
        (floor(0.88, index="accuracy", classes=None), "take a lower limit or more items."),
        (drop(0.01, index="accuracy", classes=None), "take a larger limit or more items."),
        (drop(0.02, index="accuracy", classes=None, kind="min_gain"), "demands a gain, so an"),
    ],
)
def test_advice_fits_the_kind_of_rule(rule: Rule, said: str) -> None:
    advice = linted(rule, even(0.9, 100, k=3), replicates=200).advice
    assert any(f"Rule {rule.name} " in text and said in text for text in advice), advice


def test_a_gate_without_rules_is_said_never_to_pass() -> None:
    report = linted(Gate(), even(0.9))
    assert (report.rules, report.false_fail_rate) == ((), 0.0)
    assert report.advice == ("The gate has no rules: it never passes.",)


def test_a_class_that_is_not_there_fails_always() -> None:
    report = linted(drop(classes=("x",)), even(0.9, k=3))
    assert report.false_fail_rate == 1.0
    assert report.rules[0].detectable_drop is None


def test_a_class_without_items_takes_no_part() -> None:
    counts = np.diag([300.0, 300.0, 0.0])
    counts[0, 1] = counts[1, 0] = 20
    report = linted(drop(0.2), counts)
    assert (report.false_fail_rate, report.inconclusive_rate) == (0.0, 0.0)
    assert [rule.class_ for rule in report.rules] == ["0", "1", None]


@pytest.mark.parametrize(
    "table",
    [
        ConfusionTable.dense(np.eye(2) * 9, unclassified=np.ones(2)),
        ConfusionTable.dense(np.eye(2) * 9, spurious=np.ones(2)),
        ConfusionTable.dense(np.eye(2) * 0.5),
        ConfusionTable.dense(np.eye(2), weighted=True),
        ConfusionTable.dense(np.ones((3, 2, 2))),
        ConfusionTable.sparse(np.arange(2), np.arange(2), np.ones(2), 2),
        ConfusionTable.dense(np.eye(300)),
    ],
)
def test_only_whole_classified_items_can_be_drawn(table: ConfusionTable) -> None:
    with pytest.raises(LintError):
        lint(gate_of(drop()), table_side(table))


def test_a_gate_that_cannot_mean_anything_is_refused() -> None:
    with pytest.raises(RuleError):
        linted(drop(0.0), even(0.9, k=3))


# What it sees


def test_smaller_classes_see_larger_drops_and_the_smallest_none() -> None:
    counts = np.zeros((3, 3))
    for i, items in enumerate((2000, 60, 3)):
        counts[i, i], counts[i, (i + 1) % 3] = items - items // 10, items // 10
    report = linted(drop(), counts)
    large, middle, tiny = (r.detectable_drop for r in report.rules if r.class_ is not None)
    assert large is not None
    assert middle is not None
    assert 0.05 < large < middle < 1
    assert tiny is None
    assert "Class `2` has 3 items: rule recall.max_drop finds no drop" in "".join(report.advice)
    seen = f"rule recall.max_drop finds a drop of {number(middle)} in 80 % of runs, and smaller "
    assert f"Class `1` has 60 items: {seen}" in "".join(report.advice)


def test_undecided_classes_are_explained() -> None:
    def said(*items: int) -> str:
        return " ".join(linted(drop(), np.diag(items).astype(float)).advice)

    assert "it would fail in 0 % and" in said(15, 15)
    assert "must pass, but the average stays undecided in 100 %" in said(15, 15)
    assert (
        "passes by its average. Of its results 1 class is often undecided, class `0` in 100 % of "
        "runs: `--strict` seldom passes them."
    ) in said(40, 2000)


def compared(
    draws: SimulatedPredictions, indices: tuple[str, ...], *, paired: bool
) -> AlignedValues:
    pairs = draws if paired else None
    return draws.compared(Options(indices=indices), names(draws.k), pairs)


def failing(rule: Rule, counts: Array, lost: float, pairing: Pairing, family: int) -> float:
    """Share of models that lost a share of class 0 which the rule fails, among a family."""
    paired = pairing == "paired"
    model = UnchangedModel.paired(counts, 0.06) if paired else UnchangedModel.unpaired(counts)
    random = np.random.default_rng(1)
    draws = model.draw(4000, random)
    right = draws.kept[:, 0, 0], draws.both[:, 0, 0], draws.new[:, 0, 0] - draws.both[:, 0, 0]
    kept, both, alone = (random.binomial(part.astype(int), lost) for part in right)
    draws.kept[:, 0, 0] -= kept
    draws.old[:, 0, 0] += kept
    draws.both[:, 0, 0] -= both
    draws.new[:, 0, 0] -= both + alone
    draws.new[:, 0, 1] += kept + both + alone
    aligned = compared(draws, (rule.index,), paired=paired)
    rows = Rows(names(len(counts)), np.arange(len(counts)))
    difference = aligned.of_classes(rule.index)
    draft = evidence_of(rule, rows, difference, difference.items, against="baseline")
    tests = RuleTests([draft], Plan(gate_of(rule), [draft]))
    decisions = decide(tests, 0.05 / family * len(counts))
    return float((decisions.verdicts[:, 0] == VerdictCode.fail).mean())


@pytest.mark.parametrize("pairing", ["paired", "unpaired"])
@pytest.mark.parametrize("items", [60, 200, 1000])
def test_the_detectable_drop_is_detected_four_times_in_five(pairing: Pairing, items: int) -> None:
    counts, rule = even(0.9, items, k=5), drop()
    seen = linted(rule, counts, pairing, replicates=10).rules[0].detectable_drop
    assert seen is not None
    assert failing(rule, counts, seen / 0.9, pairing, 5) == pytest.approx(0.8, abs=0.05)


def test_a_point_value_fails_half_the_time_on_its_limit_and_mostly_beyond_what_it_sees() -> None:
    counts, rule = even(0.9, 500, k=3), drop(test="none")
    seen = linted(rule, counts, replicates=10).rules[0].detectable_drop
    assert seen is not None
    assert 0.05 < seen < 0.08
    assert failing(rule, counts, seen / 0.9, "paired", 3) == pytest.approx(0.8, abs=0.08)


def test_a_floor_counts_from_where_the_model_stands() -> None:
    near, far = (linted(floor(limit), even(0.9)).rules[0].detectable_drop for limit in (0.88, 0.8))
    assert near is not None
    assert far is not None
    assert far - near == pytest.approx(0.08, abs=0.01)
    assert near > 0.02


@pytest.mark.parametrize("limit", [0.0, 0.02])
def test_a_drop_of_errors_is_a_gain_of_right_answers(limit: float) -> None:
    gain, fall = (
        linted(drop(limit, index=index, classes=None, kind=kind), even(0.9)).rules[0]
        for index, kind in (("accuracy", "min_gain"), ("error_rate", "min_drop"))
    )
    assert fall.detectable_drop == pytest.approx(gain.detectable_drop)


def test_floors_below_the_model_are_hardly_ever_missed() -> None:
    gate = gate_of(
        floor(0.88),
        floor(0.7, index="recall", classes="all"),
        floor(0.85, index="f1", classes="all"),
    )
    report = linted(gate, even(0.93))
    assert report.false_fail_rate < 0.01


def cell(true: str, predicted: str, limit: float) -> Rule:
    return Rule(confusion=(true, predicted), kind="max_gain", limit=limit)


@pytest.mark.parametrize("pairing", ["paired", "unpaired"])
def test_a_rule_about_a_cell_of_two_classes_is_that_of_the_recall(pairing: Pairing) -> None:
    counts = even(0.9, 300, k=2)
    gate = gate_of(cell("0", "1", 0.05), drop(classes=("0",)))
    share, recall = linted(gate, counts, pairing, replicates=200).rules
    assert share.detectable_drop == pytest.approx(recall.detectable_drop)
    assert share.inconclusive_rate == recall.inconclusive_rate


def test_a_cell_of_a_class_that_is_not_there_fails_always() -> None:
    assert linted(cell("0", "x", 0.05), even(0.9, k=3), replicates=10).false_fail_rate == 1.0


def test_an_average_leaves_out_classes_with_few_items() -> None:
    counts = even(0.9, 400, k=3)
    counts[2] = [0, 1, 3]
    rule = drop(index="macro_recall", classes=None)
    whole, without = (
        linted(replace(rule, min_items=least), counts).inconclusive_rate for least in (0, 10)
    )
    assert whole > 0.9
    assert without < 0.1


# One engine


def joint_of(draws: SimulatedPredictions) -> Array:
    """One joint table with the cells of one draw: coincidences first, the rest matched in order."""
    k = draws.kept.shape[-1]
    joint = np.zeros((k, k + 1, k + 1), dtype=int)
    for r in range(k):
        joint[r, range(k), range(k)] = (draws.kept + draws.both)[0, r]
        left = np.repeat(range(k), (draws.old - draws.both)[0, r].astype(int))
        came = np.repeat(range(k), (draws.new - draws.both)[0, r].astype(int))
        for shift in range(len(came)):
            if not (left == np.roll(came, shift)).any():
                came = np.roll(came, shift)
                break
        np.add.at(joint[r], (left, came), 1)
    return joint


KEYS = ("recall", "r_prime", "precision", "false_positive_rate", "f1", "class_mcc", "specificity")
OVERALL = ("accuracy", "kappa", "macro_f1", "error_rate", "weighted_precision", "micro_f1", "mcc")


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_simulations_and_comparisons_have_the_same_evidence(*, paired: bool, known: bool) -> None:
    draws = UnchangedModel.paired(even(0.7, 90, k=4), 0.3).draw(1, np.random.default_rng(8))
    joint = joint_of(draws)
    candidate, baseline = sides_of(joint)
    if not paired:
        candidate, baseline = (
            replace(side, items=None, fingerprint=None) for side in (candidate, baseline)
        )
    if known:
        draws = predictions_of(joint[None, :, :4, :4].astype(float))
    comparison = compare(candidate, baseline, Options(indices=KEYS + OVERALL))
    simulation = compared(draws, KEYS + OVERALL, paired=paired)
    for key in KEYS:
        same(simulation.of_classes(key)[0], comparison.of_classes(key), 1e-9)
    for key in OVERALL:
        expected = comparison.of_overall(key)[np.newaxis]
        difference = simulation.of_overall(key)
        exact = known or not paired or expected.methods[0] == TANGO
        same(difference, expected, 1e-9 if exact else 0.05)


def same(difference: Difference, expected: Difference, tolerance: float) -> None:
    assert difference.value == pytest.approx(expected.value, abs=1e-12)
    assert np.array_equal(difference.methods, expected.methods)
    for threshold in (-0.05, 0.01):
        assert difference.p(threshold)[0] == pytest.approx(
            expected.p(threshold)[0], rel=tolerance, abs=tolerance
        )


def test_draws_keep_the_class_sizes_and_the_discordance() -> None:
    counts = even(0.8, 500, k=4)
    draws = UnchangedModel.paired(counts, 0.1).draw(500, np.random.default_rng(2))
    for table in (draws.baseline, draws.candidate):
        assert np.array_equal(table.support, np.full((500, 4), 500.0))
    flips = (draws.old + draws.new - 2 * draws.both).diagonal(axis1=-2, axis2=-1)
    assert flips.mean() / 500 == pytest.approx(0.1, abs=0.003)
    assert draws.baseline.correct.mean() / 500 == pytest.approx(0.8, abs=0.003)


def test_more_items_than_can_be_matched_stand_for_their_mean() -> None:
    draws = UnchangedModel.unpaired(np.full((2, 2), 4e8)).draw(3, np.random.default_rng(0))
    assert draws.both == pytest.approx(np.full((3, 2, 2), 2e8), rel=1e-3)


def test_a_class_that_is_never_wrong_cannot_be_discordant() -> None:
    model = UnchangedModel.paired(np.diag([50.0, 60.0]), 0.06)
    draws = model.draw(20, np.random.default_rng(0))
    assert np.array_equal(draws.candidate.correct, draws.baseline.correct)


def test_few_items_of_a_class_do_not_hide_that_models_differ() -> None:
    small = np.diag(np.full(100, 3.0))
    for i in range(30):
        small[i, [i, i + 1]] = 2.0, 1.0
    gate = gate_of(drop(0.02, index="accuracy", classes=None))
    few, many = (linted(gate, counts, replicates=400) for counts in (small, even(0.9, 150, k=2)))
    assert few.discordance == pytest.approx(0.06)
    assert few.inconclusive_rate == pytest.approx(many.inconclusive_rate, abs=0.08)


def test_the_discordance_is_that_which_the_classes_allow() -> None:
    gate = gate_of(drop(0.05, index="accuracy", classes=None))
    for discordance, reached in ((0.06, 0.06), (0.15, 0.15), (0.5, 0.18)):
        report = linted(gate, even(0.9), discordance=discordance, replicates=100)
        assert report.discordance == pytest.approx(reached)
        assert any(f"on {100 * reached:g} % of the items" in text for text in report.advice)
    assert linted(gate, even(0.9), "unpaired", replicates=100).discordance is None


def test_expected_draws_are_the_table_itself() -> None:
    counts = even(0.87, 123, k=5)
    expected = UnchangedModel.paired(counts, 0.06).expected()
    assert np.array_equal(expected.candidate.cells.counts, counts)
    values = compute(expected.baseline, Options(), select(Options(indices=("accuracy",))))
    assert values.lookup("overall", "accuracy") == pytest.approx(0.87, abs=0.01)


def test_the_answers_say_how_much_rests_on_the_table() -> None:
    small, large = (
        linted(drop(), even(0.9, items, k=4), "unpaired", replicates=300) for items in (60, 6000)
    )
    widths = []
    for report in (small, large):
        low, high = report.rules[0].detectable_interval
        seen = report.rules[0].detectable_drop
        assert low is not None
        assert high is not None
        assert seen is not None
        assert low < seen < high
        widths.append((high - low) / seen)
        assert report.inconclusive_interval[0] <= report.inconclusive_rate
        assert report.inconclusive_rate <= report.inconclusive_interval[1]
    assert widths[0] > 3 * widths[1]
    assert "are a sample: on other test sets of this size" in small.advice[2]


def test_a_perfect_table_is_not_taken_to_be_perfect() -> None:
    report = linted(drop(), np.diag([40.0, 40.0, 40.0]), "unpaired")
    low, high = report.rules[0].detectable_interval
    assert low is not None
    assert high is None or high > low


@pytest.mark.parametrize("index", ["kappa", "mcc", "accuracy", "macro_recall"])
@pytest.mark.parametrize("pairing", ["paired", "unpaired"])
def test_the_interval_contains_the_own_value_of_a_perfect_table(
    index: str, pairing: Pairing
) -> None:
    rule = drop(index=index, classes=None)
    line = linted(rule, np.diag([100.0] * 10), pairing, replicates=20).rules[0]
    low, high = line.detectable_interval
    assert low is not None
    assert line.detectable_drop is not None
    assert low <= line.detectable_drop
    assert high is None or line.detectable_drop <= high


@pytest.mark.slow
def test_the_intervals_are_those_of_new_test_sets() -> None:
    # Tables drawn from the true shares, each linted alone, are what the interval predicts.
    truth = even(0.85, 200, k=3)
    random = np.random.default_rng(5)
    shares = truth / truth.sum(-1, keepdims=True)
    tables = [random.multinomial(200, shares).astype(np.float64) for _ in range(60)]
    every = [linted(drop(), t, "unpaired", replicates=100).rules[0] for t in (*tables, truth)]
    seen = [line.detectable_drop for line in every[:-1]]
    low, high = every[-1].detectable_interval
    assert low is not None
    assert high is not None
    inside = [drop is not None and low <= drop <= high for drop in seen]
    assert np.mean(inside) > 0.85


# Models that lose something


def test_lint_says_how_often_worse_models_pass() -> None:
    report = linted(drop(0.1), even(0.9, 30, k=10), replicates=4000)
    assert [(c.classes, c.times_limit) for c in report.losing] == [
        ("all", 1.0),
        ("all", 1.5),
        ("smallest", 2.0),
        ("median", 2.0),
        ("largest", 2.0),
    ]
    assert [c.lost for c in report.losing] == pytest.approx([0.1, 0.15, 0.2, 0.2, 0.2], abs=1e-5)
    # The rates of real gates on real predictions: tests/simulation/test_gate_averages.py.
    every, more, *single = (c.pass_rate for c in report.losing)
    assert 0.02 <= every <= 0.08
    assert more <= 0.01
    assert all(0.45 <= rate <= 0.65 for rate in single)
    assert report.advice[1].startswith("It passes in ")


def test_the_loss_of_an_index_is_that_which_moves_it_by_the_limit() -> None:
    counts = even(0.9, 100, k=4)
    (every, *_), (of_f1, *_) = (
        linted(drop(0.05, index=index), counts, replicates=200).losing for index in ("recall", "f1")
    )
    assert every.lost == pytest.approx(0.05, abs=1e-5)
    lost = counts + of_f1.lost * 100 * ((counts - np.diag(np.diag(counts))) / 10 - np.eye(4))

    def f1(table: Array) -> float:
        return float(np.mean(2 * np.diag(table) / (table.sum(0) + table.sum(1))))

    assert f1(counts) - f1(lost) == pytest.approx(0.05, abs=1e-5)


def test_a_gate_about_values_has_no_models_that_lose_something() -> None:
    assert linted(floor(0.5), even(0.9, 100, k=3), replicates=200).losing == ()


def test_an_unchanged_model_passes_the_smallest_limit_in_8_of_10_builds() -> None:
    counts = even(0.9, 90, k=4)
    limit = linted(drop(0.1, classes=("0",)), counts, replicates=200).rules[0].smallest_limit
    assert limit is not None
    there = linted(drop(limit, classes=("0",)), counts, replicates=4000)
    assert 0.7 <= 1 - there.inconclusive_rate - there.false_fail_rate <= 0.9
