"""The contract as a document."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from tests.command import Run

DOCUMENT = Path(__file__).parents[2] / "openapi" / "openapi.json"


def test_the_file_is_what_the_code_says(rprime: Run) -> None:
    assert rprime("openapi").stdout == DOCUMENT.read_text(encoding="utf-8"), (
        "run: rprime openapi --output openapi/openapi.json"
    )


def test_the_command_writes_the_same_file(rprime: Run, tmp_path: Path) -> None:
    rprime("openapi", "--output", str(tmp_path / "openapi.json"))
    assert (tmp_path / "openapi.json").read_bytes() == DOCUMENT.read_bytes()


def test_the_service_publishes_the_same_document(client: httpx.Client) -> None:
    assert client.get("/openapi.json").json() == json.loads(DOCUMENT.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_settings_do_not_change_the_document(rprime: Run) -> None:
    changed = rprime("openapi", RPRIME_LIMITS_JSON_BODY_BYTES="1000", RPRIME_STORE="none")
    assert changed.stdout == DOCUMENT.read_text(encoding="utf-8")


def test_operations_have_short_ids() -> None:
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    ids = [o["operationId"] for path in document["paths"].values() for o in path.values()]
    assert len(set(ids)) == len(ids)
    assert {"evaluate", "listEvaluations", "getTrend", "lintGate"} <= set(ids)
    assert all(re.fullmatch("[a-z]+([A-Z][a-z0-9]+)*", name) for name in ids)


def test_every_operation_says_what_it_does() -> None:
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    tags = {tag["name"] for tag in document["tags"]}
    for operations in document["paths"].values():
        for operation in operations.values():
            assert operation["summary"]
            assert operation["description"]
            assert set(operation["tags"]) <= tags


def properties(
    node: Any, place: tuple[str, ...], *, named: bool = False
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the place, the name and the schema of every property within a part of the document."""
    entries: Any = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in entries:
        if named:
            yield "/".join(place), key, value
        if isinstance(value, dict | list) and (named or key not in {"example", "examples"}):
            inner = key == "properties" and not named
            yield from properties(value, (*place, str(key)), named=inner)


# What a description has to say beyond these and the name: "The model." describes no `model`.
EMPTY_WORDS = {"a", "an", "the", "of", "its", "this", "is", "value", "whether", "for", "it", "in"}


def test_every_property_and_parameter_is_described() -> None:
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    schemas = document["components"]["schemas"]
    places = list(properties(document, ()))
    assert len(places) > 1000
    places += [
        (operation["operationId"], parameter["name"], parameter)
        for operations in document["paths"].values()
        for operation in operations.values()
        for parameter in operation.get("parameters", ())
    ]
    for place, name, schema in places:
        # A reference may leave the description to what it refers to.
        referred = schemas.get(schema.get("$ref", "").rpartition("/")[2], {})
        text = schema.get("description") or referred.get("description", "")
        words = set(re.findall(r"[a-z0-9']+", text.lower()))
        assert words - EMPTY_WORDS - set(re.findall("[a-z0-9]+", name.lower())), (place, name, text)
        assert text.endswith((".", "?", "`")), (place, name, text)


def test_every_error_is_a_problem_with_an_example() -> None:
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    for operations in document["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if status >= "400":
                    assert list(response["content"]) == ["application/problem+json"]
                    assert response["content"]["application/problem+json"]["examples"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/evaluate", {"confusion_matrix": [[0]]}),
        ("/evaluate", {"y_true": ["a", "b"], "y_pred": [None, None], "groups": ["p", "q"]}),
        ("/evaluate", {"y_true": ["a"], "y_score": [[1.0]], "curves": True, "reject": "sweep"}),
        (
            "/v1/compare",
            {"candidate": {"confusion_matrix": [[1]]}, "baseline": {"confusion_matrix": [[0]]}},
        ),
    ],
)
def test_answers_on_next_to_nothing_are_as_documented(
    client: httpx.Client, path: str, body: dict[str, Any]
) -> None:
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    content = document["paths"][path]["post"]["responses"]["200"]["content"]["application/json"]
    schema = content["schema"] | {"components": document["components"]}
    Draft202012Validator(schema).validate(answer.json())


EVIDENCE: dict[str, dict[str, Any]] = {
    "MatrixRequest": {"confusion_matrix": [[5, 1], [2, 7]]},
    "CellsRequest": {"labels": ["a", "b"], "cells": [[0, 0, 3], [1, 1, 2]]},
    "LabelsRequest": {"y_true": ["a", "b"], "y_pred": ["a", "b"]},
    "ScoresRequest": {"y_true": ["a", "b"], "y_score": [[0.7, 0.3], [0.2, 0.8]]},
}


@pytest.mark.parametrize("name", EVIDENCE)
def test_what_may_be_left_out_is_never_null(client: httpx.Client, name: str) -> None:
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    schema = document["components"]["schemas"][name]
    assert client.post("/evaluate", json=EVIDENCE[name]).status_code == 200
    optional = set(schema["properties"]) - set(schema["required"])
    assert len(optional) > 20
    for member in optional:
        assert {"type": "null"} not in schema["properties"][member].get("anyOf", [])
        assert schema["properties"][member].get("default", "") is not None
        answer = client.post("/evaluate", json={**EVIDENCE[name], member: None})
        assert answer.status_code == 422, member
        assert [error["pointer"] for error in answer.json()["errors"]] == [f"/{member}"]


TABLE: dict[str, Any] = {"confusion_matrix": [[5, 1], [2, 7]]}


@pytest.mark.parametrize(
    ("path", "place", "member", "value"),
    [
        ("/evaluate", ("baseline",), "labels", None),
        ("/evaluate", ("baseline",), "cost", [[0, 1], [1, 0]]),
        ("/v1/compare", ("candidate",), "labels", None),
        ("/v1/compare", ("baseline",), "spurious", None),
        ("/v1/compare", ("candidate",), "cost", [[0, 1], [1, 0]]),
        ("/v1/compare", ("options",), "y_true", ["a"]),
        ("/v1/compare", (), "y_true", ["a"]),
        ("/v1/studies/discrimination", (), "labels", ["a", "b"]),
        ("/v1/studies/agreement", (), "y_true", ["a"]),
    ],
)
def test_an_array_is_refused_where_the_contract_has_none(
    client: httpx.Client, path: str, place: tuple[str, ...], member: str, value: object
) -> None:
    """It would be left out without a word: costs that nobody counts."""
    sides: dict[str, Any] = {"baseline": {**TABLE}}
    bodies: dict[str, dict[str, Any]] = {
        "/evaluate": {**TABLE, **sides},
        "/v1/compare": {"candidate": {**TABLE}, "options": {}, **sides},
        "/v1/studies/discrimination": {"indices": ["accuracy", "kappa"]},
        "/v1/studies/agreement": {"values": {"f1": [0.1, 0.2, 0.3], "mcc": [0.3, 0.2, 0.1]}},
    }
    body = bodies[path]
    assert client.post(path, json=body).status_code == 200
    inner = body[place[0]] if place else body
    inner[member] = value
    answer = client.post(path, json=body)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    pointer = "".join(f"/{part}" for part in place)
    assert error["pointer"] in {pointer, f"{pointer}/{member}"}
    assert error["code"] in {"null", "unknown_field"}


OPERATIONS = [
    (method, path, operation)
    for path, operations in json.loads(DOCUMENT.read_text(encoding="utf-8"))["paths"].items()
    for method, operation in operations.items()
]
OF_OPERATOR = [path for _, path, operation in OPERATIONS if operation["tags"] == ["Operation"]]


@pytest.mark.parametrize("path", OF_OPERATOR)
def test_a_probe_may_add_a_parameter_of_its_own(client: httpx.Client, path: str) -> None:
    assert client.get(path, params={"from": "balancer"}).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [operation for operation in OPERATIONS if operation[1] not in OF_OPERATOR],
    ids=[f"{m} {p}" for m, p, _ in OPERATIONS if p not in OF_OPERATOR],
)
def test_every_route_refuses_unknown_parameters_and_names_the_nearest(
    client: httpx.Client, method: str, path: str, operation: dict[str, Any]
) -> None:
    parameters = operation.get("parameters", ())
    # `request` is beside columns, and this is JSON.
    named = {p["name"] for p in parameters if p["in"] == "query"} - {"q", "request"}
    place = re.sub(r"\{\w+\}", "x", path)
    for name in ("zzzzzz", *(f"{name[:-1]}x{name[-1]}" for name in sorted(named))):
        content = "{}" if "requestBody" in operation else None
        headers = {"Content-Type": "application/json"}
        answer = client.request(method, place, params={name: "1"}, content=content, headers=headers)
        assert answer.status_code == 422, name
        [error] = answer.json()["errors"]
        assert (error["pointer"], error["code"]) == (f"/query/{name}", "unknown_parameter")
        right = f"{name[:-2]}{name[-1]}"
        assert right not in named or f"Did you mean `{right}`?" in error["detail"]


def test_every_parameter_of_a_path_says_what_it_may_be() -> None:
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    rules = {"pattern", "enum", "minimum", "$ref"}
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    assert rules & parameter["schema"].keys(), parameter
                    Draft202012Validator(
                        parameter["schema"] | {"components": document["components"]}
                    ).validate(parameter["example"])


def test_generators_of_clients_keep_every_type_and_every_name() -> None:
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    schemas = [schema for schema in document["components"]["schemas"].values() if "enum" in schema]
    assert schemas
    for schema in schemas:
        names = [value.upper() for value in schema["enum"]]
        assert len(names) == len(set(names))
    for _, _, operation in OPERATIONS:
        for parameter in operation.get("parameters", ()):
            schema = parameter["schema"]
            assert "anyOf" not in schema
            assert "$ref" not in schema or len(schema) == 1
        for response in operation["responses"].values():
            for content in response.get("content", {}).values():
                assert not {"example", "examples"} <= content.keys()
