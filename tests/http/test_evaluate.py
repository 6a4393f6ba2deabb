"""POST /evaluate: one call, one report; a batch is computed as stacks."""

import gzip
import json
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from rprime.core.catalog import CLASS_INDICES, INDICES, OVERALL_INDICES
from rprime.core.index import Index

MNIST = [
    [966, 1, 0, 2, 0, 1, 4, 3, 3, 0],
    [0, 1125, 3, 1, 0, 0, 2, 1, 3, 0],
    [1, 0, 1016, 4, 0, 0, 1, 3, 7, 0],
    [1, 0, 5, 987, 0, 4, 0, 6, 4, 3],
    [1, 0, 3, 0, 945, 0, 2, 3, 2, 26],
    [2, 0, 0, 7, 1, 871, 4, 2, 3, 2],
    [4, 3, 2, 1, 1, 3, 940, 0, 4, 0],
    [2, 1, 4, 0, 0, 0, 0, 1011, 3, 7],
    [0, 1, 3, 5, 0, 4, 1, 2, 954, 4],
    [0, 3, 2, 2, 5, 0, 2, 2, 2, 991],
]
PRINTED = [0.986, 0.9913, 0.9839, 0.9773, 0.9653, 0.9774, 0.9814, 0.983, 0.9784, 0.9798]
PETS: dict[str, Any] = {
    "y_true": ["cat", "cat", "dog", "dog", "dog", "horse"],
    "y_pred": ["cat", "dog", "dog", "dog", None, "horse"],
}


def evaluate(client: httpx.Client, path: str = "/evaluate", **content: object) -> dict[str, Any]:
    response = client.post(path, json=content)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    report: dict[str, Any] = response.json()
    return report


def test_the_paper_is_reproduced(client: httpx.Client) -> None:
    report = evaluate(client, confusion_matrix=MNIST)
    assert report["overall"]["r_prime"]["value"] == pytest.approx(0.9806, abs=5e-5)
    assert report["overall"]["kappa"]["value"] == pytest.approx(0.9784, abs=5e-5)
    values = [report["per_class"][str(i)]["indices"]["r_prime"]["value"] for i in range(10)]
    assert values == pytest.approx(PRINTED, abs=5.1e-5)


def is_core(entry: Index) -> bool:
    """Whether the family `core` of a table without `beta` has an index."""
    beta = "f_beta" in {entry.key, *entry.of}
    return entry.family == "core" and not entry.scored and not beta


def test_a_family_has_every_index_of_its_own(client: httpx.Client) -> None:
    report = evaluate(client, confusion_matrix=MNIST, families=["core"])
    asked = {key for key, entry in OVERALL_INDICES.items() if is_core(entry) and not entry.needs}
    assert set(report["overall"]) == asked
    of_classes = {key for key, entry in CLASS_INDICES.items() if is_core(entry)}
    assert set(report["per_class"]["3"]["indices"]) == of_classes


def test_overall_indices_alone_have_no_values_of_classes(client: httpx.Client) -> None:
    report = evaluate(client, confusion_matrix=MNIST, indices=["accuracy"])
    assert list(report["per_class"]["3"]) == ["support", "predicted", "correct", "indices"]
    assert report["per_class"]["3"]["indices"] == {}


def test_both_paths_are_the_same(client: httpx.Client) -> None:
    assert evaluate(client, **PETS) == evaluate(client, "/v1/evaluate", **PETS)


def test_labels_and_their_matrix_have_the_same_values(client: httpx.Client) -> None:
    items = evaluate(client, **PETS)
    table = evaluate(
        client,
        confusion_matrix=[[1, 1, 0], [0, 2, 0], [0, 0, 1]],
        labels=["cat", "dog", "horse"],
        unclassified=[0, 1, 0],
    )
    assert items["input_digest"] != table["input_digest"]
    assert items | {"input_digest": ""} == table | {"input_digest": ""}
    assert items["counts"]["unclassified"] == 1


def test_the_table_comes_on_request(client: httpx.Client) -> None:
    assert "table" not in evaluate(client, **PETS)
    assert evaluate(client, "/evaluate?include=table", **PETS)["table"] == {
        "cells": [[0, 0, 1], [0, 1, 1], [1, 1, 2], [2, 2, 1]],
        "unclassified": [0, 1, 0],
    }


@pytest.mark.parametrize("query", ["include=tables", "include=", "includ=table", "x"])
def test_other_parameters_are_refused(client: httpx.Client, query: str) -> None:
    response = client.post(f"/evaluate?{query}", json=PETS)
    assert response.status_code == 422
    name = query.partition("=")[0]
    assert response.json()["errors"][0]["pointer"] == f"/query/{name}"


def test_options_reach_the_engine(client: httpx.Client) -> None:
    report = evaluate(
        client,
        confusion_matrix=[[8, 2], [3, 7]],
        indices=["f_beta", "expected_cost", "weighted_kappa", "accuracy"],
        beta=2,
        cost=[[0, 1], [5, 0]],
        kappa_weights="linear",
        intervals=False,
    )
    assert list(report["overall"]) == ["accuracy", "weighted_kappa", "expected_cost"]
    assert report["overall"]["accuracy"] == {"value": 0.75}
    assert report["overall"]["expected_cost"]["value"] == pytest.approx(17 / 20)
    assert report["per_class"]["0"]["indices"]["f_beta"]["value"] == pytest.approx(
        5 * 8 / (5 * 8 + 4 * 2 + 3)
    )


def test_undefined_values_are_null_with_a_reason(client: httpx.Client) -> None:
    report = evaluate(client, confusion_matrix=[[2, 0], [1, 0]])
    assert report["per_class"]["1"]["indices"]["precision"]["value"] is None
    assert report["per_class"]["1"]["indices"]["precision"]["reason"] == "no_predictions"
    replaced = evaluate(client, confusion_matrix=[[2, 0], [1, 0]], undefined="zero")
    assert replaced["overall"]["macro_precision"]["value"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("label", ["100%", "%b%s%", '"', "\\", "a,b", "},{", "null", "]],[["])
def test_no_name_of_a_class_disturbs_the_report(client: httpx.Client, label: str) -> None:
    report = evaluate(client, confusion_matrix=[[2, 1], [1, 0]], labels=["0", label])
    assert report["labels"] == ["0", label]
    assert set(report["per_class"]) == {"0", label}
    plain = evaluate(client, confusion_matrix=[[2, 1], [1, 0]])
    assert report["per_class"][label] == plain["per_class"]["1"]
    excluded = evaluate(client, confusion_matrix=[[2, 0], [1, 0]], labels=["0", label])
    assert excluded["overall"]["macro_precision"]["counted_as_zero"] == [label]
    keys = ["macro_precision", "f1_of_macro_averages"]
    absent = evaluate(client, confusion_matrix=[[2, 1], [0, 0]], labels=["0", label], indices=keys)
    for key in ("macro_precision", "f1_of_macro_averages"):
        left_out = absent["overall"][key]["excluded"]
        assert left_out == [{"class": label, "reason": "no_true_samples"}]


@pytest.mark.parametrize("matrix", [[[0]], [[5]], [[0, 0], [0, 0]], [[0, 3], [0, 0]]])
def test_degenerate_tables_have_a_report(client: httpx.Client, matrix: list[list[int]]) -> None:
    report = evaluate(client, confusion_matrix=matrix)
    for value in report["overall"].values():
        assert (value["value"] is None) <= ("reason" in value)


def test_a_compressed_body_is_read(client: httpx.Client) -> None:
    body = gzip.compress(json.dumps(PETS).encode())
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert client.post("/evaluate", content=body, headers=headers).status_code == 200


def test_a_large_body_is_evaluated(client: httpx.Client) -> None:
    labels = [i % 7 for i in range(200_000)]
    report = evaluate(client, y_true=labels, y_pred=labels)
    assert report["counts"]["items"] == 200_000
    assert report["overall"]["accuracy"]["value"] == 1


def test_many_classes_are_evaluated(client: httpx.Client) -> None:
    labels = [f"c{i}" for i in range(2000)]
    content: dict[str, Any] = {
        "labels": labels,
        "cells": [[i, i, 5] for i in range(2000)],
        "indices": ["recall"],
    }
    report = evaluate(client, **content)
    assert report["per_class"]["c1999"]["indices"]["recall"]["value"] == 1


def test_reports_are_what_the_document_says(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    for content in (
        {"confusion_matrix": MNIST, "kappa_weights": "linear", "cost": MNIST},
        {"confusion_matrix": MNIST, "intervals": False},
        {"confusion_matrix": [[2, 0, 0], [1, 0, 3], [0, 0, 0]], "spurious": [1, 0, 0]},
        PETS,
    ):
        schema = {"$ref": "#/components/schemas/Report", "components": document["components"]}
        Draft202012Validator(schema).validate(
            evaluate(client, "/evaluate?include=table", **content)
        )


def test_the_examples_of_the_document_are_right(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    components = document["components"]
    operation = document["paths"]["/evaluate"]["post"]
    body = operation["requestBody"]["content"]["application/json"]
    for example in body["examples"].values():
        schema = {**body["schema"], "components": components}
        Draft202012Validator(schema).validate(example["value"])
        evaluate(client, **example["value"])
    content = operation["responses"]["200"]["content"]["application/json"]
    answer = content["schema"]
    assert answer == {"$ref": "#/components/schemas/Report"}
    (reference,) = content["examples"].values()
    example = components["examples"][reference["$ref"].rpartition("/")[2]]["value"]
    Draft202012Validator({**answer, "components": components}).validate(example)
    real = evaluate(client, **body["examples"]["gate"]["value"])
    assert example["input_digest"] == real["input_digest"]
    shown = example["overall"]["accuracy"]["value"]
    assert shown == round(real["overall"]["accuracy"]["value"], 4)


class TestBatch:
    def test_it_answers_what_single_requests_answer(self, client: httpx.Client) -> None:
        requests: list[dict[str, Any]] = [
            {"confusion_matrix": MNIST},
            {"confusion_matrix": [[5, 1], [2, 7]], "labels": ["a", "b"]},
            {"confusion_matrix": [[9, 1], [0, 7]], "labels": ["c", "d"]},
            {"confusion_matrix": [[9, 0], [3, 0]]},
            {"confusion_matrix": [[9, 1], [0, 7]], "spurious": [1, 0]},
            {"confusion_matrix": [[9, 1], [0.5, 7]]},
            {"confusion_matrix": [[9, 1], [0, 7]], "cell_weights": [[1, 2], [2, 1]]},
            {"confusion_matrix": [[5, 1], [2, 7]], "cell_weights": [[1, 2], [2, 1]]},
            {"confusion_matrix": [[9, 1], [0, 7]], "intervals": False},
            {"y_true": [0, 1], "y_pred": [0, 1], "sample_weight": [2, 3]},
            PETS,
        ]
        response = client.post("/v1/evaluate/batch", json={"requests": requests})
        assert response.status_code == 200
        results = response.json()["results"]
        assert [result["status"] for result in results] == [200] * len(requests)
        for request, result in zip(requests, results, strict=True):
            assert near(result["report"], evaluate(client, **request))

    def test_a_bad_request_among_them_fails_alone(self, client: httpx.Client) -> None:
        requests = [PETS, {"confusion_matrix": [[1, "x"], [1, 1]]}, {"indices": ["accuracy"]}]
        response = client.post("/v1/evaluate/batch", json={"requests": requests})
        assert response.status_code == 207
        good, bad, empty = response.json()["results"]
        assert good["report"]["counts"]["items"] == 6
        assert bad["status"] == bad["problem"]["status"] == 422
        assert bad["problem"]["errors"][0]["pointer"] == "/confusion_matrix/0/1"
        assert empty["problem"]["errors"][0]["code"] == "no_evidence"
        assert bad["problem"]["request_id"] == response.headers["x-request-id"]

    @pytest.mark.parametrize(
        "body", [{}, {"requests": []}, {"requests": [PETS] * 101}, {"requests": [PETS], "x": 1}]
    )
    def test_a_batch_that_is_none_is_refused(
        self, client: httpx.Client, body: dict[str, Any]
    ) -> None:
        response = client.post("/v1/evaluate/batch", json=body)
        assert response.status_code == 422
        assert len(response.content) < 16 * 1024

    def test_a_hundred_large_ones_are_answered(self, client: httpx.Client) -> None:
        requests = [{"confusion_matrix": [[i + 1] * 30] * 30} for i in range(100)]
        response = client.post("/v1/evaluate/batch", json={"requests": requests})
        assert response.status_code == 200


def near(a: object, b: object) -> bool:
    """Whether two documents are the same up to the last digits of numbers."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(near(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(near, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == pytest.approx(b, rel=1e-9, abs=1e-12)
    return a == b


class TestCatalog:
    def test_it_lists_everything(self, client: httpx.Client) -> None:
        items = client.get("/v1/indices").json()["items"]
        assert [(i["scope"], i["key"]) for i in items] == [(e.scope, e.key) for e in INDICES]

    def test_an_entry_has_its_own_address(self, client: httpx.Client) -> None:
        entry = client.get("/v1/indices/class/r_prime").json()
        assert entry["symbol"]
        assert entry["range"] == [None, 1]
        assert client.get("/v1/indices/overall/r_prime").json()["scope"] == "overall"

    @pytest.mark.parametrize("path", ["class/mcc", "classes/recall", "overall/nothing"])
    def test_others_are_not_found(self, client: httpx.Client, path: str) -> None:
        response = client.get(f"/v1/indices/{path}")
        assert response.status_code == 404
        assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("key", ["", "x" * 256])
@pytest.mark.parametrize("path", ["/evaluate", "/v1/evaluate/batch"])
def test_a_wrong_idempotency_key_is_refused_though_nothing_is_stored(
    client: httpx.Client, path: str, key: str
) -> None:
    body = {"requests": [PETS]} if path.endswith("batch") else PETS
    response = client.post(path, json=body, headers={"Idempotency-Key": key})
    assert response.status_code == 400, response.text
    assert "1 to 255 characters" in response.json()["detail"]
    assert client.post(path, json=body, headers={"Idempotency-Key": "a"}).status_code == 200


BACKGROUND: dict[str, Any] = {
    "confusion_matrix": [[900, 20, 10], [15, 40, 5], [9, 3, 30]],
    "labels": ["O", "b", "c"],
}
MEANS = ["micro_f1", "macro_recall", "accuracy", "recall"]


@pytest.mark.parametrize("chosen", [{"average_over": ["c", "b"]}, {"average_except": ["O"]}])
def test_averages_are_over_the_chosen_classes(client: httpx.Client, chosen: Any) -> None:
    every = evaluate(client, **BACKGROUND, indices=MEANS)
    report = evaluate(client, **BACKGROUND, indices=MEANS, **chosen)
    assert report["options"]["average_over"] == ["b", "c"]
    assert "average_over" not in every["options"]
    micro = report["overall"]["micro_f1"]
    assert micro["value"] == pytest.approx(2 / 3)
    assert micro["interval"][0] < 2 / 3 < micro["interval"][1]
    assert report["overall"]["macro_recall"]["value"] == pytest.approx((40 / 60 + 30 / 42) / 2)
    assert "excluded" not in report["overall"]["macro_recall"]
    assert report["overall"]["accuracy"] == every["overall"]["accuracy"]
    assert report["per_class"] == every["per_class"]
    page = client.post(
        "/evaluate", json={**BACKGROUND, **chosen}, headers={"Accept": "text/markdown"}
    )
    assert "averages `over all classes but O`" in page.text


def test_requests_of_a_batch_have_averages_of_their_own(client: httpx.Client) -> None:
    requests: list[dict[str, Any]] = [
        {**BACKGROUND, "indices": MEANS},
        {**BACKGROUND, "indices": MEANS, "average_over": ["b", "c"]},
        {**BACKGROUND, "indices": MEANS, "average_over": ["c", "b"], "labels": ["b", "c", "d"]},
    ]
    answer = client.post("/v1/evaluate/batch", json={"requests": requests})
    assert answer.status_code == 200, answer.text
    for result, request in zip(answer.json()["results"], requests, strict=True):
        report, alone = result["report"], evaluate(client, **request)
        assert report["overall"] == alone["overall"]
        assert report["options"] == alone["options"]


@pytest.mark.parametrize(
    ("options", "pointer", "code"),
    [
        ({"average_over": ["b", "x"]}, "/average_over/1", "undeclared_label"),
        ({"average_except": ["x"]}, "/average_except/0", "undeclared_label"),
        ({"average_except": ["O", "b", "c"]}, "/average_except", "no_class"),
        ({"average_over": []}, "/average_over", "too_short"),
        ({"average_over": ["b"], "average_except": ["O"]}, "/average_except", "several_kinds"),
        ({"average_over": "b"}, "/average_over", "list_type"),
    ],
)
def test_classes_that_no_average_is_over_are_refused(
    client: httpx.Client, options: Any, pointer: str, code: str
) -> None:
    answer = client.post("/evaluate", json={**BACKGROUND, **options})
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == (pointer, code)
    body = {"candidate": BACKGROUND, "baseline": BACKGROUND, "options": options}
    (error,) = client.post("/v1/compare", json=body).json()["errors"]
    assert (error["pointer"], error["code"]) == (f"/options{pointer}", code)


def test_integer_classes_are_chosen_as_integers(client: httpx.Client) -> None:
    items: dict[str, Any] = {"y_true": [0, 0, 1, 2, 2], "y_pred": [0, 1, 1, 2, 0], "indices": MEANS}
    as_integers, as_text = (
        evaluate(client, **items, average_over=names) for names in ([1, 2], ["1", "2"])
    )
    assert as_integers["overall"] == as_text["overall"]
    assert as_integers["options"]["average_over"] == ["1", "2"]
