"""Slices of stored evaluations: how they are named, kept and compared."""

import pytest
from pydantic_core import PydanticCustomError

from rprime.schemas.history import read_slice


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["region=EU"], {"region": "EU"}),
        (["region=EU", "device=ios"], {"region": "EU", "device": "ios"}),
        (["url=a=b"], {"url": "a=b"}),
        (['{"a=b": "EU"}', "device=ios"], {"a=b": "EU", "device": "ios"}),
        (["Re\u0301gion= EU "], {"R\u00e9gion": "EU"}),
        ({"device": "ios", "region": "EU"}, {"region": "EU", "device": "ios"}),
        ([], {}),
    ],
)
def test_a_slice_is_named_by_columns_and_values(given: object, named: dict[str, str]) -> None:
    assert read_slice(given) == tuple(sorted(named.items()))


@pytest.mark.parametrize(
    "given",
    [
        ["region"],
        ["region="],
        ["=EU"],
        ["region=EU", "region=US"],
        ["{region=EU"],
        ['{"region": 1}'],
        [["region", "EU"]],
        {"region": None},
        ["a=1", "b=1", "c=1", "d=1"],
    ],
)
def test_what_names_no_slice_is_refused(given: object) -> None:
    with pytest.raises(PydanticCustomError):
        read_slice(given)
