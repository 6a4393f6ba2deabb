"""Large columns of any library stay arrays in process; the answers are those of lists."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rprime
from rprime import Client, ProblemError
from rprime.client.calls import JSON, NPZ, evaluation
from rprime.client.columns import LARGE
from rprime.client.in_process import InProcess
from rprime.client.request import MANY, document
from rprime.settings import Limits

ITEMS = LARGE + 3
DRAW = np.random.default_rng(0)
TRUE, OTHER, OLD, PART = DRAW.integers(0, 7, (4, ITEMS))
PREDICTED = np.where(DRAW.random(ITEMS) < 0.7, TRUE, OTHER)
Column = Callable[[Any], Any]


def arrow(values: Any) -> object:
    return pytest.importorskip("pyarrow").array(values)


LIBRARIES: dict[str, Column] = {
    "pandas": lambda values: pytest.importorskip("pandas").Series(values),
    "pandas.nullable": lambda values: pytest.importorskip("pandas").array(values, dtype="Int64"),
    "polars": lambda values: pytest.importorskip("polars").Series(values),
    "pyarrow": arrow,
    "pyarrow.chunked": lambda values: pytest.importorskip("pyarrow").chunked_array([values]),
    "strided": lambda values: np.repeat(values, 2)[::2],
    "big endian": lambda values: values.astype(">i4"),
    **{
        kind: lambda values, kind=kind: values.astype(kind)  # type: ignore[misc] # a default
        for kind in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8", "?")
    },
}
WEIGHTS = DRAW.random(ITEMS)
SCORES = DRAW.dirichlet(np.ones(7), ITEMS)
MEMBERS: dict[str, dict[str, Any]] = {
    "labels": {},
    "gaps": {"y_true": TRUE * 1000 + 3, "y_pred": PREDICTED * 1000 + 3},
    "many": {"y_true": TRUE * 10**12, "y_pred": PREDICTED * 10**12},
    "negative": {"y_true": TRUE - 2, "y_pred": PREDICTED - 2},
    "declared": {"labels": [6, 5, 4, 3, 2, 1, 0, 9]},
    "weights": {"sample_weight": WEIGHTS},
    "whole weights": {"sample_weight": OLD + 1},
    "probabilities": {"inclusion_probability": (1 + WEIGHTS) / 2},
    "groups": {"groups": DRAW.integers(0, 99, ITEMS)},
    "slices": {"slices": {"part": PART, "age": WEIGHTS}, "slice_cuts": {"age": [0.5]}},
    "scores": {"y_score": SCORES, "y_pred": None},
    "baseline": {"baseline": {"y_pred": OLD}},
    "ids": {
        "item_id": np.arange(ITEMS)[::-1],
        "baseline": {"y_true": TRUE[::-1], "y_pred": OLD, "item_id": np.arange(ITEMS)},
    },
    "gate": {
        "slices": {"part": PART},
        "baseline": {"y_pred": OLD},
        "gates": {"rules": [{"index": "accuracy", "slices": "all", "max_drop": 0.05}]},
    },
}


def mapped(members: Any, convert: Column) -> Any:
    """Convert the arrays among members, and among those of members."""
    if isinstance(members, dict):
        return {name: mapped(value, convert) for name, value in members.items()}
    return convert(members) if isinstance(members, np.ndarray) else members


def lists(members: Any) -> Any:
    return mapped(members, np.ndarray.tolist)


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_of_any_library_and_type_are_the_same_as_lists(library: str) -> None:
    true, predicted = (LIBRARIES[library](values) for values in (TRUE, PREDICTED))
    report = rprime.evaluate(true, predicted)
    if library == "?":
        assert report.labels == ["False", "True"]
    else:
        assert report.content == rprime.evaluate(TRUE.tolist(), PREDICTED.tolist()).content


@pytest.mark.parametrize("kind", MEMBERS)
def test_arrays_of_any_meaning_are_the_same_as_lists(kind: str) -> None:
    members = {"y_true": TRUE, "y_pred": PREDICTED, **MEMBERS[kind]}
    report = rprime.evaluate(**members)
    assert report.content == rprime.evaluate(**lists(members)).content


def test_arrays_are_compared_and_searched_as_lists_are() -> None:
    sides: tuple[Any, Any] = {"y_true": TRUE, "y_pred": PREDICTED}, {"y_pred": OLD, "y_true": TRUE}
    compared = rprime.compare(*sides)
    assert compared.content == rprime.compare(*map(lists, sides)).content
    search = {"y_true": TRUE, "y_pred": PREDICTED, "slices": {"part": PART, "age": WEIGHTS}}
    found = rprime.weak_slices(**search)
    assert found.content == rprime.weak_slices(**lists(search)).content


@pytest.mark.parametrize(
    "members",
    [
        {"y_pred": PREDICTED[1:]},
        {"y_pred": PREDICTED.astype(str)},
        {"y_true": np.where(TRUE == 1, 2**60, TRUE)},
        {"labels": [0, 1, 2]},
        {"sample_weight": WEIGHTS[1:]},
        {"sample_weight": WEIGHTS - 0.5},
        {"inclusion_probability": WEIGHTS + 0.5},
        {"groups": PART[1:]},
        {"item_id": np.zeros(ITEMS, int)},
        {"baseline": {"y_pred": OLD[1:]}},
        {"cost": TRUE},
    ],
    ids=str,
)
def test_arrays_are_refused_as_lists_are(members: dict[str, Any]) -> None:
    members = {"y_true": TRUE, "y_pred": PREDICTED, **members}
    problems = []
    for arguments in (members, lists(members)):
        with pytest.raises((ProblemError, TypeError)) as refused:
            rprime.evaluate(**arguments)
        problems.append(str(refused.value))
    assert problems[0] == problems[1]


def test_no_item_becomes_an_object() -> None:
    seen: list[Any] = []

    class Watching(InProcess):
        def ask(self, call: Any) -> Any:
            seen.append(call.content)
            return super().ask(call)

    here = Watching(Limits())
    here.evaluate(TRUE, PREDICTED, groups=PART, baseline={"y_pred": OLD})
    here.evaluate(TRUE, PREDICTED, sample_weight=WEIGHTS)
    here.evaluate(TRUE, PREDICTED, slices={"part": PART})
    first, weighted, sliced = seen
    columns = [
        *(first[name] for name in ("y_true", "y_pred", "groups")),
        first["baseline"]["y_pred"],
    ]
    columns += [weighted["sample_weight"], sliced["slices"]["part"]]
    assert {type(column) for column in columns} == {np.ndarray}


def test_a_report_keeps_its_items_when_the_arrays_are_used_again() -> None:
    true, scores = TRUE.astype(np.uint8), SCORES.copy()
    drawn = rprime.evaluate(true, y_score=scores).plot("roc").svg
    report = rprime.evaluate(true, y_score=scores)
    true[:], scores[:] = 0, 1
    assert report.plot("roc").svg == drawn


def many(members: Any) -> Any:
    """Repeat the items until there are so many that a client sends arrays."""
    if isinstance(members, np.ndarray) and len(members) == ITEMS:
        return np.resize(members, (MANY, *members.shape[1:]))
    if isinstance(members, dict):
        return {name: many(value) for name, value in members.items()}
    return members


BY_COLUMNS: dict[str, dict[str, Any]] = {
    **{kind: MEMBERS[kind] for kind in ("labels", "gaps", "declared", "groups", "gate")},
    "weights": {"sample_weight": WEIGHTS, "baseline": {"y_pred": OLD, "sample_weight": WEIGHTS}},
    "whole weights": {"sample_weight": OLD + 1, "intervals": False},
    "scores": {"y_true": TRUE % 3, "y_score": SCORES[:, :3], "y_pred": None, "labels": [0, 1, 2]},
}


@pytest.mark.parametrize("kind", BY_COLUMNS)
def test_a_client_sends_many_items_as_arrays_and_gets_the_answer_to_lists(
    kind: str, server: str
) -> None:
    members = many({"y_true": TRUE, "y_pred": PREDICTED, **BY_COLUMNS[kind]})
    _, headers, _ = evaluation(document(members)).sent
    assert headers["Content-Type"] == (JSON if kind == "weights" else NPZ)
    with Client(server) as client:
        report = client.evaluate(**members, table=True)
        assert report.content == client.evaluate(**lists(members), table=True).content


def test_a_client_sends_json_where_columns_have_no_form_for_it() -> None:
    items = many({"y_true": TRUE, "y_pred": PREDICTED})
    others: list[dict[str, Any]] = [
        {"y_pred": items["y_pred"][1:]},
        {"y_pred": items["y_pred"].tolist()},
        {"item_id": np.arange(MANY)},
        {"inclusion_probability": np.full(MANY, 0.5)},
        {"baseline": {"confusion_matrix": [[5, 1], [1, 5]]}},
        {"tags": ["much to say about it"] * 300},
        {"y_true": items["y_true"][:-1], "y_pred": items["y_pred"][:-1]},
    ]
    for other in others:
        _, headers, body = evaluation(document(items | other)).sent
        assert headers["Content-Type"] == JSON, other
        assert (body or b"").startswith(b"{")
