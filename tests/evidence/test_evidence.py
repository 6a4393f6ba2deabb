"""Evidence is read strictly and exactly, and every fault is named with its place."""

import hashlib
import json
import time
import unicodedata
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rprime.core.cells import DenseCells, SparseCells
from rprime.evidence import Evidence, read
from rprime.problems.problem import Problem
from rprime.schemas.document import Document, parse, parse_batch
from rprime.settings import Limits

CANARY = "canary-7f3a"


def evidence(limits: Limits | None = None, **content: object) -> Evidence:
    return read(parse(orjson.dumps(content)), limits or Limits())


def faults(body: bytes | None = None, **content: object) -> list[tuple[str, str]]:
    with pytest.raises(Problem, match="invalid_request") as caught:
        read(parse(body or json.dumps(content).encode()), Limits())
    assert CANARY not in str(caught.value.document())
    return [(fault.pointer, fault.code) for fault in caught.value.errors]


def cells(sample: Evidence) -> list[list[float]]:
    assert isinstance(sample.table.cells, DenseCells)
    counts: list[list[float]] = sample.table.cells.counts.tolist()
    return counts


class TestMatrix:
    def test_labels_are_numbers_where_none_are_given(self) -> None:
        sample = evidence(confusion_matrix=[[5, 1], [2, 3]])
        assert sample.labels == ("0", "1")
        assert cells(sample) == [[5, 1], [2, 3]]
        assert sample.items is None
        assert sample.fingerprint is None

    def test_the_axis_turns_the_table_but_not_the_vectors(self) -> None:
        sample = evidence(
            confusion_matrix=[[5, 1], [2, 3]],
            axis="rows_are_predicted",
            unclassified=[7, 0],
            spurious=[0, 9],
        )
        assert cells(sample) == [[5, 2], [1, 3]]
        assert sample.table.support.tolist() == [14, 4]
        assert sample.table.predicted.tolist() == [6, 14]

    def test_integral_and_fractional_floats_are_counts(self) -> None:
        assert cells(evidence(confusion_matrix=[[5.0, 0.5], [2, 3]])) == [[5, 0.5], [2, 3]]

    def test_the_largest_count_is_exact(self) -> None:
        assert cells(evidence(confusion_matrix=[[2**53 - 1, 0], [0, 1]]))[0][0] == 2**53 - 1

    def test_one_class_is_a_table(self) -> None:
        assert evidence(confusion_matrix=[[3]]).labels == ("0",)

    @pytest.mark.parametrize(
        ("bad", "code"),
        [
            ("true", "not_a_number"),
            ('"7"', "not_a_number"),
            ("null", "not_a_number"),
            ("[1]", "not_a_number"),
            ("{}", "not_a_number"),
            ("-1", "out_of_range"),
            ("-0.5", "out_of_range"),
            ("9007199254740992", "out_of_range"),
            ("9223372036854775808", "out_of_range"),
            ("123456789012345678901234567890", "out_of_range"),
            ("1e300", "out_of_range"),
        ],
    )
    @pytest.mark.parametrize("beside", ["1", "1.5"])
    def test_what_is_no_count_is_refused_at_its_place(
        self, bad: str, code: str, beside: str
    ) -> None:
        body = f'{{"confusion_matrix": [[1, 2], [{beside}, {bad}]]}}'
        assert faults(body.encode()) == [("/confusion_matrix/1/1", code)]

    def test_booleans_are_seen_whatever_surrounds_them(self) -> None:
        for more in ("", ', "intervals": true', ', "b\\u0072": "tru\\u0065"', ', "x": "r s"'):
            body = f'{{"confusion_matrix": [[1, false], [true, 1]]{more}}}'
            assert faults(body.encode()) == [
                ("/confusion_matrix/0/1", "not_a_number"),
                ("/confusion_matrix/1/0", "not_a_number"),
            ]

    def test_every_row_of_another_length_is_named(self) -> None:
        assert faults(confusion_matrix=[[1, 2, 3], [1, 2], [1, 2, 3], [1]]) == [
            ("/confusion_matrix/0", "wrong_length"),
            ("/confusion_matrix/1", "wrong_length"),
            ("/confusion_matrix/2", "wrong_length"),
            ("/confusion_matrix/3", "wrong_length"),
        ]

    @pytest.mark.parametrize(
        ("matrix", "expected"),
        [
            ([[1, 2, 3], [4, 5, 6]], ("/confusion_matrix", "not_square")),
            ([[]], ("/confusion_matrix", "not_square")),
            ([[20, 5, 25], [4, 9, 13], [24, 14, 38]], ("/confusion_matrix", "totals")),
            ([], ("/confusion_matrix", "empty")),
            (CANARY, ("/confusion_matrix", "not_an_array")),
            (None, ("/confusion_matrix", "not_an_array")),
            ([[1, 2], CANARY], ("/confusion_matrix/1", "not_an_array")),
            ([[1, 2], {CANARY: 1}], ("/confusion_matrix/1", "not_an_array")),
        ],
    )
    def test_what_is_no_square_matrix_is_refused(
        self, matrix: object, expected: tuple[str, str]
    ) -> None:
        assert faults(confusion_matrix=matrix) == [expected]

    def test_counts_that_add_up_by_chance_are_no_totals(self) -> None:
        for matrix in ([[1, 0, 1], [0, 0, 0], [1, 0, 1]], [[20, 5, 25], [4, 9, 13], [24, 13, 37]]):
            assert evidence(confusion_matrix=matrix).table.k == 3

    @pytest.mark.parametrize("labels", [["a", "b", "All"], [0, 1, "Total"], ["a", "b", "Sum"]])
    def test_totals_that_are_called_so_are_left_out_and_said(self, labels: list[object]) -> None:
        counts = [[2, 1, 3], [1, 2, 3], [3, 3, 6]]
        read = evidence(confusion_matrix=counts, labels=labels)
        assert read.labels == tuple(map(str, labels[:2]))
        assert read.table.cells.counts.tolist() == [[2, 1], [1, 2]]
        assert [(w.code, w.detail) for w in read.warnings] == [
            (
                "totals_left_out",
                f"The row and the column `{labels[2]}` hold totals and were left out.",
            )
        ]

    def test_a_class_called_all_without_sums_is_a_class(self) -> None:
        counts = [[2, 1, 3], [1, 2, 3], [3, 3, 5]]
        read = evidence(confusion_matrix=counts, labels=["a", "b", "All"])
        assert read.labels == ("a", "b", "All")

    def test_a_hundred_thousand_bad_cells_are_refused_at_once(self) -> None:
        body = orjson.dumps({"confusion_matrix": [[CANARY] * 320] * 320})
        start = time.perf_counter()
        errors = faults(body)
        assert time.perf_counter() - start < 5
        assert errors == [("/confusion_matrix/0/0", "not_a_number")]

    def test_more_classes_than_the_limit_are_refused(self) -> None:
        with pytest.raises(Problem, match="invalid_request") as caught:
            evidence(Limits(dense_classes=2), confusion_matrix=[[1] * 3] * 3)
        assert caught.value.errors[0].code == "too_many_classes"

    def test_vectors_have_one_number_for_each_class(self) -> None:
        matrix = [[1, 2], [3, 4]]
        assert faults(confusion_matrix=matrix, spurious=[1]) == [("/spurious", "wrong_length")]
        assert faults(confusion_matrix=matrix, unclassified=[1, -1]) == [
            ("/unclassified/1", "out_of_range")
        ]
        assert faults(confusion_matrix=matrix, labels=["a"]) == [("/labels", "wrong_length")]


class TestOptionsThatAreMatrices:
    def test_they_come_as_arrays(self) -> None:
        sample = evidence(
            confusion_matrix=[[1, 2], [3, 4]],
            cost=[[0, 1, 0.5], [-2, 0, 0.5]],
            cell_weights=[[1, 0], [0.5, 1]],
            kappa_weights=[[0, 1], [3, 0]],
        )
        assert sample.matrices["cost"].tolist() == [[0, 1, 0.5], [-2, 0, 0.5]]
        assert sample.matrices["cell_weights"].tolist() == [[1, 0], [0.5, 1]]
        assert sample.matrices["kappa_weights"].tolist() == [[0, 1], [3, 0]]

    def test_a_named_weighting_is_left_for_the_options(self) -> None:
        document = parse(b'{"confusion_matrix": [[1]], "kappa_weights": "linear"}')
        assert document.rest == {"kappa_weights": "linear"}

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"cost": [[0, 1, 2, 3], [1, 0, 2, 3]]}, ("/cost/0", "wrong_length")),
            ({"cost": [[0, 1]]}, ("/cost", "wrong_length")),
            ({"cell_weights": [[1, -1], [1, 1]]}, ("/cell_weights/0/1", "out_of_range")),
            ({"cell_weights": [[1, 1, 1], [1, 1, 1]]}, ("/cell_weights/0", "wrong_length")),
            ({"kappa_weights": [[0, 1], [1, 2]]}, ("/kappa_weights/1/1", "not_zero")),
        ],
    )
    def test_they_have_the_size_of_the_table(
        self, options: dict[str, Any], expected: tuple[str, str]
    ) -> None:
        assert faults(confusion_matrix=[[1, 2], [3, 4]], **options)[0] == expected


class TestCells:
    def test_they_are_the_table_they_come_from(self) -> None:
        triples = [[0, 1, 4], [1, 0, 2], [0, 1, 1], [1, 1, 8]]
        sample = evidence(cells=triples, labels=["a", "b"], spurious=[3, 0])
        matrix = evidence(confusion_matrix=[[0, 5], [2, 8]], labels=["a", "b"], spurious=[3, 0])
        assert cells(sample) == cells(matrix)
        assert sample.input_digest == matrix.input_digest

    def test_the_axis_turns_them(self) -> None:
        sample = evidence(cells=[[0, 1, 4]], labels=["a", "b"], axis="rows_are_predicted")
        assert cells(sample) == [[0, 0], [4, 0]]

    def test_many_classes_stay_sparse(self) -> None:
        labels = list(map(str, range(50_000)))
        sample = evidence(
            cells=[[49_999, 0, 4], [7, 7, 1]], labels=labels, unclassified=[1] * 50_000
        )
        assert isinstance(sample.table.cells, SparseCells)
        assert sample.table.support[[7, 49_999]].tolist() == [2, 5]
        assert sample.table.predicted[0] == 4

    @pytest.mark.parametrize(
        ("triples", "expected"),
        [
            ([[0, 2, 1]], ("/cells/0/1", "class_number")),
            ([[0, 0, 1], [0.5, 0, 1]], ("/cells/1/0", "class_number")),
            ([[-1, 0, 1]], ("/cells/0/0", "class_number")),
            ([["a", 0, 1]], ("/cells/0/0", "class_number")),
            ([[0, 0, -1]], ("/cells/0/2", "out_of_range")),
            ([[0, 0]], ("/cells/0", "wrong_length")),
            ([[0, 0, True]], ("/cells/0/2", "not_a_number")),
            ([], ("/cells", "empty")),
        ],
    )
    def test_what_is_no_cell_is_refused(
        self, triples: list[list[float]], expected: tuple[str, str]
    ) -> None:
        assert faults(cells=triples, labels=["a", "b"]) == [expected]

    def test_they_need_labels(self) -> None:
        assert faults(cells=[[0, 0, 1]]) == [("/labels", "required")]


Label = st.integers(-3, 300) | st.integers(-(2**53) + 1, 2**53 - 1)
Name = st.text("abcZß:é\u0301\u00e9 猫", min_size=1, max_size=3).filter(str.strip)
Text = st.text('rs:\\"/ é', max_size=5)


@st.composite
def label_arrays(draw: st.DrawFn) -> tuple[list[Any], list[Any]]:
    pool = draw(
        st.lists(draw(st.sampled_from([Label, Name])), min_size=1, max_size=300, unique=True)
    )
    size = draw(st.integers(1, 60))
    true = draw(st.lists(st.sampled_from(pool), min_size=size, max_size=size))
    predicted = draw(st.lists(st.sampled_from([*pool, None]), min_size=size, max_size=size))
    return true, predicted


def name(label: str | int) -> str:
    return unicodedata.normalize("NFC", str(label)).strip()


def has_twins(labels: list[str | int | None]) -> bool:
    distinct = {label for label in labels if label is not None}
    return len(set(map(name, distinct))) < len(distinct)


class TestLabels:
    @given(label_arrays())
    def test_they_are_counted_as_one_would_by_hand(
        self, arrays: tuple[list[Any], list[Any]]
    ) -> None:
        true, predicted = arrays
        assume(not has_twins([*true, *predicted]))
        sample = evidence(y_true=true, y_pred=predicted)
        pairs: Counter[tuple[Any, Any]] = Counter(zip(true, predicted, strict=True))
        distinct = sorted({label for label in (*true, *predicted) if label is not None})
        if isinstance(true[0], int):
            assert sample.labels == tuple(map(str, distinct))
        assert len(sample.labels) == len(distinct)
        by_name = {label: sample.labels.index(name(label)) for label in distinct}
        expected = np.zeros((len(distinct), len(distinct) + 1))
        for (t, p), times in pairs.items():
            expected[by_name[t], len(distinct) if p is None else by_name[p]] = times
        assert cells(sample) == expected[:, :-1].tolist()
        assert sample.table.support.tolist() == expected.sum(1).tolist()
        assert sample.items is not None
        assert sample.items.true.dtype == np.min_scalar_type(len(distinct))

    @given(label_arrays(), st.randoms(use_true_random=False))
    def test_declared_labels_give_the_order(
        self, arrays: tuple[list[Any], list[Any]], random: Random
    ) -> None:
        true, predicted = arrays
        assume(not has_twins([*true, *predicted]))
        plain = evidence(y_true=true, y_pred=predicted)
        order = [*plain.labels, "one more"]
        random.shuffle(order)
        sample = evidence(y_true=true, y_pred=predicted, labels=order)
        assert sample.labels == tuple(order)
        places = [order.index(label) for label in plain.labels]
        assert isinstance(sample.table.cells, DenseCells)
        assert sample.table.cells.counts[np.ix_(places, places)].tolist() == cells(plain)
        assert sample.fingerprint == plain.fingerprint

    def test_strings_are_sorted_by_code_point_and_integers_by_value(self) -> None:
        assert evidence(y_true=["b", "Z", "ä"], y_pred=["a"] * 3).labels == ("Z", "a", "b", "ä")
        assert evidence(y_true=[10, 9, -1], y_pred=[9] * 3).labels == ("-1", "9", "10")

    def test_integral_floats_are_integers(self) -> None:
        assert evidence(y_true=[1.0, 2], y_pred=[2, None]).labels == ("1", "2")

    def test_integers_are_matched_with_declared_texts(self) -> None:
        sample = evidence(y_true=[3, 1], y_pred=[1, None], labels=["3", "2", "1"])
        assert cells(sample) == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
        assert evidence(y_true=[3], y_pred=[3], labels=[5, 3]).labels == ("5", "3")

    def test_names_are_matched_in_normal_form_without_spaces(self) -> None:
        sample = evidence(y_true=["e\u0301 ", "é"], y_pred=["é", " é"], labels=["é", "b"])
        assert sample.labels == ("é", "b")
        assert cells(sample) == [[2, 0], [0, 0]]

    def test_nothing_may_be_predicted_at_all(self) -> None:
        for label in ("a", 7):
            sample = evidence(y_true=[label], y_pred=[None])
            assert sample.table.unclassified is not None
            assert sample.table.unclassified.tolist() == [1]

    def test_many_classes_stay_sparse(self) -> None:
        true = list(range(3000))
        for to in (int, str):
            sample = evidence(y_true=list(map(to, true)), y_pred=[*map(to, true[1:]), None])
            assert isinstance(sample.table.cells, SparseCells)
            assert sample.table.total == 3000
            assert sample.table.unclassified is not None
            assert sample.table.unclassified.sum() == 1

    def test_sparse_and_dense_say_the_same(self) -> None:
        rng = np.random.default_rng(0)
        true, predicted, weights = rng.integers(0, 40, (3, 500)).tolist()
        content = {"y_true": true, "y_pred": [*predicted[1:], None], "sample_weight": weights}
        dense = evidence(**content).table
        sparse = evidence(Limits(dense_classes=3), **content).table
        assert isinstance(sparse.cells, SparseCells)
        for name in ("support", "predicted", "correct", "unclassified"):
            assert getattr(sparse, name).tolist() == getattr(dense, name).tolist()

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ({"y_true": [1, "a"], "y_pred": [1, 1]}, ("/y_true/1", "mixed_labels")),
            ({"y_true": ["a", 1], "y_pred": ["a", "a"]}, ("/y_true/1", "mixed_labels")),
            ({"y_true": ["a", ["b"]], "y_pred": ["a", "a"]}, ("/y_true/1", "mixed_labels")),
            ({"y_true": ["a", "a"], "y_pred": ["a", 1]}, ("/y_pred/1", "mixed_labels")),
            ({"y_true": ["a"], "y_pred": [{}]}, ("/y_pred/0", "mixed_labels")),
            ({"y_true": [1, 2], "y_pred": [1, True]}, ("/y_pred/1", "mixed_labels")),
            ({"y_true": [1, 2], "y_pred": [1, "2"]}, ("/y_pred/1", "mixed_labels")),
            ({"y_true": [1, 2.5], "y_pred": [1, 2]}, ("/y_true/1", "mixed_labels")),
            ({"y_true": [1, None], "y_pred": [1, 2]}, ("/y_true/1", "mixed_labels")),
            ({"y_true": [None, "a"], "y_pred": ["a", "a"]}, ("/y_true/0", "mixed_labels")),
            ({"y_true": [None], "y_pred": [None]}, ("/y_true/0", "mixed_labels")),
            ({"y_true": [1, 2**53], "y_pred": [1, 2]}, ("/y_true/1", "out_of_range")),
            ({"y_true": [1, 2**70], "y_pred": [1, 2]}, ("/y_true/1", "out_of_range")),
            ({"y_true": [1], "y_pred": [1, 2]}, ("/y_pred", "wrong_length")),
            ({"y_true": [], "y_pred": []}, ("/y_true", "empty")),
            ({"y_true": 7, "y_pred": [1]}, ("/y_true", "not_an_array")),
            ({"y_true": ["", "a"], "y_pred": ["a", "a"]}, ("/y_true/0", "class_name")),
            ({"y_true": ["a", "\u202e"], "y_pred": ["a", "a"]}, ("/y_true/1", "class_name")),
            ({"y_true": ["a", "a "], "y_pred": ["a", "a"]}, ("/y_true/1", "twin_labels")),
            ({"y_true": ["e\u0301"], "y_pred": ["é"]}, ("/y_pred/0", "twin_labels")),
            (
                {"y_true": ["a", CANARY], "y_pred": ["a", "a"], "labels": ["a"]},
                ("/y_true/1", "undeclared_label"),
            ),
            ({"y_true": [1], "y_pred": [2], "labels": ["1"]}, ("/y_pred/0", "undeclared_label")),
        ],
    )
    def test_what_is_no_label_is_refused_at_its_place(
        self, content: dict[str, Any], expected: tuple[str, str]
    ) -> None:
        assert faults(**content) == [expected]

    def test_too_many_classes_are_refused(self) -> None:
        with pytest.raises(Problem, match="invalid_request") as caught:
            evidence(Limits(dense_classes=1, sparse_classes=2), y_true=[1, 2, 3], y_pred=[1, 2, 3])
        assert caught.value.errors[0].code == "too_many_classes"

    def test_weights_are_summed(self) -> None:
        sample = evidence(y_true=[0, 0, 1], y_pred=[0, 1, 1], sample_weight=[0.5, 2, 1])
        assert cells(sample) == [[0.5, 2], [0, 1]]
        assert sample.table.weighted
        assert not evidence(y_true=[0], y_pred=[0], sample_weight=[1]).table.weighted

    @pytest.mark.parametrize("weights", [[1, -1], [1, "2"], [1, True], [1], [1, None]])
    def test_weights_are_checked(self, weights: list[Any]) -> None:
        assert faults(y_true=[0, 1], y_pred=[0, 1], sample_weight=weights)

    def test_groups_are_coded(self) -> None:
        for groups in (["p", "q", "p"], [9, 4, 9.0]):
            arrays = {"y_true": [0, 1, 1], "y_pred": [0, 1, 1], "groups": groups}
            sample = read(Document({}, arrays), Limits())
            assert sample.items is not None
            assert sample.items.groups is not None
            assert sample.items.groups.tolist() == [0, 1, 0]

    @pytest.mark.parametrize(
        "groups",
        [
            ["p"],
            ["p", 1],
            ["p", None],
            [1, True],
            [[], []],
            3,
            ["p", ""],
            [2**53, 1],
            [-(2.0**54), 1],
        ],
    )
    def test_groups_are_checked(self, groups: object) -> None:
        document = Document({}, {"y_true": [0, 1], "y_pred": [0, 1], "groups": groups})
        with pytest.raises(Problem, match="invalid_request") as caught:
            read(document, Limits())
        assert caught.value.errors[0].pointer.startswith("/groups")


class TestClassNames:
    @pytest.mark.parametrize(
        "name",
        ["", " ", "a\nb", "\x7f", "\u0085", "\u200b", "a\u202eb", "\u2066", "\ufeff", "x" * 129],
    )
    def test_hidden_characters_are_refused(self, name: str) -> None:
        assert faults(confusion_matrix=[[1, 0], [0, 1]], labels=["a", name]) == [
            ("/labels/1", "class_name")
        ]

    @pytest.mark.parametrize(
        ("true", "said"),
        [
            ("x" * 200, "has at most 128 characters; this has 200."),
            ("cat\u200b", "Character 4 of the name is an invisible character, U+200B (zero width"),
            ("a\nb", "Character 2 of the name is a control character, U+000A: remove it."),
            (" ", "nothing but spaces"),
            ("", "The name is empty."),
            (
                " cat",
                "The name at /y_true/0 differs from this only by surrounding spaces: remove them.",
            ),
            ("cafe\u0301", "The name at /y_true/0 is the same in Unicode form NFC."),
        ],
    )
    def test_a_fault_is_named(self, true: str, said: str) -> None:
        sent = {"y_true": [true, "cat", "caf\u00e9"], "y_pred": ["cat"] * 3}
        with pytest.raises(Problem) as caught:
            read(parse(orjson.dumps(sent)), Limits())
        assert said in caught.value.errors[0].detail

    @pytest.mark.parametrize("name", ["x" * 128, "猫", "🐈", "a b", "ß", "a/b~c"])
    def test_all_others_are_kept(self, name: str) -> None:
        assert evidence(confusion_matrix=[[1]], labels=[name]).labels == (name,)

    def test_twins_name_both_places(self) -> None:
        with pytest.raises(Problem) as caught:
            evidence(confusion_matrix=[[1] * 3] * 3, labels=["é", "b", "e\u0301"])
        assert caught.value.errors[0].pointer == "/labels/2"
        assert "/labels/0" in caught.value.errors[0].detail

    @pytest.mark.parametrize("labels", [[], "ab", ["a", 1], [1, "a"], [True, 0], [1.5, 2]])
    def test_labels_are_of_one_kind(self, labels: object) -> None:
        assert faults(confusion_matrix=[[1, 0], [0, 1]], labels=labels)


class TestKinds:
    @pytest.mark.parametrize(
        "content",
        [
            {},
            {"y_true": [1]},
            {"y_pred": [1]},
            {"confusion_matrix": [[1]], "y_true": [1], "y_pred": [1]},
            {"confusion_matrix": [[1]], "cells": [[0, 0, 1]], "labels": ["a"]},
        ],
    )
    def test_exactly_one_is_needed(self, content: dict[str, Any]) -> None:
        (pointer, code), *_ = faults(**content)
        assert (pointer, code) in [("", "no_evidence"), ("", "several_kinds")]

    @pytest.mark.parametrize(
        ("content", "place"),
        [
            ({"confusion_matrix": [[1]], "sample_weight": [1]}, "/sample_weight"),
            ({"cells": [[0, 0, 1]], "labels": ["a"], "groups": [1]}, "/groups"),
            ({"y_true": [1], "y_pred": [1], "axis": "rows_are_true"}, "/axis"),
            ({"y_true": [1], "y_pred": [1], "spurious": [1]}, "/spurious"),
        ],
    )
    def test_what_belongs_to_another_one_is_refused(
        self, content: dict[str, Any], place: str
    ) -> None:
        assert faults(**content) == [(place, "not_with_this_evidence")]


class TestDocument:
    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"{",
            b"{]",
            b'{"confusion_matrix": [[NaN]]}',
            b'{"confusion_matrix": [[Infinity]]}',
            b'{"confusion_matrix": [[1e999]]}',
            b'{"labels": ["\\ud800"]}',
            b'{"labels": ["\xff"]}',
            b"[" * 100_000,
            b'{"indices": ' * 9 + b"1" + b"}" * 9,
            b'{"a": 1} ' + CANARY.encode(),
        ],
    )
    def test_what_is_no_json_is_refused(self, body: bytes) -> None:
        with pytest.raises(Problem, match="unreadable_body") as caught:
            parse(body)
        assert CANARY not in str(caught.value.document())

    def test_depth_is_counted_and_wide_is_not_deep(self) -> None:
        assert parse(b'{"x": [[[[[[[]]]]]]]}').rest
        assert parse(orjson.dumps({"x": [[[]]] * 100})).rest
        with pytest.raises(Problem, match="unreadable_body"):
            parse(b'{"x": [[[[[[[[]]]]]]]]}')

    @pytest.mark.parametrize("body", [b"[]", b"7", b'"x"', b"null"])
    def test_a_body_is_an_object(self, body: bytes) -> None:
        assert faults(body) == [("", "not_an_object")]

    @pytest.mark.parametrize(
        "body",
        [
            b'{"gates": 1, "gates": 2}',
            b'{"gates": {"on": 1, "on": 2}}',
            b'{"a:b": "c:d", "gates": 1, "gates": ":"}',
            b'{"gates": 1, "\\u0067ates": 2}',
            b'{"gates": "\\u003a\\u003A", "gates": 2}',
            b'{"labels": ["a:b", "::"], "confusion_matrix": [[1]], "confusion_matrix": [[2]]}',
            b'{"y_true": ["a"], "y_true": ["b"], "y_pred": ["a"], "slices": {"x": ["1"]}}',
            b'{"y_true": ["a"], "y_pred": ["a"], "slices": {"x": ["1"], "x": ["2"], "y": ["3"]}}',
            b'{"slices": {"a": {"b": {"confusion_matrix": [[1]]}}}, "labels": [], "labels": []}',
            b'{"slices": [{"slice": {"a": "b"}}], "labels": [], "labels": []}',
        ],
    )
    def test_a_name_given_twice_is_refused(self, body: bytes) -> None:
        assert faults(body) == [("", "duplicate_name")]

    @pytest.mark.parametrize(
        "body",
        [
            b'{"source": "https://ci:8080/run"}',
            b'{"labels": ["a:b", "c:d"]}',
            b'{"source": "\\u003a"}',
            b'{"a": {"b": 1}, "c": {"b": 2}}',
        ],
    )
    def test_colons_in_strings_are_no_names(self, body: bytes) -> None:
        assert parse(body).names

    @given(
        st.dictionaries(
            st.sampled_from(["beta", "indices", "x\\", "r:s", "labels"]),
            st.recursive(
                st.none() | st.booleans() | st.floats(allow_nan=False) | Text,
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(Text, inner),
                max_leaves=5,
            ),
        ),
        st.booleans(),
        st.booleans(),
    )
    def test_the_proof_that_there_are_no_booleans_is_sound(
        self, content: dict[str, Any], ascii_only: bool, boolean: bool
    ) -> None:
        content["confusion_matrix"] = [[1, 2], [3, boolean or 4]]
        body = json.dumps(content, ensure_ascii=ascii_only).encode(errors="replace")
        try:
            document = parse(body)
        except Problem:
            return
        if boolean:
            assert not document.without_booleans

    def test_a_plain_request_needs_no_look_at_single_elements(self) -> None:
        assert parse(b'{"confusion_matrix": [[1]], "intervals": true}').without_booleans

    def test_a_batch_is_taken_apart(self) -> None:
        body = b'{"requests": [{"confusion_matrix": [[1]]}, {"labels": []}]}'
        requests = parse_batch(body, most=2)
        assert [list(request.arrays) for request in requests] == [["confusion_matrix"], ["labels"]]

    @pytest.mark.parametrize(
        ("body", "place"),
        [
            (b"{}", "/requests"),
            (b'{"requests": []}', "/requests"),
            (b'{"requests": [{}, {}, {}]}', "/requests"),
            (b'{"requests": [{}, 1]}', "/requests/1"),
            (b'{"requests": [{}], "x": 1}', ""),
        ],
    )
    def test_a_batch_has_some_requests(self, body: bytes, place: str) -> None:
        with pytest.raises(Problem, match="invalid_request") as caught:
            parse_batch(body, most=2)
        assert caught.value.errors[0].pointer == place

    def test_the_arrays_of_a_baseline_are_taken_out_too(self) -> None:
        body = (
            b'{"confusion_matrix": [[1]], "baseline": {"confusion_matrix": [[-1]], "alias": "a"}}'
        )
        document = parse(body)
        assert document.rest == {"baseline": {"alias": "a"}}
        with pytest.raises(Problem, match="invalid_request") as caught:
            read(document.inner["baseline"], Limits())
        assert caught.value.errors[0].pointer == "/baseline/confusion_matrix/0/0"

    def test_a_name_given_twice_in_a_baseline_is_refused(self) -> None:
        body = b'{"confusion_matrix": [[1]], "baseline": {"labels": ["a:"], "labels": ["b"]}}'
        assert faults(body) == [("", "duplicate_name")]

    def test_pointers_start_where_the_object_stands(self) -> None:
        document = Document({}, {"confusion_matrix": [[1, "x"], [1, 1]]}, pointer="/baseline")
        with pytest.raises(Problem, match="invalid_request") as caught:
            read(document, Limits())
        assert caught.value.errors[0].pointer == "/baseline/confusion_matrix/0/1"


class TestFingerprints:
    def test_the_test_set_is_hashed_as_documented(self) -> None:
        sample = evidence(
            y_true=["b", "ä", "b", "Z"], y_pred=["b"] * 4, labels=["q", "ä", "b", "Z"]
        )
        expected = hashlib.sha256(
            b"rprime-fp1\n"
            + '["Z","b","ä"]\n'.encode()
            + np.array([1, 2, 1, 0], dtype="<u4").tobytes()
        )
        assert sample.fingerprint == expected.hexdigest()

    def test_integers_are_hashed_as_text(self) -> None:
        codes = np.array([1, 0, 1], dtype="<u4").tobytes()
        expected = hashlib.sha256(b'rprime-fp1\n["10","9"]\n' + codes).hexdigest()
        assert evidence(y_true=[9, 10, 9], y_pred=[3, 3, 3]).fingerprint == expected
        assert evidence(y_true=["9", "10", "9"], y_pred=["3"] * 3).fingerprint == expected

    def test_the_digest_tells_evidence_apart(self) -> None:
        matrix = [[5, 1], [2, 3]]
        digests = [
            evidence(confusion_matrix=matrix).input_digest,
            evidence(confusion_matrix=matrix, labels=["a", "b"]).input_digest,
            evidence(confusion_matrix=[[5, 1], [2, 3.5]]).input_digest,
            evidence(confusion_matrix=matrix, axis="rows_are_predicted").input_digest,
            evidence(confusion_matrix=matrix, spurious=[1, 0]).input_digest,
            evidence(confusion_matrix=matrix, unclassified=[1, 0]).input_digest,
            evidence(y_true=[0, 1], y_pred=[0, 1]).input_digest,
            evidence(y_true=[1, 0], y_pred=[1, 0]).input_digest,
            evidence(y_true=[1, 0], y_pred=[1, 0], sample_weight=[2, 2]).input_digest,
        ]
        assert len(set(digests)) == len(digests)
        assert all(digest.startswith("sha256:") for digest in digests)

    def test_counts_beyond_integers_have_a_digest(self) -> None:
        size = 3000
        sample = evidence(y_true=[0] * size, y_pred=[0] * size, sample_weight=[2**53 - 1] * size)
        assert sample.table.total > 2**64
        assert sample.input_digest

    def test_the_digest_does_not_depend_on_the_encoding(self) -> None:
        assert (
            evidence(confusion_matrix=[[5.0, 1], [2, 3]]).input_digest
            == evidence(confusion_matrix=[[5, 1], [2, 3]], labels=[0, 1]).input_digest
        )
        assert (
            evidence(y_true=["0", "1"], y_pred=["1", "1"]).input_digest
            == evidence(y_true=[0, 1], y_pred=[1, 1]).input_digest
        )
