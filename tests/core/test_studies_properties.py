"""The computed properties of the catalog hold as laws, and what they deny has a witness."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rprime.core import catalog
from rprime.core.catalog import find
from rprime.core.index import Index
from rprime.core.studies import Properties, Relation, all_properties, properties_of
from tests.core.index_values import dense, overall, per_class, values_of

INDICES = tuple(entry for entry in catalog.INDICES if not entry.scored)
CLASS_INDICES = {entry.key: entry for entry in INDICES if entry.scope == "class"}

Values = dict[tuple[str, str], Any]
COST = 1 + np.arange(9.0).reshape(3, 3) * (1 - np.eye(3))


@pytest.fixture(autouse=True, scope="module")
def computed() -> None:
    """Compute the properties once, so that no example takes longer than the others."""
    all_properties()


@st.composite
def tables(draw: st.DrawFn) -> Any:
    """Draw tables of three classes, empty cells among them."""
    return draw(arrays(np.float64, (3, 3), elements=st.integers(0, 40))) + np.eye(3)


def everything(counts: Any) -> Values:
    values = values_of(dense(counts), cost=COST, kappa_weights="linear", beta=2.0)
    numbers: Values = {("class", key): value for key, value in per_class(values).items()}
    return numbers | {("overall", key): value for key, value in overall(values).items()}


def of(scope: str, key: str) -> Properties:
    index = find("class" if scope == "class" else "overall", key)
    assert index is not None
    return properties_of(index)


def assert_law(entry: Index, left: Any, right: Any) -> None:
    # Where one of the two does not exist the law says nothing.
    both = np.isfinite(left) & np.isfinite(right)
    np.testing.assert_allclose(
        np.where(both, left, 0), np.where(both, right, 0), rtol=1e-9, atol=1e-9, err_msg=entry.key
    )


@given(tables(), st.permutations(range(3)))
def test_the_order_of_the_classes_is_as_declared(counts: Any, order: list[int]) -> None:
    before, after = everything(counts), everything(counts[np.ix_(order, order)])
    for entry in INDICES:
        if properties_of(entry).class_order:
            value = before[entry.scope, entry.key]
            left = value[order] if entry.scope == "class" else value
            assert_law(entry, left, after[entry.scope, entry.key])


@given(tables(), st.sampled_from([2, 7, 1000]))
def test_the_scale_is_as_computed(counts: Any, factor: int) -> None:
    before, after = everything(counts), everything(counts * factor)
    for entry in INDICES:
        if properties_of(entry).scale:
            assert_law(entry, before[entry.scope, entry.key], after[entry.scope, entry.key])


@given(tables(), st.lists(st.integers(1, 9), min_size=3, max_size=3))
def test_prevalence_is_as_computed(counts: Any, factors: list[int]) -> None:
    before, after = everything(counts), everything(counts * np.array(factors)[:, None])
    for entry in INDICES:
        properties = properties_of(entry)
        whole = np.isfinite(before[entry.scope, entry.key]).all()
        for key in entry.of:
            whole &= np.isfinite(before["class", key]).all()
        if properties.prevalence and whole:
            assert_law(entry, before[entry.scope, entry.key], after[entry.scope, entry.key])


@given(tables(), st.integers(0, 2), st.integers(2, 9))
def test_the_prevalence_of_the_own_class_is_as_computed(
    counts: Any, code: int, factor: int
) -> None:
    factors = np.where(np.arange(3) == code, factor, 1)[:, None]
    before, after = everything(counts), everything(counts * factors)
    for key, entry in CLASS_INDICES.items():
        if properties_of(entry).own_prevalence:
            assert_law(entry, before["class", key][code], after["class", key][code])


@given(tables())
def test_transposition_is_as_computed(counts: Any) -> None:
    before, after = everything(counts), everything(counts.T)
    if not all(np.isfinite(value).all() for value in before.values()):
        return  # an average over fewer classes is another one
    for entry in INDICES:
        into = properties_of(entry).transposed
        if into is not None:
            assert_law(entry, before[entry.scope, into], after[entry.scope, entry.key])


@given(tables(), tables())
def test_related_indices_order_tables_the_same_way(counts: Any, two: Any) -> None:
    left, right = everything(counts), everything(two)
    for entry in INDICES:
        if entry.scope == "overall":
            for relation in properties_of(entry).relations:
                assert_same_order(entry, relation, left, right, fixed=False)


@given(tables(), tables())
def test_related_indices_order_models_on_one_test_set_the_same_way(counts: Any, two: Any) -> None:
    sizes = counts.sum(axis=1)
    left, right = everything(counts), everything(two * (sizes / two.sum(axis=1))[:, None])
    for entry in INDICES:
        for relation in properties_of(entry).relations:
            assert_same_order(entry, relation, left, right, fixed=True)


def assert_same_order(
    entry: Index, relation: Relation, left: Values, right: Values, *, fixed: bool
) -> None:
    if relation.extent == "same_test_set" and not fixed:
        return
    if not whole(entry, left, right) or not whole_key(entry, relation.key, left, right):
        return
    mine = left[entry.scope, entry.key] - right[entry.scope, entry.key]
    other = left[entry.scope, relation.key] - right[entry.scope, relation.key]
    # Differences of rounding alone have no order.
    sure = (np.abs(mine) > 1e-7) & (np.abs(other) > 1e-7)
    product = np.sign(mine) * np.sign(other) * (1 if relation.rising else -1)
    assert (product[sure] > 0).all(), (entry.key, relation)


def whole(entry: Index, *samples: Values) -> bool:
    """Whether neither the index nor an average in it leaves out a class."""
    keys = [(entry.scope, entry.key), *(("class", key) for key in entry.of)]
    return all(np.isfinite(values[key]).all() for values in samples for key in keys)


def whole_key(entry: Index, key: str, *samples: Values) -> bool:
    other = find(entry.scope, key)
    assert other is not None
    return whole(other, *samples)


def test_what_is_declared_about_scale_is_what_is_computed() -> None:
    for entry in INDICES:
        assert entry.scale_invariant == properties_of(entry).scale, entry.key


def test_whatever_is_denied_has_a_witness() -> None:
    """A law that is not claimed fails somewhere: nothing is left out by mistake."""
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 40, (3, 3)) + 20.0 * np.eye(3)
    order = [1, 2, 0]
    before = everything(counts)
    changed = {
        "scale": everything(counts * 3),
        "prevalence": everything(counts * np.array([[1], [4], [9]])),
        "class_order": everything(counts[np.ix_(order, order)]),
        "transposition": everything(counts.T),
    }
    for entry in INDICES:
        key = (entry.scope, entry.key)
        for law, after in changed.items():
            value = before[key]
            left = value[order] if law == "class_order" and np.ndim(value) else value
            holds = np.allclose(left, after[key], rtol=1e-9, atol=1e-9, equal_nan=True)
            assert holds == getattr(properties_of(entry), law), (key, law)


@pytest.mark.parametrize("key", ["scott_pi_true_margin", "maxwell_re"])
def test_indices_that_labatut_and_cherifi_call_equivalent_are(key: str) -> None:
    relations = {relation.key: relation for relation in of("overall", "accuracy").relations}
    assert relations[key].rising
    assert relations["maxwell_re"].extent == "always"
    assert relations["scott_pi_true_margin"].extent == "same_test_set"
    assert "kappa" not in relations
    assert "csi" not in relations


def test_the_facts_about_r_prime_show_in_its_properties() -> None:
    assert Relation("balanced_accuracy", rising=True, extent="always") in (
        of("overall", "macro_r_prime").relations
    )
    assert Relation("accuracy", rising=True, extent="always") in of("overall", "r_prime").relations
    assert Relation("peirce_skill_score", rising=True, extent="same_test_set") in (
        of("overall", "weighted_r_prime").relations
    )
    assert Relation("informedness", rising=True, extent="same_test_set") in (
        of("class", "r_prime").relations
    )
    assert not of("class", "r_prime").own_prevalence
    assert of("class", "informedness").own_prevalence


def test_f1_and_jaccard_repeat_each_other() -> None:
    assert Relation("jaccard", rising=True, extent="always") in of("class", "f1").relations


def test_recall_turns_into_precision() -> None:
    assert of("class", "recall").transposed == "precision"
    assert of("class", "recall").prevalence
    assert not of("class", "precision").prevalence
    assert of("class", "f1").transposition


def test_relations_are_mutual() -> None:
    for entry in INDICES:
        for relation in properties_of(entry).relations:
            back = of(entry.scope, relation.key).relations
            assert Relation(entry.key, relation.rising, relation.extent) in back


def test_what_never_changes_repeats_nothing() -> None:
    assert not of("overall", "coverage").relations
