"""Lists and reports of the history with the indices that are wanted."""

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import httpx
import pytest

from rprime.client.clients import Client
from rprime.core.selection import SUMMARY
from tests.history_service import LABELS, TRUE, Json, ServeApp, keep, keeping, labels, matrix

PATH = "/v1/projects/pets/evaluations"


@pytest.fixture
def client(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


def test_a_list_has_the_values_of_the_reports(client: httpx.Client) -> None:
    other: Json = {"confusion_matrix": [[80, 10], [5, 90]], "labels": ["eel", "fox"]}
    reports = [
        keep(client, content)
        for content in (
            matrix(3, indices=None),
            matrix(**other, indices=None),
            matrix(5, indices=None, population={"prevalence": "uniform"}),
            labels(1, indices=None),
        )
    ]
    items = client.get(PATH).json()["items"]
    assert [item["id"] for item in items] == [report["id"] for report in reversed(reports)]
    for item, report in zip(items, reversed(reports), strict=True):
        assert tuple(item["values"]) == tuple(key for key in SUMMARY if key in report["overall"])
        for key, listed in item["values"].items():
            shown = report["overall"][key]
            assert listed["value"] == pytest.approx(shown["value"], abs=1e-12)
            assert listed["interval"] == pytest.approx(shown["interval"], abs=1e-12)
    assert "population" in items[1]["values"]["accuracy"]


def test_a_list_has_the_summary_of_each_evaluation(client: httpx.Client) -> None:
    without = labels(1, indices=None)
    without["y_pred"] = [None, *without["y_pred"][1:]]
    scores = [[0.6, 0.3, 0.1] if name == "cat" else [0.3, 0.4, 0.3] for name in TRUE]
    reports = [
        keep(client, content)
        for content in (
            matrix(3, indices=None),
            without,
            {"y_true": TRUE, "y_score": scores, "labels": LABELS, "project": "pets"},
        )
    ]
    items = client.get(PATH).json()["items"]
    assert "coverage" in items[1]["values"]
    assert "log_loss" in items[0]["values"]
    for item, report in zip(items, reversed(reports), strict=True):
        listed = {key: (value["value"], value["interval"]) for key, value in item["values"].items()}
        assert listed == {
            key: (pytest.approx(value["value"]), pytest.approx(value["interval"]))
            for key, value in report["overall"].items()
        }


def test_a_list_has_the_indices_that_are_named(client: httpx.Client) -> None:
    site = ["x" if i % 3 else "y" for i in range(len(TRUE))]
    keep(client, labels(1, slices={"site": site}, indices=None))
    [item] = client.get(PATH, params={"index": ["mcc", "cohen_kappa_score"]}).json()["items"]
    assert list(item["values"]) == ["mcc", "kappa"]
    [sliced] = client.get(PATH, params={"slice": "site=x"}).json()["items"]
    whole = client.get(f"/v1/evaluations/{item['id']}", params={"slice": "site=x"}).json()
    assert sliced["values"]["accuracy"]["value"] == whole["overall"]["accuracy"]["value"]
    for key, text in (
        ("recall", "macro average"),
        ("recall", "a list"),
        ("expected_cost", "option"),
    ):
        refused = client.get(PATH, params={"index": key})
        assert (refused.status_code, text in refused.json()["errors"][0]["detail"]) == (422, True)
    with Client(str(client.base_url)) as python:
        [listed] = python.evaluations("pets", index="mcc").items
        assert listed.values["mcc"].value == item["values"]["mcc"]["value"]


def test_a_report_has_the_indices_that_are_named(client: httpx.Client) -> None:
    identifier = keep(client, matrix(3))["id"]
    path = f"/v1/evaluations/{identifier}"
    report = client.get(path, params={"index": ["mcc", "f1"]}).json()
    assert list(report["overall"]) == ["mcc"]
    assert "f1" in str(report["per_class"]["cat"])
    assert "recall" not in str(report["per_class"]["cat"])
    whole = client.get(path, params={"family": "all"})
    assert len(whole.json()["overall"]) > 100
    assert whole.headers["ETag"] != client.get(path).headers["ETag"]
    text = client.get(f"{path}/report.csv", params={"index": "jaccard"}).text
    assert "jaccard" in text
    refused = client.get(path, params={"index": "expected_cost"})
    assert refused.status_code == 422
    assert "`cost`" in refused.json()["errors"][0]["detail"]
    with Client(str(client.base_url)) as python:
        assert list(python.evaluation(identifier, index="mcc").overall) == ["mcc"]


def test_a_trend_and_a_leaderboard_are_about_r_prime(client: httpx.Client) -> None:
    keep(client, matrix(3))
    for name in ("trend", "leaderboard"):
        assert client.get(f"/v1/projects/pets/{name}").json()["index"] == "r_prime"


def test_a_hundred_evaluations_are_computed_as_one_stack(client: httpx.Client) -> None:
    requests = [matrix(errors % 40, version=str(errors)) for errors in range(100)]
    client.post("/v1/evaluate/batch", json={"requests": requests}).raise_for_status()
    times = []
    for _ in range(5):
        begun = perf_counter()
        page = client.get(PATH, params={"limit": 100}).json()
        times.append(perf_counter() - begun)
        assert len(page["items"]) == 100
    # One by one they take some hundred milliseconds.
    assert min(times) < 0.15, times
