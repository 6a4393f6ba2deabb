"""The form of the answer: what it has by default, in which order, and how large it is."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import orjson
import pytest

from rprime.client.report import Report

ROOT = Path(__file__).parents[2]
Json = dict[str, Any]
FIRST = [
    *("report_version", "gate", "counts", "overall", "per_class", "top_confusions"),
    *("comparison", "warnings"),
]


def example(name: str) -> Json:
    found: Json = json.loads((ROOT / "examples" / name).read_text("utf-8"))
    return found


def asked(client: httpx.Client, body: Json) -> httpx.Response:
    answer = client.post("/evaluate", json=body)
    assert answer.status_code == 200, answer.text
    return answer


def drawn(k: int, seed: int = 0) -> list[list[int]]:
    draw = np.random.default_rng(seed)
    table: list[list[int]] = (draw.integers(0, 3, (k, k)) + 50 * np.eye(k, dtype=int)).tolist()
    return table


def test_what_is_read_first_stands_first(client: httpx.Client) -> None:
    whole = asked(client, example("gate.json")).json()
    assert list(whole)[: len(FIRST)] == FIRST
    assert whole["report_version"] == 1
    plain = asked(client, example("mnist.json")).json()
    present = [name for name in FIRST if name in plain]
    assert list(plain)[: len(present)] == present
    assert not {"gate", "comparison"} & plain.keys()


def test_the_page_of_the_api_names_every_member(client: httpx.Client) -> None:
    page = (ROOT / "docs" / "http-api.md").read_text("utf-8")
    table = page.partition("member by member")[2].partition("\n\nAverages")[0]
    named = {
        name
        for row in table.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    slices = {"y_true": ["a", "b"] * 9, "y_pred": ["a", "b"] * 9, "slices": {"x": ["u", "v"] * 9}}
    bodies = [example("gate.json"), example("mnist.json"), {**slices, "classes": {"limit": 1}}]
    answers = [asked(client, body).json() for body in bodies]
    members = {name for answer in answers for name in answer}
    assert members <= named
    stored_or_asked = {
        "changed_items",
        "population",
        "project",
        "model",
        "version",
        "id",
        "created_at",
        "links",
    }
    assert named - members == stored_or_asked | {"table", "curves", "rejection", "thresholds"}
    values = next(iter(answers[0]["per_class"].values()))
    (row,) = (row for row in table.splitlines() if row.startswith("| `per_class`"))
    assert list(values) == re.findall(r"`(\w+)`", row)[1:]


def test_the_default_answer_is_small(client: httpx.Client) -> None:
    mnist = example("mnist.json")
    mnist.pop("indices")
    assert len(asked(client, mnist).content) <= 12_000
    assert len(asked(client, example("gate.json")).content) <= 25_000
    for k, most in ((100, 90_000), (250, 220_000)):
        assert len(asked(client, {"confusion_matrix": drawn(k)}).content) <= most


def test_a_hundred_thin_classes_have_few_warnings(client: httpx.Client) -> None:
    report = asked(client, {"confusion_matrix": (3 * np.eye(100, dtype=int)).tolist()}).json()
    assert 0 < len(report["warnings"]) <= 10
    few = next(one for one in report["warnings"] if one["code"] == "few_items")
    assert (len(few["classes"]), few["more"]) == (20, 80)
    assert list(few) == ["code", "detail", "pointer", "classes", "more", "docs"]


def test_a_comparison_has_the_indices_and_the_classes_of_the_report(client: httpx.Client) -> None:
    body = {"confusion_matrix": drawn(12), "baseline": {"confusion_matrix": drawn(12, 1)}}
    rules = [{"index": "specificity", "classes": "all", "min_value": 0.1}]
    more = {"gates": {"rules": rules}, "classes": {"limit": 3, "order_by": "f1"}}
    report = asked(client, {**body, **more}).json()
    comparison = report["comparison"]
    assert comparison["overall"].keys() == report["overall"].keys()
    assert list(comparison["per_class"]) == list(report["per_class"])
    assert comparison["classes"]["left_out"] == 9
    for label, values in report["per_class"].items():
        assert comparison["per_class"][label].keys() == values["indices"].keys()


def test_a_comparison_of_ten_thousand_classes_is_bounded(client: httpx.Client) -> None:
    k = 10_000
    draw = np.random.default_rng(0)
    true, *others = draw.integers(0, k, (3, 60_000))
    new, old = (np.where(draw.random(true.size) < 0.9, true, o).tolist() for o in others)
    body = {"y_true": true.tolist(), "y_pred": new, "baseline": {"y_pred": old}}
    answer = asked(client, body)
    report = answer.json()
    comparison, page = report["comparison"], report["classes"]
    assert len(answer.content) <= 1_500_000
    assert len(json.dumps(comparison)) <= 1_000_000
    assert comparison["per_class"].keys() == report["per_class"].keys()
    assert len(report["per_class"]) == page["limit"] == 1000
    assert page["left_out"] + page["limit"] == page["total"] == len(report["labels"])
    # A class that one side lacks, or that has no items there, is not compared.
    assert 8_900 < comparison["classes"]["left_out"] <= page["left_out"]
    sides = {"candidate": {"y_true": body["y_true"], "y_pred": new}, "baseline": body["baseline"]}
    alone = client.post("/v1/compare", json=sides)
    assert alone.status_code == 200, alone.text
    assert len(orjson.dumps(alone.json()["comparison"])) <= 1_000_000


def test_a_comparison_beside_a_report_says_nothing_twice(client: httpx.Client) -> None:
    body = example("gate.json")
    report = asked(client, body).json()
    comparison = report["comparison"]
    whole = client.post("/evaluate?include=cells", json=body).json()["comparison"]
    assert whole.keys() - comparison.keys() == {"cells", "attribution"}
    assert {name: whole[name] for name in comparison} == comparison
    sides = {"candidate": {"confusion_matrix": body["confusion_matrix"]}}
    alone = client.post("/v1/compare", json=sides | {"baseline": body["baseline"]}).json()
    assert alone["comparison"].keys() == whole.keys()
    pairs = [(comparison["overall"], report["overall"], alone["comparison"]["overall"])]
    for label, values in report["per_class"].items():
        of_class = (part["per_class"][label] for part in (comparison, alone["comparison"]))
        pairs.append((next(of_class), values["indices"], next(of_class)))
    for deltas, values, whole_deltas in pairs:
        for key, delta in deltas.items():
            assert delta | {"candidate": values[key]["value"]} == whole_deltas[key], key
    read = Report(orjson.dumps(report)).comparison
    assert read is not None
    recall = report["per_class"]["4"]["indices"]["recall"]["value"]
    assert read.per_class[4]["recall"].candidate == recall


def test_a_candidate_that_is_not_the_report_s_stands_in_the_difference(
    client: httpx.Client,
) -> None:
    body = {"y_true": ["a", "b"] * 20, "y_pred": ["a", "b"] * 18 + ["b", "b"] * 2}
    body |= {"item_id": [f"{i}" for i in range(40)]}
    old = {name: values[:30] for name, values in body.items()}
    report = asked(client, {**body, "baseline": old}).json()
    delta = report["comparison"]["overall"]["accuracy"]
    assert (report["overall"]["accuracy"]["value"], delta["candidate"]) == (0.95, 1.0)


def test_an_interval_is_absent_where_there_is_none_to_ask_for(client: httpx.Client) -> None:
    indices = ["accuracy", "share_of_errors", "recall", "mutual_information"]
    body: Json = {"confusion_matrix": [[5, 0], [0, 0]], "labels": ["a", "b"], "indices": indices}
    report = asked(client, body).json()
    values = report["per_class"]["b"]["indices"]
    assert values["recall"] == {"value": None, "interval": None, "reason": "no_true_samples"}
    assert values["share_of_errors"] == {"value": None, "reason": "no_errors"}
    # With `intervals: "all"` it would have one.
    assert report["overall"]["mutual_information"]["reason"] == "no_interval"
    bare = asked(client, {**body, "intervals": False}).json()
    assert bare["overall"]["accuracy"] == {"value": 1.0}


def test_a_result_has_no_slice_and_no_confusion_but_by_its_rule(client: httpx.Client) -> None:
    table = {"confusion_matrix": [[9, 1], [2, 8]], "labels": ["a", "b"]}
    rules: list[Json] = [
        {"index": "accuracy", "min_value": 0.5},
        {"confusion": ["a", "b"], "max_value": 0.5},
    ]
    plain, cell = asked(client, {**table, "gates": {"rules": rules}}).json()["gate"]["results"]
    assert not {"slice", "confusion"} & plain.keys()
    assert (cell["confusion"], "slice" in cell) == (["a", "b"], False)


@pytest.mark.parametrize("wants", [None, "all"])
def test_of_many_results_the_answer_has_those_that_decide(
    client: httpx.Client, wants: str | None
) -> None:
    table = drawn(150)
    table[7] = [1] * 150
    rules = [{"index": "recall", "classes": "all", "min_value": 0.1, "test": "none"}]
    gates = {"rules": rules, **({} if wants is None else {"results": wants})}
    gate = asked(client, {"confusion_matrix": table, "gates": gates}).json()["gate"]
    assert gate["verdict"] == "fail"
    if wants == "all":
        assert len(gate["results"]) == 150
        assert "other_results" not in gate
    else:
        assert [(one["class"], one["effect"]) for one in gate["results"]] == [("7", "fail")]
        assert gate["other_results"] == {"pass": 149}


def test_numbers_of_items_are_never_sums_of_weights(client: httpx.Client) -> None:
    items = {"y_true": ["a", "b", "a"], "y_pred": ["a", None, "b"]}
    plain = asked(client, items).json()["counts"]
    assert plain == {"items": 3, "classified": 2, "unclassified": 1, "spurious": 0}
    heavy = asked(client, {**items, "sample_weight": [2, 3, 0.5]}).json()["counts"]
    kish = heavy.pop("effective_items")
    assert kish < 3
    assert heavy == {
        "items": 3,
        "weight": 5.5,
        "classified_weight": 2.5,
        "unclassified_weight": 3.0,
        "spurious_weight": 0.0,
    }


def test_confusions_of_weighted_items_have_a_weight_in_place_of_items(client: httpx.Client) -> None:
    plain = {"y_true": ["a", "b", "a"], "y_pred": ["a", "b", "b"]}
    weighted = plain | {"sample_weight": [2, 3, 20.5]}
    for body, name, other, number in (
        (plain, "items", "Weight", 1),
        (weighted, "weight", "Items", 20.5),
    ):
        [confusion] = asked(client, body).json()["top_confusions"]
        assert list(confusion) == ["true", "predicted", name, "share_of_true"]
        assert confusion[name] == number
        for accept in ("text/markdown", "text/html"):
            text = client.post("/evaluate", json=body, headers={"Accept": accept}).text
            heads = [line for line in text.splitlines() if "Predicted as" in line]
            assert heads
            assert all(name.title() in line and other not in line for line in heads)


def test_options_are_told_by_other_names_than_they_are_sent(client: httpx.Client) -> None:
    body = {"confusion_matrix": [[8, 2], [1, 9]], "cost": [[0, 1], [5, 0]]}
    report = asked(client, {**body, "kappa_weights": "linear"}).json()
    assert report["options"]["has_cost"] is True
    assert report["options"]["has_cell_weights"] is False
    assert report["options"]["kappa_weighting"] == "linear"
    assert {"expected_cost", "weighted_kappa"} <= report["overall"].keys()


def test_a_removed_average_names_the_index_that_it_was_the_mean_of(client: httpx.Client) -> None:
    body = {"confusion_matrix": [[8, 2], [1, 9]], "indices": ["macro_prevalence"]}
    (error,) = client.post("/evaluate", json=body).json()["errors"]
    assert error["code"] == "unknown_index"
    assert "`prevalence`" in error["detail"]
