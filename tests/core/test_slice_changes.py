"""The changes of slices against a baseline."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.comparison.difference import INFLUENCE, METHODS, MOVER, REASONS, TANGO
from rprime.core.options import Options
from rprime.core.slices.comparison import (
    LOWER,
    METHOD,
    REASON,
    UPPER,
    VALUE,
    SliceChanges,
    compare_slices,
    slice_changes,
)
from rprime.core.slices.slices import SliceColumn, Slices
from tests.core.comparison_sides import side_of

KEYS = ("accuracy", "macro_f1", "kappa", "balanced_accuracy", "weighted_f1", "recall")


def drawn(
    seed: int, items: int = 900, k: int = 4, answers: int = 5, worse: float = 0.0
) -> tuple[Side, Side]:
    """Draw two models of the same items, with slices; the last class is rare."""
    rng = np.random.default_rng(seed)
    true = rng.choice(k, items, p=np.array([4, 3, 2, 0.3]) / 9.3).astype(np.uint8)
    old = np.where(rng.random(items) < 0.8, true, rng.integers(answers, size=items))
    region, device = rng.integers(4, size=items), rng.integers(2, size=items)
    fresh = np.where(rng.random(items) < 0.8, true, rng.integers(answers, size=items))
    new = np.where(rng.random(items) < 0.3, fresh, old)
    lost = rng.random(items) < worse * (region == 1)
    new = np.where(lost, rng.integers(answers, size=items), new)
    columns = {
        "region": SliceColumn(("EU", "US", "Asia"), region),  # the last code is in none
        "device": SliceColumn(("ios", "web"), device),
    }
    return tuple(sliced(side_of(true, codes, k), columns) for codes in (new, old))  # type: ignore[return-value] # two


def sliced(side: Side, columns: dict[str, SliceColumn]) -> Side:
    assert side.items is not None
    k = len(side.labels)
    cells = side.items.true.astype(np.intp) * (k + 1) + side.items.predicted
    crossings = [tuple(columns)] if len(columns) > 1 else []
    return replace(side, slices=Slices.of_items(columns, crossings, cells, k))


def tables(side: Side) -> Side:
    """Keep the tables of the slices alone."""
    assert side.slices is not None
    return replace(side, items=None, slices=replace(side.slices, columns={}))


def changes_of(candidate: Side, baseline: Side, keys: Sequence[str] = KEYS) -> SliceChanges:
    changes = slice_changes(compare(candidate, baseline, Options(indices=tuple(keys))), tuple(keys))
    assert changes is not None
    return changes


def alone(whole: Comparison, name: dict[str, str], keys: Sequence[str] = KEYS) -> Comparison:
    part, options = tuple(sorted(name.items())), Options(indices=tuple(keys))
    (comparison,) = compare_slices(whole, [part], options)
    assert comparison is not None
    return comparison


@pytest.mark.parametrize("kept", ["items", "tables"])
@pytest.mark.parametrize("answers", [4, 5])
def test_slices_are_compared_together_as_each_alone(kept: str, answers: int) -> None:
    sides = drawn(3, answers=answers)
    candidate, baseline = sides if kept == "items" else map(tables, sides)
    whole = compare(candidate, baseline, Options())
    assert candidate.slices is not None
    parts = [tuple(sorted(name.items())) for name in candidate.slices.names]
    options = Options(indices=(*KEYS, "precision", "mcc"))
    together = compare_slices(whole, parts, options)
    assert len(parts) > len(whole.sides)
    for part, comparison in zip(parts, together, strict=True):
        (single,) = compare_slices(whole, [part], options)
        assert comparison is not None
        assert single is not None
        for difference, other in (
            (comparison.overall, single.overall),
            (comparison.per_class, single.per_class),
        ):
            np.testing.assert_array_equal(difference.numbers, other.numbers)
            np.testing.assert_array_equal(difference.limits(0.025), other.limits(0.025))


@pytest.mark.parametrize("kept", ["items", "tables"])
@pytest.mark.parametrize("answers", [4, 5])
def test_each_slice_is_compared_as_its_items_alone(kept: str, answers: int) -> None:
    candidate, baseline = drawn(3, answers=answers)
    if kept == "tables":
        candidate, baseline = tables(candidate), tables(baseline)
    whole = compare(candidate, baseline, Options(indices=KEYS))
    changes = slice_changes(whole, KEYS)
    assert changes is not None
    assert len(changes.names) == 3 + 2 + 6
    methods = {MOVER} if kept == "tables" else {TANGO, INFLUENCE}
    assert set(np.unique(changes.numbers[METHOD])) == methods
    for i, name in enumerate(changes.names):
        comparison = alone(whole, dict(name))
        assert changes.items[i] == comparison.sides[0].table.total
        for place, entry in enumerate(changes.entries):
            expected = comparison.of_overall(entry.key)
            values = expected.candidate, expected.baseline, expected.value
            numbers = *values, *expected.limits(0.025), expected.methods, expected.reasons
            np.testing.assert_allclose(
                changes.numbers[:, place, i], np.array(numbers), rtol=1e-9, atol=1e-12
            )


@pytest.mark.parametrize("kind", ["groups", "weights"])
def test_no_slice_is_compared_with_a_baseline_of_dependent_items(kind: str) -> None:
    candidate, baseline = drawn(3)
    assert baseline.items is not None
    number = np.arange(len(baseline.items.true))
    columns = {"groups": number // 3} if kind == "groups" else {"weights": 1.0 + number % 2}
    other = replace(baseline, items=replace(baseline.items, **columns))
    assert slice_changes(compare(candidate, other, Options(indices=KEYS)), KEYS) is None


def test_the_slices_that_got_worst_come_first() -> None:
    candidate, baseline = drawn(7, items=4000, worse=0.4)
    changes = changes_of(candidate, baseline)
    assert changes.index is not None
    assert changes.index.key == "accuracy"
    assert all(name["region"] == "US" for name in changes.names[:3])
    worst = changes.p_adjusted[0]
    assert worst[0] < 1e-6
    quiet = [i for i, name in enumerate(changes.names) if name.get("region", "US") != "US"]
    assert len(quiet) == 6
    assert (worst[quiet] > 0.05).all()
    assert METHODS[int(changes.numbers[METHOD, 0, 0])] == "tango"


def test_an_index_without_factors_has_values_alone() -> None:
    changes = changes_of(*drawn(7), keys=("accuracy", "mutual_information"))
    assert np.isfinite(changes.numbers[VALUE]).all()
    assert np.isfinite(changes.p_adjusted[0]).all()
    assert np.isnan(changes.p_adjusted[1]).all()
    assert {REASONS[int(code)] for code in changes.numbers[REASON, 1]} == {"no_interval"}


def test_tables_are_compared_where_both_sides_have_the_slice() -> None:
    candidate, baseline = map(tables, drawn(3))
    assert baseline.slices is not None
    kept = [3, 1]
    other = replace(
        baseline.slices,
        names=tuple(baseline.slices.names[i] for i in kept),
        tables=baseline.slices.tables[kept],
    )
    changes = changes_of(candidate, replace(baseline, slices=other))
    assert {frozenset(name.items()) for name in changes.names} == {
        frozenset({("device", "ios")}),
        frozenset({("region", "US")}),
    }
    whole = compare(candidate, replace(baseline, slices=None), Options(indices=KEYS))
    assert slice_changes(whole, KEYS) is None


def unchanged(
    rng: np.random.Generator, mean: float, k: int, accuracy: float, churn: float
) -> tuple[Side, Side]:
    """Draw a model and one that predicts a share of the items anew, with 200 slices."""
    codes = np.repeat(np.arange(200), np.maximum(rng.geometric(1 / mean, 200), 5))
    shares = 3.0 ** -np.arange(k)
    true = rng.choice(k, codes.size, p=shares / shares.sum()).astype(np.uint8)

    def predicted() -> Array:
        wrong = rng.random(codes.size) > accuracy
        return np.where(wrong, (true + rng.integers(1, k, codes.size)) % k, true)

    old = predicted()
    new = np.where(rng.random(codes.size) < churn, predicted(), old)
    columns = {"region": SliceColumn(tuple(map(str, range(200))), codes)}
    candidate, baseline = (sliced(side_of(true, part, k), columns) for part in (new, old))
    return candidate, baseline


@pytest.mark.parametrize(
    ("reports", "k", "accuracy", "churn", "mean"),
    [
        (12, 3, 0.9, 0.3, 100),
        *(
            pytest.param(100, *population, marks=pytest.mark.slow)
            for population in [(2, 0.9, 0.3, 50), (10, 0.9, 0.3, 300), (3, 0.6, 1.0, 100)]
        ),
    ],
)
def test_noise_alarms_in_few_reports(
    reports: int, k: int, accuracy: float, churn: float, mean: float
) -> None:
    rng, alarms, covered, number = np.random.default_rng(17), 0, 0, 0
    for _ in range(reports):
        changes = changes_of(*unchanged(rng, mean, k, accuracy, churn), keys=("accuracy", "f1"))
        alarms += bool(np.nanmin(changes.p_adjusted) < 0.05)
        low, high = changes.numbers[LOWER, 0], changes.numbers[UPPER, 0]
        covered += int(((low <= 0) & (high >= 0)).sum())
        number += low.size
    assert alarms <= max(0.05 * reports, 1)
    assert 0.925 <= covered / number <= 0.985
