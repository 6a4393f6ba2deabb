"""Items that come as columns: the same report as from JSON, in whatever form they are sent."""

import gzip
import hashlib
import io
import json
import warnings
from typing import Any

import httpx
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
import zstandard

from rprime import evidence
from rprime.settings import Limits
from tests.http.column_bodies import (
    MEDIA_TYPES,
    WRITERS,
    Columns,
    as_arrow,
    as_csv,
    as_npz,
    as_parquet,
    fault,
    posted,
    report,
    send,
)

Json = dict[str, Any]

ITEMS = 200_000


@pytest.fixture(scope="module")
def labels() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    draw = np.random.default_rng(0)
    true = draw.integers(0, 12, ITEMS)
    return true, np.where(draw.random(ITEMS) < 0.8, true, draw.integers(0, 12, ITEMS))


Labels = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


@pytest.mark.parametrize("kind", MEDIA_TYPES)
def test_integers_give_the_report_of_json(client: httpx.Client, labels: Labels, kind: str) -> None:
    true, predicted = labels
    content = report(client, kind, {"y_true": true, "y_pred": predicted})
    assert content == posted(client, y_true=true, y_pred=predicted)


@pytest.mark.parametrize("kind", MEDIA_TYPES)
def test_strings_give_the_report_of_json(client: httpx.Client, labels: Labels, kind: str) -> None:
    names = np.array([f"class {9 - i} é" for i in range(12)])
    true, predicted = (names[part] for part in labels)
    content = report(client, kind, {"y_true": true.tolist(), "y_pred": predicted.tolist()})
    assert content == posted(client, y_true=true.tolist(), y_pred=predicted.tolist())


@pytest.mark.parametrize(
    ("kind", "hole"), [("arrow", None), ("arrow", "unused too"), ("parquet", "unused too")]
)
def test_dictionaries_count_only_what_occurs(
    client: httpx.Client, kind: str, hole: str | None
) -> None:
    names = pa.array(["unused", "b", hole, "a"])
    true = pa.DictionaryArray.from_arrays(pa.array([3, 1, 3]), names)
    predicted = pa.DictionaryArray.from_arrays(pa.array([3, None, None if hole else 2]), names)
    content = report(client, kind, {"y_true": true, "y_pred": predicted})
    assert content == posted(client, y_true=["a", "b", "a"], y_pred=["a", None, None])


@pytest.mark.parametrize("kind", ["csv", "jsonl", "arrow", "parquet"])
def test_null_is_unclassified(client: httpx.Client, kind: str) -> None:
    content = report(client, kind, {"y_true": [10, 9, 9], "y_pred": [None, 9, 10]})
    assert content == posted(client, y_true=[10, 9, 9], y_pred=[None, 9, 10])


def test_nan_is_unclassified(client: httpx.Client) -> None:
    columns = {"y_true": np.array([10, 9]), "y_pred": np.array([np.nan, 9.0])}
    assert report(client, "npz", columns) == posted(client, y_true=[10, 9], y_pred=[None, 9])


@pytest.mark.parametrize("kind", ["csv", "jsonl", "arrow", "parquet"])
def test_no_true_label_is_refused_with_its_row(client: httpx.Client, kind: str) -> None:
    true: list[int | None] = [1] * 150_000
    true[140_000] = None
    body = WRITERS[kind]({"y_true": true, "y_pred": [1] * 150_000})
    assert fault(send(client, kind, body)) == (422, "/y_true/140000", "no_label")


@pytest.mark.parametrize("kind", MEDIA_TYPES)
def test_labels_that_come_late_have_their_place(client: httpx.Client, kind: str) -> None:
    true = np.sort(np.random.default_rng(1).integers(-400, 70_000, 100_000))[::-1].copy()
    predicted = np.where(np.arange(true.size) % 3, true, -400)
    request = {"indices": ["accuracy"], "intervals": False}
    content = report(client, kind, {"y_true": true, "y_pred": predicted}, request)
    assert content == posted(client, y_true=true, y_pred=predicted, **request)


@pytest.mark.parametrize("kind", MEDIA_TYPES)
def test_everything_at_once_is_as_in_json(client: httpx.Client, labels: Labels, kind: str) -> None:
    true, predicted = (part[:70_000] for part in labels)
    other, weights = np.roll(predicted, 1), np.random.default_rng(2).random(true.size)
    groups = np.arange(true.size)[::-1] // 5
    options = {"gates": {"rules": [{"index": "r_prime", "max_drop": 0.02}]}}
    columns = {"y_true": true, "y_pred": predicted, "y_pred_baseline": other}
    columns |= {"sample_weight": weights, "group": groups}
    answer = json.loads(report(client, kind, columns, options))
    members = {"y_true": true, "y_pred": predicted, "sample_weight": weights, "groups": groups}
    expected = json.loads(posted(client, **members, baseline={"y_pred": other}, **options))
    assert answer["comparison"]["pairing"] == "paired"
    assert answer == expected


@pytest.mark.parametrize("kind", MEDIA_TYPES)
def test_codes_are_positions_in_the_labels(client: httpx.Client, kind: str) -> None:
    names = ["zebra", "ant", "cat"]
    columns = {"y_true": np.array([0, 1, 0], np.int8), "y_pred": np.array([0, -1, 1], np.int8)}
    content = report(client, kind, columns, {"codes": True, "labels": names})
    true, predicted = ["zebra", "ant", "zebra"], ["zebra", None, "ant"]
    assert content == posted(client, y_true=true, y_pred=predicted, labels=names)


def test_items_with_ids_are_the_same_in_any_order(client: httpx.Client) -> None:
    draw = np.random.default_rng(3)
    true, ids = draw.integers(0, 3, 1000), [f"item {i}" for i in range(1000)]
    columns = {"y_true": true, "y_pred": np.roll(true, 1), "item_id": np.array(ids)}
    order = draw.permutation(1000)
    first = report(client, "arrow", columns)
    other = {name: values[order] for name, values in columns.items()}
    assert report(client, "parquet", other) == first
    assert report(client, "csv", other) == first
    assert report(client, "npz", other) == first
    assert report(client, "csv", other | {"item_id": np.array(ids)}) != first


def test_integers_as_ids_are_their_decimal_text(client: httpx.Client) -> None:
    columns = {"y_true": np.array([0, 1, 2]), "y_pred": np.array([0, 2, 2])}
    ids = np.array([-5, 10, 9])
    first = report(client, "arrow", columns | {"item_id": ids.astype(str)})
    assert report(client, "npz", columns | {"item_id": ids}) == first
    assert report(client, "parquet", columns | {"item_id": ids}) == first


def test_the_fingerprint_with_ids_is_the_published_one() -> None:
    limits = Limits(other_body_bytes=1000)
    body = as_csv({"y_true": ["b", "a"], "y_pred": ["b", "b"], "item_id": ["x", "Ab"]})
    document = evidence.read_columns("csv", io.BytesIO(body), b"", limits)
    expected = hashlib.sha256(b'rprime-fp1\n["a","b"]\n' + np.array([0, 1], "<u4").tobytes())
    expected.update(b"\2\0\0\0Ab\1\0\0\0x")
    assert evidence.read(document, limits).fingerprint == expected.hexdigest()


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("kind", MEDIA_TYPES)
def test_a_compressed_body_is_inflated(
    client: httpx.Client, labels: Labels, kind: str, encoding: str
) -> None:
    columns = {"y_true": labels[0], "y_pred": labels[1]}
    body = WRITERS[kind](columns)
    sent = gzip.compress(body) if encoding == "gzip" else zstandard.compress(body)
    response = send(client, kind, sent, encoding=encoding)
    assert response.content == report(client, "arrow", columns)
    cut = send(client, kind, sent[:-9], encoding=encoding)
    assert fault(cut) == (400, "", "unreadable_body")


@pytest.mark.parametrize("kind", MEDIA_TYPES)
@pytest.mark.parametrize("end", [0, 1, 30, -3])
def test_what_is_damaged_is_unreadable(client: httpx.Client, kind: str, end: int) -> None:
    body = WRITERS[kind]({"y_true": ["a", "b"] * 50_000, "y_pred": ["b", "b"] * 50_000})[:end]
    if kind == "csv" and end:
        body += b'"\xff'
    if kind == "arrow" and end == -3:
        body = body[:-300]
    assert send(client, kind, body).status_code in {400, 422}


INFINITE = np.array([np.inf], np.float16)


@pytest.mark.parametrize(
    ("kind", "columns", "request_", "expected"),
    [
        ("arrow", {"y_true": [1]}, None, (422, "", "missing_column")),
        ("csv", {"y_true": [1], "y_pred": [1], "groups": [1]}, None, (422, "", "unknown_column")),
        ("csv", {"a": [1], "b": [1]}, {"columns": {"true": 1}}, (422, "/columns", "dict_type")),
        (
            "csv",
            {"a": [1], "b": [1]},
            {"columns": {"y_tru": "a", "y_pred": "b"}},
            (422, "/columns", "unknown_column"),
        ),
        ("arrow", {"y_true": [1], "y_pred": ["1"]}, None, (422, "/y_pred", "mixed_labels")),
        ("parquet", {"y_true": [1.5], "y_pred": [1]}, None, (422, "/y_true/0", "mixed_labels")),
        ("arrow", {"y_true": [True], "y_pred": [1]}, None, (422, "/y_pred", "mixed_labels")),
        ("arrow", {"y_true": [[1]], "y_pred": [1]}, None, (422, "/y_true", "column_type")),
        ("npz", {"y_true": [1], "y_pred": [[1]]}, None, (422, "/y_pred", "wrong_shape")),
        ("npz", {"y_true": [1], "y_pred": [1, 2]}, None, (422, "/y_pred", "wrong_length")),
        ("arrow", {"y_true": [2**60], "y_pred": [1]}, None, (422, "/y_true/0", "out_of_range")),
        ("npz", {"y_true": INFINITE, "y_pred": [1]}, None, (422, "/y_true/0", "mixed_labels")),
        ("csv", {"y_true": ["\x7f"], "y_pred": ["b"]}, None, (422, "/y_true/0", "class_name")),
        ("csv", {"y_true": [1], "y_pred": [2]}, {"codes": True}, (422, "/labels", "required")),
        (
            "npz",
            {"y_true": [1], "y_pred": [2]},
            {"codes": True, "labels": ["a", "b"]},
            (422, "/y_pred/0", "out_of_range"),
        ),
        (
            "arrow",
            {"y_true": [1], "y_pred": [2]},
            {"labels": [1]},
            (422, "/y_pred/0", "undeclared_label"),
        ),
        (
            "arrow",
            {"y_true": [1], "y_pred": [1]},
            {"y_true": [1]},
            (422, "/y_true", "several_kinds"),
        ),
        ("arrow", {"y_true": [1], "y_pred": [1]}, {"indeces": []}, (422, "", "unknown_field")),
        *(
            (
                kind,
                {"y_true": [1, 1, 1], "y_pred": [1, 1, 1], "item_id": ["b", "a", "b"]},
                None,
                (422, "/item_id/2", "duplicate_id"),
            )
            for kind in ("arrow", "npz")
        ),
        (
            "npz",
            {"y_true": [1, 1], "y_pred": [1, 1], "item_id": [0.5, 1.5]},
            None,
            (422, "/item_id", "column_type"),
        ),
        (
            "arrow",
            {"y_true": [1, 1], "y_pred": [1, 1], "sample_weight": [1, -1]},
            None,
            (422, "/sample_weight/1", "out_of_range"),
        ),
        (
            "arrow",
            {"y_true": [1, 1], "y_pred": [1, 1], "group": ["a", None]},
            None,
            (422, "/group/1", "no_group"),
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    client: httpx.Client,
    kind: str,
    columns: Columns,
    request_: Json | None,
    expected: tuple[int, str, str],
) -> None:
    assert fault(send(client, kind, WRITERS[kind](columns), request_)) == expected


def test_pickles_are_never_read(client: httpx.Client) -> None:
    columns = {"y_true": np.array(["a", None], object), "y_pred": np.array(["a", "b"])}
    response = send(client, "npz", as_npz(columns))
    assert fault(response) == (422, "/y_true", "column_type")


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("y_true", np.full(2, 0x110000, np.uint32).view("<U1"), (400, "", "unreadable_body")),
        ("item_id", np.full(2, 0x110000, np.uint32).view("<U1"), (400, "", "unreadable_body")),
        ("item_id", np.array(["a", "\ud800"]), (400, "", "unreadable_body")),
        ("y_true", np.empty(2, np.dtype((np.str_, 0))), (422, "/y_true", "class_name")),
    ],
)
def test_strings_that_are_none_are_refused(
    client: httpx.Client, name: str, values: Any, expected: tuple[int, str, str]
) -> None:
    columns = {"y_true": np.array(["a", "b"]), "y_pred": np.array(["a", "b"]), name: values}
    problem = fault(send(client, "npz", as_npz(columns)))
    assert (problem[0], problem[1].rpartition("/0")[0] or problem[1], problem[2]) == expected


def test_strings_in_either_byte_order_are_the_same_classes(client: httpx.Client) -> None:
    names = np.array(["é", "b", "\U0001d54f", "b"])
    columns = {"y_true": names.astype(">U9"), "y_pred": names.astype("<U2")}
    answer = json.loads(report(client, "npz", columns))
    assert answer["labels"] == ["b", "é", "\U0001d54f"]
    assert answer["overall"]["accuracy"]["value"] == 1


def test_nothing_is_nothing_to_evaluate(client: httpx.Client) -> None:
    for kind in MEDIA_TYPES:
        body = WRITERS[kind]({"y_true": np.array([], int), "y_pred": np.array([], int)})
        assert fault(send(client, kind, body)) == (422, "/y_true", "empty")


def test_texts_that_are_no_integers_stay_what_they_are(client: httpx.Client) -> None:
    answer = json.loads(report(client, "csv", {"y_true": ["10", "9"], "y_pred": ["10", "9"]}))
    assert answer["labels"] == ["9", "10"]
    answer = json.loads(report(client, "csv", {"y_true": ["10", "09"], "y_pred": ["10", "8"]}))
    assert answer["labels"] == ["09", "10", "8"]


@pytest.mark.parametrize(
    ("columns", "labels"),
    [
        ({"y_true": ["10", "09"], "y_pred": ["10", "9"]}, ("09", "9")),
        ({"y_true": ["a", "1"], "y_pred": ["a", "TRUE"]}, ("1", "TRUE")),
        ({"y_true": ["Cat", "dog"], "y_pred": ["cat", "dog"]}, ("Cat", "cat")),
        ({"y_true": ["1e3", "a"], "y_pred": ["1000", "a"]}, ("1000", "1e3")),
    ],
)
def test_two_spellings_of_one_class_have_a_warning(
    client: httpx.Client, columns: dict[str, Any], labels: tuple[str, str]
) -> None:
    answer = json.loads(report(client, "csv", columns))
    warning = next(entry for entry in answer["warnings"] if entry["code"] == "similar_labels")
    assert f"`{labels[0]}` and `{labels[1]}`" in warning["detail"]


def test_the_text_nan_is_a_missing_value_unless_it_is_a_class(client: httpx.Client) -> None:
    columns = {"y_true": ["a", "b"], "y_pred": ["a", "<NA>"]}
    assert json.loads(report(client, "csv", columns))["counts"]["unclassified"] == 1
    declared = json.loads(report(client, "csv", columns, {"labels": ["a", "b", "<NA>"]}))
    assert declared["counts"]["unclassified"] == 0
    body = WRITERS["csv"]({"y_true": ["a", "NaN"], "y_pred": ["a", "b"]})
    assert fault(send(client, "csv", body)) == (422, "/y_true/1", "no_label")


def test_the_line_of_a_fault_is_said_in_every_block(client: httpx.Client) -> None:
    rows = ["y_true,y_pred,sample_weight", *["cat,dog,1"] * 200_000]
    for number, row, message in (
        (3, "cat", "has 1 field, the header 3"),
        (150_000, "cat,dog,much", "has no number in column 3"),
        (199_999, "cat,caf\xe9,1", "is not UTF-8"),
    ):
        wrong = [*rows[: number - 1], row, *rows[number:]]
        response = send(client, "csv", "\n".join(wrong).encode("latin-1"))
        assert response.status_code == 400
        assert f"Line {number} of the CSV {message}" in response.json()["detail"]


def test_a_bomb_does_not_go_off(serve: Any) -> None:
    with serve(RPRIME_LIMITS_OTHER_BODY_BYTES="100000", RPRIME_STORE="none") as client:
        zeros = np.zeros(300_000, np.uint8)
        for kind in MEDIA_TYPES:
            body = WRITERS[kind]({"y_true": zeros, "y_pred": zeros})
            response = send(client, kind, body)
            if kind in {"csv", "arrow"}:
                response = send(client, kind, gzip.compress(body), encoding="gzip")
            assert fault(response) == (413, "", "body_too_large"), kind


def test_a_kept_evaluation_has_its_items(serve: Any) -> None:
    with serve() as client:
        columns: Columns = {"y_true": [0, 1, 1], "y_pred": [0, 1, 0], "item_id": ["c", "a", "b"]}
        request: Json = {"project": "p", "model": "m", "version": "1"}
        first = send(client, "arrow", as_arrow(columns), request)
        assert first.status_code == 201, first.text
        again = send(client, "csv", as_csv(columns), request)
        assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
        turned: Columns = {name: values[::-1] for name, values in columns.items()}
        turned["y_pred"] = [1, 1, 0]
        request |= {"version": "2", "baseline": {"evaluation": first.json()["id"]}}
        compared = send(client, "parquet", as_parquet(turned), request).json()["comparison"]
        assert compared["pairing"] == "paired"
        assert compared["flips"]["wrong_to_right"] == 1


def test_streams_of_polars_are_read(client: httpx.Client) -> None:
    frame = pl.DataFrame(
        {
            "y_true": ["cat", "a dog with a long name", None, "eel"] * 50,
            "y_pred": ["cat", "cat", "eel", None] * 50,
            "item_id": [f"item number {i} of all" for i in range(200)],
        }
    ).filter(pl.col("y_true").is_not_null())
    answers = []
    for level in (pl.CompatLevel.newest(), pl.CompatLevel.oldest()):
        sink = io.BytesIO()
        frame.write_ipc_stream(sink, compat_level=level)
        headers = {"Content-Type": "application/vnd.apache.arrow.stream"}
        answers.append(client.post("/evaluate", content=sink.getvalue(), headers=headers))
    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    views, texts = (answer.json() for answer in answers)
    assert views["overall"] == texts["overall"]
    assert views["counts"] == texts["counts"]


def feather(version: int) -> bytes:
    # pyarrow warns that it will no longer write version 1.
    table, sink = pa.table({"y_true": [1, 2], "y_pred": [1, 1]}), io.BytesIO()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        pyarrow.feather.write_feather(table, sink, version=version)
    return sink.getvalue()


@pytest.mark.parametrize("kind", MEDIA_TYPES)
@pytest.mark.parametrize(("version", "named"), [(1, "a Feather V1 file"), (2, "an Arrow IPC file")])
def test_a_file_of_arrow_is_named_with_what_to_send(
    client: httpx.Client, kind: str, version: int, named: str
) -> None:
    answer = send(client, kind, feather(version))
    assert fault(answer) == (400, "", "unreadable_body")
    detail = answer.json()["detail"]
    assert f"The body is {named}" in detail
    assert f"Send an Arrow IPC stream as {MEDIA_TYPES['arrow']}" in detail


@pytest.mark.parametrize("kind", MEDIA_TYPES)
@pytest.mark.parametrize("size", [0, 1, 7, 9])
def test_a_body_of_a_few_bytes_is_refused(client: httpx.Client, kind: str, size: int) -> None:
    assert send(client, kind, b"ARROW1\0\0\0"[:size]).status_code in {400, 422}


def test_a_stream_of_the_old_format_is_read(client: httpx.Client) -> None:
    batch, sink = pa.record_batch({"y_true": [1, 2], "y_pred": [1, 1]}), io.BytesIO()
    options = pa.ipc.IpcWriteOptions(use_legacy_format=True)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    assert not sink.getvalue().startswith(b"\xff")
    content = send(client, "arrow", sink.getvalue()).content
    assert content == posted(client, y_true=[1, 2], y_pred=[1, 1])


def test_views_of_the_same_bytes_are_no_bomb(client: httpx.Client) -> None:
    long = pa.array(["x" * 1_000_000]).cast(pa.string_view())
    column = pa.StringViewArray.from_buffers(
        pa.string_view(), 300, [None, pa.py_buffer(long.buffers()[1].to_pybytes() * 300),
                                 *long.buffers()[2:]]
    )  # fmt: skip
    sink = io.BytesIO()
    batch = pa.record_batch({"y_true": column, "y_pred": column})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    headers = {"Content-Type": "application/vnd.apache.arrow.stream"}
    answer = client.post("/evaluate", content=sink.getvalue(), headers=headers)
    assert answer.status_code in {413, 422}, answer.text
