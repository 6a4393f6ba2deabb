"""Slices in requests: of items in every format, of tables, and what does not fit."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from jsonschema import Draft202012Validator

from rprime.schemas.published import components
from tests.history_service import ServeApp, keep, keeping
from tests.http.column_bodies import MEDIA_TYPES, WRITERS, posted, report, send

Json = dict[str, Any]

DRAW = np.random.default_rng(5)
TRUE = DRAW.integers(3, size=600)
PREDICTED = np.where(DRAW.random(600) < 0.8, TRUE, DRAW.integers(3, size=600))
REGION = np.array(["EU", "US", "Asia"])[DRAW.integers(3, size=600)]
DEVICE = DRAW.integers(2, size=600)
ITEMS = {"y_true": ["a", "a", "b", "b"], "y_pred": ["a", "b", "b", "b"]}
MATRIX = {"confusion_matrix": [[40, 10], [5, 45]], "labels": ["a", "b"]}
SLICE: Json = {"slice": {"a": "x"}, "confusion_matrix": MATRIX["confusion_matrix"]}
TABLE: Json = {"confusion_matrix": [[1, 0], [0, 1]]}
CROSSED = {"slice_crossings": [["region", "device"]]}


def members(**more: object) -> Json:
    slices = {"region": REGION.tolist(), "device": DEVICE}
    return {"y_true": TRUE, "y_pred": PREDICTED, "slices": slices, **CROSSED, **more}


def found(client: httpx.Client, **content: object) -> Json:
    answer: Json = json.loads(posted(client, **content))
    return answer


def test_each_slice_has_the_report_of_its_items(client: httpx.Client) -> None:
    indices = ["accuracy", "kappa", "f1"]
    whole = found(client, **members(indices=indices))
    assert len(whole["slices"]) == 3 + 2 + 6
    for part in whole["slices"]:
        inside = np.ones(600, bool)
        for name, value in part["slice"].items():
            inside &= (REGION if name == "region" else DEVICE.astype(str)) == value
        alone = found(client, y_true=TRUE[inside], y_pred=PREDICTED[inside], indices=indices)
        assert part["items"] == inside.sum()
        assert part["overall"] == alone["overall"]
        assert part["per_class"] == alone["per_class"]
        rest = found(client, y_true=TRUE[~inside], y_pred=PREDICTED[~inside], indices=indices)
        for key, difference in part["difference_to_rest"].items():
            here, there = alone["overall"][key]["value"], rest["overall"][key]["value"]
            assert difference["value"] == pytest.approx(here - there)
            low, high = difference["interval"]
            assert low < difference["value"] < high
    assert sorted(whole["weakest"]) == list(range(11))
    assert whole["weakest_by"] == "accuracy"
    shrunken = [whole["slices"][i]["shrunken"] for i in whole["weakest"]]
    assert shrunken == pytest.approx(sorted(shrunken))


@pytest.mark.parametrize("more", [{}, {"classes": {"limit": 2, "order_by": "recall"}}])
def test_hundreds_of_slices_have_each_the_report_of_its_table(
    client: httpx.Client, more: Json
) -> None:
    tables = np.random.default_rng(1).integers(0, 4, (130, 3, 3))
    tables[:, 0, 0] += 1
    by_name = {f"s{i}": {"confusion_matrix": table} for i, table in enumerate(tables)}
    options = {"labels": ["a%", "b", "c"], "indices": ["kappa", "macro_recall", "recall"], **more}
    slices = {"part": by_name}
    whole = found(client, confusion_matrix=tables.sum(0), slices=slices, **options)
    for i in (0, 1, 63, 127, 128, 129):
        alone = found(client, confusion_matrix=tables[i], **options)
        part = whole["slices"][i]
        assert part["slice"] == {"part": f"s{i}"}
        assert (part["overall"], part["per_class"]) == (alone["overall"], alone["per_class"])


def test_indices_of_classes_alone_order_no_slices(client: httpx.Client) -> None:
    whole = found(client, **members(indices=["precision"]))
    everything = found(client, **members())
    assert [entry["overall"] for entry in whole["slices"]] == [{}] * 11
    assert (whole["weakest"], whole["weakest_by"]) == ([], None)
    for part, other in zip(whole["slices"], everything["slices"], strict=True):
        for label, values in part["per_class"].items():
            expected = other["per_class"][label]["indices"]["precision"]
            assert values["indices"] == {"precision": expected}


@pytest.mark.parametrize("kind", MEDIA_TYPES)
def test_columns_give_the_report_of_json(client: httpx.Client, kind: str) -> None:
    columns = {"y_true": TRUE, "y_pred": PREDICTED, "slice:region": REGION, "slice:device": DEVICE}
    assert report(client, kind, columns, CROSSED) == posted(client, **members())


@pytest.mark.parametrize("kind", ["csv", "arrow", "parquet"])
def test_items_without_a_value_are_in_no_slice(client: httpx.Client, kind: str) -> None:
    values = [None if i % 5 == 0 else region for i, region in enumerate(REGION.tolist())]
    columns = {"y_true": TRUE, "y_pred": PREDICTED, "slice:region": values}
    content = report(client, kind, columns)
    assert content == posted(
        client, y_true=TRUE.tolist(), y_pred=PREDICTED.tolist(), slices={"region": values}
    )
    assert sum(part["items"] for part in json.loads(content)["slices"]) == 480


def test_ids_sort_the_slices_too(client: httpx.Client) -> None:
    columns = {"y_true": TRUE, "y_pred": PREDICTED, "slice:region": REGION}
    order = DRAW.permutation(600)
    ids = {"item_id": np.array([f"{i:04}" for i in range(600)])}
    plain, shuffled = (
        json.loads(report(client, "npz", {k: v[turn] for k, v in (columns | ids).items()}))
        for turn in (np.arange(600), order)
    )
    by_name = {part["slice"]["region"]: part["overall"] for part in shuffled["slices"]}
    assert by_name == {part["slice"]["region"]: part["overall"] for part in plain["slices"]}


def test_tables_of_slices_give_the_report_of_their_items(client: httpx.Client) -> None:
    def table(inside: Any) -> list[list[int]]:
        counts = np.zeros((3, 3), int)
        np.add.at(counts, (TRUE[inside], PREDICTED[inside]), 1)
        return counts.tolist()

    of_items = found(client, y_true=TRUE, y_pred=PREDICTED, slices={"region": REGION.tolist()})
    names = ["Asia", "EU", "US"]
    parts: list[Json] = [
        {"slice": {"region": n}, "confusion_matrix": table(n == REGION)} for n in names
    ]
    last: Any = parts[-1].pop("confusion_matrix")
    parts[-1]["cells"] = [[i, j, last[i][j]] for i in range(3) for j in range(3)]
    matrix = {"confusion_matrix": table(np.ones(600, bool)), "labels": ["0", "1", "2"]}
    by_value = {part["slice"]["region"]: {**part} for part in parts}
    for part in by_value.values():
        del part["slice"]
    for slices in (parts, {"region": by_value}):
        of_tables = found(client, **matrix, slices=slices)
        assert of_tables["slices"] == of_items["slices"]
        assert of_tables["weakest"] == of_items["weakest"]


def test_matrices_are_read_together_as_one_by_one(client: httpx.Client) -> None:
    whole = {"confusion_matrix": [[50, 9], [2, 40]], "unclassified": [9, 9]}
    for axis in ("rows_are_true", "rows_are_predicted"):
        by_value: Json = {
            "x": {"confusion_matrix": [[20, 3], [1, 17]], "unclassified": [2, 0]},
            "y": {"confusion_matrix": [[9, 1.5], [0, 8]]},
        }
        together = found(client, **whole, axis=axis, slices={"part": by_value})
        matrix = by_value["y"].pop("confusion_matrix")  # as cells, which are read one by one
        by_value["y"]["cells"] = [[i, j, matrix[i][j]] for i in range(2) for j in range(2)]
        assert (
            together["slices"]
            == found(client, **whole, axis=axis, slices={"part": by_value})["slices"]
        )
        assert [part["items"] for part in together["slices"]] == [43, 18.5]


def test_the_report_is_that_of_the_contract(client: httpx.Client) -> None:
    parts = components()
    schema = {"$ref": "#/components/schemas/Report", "components": {"schemas": parts}}
    Draft202012Validator(schema).validate(found(client, **members()))


def test_a_comparison_says_which_slices_got_worse(client: httpx.Client) -> None:
    bad = np.where((REGION == "US") & (DRAW.random(600) < 0.5), (TRUE + 1) % 3, PREDICTED)
    body = members(y_pred=bad, baseline={"y_pred": PREDICTED}, indices=["accuracy", "recall"])
    whole = found(client, **body)
    slices = whole["comparison"]["slices"]
    assert len(slices) == 11
    assert slices[0]["slice"]["region"] == "US"
    for part in slices:
        inside = np.ones(600, bool)
        for name, value in part["slice"].items():
            inside &= (REGION if name == "region" else DEVICE.astype(str)) == value
        report = found(
            client,
            y_true=TRUE[inside],
            y_pred=bad[inside],
            baseline={"y_pred": PREDICTED[inside]},
            indices=["accuracy"],
        )
        alone = report["comparison"]["overall"]["accuracy"]
        delta = part["overall"]["accuracy"]
        assert part["items"] == inside.sum()
        assert delta["interval"] == pytest.approx(alone["interval"])
        assert (delta["baseline"], delta["value"]) == (alone["baseline"], alone["value"])
        assert delta["candidate"] == report["overall"]["accuracy"]["value"]
        pairs = ((delta, whole), (alone, report))
        methods = [d.get("method", r["comparison"]["method"]) for d, r in pairs]
        assert methods[0] == methods[1]
        assert (delta["p_adjusted"] < 0.05) == (part["slice"].get("region", "US") == "US")
    schema = {"$ref": "#/components/schemas/Report", "components": {"schemas": components()}}
    Draft202012Validator(schema).validate(whole)
    content = json.dumps(body, default=np.ndarray.tolist)
    for form in ("text/markdown", "text/html"):
        answer = client.post(
            "/evaluate",
            content=content,
            headers={"Accept": form, "Content-Type": "application/json"},
        ).text
        assert "Slices that got worse" in answer
        assert "5 of 11 slices got worse" in answer


@pytest.mark.parametrize("form", ["text/markdown", "text/html"])
def test_renderings_say_that_no_slice_got_worse(client: httpx.Client, form: str) -> None:
    body = members(baseline={"y_pred": PREDICTED}, indices=["accuracy"])
    headers = {"Accept": form, "Content-Type": "application/json"}
    content = json.dumps(body, default=np.ndarray.tolist)
    answer = client.post("/evaluate", content=content, headers=headers)
    assert answer.status_code == 200
    assert "None of 11 slices got worse" in answer.text
    after = answer.text.partition("None of 11 slices got worse")[2]
    assert "Was" not in after


@pytest.mark.parametrize("form", ["text/markdown", "text/html"])
def test_renderings_name_the_slice_of_a_result(client: httpx.Client, form: str) -> None:
    bad = np.where(REGION == "US", (TRUE + 1) % 3, PREDICTED)
    rules = [{"index": "accuracy", "min_value": 0.5, "slices": "region"}]
    body = members(y_pred=bad, gates={"rules": rules})
    headers = {"Accept": form, "Content-Type": "application/json"}
    content = json.dumps(body, default=np.ndarray.tolist)
    answer = client.post("/evaluate", content=content, headers=headers)
    rows = answer.text.replace("<wbr>", "").splitlines()
    rows = [row for row in rows if "accuracy.min_value.region" in row]
    assert any("region=US" in row for row in rows)
    assert not any(">overall<" in row or "| overall |" in row for row in rows)


@pytest.mark.parametrize("form", ["text/markdown", "text/html"])
def test_renderings_name_the_weakest_slices_first(client: httpx.Client, form: str) -> None:
    bad = np.where((REGION == "US") & (DRAW.random(600) < 0.5), (TRUE + 1) % 3, PREDICTED)
    body = {"y_true": TRUE.tolist(), "y_pred": bad.tolist(), "slices": {"region": REGION.tolist()}}
    text = client.post("/evaluate", json=body, headers={"Accept": form}).text
    assert "Weakest first, by Accuracy" in text
    after = text[text.index("Weakest first") :]
    assert after.index("US") < after.index("EU")


def test_baselines_and_gates_stand_beside_slices(client: httpx.Client) -> None:
    gates = {"rules": [{"index": "accuracy", "max_drop": 0.05}]}
    other = {"y_pred": TRUE.tolist()}
    whole = found(client, **members(baseline=other, gates=gates))
    assert whole["comparison"]["pairing"] == "paired"
    assert whole["slices"] == found(client, **members())["slices"]


def test_slices_are_not_compared_with_a_baseline_in_groups(client: httpx.Client) -> None:
    other = {
        "y_true": TRUE.tolist(),
        "y_pred": TRUE.tolist(),
        "groups": [i // 2 for i in range(600)],
    }
    whole = found(client, **members(baseline=other))
    assert "slices" not in whole["comparison"]
    assert "slices_not_compared" in {warning["code"] for warning in whole["warnings"]}


@pytest.mark.parametrize(
    ("content", "pointer", "code"),
    [
        ({**ITEMS, "slices": {"region": ["EU"]}}, "/slices/region", "wrong_length"),
        ({**ITEMS, "slices": {"region": "EU"}}, "/slices/region", "not_an_array"),
        ({**ITEMS, "slices": {"r": [None] * 4}}, "/slices/r", "empty"),
        ({**ITEMS, "slices": {"r": ["x", 1, 1, 1]}}, "/slices/r", "mixed_labels"),
        ({**ITEMS, "slices": {"r": [True, 1, 1, 1]}}, "/slices/r", "mixed_labels"),
        ({**ITEMS, "slices": {"r": [["x"], "x", "x", "x"]}}, "/slices/r", "mixed_labels"),
        ({**ITEMS, "slices": {"r": ["x", "", "x", "x"]}}, "/slices/r/1", "class_name"),
        ({**ITEMS, "slices": {"r": ["x", "x", "x", "x "]}}, "/slices/r/3", "twin_labels"),
        ({**ITEMS, "slices": {"": ["x"] * 4}}, "/slices/", "class_name"),
        ({**ITEMS, "slices": {}}, "/slices", "not_an_object"),
        ({**ITEMS, "slices": ["x"] * 4}, "/slices", "not_an_object"),
        ({**ITEMS, "slice_crossings": [["a", "b"]]}, "/slices", "required"),
        *(
            (
                {**ITEMS, "slices": {"a": ["x"] * 4}, "slice_crossings": [crossing]},
                "/slice_crossings/0",
                code,
            )
            for crossing, code in ((1, "list_type"), (None, "list_type"), ([], "too_short"))
        ),
        (
            {**ITEMS, "slices": {"a": ["x"] * 4}, "slice_crossings": [["a", "b"]]},
            "/slice_crossings/0",
            "unknown_slices",
        ),
        (
            {**ITEMS, "slices": {"a": ["x"] * 4}, "slice_crossings": [["a", "a"]]},
            "/slice_crossings/0",
            "duplicate_name",
        ),
        ({**ITEMS, "slices": {"a": ["x"] * 4}, "groups": ["g"] * 4}, "/slices", "not_with_slices"),
        (
            {**ITEMS, "slices": {"a": ["x"] * 4}, "sample_weight": [1, 2, 1, 1]},
            "/slices",
            "not_with_slices",
        ),
        (
            {**ITEMS, "slices": {"a": ["x"] * 4}, "population": {"prevalence": "uniform"}},
            "/population",
            "not_with_population",
        ),
        ({**MATRIX, "slices": {"a": ["x"]}}, "/slices/a", "not_an_object"),
        ({**MATRIX, "slices": {"a": {"x": [[1, 2], [3, 4]]}}}, "/slices/a/x", "not_an_object"),
        ({**MATRIX, "slices": {"a": {"x": SLICE}}}, "/slices/a/x", "not_an_object"),
        ({**MATRIX, "slices": {"a": {" ": {}}}}, "/slices/a", "class_name"),
        ({**MATRIX, "slices": {"a": {"x": {}}}}, "/slices/a/x", "no_evidence"),
        ({**MATRIX, "slices": []}, "/slices", "not_an_object"),
        ({**MATRIX, "slices": [[[1, 2], [3, 4]]]}, "/slices/0", "not_an_object"),
        ({**MATRIX, "slices": [{"slice": {"a": 1}, **MATRIX}]}, "/slices/0", "not_an_object"),
        ({**MATRIX, "slices": [{"slice": {}, **MATRIX}]}, "/slices/0", "not_an_object"),
        (
            {**MATRIX, "slices": [{"slice": dict.fromkeys("abcd", "x"), **MATRIX}]},
            "/slices/0/slice",
            "too_long",
        ),
        (
            {**MATRIX, "slices": [{"slice": {"a": " "}, **MATRIX}]},
            "/slices/0/slice/a",
            "class_name",
        ),
        ({**MATRIX, "slices": [SLICE, SLICE]}, "/slices/1/slice", "duplicate_name"),
        ({**MATRIX, "slices": [{**SLICE, "labels": ["0"]}]}, "/slices/0/labels", "unknown_field"),
        ({**MATRIX, "slices": [{**SLICE, "unclassified": None}]}, "/slices/0/unclassified", "null"),
        ({**MATRIX, "slices": [{**SLICE, "cells": None}]}, "/slices/0/cells", "null"),
        ({**MATRIX, "slices": [{"slice": {"a": "x"}}]}, "/slices/0", "no_evidence"),
        (
            {**MATRIX, "slices": [{**SLICE, "confusion_matrix": [[1]]}]},
            "/slices/0/labels",
            "wrong_length",
        ),
        (
            {**MATRIX, "slices": [{**SLICE, "confusion_matrix": [[41, 0], [0, 0]]}]},
            "/slices/0",
            "slices_exceed_table",
        ),
        ({**MATRIX, "spurious": [1, 0], "slices": [SLICE]}, "/slices", "not_with_slices"),
        (
            {**ITEMS, "slices": {"a": ["x"] * 4}, "slice_cuts": {"a": [1]}},
            "/slices/a",
            "not_a_number",
        ),
        ({**ITEMS, "slice_cuts": {"a": [1]}}, "/slices", "required"),
        *(
            ({**MATRIX, "slices": {"a": {"x": TABLE, "y": other}}}, f"/slices/a/y{place}", code)
            for other, place, code in (
                (
                    {"confusion_matrix": [[1, 0], [0, True]]},
                    "/confusion_matrix/1/1",
                    "not_a_number",
                ),
                ({"confusion_matrix": [[1, 0], [0, -1]]}, "/confusion_matrix/1/1", "out_of_range"),
                ({"confusion_matrix": [[1, 0], [0]]}, "/confusion_matrix/1", "wrong_length"),
                ({"confusion_matrix": {"a": 1, "b": 2}}, "/confusion_matrix", "not_an_array"),
                ({**TABLE, "unclassified": [0, "1"]}, "/unclassified/1", "not_a_number"),
                ({**TABLE, "unclassified": [0]}, "/unclassified", "wrong_length"),
            )
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    client: httpx.Client, content: Json, pointer: str, code: str
) -> None:
    response = client.post("/evaluate", json=content)
    assert response.status_code == 422, response.text
    (error,) = response.json()["errors"]
    assert (error["pointer"], error["code"]) == (pointer, code)


@pytest.mark.parametrize("cuts", [3, {"a": 1}, {"a": []}, {"a": [None]}, {"a": "x"}, {"a": True}])
def test_malformed_cuts_are_refused(client: httpx.Client, cuts: object) -> None:
    content = {**ITEMS, "slices": {"a": [1, 2, 3, 4]}, "slice_cuts": cuts}
    response = client.post("/evaluate", json=content)
    assert response.status_code == 422, response.text
    assert {e["pointer"][: len("/slice_cuts")] for e in response.json()["errors"]} == {
        "/slice_cuts"
    }


def test_numbers_are_cut_into_slices(client: httpx.Client) -> None:
    numbers = np.arange(600) % 7 + 0.5
    cut = found(
        client,
        y_true=TRUE,
        y_pred=PREDICTED,
        slices={"part": [None, *numbers[1:].tolist()]},
        slice_cuts={"part": [2, 4.5]},
    )
    names = np.array(["< 2", "[2, 4.5)", ">= 4.5"])[(numbers >= 2) + 0 + (numbers >= 4.5)]
    named = found(
        client, y_true=TRUE, y_pred=PREDICTED, slices={"part": [None, *names[1:].tolist()]}
    )
    assert [part["slice"]["part"] for part in cut["slices"]] == ["< 2", "[2, 4.5)", ">= 4.5"]
    by_name = [
        {part["slice"]["part"]: part["overall"] for part in x["slices"]} for x in (cut, named)
    ]
    assert by_name[0] == by_name[1]


def test_too_many_slices_are_refused(client: httpx.Client) -> None:
    numbers = np.arange(10_001)
    items = {"y_true": numbers % 2, "y_pred": numbers % 2}
    body = WRITERS["npz"](items | {"slice:id": numbers})
    answer = send(client, "npz", body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["code"] == "too_many_slices"
    crossed = items | {"slice:a": numbers % 200, "slice:b": numbers // 50}
    answer = send(client, "npz", WRITERS["npz"](crossed), {"slice_crossings": [["a", "b"]]})
    assert answer.status_code == 422
    assert "at most 10,000" in answer.json()["errors"][0]["detail"]


def many(slices: int) -> Json:
    numbers = np.arange(slices)
    return {"y_true": numbers % 2, "y_pred": numbers % 3 % 2, "slices": {"id": numbers}}


def test_thousands_of_slices_have_overall_values_alone(client: httpx.Client) -> None:
    slices = found(client, **many(6_000))["slices"]
    assert len(slices) == 6_000
    assert all(part["per_class"] is None for part in slices)
    assert all(part["overall"]["accuracy"]["value"] in {0.0, 1.0} for part in slices)
    first = found(client, **many(1_000))["slices"][0]
    assert [exclusion["class"] for exclusion in first["overall"]["macro_f1"]["excluded"]] == ["1"]
    assert first["per_class"]["0"]["support"] == 1


def test_a_gate_judges_a_limited_number_of_slices(client: httpx.Client) -> None:
    rules = [{"index": key, "min_value": 0.1, "slices": "all"} for key in ("accuracy", "kappa")]
    body = {"y_true": [0, 1] * 100, "y_pred": [0, 1] * 100, "slices": {"id": list(range(200))}}
    answer = client.post("/v1/evaluate", json={**body, "gates": {"rules": rules}})
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/gates/rules/1/slices", "too_many_slices")


def test_a_rule_about_slices_stands_beside_one_about_all_items(client: httpx.Client) -> None:
    rules = [
        {"index": "accuracy", "max_drop": 0.3},
        {"index": "accuracy", "max_drop": 0.4, "slices": "region"},
        {"index": "accuracy", "max_drop": 0.4, "slices": ["device"]},
    ]
    gate = found(
        client, **members(), baseline={"y_true": TRUE, "y_pred": TRUE}, gates={"rules": rules}
    )["gate"]
    names = dict.fromkeys(result["rule"] for result in gate["results"])
    expected = ["accuracy.max_drop" + end for end in ("", ".region", ".device")]
    assert list(names) == expected


def test_a_gap_is_between_the_slices_of_one_column(client: httpx.Client) -> None:
    def asked(index: str, slices: object) -> httpx.Response:
        rules = [{"index": index, "max_gap": 0.3, "slices": slices}]
        body = members() | {"gates": {"rules": rules}}
        content = json.dumps(body, default=np.ndarray.tolist)
        return client.post(
            "/evaluate", content=content, headers={"Content-Type": "application/json"}
        )

    (single,), (listed,) = (
        asked("accuracy", slices).json()["gate"]["results"] for slices in ("region", ["region"])
    )
    assert single == listed
    for slices in ([], ["region", "device"], "all"):
        (error,) = asked("accuracy", slices).json()["errors"]
        assert (error["pointer"], "name" in error["detail"]) == ("/gates/rules/0/slices", True)
    (lacking,) = asked("log_loss", "region").json()["gate"]["results"]
    assert (lacking["verdict"], lacking["reason"]) == ("undefined", "no_scores")


@pytest.mark.parametrize("path", ["lint", "plan"])
def test_rules_about_slices_are_not_simulated(client: httpx.Client, path: str) -> None:
    rules = [{"index": "accuracy", "max_drop": 0.1, "slices": "all"}]
    answer = client.post(f"/v1/gates/{path}", json={**MATRIX, "gates": {"rules": rules}})
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/gates/rules/0/slices", "not_for_lint")


def test_the_requests_of_a_batch_share_the_limit_of_slices(client: httpx.Client) -> None:
    sliced = {"y_true": [0, 1] * 100, "y_pred": [0, 1] * 100, "slices": {"id": list(range(200))}}
    for requests, expected in (
        ([ITEMS, sliced, sliced], [200, 422, 422]),
        ([ITEMS, sliced], [200, 200]),
    ):
        answer = client.post("/v1/evaluate/batch", json={"requests": requests})
        results = answer.json()["results"]
        assert [result["status"] for result in results] == expected
        refused = [result["problem"] for result in results if result["status"] == 422]
        assert {problem["errors"][0]["code"] for problem in refused} <= {"too_many_slices"}


@pytest.fixture
def store(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


def test_a_project_may_forbid_slices(store: httpx.Client) -> None:
    settings = {"keeps_slices": False}
    assert store.put("/v1/projects/pets", json=settings).status_code == 204
    request = {**ITEMS, "project": "pets", "slices": {"r": ["x", "y", "x", "y"]}, "baseline": ITEMS}
    first = keep(store, request)
    assert len(first["slices"]) == len(first["comparison"]["slices"]) == 2
    later = store.get(f"/v1/evaluations/{first['id']}").json()
    assert "slices" not in later
    assert "slices" not in later["comparison"]
    for shown in (first, later):
        assert "slices_not_kept" in {warning["code"] for warning in shown["warnings"]}
    [project] = store.get("/v1/projects").json()["items"]
    assert (project["keeps_slices"], project["badge_public"]) == (False, False)
    assert store.put("/v1/projects/pets", json={}).status_code == 204
    assert store.put("/v1/projects/pets", json={"badge_public": True}).status_code == 204
    assert store.get("/v1/projects").json()["items"] == [project | {"badge_public": True}]


def test_slices_of_more_than_the_bound_are_not_kept(store: httpx.Client) -> None:
    labels = list(map(str, range(300)))
    for number, kept in ((5, True), (6, False)):
        # One count of four bytes: each table takes 360 000.
        counts = [70_000, *[1] * (number - 1)]
        tables = [{"slice": {"r": str(i)}, "cells": [[0, 1, n]]} for i, n in enumerate(counts)]
        whole = {"labels": labels, "cells": [[0, 1, sum(counts)]], "intervals": False}
        request = {**whole, "project": "pets", "indices": ["accuracy"], "slices": tables}
        report = keep(store, request)
        codes = {warning["code"] for warning in report["warnings"]}
        assert ("slices_not_kept" in codes) != kept
        later = store.get(f"/v1/evaluations/{report['id']}").json()
        assert len(later.get("slices", ())) == (number if kept else 0)


def test_the_examples_of_the_page_print_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "slices.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:python|text)\n(.*?)```", page, re.DOTALL)
    names: Json = {}
    for code, printed in zip(blocks[::2], blocks[1::2], strict=True):
        exec(code, names)  # noqa: S102 - of our own page
        assert capsys.readouterr().out == printed
