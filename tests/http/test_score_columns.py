"""Scores that come as columns: the same report as from JSON, in whatever form they are sent."""

import io
import json
import tracemalloc
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from rprime import evidence
from rprime.evidence.label_columns import MAPPED
from rprime.settings import Limits
from tests.http.column_bodies import (
    MEDIA_TYPES,
    WRITERS,
    Columns,
    as_npz,
    fault,
    posted,
    report,
    send,
)

Json = dict[str, Any]
Array = np.ndarray[Any, Any]

ITEMS = 70_000
NAMES = ["cat", "dog é", "a/b~c"]
OPTIONS: Json = {"curves": True, "reject_below": 0.4}


def drawn(kind: str = "f8") -> tuple[Array, Array]:
    draw = np.random.default_rng(0)
    true = draw.integers(0, 3, ITEMS)
    scores = draw.dirichlet([1, 1, 1], ITEMS)
    scores[np.arange(ITEMS), true] += 0.5
    scores /= scores.sum(-1, keepdims=True)
    # The first rows alone would be taken for integers where a type is guessed.
    scores[:50] = np.eye(3)[true[:50]]
    return true, scores.astype(kind)


def named(true: Array, scores: Array, names: list[str] = NAMES) -> Columns:
    columns: Columns = {f"score:{name}": scores[:, i] for i, name in enumerate(names)}
    return {"y_true": np.array(names)[true].tolist()} | columns


@pytest.mark.parametrize("kind", MEDIA_TYPES)
def test_a_column_for_each_class_gives_the_report_of_json(client: httpx.Client, kind: str) -> None:
    true, scores = drawn()
    columns = named(true, scores)
    expected = posted(client, y_true=columns["y_true"], y_score=scores, labels=NAMES, **OPTIONS)
    assert report(client, kind, columns, OPTIONS) == expected
    # What is declared is the order of the classes, whatever that of the columns.
    turned = dict(reversed(columns.items()))
    assert report(client, kind, turned, {"labels": NAMES, **OPTIONS}) == expected


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["f4", ">f8"])
def test_an_array_gives_the_report_of_json(client: httpx.Client, kind: str, order: Any) -> None:
    true, scores = drawn(kind)
    columns = {"y_true": true, "y_score": np.asarray(scores, order=order)}
    request = {"labels": [0, 1, 2]}
    expected = posted(client, y_true=true, y_score=scores.astype("f8"), **request)
    assert report(client, "npz", columns, request) == expected
    bare = posted(client, y_true=true, y_score=scores.astype("f8"))  # which warns of the order
    assert report(client, "npz", columns) == bare


def test_predictions_and_groups_may_stand_beside_scores(client: httpx.Client) -> None:
    true, scores = drawn()
    groups, other = np.arange(ITEMS) // 7, np.roll(true, 1)
    labels = ["0", "1", "2"]
    columns = named(true, scores, labels) | {"y_true": true, "y_pred": other, "group": groups}
    expected = posted(
        client, y_true=true, y_score=scores, y_pred=other, groups=groups, labels=labels
    )
    assert report(client, "arrow", columns) == expected
    compared = json.loads(
        report(client, "parquet", named(true, scores) | {"y_pred_baseline": ["cat"] * ITEMS})
    )
    assert compared["comparison"]["pairing"] == "paired"


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_one_column_is_enough_for_two_classes(client: httpx.Client, kind: str) -> None:
    columns = {"y_true": ["no", "yes", "no"], "score:yes": np.array([0.2, 0.9, 0.5])}
    items = {"y_true": ["no", "yes", "no"], "y_score": [0.2, 0.9, 0.5]}
    expected = posted(client, **items, labels=["no", "yes"])
    assert report(client, kind, columns, {"labels": ["no", "yes"]}) == expected
    expected = posted(client, **items)
    array = {"y_true": np.array(["no", "yes", "no"]), "y_score": np.array([0.2, 0.9, 0.5])}
    assert report(client, "npz", array) == expected
    refused = send(client, kind, WRITERS[kind](columns))
    assert fault(refused) == (422, "/labels", "required")


def test_items_with_ids_bring_their_scores_into_order(client: httpx.Client) -> None:
    true, scores = drawn()
    ids = np.array([f"{i:06}" for i in range(ITEMS)])
    order = np.random.default_rng(1).permutation(ITEMS)
    first = report(client, "arrow", named(true, scores) | {"item_id": ids})
    shuffled = named(true[order], scores[order]) | {"item_id": ids[order]}
    assert report(client, "parquet", shuffled) == first


def test_codes_are_positions_in_the_labels_that_scores_have(client: httpx.Client) -> None:
    true, scores = drawn()
    columns = named(true, scores) | {"y_true": true}
    expected = posted(client, y_true=named(true, scores)["y_true"], y_score=scores, labels=NAMES)
    assert report(client, "parquet", columns, {"codes": True, "labels": NAMES}) == expected


TWO: Columns = {"y_true": ["a", "b"], "score:a": [0.5, 0.5], "score:b": [0.5, 0.5]}


@pytest.mark.parametrize(
    ("kind", "columns", "request_", "expected"),
    [
        ("arrow", {"score:b": [0.5, None]}, {}, ("/y_score/1/1", "not_a_number", "column 3")),
        ("csv", {"score:b": [0.5, None]}, {}, ("/y_score/1/1", "not_a_number", "column 3")),
        ("npz", {"score:a": [0.5, np.nan]}, {}, ("/y_score/1/0", "out_of_range", "column 2")),
        ("arrow", {"score:a": [1e300, 0]}, {}, ("/y_score/0/0", "out_of_range", "column 2")),
        (
            "parquet",
            {"score:a": np.array([np.inf, 0], np.float16)},
            {},
            ("/y_score/0/0", "out_of_range", "column 2"),
        ),
        ("parquet", {"score:a": ["x", "y"]}, {}, ("/y_score", "column_type", "Column 2")),
        ("npz", {"score:a": ["x", "y"]}, {}, ("/y_score", "column_type", "numbers")),
        (
            "arrow",
            {"score:c": [0, 0]},
            {"labels": ["a", "b"]},
            ("", "undeclared_label", "Column 4"),
        ),
        ("arrow", {}, {"labels": ["a", "b", "c"]}, ("/labels/2", "missing_column", "score:")),
        ("arrow", {"y_true": ["a", "c"]}, {}, ("/y_true/1", "undeclared_label", "")),
        ("arrow", {"score: a": [0, 0]}, {}, ("/labels/2", "twin_labels", "")),
        ("arrow", {"y_score": [1, 1]}, {}, ("", "unknown_column", "score:<label>")),
        ("npz", {"y_score": [1, 1]}, {}, ("", "several_kinds", "")),
        ("arrow", {}, {"y_score": [[1]]}, ("/y_score", "several_kinds", "")),
    ],
)
def test_what_is_wrong_is_told_with_its_column(
    client: httpx.Client,
    kind: str,
    columns: Columns,
    request_: Json,
    expected: tuple[str, str, str],
) -> None:
    response = send(client, kind, WRITERS[kind](TWO | columns), request_)
    pointer, code, told = expected
    assert fault(response) == (422, pointer, code)
    assert told in response.json()["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (np.zeros((2, 2, 2)), "wrong_shape"),
        (np.zeros((2, 0)), "wrong_shape"),
        (np.zeros((3, 2)), "wrong_length"),
        (np.zeros((2, 3)), "wrong_length"),
        (np.full((2, 2), np.inf), "out_of_range"),
        (np.zeros((2, 2), bool), "column_type"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(
    client: httpx.Client, scores: Array, expected: str
) -> None:
    response = send(client, "npz", as_npz({"y_true": ["a", "b"], "y_score": scores}))
    assert fault(response)[::2] == (422, expected)
    assert fault(response)[1].startswith("/y_score")


@pytest.mark.parametrize("labels", [1001, 1000])
def test_scores_have_as_many_classes_as_a_dense_table(client: httpx.Client, labels: int) -> None:
    columns = {f"score:{i}": [0.5] for i in range(labels)}
    options: Json = {"indices": ["accuracy"], "intervals": False}
    response = send(client, "arrow", WRITERS["arrow"]({"y_true": [1]} | columns), options)
    assert response.status_code == (200 if labels == 1000 else 422)


def test_no_second_copy_of_the_scores_is_made() -> None:
    true, scores = (np.concatenate([part] * 5) for part in drawn())
    table, sink = pa.table(named(true, scores) | {"y_true": true, "y_pred": true}), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, 1000)
    request = b'{"codes": true, "labels": ["cat", "dog \xc3\xa9", "a/b~c"]}'
    limits = Limits(other_body_bytes=1 << 30)
    sink.seek(0)
    tracemalloc.start()
    document = evidence.read_columns("arrow", sink, request, limits)
    content = evidence.read(document, limits)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert content.scores is not None
    # What an array reserves takes no memory before it is used.
    assert peak - 3 * MAPPED < content.scores.nbytes / 2
    assert np.shares_memory(content.scores, document.arrays["y_score"])
