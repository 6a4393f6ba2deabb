"""Who changed what, and who was refused, from where."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from rprime.auth import keys
from tests.command import Run
from tests.history_service import matrix

Serve = Callable[..., AbstractContextManager[httpx.Client]]
Events = list[dict[str, Any]]
PROJECT = "shop"


class Audited:
    """A service with keys, and what its log says."""

    def __init__(self, client: httpx.Client, log: Path, tokens: dict[str, str]) -> None:
        self.client, self.log, self.tokens = client, log, tokens

    def ask(self, key: str, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.tokens[key]}", **more.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **more)

    def events(self, name: str, request_id: str) -> Events:
        """Return the events of a request; its answer may arrive before its line."""
        deadline = 200
        for _ in range(deadline):
            lines = [json.loads(line) for line in self.log.read_text().splitlines()]
            records = [e for e in lines if e["event"] == name and e.get("request_id") == request_id]
            if records:
                return records
            self.client.get("/livez")
        return []


@contextmanager
def audited(serve: Serve, folder: Path, **variables: str) -> Iterator[Audited]:
    path = folder / "keys.json"
    tokens = {
        "writer": keys.create(path, ["evaluate", "write"])[1],
        "reader": keys.create(path, ["read"])[1],
        "other": keys.create(path, ["evaluate", "write"], project="other")[1],
        "admin": keys.create(path, ["admin"])[1],
    }
    revoked, tokens["revoked"] = keys.create(path, ["admin"])
    keys.revoke(path, revoked.id)
    with serve(log=folder / "log", RPRIME_KEYS_FILE=str(path), **variables) as client:
        # The address is printed before the application starts and reads the keys.
        client.get("/livez")
        yield Audited(client, folder / "log", tokens)


@pytest.fixture(scope="module")
def service(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    with audited(serve, tmp_path_factory.mktemp("audited")) as audit:
        yield audit


def key_id(token: str) -> str:
    return token.split("_")[1]


def put(service: Audited, version: str, **headers: str) -> httpx.Response:
    body = matrix(project=PROJECT, version=version)
    return service.ask("writer", "POST", "/evaluate", json=body, headers=headers)


def changes(service: Audited) -> Iterator[tuple[str, str, httpx.Response]]:
    """Change everything that can be changed; yield the key, the route and the answer."""
    stored = put(service, "1")
    yield "writer", "/evaluate", stored
    evaluation = stored.json()["id"]
    alias = f"/v1/projects/{PROJECT}/aliases/production"
    target = {"json": {"evaluation": evaluation}, "headers": {"If-None-Match": "*"}}
    route = "/v1/projects/{project}/aliases/{alias}"
    yield "writer", route, service.ask("writer", "PUT", alias, **target)
    yield "writer", route, service.ask("writer", "DELETE", alias, headers={"If-Match": "*"})
    route = "/v1/evaluations/{evaluation}"
    yield "writer", route, service.ask("writer", "DELETE", f"/v1/evaluations/{evaluation}")
    batch = {"requests": [matrix(project=PROJECT, version="2"), matrix(project=None)]}
    answer = service.ask("writer", "POST", "/v1/evaluate/batch", json=batch)
    yield "writer", "/v1/evaluate/batch", answer
    project = f"/v1/projects/{PROJECT}"
    answer = service.ask("writer", "PUT", project, json={"badge_public": True})
    yield "writer", "/v1/projects/{project}", answer
    put(service, "3")
    answer = service.ask("writer", "POST", f"{project}/purge", json={"keep_last": 1})
    yield "writer", "/v1/projects/{project}/purge", answer
    yield "writer", "/v1/projects/{project}", service.ask("writer", "DELETE", project)


def test_every_change_says_who_changed_which_project_from_where(service: Audited) -> None:
    for key, route, answer in changes(service):
        assert answer.is_success, answer.text
        event, *others = service.events("change", answer.headers["x-request-id"])
        assert not others
        assert event["key"] == key_id(service.tokens[key])
        assert event["projects"] == [PROJECT]
        assert event["client"] == "127.0.0.1"
        assert (event["method"], event["route"]) == (answer.request.method, route)
        assert event["status"] == answer.status_code


def test_an_import_is_a_change(service: Audited) -> None:
    put(service, "4")
    export = service.ask("admin", "GET", "/v1/export").content
    headers = {"Content-Type": "application/x-ndjson"}
    answer = service.ask("admin", "POST", "/v1/import", content=export, headers=headers)
    assert answer.status_code == 200, answer.text
    (event,) = service.events("change", answer.headers["x-request-id"])
    assert event["key"] == key_id(service.tokens["admin"])


def test_what_changes_nothing_is_no_change(service: Audited) -> None:
    project = f"/v1/projects/{PROJECT}"
    first = put(service, "5")
    unchanged = [
        service.ask("writer", "GET", f"/v1/evaluations/{first.json()['id']}"),
        service.ask("writer", "POST", "/evaluate", json=matrix(project=None)),
        service.ask("writer", "POST", f"{project}/purge", json={"keep_last": 9, "dry_run": True}),
        service.ask("writer", "DELETE", f"{project}/aliases/none", headers={"If-Match": "*"}),
        put(service, "5"),
    ]
    assert [answer.status_code for answer in unchanged] == [200, 200, 200, 412, 200]
    put(service, "6", **{"X-Request-Id": "last"})
    assert service.events("change", "last")
    lines = [json.loads(line) for line in service.log.read_text().splitlines()]
    ids = {line.get("request_id") for line in lines if line["event"] == "change"}
    assert not ids & {answer.headers["x-request-id"] for answer in unchanged}


def refusals(service: Audited) -> Iterator[tuple[str, str | None, httpx.Response]]:
    """Ask with keys that are refused; yield the key, the project and the answer."""
    yield "revoked", None, service.ask("revoked", "GET", "/v1/projects")
    project = f"/v1/projects/{PROJECT}"
    yield "reader", PROJECT, service.ask("reader", "DELETE", project)
    yield "other", PROJECT, service.ask("other", "DELETE", project)
    body = matrix(project=PROJECT)
    yield "other", PROJECT, service.ask("other", "POST", "/evaluate", json=body)
    evaluation = put(service, "7").json()["id"]
    answer = service.ask("other", "DELETE", f"/v1/evaluations/{evaluation}")
    yield "other", PROJECT, answer
    yield "other", PROJECT, service.ask("other", "GET", f"/ui/projects/{PROJECT}")


def test_every_refused_key_is_named_by_its_id(service: Audited) -> None:
    for key, project, answer in refusals(service):
        assert answer.status_code in {401, 403, 404}
        (event,) = service.events("key_refused", answer.headers["x-request-id"])
        assert event["key"] == key_id(service.tokens[key])
        assert event.get("project") == project
        assert event["client"] == "127.0.0.1"
        assert event["status"] == answer.status_code
        assert event["route"].count("/") >= 1
        assert event["reason"]


def test_a_guessed_key_is_named_and_its_secret_is_not(service: Audited) -> None:
    guessed = "rp_0123456789ab_" + "7" * 48
    headers = {"Authorization": f"Bearer {guessed}"}
    answer = service.client.get("/v1/projects", headers=headers)
    (event,) = service.events("key_refused", answer.headers["x-request-id"])
    assert event["key"] == "0123456789ab"
    headers = {"Authorization": "Bearer no key at all"}
    answer = service.client.get("/v1/projects", headers=headers)
    (event,) = service.events("key_refused", answer.headers["x-request-id"])
    assert event["key"] is None
    page = service.client.get("/ui/sign-in").text
    [token] = re.findall(r'name="csrf_token" value="([^"]+)"', page)
    answer = service.client.post("/ui/sign-in", data={"csrf_token": token, "key": guessed})
    (event,) = service.events("key_refused", answer.headers["x-request-id"])
    told = {name: event[name] for name in ("key", "project", "method", "route", "status")}
    assert told == {
        "key": "0123456789ab",
        "project": None,
        "method": "POST",
        "route": "/ui/sign-in",
        "status": 403,
    }
    log = service.log.read_text()
    assert "7" * 48 not in log
    assert "no key at all" not in log
    for token in service.tokens.values():
        assert token.split("_")[2] not in log


def test_a_service_logs_which_keys_changed(serve: Serve, tmp_path: Path) -> None:
    with audited(serve, tmp_path) as service:
        file = tmp_path / "keys.json"
        added, service.tokens["added"] = keys.create(file, ["read"])
        assert service.ask("added", "GET", "/v1/projects").is_success
        keys.revoke(file, added.id)
        assert service.ask("added", "GET", "/v1/projects").status_code == 401
        document = json.loads(file.read_text())
        gone = document["keys"].pop(0)["id"]
        document["keys"][0]["scopes"] = ["admin"]
        file.write_text(json.dumps(document))
        assert service.ask("reader", "DELETE", f"/v1/projects/{PROJECT}").status_code == 404
        log = [json.loads(line) for line in service.log.read_text().splitlines()]
    read = [event for event in log if event["event"] == "keys_read"]
    parts = ("added", "changed", "removed")
    assert [[event.get(part) for part in parts] for event in read] == [
        [None, None, None],
        [[added.id], [], []],
        [[], [added.id], []],
        [[], [key_id(service.tokens["reader"])], [gone]],
    ]


FORWARDED = [
    ({"X-Forwarded-For": "203.0.113.9"}, "203.0.113.9"),
    ({"X-Forwarded-For": "6.6.6.6, 203.0.113.9, 10.1.2.3"}, "203.0.113.9"),
    ({"X-Forwarded-For": "203.0.113.9:5678"}, "203.0.113.9"),
    ({"X-Forwarded-For": "[2001:db8::7]:5678"}, "2001:db8::7"),
    ({"X-Forwarded-For": "::ffff:203.0.113.9"}, "203.0.113.9"),
    ({"X-Forwarded-For": "10.1.1.1, 10.1.2.3"}, "10.1.1.1"),
    ({"X-Forwarded-For": "203.0.113.9, unknown"}, "127.0.0.1"),
    ({"X-Forwarded-For": "203.0.113.9\t, who"}, "127.0.0.1"),
    ({"Forwarded": 'for=6.6.6.6, For="[2001:db8::7]:80";proto=https;by=10.1.1.1'}, "2001:db8::7"),
    ({"Forwarded": "for=203.0.113.9;proto=https, for=10.1.2.3"}, "203.0.113.9"),
    ({"Forwarded": "for=_hidden"}, "127.0.0.1"),
    ({"Forwarded": "for=6.6.6.6", "X-Forwarded-For": "203.0.113.9"}, "203.0.113.9"),
    ({}, "127.0.0.1"),
]
"""What a proxy of 127.0.0.1 sends, and whose request it is with 127.0.0.0/8 and 10.0.0.0/8."""


@pytest.fixture(scope="module")
def proxied(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    trusted = {"RPRIME_TRUSTED_PROXIES": "127.0.0.0/8, 10.0.0.0/8"}
    with audited(serve, tmp_path_factory.mktemp("proxied"), **trusted) as audit:
        yield audit


@pytest.mark.parametrize(("headers", "address"), FORWARDED, ids=str)
def test_a_trusted_proxy_names_the_client(
    proxied: Audited, headers: dict[str, str], address: str
) -> None:
    answer = proxied.ask("revoked", "GET", "/v1/projects", headers=headers)
    (event,) = proxied.events("key_refused", answer.headers["x-request-id"])
    assert event["client"] == address


def test_the_lines_of_a_header_are_one_list(proxied: Audited) -> None:
    lines = [("X-Forwarded-For", "6.6.6.6"), ("X-Forwarded-For", "203.0.113.9, 10.1.1.1")]
    key = ("Authorization", f"Bearer {proxied.tokens['revoked']}")
    answer = proxied.client.get("/v1/projects", headers=[key, *lines])
    (event,) = proxied.events("key_refused", answer.headers["x-request-id"])
    assert event["client"] == "203.0.113.9"


@pytest.mark.parametrize(("headers", "_"), FORWARDED, ids=str)
def test_what_another_peer_forwards_is_ignored(
    service: Audited, headers: dict[str, str], _: str
) -> None:
    answer = service.ask("revoked", "GET", "/v1/projects", headers=headers)
    (event,) = service.events("key_refused", answer.headers["x-request-id"])
    assert event["client"] == "127.0.0.1"


def test_a_wrong_network_is_refused(rprime: Run) -> None:
    done = rprime("serve", RPRIME_TRUSTED_PROXIES="10.0.0.0/99")
    assert done.returncode == 2
    assert "RPRIME_TRUSTED_PROXIES" in done.stderr
