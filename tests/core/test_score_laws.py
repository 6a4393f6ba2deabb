"""Laws over all indices of scores: what must hold for every one, by its own declaration."""

from functools import partial
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rprime.core.catalog import CLASS_INDICES, INDICES, OVERALL_INDICES, SCORE_KEYS
from rprime.core.index import REASONS, Index
from rprime.core.scores.scores import Scores
from tests.core.index_values import assert_near, dense, overall, values_of
from tests.core.score_values import evaluated, values

SCORED: dict[tuple[str, str], Index] = {
    (entry.scope, entry.key): entry for entry in INDICES if entry.scored
}
alone = partial(evaluated, indices=tuple(SCORE_KEYS))
RANKING = ("roc_auc", "average_precision", "hand_till_auc", "macro_roc_auc", "weighted_roc_auc")


@st.composite
def scored(draw: st.DrawFn) -> Scores:
    """Draw probabilities of two to four classes, many of them equal."""
    n, k = draw(st.integers(2, 25)), draw(st.integers(2, 4))
    true = draw(arrays(np.uint8, n, elements=st.integers(0, k - 1)))
    parts = draw(arrays(np.float64, (n, k), elements=st.integers(1, 6)))
    return Scores(true, parts / parts.sum(-1, keepdims=True))


@given(scored())
def test_values_and_limits_stay_in_their_range(scores: Scores) -> None:
    evaluation = alone(scores)
    intervals = evaluation.intervals
    assert intervals is not None
    indices = values(evaluation)
    for name, entry in SCORED.items():
        value = np.asarray(indices[name])
        finite = value[np.isfinite(value)]
        assert (finite >= entry.range[0] - 1e-9).all(), name
        assert (finite <= entry.range[1] + 1e-9).all(), name
        place = (
            evaluation.selection.place[entry.key]
            if entry.scope == "class"
            else evaluation.selection.overall_place[entry.key]
        )
        prefix = "per_class" if entry.scope == "class" else "overall"
        low, high = (getattr(intervals, f"{prefix}_{end}")[place] for end in ("low", "high"))
        there = np.isfinite(low)
        assert ((low <= value + 1e-12) & (value <= high + 1e-12))[there].all(), name
        assert (low >= entry.range[0])[there].all(), name
        assert (high <= entry.range[1])[there].all(), name


@given(scored())
def test_what_is_undefined_has_a_reason(scores: Scores) -> None:
    computed = alone(scores).values
    for numbers, codes in (
        (computed.per_class, computed.class_reasons),
        (computed.overall, computed.overall_reasons),
    ):
        missing = ~np.isfinite(numbers)
        assert (np.zeros_like(missing) if codes is None else codes > 0).tolist() == missing.tolist()


@given(scored(), st.randoms(use_true_random=False))
def test_the_order_of_the_items_does_not_matter(scores: Scores, rng: Any) -> None:
    order = np.array(rng.sample(range(len(scores.true)), len(scores.true)))
    moved = values(alone(Scores(scores.true[order], scores.values[order])))
    assert_near(moved, values(alone(scores)))


@given(scored())
def test_the_order_of_the_classes_does_not_matter_without_equal_scores(scores: Scores) -> None:
    k = scores.k
    distinct = scores.values + np.random.default_rng(0).uniform(0, 1e-4, scores.values.shape)
    distinct /= distinct.sum(-1, keepdims=True)
    plain = values(alone(Scores(scores.true, distinct)))
    turned = Scores((k - 1 - scores.true).astype(np.uint8), distinct[:, ::-1])
    back = values(alone(turned))
    assert_near({name: v[::-1] if name[0] == "class" else v for name, v in back.items()}, plain)


@given(scored())
def test_only_the_order_of_scores_matters_to_ranking(scores: Scores) -> None:
    plain = values(alone(scores))
    steeper = values(alone(Scores(scores.true, np.exp(30 * scores.values))))
    assert_near(steeper, {name: v for name, v in plain.items() if name[1] in RANKING})


@given(scored())
def test_the_opposite_scores_have_the_opposite_area(scores: Scores) -> None:
    plain = values(alone(scores))
    turned = values(alone(Scores(scores.true, -scores.values)))
    names = (("class", "roc_auc"), ("overall", "hand_till_auc"))
    ones = {name: np.where(np.isnan(plain[name]), np.nan, 1) for name in names}
    assert_near({name: plain[name] + turned[name] for name in names}, ones)


def test_certain_and_right_is_the_best_value() -> None:
    true = np.repeat(np.arange(3), 5).astype(np.uint8)
    indices = values(alone(Scores(true, np.eye(3)[true])))
    best = {name: e.best for name, e in SCORED.items() if e.best is not None}
    assert_near(indices, {name: np.full_like(indices[name], value) for name, value in best.items()})


@given(scored())
def test_items_twice_change_only_sums(scores: Scores) -> None:
    twice = Scores(np.tile(scores.true, 2), np.tile(scores.values, (2, 1)))
    doubled = values(alone(twice))
    scaled = {
        name: value if SCORED[name].scale_invariant else 2 * value
        for name, value in values(alone(scores)).items()
        # A sum over items, which tends to an area with their number, and what takes away the part
        # of chance, which depends on their number.
        if name[1] != "area_under_risk_coverage" and "debiased" not in name[1]
    }
    assert_near(doubled, scaled)


def test_reports_without_scores_have_none_of_them() -> None:
    computed = values_of(dense([[8, 2], [1, 9]]))
    keys = {e.key for e in (*computed.selection.per_class, *computed.selection.overall)}
    assert keys.isdisjoint(SCORE_KEYS)


def test_asked_for_without_scores_they_say_so() -> None:
    for undefined in ("null", "zero"):
        computed = values_of(
            dense([[8, 2], [1, 9]]), indices=tuple(SCORE_KEYS), undefined=undefined
        )
        assert set(overall(computed)) == {key for key in OVERALL_INDICES if key in SCORE_KEYS}
        assert not np.isfinite(computed.overall).any()
        assert computed.overall_reasons is not None
        assert {REASONS[code] for code in computed.overall_reasons} == {"no_scores"}
        reported = computed.selection.reported
        assert reported == sum(key in SCORE_KEYS for key in CLASS_INDICES)
        assert np.isnan(computed.averaged[:reported]).all()
        assert computed.class_reasons is not None
        assert {REASONS[c] for c in computed.class_reasons[:reported].flat} == {"no_scores"}
