"""Who may keep an answer, who sees a badge, and which charsets and clients are served."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from rprime.app import create_app
from rprime.auth import keys
from rprime.settings import Settings
from tests.history_service import ServeApp, matrix

REQUEST = {"confusion_matrix": [[8, 2], [1, 9]]}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys") / "keys.json"


@pytest.fixture(scope="module")
def admin(path: Path) -> dict[str, str]:
    return {"Authorization": f"Bearer {keys.create(path, ['admin'])[1]}"}


@pytest.fixture(scope="module")
def service(path: Path, admin: dict[str, str], serve_app: ServeApp) -> Iterator[httpx.Client]:
    settings = Settings(keys_file=path, store=f"sqlite:///{path.parent}/rprime.db")
    with serve_app(create_app(settings)) as client:
        answer = client.post("/v1/evaluate", json=matrix(), headers=admin)
        assert answer.status_code == 201
        assert client.put(
            "/v1/projects/pets/aliases/champion",
            json={"evaluation": answer.json()["id"]},
            headers=admin | {"If-None-Match": "*"},
        ).is_success
        yield client


# Caches


def test_no_cache_shares_a_private_answer(service: httpx.Client, admin: dict[str, str]) -> None:
    project = "/v1/projects/pets"
    identifier = service.get(f"{project}/evaluations", headers=admin).json()["items"][0]["id"]
    evaluation = f"/v1/evaluations/{identifier}"
    for where in (
        "/v1/projects",
        f"{project}/evaluations",
        f"{project}/aliases",
        f"{project}/aliases/champion",
        f"{project}/aliases/champion/history",
        f"{project}/trend?index=accuracy",
        f"{project}/figures/trend.svg?index=accuracy",
        evaluation,
        f"{evaluation}/report.md",
        f"{evaluation}/verdict",
        f"{evaluation}/figures/confusion.svg",
        "/v1/export",
        "/v1/projects/none/evaluations",
    ):
        for headers in (admin, {}):
            answer = service.get(where, headers=headers)
            assert answer.headers["cache-control"] == "private, no-cache", where
            vary = {name.strip() for name in answer.headers["vary"].split(",")}
            assert {"Authorization", "Cookie"} <= vary, where
    posted = service.post("/evaluate", json=REQUEST, headers=admin)
    assert posted.headers["cache-control"] == "private, no-cache"
    etag = service.get(evaluation, headers=admin).headers["etag"]
    again = service.get(evaluation, headers=admin | {"If-None-Match": etag})
    assert (again.status_code, again.headers["cache-control"]) == (304, "private, no-cache")


def test_what_is_public_may_be_shared(service: httpx.Client, admin: dict[str, str]) -> None:
    catalog = service.get("/v1/indices", headers=admin).headers
    assert (catalog["cache-control"], catalog["vary"]) == ("max-age=300", "Accept-Encoding")
    static = service.get("/static/favicon.svg").headers
    assert "cache-control" not in static
    assert static.get("vary", "Accept-Encoding") == "Accept-Encoding"


# Aliases


def test_a_change_of_an_alias_names_the_key(
    service: httpx.Client, admin: dict[str, str], path: Path
) -> None:
    def by(alias: str) -> list[str]:
        answer = service.get(f"/v1/projects/pets/aliases/{alias}/history", headers=admin)
        return [change["by"] for change in answer.json()["items"]]

    assert by("champion") == [admin["Authorization"].split("_")[1]]
    _, token = keys.create(path, ["write"], name="nightly")
    headers = {"Authorization": f"Bearer {token}", "If-None-Match": "*"}
    target = service.get("/v1/projects/pets/aliases/champion", headers=admin).json()["evaluation"]
    where = "/v1/projects/pets/aliases/stable"
    assert service.put(where, json={"evaluation": target}, headers=headers).status_code == 201
    etag = service.get(where, headers=admin).headers["ETag"]
    assert service.delete(where, headers=admin | {"If-Match": etag}).status_code == 204
    assert by("stable") == [by("champion")[0], "nightly"]


# Badges


def test_a_public_badge_is_for_every_caller(service: httpx.Client, admin: dict[str, str],
                                            path: Path) -> None:  # fmt: skip
    def status(**options: object) -> int:
        _, token = keys.create(path, **options)  # type: ignore[arg-type] # a test passes what it may
        headers = {"Authorization": f"Bearer {token}"}
        return service.get("/v1/projects/pets/badge.svg", headers=headers).status_code

    callers = ({"scopes": ["read"], "project": "other"}, {"scopes": ["evaluate"]})
    assert [status(**caller) for caller in callers] == [404, 403]
    public = {"badge_public": True}
    assert service.put("/v1/projects/pets", json=public, headers=admin).is_success
    assert [status(**caller) for caller in callers] == [200, 200]
    assert service.get("/v1/projects/pets/badge.json").status_code == 200
    wrong = {"Authorization": "Bearer x"}
    assert service.get("/v1/projects/pets/badge.svg", headers=wrong).status_code == 401
    assert service.put("/v1/projects/pets", json={"badge_public": False}, headers=admin).is_success
    assert service.get("/v1/projects/pets/badge.svg").status_code == 401


# Charsets


@pytest.mark.parametrize("charset", ["utf-16", '"UTF-16LE"', "iso-8859-1", "'latin-1'", ""])
@pytest.mark.parametrize("kind", ["application/json", "text/csv"])
def test_another_charset_is_refused(client: httpx.Client, charset: str, kind: str) -> None:
    content = json.dumps(REQUEST).encode() if "json" in kind else b"y_true,y_pred\na,a\nb,b\n"
    headers = {"Content-Type": f"{kind}; charset={charset}"}
    answer = client.post("/evaluate", content=content, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert "charset=utf-8" in answer.json()["detail"]


@pytest.mark.parametrize("parameters", ["", "; charset=UTF-8", ';charset="utf-8"', "; x=y", ";"])
def test_utf_8_is_accepted(client: httpx.Client, parameters: str) -> None:
    headers = {"Content-Type": f"application/json{parameters}"}
    answer = client.post("/evaluate", content=json.dumps(REQUEST).encode(), headers=headers)
    assert answer.status_code == 200


# Half-closed clients


def sent_and_closed(base: httpx.URL, content: bytes) -> bytes:
    with socket.create_connection((base.host, base.port or 0), timeout=30) as connection:
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def posted(content: bytes) -> bytes:
    head = b"POST /evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head + b"Content-Length: %d\r\n\r\n%b" % (len(content), content)


@pytest.mark.parametrize("items", [10, 20_000])
def test_a_client_that_closes_its_side_gets_its_answer(client: httpx.Client, items: int) -> None:
    labels = ["cat", "dog"] * items
    request = posted(json.dumps({"y_true": labels, "y_pred": labels}).encode())
    answer = sent_and_closed(client.base_url, request)
    while answer.startswith(b"HTTP/1.1 100 "):  # asks whether the client is still there
        answer = answer.partition(b"\r\n\r\n")[2]
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"accuracy"' in answer


def test_pipelined_requests_are_all_answered(client: httpx.Client) -> None:
    answer = sent_and_closed(client.base_url, posted(json.dumps(REQUEST).encode()) * 3)
    assert answer.count(b"HTTP/1.1 200 ") == 3


def test_half_a_request_gets_none(client: httpx.Client) -> None:
    request = posted(json.dumps(REQUEST).encode())
    for part in (request[:20], request[:-3], b""):
        assert b" 200 " not in sent_and_closed(client.base_url, part)
