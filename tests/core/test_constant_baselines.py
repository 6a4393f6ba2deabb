"""Constant classifiers as baselines: values, intervals and verdicts against them."""

from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from sklearn import metrics
from sklearn.dummy import DummyClassifier

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side, constant_side
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.comparison.constant import ConstantKind
from rprime.core.gates.gate import run_gate
from rprime.core.gates.rules import Gate, Rule
from rprime.core.items import Items
from rprime.core.options import Options
from rprime.core.population import Population
from rprime.core.scores.scores import Scores
from rprime.core.slices.comparison import slice_changes
from rprime.core.slices.slices import SliceColumn, Slices
from rprime.core.table import ConfusionTable
from tests.core.comparison_sides import side_of, table_side

KINDS: tuple[ConstantKind, ...] = ("majority", "uniform", "prior")
SUPPORT = (60, 30, 10)
SHARES = [Fraction(n, sum(SUPPORT)) for n in SUPPORT]
EVERY = Options(families=("all",))


def candidate(seed: int = 0, n: int = 400, groups: Array | None = None) -> Side:
    rng = np.random.default_rng(seed)
    true = rng.choice(3, n, p=[0.6, 0.3, 0.1]).astype(np.uint8)
    predicted = np.where(rng.random(n) < 0.7, true, rng.integers(0, 4, n)).astype(np.uint8)
    return side_of(true, predicted, 3, groups)


def against(kind: ConstantKind, side: Side, options: Options = EVERY) -> Comparison:
    return compare(side, constant_side(kind, side, options.population), options, attributed=())


def of_counts(counts: ArrayLike) -> Side:
    return table_side(ConfusionTable.dense(np.asarray(counts)))


def exact() -> Side:
    return of_counts([[50, 8, 2], [5, 20, 5], [1, 1, 8]])


def of_baseline(comparison: Comparison, key: str) -> float:
    return float(comparison.of_overall(key).baseline)


def test_the_majority_is_the_dummy_classifier_of_the_most_frequent_class() -> None:
    side = candidate()
    assert side.items is not None
    true = side.items.true
    dummy = DummyClassifier(strategy="most_frequent").fit(true[:, None], true)
    predicted = dummy.predict(true[:, None])
    compared = against("majority", side)
    expected = {
        "accuracy": metrics.accuracy_score(true, predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(true, predicted),
        "macro_f1": metrics.f1_score(true, predicted, average="macro"),
        "weighted_f1": metrics.f1_score(true, predicted, average="weighted"),
        "kappa": metrics.cohen_kappa_score(true, predicted),
    }
    assert {key: of_baseline(compared, key) for key in expected} == pytest.approx(expected)


def numbers(comparison: Comparison) -> list[Array]:
    parts = (comparison.overall, comparison.per_class)
    return [n for part in parts for n in (part.numbers, *part.limits(0.025), part.reasons)]


@pytest.mark.parametrize("grouped", [False, True])
def test_the_majority_is_compared_as_predictions_of_one_class_are(grouped: bool) -> None:
    side = candidate(groups=np.arange(400) // 4 if grouped else None)
    assert side.items is not None
    constant = np.zeros_like(side.items.predicted)
    other = side_of(side.items.true, constant, 3, side.items.groups)
    other = replace(other, items=replace(side.items, predicted=constant))
    expected = compare(side, other, EVERY, attributed=())
    compared = against("majority", side)
    for ours, theirs in zip(numbers(compared), numbers(expected), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert compared.moves == expected.moves


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_gives_what_its_items_give(kind: ConstantKind) -> None:
    side = candidate()
    table = replace(side, items=None, fingerprint=None)
    for ours, theirs in zip(
        numbers(against(kind, side)), numbers(against(kind, table)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["uniform", "prior"])
def test_drawn_predictions_have_the_indices_of_the_expected_table(kind: ConstantKind) -> None:
    """Exact: recall of a class is q, precision its share, whatever is drawn."""
    shares = SHARES if kind == "prior" else [Fraction(1, 3)] * 3
    f1 = [2 * q * m / (q + m) for q, m in zip(shares, SHARES, strict=True)]
    expected = {
        "accuracy": sum(q * m for q, m in zip(shares, SHARES, strict=True)),
        "macro_recall": Fraction(1, 3),
        "macro_precision": Fraction(1, 3),
        "macro_f1": sum(f1) / 3,
        "kappa": 0,
        "mcc": 0,
        "mutual_information": 0,
    }
    compared = against(kind, exact())
    values = {key: of_baseline(compared, key) for key in expected}
    assert values == pytest.approx({k: float(v) for k, v in expected.items()}, abs=1e-14)
    assert compared.of_classes("recall").baseline == pytest.approx([float(q) for q in shares])
    assert compared.of_classes("precision").baseline == pytest.approx([float(m) for m in SHARES])


@pytest.mark.parametrize(("kind", "strategy"), [("uniform", "uniform"), ("prior", "stratified")])
def test_drawn_predictions_are_those_of_a_dummy_classifier_on_average(
    kind: ConstantKind, strategy: str
) -> None:
    true = np.repeat([0, 1, 2], [n * 1000 for n in SUPPORT])
    dummy = DummyClassifier(strategy=strategy, random_state=0).fit(true[:, None], true)
    predicted = dummy.predict(true[:, None])
    compared = against(kind, exact())
    assert of_baseline(compared, "accuracy") == pytest.approx(
        metrics.accuracy_score(true, predicted), abs=0.01
    )
    assert of_baseline(compared, "macro_f1") == pytest.approx(
        metrics.f1_score(true, predicted, average="macro"), abs=0.01
    )


def with_scores(side: Side) -> Side:
    assert side.items is not None
    rng = np.random.default_rng(1)
    scores = rng.dirichlet([1, 1, 1], side.items.true.size)
    return replace(side, scores=Scores(side.items.true, scores))


@pytest.mark.parametrize(("kind", "strategy"), [("majority", "most_frequent"), ("prior", "prior")])
def test_scores_are_the_probabilities_of_the_dummy_classifier(
    kind: ConstantKind, strategy: str
) -> None:
    side = with_scores(candidate())
    assert side.items is not None
    true = side.items.true
    dummy = DummyClassifier(strategy=strategy).fit(true[:, None], true)
    chances = dummy.predict_proba(true[:, None])
    compared = against(kind, side)
    assert of_baseline(compared, "macro_roc_auc") == 0.5
    squares = ((chances - np.eye(3)[true]) ** 2).sum(-1).mean()
    assert of_baseline(compared, "brier_score") == pytest.approx(squares)
    if kind == "prior":
        assert of_baseline(compared, "log_loss") == pytest.approx(metrics.log_loss(true, chances))


def test_equal_classes_have_the_first_one_as_majority() -> None:
    side = constant_side("majority", of_counts([[3, 1, 0], [2, 5, 0], [4, 0, 3]]))
    assert side.constant is not None
    assert side.constant.shares.tolist() == [0, 1, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_population_has_its_own_constant_classifier(kind: ConstantKind) -> None:
    shares = np.array([0.1, 0.2, 0.7])
    options = replace(EVERY, population=Population("true", shares))
    expected = {"majority": 0.7, "uniform": 1 / 3, "prior": float((shares**2).sum())}
    compared = against(kind, exact(), options)
    assert of_baseline(compared, "accuracy") == pytest.approx(expected[kind])
    difference = compared.of_overall("macro_recall")
    assert 0 < difference.standard_error < 0.2


TRUE_SHARES = np.array([0.6, 0.3, 0.1])
CONFUSION = np.array([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.3, 0.1, 0.6]])
SAMPLED = Options(indices=("accuracy", "macro_recall", "macro_f1", "kappa"))


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_cover_the_difference_from_the_classifier_as_it_is(kind: ConstantKind) -> None:
    """Of 95 %: at least 92 of 100, for new items judged by the constants that were taken."""
    rng, cells = np.random.default_rng(7), TRUE_SHARES[:, None] * CONFUSION
    rounds, covered = 300, np.zeros(4)
    for table in rng.multinomial(300, cells.ravel(), size=rounds):
        side = of_counts(table.reshape(3, 3))
        baseline = constant_side(kind, side)
        whole = of_counts(np.round(cells * 1e6))
        assert baseline.constant is not None
        fixed = replace(whole, table=baseline.constant.table(whole.table))
        expected = compare(whole, replace(fixed, constant=baseline.constant), SAMPLED).overall
        low, high = compare(side, baseline, SAMPLED).overall.limits(0.025)
        covered += (low <= expected.value) & (expected.value <= high)
    assert (covered / rounds > 0.92).all()


def test_drawn_predictions_have_no_changes_of_items() -> None:
    side = candidate()
    for kind in KINDS:
        compared = against(kind, side)
        assert compared.pairing == "paired"
        assert compared.comparability == "same_items"
        assert (compared.flips is None) == (kind != "majority")
        assert (compared.moves is None) == (compared.shift is None) == (kind != "majority")
        assert not {"same_predictions", "unpaired"} & {w.code for w in compared.warnings}


def sliced() -> Side:
    side, codes = candidate(), np.arange(400) % 2
    assert side.items is not None
    column = SliceColumn(("x", "y"), codes.astype(np.uint8))
    slices = Slices.of_items({"part": column}, (), side.items.cells(3), 3)
    return replace(side, slices=slices)


@pytest.mark.parametrize("kind", KINDS)
def test_every_slice_has_the_classifier_of_all_items(kind: ConstantKind) -> None:
    side = sliced()
    changes = slice_changes(against(kind, side, SAMPLED), SAMPLED.indices or ())
    assert changes is not None
    assert side.items is not None
    constant = constant_side(kind, side).constant
    assert constant is not None
    for place, name in enumerate(changes.names):
        part = np.arange(400) % 2 == ("x", "y").index(dict(name)["part"])
        items = Items(side.items.true[part], side.items.predicted[part])
        alone = side_of(items.true, items.predicted, 3)
        other = replace(alone, table=constant.table(alone.table), constant=constant, items=None)
        expected = compare(alone, other, SAMPLED).overall
        candidate_, baseline, value, low, high = changes.numbers[:5, :, place]
        np.testing.assert_allclose(candidate_, expected.candidate)
        np.testing.assert_allclose(baseline, expected.baseline, atol=1e-12)
        np.testing.assert_allclose(value, expected.value)
        np.testing.assert_allclose((low, high), expected.limits(0.025), atol=1e-9)


def verdicts(kind: ConstantKind, side: Side, rule: Rule) -> list[str]:
    gate = Gate(rules=(rule,))
    options = Options(indices=("accuracy", "recall", "macro_recall", "kappa"))
    comparison = against(kind, side, options)
    result = run_gate(gate, side, comparison, options, today=date(2026, 1, 1))
    return [judged.verdict for judged in result.results]


def gain(limit: float, **fields: Any) -> Rule:
    defaults: dict[str, Any] = {"kind": "min_gain", "index": "accuracy"}
    return Rule(limit=limit, **defaults | fields)


@pytest.mark.parametrize("kind", KINDS)
def test_a_gate_requires_a_gain_over_a_constant_classifier(kind: ConstantKind) -> None:
    side = candidate()
    value = float(against(kind, side, SAMPLED).of_overall("accuracy").value)
    assert verdicts(kind, side, gain(value - 0.1)) == ["pass"]
    assert verdicts(kind, side, gain(value)) == ["undecided"]
    assert verdicts(kind, side, gain(value + 0.1)) == ["fail"]


def test_a_model_that_guesses_gains_nothing() -> None:
    rng = np.random.default_rng(3)
    true, predicted = (rng.choice(3, 2000, p=[0.6, 0.3, 0.1]).astype(np.uint8) for _ in "ab")
    side = side_of(true, predicted, 3)
    assert verdicts("prior", side, gain(0.05)) == ["fail"]
    assert verdicts("majority", side, gain(0.0)) == ["fail"]
    assert verdicts("prior", side, gain(0.05, index="kappa")) == ["fail"]


@pytest.mark.parametrize("kind", ["uniform", "prior"])
def test_a_rule_about_a_cell_has_the_expected_share(kind: ConstantKind) -> None:
    """The items that the likeliest class would have are in no cell of a drawn prediction."""
    side = candidate(n=2000)
    rule = Rule(kind="max_gain", limit=0.01, confusion=("2", "0"))
    assert verdicts(kind, side, rule) == ["pass"]
    confused = of_counts([[60, 0, 0], [25, 5, 0], [0, 0, 10]])
    assert verdicts(kind, confused, replace(rule, confusion=("1", "0"))) == ["fail"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_rule_about_slices_has_the_classifier_in_each(kind: ConstantKind) -> None:
    side = sliced()
    assert verdicts(kind, side, gain(0.05, slices="part")) == ["pass", "pass"]
    assert "fail" in verdicts(kind, side, gain(0.9, slices="part"))


def test_no_items_are_no_comparison() -> None:
    nothing = of_counts(np.zeros((2, 2)))
    for kind in KINDS:
        comparison = against(kind, nothing, SAMPLED)
        assert comparison.comparability == "different"
        assert np.isnan(comparison.overall.value).all()
