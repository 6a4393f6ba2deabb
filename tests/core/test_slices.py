"""Slices: tables of parts of a test set, and what they tell."""

import numpy as np
import pytest
from scipy import optimize, special, stats
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, recall_score

from rprime.core.cells import DenseCells
from rprime.core.options import Options
from rprime.core.slices.evaluation import evaluate_slices, shrink
from rprime.core.slices.slices import SliceColumn, Slices
from rprime.core.table import ConfusionTable

REGIONS, DEVICES = ("EU", "US", "Asia"), ("ios", "web")


def drawn_slices(
    seed: int = 0, items: int = 400, k: int = 4
) -> tuple[Slices, ConfusionTable, dict[str, np.ndarray]]:
    """Draw items with a region and a device each; some items have no device."""
    rng = np.random.default_rng(seed)
    true = rng.integers(k, size=items)
    predicted = np.where(rng.random(items) < 0.7, true, rng.integers(k + 1, size=items))
    region, device = rng.integers(3, size=items), rng.integers(3, size=items)
    columns = {"region": SliceColumn(REGIONS, region), "device": SliceColumn(DEVICES, device)}
    slices = Slices.of_items(columns, [("region", "device")], true * (k + 1) + predicted, k)
    counts = np.zeros((k, k + 1))
    np.add.at(counts, (true, predicted), 1)
    arrays = {"true": true, "predicted": predicted, "region": region, "device": device}
    return slices, ConfusionTable.dense(counts[:, :k], counts[:, k]), arrays


def counts_of(table: ConfusionTable) -> np.ndarray:
    assert isinstance(table.cells, DenseCells)
    return table.cells.counts


def test_tables_are_those_of_a_loop_over_the_items() -> None:
    slices, whole, arrays = drawn_slices()
    rest = slices.rest(whole)
    assert len(slices.names) == 3 + 2 + 3 * 2
    texts = {"region": REGIONS, "device": (*DEVICES, None)}
    for i, name in enumerate(slices.names):
        inside = np.array(
            [all(texts[c][arrays[c][item]] == v for c, v in name.items()) for item in range(400)]
        )
        np.testing.assert_array_equal(slices.inside(i), inside)
        for table, chosen in ((slices.tables, inside), (rest, ~inside)):
            true, predicted = arrays["true"][chosen], arrays["predicted"][chosen]
            expected = confusion_matrix(true, predicted, labels=range(5))[:4]
            np.testing.assert_array_equal(counts_of(table)[i], expected[:, :4])
            assert table.unclassified is not None
            np.testing.assert_array_equal(table.unclassified[i], expected[:, 4])


def test_crossings_have_only_slices_with_items() -> None:
    columns = {
        "a": SliceColumn(("x", "y"), np.array([0, 1, 1])),
        "b": SliceColumn(("p", "q"), np.array([0, 1, 2])),  # the last item has no value
    }
    slices = Slices.of_items(columns, [("a", "b")], np.array([0, 1, 3]), 2)
    assert slices.names == (
        {"a": "x"},
        {"a": "y"},
        {"b": "p"},
        {"b": "q"},
        {"a": "x", "b": "p"},
        {"a": "y", "b": "q"},
    )
    assert slices.positions[frozenset({("b", "q"), ("a", "y")})] == 5
    assert slices.tables.total.tolist() == [1, 2, 1, 1, 1, 1]


def test_tables_alone_know_no_items() -> None:
    slices = Slices(({"a": "x"},), ConfusionTable.dense(np.ones((1, 2, 2))))
    with pytest.raises(KeyError):
        slices.inside(0)


def test_slices_move_to_more_classes() -> None:
    slices, _, _ = drawn_slices()
    moved = slices.over(np.array([4, 1, 0, 2]), 5)
    np.testing.assert_array_equal(
        counts_of(moved.tables)[:, [4, 1, 0, 2]][:, :, [4, 1, 0, 2]], counts_of(slices.tables)
    )
    assert moved.tables.support[:, 3].sum() == 0
    assert moved.tables.unclassified is not None
    np.testing.assert_array_equal(
        moved.tables.unclassified[:, [4, 1, 0, 2]], slices.tables.unclassified
    )


def test_values_are_those_of_the_items_of_each_slice() -> None:
    slices, whole, arrays = drawn_slices()
    result = evaluate_slices(slices, whole, Options(indices=("accuracy", "macro_f1", "recall")))
    place = result.values.selection.overall_place
    for i in range(len(slices.names)):
        inside = slices.inside(i)
        true, predicted = arrays["true"][inside], arrays["predicted"][inside]
        there = np.unique(true)
        expected = {
            "accuracy": accuracy_score(true, predicted),
            "macro_f1": f1_score(true, predicted, labels=there, average="macro", zero_division=0),
        }
        for key, value in expected.items():
            assert result.values.overall[place[key], i] == pytest.approx(value)
        recall = recall_score(true, predicted, labels=range(4), average=None, zero_division=np.nan)
        np.testing.assert_allclose(result.values.per_class[0, i], recall)
        assert result.intervals is not None
        hits, n = (true == predicted).sum(), inside.sum()
        low, high = proportion_interval(hits, n)
        assert result.intervals.overall_low[place["accuracy"], i] == pytest.approx(low)
        assert result.intervals.overall_high[place["accuracy"], i] == pytest.approx(high)


def proportion_interval(
    hits: float, n: float, z: float = stats.norm.ppf(0.975)
) -> tuple[float, ...]:
    """Wilson's interval, as Newcombe 1998 writes it."""
    half = z * np.sqrt(z**2 + 4 * hits * (n - hits) / n)
    return (2 * hits + z**2 - half) / (2 * (n + z**2)), (2 * hits + z**2 + half) / (2 * (n + z**2))


def test_differences_are_newcombes_with_holms_p_over_the_exact_tail() -> None:
    slices, whole, arrays = drawn_slices(seed=3)
    result = evaluate_slices(slices, whole, Options(indices=("accuracy",)))
    right = arrays["true"] == arrays["predicted"]
    raw = []
    for i in range(len(slices.names)):
        inside = slices.inside(i)
        x, n, y, m = right[inside].sum(), inside.sum(), right[~inside].sum(), (~inside).sum()
        (low, high), (lower, upper) = proportion_interval(x, n), proportion_interval(y, m)
        p, q = x / n, y / m
        assert result.difference[0, i] == pytest.approx(p - q)
        assert result.lower[0, i] == pytest.approx(p - q - np.hypot(p - low, upper - q))
        assert result.upper[0, i] == pytest.approx(p - q + np.hypot(high - p, q - lower))
        raw.append(raw_p(x, n, y, m))
    order = np.argsort(raw)
    holm = np.maximum.accumulate([(len(raw) - i) * raw[j] for i, j in enumerate(order)])
    np.testing.assert_allclose(result.p_adjusted[0, order], np.minimum(holm, 1), rtol=1e-3)
    rate = evaluate_slices(
        slices, whole, Options(indices=("accuracy",), slice_adjust="benjamini_hochberg")
    )
    expected = stats.false_discovery_control(raw)
    np.testing.assert_allclose(rate.p_adjusted[0], expected, rtol=1e-3)


def raw_p(x: float, n: float, y: float, m: float) -> float:
    """Twice the larger of the level of the hybrid score interval and the binomial tail."""
    p, q = x / n, y / m

    def distance(z: float) -> float:
        (low, high), (lower, upper) = proportion_interval(x, n, z), proportion_interval(y, m, z)
        if p < q:
            return float(np.hypot(high - p, q - lower) - (q - p))
        return float(np.hypot(p - low, upper - q) - (p - q))

    z = optimize.brentq(distance, 1e-9, 12)
    items = z**2 * q * (1 - q) / (p - q) ** 2
    wrong, share = (1 - p, 1 - q) if p < q else (p, q)
    tail = special.betainc(wrong * items, items - wrong * items + 1, share)
    return float(min(1, 2 * max(stats.norm.sf(z), tail)))


def drawn_stack(
    rng: np.random.Generator, sizes: np.ndarray, accuracies: np.ndarray | float, k: int = 3
) -> tuple[Slices, ConfusionTable]:
    """Draw a table for each slice of one column: imbalanced classes, errors spread evenly."""
    shares = 3.0 ** -np.arange(k) / (3.0 ** -np.arange(k)).sum()
    right = np.broadcast_to(accuracies, sizes.shape)[:, None, None]
    cells = shares[:, None] * np.where(np.eye(k) > 0, right, (1 - right) / (k - 1))
    counts = np.array([rng.multinomial(n, c.ravel()) for n, c in zip(sizes, cells, strict=True)])
    counts = counts.reshape(-1, k, k).astype(np.float64)
    names = tuple({"a": str(i)} for i in range(len(sizes)))
    return Slices(names, ConfusionTable.dense(counts)), ConfusionTable.dense(counts.sum(0))


@pytest.mark.parametrize("keys", [None, ("kappa", "mcc", "macro_recall", "macro_precision")])
def test_noise_alarms_in_few_reports(keys: tuple[str, ...] | None) -> None:
    rng, alarms, reports = np.random.default_rng(7), 0, 60
    for _ in range(reports):
        slices, whole = drawn_stack(rng, np.maximum(rng.geometric(1 / 50, 200), 5), 0.9)
        result = evaluate_slices(slices, whole, Options(indices=keys))
        alarms += bool(np.nanmin(result.p_adjusted) < 0.05)
    assert alarms <= 3  # 5 %


def test_differences_are_covered_and_found() -> None:
    rng, covered, number, found_by_size = np.random.default_rng(8), 0, 0, 0
    accuracies = np.where(np.arange(20) == 0, 0.7, 0.9)
    for _ in range(60):
        slices, whole = drawn_stack(rng, np.full(20, 120), accuracies)
        result = evaluate_slices(slices, whole, Options(indices=("accuracy",)))
        rest = (accuracies.sum() - accuracies) / 19
        inside = (result.lower[0] <= accuracies - rest) & (accuracies - rest <= result.upper[0])
        covered, number = covered + int(inside.sum()), number + inside.size
        found_by_size += bool(result.p_adjusted[0, 0] < 0.05)
        assert result.detectable[0, 0] < 0.2
    assert 0.93 <= covered / number <= 0.975
    assert found_by_size >= 0.8 * 60  # the plan says that .2 is found in 80 %


def test_few_items_never_lead() -> None:
    rng, leaders = np.random.default_rng(9), []
    sizes = np.r_[np.full(50, 12), np.full(50, 600)]
    for spread in (0.0, 0.03):
        for _ in range(40):
            accuracies = np.clip(rng.normal(0.85, spread, 100), 0, 0.99)
            slices, whole = drawn_stack(rng, sizes, accuracies)
            result = evaluate_slices(slices, whole, Options(indices=("accuracy",)))
            assert result.index is not None and result.index.key == "accuracy"  # noqa: PT018 (one fact)
            leaders.append(sizes[result.weakest[0]])
            raw = result.values.overall[0]
            assert sizes[np.argmin(raw)] == 12  # unshrunken, noise leads every time
    assert np.mean(np.array(leaders) == 12) <= 0.02


def test_estimates_are_those_of_the_normal_model() -> None:
    values, items = [0.9, 0.7, 0.84, np.nan], [100.0, 12.0, 500.0, 0.0]
    mean, variance, total = 0.86, 0.12, 700.0
    pairs = list(zip(values[:3], items[:3], strict=True))
    weights = [1 / (variance / n - variance / total) for _, n in pairs]
    q = sum(w * (y - mean) ** 2 for w, (y, _) in zip(weights, pairs, strict=True))
    between = max(0, (q - 3) / sum(weights))
    expected = [mean + between / (between + variance / n) * (y - mean) for y, n in pairs]
    estimates, _ = shrink(
        np.array(values), np.array(items), np.array(mean), np.array(variance), np.array(total)
    )
    assert between > 0
    np.testing.assert_allclose(estimates, [*expected, np.nan])


def test_a_slice_of_everything_has_no_rest() -> None:
    slices, whole = drawn_stack(np.random.default_rng(1), np.array([80]), 0.8)
    result = evaluate_slices(slices, whole, Options())
    assert np.isnan(result.difference).all()
    assert np.isnan(result.p_adjusted).all()


def test_classes_without_items_leave_averages_comparable() -> None:
    counts = np.zeros((2, 3, 3))
    counts[0, :2, :2] = [[40, 10], [5, 45]]  # this slice has no item of the last class
    counts[1] = [[80, 10, 10], [5, 90, 5], [60, 20, 20]]
    slices = Slices(({"a": "x"}, {"a": "y"}), ConfusionTable.dense(counts))
    whole = ConfusionTable.dense(counts.sum(0))
    result = evaluate_slices(slices, whole, Options(indices=("macro_recall",)))
    rest = (80 / 100 + 90 / 100) / 2  # of the classes of the slice alone
    assert result.difference[0, 0] == pytest.approx((40 / 50 + 45 / 50) / 2 - rest)


def test_weighted_cells_have_no_test() -> None:
    slices, whole = drawn_stack(np.random.default_rng(1), np.array([80, 90]), 0.8)
    factors = np.array([[1.0, 2, 1], [1, 1, 1], [1, 1, 1]])
    result = evaluate_slices(slices, whole, Options(cell_weights=factors))
    assert np.isfinite(result.difference).all()
    assert np.isnan(result.p_adjusted).all()
    assert result.weakest.size == 0
