"""Bad input is refused with 400 or 422, at once, in few words, and never repeated."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.history_service import ServeApp, keeping, matrix

CANARY = "canary-5e1f"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def served(server: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server, timeout=30) as client:
        # The very first answer of a process pays for what all later ones share.
        client.post("/evaluate", content=b"{}", headers=JSON)
        yield client


@pytest.fixture
def stored(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        assert client.post("/v1/evaluate", json=matrix()).status_code == 201
        yield client


def refused(client: httpx.Client, body: bytes | str, path: str = "/evaluate") -> dict[str, Any]:
    response = client.post(path, content=body, headers=JSON)
    assert response.status_code in (400, 422), response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert len(response.content) < 16 * 1024
    assert response.elapsed.total_seconds() < 5
    # Of the input only names of unknown members are repeated.
    assert CANARY not in re.sub(rf"'{CANARY}\d*': ", "", response.text)
    problem: dict[str, Any] = response.json()
    assert problem["status"] == response.status_code
    assert len(problem.get("errors", [])) <= 20
    return problem


def places(problem: dict[str, Any]) -> list[str]:
    return [error["pointer"] for error in problem["errors"]]


@pytest.mark.parametrize(
    "number",
    ["NaN", "Infinity", "-Infinity", "1e999", "true", '"7"', "-1", "null", "9007199254740992"],
)
@pytest.mark.parametrize("path", ["/evaluate", "/v1/evaluate"])
def test_what_is_no_count(served: httpx.Client, number: str, path: str) -> None:
    problem = refused(served, f'{{"confusion_matrix": [[1, 2], [3, {number}]]}}', path)
    if problem["status"] == 422:
        assert places(problem) == ["/confusion_matrix/1/1"]
    else:
        assert "line 1" in problem["detail"]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        CANARY,
        f'{{"{CANARY}": {CANARY}}}',
        '{"labels": ["\\ud800"], "confusion_matrix": [[1]]}',
        b'{"labels": ["\xff"], "confusion_matrix": [[1]]}',
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"confusion_matrix": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"confusion_matrix": ' + "[" * 900 + "]" * 900 + "}",
        '{"baseline": ' * 1000 + "1" + "}" * 1000,
        '{"indices": ' * 300 + "1" + "}" * 300,
        '{"confusion_matrix": ' + '{":": ' * 1000 + "1" + "}" * 1000 + "}",
        '{"labels": ["\\u003a"], "confusion_matrix": ' + "[" * 1000 + "]" * 1000 + "}",
        "[]",
        "7",
        f'"{CANARY}"',
        "{}",
        '{"confusion_matrix": []}',
        '{"confusion_matrix": [[]]}',
        '{"confusion_matrix": [[1, 2], [3]]}',
        '{"confusion_matrix": [[1, 2]]}',
        '{"confusion_matrix": {}}',
        '{"confusion_matrix": [[1]], "confusion_matrix": [[2]]}',
        '{"confusion_matrix": [[1, 0], [0, 1]], "labels": ["\u00e9", "e\u0301"]}',
        '{"confusion_matrix": [[1, 0], [0, 1]], "labels": ["a", " a"]}',
        '{"confusion_matrix": [[1, 0], [0, 1]], "labels": ["a", "\\u0000"]}',
        '{"confusion_matrix": [[1, 0], [0, 1]], "labels": ["a", "\\u202eb"]}',
        '{"confusion_matrix": [[1]], "y_true": [1], "y_pred": [1]}',
        '{"y_true": [1]}',
        '{"y_true": [], "y_pred": []}',
        '{"y_true": [1, 2], "y_pred": [1]}',
        '{"y_true": [1, "a"], "y_pred": [1, 1]}',
        '{"y_true": [null], "y_pred": [1]}',
        f'{{"y_true": ["{CANARY}"], "y_pred": ["a"], "labels": ["a"]}}',
        f'{{"y_true": ["a", {{"{CANARY}": 1}}], "y_pred": ["a", "a"]}}',
        f'{{"confusion_matrix": [[1]], "undefined": "{CANARY}"}}',
        f'{{"confusion_matrix": [[1]], "indices": ["{CANARY}"]}}',
        f'{{"confusion_matrix": [[1]], "indices": {{"{CANARY}": 1}}}}',
        f'{{"confusion_matrix": [["{CANARY}"]]}}',
        f'{{"confusion_matrix": [[1]], "{CANARY}": 1}}',
        f'{{"confusion_matrix": [[1]], "cost": [["{CANARY}"]]}}',
        f'{{"confusion_matrix": [[1]], "beta": "{CANARY}"}}',
        f'{{"confusion_matrix": [[1]], "axis": "{CANARY}"}}',
        '{"confusion_matrix": [[1]], "beta": -0.5}',
        '{"confusion_matrix": [[1]], "beta": 1e309}',
        '{"confusion_matrix": [[1]], "confidence": 1}',
        '{"confusion_matrix": [[1]], "exact": 1}',
        '{"confusion_matrix": [[1]], "indices": ["expected_cost"]}',
        '{"confusion_matrix": [[1]], "indices": ["weighted_kappa"]}',
    ],
)
def test_what_is_no_request(served: httpx.Client, body: str | bytes) -> None:
    refused(served, body)
    refused(served, body, "/v1/evaluate/batch")


@pytest.mark.parametrize(
    "content",
    [
        {"confusion_matrix": [[CANARY] * 320] * 320},
        {"confusion_matrix": [[-1] * 320] * 320},
        {"confusion_matrix": [[True] * 320] * 320},
        {"confusion_matrix": [[1] * 319] * 320},
        {"cells": [[0, CANARY, 1]] * 100_000, "labels": ["a"]},
        {"y_true": [CANARY, 1] * 50_000, "y_pred": [1] * 100_000},
        {"y_true": [1] * 100_000, "y_pred": [[]] * 100_000},
        {"y_true": ["a"] * 100_000, "y_pred": [CANARY] * 100_000, "labels": ["a"]},
        {"y_true": [1] * 100_000, "y_pred": [1] * 100_000, "sample_weight": [-1] * 100_000},
        {"y_true": list(range(100_001)), "y_pred": [1] * 100_001},
        {"confusion_matrix": [[1]], "labels": ["\u200b"] * 100_000},
        {"confusion_matrix": [[1]], "indices": [CANARY] * 100_000},
        {"confusion_matrix": [[1]], "indices": [[CANARY]] * 100_000},
        {"confusion_matrix": [[1]], **{f"{CANARY}{i}": 1 for i in range(100_000)}},
        {"confusion_matrix": [[1]], **{f"{CANARY}{i}": 1 for i in range(90)}},
    ],
    ids=lambda content: next(iter(content)),
)
def test_a_hundred_thousand_mistakes(served: httpx.Client, content: dict[str, Any]) -> None:
    refused(served, json.dumps(content))


def test_a_typo_is_named_and_found(served: httpx.Client) -> None:
    body = '{"confusion_matrix": [[1]], "confidense": 0.9, "indices": ["accurracy"]}'
    errors = refused(served, body)["errors"]
    unknown = next(error for error in errors if error["code"] == "unknown_field")
    assert unknown["detail"].startswith("'confidense': Member 2 of the object")
    assert "`confidence`" in unknown["detail"]
    index = next(error for error in errors if error["code"] == "unknown_index")
    assert index["pointer"] == "/indices/0"
    assert "accuracy" in index["detail"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/v1/projects/pets", {"badge_public": True}),
        ("POST", "/v1/projects/pets/purge", {"keep_last": 1}),
        ("PUT", "/v1/projects/pets/aliases/champion", {"evaluation": "x"}),
    ],
)
def test_every_route_names_an_unknown_member_and_the_nearest(
    stored: httpx.Client, method: str, path: str, body: dict[str, Any]
) -> None:
    absent = {"If-None-Match": "*"}
    (name,) = body
    wrong = body | {name[:-1]: 1}
    response = stored.request(method, path, json=wrong, headers=absent)
    assert response.status_code == 422
    (error,) = response.json()["errors"]
    assert (error["pointer"], error["code"]) == ("", "unknown_field")
    assert error["detail"].startswith(f"'{name[:-1]}': ")
    assert f"Did you mean `{name}`?" in error["detail"]


@pytest.mark.parametrize("name", ["x" * 65, "a\u202eb", "a\nb", "\x00"])
@pytest.mark.parametrize("path", ["/evaluate", "/v1/projects/pets"])
def test_a_name_that_cannot_be_read_is_not_repeated(
    stored: httpx.Client, path: str, name: str
) -> None:
    method = "POST" if path == "/evaluate" else "PUT"
    response = stored.request(method, path, json={"confusion_matrix": [[1]], name: 1})
    assert response.status_code == 422
    shown = [json.dumps(name)[1:-1], name, ascii(name)[1:-1]]
    assert not any(text in response.text for text in shown)


def test_a_wrong_name_in_the_address_is_repeated_safely(stored: httpx.Client) -> None:
    shown = {
        "acuracy": "'acuracy'",
        "\u202eacuracy": "'\\u202eacuracy'",
        "\u05e7": "\u2068'\u05e7'\u2069",
        "y" * 500: f"\u2068'{'y' * 63}…'\u2069",
    }
    for path in ("trend", "leaderboard", "figures/trend.svg"):
        for name, safe in shown.items():
            response = stored.get(f"/v1/projects/pets/{path}", params={"index": name})
            assert response.status_code == 422, response.text
            error = response.json()["errors"][0]
            assert error["detail"].startswith(f"{safe}: The catalog has no such index."), error
    assert "Did you mean `accuracy`?" in (
        stored.get("/v1/projects/pets/trend", params={"index": "acuracy"}).text
    )


def test_options_and_evidence_are_checked_together(served: httpx.Client) -> None:
    problem = refused(served, '{"confusion_matrix": [[1, -1], [0, 0]], "beta": -1}')
    assert places(problem) == ["/beta", "/confusion_matrix/0/1"]


def test_the_kinds_of_evidence_are_listed_where_there_is_none(served: httpx.Client) -> None:
    (error,) = refused(served, "{}")["errors"]
    for name in ("confusion_matrix", "cells", "y_true", "y_pred"):
        assert f"`{name}`" in error["detail"]


def test_features_that_do_not_exist_are_not_ignored(served: httpx.Client) -> None:
    for name in ("y_scores", "top", "nothing"):
        problem = refused(served, json.dumps({"confusion_matrix": [[1]], name: 1}))
        assert problem["errors"][0]["code"] == "unknown_field"


@pytest.mark.parametrize("kind", [None, "application/x-www-form-urlencoded", "text/plain"])
def test_another_content_type_says_which_one_is_needed(
    served: httpx.Client, kind: str | None
) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    response = served.post("/evaluate", content=b'{"confusion_matrix": [[1]]}', headers=headers)
    assert response.status_code == 415
    assert "application/json" in response.json()["detail"]
