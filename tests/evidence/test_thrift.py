"""Structs of Thrift's compact protocol, as pyarrow and others read and write them."""

import pytest

from rprime.evidence.thrift import (
    BYTE,
    FALSE,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    TEXT,
    TRUE,
    BrokenError,
    Fields,
    Reader,
    Whole,
    packed,
)

STRUCTS: list[Fields] = [
    {},
    {(1, I32): 0, (2, I64): -(2**63), (3, I16): 2**15 - 1, (40, BYTE): 200},
    {(5, TEXT): b"x" * 300, (3, TRUE): None, (4, FALSE): None},
    {(1, LIST): [{(1, I64): i} for i in range(20)], (2, STRUCT): {(9, TEXT): b""}, (7, LIST): []},
]


@pytest.mark.parametrize("struct", STRUCTS)
def test_a_struct_is_read_as_it_was_written(struct: Fields) -> None:
    reader = Reader(packed(struct) + b"more", 100)
    assert reader.struct(Whole()) == struct
    assert reader.place == len(packed(struct))


@pytest.mark.parametrize("struct", STRUCTS)
def test_what_is_not_wanted_is_passed_over(struct: Fields) -> None:
    reader = Reader(packed(struct), 100)
    # Of another kind than it is sent with, a field is none.
    assert reader.struct({(1, TEXT): None, (2, I16): None}) == {}
    assert reader.place == len(packed(struct))


def test_lists_of_everything_are_passed_over() -> None:
    elements = {TRUE: b"\1\2", I32: b"\x80\1\0", TEXT: b"\2ab\0", LIST: b"\x15\2\5"}
    for kind, content in elements.items():
        content = bytes([0x19, 0x20 | kind]) + content + b"\x15\4\0"  # noqa: PLW2901 (the list)
        assert Reader(content, 100).struct({(2, I32): None}) == {(2, I32): 2}, kind


BROKEN = [
    b"\x16" + b"\xff" * 11,
    b"\x1c" * 20,
    b"\x19" * 20,
    b"\x1d\0",  # a kind that there is not
    b"\x19\xfc\xff\xff\xff\xff\x0f",
    b"\x11" * 200,
]
UNLIKE = [
    b"\x15\xff\xff\xff\xff\x1f\0",  # an integer of 32 bits that has 33
    b"\x15\2\5\2\2\0",  # a field that stands there twice
]


@pytest.mark.parametrize("content", BROKEN)
def test_what_is_no_struct_is_not_passed_over(content: bytes) -> None:
    with pytest.raises(BrokenError):
        Reader(content, 100).struct({})


@pytest.mark.parametrize("content", BROKEN + UNLIKE)
def test_what_others_may_read_otherwise_is_broken(content: bytes) -> None:
    with pytest.raises(BrokenError):
        Reader(content, 100).struct(Whole())


def test_a_struct_that_ends_too_early_is_told_from_a_broken_one() -> None:
    content = packed(STRUCTS[3])
    for end in range(len(content)):
        with pytest.raises(IndexError):
            Reader(content[:end], 100).struct({})
