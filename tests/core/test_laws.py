"""Laws over the whole catalog: what must hold for every index, by its own declaration."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rprime.core.catalog import CLASS_INDICES, FAMILIES, INDICES, ORDERED_KEYS, declared
from rprime.core.estimates import Estimates
from rprime.core.families.averages import AVERAGES
from rprime.core.index import CODE, REASONS, Index
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.studies import properties_of
from rprime.core.table import ConfusionTable
from rprime.core.values import Values
from rprime.core.warnings import WarningInputs, check_all
from tests.core.degenerate_tables import omissions, stacks
from tests.core.index_values import assert_near, dense, overall, per_class, values_of

COST = {3: np.array([[0.0, 1, 2], [3, 0, 1], [1, 4, 0]])}


@st.composite
def tables(draw: st.DrawFn, least: int = 2) -> tuple[Any, Any, Any]:
    """Draw counts, unclassified and spurious items of two to five classes."""
    k = draw(st.integers(least, 5))
    cell = st.one_of(st.integers(0, 3), st.integers(0, 60))
    counts = draw(arrays(np.float64, (k, k), elements=cell))
    omitted = draw(arrays(np.float64, (2, k), elements=st.sampled_from([0, 0, 0, 1, 7])))
    return counts, omitted[0], omitted[1]


def everything(values: Values) -> dict[tuple[str, str], Any]:
    numbers = {("class", key): v for key, v in per_class(values).items()}
    return numbers | {("overall", key): v for key, v in overall(values).items()}


@given(tables())
def test_shapes_follow_the_scope(drawn: tuple[Any, Any, Any]) -> None:
    indices, k = everything(values_of(dense(*drawn))), len(drawn[0])
    for entry in INDICES:
        value = indices.get((entry.scope, entry.key))
        if value is not None:
            assert np.shape(value) == ((k,) if entry.scope == "class" else ())


@given(tables())
def test_values_stay_in_their_declared_range(drawn: tuple[Any, Any, Any]) -> None:
    indices = everything(values_of(dense(*drawn)))
    for entry in INDICES:
        value = indices.get((entry.scope, entry.key))
        if value is None:
            continue
        finite = value[np.isfinite(value)]
        low, high = entry.range
        assert (finite >= low - 1e-9).all(), (entry.key, finite)
        assert (finite <= high + 1e-9).all(), (entry.key, finite)


@given(st.lists(st.integers(1, 50), min_size=3, max_size=6))
def test_a_diagonal_table_gets_the_best_value(support: list[int]) -> None:
    k = len(support)
    cost = 1.0 - np.eye(k)
    indices = everything(values_of(dense(np.diag(support)), cost=cost, kappa_weights="linear"))
    best = {(e.scope, e.key): e.best for e in INDICES if e.best is not None and not e.scored}
    finite = {name: value for name, value in best.items() if np.isfinite(value)}
    assert_near(indices, {name: np.full_like(indices[name], v) for name, v in finite.items()})
    for name in best.keys() - finite.keys():
        assert not np.isfinite(indices[name]).any(), name


@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_the_classes_does_not_matter(drawn: tuple[Any, Any, Any], rng: Any) -> None:
    counts, unclassified, spurious = drawn
    order = np.array(rng.sample(range(len(counts)), len(counts)))
    values = values_of(dense(*drawn))
    moved = values_of(dense(counts[np.ix_(order, order)], unclassified[order], spurious[order]))
    of_classes = {k: v[order] for k, v in per_class(values).items() if k not in ORDERED_KEYS}
    assert_near(per_class(moved), of_classes)
    kept = {key: value for key, value in overall(values).items() if key not in ORDERED_KEYS}
    assert_near(overall(moved), kept)


def test_the_order_of_the_classes_matters_to_ordinal_indices() -> None:
    # Two labels swap places, and the confusion of neighbours becomes one across three labels.
    counts = np.array([[8, 2, 0], [0, 9, 1], [0, 0, 7]])
    moved = counts[np.ix_([1, 0, 2], [1, 0, 2])]
    near, far = (overall(values_of(dense(table))) for table in (counts, moved))
    moves = {key: far[key] - near[key] for key in ORDERED_KEYS & near.keys()}
    assert len(moves) >= 7
    assert all(move > 0.01 if "error" in key else move < -0.01 for key, move in moves.items())


@given(tables(), st.sampled_from([2, 7, 1000]))
def test_scale_matters_only_where_declared(drawn: tuple[Any, Any, Any], factor: int) -> None:
    scaled = everything(values_of(dense(*(factor * part for part in drawn))))
    sensitive = {(entry.scope, entry.key) for entry in INDICES if not entry.scale_invariant}
    plain = everything(values_of(dense(*drawn)))
    assert_near(scaled, {name: v for name, v in plain.items() if name not in sensitive})


def test_scale_matters_where_it_is_declared_to() -> None:
    counts = np.array([[8, 2], [1, 9]])
    single, two = (everything(values_of(dense(n * counts))) for n in (1, 2))
    declared_so = (e for e in INDICES if not (e.scale_invariant or e.scored))
    sensitive = {e.key: e.scope for e in declared_so if e.reads != "macro"}
    numbers = {f"{kind}_{of}" for kind in ("true", "false") for of in ("positives", "negatives")}
    assert sensitive.keys() == {
        *("chi2", "chi2_p_value", "krippendorff_alpha", "bowker_chi2", "bowker_p_value"),
        *("rand_index", "adjusted_rand_index", "pair_fowlkes_mallows"),
        *numbers,
    }
    assert all((single[scope, key] != two[scope, key]).any() for key, scope in sensitive.items())


@settings(max_examples=50)
@given(st.lists(tables(least=3).filter(lambda drawn: len(drawn[0]) == 3), min_size=1, max_size=4))
def test_a_stack_gives_what_its_members_give(drawn: list[tuple[Any, Any, Any]]) -> None:
    members = [dense(*parts) for parts in drawn]
    options = {"cost": COST[3], "kappa_weights": "linear"}
    stacked = values_of(ConfusionTable.stack(members), **options)
    for i, member in enumerate(members):
        alone = values_of(member, **options)
        np.testing.assert_array_equal(stacked.per_class[:, i], alone.per_class)
        np.testing.assert_array_equal(stacked.overall[:, i], alone.overall)


def test_classes_that_were_never_answered_weigh_the_same_in_a_stack() -> None:
    counts = np.diag([1.0, 0.0, 0.0])
    member = dense(counts, np.ones(3), np.ones(3))
    empty = dense(np.zeros((3, 3)), np.zeros(3), np.zeros(3))
    alone, stacked = values_of(member), values_of(ConfusionTable.stack([empty, member]))
    np.testing.assert_array_equal(stacked.overall[:, 1], alone.overall)


def test_one_item_in_a_thousand_million_stays_in_range() -> None:
    counts = np.array([[0.0, 1.0], [1e9, 0.0]])
    assert overall(values_of(dense(counts, np.zeros(2), np.zeros(2))))["peirce_skill_score"] == -1


@given(tables(), st.sampled_from(["linear", "quadratic", "matrix"]))
def test_sparse_gives_what_dense_gives(drawn: tuple[Any, Any, Any], weights: str) -> None:
    counts, unclassified, spurious = drawn
    k = len(counts)
    rows, columns = np.nonzero(counts)
    sparse = ConfusionTable.sparse(
        rows, columns, counts[rows, columns], k, unclassified=unclassified, spurious=spurious
    )
    cost = np.arange(k * (k + 1), dtype=float).reshape(k, k + 1)
    given_weights: Any = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) ** 0.5
    options = {"cost": cost, "kappa_weights": given_weights if weights == "matrix" else weights}
    left, right = values_of(dense(*drawn), **options), values_of(sparse, **options)
    assert_near(everything(right), everything(left))


@given(tables())
def test_whatever_is_undefined_has_a_reason(drawn: tuple[Any, Any, Any]) -> None:
    values = values_of(dense(*drawn))
    for numbers, codes in (
        (values.per_class, values.class_reasons),
        (values.overall, values.overall_reasons),
    ):
        missing = ~np.isfinite(numbers)
        assert (np.zeros_like(missing) if codes is None else codes > 0).tolist() == missing.tolist()


def test_an_empty_table_has_no_values_and_says_so() -> None:
    values = values_of(dense(np.zeros((3, 3))))
    assert not np.isfinite(values.overall).any()
    assert values.overall_reasons is not None
    reasons = {REASONS[code] for code in values.overall_reasons}
    assert reasons <= {"no_samples", "no_class_defined", "no_true_samples", "no_predictions"}


def test_every_index_is_declared_completely() -> None:
    for entry in INDICES:
        assert entry.description.endswith("."), entry.key
        assert all((entry.symbol, entry.name, entry.tex, entry.source))
        assert entry.undefined or entry.reads == "counts"  # numbers of items always exist
        assert set(entry.undefined) <= set(REASONS)
        assert entry.range[0] < entry.range[1]
        assert entry.best is None or entry.best in entry.range or entry.best == 0


def test_every_per_class_index_brings_its_averages() -> None:
    keys = {entry.key for entry in INDICES if entry.reads in {"macro", "weighted", "micro"}}
    for key, entry in CLASS_INDICES.items():
        assert ({f"macro_{key}", f"weighted_{key}"} <= keys) == entry.averaged
        assert (f"micro_{key}" in keys) == (entry.micro and entry.averaged)


def test_the_catalog_collects_what_the_families_declare() -> None:
    entries = [entry for family in FAMILIES for entry in declared(family)]
    derived = [e for e in INDICES if e.of and e.reads in AVERAGES and e.key.startswith(e.reads)]
    assert len(entries) == len(INDICES) - len(derived)


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(KeyError, match="acuracy"):
        values_of(dense(np.eye(2)), indices=("acuracy",))


@given(arrays(np.float64, st.integers(2, 7), elements=st.integers(1, 1000)))
def test_rounding_takes_no_uncertainty_coefficient_beyond_1(support: Any) -> None:
    keys = ("uncertainty_true", "uncertainty_predicted", "normalized_mutual_information")
    indices = overall(values_of(dense(np.diag(support)), indices=keys))
    for key in keys:
        assert 1 - 1e-12 < indices[key] <= 1


@given(arrays(np.float64, st.integers(2, 9), elements=st.integers(1, 1000)))
@example(np.array([41.0, 171.0, 188.0, 869.0, 91.0, 595.0]))
def test_rounding_takes_no_index_of_a_perfect_table_beyond_its_range(support: Any) -> None:
    values = values_of(dense(np.diag(support)))
    for entry in values.selection.overall:
        value = values.lookup("overall", entry.key)
        if np.isfinite(value):
            assert entry.range[0] <= value <= entry.range[1], entry.key
    for key in ("cramers_v", "tschuprows_t"):
        assert values.lookup("overall", key) > 1 - 1e-12


EVERY = Options(families=("all",), intervals=True)
SELECTION = select(EVERY)
TABLES = 17 * int(os.environ.get("RPRIME_TEST_DRAWS", "30"))
"""Tables of one law, degenerate ones first, in stacks."""


@dataclass(frozen=True)
class Facts:
    """What a report says about a stack of tables: one array (index, table, ...) for each scope."""

    counts: Any
    omitted: tuple[Any, ...] | None = None
    weighted: bool = False

    @cached_property
    def estimates(self) -> Estimates:
        table = ConfusionTable.dense(self.counts, *(self.omitted or ()), weighted=self.weighted)
        return Estimates.of(table, EVERY, SELECTION)

    def changed(self, counts: Any, *omitted: Any, weighted: bool = False) -> "Facts":
        return Facts(counts, omitted or None, weighted)

    def scaled(self, factor: float) -> "Facts":
        scaled = (factor * part for part in self.omitted or ())
        return self.changed(factor * self.counts, *scaled, weighted=factor % 1 != 0)

    @property
    def values(self) -> dict[str, tuple[Any, Any]]:
        v = self.estimates.values
        codes = zip((v.class_reasons, v.overall_reasons), (v.per_class, v.overall), strict=True)
        reasons = [np.zeros(of.shape) if code is None else code for code, of in codes]
        return {"value": (v.per_class, v.overall), "reason": (reasons[0], reasons[1])}

    @property
    def intervals(self) -> dict[str, tuple[Any, Any]]:
        """The intervals, those narrower than `WIDTH` as none."""
        bounds, result = self.estimates.intervals, {}
        for scope in ("per_class", "overall"):
            low, high, codes, unreliable = (
                getattr(bounds, f"{scope}_{name}")
                for name in ("low", "high", "reasons", "low_reliability")
            )
            narrow = ~(high - low > WIDTH)
            result[scope] = {
                "low": np.where(narrow, np.nan, low),
                "high": np.where(narrow, np.nan, high),
                "no interval": np.where(narrow & (codes == 0), CODE["no_interval"], codes),
                "low reliability": 1.0 * (unreliable & ~narrow),
            }
        return {
            what: (result["per_class"][what], result["overall"][what]) for what in result["overall"]
        }

    @property
    def bands(self) -> dict[str, list[str | None]]:
        v = self.estimates.values
        return {
            entry.key: [entry.band(x) for x in v.lookup("overall", entry.key) if np.isfinite(x)]
            for entry in SELECTION.overall
            if entry.band is not None
        }

    @property
    def warnings(self) -> dict[str, Any]:
        masks = check_all(WarningInputs(self.estimates.values, self.estimates.intervals))
        return {check.code: mask for check, _, mask in masks}


WIDTH = 1e-6
"""A narrower interval is rounding of a value that is certain, and may as well be missing."""


def law_tables(seed: int) -> Iterator[Facts]:
    """Stacks of tables, each once without omissions and once with."""
    for counts in stacks(seed, TABLES // 2):
        yield Facts(counts)
        yield Facts(counts, omissions(seed, counts))


def differences(
    left: dict[str, tuple[Any, Any]], right: dict[str, tuple[Any, Any]]
) -> Iterator[tuple[str, Index, int]]:
    """Yield what two reports do not agree on, but for rounding: the fact, the index, the table."""
    for what, pairs in left.items():
        scopes = zip((SELECTION.computed, SELECTION.overall), pairs, right[what], strict=True)
        for entries, reference, two in scopes:
            near = 1e-6 if what in {"low", "high"} else 1e-9
            with np.errstate(invalid="ignore"):
                close = np.abs(reference - two) <= near * np.maximum(1, np.abs(reference))
            same = close | (reference == two) | np.isnan(reference) & np.isnan(two)
            yield from ((what, entries[place], table) for place, table, *_ in np.argwhere(~same))


def named(facts: Facts, deviations: Iterator[tuple[str, Index, int]]) -> list[Any]:
    """Return differences with the counts of their tables."""
    return [(what, entry.key, facts.counts[table].tolist()) for what, entry, table in deviations]


def test_permuted_classes_change_nothing_at_all() -> None:
    rng = np.random.default_rng(1)
    for facts in law_tables(1):
        order = rng.permutation(facts.counts.shape[-1])
        omitted = (part[:, order] for part in facts.omitted or ())
        moved = facts.changed(facts.counts[:, order][:, :, order], *omitted)
        expected = {
            what: (of_classes[:, :, order], whole)
            for what, (of_classes, whole) in (facts.values | facts.intervals).items()
        }
        deviations = differences(expected, moved.values | moved.intervals)
        assert (
            named(facts, (deviation for deviation in deviations if not deviation[1].ordered)) == []
        )
        assert facts.bands["kappa"] == moved.bands["kappa"]
        warned, again = facts.warnings, moved.warnings
        assert warned.keys() == again.keys()
        for code, mask in warned.items():
            there = mask[:, order] if np.ndim(mask) > 1 else mask
            np.testing.assert_array_equal(there, again[code], err_msg=code)


def test_three_times_the_items_say_the_same_more_certainly() -> None:
    for facts in law_tables(2):
        more = facts.scaled(3)
        deviations = differences(facts.values, more.values)
        assert (
            named(facts, (deviation for deviation in deviations if deviation[1].scale_invariant))
            == []
        )
        assert facts.bands == more.bands
        for (entries, width, low), (_, two, _) in zip(widths(facts), widths(more), strict=True):
            wider = two > width * 1.02 + WIDTH
            # Without a lowest value there is no interval where the smoothed value is below -1.
            bottomless = [entry.range[0] == -np.inf for entry in entries]
            wider[bottomless] &= width[bottomless] > 0
            follow = [entry.key in FOLLOW_SMOOTHING for entry in entries]
            wider[follow] &= ~low[follow]
            assert named(facts, (("width", entries[i], t) for i, t, *_ in np.argwhere(wider))) == []


FOLLOW_SMOOTHING = frozenset(
    (
        "aickin_alpha",
        *(f"{of}conditional_kappa_true" for of in ("", "macro_", "weighted_")),
        *(f"{of}conditional_kappa_predicted" for of in ("", "macro_", "weighted_")),
        *("macro_yule_q", "weighted_yule_q", "bangdiwala_b", "f1_of_macro_averages", "weighted_r"),
    )
)
"""Indices whose intervals may be wider at three times the items where they are marked low.

There hardly an item is right, and half an item more decides the value of the smoothed table.
Conditional kappas, their averages and Aickin's alpha have no lowest value, Bangdiwala's B squares
the right items, and F1 of the averages divides by a sum near 0, so their effective number of items
is not proportional to the items. Averages of Yule's Q and of R' reduce the quantile by standard
errors that are nearly 0 at the ends of the scale.
"""


def widths(facts: Facts) -> Iterator[tuple[list[Index], Any, Any]]:
    """Yield the indices that no scale changes, their widths, and whether these are marked low."""
    bounds = facts.estimates.intervals
    marks = (bounds.per_class_low_reliability, bounds.overall_low_reliability)
    limits = zip(facts.intervals["low"], facts.intervals["high"], strict=True)
    entries = (SELECTION.computed, SELECTION.overall)
    for (low, high), marked, of in zip(limits, marks, entries, strict=True):
        places = [i for i, e in enumerate(of) if e.scale_invariant and not e.scored]
        width = np.nan_to_num(high - low, posinf=np.inf)[places]
        yield [of[i] for i in places], width, marked[places]


def test_a_transposed_table_gives_an_index_the_value_of_its_mirror() -> None:
    for facts in law_tables(3):
        turned = facts.changed(facts.counts.swapaxes(-2, -1), *(facts.omitted or ())[::-1])
        values, other = facts.estimates.values, turned.estimates.values
        every = (facts.counts.any(-1) & facts.counts.any(-2)).all(-1)
        for entry in (*SELECTION.computed, *SELECTION.overall):
            mirror = None if entry.scored else properties_of(entry).transposed
            # Averages are over the classes with items, which need not be those with predictions.
            averaged = entry.reads in {"macro", "weighted", "means"}
            if mirror is None or (facts.omitted and (averaged or entry.universe == "all")):
                continue
            value, two = values.lookup(entry.scope, entry.key), other.lookup(entry.scope, mirror)
            same = np.isclose(value, two, rtol=1e-9, atol=1e-9, equal_nan=True)
            wrong = np.unique(np.argwhere(~same)[:, 0])
            assert [facts.counts[t].tolist() for t in wrong if every[t] or not averaged] == [], (
                entry.key
            )


@pytest.mark.parametrize("factor", [0.1, 1 / 3, 1e-3, 7.3])
def test_a_common_weight_of_all_items_changes_nothing(factor: float) -> None:
    for facts in law_tables(4):
        weighted = facts.scaled(factor)
        deviations = differences(facts.values, weighted.values)
        assert (
            named(facts, (deviation for deviation in deviations if deviation[1].scale_invariant))
            == []
        )
        assert facts.bands == weighted.bands
        warned, again = facts.warnings, weighted.warnings
        for code in (warned.keys() | again.keys()) - OF_NUMBERS:
            there = np.zeros(len(facts.counts), dtype=bool)
            np.testing.assert_array_equal(
                warned.get(code, there), again.get(code, there), err_msg=code
            )


OF_NUMBERS = {
    *("few_items", "r_prime_at_chance", "non_integer_counts"),
    *("looks_like_shares", "accuracy_not_above_no_information_rate"),
    "weighted_without_intervals",
}
"""Warnings about numbers of items, and about intervals and p-values, which rest on them."""


def test_a_table_of_weights_says_the_same_in_any_unit() -> None:
    rng = np.random.default_rng(5)
    for facts in law_tables(5):
        weights = rng.choice([0.1, 1 / 3, 0.7, 1.3, 5], facts.counts.shape)
        weighted = facts.changed(facts.counts * weights, *(facts.omitted or ()), weighted=True)
        for factor in (0.1, 1 / 3, 1e-3, 1e6):
            other = weighted.scaled(factor)
            deviations = differences(weighted.values, other.values)
            assert named(weighted, (part for part in deviations if part[1].scale_invariant)) == []
            assert weighted.bands == other.bands
