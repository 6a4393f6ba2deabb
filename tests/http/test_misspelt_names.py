"""A misspelt project, version, alias or branch is told with the nearest name, and never stored."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from rprime.auth import keys
from tests.command import Run
from tests.history_service import Json, ServeApp, keep, keeping, matrix

GATES = {"rules": [{"index": "accuracy", "max_drop": 0.02}]}
TABLE = {"confusion_matrix": [[90, 10], [5, 95]]}


@pytest.fixture
def store(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        for version in ("2024-spring", "2024-autumn"):
            keep(client, matrix(project="animals", model="svc", version=version))
        yield client


@pytest.mark.parametrize(
    "path",
    [
        *("evaluations", "trend", "leaderboard", "aliases", "badge.json", "badge.svg"),
        "figures/trend.svg",
    ],
)
def test_a_route_of_a_misspelt_project_names_the_nearest(store: httpx.Client, path: str) -> None:
    answer = store.get(f"/v1/projects/animal/{path}")
    assert answer.status_code == 404, answer.text
    assert "The nearest: `animals`." in answer.json()["detail"]
    assert "nearest" not in store.get(f"/v1/projects/zebra/{path}").json()["detail"]


@pytest.mark.parametrize("side", ["candidate", "baseline"])
def test_a_comparison_names_the_nearest_project(store: httpx.Client, side: str) -> None:
    stored = {"version": "2024-spring", "model": "svc", "project": "animal"}
    sides = {"candidate": TABLE, "baseline": TABLE} | {side: stored}
    answer = store.post("/v1/compare", json=sides)
    assert answer.status_code == 404, answer.text
    assert answer.json()["errors"][0]["pointer"] == f"/{side}/project"
    assert "The nearest: `animals`." in answer.json()["detail"]


@pytest.mark.parametrize(
    "more",
    [
        {"baseline": {"alias": "champion"}},
        {"baseline": {"latest": True}},
        {"gates": GATES | {"anchor": {"alias": "agreed"}}},
    ],
)
def test_no_evaluation_begins_a_misspelt_project_in_which_it_seeks_a_baseline(
    store: httpx.Client, more: Json
) -> None:
    answer = store.post("/v1/evaluate", json=matrix(project="Animals", model="svc", **more))
    assert answer.status_code == 404, answer.text
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/project", "baseline_not_found")
    assert "The nearest: `animals`." in error["detail"]
    projects = store.get("/v1/projects").json()["items"]
    assert [project["name"] for project in projects] == ["animals"]


def test_a_large_body_is_told_as_well(store: httpx.Client) -> None:
    items = ["cat", "dog"] * 40_000
    body = {"y_true": items, "y_pred": items, "project": "Animals", "baseline": {"latest": True}}
    answer = store.post("/v1/evaluate", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (404, "/project")


@pytest.mark.parametrize("project", ["zebra", "animals-2"])
def test_a_new_project_begins_without_a_baseline(store: httpx.Client, project: str) -> None:
    report = keep(store, matrix(project=project, gates=GATES, baseline={"alias": "champion"}))
    assert report["gate"]["verdict"] == "no_baseline"
    # Whoever means a name that is near another one says so by a first evaluation.
    keep(store, matrix(project="animal"))
    keep(store, matrix(8, project="animal", gates=GATES, baseline={"alias": "champion"}))


def test_a_misspelt_version_names_the_nearest(store: httpx.Client) -> None:
    named = {"version": "2024-sprin"}
    content = matrix(project="animals", model="svc", version="new", gates=GATES, baseline=named)
    answer = store.post("/v1/evaluate", json=content)
    assert answer.status_code == 404
    assert answer.json()["errors"][0]["pointer"] == "/baseline/version"
    assert "The nearest versions: `2024-spring`" in answer.json()["detail"]


def test_a_key_learns_of_no_project_that_it_may_not_see(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    file = tmp_path / "keys.json"
    tokens = (
        keys.create(file, ["admin"])[1],
        keys.create(file, ["evaluate"], project="Animals")[1],
    )
    every, one = ({"Authorization": f"Bearer {token}"} for token in tokens)
    with keeping(serve_app, tmp_path, keys_file=str(file)) as client:
        client.post("/v1/evaluate", json=matrix(project="animals"), headers=every)
        content = matrix(project="Animals", gates=GATES, baseline={"alias": "champion"})
        answer = client.post("/v1/evaluate", json=content, headers=one)
        assert answer.status_code == 201, answer.text
        assert "animals" not in answer.text


def test_the_command_ends_with_2(rprime: Run, store: httpx.Client, tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    file.write_bytes(httpx.Request("POST", "/", json=TABLE).content)
    there = ("--server", str(store.base_url), "--project", "animal", "--model", "svc")
    evaluated = rprime("evaluate", str(file), *there, "--baseline", "alias=champion")
    listed = rprime("history", "trend", *there[:4])
    for done in (evaluated, listed):
        assert done.returncode == 2, done.stderr
        assert "The nearest: `animals`" in done.stderr
