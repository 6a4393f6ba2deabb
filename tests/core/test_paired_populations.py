"""Paired differences at the prevalence of a population."""

import numpy as np
import pytest
from numpy.typing import NDArray

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.comparison.paired_variance import PairedStrata
from rprime.core.counts import CountRow
from rprime.core.estimates import Estimates
from rprime.core.gates.lint import lint
from rprime.core.gates.rules import Gate, Rule
from rprime.core.gates.unchanged_model import UnchangedModel
from rprime.core.items import Items
from rprime.core.options import Options
from rprime.core.population import Population
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from tests.core.comparison_sides import names
from tests.core.gate_cases import gate_of, tabled

Ints = NDArray[np.int64]
SHARES = np.array([0.1, 0.2, 0.7])
TRUE = np.repeat([0, 1, 2], [120, 80, 60])
KEYS = ("accuracy", "kappa", "mcc", "macro_f1", "weighted_f1", "r_prime", "balanced_accuracy")
CLASS_KEYS = ("recall", "precision", "f1", "r_prime", "false_positive_rate", "jaccard")


def side(true: Ints, predicted: Ints, k: int = 3) -> Side:
    cells = np.zeros((k, k + 1))
    np.add.at(cells, (true, predicted), 1)
    table = ConfusionTable.dense(cells[:, :k], cells[:, k] if cells[:, k].any() else None)
    items = Items(true=true, predicted=predicted)
    return Side(labels=names(k), table=table, items=items, fingerprint="one")


def predictions(seed: int, wrong: float, *, silent: bool = False) -> Ints:
    draw = np.random.default_rng(seed)
    other = (TRUE + draw.integers(1, 3, len(TRUE))) % 3
    predicted = np.where(draw.random(len(TRUE)) < wrong, other, TRUE)
    return np.where(draw.random(len(TRUE)) < 0.05, 3, predicted) if silent else predicted


def compared(old: Ints, new: Ints, shares: Array = SHARES) -> Comparison:
    options = Options(population=Population("true", shares), indices=(*KEYS, *CLASS_KEYS))
    return compare(side(TRUE, new), side(TRUE, old), options)


def test_the_difference_of_accuracy_has_the_variance_of_a_stratified_sample() -> None:
    old, new = predictions(1, 0.2), predictions(2, 0.1)
    comparison = compared(old, new)
    change = (new == TRUE).astype(float) - (old == TRUE)
    parts = [change[r == TRUE] for r in range(3)]
    sizes = np.array([len(part) for part in parts])
    assert comparison.pairing == "paired"
    assert not comparison.warnings
    accuracy = comparison.of_overall("accuracy")
    assert accuracy.value == pytest.approx(SHARES @ [part.mean() for part in parts])
    variance = SHARES**2 / sizes @ [part.var() for part in parts]
    guard = 2 * (SHARES / sizes).max() ** 2  # one item in each direction, where it weighs most
    assert accuracy.standard_error == pytest.approx(np.sqrt(variance + guard))


def test_a_change_of_recall_is_that_of_the_items_of_the_class() -> None:
    old, new = predictions(1, 0.2), predictions(2, 0.1)
    recall = compared(old, new).of_classes("recall")
    plain = compare(side(TRUE, new), side(TRUE, old), Options(indices=("recall",)))
    for limit, other in zip(
        recall.limits(0.025), plain.of_classes("recall").limits(0.025), strict=True
    ):
        assert limit == pytest.approx(other)


@pytest.mark.parametrize("silent", [False, True])
def test_variances_agree_with_numerical_derivatives(*, silent: bool) -> None:
    """Move a share of the items of a class to one pair of predictions, for all pairs."""
    old, new = predictions(3, 0.25, silent=silent), predictions(4, 0.15, silent=silent)
    joint = np.zeros((3, 4, 4))
    np.add.at(joint, (TRUE, old, new), 1)
    options = Options(population=Population("true", SHARES), indices=(*KEYS, *CLASS_KEYS))
    selection = select(options)
    sizes = joint.sum((1, 2))

    def difference(shares: Array) -> Array:
        cells = shares * sizes[:, None, None]
        by_side = []
        for axis in (1, 2):  # the candidate's predictions are the last axis
            part = cells.sum(axis)
            table = ConfusionTable.dense(part[:, :3], part[:, 3] if silent else None)
            values = Estimates.of(table, options, selection).values
            whole = [values.lookup("overall", key)[None] for key in KEYS]
            by_side.append(
                np.concatenate([*whole, *(values.lookup("class", k) for k in CLASS_KEYS)])
            )
        return np.asarray(by_side[0] - by_side[1])

    within, step = joint / sizes[:, None, None], 1e-5
    variance = np.zeros(len(KEYS) + 3 * len(CLASS_KEYS))
    for stratum in range(3):
        probabilities, influences = within[stratum], []
        for cell in range(16):
            unit = np.zeros(16)
            unit[cell] = 1
            ends = []
            for sign in (1, -1):
                moved = within.copy()
                moved[stratum] = (1 - sign * step) * probabilities + sign * step * unit.reshape(
                    4, 4
                )
                ends.append(difference(moved))
            influences.append((ends[0] - ends[1]) / (2 * step))
        phi, q = np.array(influences), probabilities.ravel()
        variance += (q @ phi**2 - (q @ phi) ** 2) / sizes[stratum]
    aligned = compare(side(TRUE, new), side(TRUE, old), options).aligned
    assert isinstance(aligned.pairs, PairedStrata)
    before, after = aligned.gradients
    reported = aligned.selection.reported
    overall = aligned.pairs.overall_variance(before.overall, after.overall).grouped
    of_classes = aligned.pairs.class_variance(
        before.of_classes, after.of_classes, np.zeros(len(before.of_classes.margins[0]), bool)
    ).grouped[:reported]
    places, own_place = aligned.selection.overall_place, aligned.selection.place
    computed = [overall[places[key]][None] for key in KEYS]
    computed += [of_classes[own_place[key]] for key in CLASS_KEYS]
    assert np.concatenate(computed) == pytest.approx(variance, rel=1e-4)


def test_identical_predictions_have_limits() -> None:
    same = predictions(1, 0.2)
    comparison = compared(same, same)
    for key in KEYS:
        low, high = comparison.of_overall(key).limits(0.025)
        assert -0.2 < low < 0 < high < 0.2, key


def test_a_simulated_stack_has_the_variances_of_items() -> None:
    counts = np.array([[100.0, 12, 8], [10, 60, 10], [4, 6, 50]])
    model = UnchangedModel.paired(counts, 0.1)
    expected = model.expected()
    options = Options(population=Population("true", SHARES), indices=(*KEYS, *CLASS_KEYS))
    aligned = expected.compared(options, names(3), expected)
    weights = SHARES * counts.sum() / counts.sum(1)
    tables = (expected.baseline, expected.candidate)
    items = expected.items()
    other = PairedStrata.of(items, items.weighed(weights**2), weights, tables)
    assert isinstance(aligned.pairs, PairedStrata)
    sides = aligned.gradients
    variance = aligned.pairs.overall_variance(sides[0].overall, sides[1].overall).grouped
    again = other.overall_variance(sides[0].overall, sides[1].overall).grouped
    assert variance == pytest.approx(again)
    plain = np.zeros(len(sides[0].of_classes.margins[0]), dtype=bool)
    both = [
        p.class_variance(sides[0].of_classes, sides[1].of_classes, plain)
        for p in (aligned.pairs, other)
    ]
    assert both[0].grouped == pytest.approx(both[1].grouped, nan_ok=True)
    assert aligned.pairs.flips(CountRow.tp, per_class=True)[0].shape == (3,)


def drops(limit: float, *keys: str) -> Gate:
    return gate_of(*(Rule(index=key, kind="max_drop", limit=limit) for key in keys))


@pytest.mark.parametrize("pairing", ["paired", "unpaired"])
def test_a_gate_on_a_population_rarely_fails_an_unchanged_model(pairing: str) -> None:
    counts = np.array([[180.0, 15, 5], [8, 85, 7], [3, 6, 51]])
    for shares in (SHARES, np.array([0.8, 0.15, 0.05])):
        report = lint(
            drops(0.05, "accuracy", "macro_f1"),
            tabled(counts),
            pairing=pairing,  # type: ignore[arg-type]  # a literal
            replicates=500,
            population=Population("true", shares),
        )
        assert report.false_fail_rate <= 0.01 + 3 * 0.0045
