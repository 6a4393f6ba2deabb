"""What a key may read of the history by an id, over real connections."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rprime.app import create_app
from rprime.auth import keys
from rprime.settings import Settings
from tests.history_service import ServeApp, matrix

RULE = {"rules": [{"index": "accuracy", "max_drop": 0.5}]}
Json = dict[str, Any]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys") / "keys.json"


@pytest.fixture(scope="module")
def service(path: Path, serve_app: ServeApp) -> Iterator[httpx.Client]:
    keys.create(path, ["admin"])
    settings = Settings(keys_file=path, store=f"sqlite:///{path.parent}/rprime.db")
    with serve_app(create_app(settings)) as client:
        yield client


@pytest.fixture(scope="module")
def admin(path: Path, service: httpx.Client) -> dict[str, str]:  # noqa: ARG001 - it reads the file
    return bearer(keys.create(path, ["admin"])[1])


@pytest.fixture(scope="module")
def identifier(service: httpx.Client, admin: dict[str, str]) -> str:
    answer = service.post("/v1/evaluate", json=matrix(version="1"), headers=admin)
    assert answer.status_code == 201
    return str(answer.json()["id"])


def by_id(identifier: str) -> list[tuple[str, Json]]:
    """Return a request for each place where a body may name an evaluation by its id."""
    reference, evidence = {"evaluation": identifier}, matrix(project=None)
    del evidence["indices"]
    named = matrix(6, baseline=reference)
    anchored = matrix(7, gates=RULE | {"anchor": reference}, baseline={"version": "1"})
    return [
        ("/v1/compare", {"candidate": reference, "baseline": reference}),
        ("/v1/compare", {"candidate": evidence, "baseline": reference}),
        ("/v1/compare", {"candidate": reference, "baseline": evidence}),
        ("/evaluate", named),
        ("/v1/evaluate", anchored),
        ("/v1/evaluate/batch", {"requests": [named, anchored]}),
    ]


@pytest.mark.parametrize("place", range(6))
def test_only_who_may_read_names_an_evaluation_by_its_id(
    service: httpx.Client, path: Path, identifier: str, place: int
) -> None:
    where, content = by_id(identifier)[place]
    for project in (None, "pets"):
        _, token = keys.create(path, ["evaluate"], project=project)
        answer = service.post(where, json=content, headers=bearer(token))
        documents = [result["problem"] for result in answer.json().get("results", [])] or [
            answer.json()
        ]
        assert {document["code"] for document in documents} == {"forbidden"}
        assert {document["detail"] for document in documents} == {"The key needs the scope read."}
        _, reader = keys.create(path, ["evaluate", "read"], project=project)
        answer = service.post(where, json=content, headers=bearer(reader))
        assert answer.status_code in {200, 201}, answer.text


@pytest.mark.parametrize("place", range(3))
def test_a_key_of_another_project_reads_none_by_its_id(
    service: httpx.Client, path: Path, identifier: str, place: int
) -> None:
    where, content = by_id(identifier)[place]
    _, token = keys.create(path, ["evaluate", "read", "write"], project="other")
    answer = service.post(where, json=content, headers=bearer(token))
    assert answer.status_code in {404, 422}
    for name in ("accuracy", "pets"):
        assert name not in answer.text
    unknown = service.post(
        where, content=answer.request.content.replace(identifier.encode(), b"0" * 26),
        headers=bearer(token) | {"Content-Type": "application/json"},
    )  # fmt: skip
    alike = {"request_id": None}
    assert unknown.json() | alike == answer.json() | alike


def test_an_alias_of_the_own_project_needs_no_more(
    service: httpx.Client, path: Path, identifier: str
) -> None:
    assert identifier
    _, token = keys.create(path, ["evaluate"], project="pets")
    content = matrix(8, baseline={"version": "1"}, gates=RULE)
    assert service.post("/v1/evaluate", json=content, headers=bearer(token)).status_code == 201
