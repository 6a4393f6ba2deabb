"""Errors are problems of RFC 9457, say where and why, and never repeat the input."""

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager

import httpx
import pytest
import structlog
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from rprime.app import create_app
from rprime.problems.kinds import KINDS
from rprime.problems.problem import Problem, Violation, pointer, responses
from rprime.server.logs import add_request
from rprime.settings import Settings
from rprime.store import ids

ServeApp = Callable[[FastAPI], AbstractContextManager[httpx.Client]]

SECRET = "do-not-repeat-me"  # noqa: S105 - only a text to look for


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")

    counts: list[int]


def add_failing_routes(app: FastAPI) -> None:
    @app.get("/crash")
    async def crash() -> None:
        raise RuntimeError(SECRET)

    @app.get("/crash-inside")
    async def crash_inside() -> None:
        ids.created_at(SECRET)

    @app.get("/crash-late")
    async def crash_late() -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            yield b"half"
            raise RuntimeError(SECRET)

        return StreamingResponse(parts(), headers={"Content-Length": "8"})

    @app.get("/teapot")
    async def teapot() -> None:
        raise HTTPException(418)

    @app.get("/busy")
    async def busy() -> None:
        raise Problem("overloaded", headers={"Retry-After": "7"})

    @app.get("/many")
    async def many() -> None:
        raise Problem(
            "invalid_request", errors=[Violation(pointer(i), "wrong", "No.") for i in range(30)]
        )

    @app.post("/orders/{number}")
    async def order(number: int, order: Order, limit: int = 1) -> None: ...

    @app.delete("/orders/{number}")
    async def forget(number: int) -> None: ...


@pytest.fixture(scope="module")
def failing(serve_app: ServeApp) -> Iterator[httpx.Client]:
    app = create_app(Settings())
    add_failing_routes(app)
    with serve_app(app) as client:
        yield client


def expect_problem(response: httpx.Response, status: int, code: str) -> dict[str, object]:
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, object] = response.json()
    assert (document["status"], document["code"]) == (status, code)
    assert document["request_id"] == response.headers["x-request-id"]
    assert SECRET not in response.text
    return document


def test_an_unknown_path_is_a_problem(client: httpx.Client) -> None:
    document = expect_problem(client.get(f"/{SECRET}"), 404, "not_found")
    assert document["type"] == "/docs/problems#not_found"


def test_a_path_with_a_slash_too_many_is_not_redirected(client: httpx.Client) -> None:
    expect_problem(client.get("/version/"), 404, "not_found")


def test_a_wrong_method_is_a_problem_that_names_the_right_ones(client: httpx.Client) -> None:
    response = client.post("/version")
    expect_problem(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "GET, HEAD"


def test_allow_names_the_methods_of_every_route_at_the_path(failing: httpx.Client) -> None:
    assert failing.get("/orders/1").headers["allow"] == "DELETE, POST"


def test_a_missing_static_file_is_a_problem(client: httpx.Client) -> None:
    expect_problem(client.get("/static/nothing.js"), 404, "not_found")
    expect_problem(client.get("/static/%2e%2e/settings.py"), 404, "not_found")


def test_broken_json_is_unreadable(failing: httpx.Client) -> None:
    headers = {"Content-Type": "application/json"}
    response = failing.post("/orders/1", content=f'{{"{SECRET}": ', headers=headers)
    expect_problem(response, 400, "unreadable_body")


def test_a_crash_tells_nothing_but_where_the_log_has_it(failing: httpx.Client) -> None:
    with structlog.testing.capture_logs([add_request]) as log:
        document = expect_problem(failing.get("/crash"), 500, "internal_error")
    assert [(entry["event"], entry["request_id"]) for entry in log] == [
        ("internal_error", document["request_id"])
    ]


def test_a_crash_names_its_kind_and_its_place_without_values(failing: httpx.Client) -> None:
    with structlog.testing.capture_logs() as log:
        failing.get("/crash-inside")
    (entry,) = log
    lines, first = inspect.getsourcelines(ids)
    first = next(n for n, line in enumerate(lines, 1) if line.startswith("def created_at"))
    module, _, line = entry["place"].partition(":")
    assert module == "rprime.store.ids"
    assert first < int(line) < first + 20
    assert entry["exception_type"] == "builtins.KeyError"
    assert entry["route"] == "/crash-inside"
    del entry["exc_info"]
    assert SECRET not in str(entry)


def test_a_crash_in_the_middle_of_an_answer_ends_the_connection(failing: httpx.Client) -> None:
    with structlog.testing.capture_logs() as log, pytest.raises(httpx.RemoteProtocolError):
        failing.get("/crash-late")
    assert [entry["event"] for entry in log] == ["internal_error"]


def test_a_status_without_a_kind_says_what_http_says(failing: httpx.Client) -> None:
    document = expect_problem(failing.get("/teapot"), 418, "im_a_teapot")
    assert document["type"] == "about:blank"


def test_a_problem_carries_its_headers(failing: httpx.Client) -> None:
    response = failing.get("/busy")
    expect_problem(response, 503, "overloaded")
    assert response.headers["retry-after"] == "7"


def test_at_most_twenty_errors_are_listed_and_the_rest_is_counted(failing: httpx.Client) -> None:
    document = expect_problem(failing.get("/many"), 422, "invalid_request")
    errors = document["errors"]
    assert isinstance(errors, list)
    assert len(errors) == 20
    assert document["detail"] == "30 errors in the request; the first 20 are listed."


def test_a_validation_error_points_at_the_place(failing: httpx.Client) -> None:
    body = {"counts": [1, SECRET], "a/b~c": SECRET}
    document = expect_problem(failing.post("/orders/1", json=body), 422, "invalid_request")
    assert document["errors"] == [
        {
            "pointer": "/counts/1",
            "code": "int_parsing",
            "detail": "Item 2 of `counts` must be an integer.",
        },
        {
            "pointer": "",
            "code": "unknown_field",
            "detail": "'a/b~c': A name is not known here: correct or remove it; "
            "/docs lists the names.",
        },
    ]


def test_a_wrong_parameter_is_named_with_its_kind(failing: httpx.Client) -> None:
    response = failing.post(f"/orders/{SECRET}?limit={SECRET}", json={"counts": []})
    errors = expect_problem(response, 422, "invalid_request")["errors"]
    assert isinstance(errors, list)
    assert [error["pointer"] for error in errors] == ["/path/number", "/query/limit"]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((), ""),
        (("labels", 0), "/labels/0"),
        (("a/b", "~"), "/a~1b/~0"),
        (("\ud800",), "/?"),
        (("x" * 100,), "/" + "x" * 63 + "…"),
    ],
)
def test_a_pointer_is_escaped_bounded_and_can_be_sent(
    parts: tuple[str | int, ...], expected: str
) -> None:
    assert pointer(*parts) == expected


@pytest.mark.parametrize("code", KINDS)
def test_every_kind_is_published_with_an_example(code: str) -> None:
    kind = KINDS[code]
    content = responses(code)[kind.status]["content"]["application/problem+json"]
    example = content["examples"][code]["value"]
    assert (example["status"], example["code"]) == (kind.status, code)


def test_kinds_of_one_status_are_published_together() -> None:
    published = responses("unsupported_encoding", "unreadable_body", "unsupported_media_type")
    assert sorted(published) == [400, 415]
    examples = published[415]["content"]["application/problem+json"]["examples"]
    assert set(examples) == {"unsupported_encoding", "unsupported_media_type"}
