"""Who may do what, over real connections."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Request
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Mount, Route

from rprime.app import create_app
from rprime.auth import keys
from rprime.auth.access import (
    access_of,
    check_project,
    required_scopes,
    requires,
    with_authentication,
)
from rprime.auth.keys import SCOPES, Scope
from rprime.problems.problem import Problem
from rprime.routes import catalog, evaluate
from rprime.settings import Settings
from tests.command import Run

Serve = Callable[..., AbstractContextManager[httpx.Client]]
ServeApp = Callable[[FastAPI], AbstractContextManager[httpx.Client]]

PUBLIC = {
    "/livez",
    "/readyz",
    "/version",
    "/docs",
    "/docs/schemas",
    "/docs/problems",
    "/docs/{name}.md",
    "/openapi.json",
    "/favicon.ico",
    "/static",
    "/guide",
    "/guide/",
    "/",
    "/ui/indices",
    "/ui/indices/{key}",
    "/ui/reproduced",
    "/ui/static/{name}",
    "/ui/sign-in",
    "/ui/sign-out",
}
# The page of the evaluator is public, what it posts to is not.
PUBLIC_OPERATIONS = {("GET", "/ui/evaluate")}
CLOSED = "/v1/indices"


def is_public(method: str, path: str) -> bool:
    return path in PUBLIC or (method, path) in PUBLIC_OPERATIONS


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys") / "keys.json"


@pytest.fixture(scope="module")
def tokens(path: Path) -> dict[Scope, str]:
    return {scope: keys.create(path, [scope])[1] for scope in SCOPES}


@pytest.fixture(scope="module")
def app(path: Path) -> FastAPI:
    return create_app(Settings(keys_file=path))


@pytest.fixture(scope="module")
def keyed(app: FastAPI, serve_app: ServeApp) -> Iterator[httpx.Client]:
    with serve_app(app) as client:
        yield client


def operations_of(app: FastAPI) -> Iterator[tuple[BaseRoute, str, str]]:
    for route in app.routes:
        assert isinstance(route, Route | Mount)
        for method in sorted(getattr(route, "methods", None) or {"GET"}):
            yield route, method, re.sub(r"{[^}]*}", "x", route.path)


# Every route


def test_every_route_is_public_or_declares_its_scope(app: FastAPI) -> None:
    for route, method, _ in operations_of(app):
        assert isinstance(route, Route | Mount)
        assert bool(required_scopes(route)) != is_public(method, route.path), route.path


def test_every_route_is_public_or_asks_for_a_key(app: FastAPI, keyed: httpx.Client) -> None:
    for route, method, path in operations_of(app):
        assert isinstance(route, Route | Mount)
        response = keyed.request(method, path)
        public = is_public(method, route.path)
        if route.path.startswith("/ui/") and not public:
            assert response.status_code == 303, path
            assert "ui/sign-in?next=" in response.headers["location"]
            continue
        assert (response.status_code == 401) != public, (method, path)
        if response.status_code == 401 and method != "HEAD":
            assert response.json()["code"] == "unauthorized"
            assert response.headers["www-authenticate"] == 'Bearer realm="rprime"'


def test_every_route_opens_to_its_scopes_alone(
    app: FastAPI, keyed: httpx.Client, tokens: dict[Scope, str]
) -> None:
    implied: dict[Scope, set[Scope]] = {"write": {"read"}, "admin": set(SCOPES)}
    for (route, method, path), scope in product(operations_of(app), SCOPES):
        if needed := set(required_scopes(route)):
            response = keyed.request(method, path, headers=bearer(tokens[scope]))
            opens = bool(needed & ({scope} | implied.get(scope, set())))
            assert response.status_code != 401
            assert (response.status_code == 403) != opens, (method, path, scope)


def test_every_project_in_a_path_has_the_name_that_the_guard_knows(app: FastAPI) -> None:
    for route in app.routes:
        if isinstance(route, APIRoute) and "/projects/{" in route.path:
            assert "project" in route.param_convertors


def test_a_route_that_declares_nothing_is_not_served() -> None:
    router = APIRouter()

    @router.get("/forgotten")
    async def forgotten() -> None: ...

    for keyring in (None, keys.Keyring(Path("keys.json"))):
        with pytest.raises(TypeError, match="forgotten"):
            with_authentication(router.routes, keyring)


# Answers


def test_a_missing_scope_is_named(keyed: httpx.Client, tokens: dict[Scope, str]) -> None:
    response = keyed.post("/evaluate", headers=bearer(tokens["read"]), json={})
    assert (response.status_code, response.json()["code"]) == (403, "forbidden")
    assert response.json()["detail"] == "The key needs the scope evaluate."
    challenge = response.headers["www-authenticate"]
    assert challenge == 'Bearer realm="rprime", error="insufficient_scope", scope="evaluate"'


def test_a_wrong_id_and_a_wrong_secret_get_the_same_answer(
    keyed: httpx.Client, tokens: dict[Scope, str]
) -> None:
    right = tokens["read"]
    wrong = [right[:-4] + "ffff", f"rp_{'0' * 12}_{right.split('_')[2]}", "x", "🔑", right * 9]
    answers = []
    for token in wrong:
        headers = {b"Authorization": f"Bearer {token}".encode(), b"X-Request-Id": b"r"}
        response = keyed.get(CLOSED, headers=headers)
        answers.append((response.status_code, response.headers["www-authenticate"], response.text))
    assert len(set(answers)) == 1
    assert answers[0][:2] == (401, 'Bearer realm="rprime", error="invalid_token"')


def test_the_scheme_is_bearer_in_any_case(keyed: httpx.Client, tokens: dict[Scope, str]) -> None:
    for scheme in ("Bearer ", "bearer ", "BEARER   "):
        headers = {"Authorization": scheme + tokens["read"]}
        assert keyed.get(CLOSED, headers=headers).status_code == 200
    for scheme in ("Basic ", "", "Bearer", "Bearer\t", "Token "):
        headers = {"Authorization": scheme + tokens["read"]}
        assert keyed.get(CLOSED, headers=headers).status_code == 401


def test_two_keys_in_one_request_open_nothing(
    keyed: httpx.Client, tokens: dict[Scope, str]
) -> None:
    headers = [("Authorization", f"Bearer {tokens[scope]}") for scope in ("read", "admin")]
    assert keyed.get(CLOSED, headers=headers).status_code == 401


def test_a_key_is_asked_for_before_the_body_is_looked_at(keyed: httpx.Client) -> None:
    response = keyed.post("/v1/evaluate", content=b"\xff" * 1000)
    assert response.status_code == 401


def test_an_unknown_path_is_no_secret(keyed: httpx.Client) -> None:
    assert keyed.get("/nowhere").status_code == 404
    assert keyed.delete(CLOSED).status_code == 405


# Projects


@pytest.fixture
def project_app() -> Callable[[Path | None], FastAPI]:
    router = APIRouter()

    @router.get("/v1/projects/{project}/things")
    @requires("read", cost="cheap")
    async def things(project: str) -> str:
        if project not in {"mine", "theirs"}:
            raise Problem("not_found")
        return project

    @router.get("/v1/things/{thing}")
    @requires("read", cost="cheap")
    async def thing(request: Request, thing: str) -> dict[str, Any]:
        # The project is known only now.
        check_project(request, thing.partition("-")[0])
        access = access_of(request)
        return {"key": access.key, "scopes": sorted(access.scopes), "project": access.project}

    def build(keys_file: Path | None) -> FastAPI:
        app = create_app(Settings(keys_file=keys_file))
        app.router.routes.extend(with_authentication(router.routes, app.state.services.keyring))
        return app

    return build


def test_another_project_is_as_if_it_were_not_there(
    project_app: Callable[[Path | None], FastAPI], serve_app: ServeApp, path: Path
) -> None:
    key, token = keys.create(path, ["read"], project="mine")
    headers = {**bearer(token), "X-Request-Id": "r"}
    with serve_app(project_app(path)) as client:
        assert client.get("/v1/projects/mine/things", headers=headers).status_code == 200
        theirs = client.get("/v1/projects/theirs/things", headers=headers)
        nobodys = client.get("/v1/projects/nobodys/things", headers=headers)
        assert theirs.status_code == 404
        assert theirs.content == nobodys.content
        assert client.get("/v1/things/mine-1", headers=headers).json() == {
            "key": key.id,
            "scopes": ["read"],
            "project": "mine",
        }
        by_id = client.get("/v1/things/theirs-1", headers=headers)
        assert by_id.status_code == 404
        assert by_id.json()["detail"] == Problem("not_found").detail


def test_without_keys_everybody_may_do_everything(
    project_app: Callable[[Path | None], FastAPI], serve_app: ServeApp
) -> None:
    with serve_app(project_app(None)) as client:
        assert client.get("/v1/projects/theirs/things").status_code == 200
        access = client.get("/v1/things/theirs-1").json()
    assert access == {"key": None, "scopes": sorted(SCOPES), "project": None}


def test_without_keys_a_route_is_served_as_it_is(app: FastAPI) -> None:
    routes = [*catalog.router.routes, *evaluate.router.routes]
    declared = set(map(id, routes))
    assert declared == set(map(id, with_authentication(routes, None)))
    # Even in a process in which another application asks for keys.
    assert not declared & {id(route) for route in app.routes}


# The contract


def test_the_document_says_which_scope_an_operation_needs(keyed: httpx.Client) -> None:
    document = keyed.get("/openapi.json").json()
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert ("security" in operation) != (path in PUBLIC)
            assert {"401", "403"} <= set(operation["responses"]) or path in PUBLIC
    assert document["paths"]["/v1/evaluate"]["post"]["security"] == [{"key": ["evaluate"]}]


def test_without_keys_the_document_is_that_of_a_service_with_optional_ones(
    keyed: httpx.Client,
) -> None:
    document, other = create_app(Settings()).openapi(), keyed.get("/openapi.json").json()
    assert document["components"] == other["components"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            needed = other["paths"][path][method]
            assert operation["responses"] == needed["responses"]
            assert operation.get("security", [{}]) == [{}, *needed.get("security", [])]


# The process


def test_the_service_follows_the_file(serve: Serve, tmp_path: Path) -> None:
    path, log = tmp_path / "keys.json", tmp_path / "log"
    with serve(log=log, RPRIME_KEYS_FILE=str(path)) as client:

        def status(token: str) -> int:
            return client.get(CLOSED, headers=bearer(token)).status_code

        assert client.get("/livez").status_code == 200
        assert client.get(CLOSED).status_code == 401
        assert "rprime keys create makes it" in log.read_text()
        key, token = keys.create(path, ["read"])
        assert status(token) == 200
        path.write_bytes(path.read_bytes()[:-9])
        assert (status(token), client.get(CLOSED).status_code) == (200, 401)
        assert f"{path} is damaged" in log.read_text()
        path.unlink()
        assert status(token) == 401
        key, token = keys.create(path, ["read"])
        assert status(token) == 200
        keys.revoke(path, key.id)
        assert status(token) == 401


def test_a_damaged_file_stops_the_start(rprime: Run, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text("{")
    done = rprime("serve", RPRIME_KEYS_FILE=str(path))
    assert done.returncode == 2
    assert f"{path} is damaged" in done.stderr
    assert "Traceback" not in done.stderr


def test_with_keys_it_listens_on_any_address(serve: Serve, path: Path) -> None:
    address = "0.0.0.0"  # noqa: S104 - this is what keys are for
    with serve(RPRIME_HOST=address, RPRIME_KEYS_FILE=str(path)) as client:
        assert client.get(CLOSED).status_code == 401


def test_insecure_does_not_switch_keys_off(serve: Serve, path: Path) -> None:
    with serve("--insecure", RPRIME_KEYS_FILE=str(path)) as client:
        assert client.get(CLOSED).status_code == 401


@pytest.mark.slow
def test_every_worker_asks_for_keys(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key, token = keys.create(path, ["read"])
    variables = {"RPRIME_KEYS_FILE": str(path), "RPRIME_STORE": "none"}
    with serve("--workers", "2", **variables) as client:
        close = {**bearer(token), "Connection": "close"}
        assert {client.get(CLOSED, headers=close).status_code for _ in range(20)} == {200}
        keys.revoke(path, key.id)
        assert {client.get(CLOSED, headers=close).status_code for _ in range(20)} == {401}


@pytest.mark.slow
def test_no_key_is_in_the_log(serve: Serve, tmp_path: Path) -> None:
    path, log = tmp_path / "keys.json", tmp_path / "log"
    _, token = keys.create(path, ["evaluate"])
    key, revoked = keys.create(path, ["evaluate"])
    keys.revoke(path, key.id)
    sent = [token, revoked, token[:-4] + "beef", f"rp_{'0' * 12}_{'d' * 48}", "canary"]
    with serve(log=log, RPRIME_KEYS_FILE=str(path)) as client:
        for credential, method in product(sent, ("GET", "POST", "HEAD")):
            for where in ("/evaluate", CLOSED, "/v1/projects/p/trend", "/nowhere"):
                client.request(method, where, headers=bearer(credential), content=b"{")
    written = log.read_text()
    events = [json.loads(line) for line in written.splitlines()]
    assert {"key_refused", "keys_read"} <= {event["event"] for event in events}
    for credential in sent:
        assert credential.rpartition("_")[2][:20] not in written
