"""JSON lines are read like other columns, and a mistake is told with its line."""

from pathlib import Path

import httpx
import pytest

from tests.command import Run

HEADERS = {"Content-Type": "application/x-ndjson"}
RIGHT = b'{"y_true": 1, "y_pred": 1}\n'


def send(client: httpx.Client, body: bytes, **headers: str) -> httpx.Response:
    return client.post("/evaluate", content=body, headers=HEADERS | headers)


@pytest.mark.parametrize(
    "body",
    [
        b'{"y_true": "a", "y_pred": "b"}\n{"y_pred": "a", "y_true": "a"}\n{"y_true": "b"}',
        (
            b'\xef\xbb\xbf{"y_true":"a","y_pred":"b"}\r\n\r\n{"y_true":"a","y_pred":"a"}\n'
            b'{"y_true":"b","y_pred":null}\n\n'
        ),
    ],
)
def test_lines_are_items(client: httpx.Client, body: bytes) -> None:
    items = {"y_true": ["a", "a", "b"], "y_pred": ["b", "a", None]}
    assert send(client, body).content == client.post("/evaluate", json=items).content


def test_ids_match_items_in_any_order(rprime: Run, tmp_path: Path) -> None:
    new, old = tmp_path / "new.jsonl", tmp_path / "old.ndjson"
    lines = [f'{{"item_id": {i}, "y_true": {i % 2}, "y_pred": {i % 3 % 2}}}' for i in range(60)]
    new.write_text("\n".join(lines), encoding="utf-8")
    old.write_text("\n".join(reversed(lines)), encoding="utf-8")
    done = rprime("evaluate", str(new), "--baseline", str(old), "--json")
    assert done.returncode == 0, done.stderr
    assert '"pairing":"paired"' in done.stdout
    assert '"flips":{"items":0' in done.stdout or '"same_predictions"' in done.stdout


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "There are no lines"),
        (b"\n\n", "There are no lines"),
        (
            RIGHT + b"\n" + b'{"y_true": 1,\n "y_pred": 1}',
            "Line 3 of the JSON lines is not valid JSON",
        ),
        (RIGHT * 2 + b"[1, 1]\n", "Line 3 of the JSON lines is an array, not an object"),
        (RIGHT + b'{"y_true": 1} {"y_true": 1}\n', "Line 2 of the JSON lines is not valid JSON"),
        (RIGHT + b'{"y_true": "a", "y_pred": 1}\n', "Line 2: this is a string; write the same"),
        (b'{"y_true": [1], "y_pred": [1]}\n', "Line 1: this is an array; write the same type"),
        (b'{"y_true": 1, "y_pred": 0.5}\n', "A number as a label must be an integer"),
        (b'{"y_true": 1e30, "y_pred": 1}\n', "must be an integer from -(2^53-1)"),
        (b'{"y_true": 123456789012345678901, "y_pred": 1}\n', "must be an integer from -(2^53-1)"),
        (
            b'{"y_true": 1, "y_pred": 1, "sample_weight": "2"}\n',
            "Line 1: this is a string; write a number",
        ),
        (b'{"y_true": null, "y_pred": 1}\n', "The item has no label"),
        (b'{"item_id": 1.5, "y_true": 1, "y_pred": 1}\n', "An id is a string or an integer"),
        (b'{"label": 1, "prediction": 1}\n', "as in `y_true=label,y_pred=prediction`"),
        (
            b'{"y_true": 1, "y_pred": 1, "weight": 1, "sample_weigth": 2}\n',
            "Did you mean `sample_weight`",
        ),
        (b"\xff\xfe", "Line 1 of the JSON lines is not valid JSON"),
    ],
)
def test_a_mistake_has_its_line(client: httpx.Client, body: bytes, said: str) -> None:
    answer = send(client, body)
    assert answer.status_code in {400, 422}
    assert said in answer.text


def test_a_column_that_begins_late_is_refused(client: httpx.Client) -> None:
    body = RIGHT * 100_000 + b'{"y_true": 1, "y_pred": 1, "sample_weight": 3}\n'
    answer = send(client, body)
    assert "Line 100001 has a column that the first lines lack" in answer.text


def test_a_json_door_names_the_type(client: httpx.Client, rprime: Run, tmp_path: Path) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.post("/evaluate", content=RIGHT * 2, headers=headers)
    assert "send them as `application/x-ndjson`" in answer.json()["detail"]
    (tmp_path / "a.json").write_bytes(RIGHT * 2)
    assert "call the file .jsonl" in rprime("evaluate", str(tmp_path / "a.json")).stderr


def test_a_line_that_is_too_long_is_no_line_of_a_csv(client: httpx.Client) -> None:
    answer = send(client, b'{"y_true": "' + b"a" * (3 << 20))
    assert answer.status_code == 400
    assert answer.json()["detail"] == "A line of the body is longer than 1048576 bytes."
