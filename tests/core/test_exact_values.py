"""Every index that is rational in the cells, or a root of such, against exact fractions."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rprime.core.catalog import INDICES
from rprime.core.index import REASONS
from tests.core.degenerate_tables import omissions, stacks
from tests.core.exact_indices import ExactTable
from tests.core.index_values import dense, overall, per_class, values_of

WITH_OPTIONS = {"weighted_kappa", "expected_cost", "normalized_expected_cost"}
"""Rational indices that need an option, and have tests of their own."""
IRRATIONAL = {
    # Roots of equations of a fitted model, whose tests put them into these.
    *("gt_index", "aickin_alpha"),
    # Tails of a distribution.
    *("chi2_p_value", "bowker_p_value"),
    # A root of as many numbers as classes, which has a test of its own.
    "geometric_mean_recall",
    # Logarithms.
    *("class_confusion_entropy", "class_modified_confusion_entropy", "discriminant_power"),
    *("confusion_entropy", "modified_confusion_entropy"),
    *("cross_entropy_of_margins", "kullback_leibler_divergence", "joint_entropy"),
    *("conditional_entropy_predicted", "conditional_entropy_true", "entropy_true"),
    *("entropy_predicted", "mutual_information", "uncertainty_true", "uncertainty_predicted"),
    "normalized_mutual_information",
}
"""Keys of indices that are not rational in the cells, nor square roots of what is."""
ROOTS = {"fowlkes_mallows", "class_mcc", "g_mean", "quadratic_mean"}
"""Roots, whose averages are not roots."""


def exact(counts: Any, omitted: Any = None, beta: Fraction = Fraction(1)) -> ExactTable:
    none = np.zeros((2, len(counts)))
    unclassified, spurious = none if omitted is None else omitted
    whole = [part.astype(int).tolist() for part in (counts, unclassified, spurious)]
    return ExactTable(whole[0], whole[1], whole[2], beta)


def far(value: Any, expected: Any) -> bool:
    if expected is None:
        return bool(np.isfinite(value))
    return not abs(value - float(expected)) <= 1e-9 * max(1.0, abs(float(expected)))


def test_every_index_has_an_exact_value_or_a_reason_for_none() -> None:
    table = exact(np.array([[5, 1, 2], [0, 7, 1], [3, 0, 4]]))
    keys = {("class", key) for key in table.classes()}
    keys |= {("overall", key) for key in table.overall()}
    without = {
        (entry.scope, entry.key)
        for entry in INDICES
        if not entry.scored
        and entry.key not in IRRATIONAL | WITH_OPTIONS
        and not IRRATIONAL.union(ROOTS) & set(entry.of if entry.reads in AVERAGES else ())
    }
    assert without <= keys


AVERAGES = {"macro", "weighted"}


@pytest.mark.parametrize("omitted", [False, True])
def test_values_are_those_of_exact_fractions(omitted: bool) -> None:
    for counts in stacks(6, 90, (2, 3, 4)):
        away = omissions(6, counts) if omitted else None
        values = values_of(dense(counts, *(away or ())))
        of_classes, whole = per_class(values), overall(values)
        for t, cells in enumerate(counts):
            table = exact(cells, away and tuple(part[t] for part in away))
            pairs = [
                (key, value, expected)
                for key, row in table.classes().items()
                for value, expected in zip(of_classes[key][t], row, strict=True)
            ]
            pairs += [(key, whole[key][t], expected) for key, expected in table.overall().items()]
            assert [pair for pair in pairs if far(*pair[1:])] == [], cells.tolist()


def whole_numbers(rows: Any) -> list[list[int]]:
    return [[int(number) for number in row] for row in rows]


@pytest.mark.parametrize("omitted", [False, True])
@pytest.mark.parametrize("priced", [0, 1])
def test_costs_and_weighted_kappas_are_those_of_exact_fractions(omitted: bool, priced: int) -> None:
    rng = np.random.default_rng(8)
    for counts in stacks(8, 90, (2, 3, 4)):
        k = counts.shape[-1]
        away = omissions(8, counts) if omitted else None
        cost = rng.integers(0, 6, (k, k + priced)) * (1 - np.eye(k, k + priced))
        weights = rng.integers(1, 9, (k, k)) * (1 - np.eye(k))
        values = overall(values_of(dense(counts, *(away or ())), cost=cost, kappa_weights=weights))
        for t, cells in enumerate(counts):
            table = exact(cells, away and tuple(part[t] for part in away))
            expected = table.costs(whole_numbers(cost))
            expected["weighted_kappa"] = table.classified.weighted_kappa(whole_numbers(weights))
            wrong = {key: number for key, number in expected.items() if far(values[key][t], number)}
            assert wrong == {}, cells.tolist()


def test_the_power_of_the_geometric_mean_of_recalls_is_their_product() -> None:
    for counts in stacks(9, 90, (2, 3, 4)):
        values = overall(values_of(dense(counts)))["geometric_mean_recall"]
        for t, cells in enumerate(counts):
            recalls = [recall for recall in exact(cells).classes()["recall"] if recall is not None]
            expected = np.prod(recalls) if recalls else None
            assert not far(values[t] ** max(len(recalls), 1), expected), cells.tolist()


@pytest.mark.parametrize("beta", [Fraction(0), Fraction(1, 2), Fraction(3)])
def test_any_beta_from_0_on_gives_the_exact_f_beta(beta: Fraction) -> None:
    for counts in stacks(7, 90, (2, 3)):
        values = values_of(dense(counts), beta=float(beta), indices=("f_beta", "micro_f_beta"))
        for t, cells in enumerate(counts):
            expected = exact(cells, beta=beta).classes()["f_beta"]
            f_beta = per_class(values)["f_beta"][t]
            assert not any(map(far, f_beta, expected)), cells.tolist()


def test_beta_0_is_precision_and_a_large_beta_is_recall() -> None:
    counts = [[8, 2, 0], [1, 9, 0], [4, 3, 0]]
    for beta, of in ((0.0, "precision"), (1e200, "recall"), (1e-200, "precision")):
        keys = [
            f"{kind}{key}" for kind in ("macro_", "micro_", "weighted_") for key in ("f_beta", of)
        ]
        values = values_of(dense(counts), beta=beta, indices=tuple(keys))
        np.testing.assert_array_equal(per_class(values)["f_beta"], per_class(values)[of])
        indices = overall(values)
        assert all(indices[key] == indices[key.replace("f_beta", of)] for key in keys)
    zero = values_of(dense(counts), beta=0.0, indices=("f_beta",))
    assert zero.class_reasons is not None
    assert REASONS[zero.class_reasons[0, 2]] == "no_predictions"


REFUTED: dict[str, Any] = {
    "no_samples": lambda table, _: sum(table.support()) > 0,
    "no_true_samples": lambda table, i: table.support()[i] > 0,
    "no_predictions": lambda table, i: table.predicted()[i] > 0,
    "single_class": lambda table, i: bool(table.one(i).others and table.one(i).rejected),
    "chance_agreement_is_one": lambda table, i: bool(
        table.one(i).s * table.one(i).others + table.one(i).m * table.one(i).rejected
    ),
}
"""What disproves a reason of a class, from its exact counts; True if it does."""


def several(margin: list[Fraction]) -> bool:
    return sum(part > 0 for part in margin) > 1


REFUTED_OVERALL: dict[str, Any] = {
    "no_samples": lambda table: sum(table.support()) > 0,
    "no_predictions": lambda table: sum(table.predicted()) > 0,
    "single_class": lambda table: several(table.support()) and several(table.predicted()),
    "chance_agreement_is_one": lambda table: several(table.support()),
    "no_class_defined": lambda _: False,
}


@pytest.mark.parametrize("omitted", [False, True])
def test_no_reason_is_false(omitted: bool) -> None:
    for counts in stacks(8, 120, (2, 3)):
        away = omissions(8, counts) if omitted else None
        values = values_of(dense(counts, *(away or ())))
        for t, cells in enumerate(counts):
            table = exact(cells, away and tuple(part[t] for part in away))
            for place, entry in enumerate(values.selection.computed):
                universe = table.classified if entry.universe == "classified" else table
                for i in range(table.k):
                    code = 0 if values.class_reasons is None else values.class_reasons[place, t, i]
                    disproof = REFUTED.get(REASONS[code])
                    assert disproof is None or not disproof(universe, i), (entry.key, cells, i)
                    infinite = np.isinf(values.per_class[place, t, i])
                    assert infinite or REASONS[code] != "infinite", (entry.key, cells, i)
            for place, entry in enumerate(values.selection.overall):
                if entry.reads not in ("ratio", "moments", "association", "table", "means"):
                    continue
                inside = entry.universe == "classified" or entry.key == "accuracy_on_answered"
                universe = table.classified if inside else table
                code = 0 if values.overall_reasons is None else values.overall_reasons[place, t]
                disproof = REFUTED_OVERALL.get(REASONS[code])
                assert disproof is None or not disproof(universe), (entry.key, cells)
                if REASONS[code] == "no_class_defined":
                    assert not values.defined[
                        [values.selection.place[k] for k in entry.of], t
                    ].any()


def test_constant_predictors_have_no_association_to_measure() -> None:
    # Chi-square of these was 3e-31, which divided by 0 degrees of freedom gave 1.
    for counts in ([[47, 0], [23, 0]], [[0, 464], [0, 877]]):
        indices = overall(values_of(dense(counts)))
        assert np.isnan([indices["cramers_v"], indices["tschuprows_t"]]).all()
        assert indices["chi2"] == indices["phi"] == indices["contingency_coefficient"] == 0


def test_a_model_that_is_wrong_on_every_item_has_the_worst_value() -> None:
    indices = overall(values_of(dense([[0, 300, 0], [0, 0, 300], [400, 0, 0]])))
    assert indices["f1_of_macro_averages"] == indices["macro_f1"] == 0
    assert overall(values_of(dense([[0, 30], [0, 0]])))["bangdiwala_b"] == 0


def test_a_fifth_is_a_fifth() -> None:
    values = values_of(dense([[600, 400], [400, 600]]), indices=("kappa",))
    assert overall(values)["kappa"] == 0.2
    entry = values.selection.overall[0]
    assert entry.band is not None
    for tenths, name in ((6, "fair"), (7, "moderate"), (8, "substantial"), (9, "almost perfect")):
        right = np.eye(2) * 100 * tenths + (1 - np.eye(2)) * 100 * (10 - tenths)
        for factor in (1, 0.1, 1 / 3):
            kappa = overall(values_of(dense(right * factor), indices=("kappa",)))["kappa"]
            assert entry.band(float(kappa)) == name
