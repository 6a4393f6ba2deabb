"""Populations: estimates, standard errors and intervals of stratified samples."""

from typing import Any

import numpy as np
import pytest

from rprime.core.arrays import Array
from rprime.core.estimates import Estimates
from rprime.core.options import Options
from rprime.core.population import Population
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from tests.core.index_values import CORE

# Values of plain reference code for samples stratified by the predicted class: [value, standard
# error, lower limit, upper limit]. Rows of the tables are predicted classes. The values and
# standard errors are those of the formulas of Olofsson et al. 2014, section 4.
REFERENCE = [
    {
        "table": [[45, 3, 2], [4, 80, 16], [1, 6, 143]],
        "shares": [0.05, 0.25, 0.7],
        "accuracy": [
            0.9123333333333333,
            0.015871599784785063,
            0.8757851238824308,
            0.9386500686471219,
        ],
        "prevalence": [
            [0.05966666666666667, 0.007114213853609962, 0.04720683362929027, 0.07910849948714137],
            [0.231, 0.01517133913750332, 0.20274201999038644, 0.26396997654340815],
            [0.7093333333333334, 0.015268051955162735, 0.6777772668884586, 0.7382247139503296],
        ],
        "recall": [
            [0.7541899441340782, 0.08620108069953844, 0.5600908555747612, 0.8808642041893493],
            [0.8658008658008658, 0.04299433193591447, 0.7606391323680537, 0.9290688790241832],
            [0.9407894736842105, 0.01239840971125743, 0.9117213981661255, 0.9606987058631818],
        ],
        "precision": [
            [0.9, 0.04285714285714285, 0.7863976856252035, 0.9565242350681096],
            [0.8, 0.04020151261036848, 0.7111708344068411, 0.8666330666689676],
            [0.9533333333333334, 0.017279558643243594, 0.9068135276008725, 0.9772134508387381],
        ],
    },
    {
        "table": [[28, 1, 1], [2, 90, 8], [1, 5, 194]],
        "shares": [0.01, 0.19, 0.8],
        "accuracy": [
            0.9563333333333334,
            0.011252585520832425,
            0.928519692658055,
            0.9736002092812956,
        ],
        "prevalence": [
            [0.017133333333333334, 0.0048333870209247565, 0.009915032729240438, 0.0330437708386591],
            [0.19133333333333336, 0.010550888717462993, 0.1715623528219521, 0.21498830471885597],
            [0.7915333333333333, 0.010978935768442378, 0.7676432042361389, 0.8121840863259624],
        ],
        "recall": [
            [0.5447470817120623, 0.1534625214300914, 0.2755512913502141, 0.7901076053622023],
            [0.8937282229965157, 0.041508583463321584, 0.7855737586095906, 0.950750638942023],
            [0.9803756422134254, 0.006434240837139002, 0.9633894097698219, 0.9895661200227217],
        ],
        "precision": [
            [0.9333333333333333, 0.04632055558531008, 0.7867654163738308, 0.9815229762087295],
            [0.9, 0.030151134457776358, 0.8256343384950865, 0.9447708629393249],
            [0.97, 0.012092607484694713, 0.9361057075454807, 0.9861796856598887],
        ],
    },
]


def estimates(table: object, population: Population, **options: Any) -> Estimates:
    families: Any = {} if "indices" in options else {"families": ("core",)}
    settings = Options(population=population, **families | options)
    counts = table if isinstance(table, ConfusionTable) else ConfusionTable.dense(np.array(table))
    return Estimates.of(counts, settings, select(settings))


def numbers(evaluation: Estimates, key: str, scope: str = "overall") -> Array:
    """Value, standard error and limits of an index, (4,) or (4, k)."""
    selection, intervals, values = (
        evaluation.values.selection,
        evaluation.intervals,
        evaluation.values,
    )
    if scope == "overall":
        place = selection.overall_place[key]
        parts = (
            values.overall,
            intervals.overall_errors,
            intervals.overall_low,
            intervals.overall_high,
        )
    else:
        place = selection.place[key]
        limits = intervals.per_class_low, intervals.per_class_high
        parts = (values.per_class, intervals.per_class_errors, *limits)
    return np.array([part[place] for part in parts if part is not None])


@pytest.mark.parametrize("case", REFERENCE)
@pytest.mark.parametrize("own", [False, True])
def test_strata_of_predicted_classes_agree_with_the_reference(
    case: dict[str, Any], own: bool
) -> None:
    table, shares = np.array(case["table"], dtype=float).T, np.array(case["shares"])
    population = Population("predicted", shares)
    if own:  # the same strata, named by hand
        counts = np.zeros((3, 3, 4))
        for stratum in range(3):
            counts[stratum, :, stratum] = table[:, stratum]
        population = Population("own", shares, ("a", "b", "c"), counts)
    evaluation = estimates(table, population)
    assert numbers(evaluation, "accuracy") == pytest.approx(case["accuracy"], abs=1e-9)
    for key in ("prevalence", "recall"):
        expected = np.array(case[key]).T
        assert numbers(evaluation, key, "class") == pytest.approx(expected, abs=1e-9)
    if not own:
        expected = np.array(case["precision"]).T
        assert numbers(evaluation, "precision", "class") == pytest.approx(expected, abs=1e-9)


def test_a_prevalence_that_the_sample_has_changes_no_value() -> None:
    table = ConfusionTable.dense(np.array([[40.0, 5, 5], [10, 80, 10], [3, 7, 40]]))
    same = Population("true", table.support / table.total)
    plain = Estimates.of(table, CORE, select(CORE)).values
    values = estimates(table, same).values
    assert values.overall == pytest.approx(plain.overall, rel=1e-12, nan_ok=True)
    assert values.per_class == pytest.approx(plain.per_class, rel=1e-12, nan_ok=True)


def test_the_design_fixes_prevalences_and_keeps_the_intervals_of_recall() -> None:
    table = ConfusionTable.dense(np.array([[40.0, 5, 5], [10, 80, 10], [3, 7, 40]]))
    plain = Estimates.of(table, CORE, select(CORE))
    evaluation = estimates(table, Population("true", np.array([0.7, 0.2, 0.1])))
    place = evaluation.values.selection.place
    for bound in ("per_class_low", "per_class_high"):
        limits, other = getattr(evaluation.intervals, bound), getattr(plain.intervals, bound)
        assert limits[place["recall"]] == pytest.approx(other[place["recall"]])
        assert np.isnan(limits[place["prevalence"]]).all()
    accuracy = numbers(evaluation, "accuracy")
    assert accuracy[0] == pytest.approx(0.7 * 0.8 + 0.2 * 0.8 + 0.1 * 0.8)
    variance = np.array([0.7, 0.2, 0.1]) ** 2 * 0.8 * 0.2 / np.array([49, 99, 49])
    assert accuracy[1] == pytest.approx(np.sqrt(variance.sum()))


STRATA = {
    "true": Population("true", np.array([0.6, 0.3, 0.1])),
    "predicted": Population("predicted", np.array([0.6, 0.3, 0.1])),
}
ADJUSTED = "adjusted_balanced_accuracy"
KEYS = ("kappa", "mcc", "macro_f1", "weighted_f1", "r_prime", "balanced_accuracy", "scott_pi")


@pytest.mark.parametrize(
    ("strata", "silent"), [("true", False), ("true", True), ("predicted", False)]
)
def test_standard_errors_agree_with_numerical_derivatives(strata: str, silent: bool) -> None:
    population, step = STRATA[strata], 1e-4
    cells = np.array([[40.0, 5, 5, 0], [10, 80, 10, 0], [3, 7, 40, 0]])
    if silent:
        cells[:, 3] = 4, 3, 2
    axis = 1 if strata == "true" else 0
    items = cells.sum(axis)[:3]

    def values(shares_within: Array) -> Array:
        """Values at other shares of the cells within the strata."""
        sizes = items[:, None] if strata == "true" else np.append(items, 0)
        table = shares_within * sizes
        computed = estimates(ConfusionTable.dense(table[:, :3], table[:, 3]), population).values
        overall = [computed.lookup("overall", key) for key in KEYS]
        return np.array(
            [*overall, *computed.lookup("class", "f1"), *computed.lookup("class", "r_prime")]
        )

    whole = items[:, None] if strata == "true" else np.append(items, 1)
    within = cells / whole
    variance = np.zeros(len(KEYS) + 6)
    for stratum in range(3):
        selector = (stratum, slice(None)) if strata == "true" else (slice(None), stratum)
        influences = []
        for cell in range(len(within[selector])):
            more, less = within.copy(), within.copy()
            unit = np.eye(len(within[selector]))[cell]
            more[selector] = (1 - step) * within[selector] + step * unit
            less[selector] = (1 + step) * within[selector] - step * unit
            influences.append((values(np.abs(more)) - values(np.abs(less))) / (2 * step))
        phi, q = np.array(influences), within[selector]
        spread = q @ phi**2 - (q @ phi) ** 2
        variance += spread / (items[stratum] - 1)
    evaluation = estimates(ConfusionTable.dense(cells[:, :3], cells[:, 3]), population)
    errors = [numbers(evaluation, key)[1] for key in KEYS]
    errors += [*numbers(evaluation, "f1", "class")[1], *numbers(evaluation, "r_prime", "class")[1]]
    assert errors == pytest.approx(np.sqrt(variance), rel=1e-4)


def test_sparse_cells_have_the_intervals_of_dense_ones() -> None:
    cells = np.array([[40.0, 5, 5], [10, 80, 10], [3, 7, 40]])
    rows, columns = np.nonzero(cells)
    sparse = ConfusionTable.sparse(rows, columns, cells[rows, columns], 3)
    for population in STRATA.values():
        intervals, expected = (estimates(table, population).intervals for table in (sparse, cells))
        assert intervals.overall_low == pytest.approx(expected.overall_low, nan_ok=True)
        assert intervals.per_class_high == pytest.approx(expected.per_class_high, nan_ok=True)


@pytest.mark.parametrize("population", STRATA.values(), ids=STRATA)
def test_a_stack_has_the_intervals_of_its_tables(population: Population) -> None:
    tables = np.random.default_rng(0).integers(0, 30, (4, 3, 3)) + 1.0
    together = estimates(tables, population).intervals
    for i, table in enumerate(tables):
        alone, part = estimates(table, population).intervals, together.part(i)
        assert part.overall_low == pytest.approx(alone.overall_low, nan_ok=True)
        assert part.per_class_high == pytest.approx(alone.per_class_high, nan_ok=True)
        assert part.per_class_errors == pytest.approx(alone.per_class_errors, nan_ok=True)


@pytest.mark.parametrize("population", STRATA.values(), ids=STRATA)
def test_equal_values_have_equal_intervals(population: Population) -> None:
    cells, families = [[40, 5, 5], [10, 80, 10], [3, 7, 40]], ("core", "agreement")
    evaluation = estimates(cells, population, families=families)
    accuracy = numbers(evaluation, "accuracy")
    for key in ("r_prime", "micro_recall", "weighted_recall"):
        assert numbers(evaluation, key) == pytest.approx(accuracy)
    maxwell = numbers(evaluation, "maxwell_re")
    assert maxwell[2:] == pytest.approx(1.5 * accuracy[2:] - 0.5)
    recall, adjusted = (numbers(evaluation, key) for key in ("macro_recall", ADJUSTED))
    assert adjusted[[0, 2, 3]] == pytest.approx(1.5 * recall[[0, 2, 3]] - 0.5)
    assert numbers(evaluation, "weighted_false_negative_rate")[0] == pytest.approx(1 - accuracy[0])


def test_each_table_of_a_stack_can_have_a_population_of_its_own() -> None:
    tables = np.random.default_rng(1).integers(0, 30, (5, 3, 3)) + 1.0
    tables[2, 1] = 0  # a class without items
    stack = ConfusionTable.dense(tables)
    for strata in ("true", "predicted"):
        shares = np.random.default_rng(2).dirichlet([2, 2, 2], 5)
        shares[2] = 0.3, 0.0, 0.7
        together = estimates(stack, Population(strata, shares)).intervals
        for i, table in enumerate(tables):
            alone = estimates(table, Population(strata, shares[i])).intervals
            part = together.part(i)
            assert part.overall_low == pytest.approx(alone.overall_low, nan_ok=True)
            assert part.per_class_high == pytest.approx(alone.per_class_high, nan_ok=True)
            assert part.per_class_errors == pytest.approx(alone.per_class_errors, nan_ok=True)


def test_equal_shares_are_those_of_the_classes_with_items() -> None:
    tables = np.array([[[9.0, 1], [4, 16]], [[7, 3], [0, 0]]])
    population = Population.uniform(ConfusionTable.dense(tables))
    assert population.shares.tolist() == [[0.5, 0.5], [1, 0]]
    accuracy = numbers(estimates(ConfusionTable.dense(tables), population), "accuracy")
    assert accuracy[0] == pytest.approx([0.5 * 0.9 + 0.5 * 0.8, 0.7])


def test_f1_and_recall_on_a_map_have_the_limits_of_its_strata() -> None:
    # Rows are predicted classes. The formulas in plain numbers, for the first class, of which the
    # second stratum shows no item.
    table = np.array([[66.0, 0, 5, 4], [0, 55, 8, 12], [1, 0, 153, 11], [2, 1, 9, 313]])
    shares, z = [0.02, 0.015, 0.32, 0.645], 1.959963984540054

    def wilson(hits: float, items: float, z: float) -> tuple[float, float]:
        middle = (hits + z * z / 2) / (items + z * z)
        half = z / (items + z * z) * (hits * (items - hits) / items + z * z / 4) ** 0.5
        return middle - half, middle + half

    def f1(precision: float, missed: float) -> float:
        return 2 * 0.02 * precision / (0.02 + 0.02 * precision + missed)

    def recall(precision: float, missed: float) -> float:
        return 0.02 * precision / (0.02 * precision + missed)

    strata = [(table[h, 0], table[h].sum(), shares[h]) for h in range(4)]
    precision, others = 66 / 75, strata[1:]
    missed = sum(w * hits / items for hits, items, w in others)
    shrunk = [(w, (hits + 0.5) / (items + 1), items) for hits, items, w in others]
    spread = [w * (p * (1 - p) / items) ** 0.5 for w, p, items in shrunk]
    reduced = z * sum(each * each for each in spread) ** 0.5 / sum(spread)
    summed = sum(w * wilson(hits, items, reduced)[1] for hits, items, w in others)
    steps = [w * (wilson(hits, items, z)[1] - hits / items) for hits, items, w in others]
    upper = max(summed, missed + sum(step * step for step in steps) ** 0.5)
    evaluation = estimates(table.T, Population("predicted", np.array(shares)))
    for key, index in (("f1", f1), ("recall", recall)):
        value = index(precision, missed)
        distance = value - index(wilson(66, 75, z)[0], missed)
        lower = value - (distance**2 + (value - index(precision, upper)) ** 2) ** 0.5
        assert numbers(evaluation, key, "class")[2, 0] == pytest.approx(lower, abs=1e-9), key
