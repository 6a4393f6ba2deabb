"""Gradients are exact, and the variances that follow from them are those of the literature."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from rprime.core.catalog import INDICES
from rprime.core.cells import SparseCells
from rprime.core.index import Index
from rprime.core.intervals.delta import class_gradient, overall_gradient
from rprime.core.intervals.variance import class_variances, contributing, variances
from rprime.core.table import ConfusionTable
from rprime.core.values import Values
from tests.core.index_values import at_every_cell, dense, values_of

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference/statistics_visible.json").read_text(encoding="utf-8")
)["matrices"]
KEYS = {
    "acc": "accuracy",
    "rover": "r_prime",
    "mrec": "macro_recall",
    "mprec": "macro_precision",
    "mf1": "macro_f1",
    "wf1": "weighted_f1",
    "mrprime": "macro_r_prime",
    "kappa": "kappa",
    "mcc": "mcc",
}
Sampling = Literal["random", "fixed_rows"]
SAMPLINGS: tuple[Sampling, ...] = ("random", "fixed_rows")

RNG = np.random.default_rng(7)
COUNTS = RNG.integers(3, 20, (4, 4)) + np.diag(RNG.integers(20, 60, 4)).astype(float)
UNCLASSIFIED = np.array([4.0, 1, 7, 2])
SPURIOUS = np.array([1.0, 6, 2, 3])
WEIGHTS = RNG.random((4, 4)) * (1 - np.eye(4))
COST = RNG.random((4, 5))
WHOLE = dense(COUNTS)
OMITTED = dense(COUNTS, UNCLASSIFIED)
ALL_KINDS = dense(COUNTS, UNCLASSIFIED, SPURIOUS)
OPTIONS: dict[str, Any] = {"beta": 2.0, "cost": COST, "kappa_weights": WEIGHTS}
EVERYTHING = [
    ({"cost": COST, "kappa_weights": WEIGHTS}, OMITTED),
    ({"cost": COST[:, :4], "kappa_weights": "linear"}, OMITTED),
    ({"cost": COST[:, :4], "kappa_weights": "quadratic"}, WHOLE),
    ({"cost": COST, "kappa_weights": WEIGHTS}, ALL_KINDS),
    ({"cost": COST, "kappa_weights": WEIGHTS, "average_over": (0, 2)}, ALL_KINDS),
]


def smooth(entries: tuple[Index, ...]) -> Iterator[tuple[int, Index]]:
    return ((i, entry) for i, entry in enumerate(entries) if entry.interval is not None)


def overall_place(values: Values, key: str) -> int:
    return next(i for i, entry in enumerate(values.selection.overall) if entry.key == key)


def with_more(table: ConfusionTable, row: int, column: int, items: float) -> ConfusionTable:
    """Add items to one cell; column k is that of the unclassified."""
    counts = table.cells.counts.copy()
    silent = None if table.unclassified is None else table.unclassified.copy()
    if column == table.k:
        assert silent is not None
        silent[row] += items
    else:
        counts[row, column] += items
    return ConfusionTable.dense(counts, silent, table.spurious)


def difference(
    table: ConfusionTable, row: int, column: int, options: dict[str, Any]
) -> tuple[Any, Any]:
    """Central five-point difference of all values under adding items to a cell."""
    step = 0.02
    at = [values_of(with_more(table, row, column, n * step), **options) for n in (-2, -1, 1, 2)]
    weights = np.array([1, -8, 8, -1]) / (12 * step)
    return (
        sum(w * v.per_class for w, v in zip(weights, at, strict=True)),
        sum(w * v.overall for w, v in zip(weights, at, strict=True)),
    )


@pytest.mark.parametrize(("options", "table"), EVERYTHING)
def test_every_gradient_is_the_difference_of_the_whole_index(
    options: dict[str, Any], table: ConfusionTable
) -> None:
    arguments = {"beta": 2.0} | options
    values = values_of(table, **arguments)
    by_class = class_gradient(values)
    whole = at_every_cell(overall_gradient(values, by_class))
    columns = table.k + (table.unclassified is not None)
    for row, column in np.ndindex(table.k, columns):
        per_class, overall = difference(table, row, column, arguments)
        for i, entry in smooth(values.selection.overall):
            expected = pytest.approx(overall[i], rel=1e-6, abs=1e-9)
            assert whole[i, row, column] == expected, (entry.key, row, column)
        for i, entry in smooth(values.selection.computed):
            influence = [of_class(by_class.kinds[:, i, c], entry, c, row, column) for c in range(4)]
            assert influence == pytest.approx(per_class[i], rel=1e-6, abs=1e-9), entry.key


def of_class(kinds: Any, entry: Index, c: int, row: int, column: int) -> float:
    """Influence of an item of the cell on the index of class c."""
    if column == len(COUNTS) and entry.universe == "classified":
        return 0.0
    kind = {(True, True): 0, (True, False): 1, (False, True): 2, (False, False): 3}
    return float(kinds[kind[row == c, column == c]])


def test_exactly_the_entries_with_an_interval_have_a_gradient() -> None:
    values = values_of(OMITTED, **OPTIONS)
    by_class = class_gradient(values)
    overall = at_every_cell(overall_gradient(values, by_class))
    for i, entry in enumerate(values.selection.overall):
        assert np.isfinite(overall[i]).all() == (entry.interval is not None), entry.key
    for i, entry in enumerate(values.selection.computed):
        assert np.isfinite(by_class.margins[:, i]).all() == (entry.interval is not None), entry.key
    named = {e.key for e in (*values.selection.computed, *values.selection.overall)}
    assert named == {entry.key for entry in INDICES if not entry.scored}


def definition(gradient: Any, counts: Any, sampling: Sampling) -> Any:
    """Variance as it is defined, from dense gradients (n, k, k + 1) and counts (k, k + 1)."""
    squares, sums = (counts * gradient**2).sum(-1), (counts * gradient).sum(-1)
    if sampling == "random":
        return squares.sum(-1) - sums.sum(-1) ** 2 / counts.sum()
    return (squares - sums**2 / counts.sum(-1)).sum(-1)


def cells_of(table: ConfusionTable) -> Any:
    """All real items, the unclassified in the last column."""
    silent = np.zeros(table.k) if table.unclassified is None else table.unclassified
    return np.column_stack((table.cells.counts, silent))


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize(("options", "table"), EVERYTHING)
def test_variances_are_the_sums_over_cells_that_define_them(
    options: dict[str, Any], table: ConfusionTable, sampling: Sampling
) -> None:
    values = values_of(table, **options)
    by_class = class_gradient(values)
    gradient = overall_gradient(values, by_class)
    counts = cells_of(table)
    expected = definition(at_every_cell(gradient), counts, sampling)
    np.testing.assert_allclose(
        variances(gradient, table, sampling), expected, rtol=1e-9, atol=1e-15
    )
    per_class = np.array(
        [
            [
                of_class(by_class.kinds[:, i, c], entry, c, row, column)
                for row, column in cells(table)
            ]
            for i, entry in smooth(values.selection.computed)
            for c in range(table.k)
        ]
    )
    expected = definition(per_class.reshape(-1, *counts.shape), counts, sampling)
    places = [i for i, _ in smooth(values.selection.computed)]
    variance = class_variances(values, by_class, sampling)[places]
    np.testing.assert_allclose(variance.ravel(), expected, rtol=1e-9, atol=1e-15)


def cells(table: ConfusionTable) -> Iterator[tuple[int, ...]]:
    return np.ndindex(table.k, table.k + 1)


@pytest.mark.parametrize("name", REFERENCE)
def test_reference_values_and_variances_are_reproduced(name: str) -> None:
    case = REFERENCE[name]
    values = values_of(dense(case["matrix"]))
    gradient = overall_gradient(values)
    by_sampling = {sampling: variances(gradient, values.table, sampling) for sampling in SAMPLINGS}
    for short, reference in case["scalar"].items():
        place = overall_place(values, KEYS[short])
        assert values.overall[place] == pytest.approx(reference["value"], rel=1e-9)
        for sampling, key in zip(SAMPLINGS, ("var_full", "var_fixed"), strict=True):
            expected = pytest.approx(reference[key], rel=1e-9, abs=1e-15)
            assert by_sampling[sampling][place] == expected, (short, key)


@pytest.mark.parametrize("name", [n for n in REFERENCE if REFERENCE[n]["statsmodels_kappa"]])
def test_the_standard_error_of_kappa_is_that_of_fleiss_cohen_and_everitt(name: str) -> None:
    case = REFERENCE[name]
    values = values_of(dense(case["matrix"]))
    place = overall_place(values, "kappa")
    variance = variances(overall_gradient(values), values.table, "random")[place]
    expected = case["statsmodels_kappa"]["var_kappa"]
    assert np.sqrt(variance) == pytest.approx(np.sqrt(expected), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", REFERENCE)
def test_the_variance_of_r_prime_of_a_class_is_the_closed_form(name: str) -> None:
    case = REFERENCE[name]
    values = values_of(dense(case["matrix"]))
    by_class, place = class_gradient(values), values.selection.place["r_prime"]
    for c, reference in enumerate(case["per_class"]):
        keys = ("var_full_closed_form", "var_fixed_closed_form")
        for sampling, key in zip(SAMPLINGS, keys, strict=True):
            variance = class_variances(values, by_class, sampling)[place, c]
            expected = pytest.approx(reference["rprime"][key], rel=1e-9, abs=1e-15)
            assert variance == expected, (c, key)


def test_the_variance_of_the_overall_r_prime_is_that_of_the_share_of_wrong_predictions() -> None:
    values = values_of(OMITTED)
    variance = variances(overall_gradient(values), OMITTED, "random")
    wrong = (COUNTS.sum() - np.trace(COUNTS)) / OMITTED.total
    expected = wrong * (1 - wrong) / OMITTED.total
    assert variance[overall_place(values, "r_prime")] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_sparse_cells_give_what_dense_cells_give(sampling: Sampling) -> None:
    rows, columns = np.indices(COUNTS.shape)
    sparse = ConfusionTable.sparse(
        rows.ravel(),
        columns.ravel(),
        COUNTS.ravel(),
        len(COUNTS),
        unclassified=UNCLASSIFIED,
        spurious=SPURIOUS,
    )
    values = [values_of(table, **OPTIONS) for table in (ALL_KINDS, sparse)]
    variance, other = (variances(overall_gradient(v), v.table, sampling) for v in values)
    np.testing.assert_allclose(variance, other, rtol=1e-10, atol=1e-18)
    variance, other = (class_variances(v, class_gradient(v), sampling) for v in values)
    np.testing.assert_allclose(variance, other, rtol=1e-10, atol=1e-18)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_sparse_stack_gives_what_its_members_give(sampling: Sampling) -> None:
    members = np.stack((COUNTS, COUNTS.T, COUNTS * np.tri(4)))
    rows, columns = (grid.ravel() for grid in np.indices((4, 4)))
    sparse = ConfusionTable(SparseCells(rows, columns, members.reshape(3, -1), 4))
    stack = values_of(sparse, **OPTIONS)
    variance = variances(overall_gradient(stack), sparse, sampling)
    for i, member in enumerate(members):
        values = values_of(dense(member), **OPTIONS)
        expected = variances(overall_gradient(values), values.table, sampling)
        np.testing.assert_allclose(variance[:, i], expected, rtol=1e-9, atol=1e-18)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_stack_gives_what_its_members_give(sampling: Sampling) -> None:
    members = [ALL_KINDS, dense(COUNTS.T, SPURIOUS, SPURIOUS), dense(COUNTS + 1, UNCLASSIFIED)]
    stack = values_of(ConfusionTable.stack(members), **OPTIONS)
    by_class = class_gradient(stack)
    whole = overall_gradient(stack, by_class)
    stack_variances = (
        variances(whole, stack.table, sampling),
        class_variances(stack, by_class, sampling),
    )
    for i, member in enumerate(members):
        values = values_of(member, **OPTIONS)
        single = overall_gradient(values)
        np.testing.assert_allclose(
            at_every_cell(whole)[:, i], at_every_cell(single), rtol=1e-9, atol=1e-15
        )
        expected = variances(single, member, sampling)
        np.testing.assert_allclose(stack_variances[0][:, i], expected, rtol=1e-9, atol=1e-18)
        per_class = class_variances(values, class_gradient(values), sampling)
        np.testing.assert_allclose(stack_variances[1][:, i], per_class, rtol=1e-9, atol=1e-18)


def test_one_index_can_be_taken_out() -> None:
    values = values_of(OMITTED, **OPTIONS)
    gradient = overall_gradient(values)
    whole = at_every_cell(gradient)
    for i in range(len(values.selection.overall)):
        np.testing.assert_array_equal(at_every_cell(gradient.only(i))[0], whole[i])


@pytest.mark.parametrize("k", [3, 50])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_what_cannot_vary_has_a_variance_of_exactly_zero(k: int, sampling: Sampling) -> None:
    right = values_of(dense(np.diag(np.arange(1.0, k + 1))), cost=1 - np.eye(k))
    variance = variances(overall_gradient(right), right.table, sampling)
    for key in ("accuracy", "kappa", "mcc", "weighted_f1", "expected_cost", "krippendorff_alpha"):
        assert variance[overall_place(right, key)] == 0.0, key
    wrong = values_of(dense((1 - np.eye(k)) * 7))
    variance = variances(overall_gradient(wrong), wrong.table, sampling)
    for key in ("accuracy", "maxwell_re", "micro_recall"):
        assert variance[overall_place(wrong, key)] == 0.0, key


def test_a_root_of_zero_has_no_gradient() -> None:
    values = values_of(dense([[30, 4, 6], [9, 0, 0], [5, 0, 0]]))
    place = values.selection.place["g_mean"]
    assert values.per_class[place, 0] == 0
    assert np.isnan(class_gradient(values).margins[:, place, 0]).all()
    weighted = overall_place(values, "weighted_g_mean")
    assert np.isnan(overall_gradient(values).factors[1, weighted]).all()


SMOOTH = ("accuracy", "macro_recall", "macro_f1", "weighted_f1", "kappa", "mcc", "r_prime")


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("scale", [1, 3, 10])
def test_variances_said_to_rest_on_enough_items_do(sampling: Sampling, scale: int) -> None:
    shown = 0
    for seed in range(40):
        draw = np.random.default_rng(seed)
        wrong = draw.integers(0, 3, (2, 4, 4)) * (draw.random((2, 4, 4)) < 0.2 * scale)
        counts = scale * wrong + np.eye(4) * draw.integers(1, 60)
        table = dense(counts, *([draw.integers(0, 2, (2, 4))] if seed % 2 else []))
        values = values_of(table, indices=SMOOTH)
        gradient = overall_gradient(values)
        spread = variances(gradient, table, sampling)
        counted = contributing(gradient, table, 0, np.zeros(len(SMOOTH)))
        assert np.isfinite(counted).all()
        enough = np.isinf(contributing(gradient, table, 0, spread[:, 0]))
        shown += bool(enough.all())
        assert (counted[enough] >= 5).all()
    assert shown or scale == 1
