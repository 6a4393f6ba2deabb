"""Projects, aliases and indices come in pages, and refuse what they do not know."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.history_service import ServeApp, keep, keeping, matrix


@pytest.fixture
def client(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


def pages(client: httpx.Client, path: str, **query: Any) -> list[list[dict[str, Any]]]:
    """Return all pages of a list."""
    found, cursor = [], None
    while True:
        given = query if cursor is None else {**query, "cursor": cursor}
        answer = client.get(path, params=given)
        assert answer.status_code == 200, answer.text
        found.append(answer.json()["items"])
        if (cursor := answer.json()["next_cursor"]) is None:
            return found


def test_projects_and_aliases_come_in_pages(client: httpx.Client) -> None:
    for name in ("c", "a", "e", "b"):
        keep(client, matrix(project=name))
    identifier = keep(client, matrix(project="d"))["id"]
    for name in ("y", "x", "z"):
        path = f"/v1/projects/d/aliases/{name}"
        body = {"evaluation": identifier}
        client.put(path, json=body, headers={"If-None-Match": "*"}).raise_for_status()
    names = [[one["name"] for one in page] for page in pages(client, "/v1/projects", limit=2)]
    assert names == [["a", "b"], ["c", "d"], ["e"]]
    aliases = pages(client, "/v1/projects/d/aliases", limit=2)
    assert [[one["alias"] for one in page] for page in aliases] == [["x", "y"], ["z"]]


def test_indices_are_filtered_and_come_in_pages(client: httpx.Client) -> None:
    [every] = pages(client, "/v1/indices")
    parts = pages(client, "/v1/indices", limit=50)
    assert [one for page in parts for one in page] == every
    [some] = pages(client, "/v1/indices", scope="class", family="core", q="Jaccard")
    expected = [one for one in every if one["scope"] == "class" and one["family"] == "core"]
    assert {one["key"] for one in some} < {one["key"] for one in expected}
    assert "jaccard" in {one["key"] for one in some}


@pytest.mark.parametrize("path", ["/v1/projects", "/v1/projects/d/aliases", "/v1/indices"])
def test_an_unknown_parameter_is_refused(client: httpx.Client, path: str) -> None:
    refused = client.get(path, params={"limt": 2})
    assert refused.status_code == 422
    [error] = refused.json()["errors"]
    assert error["pointer"] == "/query/limt"
