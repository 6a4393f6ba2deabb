"""Items that a candidate lacks, relabelled or moved, and the worst that they can be."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from rprime.core.arrays import Array
from rprime.core.catalog import CLASS_INDICES
from rprime.core.cells import DenseCells
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import compare
from rprime.core.comparison.missing_items import MatchedItems, MissingCounts, MissingOfSlice
from rprime.core.gates.candidate import of_one_class, worst_class_differences
from rprime.core.items import Items, table_of
from rprime.core.options import Options
from rprime.core.scores.scores import Scores
from rprime.core.selection import select
from rprime.core.slices.slices import SliceColumn, Slices
from rprime.core.values import compute
from tests.core.comparison_sides import names

LOSSES = ("log_loss", "brier_score", "mean_absolute_probability_error", "hinge_loss")


def side(
    true: Sequence[int] | Array,
    predicted: Sequence[int] | Array,
    ids: Sequence[int] | Array,
    k: int = 3,
    *,
    parts: Sequence[str] | None = None,
    scores: Array | None = None,
    **more: Array,
) -> Side:
    codes = np.asarray(true, np.uint8)
    items = Items(codes, np.asarray(predicted, np.uint8), ids=np.asarray(ids, np.uint64), **more)
    slices = None
    if parts is not None:
        values, numbers = np.unique(parts, return_inverse=True)
        column = SliceColumn(tuple(values.tolist()), numbers.astype(np.uint8))
        slices = Slices.of_items({"part": column}, (), items.cells(k).astype(np.intp), k)
    return Side(
        labels=names(k),
        table=table_of(items, k),
        items=items,
        fingerprint=f"{sorted(zip(ids, true, strict=True))}",
        slices=slices,
        scores=None if scores is None else Scores(codes, scores, items.groups, items.weights),
    )


def matched(candidate: Side, baseline: Side) -> MatchedItems:
    missing = MatchedItems.of(candidate, baseline)
    assert missing is not None
    return missing


def values(candidate: Side, *keys: str) -> list[Array]:
    """Return the values of per-class indices, each of shape (k,), or of overall ones."""
    options = Options(indices=keys, kappa_weights="linear")
    computed = compute(candidate.table, options, select(options))
    return [computed.lookup("class", key) for key in keys]


TRUE = (0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2)
OLD = (0, 0, 1, 0, 1, 1, 2, 2, 2, 0, 2, 2)
NEW = (0, 1, 1, 0, 1, 1, 1, 2, 0, 2, 2, 1)
IDS = tuple(range(12))
KEPT = (0, 1, 2, 4, 5, 7, 8, 9)
"""Class 0 lacks one item, 1 one and 2 two."""


def some(values: Sequence[int], places: Sequence[int] = KEPT) -> list[int]:
    return [values[i] for i in places]


def lacking() -> MatchedItems:
    return matched(side(some(TRUE), some(NEW), some(IDS)), side(TRUE, OLD, IDS))


def test_items_are_counted_by_why_they_are_missing() -> None:
    relabelled = [2, *some(TRUE)[1:]]
    candidate = side([*relabelled, 1, 2], [*some(NEW), 1, 2], [*some(IDS), 50, 51])
    missing = matched(candidate, side(TRUE, OLD, IDS))
    assert missing.counts == MissingCounts(12, removed=4, relabelled=1)
    assert missing.classes == {
        "0": MissingCounts(4, removed=1, relabelled=1),
        "1": MissingCounts(3, removed=1, relabelled=0),
        "2": MissingCounts(5, removed=2, relabelled=0),
    }
    assert missing.new_classes == {"1": 1, "2": 1}
    assert missing.share == 5 / 12
    assert not missing.comparable


@pytest.mark.parametrize(
    ("key", "worst"),
    [
        ("recall", np.min),
        ("precision", np.min),
        ("f1", np.min),
        ("jaccard", np.min),
        ("specificity", np.min),
        ("negative_predictive_value", np.min),
        ("false_positive_rate", np.max),
        ("false_negative_rate", np.max),
        ("false_discovery_rate", np.max),
        ("predicted_prevalence", np.max),
    ],
)
def test_a_class_index_is_the_worst_of_all_wrong_predictions(
    key: str, worst: Callable[..., float]
) -> None:
    """Every way to predict the missing items wrongly is tried."""
    missing = lacking()
    lost = [i for i in range(12) if i not in KEPT]
    every = []
    for guesses in product(*([c for c in range(3) if c != TRUE[i]] for i in lost)):
        predicted = np.array(NEW)
        predicted[lost] = guesses
        every.append(values(side(TRUE, predicted, IDS), key)[0])
    for c in range(3):
        (by_class,) = values(missing.worst_case(key, str(c)), key)
        assert by_class[c] == pytest.approx(worst(np.array(every)[:, c]))


def test_a_cell_counts_all_missing_items_of_its_row() -> None:
    missing = lacking()
    cells = missing.worst_case("recall", cell=("2", "0")).table.cells
    assert isinstance(cells, DenseCells)
    assert cells.counts[2].tolist() == [1 + 2, 0, 2]
    none = missing.worst_case("recall", cell=("2", None)).table.unclassified
    assert none is not None
    assert none.tolist() == [0, 0, 2]


def test_a_cell_of_right_answers_counts_none_of_them() -> None:
    missing = lacking()
    for right, hits in ((False, 2), (True, 4)):
        cells = missing.worst_case("recall", cell=("2", "2"), right=right).table.cells
        assert isinstance(cells, DenseCells)
        assert cells.counts[2, 2] == hits


def test_other_indices_spread_them_like_the_other_errors_of_the_row() -> None:
    """Row 0 has errors 6:3:1, row 1 none, row 2 only items without a prediction."""
    true = np.repeat([0, 1, 2, 3], [60, 60, 60, 60])
    predicted = true.copy()
    predicted[:10] = [1] * 6 + [2] * 3 + [3]
    predicted[120:125] = 4
    more = np.repeat([0, 1, 2], [20, 9, 7])
    baseline = side([*true, *more], [*true, *more], range(240 + 36), 4)
    missing = matched(side(true, predicted, range(240), 4), baseline)
    worst = missing.worst_case("accuracy")
    assert worst.items is not None
    added = [
        np.bincount(worst.items.predicted[240:][more == row], minlength=5).tolist()
        for row in range(3)
    ]
    assert added == [[0, 12, 6, 2, 0], [3, 0, 3, 3, 0], [3, 2, 0, 2, 0]]


def test_a_single_class_has_items_without_a_prediction() -> None:
    missing = matched(side([0, 0], [0, 0], [1, 2], 1), side([0, 0, 0], [0, 0, 0], [1, 2, 3], 1))
    table = missing.worst_case("accuracy").table
    assert (float(table.total), table.answered.tolist()) == (3, [2])


def test_the_worst_case_is_paired_with_all_items_of_the_baseline() -> None:
    rng = np.random.default_rng(2)
    true = rng.integers(0, 3, 1000)
    old, new = (np.where(rng.random(1000) < 0.9, true, rng.integers(0, 3, 1000)) for _ in range(2))
    kept = rng.permutation(1000)[:930]
    missing = matched(side(true[kept], new[kept], kept), side(true, old, np.arange(1000)))
    options = Options(indices=("accuracy", "recall"))
    comparison = compare(missing.worst_case("accuracy"), missing.baseline, options)
    wrong = new.copy()
    lost = np.setdiff1d(np.arange(1000), kept)
    wrong[lost] = (true[lost] + 1) % 3
    expected = compare(side(true, wrong, range(1000)), side(true, old, range(1000)), options)
    assert comparison.pairing == "paired"
    for difference, other in (
        (comparison.overall, expected.overall),
        (comparison.per_class, expected.per_class),
    ):
        np.testing.assert_allclose(difference.value, other.value)
        np.testing.assert_allclose(difference.p(-0.05), other.p(-0.05))


class TestSlices:
    """Item 1 moves from a to b; the candidate lacks items 3 and 6, and 7 has another class."""

    BASELINE = side(TRUE[:8], OLD[:8], range(8), parts=list("aaaabbbb"))
    HERE = (0, 1, 2, 4, 5, 7)
    CANDIDATE = side([0, 0, 0, 1, 1, 0], some(NEW, HERE), HERE, parts=[*"aba", *"bbb"])

    def test_the_slices_of_both_sides_lack_an_item_that_moved(self) -> None:
        missing = matched(self.CANDIDATE, self.BASELINE)
        assert missing.slices == [
            MissingOfSlice(5, removed=1, relabelled=1, moved=1, slice={"part": "b"}),
            MissingOfSlice(4, removed=1, relabelled=0, moved=1, slice={"part": "a"}),
        ]
        for counts in missing.slices:
            in_slice = missing.of_slice(tuple(counts.slice.items()))
            assert in_slice is not None
            assert vars(counts) == vars(in_slice.counts) | {"slice": counts.slice}

    def test_it_is_wrong_in_both_with_the_class_of_the_baseline(self) -> None:
        missing = matched(self.CANDIDATE, self.BASELINE)
        correct = {"a": (2, 1), "b": (3, 2)}
        for value, (old, new) in correct.items():
            part = missing.of_slice((("part", value),))
            assert part is not None
            table = part.worst_case("accuracy").table
            assert float(table.total) == part.counts.items
            assert float(table.correct.sum()) == new
            assert float(part.baseline.table.correct.sum()) == old + (value == "a") + (value == "b")

    def test_only_items_of_both_are_compared_in_a_slice(self) -> None:
        ours, theirs = matched(self.CANDIDATE, self.BASELINE).common()
        assert ours.slices is not None
        assert theirs.slices is not None
        for slices in (ours.slices, theirs.slices):
            sizes = dict(zip(map(str, map(dict, slices.names)), slices.tables.total, strict=True))
            assert sizes == {"{'part': 'a'}": 2, "{'part': 'b'}": 2}

    def test_a_slice_that_the_candidate_lacks_has_all_of_its_items_missing(self) -> None:
        gone = side([0, 0, 0], [0, 0, 0], [0, 1, 2], parts=list("aaa"))
        part = matched(gone, self.BASELINE).of_slice((("part", "b"),))
        assert part is not None
        assert (part.counts.items, part.counts.removed) == (4, 4)
        assert not part.comparable

    def test_the_same_items_may_have_moved(self) -> None:
        moved = side(TRUE[:8], NEW[:8], range(8), parts=list("abaabbbb"))
        comparison = compare(moved, self.BASELINE, Options(indices=("accuracy",)))
        assert comparison.comparability == "same_items"
        assert comparison.missing is not None
        assert [counts.moved for counts in comparison.missing.slices] == [1, 1]
        slices = comparison.sides[0].slices
        assert slices is not None
        assert slices.tables.total.tolist() == [3, 4]
        assert float(comparison.sides[0].table.total) == 8

    def test_sides_without_slices_have_none(self) -> None:
        assert lacking().of_slice((("part", "a"),)) is None
        assert lacking().slices == []


class TestWeightsAndGroups:
    def test_a_missing_item_has_those_of_the_baseline(self) -> None:
        weights = np.arange(1.0, 13)
        groups = np.repeat(np.arange(4), 3)
        baseline = side(TRUE, OLD, IDS, weights=weights, groups=groups)
        candidate = side(some(TRUE), some(NEW), some(IDS), weights=np.full(8, 2.0))
        items = matched(candidate, baseline).worst_case("accuracy").items
        assert items is not None
        assert items.weights is not None
        lost = [i for i in range(12) if i not in KEPT]
        assert items.weights[lost].tolist() == weights[lost].tolist()
        assert items.weights[list(KEPT)].tolist() == [2.0] * 8
        assert items.groups is groups

    def test_a_group_of_values_is_that_of_an_item_that_both_have(self) -> None:
        """The sides number their groups in other orders."""
        old = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
        renamed = np.array([5, 3, 1, 0])[old]
        baseline = side(TRUE, OLD, IDS, groups=old)
        here = (0, 1, 4, 7)
        candidate = side(
            [*some(TRUE, here), 1],
            [*some(NEW, here), 1],
            [*here, 99],
            groups=np.array([*renamed[list(here)], 7]),
        )
        items = matched(candidate, baseline).worst_values("accuracy").items
        assert items is not None
        assert items.groups is not None
        assert len(items.true) == 13
        pairs = set(zip([*old.tolist(), 4], items.groups.tolist(), strict=True))
        assert len(pairs) == 5


def test_values_have_all_items_of_the_candidate_with_the_missing_ones_as_wrong() -> None:
    candidate = side([2, *some(TRUE)[1:], 1], [*some(NEW), 1], [*some(IDS), 50])
    worst = matched(candidate, side(TRUE, OLD, IDS)).worst_values("accuracy")
    assert float(worst.table.total) == 13
    right = sum(a == b for a, b in zip(some(TRUE)[1:], some(NEW)[1:], strict=True)) + 1
    assert float(worst.table.correct.sum()) == right


class TestScores:
    def sides(self, scale: float) -> tuple[Side, Side, Array]:
        rng = np.random.default_rng(8)
        true = rng.integers(0, 4, 200)
        logits = rng.normal(size=(200, 4)) + scale * np.eye(4)[true]
        scores = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        predicted = scores.argmax(-1)
        baseline = side(true, predicted, range(200), 4, scores=scores)
        kept = np.arange(185)
        return side(true[kept], predicted[kept], kept, 4, scores=scores[kept]), baseline, scores

    @pytest.mark.parametrize("key", LOSSES)
    def test_a_missing_item_has_the_worst_loss_that_was_seen(self, key: str) -> None:
        candidate, baseline, _ = self.sides(1.0)
        worst = matched(candidate, baseline).worst_case(key)
        assert candidate.scores is not None
        assert worst.scores is not None
        of_items = select(Options(indices=(key,)), scored=True).overall[0].of_items
        assert of_items is not None
        losses, seen = of_items(worst.scores), of_items(candidate.scores)
        np.testing.assert_allclose(losses[:185], seen)
        np.testing.assert_allclose(losses[185:], seen.max())
        assert worst.scores.are_probabilities

    @pytest.mark.parametrize("key", ["log_loss", "brier_score"])
    def test_it_is_at_least_that_of_a_uniform_guess(self, key: str) -> None:
        candidate, baseline, _ = self.sides(12.0)
        worst = matched(candidate, baseline).worst_case(key)
        assert worst.scores is not None
        np.testing.assert_allclose(worst.scores.values[185:], 0.25)

    @pytest.mark.parametrize("key", ["roc_auc", "average_precision"])
    def test_it_ranks_last_in_its_class(self, key: str) -> None:
        candidate, baseline, _ = self.sides(1.0)
        for label in range(4):
            worst = matched(candidate, baseline).worst_case(key, str(label))
            assert worst.scores is not None
            column = worst.scores.values[:, label]
            assert worst.items is not None
            lost = worst.items.true[185:] == label
            assert (column[185:][lost] < column[:185].min()).all()
            assert (column[185:][~lost] > column[:185].max()).all()

    @pytest.mark.parametrize("key", ["roc_auc", "brier_score"])
    def test_as_right_it_ranks_first_in_its_class(self, key: str) -> None:
        candidate, baseline, _ = self.sides(1.0)
        best = matched(candidate, baseline).worst_case(key, right=True)
        assert best.scores is not None
        assert best.items is not None
        true = best.items.true[185:]
        assert (best.items.predicted[185:] == true).all()
        assert candidate.scores is not None
        values, rows = best.scores.values, np.arange(185, 200)
        assert (values[rows, true] >= candidate.scores.values.max()).all()
        assert best.scores.are_probabilities or key == "roc_auc"

    def test_a_calibration_error_has_a_wrong_prediction_of_full_confidence(self) -> None:
        candidate, baseline, _ = self.sides(1.0)
        worst = matched(candidate, baseline).worst_case("expected_calibration_error")
        assert worst.scores is not None
        assert worst.scores.are_probabilities
        assert (worst.scores.confidence[185:] == 1).all()
        assert not worst.scores.correct[185:].any()


class TestAccepted:
    CANDIDATE = side([2, *some(TRUE)[1:]], [2, *some(NEW)[1:]], some(IDS))

    def test_removed_items_do_not_count(self) -> None:
        missing = matched(self.CANDIDATE, side(TRUE, OLD, IDS))
        kept = missing.accepting(removed=True, relabelled=False)
        assert kept.counts == MissingCounts(8, removed=0, relabelled=1)
        assert kept.unaccepted is missing

    def test_relabelled_items_have_the_new_class_on_both_sides(self) -> None:
        missing = matched(self.CANDIDATE, side(TRUE, OLD, IDS))
        both = missing.accepting(removed=True, relabelled=True)
        assert both.counts == MissingCounts(8, removed=0, relabelled=0)
        assert both.baseline.items is not None
        assert both.baseline.items.true.tolist() == [2, *some(TRUE)[1:]]
        assert (missing.relabelled_right, both.relabelled_right) == ((1, 0), (1, 0))
        ours, theirs = both.common()
        assert (ours.table.support == theirs.table.support).all()

    def test_a_comparison_takes_what_is_accepted(self) -> None:
        options, baseline = Options(indices=("accuracy",)), side(TRUE, OLD, IDS)
        comparison = compare(self.CANDIDATE, baseline, options)
        assert comparison.comparability == "different"
        comparison = compare(
            self.CANDIDATE, baseline, options, accept_removed=True, accept_relabelled=True
        )
        assert comparison.comparability == "common_items"
        assert float(comparison.sides[0].table.total) == 8
        assert comparison.common_items is not None
        assert (comparison.common_items.removed, comparison.common_items.relabelled) == (4, 1)


def test_nothing_is_matched_without_ids() -> None:
    with_ids = side(TRUE, NEW, IDS)
    assert with_ids.items is not None
    bare = replace(with_ids, items=replace(with_ids.items, ids=None))
    assert MatchedItems.of(bare, with_ids) is None
    assert MatchedItems.of(with_ids, bare) is None


@pytest.mark.parametrize("more", ["", "weights", "groups"])
def test_one_class_against_the_others_has_the_same_worst_case(more: str) -> None:
    """Of every index of classes in the catalog, the value, the limits and the p-values."""
    rng = np.random.default_rng(2)
    true = rng.integers(0, 3, 90)
    old, new = (np.where(rng.random(90) < 0.85, true, rng.integers(0, 4, 90)) for _ in range(2))
    column = {"weights": rng.random(90) + 0.5, "groups": rng.integers(0, 25, 90)}.get(more)
    every: dict[str, Any] = {} if column is None else {more: column}
    kept = np.sort(rng.permutation(90)[:84])
    part: dict[str, Any] = {name: values[kept] for name, values in every.items()}
    missing = matched(
        side(true[kept], new[kept], kept, **part), side(true, old, np.arange(90), **every)
    )
    for entry in CLASS_INDICES.values():
        if entry.scored or entry.needs:
            continue
        options, key = Options(indices=(entry.key,)), entry.key
        differences = worst_class_differences(missing, key, names(3), options)
        for place, label in enumerate(names(3)):
            whole = compare(missing.worst_case(key, label), missing.baseline, options)
            expected = whole.of_classes(key, (label,))
            for numbers, other in (
                (differences.value, expected.value),
                (differences.limits(0.05), expected.limits(0.05)),
                (differences.p(-0.05), expected.p(-0.05)),
            ):
                number = np.asarray(numbers)[..., place]
                np.testing.assert_allclose(number, np.asarray(other)[..., 0], atol=1e-9)
            assert differences.methods[place] == expected.methods[0]


def test_few_indices_of_a_class_depend_on_how_the_others_are_divided() -> None:
    labels = [entry.key for entry in CLASS_INDICES.values() if not entry.scored and not entry.needs]
    whole = {key for key in labels if not of_one_class(key)}
    assert {"gt_index", "share_of_errors", "class_confusion_entropy"} <= whole
    assert len(whole) < len(labels) / 5


def test_a_class_without_items_has_no_worst_case() -> None:
    missing = matched(side([0, 0], [0, 0], [0, 1]), side([0, 0, 1], [0, 0, 1], [0, 1, 2]))
    difference = worst_class_differences(missing, "recall", ("2", "1", "0"), Options())
    assert np.isnan(difference.value[:1]).all()
    assert difference.value[1:].tolist() == [-1, 0]


class TestClassesOfOneSide:
    def test_they_are_named_by_their_items(self) -> None:
        ours, theirs = (
            side([0, 0, 1], [0, 0, 1], [0, 1, 2]),
            side([0, 0, 2, 2], [0, 0, 2, 2], [0, 1, 3, 4]),
        )
        for bare in (False, True):
            candidate, other = (
                replace(s, items=None, fingerprint=None) if bare else s for s in (ours, theirs)
            )
            comparison = compare(candidate, other, OPTIONS)
            assert (comparison.lost_classes, comparison.new_classes) == ({"2": 2}, {"1": 1})

    def test_a_class_of_removed_items_is_lost_unless_they_are_accepted(self) -> None:
        true = [0] * 40 + [1, 1]
        ours, theirs = side(true[:40], true[:40], range(40)), side(true, true, range(42))
        comparison = compare(ours, theirs, OPTIONS)
        assert (comparison.comparability, comparison.lost_classes) == ("common_items", {"1": 2})
        assert compare(ours, theirs, OPTIONS, accept_removed=True).lost_classes == {}


OPTIONS = Options(indices=("accuracy",))
