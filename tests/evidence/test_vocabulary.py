"""Codes of labels that come piece by piece, and the arrays that they are kept in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rprime.core.items import PIECE
from rprime.evidence import label_columns
from rprime.evidence.coding import count_codes, recoded
from rprime.evidence.label_columns import Growing, Vocabulary, Where

WHERE = Where("/y_true", 0, null=True)
KINDS = ("uint8", "int8", "uint16", "int32", "int64", "uint64")


@given(st.data())
def test_codes_that_ascend_give_what_a_look_up_gives(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 256))
    start = data.draw(st.integers(0, 255))
    codes = ((np.arange(size) + start) % 256).astype(np.uint8)
    for place in data.draw(st.lists(st.integers(0, min(size, 2) - 1))):
        codes[place] = data.draw(st.integers(0, 255))
    kind = data.draw(st.sampled_from(KINDS))
    most = min(size, int(np.iinfo(kind).max) + 1) - 1
    values = np.array(data.draw(st.lists(st.integers(0, most), max_size=20)), kind)
    new_codes = recoded(values, codes)
    assert new_codes.dtype == np.uint8
    assert new_codes.tolist() == codes[values.astype(np.int64)].tolist()


@given(st.lists(st.lists(st.integers(-3, 12), min_size=1, max_size=8), min_size=1, max_size=6))
def test_pieces_of_integers_keep_their_labels(pieces: list[list[int]]) -> None:
    codes = Vocabulary(100, "/y_true")
    for kind in (np.int8, np.int64):
        for piece in pieces:
            piece_codes = codes.of_integers(np.array(piece, kind), WHERE)
            assert [codes.labels[code] for code in piece_codes.tolist()] == piece


def test_after_labels_without_a_gap_others_may_come() -> None:
    codes = Vocabulary(1000, "/y_true")
    pieces = [[0, 1, 2], [2, 0], [-1, 2], [0, 5], [5, 1], [300, 2**40], [1, 2]]
    for piece in pieces:
        piece_codes = codes.of_integers(np.array(piece), WHERE)
        assert [codes.labels[code] for code in piece_codes.tolist()] == piece


def test_an_array_that_is_full_is_moved_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_columns, "MAPPED", 16)
    kept, expected = Growing(), list[int]()
    for number in (1, 200, 255, 256, 70_000, 3):
        part = np.full(11, number, np.min_scalar_type(number))
        kept.extend(part)
        expected += part.tolist()
        assert kept.values.tolist() == expected
    assert kept.nbytes == 4 * len(expected)


def test_no_codes_give_none() -> None:
    assert recoded(np.zeros(0, np.uint8), np.zeros(0, np.uint8)).size == 0


def test_codes_count_wherever_they_stand() -> None:
    values = np.zeros(2 * PIECE + 1, np.uint8)
    values[PIECE], values[-1] = 3, 5
    assert count_codes(values, 7).tolist() == [2 * PIECE - 1, 0, 0, 1, 0, 1, 0]
