"""Items without a true label: refused, or the spurious predictions of a table."""

from pathlib import Path
from typing import Any

import httpx
import pytest

import rprime
from tests.command import Run
from tests.history_service import Json
from tests.http.column_bodies import WRITERS, send

TRUE = ["cat", "cat", "dog", None, None, "dog", None]
PREDICTED = ["cat", "dog", "dog", "cat", "cat", None, "dog"]
OPTION = {"missing_true": "spurious"}
TABLE: Json = {
    "labels": ["cat", "dog"],
    "confusion_matrix": [[1, 1], [0, 1]],
    "unclassified": [0, 1],
    "spurious": [2, 1],
}


def numbers(report: Json) -> Json:
    return {name: report[name] for name in ("counts", "overall", "per_class", "labels")}


@pytest.mark.parametrize("kind", ["json", *WRITERS])
def test_labels_give_the_report_of_their_table(client: httpx.Client, kind: str) -> None:
    expected = numbers(client.post("/evaluate", json=TABLE).json())
    columns: dict[str, list[Any]] = {"y_true": TRUE, "y_pred": PREDICTED}
    if kind == "json":
        response = client.post("/evaluate", json=columns | OPTION)
    elif kind == "npz":  # whose arrays of strings have no null
        codes = {None: -1, "cat": 0, "dog": 1}
        columns = {name: [codes[label] for label in part] for name, part in columns.items()}
        request = OPTION | {"codes": True, "labels": ["cat", "dog"]}
        response = send(client, kind, WRITERS[kind](columns), request)
    else:
        response = send(client, kind, WRITERS[kind](columns), OPTION)
    assert response.status_code == 200, response.text
    assert numbers(response.json()) == expected


@pytest.mark.parametrize(
    ("true", "predicted", "labels"),
    [
        ([1, None, 10], [1, 2, 10], ["1", "2", "10"]),
        ([True, None], [True, False], ["False", "True"]),
        ([None, None], ["b", "a"], ["a", "b"]),
    ],
)
def test_every_kind_of_label_may_be_missing(
    true: list[object], predicted: list[object], labels: list[str]
) -> None:
    report = rprime.evaluate(true, predicted, missing_true="spurious")
    assert report.labels == labels
    assert report.counts.spurious == true.count(None)


@pytest.mark.parametrize("kind", ["json", "csv", "arrow"])
def test_without_the_option_the_refusal_names_place_and_option(
    client: httpx.Client, kind: str
) -> None:
    columns = {"y_true": TRUE, "y_pred": PREDICTED}
    for option in ({}, {"missing_true": "refuse"}):
        if kind == "json":
            response = client.post("/evaluate", json=columns | option)
        else:
            response = send(client, kind, WRITERS[kind](columns), option)
        assert response.status_code == 422
        error = response.json()["errors"][0]
        assert error["pointer"] == "/y_true/3"
        assert '`"missing_true": "spurious"`' in error["detail"]


def test_a_baseline_of_the_same_items_is_compared_as_a_table(client: httpx.Client) -> None:
    others = ["cat", "cat", "dog", None, "dog", "dog", "dog"]
    wrong = client.post(
        "/evaluate",
        json={"y_true": TRUE, "y_pred": PREDICTED, "baseline": {"y_pred": others}} | OPTION,
    )
    # The baseline says nothing about an item that is not there: it is no item of the test set.
    assert [error["pointer"] for error in wrong.json()["errors"]] == ["/baseline/y_pred/3"]
    others[3] = "cat"
    for baseline in ({"y_pred": others}, {"y_true": TRUE, "y_pred": others}):
        body = {"y_true": TRUE, "y_pred": PREDICTED, "baseline": baseline} | OPTION
        comparison = client.post("/evaluate", json=body).json()["comparison"]
        assert (comparison["comparability"], comparison["pairing"]) == ("same_test_set", "unpaired")


def test_what_belongs_to_single_items_is_refused(client: httpx.Client) -> None:
    items: dict[str, object] = {
        "item_id": list(range(7)), "groups": list("aabbccd"), "sample_weight": [1] * 7,
        "slices": {"region": list("uuvvuuv")}, "y_score": [[0.5, 0.5]] * 7,
    }  # fmt: skip
    for name, values in items.items():
        body = {"y_true": TRUE, "y_pred": PREDICTED, name: values} | OPTION
        response = client.post("/evaluate", json=body)
        assert response.status_code == 422, name
        assert [(e["pointer"], e["code"]) for e in response.json()["errors"]] == [
            (f"/{name}", "not_with_spurious")
        ]


@pytest.mark.parametrize(("labels", "place"), [(["cat", None], 1), ([None], 0), ([7, None], 1)])
@pytest.mark.parametrize("kind", ["json", "csv"])
def test_an_item_needs_a_label_or_a_prediction(
    client: httpx.Client, kind: str, labels: list[object], place: int
) -> None:
    columns = {"y_true": labels, "y_pred": labels}
    if kind == "json":
        response = client.post("/evaluate", json=columns | OPTION)
    else:
        response = send(client, kind, WRITERS[kind](columns), OPTION)
    assert response.status_code == 422, response.text
    errors = response.json()["errors"]
    expected = [(f"/y_pred/{place}", "no_label")]
    assert [(error["pointer"], error["code"]) for error in errors] == expected


def test_an_undeclared_true_label_stays_refused(client: httpx.Client) -> None:
    body = {"y_true": ["eel", None], "y_pred": ["cat", "cat"], "labels": ["cat", "dog"]} | OPTION
    errors = client.post("/evaluate", json=body).json()["errors"]
    assert [error["code"] for error in errors] == ["undeclared_label"]


def test_the_command_evaluates_and_sends_a_file_with_empty_labels(
    rprime: Run, server: str, tmp_path: Path
) -> None:
    file, request = tmp_path / "items.csv", tmp_path / "request.yaml"
    file.write_bytes(WRITERS["csv"]({"y_true": TRUE, "y_pred": PREDICTED}))
    request.write_text("missing_true: spurious\n")
    arguments = ("evaluate", str(file), "--request", str(request), "--json")
    here, there = rprime(*arguments), rprime(*arguments, "--server", server)
    assert '"spurious":3' in here.stdout
    assert here.stdout == there.stdout, there.stderr
    assert "too many items" not in there.stderr
