"""What is wrong with a member is said in a sentence that names it."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from pydantic import BaseModel

from rprime.schemas.document import parse
from rprime.schemas.request import RequestOptions
from rprime.schemas.simulation import LintRest
from rprime.schemas.violations import validated
from tests.http.test_bad_input import refused

if TYPE_CHECKING:
    from rprime.problems.problem import Violation

MEMBER_2 = "Member 2 of the object has a name that is not known here."
TABLE = {"confusion_matrix": [[8, 1], [2, 9]]}
NAMES = "must begin with a letter or a digit, then have letters, digits and the signs ._/+- only."


def with_rule(**members: Any) -> dict[str, Any]:
    return {"gates": {"rules": [{"index": "recall", "min_value": 0.5} | members]}}


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/v1/compare", {"candidate": TABLE}, "Add `baseline`, which is required."),
        ("/v1/gates/lint", {**TABLE}, "Add `gates`, which is required."),
        ("/evaluate", {"gates": {}}, "Add `rules`, which is required."),
        ("/evaluate", {"model": 7}, "`model` must be a string."),
        ("/evaluate", {"tags": [7]}, "Item 1 of `tags` must be a string."),
        ("/evaluate", {"tags": "a"}, "`tags` must be a list."),
        ("/evaluate", {"indices": ["f1", None]}, "Item 2 of `indices` must be a string."),
        ("/evaluate", {"gates": []}, "`gates` must be an object."),
        ("/evaluate", {"gates": {"rules": [1]}}, "Item 1 of `rules` must be an object."),
        (
            "/v1/studies/discrimination",
            {"indices": []},
            "`indices` must have at least 1 item, not 0.",
        ),
        ("/evaluate", {"confidence": 95}, "`confidence` must be at most 0.9999."),
        ("/evaluate", {"confidence": "0.9"}, "`confidence` must be a number."),
        ("/evaluate", {"beta": -1}, "`beta` must be at least 0."),
        ("/evaluate", {"beta": None}, "Leave `beta` out instead of sending null."),
        ("/evaluate", {"labels": None}, "Leave `labels` out instead of sending null."),
        (
            "/evaluate",
            {"gates": {"rules": None}},
            "Give `rules` a value: it is required, and null is none.",
        ),
        ("/evaluate", {"alpha": 0.05}, f"'alpha': {MEMBER_2} It belongs in `gates`."),
        ("/evaluate", {"top_k": 1.5}, "`top_k` must be an integer."),
        ("/evaluate", {"exact": 1}, "`exact` must be true or false."),
        ("/evaluate", {"intervals": "yes"}, "`intervals` must be 'all' or true or false."),
        ("/evaluate", {"undefined": "nan"}, "`undefined` must be 'null', 'zero' or 'one'."),
        ("/evaluate", {"thresholds": {"a": "x"}}, "A value in `thresholds` must be a number."),
        ("/evaluate", with_rule(min_value="x"), "`min_value` must be a number."),
        ("/evaluate", {"project": "p", "baseline": {"latest": "yes"}}, "`latest` must be true."),
        ("/evaluate", {"model": "a b"}, f"`model` {NAMES}"),
        ("/evaluate", {"branch": "a\n"}, "`branch` must have no control characters."),
        (
            "/evaluate",
            {"test_set": {"fingerprint": "a"}},
            "`fingerprint` must be 64 digits of 0-9 and a-f.",
        ),
    ],
)
def test_the_sentence_names_the_member(
    client: httpx.Client, path: str, body: dict[str, Any], expected: str
) -> None:
    request = body if path != "/evaluate" else TABLE | body
    problem = refused(client, httpx.Request("POST", "/", json=request).content, path)
    assert expected in [error["detail"] for error in problem["errors"]]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/projects/p/evaluations?limit=x", "`limit` must be an integer."),
        ("/v1/projects/p/evaluations?limit=0", "`limit` must be at least 1."),
        (
            "/v1/projects/p/evaluations?since=monday",
            "`since` must be a date such as 2026-01-31 or a datetime such as 2026",
        ),
    ],
)
def test_a_parameter_is_named(client: httpx.Client, path: str, expected: str) -> None:
    response = client.get(path)
    assert response.status_code == 422
    (error,) = response.json()["errors"]
    assert error["detail"].startswith(expected)


WRONG: tuple[Any, ...] = (None, "", "a\x00", -1, 1.5, 10**20, True, [], {}, [{}], "x" * 3000)
OF_PYDANTIC = re.compile("Input|Field|String|List|Dictionary|should|valid|None|instance|items? aft")


def places(
    node: dict[str, Any], definitions: dict[str, Any], path: tuple[Any, ...]
) -> Iterator[Any]:
    """Yield the places of a JSON schema: names, and 0 for the items of lists."""
    if len(path) > 5:
        return
    node = definitions[node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    for option in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from places(option, definitions, path)
    children = {**node.get("properties", {}), **({0: node["items"]} if "items" in node else {})}
    for part, child in children.items():
        yield (*path, part)
        yield from places(child, definitions, (*path, part))


def put(path: tuple[Any, ...], value: Any) -> Any:
    for part in reversed(path):
        value = [value] if part == 0 else {part: value}
    return value


def check(model: type[BaseModel], path: tuple[Any, ...], value: Any) -> int:
    violations: list[Violation] = []
    content = httpx.Request("POST", "/", json=put(path, value)).content
    validated(model, parse(content), violations)
    for violation in violations:
        assert not OF_PYDANTIC.search(violation.detail), (path, value, violation)
        named = "`" in violation.detail or violation.code.startswith(("one_", "no_", "class_"))
        assert named or violation.code == "unknown_index", (path, value, violation)
    return len(violations)


def all_places(model: type[BaseModel]) -> list[Any]:
    schema = model.model_json_schema()
    return list(dict.fromkeys(places(schema, schema["$defs"], ())))


@pytest.mark.parametrize("model", [RequestOptions, LintRest])
def test_no_wrong_value_gets_a_sentence_of_pydantic(model: type[BaseModel]) -> None:
    count = sum(check(model, path, value) for path in all_places(model) for value in WRONG)
    assert count > 1000


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"y_true":["caf\xe9"],"y_pred":["b"]}', "Line 1 of the body is not UTF-8"),
        (b'{"y_true":["a"],\n"y_pred":["\xff"]}', "Line 2 of the body is not UTF-8"),
        (b'\xef\xbb\xbf{"y_true":["a"],"y_pred":["b"]}', "byte order mark"),
        ("{}".encode("utf-16"), "byte order mark"),
        (b" ", "The body is empty"),
        (b"{", "The body is not valid JSON"),
    ],
)
@pytest.mark.parametrize("path", ["/evaluate", "/v1/compare", "/v1/evaluate/batch"])
def test_what_is_no_json_is_said(
    client: httpx.Client, path: str, content: bytes, words: str
) -> None:
    answer = client.post(path, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert words in answer.json()["detail"]


@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        ("{", "not_json", "`request` is not valid JSON"),
        ("[]", "not_an_object", "`request` must be an object; this is an array."),
        ('{"beta":1,"beta":2}', "duplicate_name", "twice: members 1 and 2"),
    ],
)
def test_what_accompanies_columns_is_named(
    client: httpx.Client, request_: str, code: str, words: str
) -> None:
    answer = client.post(
        "/evaluate",
        content=b"y_true,y_pred\na,b\n",
        params={"request": request_},
        headers={"Content-Type": "text/csv"},
    )
    [error] = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/query/request", code)
    assert words in error["detail"]


def test_an_unknown_member_of_a_side_has_its_place(client: httpx.Client) -> None:
    side = {"y_true": ["a"], "y_pred": ["b"], "confidense": 0.9}
    answer = client.post("/v1/compare", json={"candidate": side, "baseline": side})
    for error, name in zip(answer.json()["errors"], ("candidate", "baseline"), strict=True):
        assert error["pointer"] == f"/{name}"
        assert error["detail"].startswith("'confidense': Member 3 of the object")


def test_a_model_is_no_object_that_lacks(client: httpx.Client) -> None:
    baseline = {"alias": "champion", "model": "svc"}
    answer = client.post("/evaluate", json={**TABLE, "project": "p", "baseline": baseline})
    [error] = answer.json()["errors"]
    assert error["code"] == "model_without_use"
    assert error["detail"] == "Only version, branch and latest can name a model."
