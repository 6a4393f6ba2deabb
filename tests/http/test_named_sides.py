"""Both sides of a comparison name stored evaluations in the same ways."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rprime.auth import keys
from rprime.client.clients import Client
from tests.history_service import ServeApp, keep, keeping, labels, matrix

Json = dict[str, Any]


@pytest.fixture
def client(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


@pytest.fixture
def ids(client: httpx.Client) -> tuple[str, str]:
    """Return the ids of version 1, the champion, and of version 2 on a branch, which failed."""
    old = keep(client, labels(1, 0.1, model="svc", version="1", branch="main"))["id"]
    alias = "/v1/projects/pets/aliases/champion"
    client.put(alias, json={"evaluation": old}, headers={"If-None-Match": "*"})
    gates = {"rules": [{"index": "accuracy", "min_value": 0.99}]}
    new = keep(client, labels(2, 0.4, model="svc", version="2", branch="dev", gates=gates))["id"]
    return old, new


def compared(client: httpx.Client, candidate: Json, baseline: Json, status: int = 200) -> Json:
    answer = client.post("/v1/compare", json={"candidate": candidate, "baseline": baseline})
    assert answer.status_code == status, answer.text
    document: Json = answer.json()
    return document


@pytest.mark.parametrize("side", ["candidate", "baseline"])
@pytest.mark.parametrize(
    ("name", "is_old"),
    [
        ({"version": "1"}, True),
        ({"version": "2", "model": "svc"}, False),
        ({"alias": "champion"}, True),
        ({"branch": "main"}, True),
        ({"branch": "main", "model": "svc"}, True),
    ],
)
def test_each_name_fits_each_side(
    client: httpx.Client, ids: tuple[str, str], side: str, name: Json, is_old: bool
) -> None:
    other = {"evaluation": ids[is_old]}
    sides = {"candidate": other, "baseline": other, side: {**name, "project": "pets"}}
    answer = compared(client, sides["candidate"], sides["baseline"])
    resolved = {"candidate": answer["candidate"], "baseline": answer["comparison"]["baseline"]}
    assert resolved[side]["resolved"] == ids[not is_old]
    assert resolved[side]["requested"] == {**name, "project": "pets"}


def test_the_latest_candidate_is_the_newest_and_the_latest_baseline_did_not_fail(
    client: httpx.Client, ids: tuple[str, str]
) -> None:
    answer = compared(client, {"latest": True, "project": "pets"}, {"latest": True})
    assert answer["candidate"]["resolved"] == ids[1]
    assert answer["comparison"]["baseline"]["resolved"] == ids[0]
    with Client(str(client.base_url)) as python:
        comparison = python.compare({"latest": True, "project": "pets"}, {"alias": "champion"})
    assert comparison.candidate is not None
    assert comparison.candidate.resolved == ids[1]


def test_a_baseline_may_be_of_another_project(client: httpx.Client, ids: tuple[str, str]) -> None:
    elsewhere = {"version": "1", "model": "svc", "project": "pets"}
    answer = keep(client, labels(3, 0.1, project="wild", baseline=elsewhere))
    assert answer["comparison"]["baseline"]["resolved"] == ids[0]
    evidence = labels(3, 0.1, project=None, indices=None)
    answer = compared(client, evidence, elsewhere)
    assert answer["comparison"]["baseline"]["resolved"] == ids[0]
    assert "candidate" not in answer


def test_a_candidate_that_does_not_exist_is_not_found(
    client: httpx.Client, ids: tuple[str, str]
) -> None:
    keep(client, matrix(model="tree", version="1"))
    baseline = {"evaluation": ids[0]}
    for name, member, text in (
        ({"version": "7", "model": "svc"}, "version", "Known versions: `2`, `1`"),
        ({"version": "1"}, "version", "`model` names one: `svc`, `tree`"),
        ({"alias": "champoin"}, "alias", "The nearest aliases: `champion`"),
        ({"branch": "dve", "model": "svc"}, "branch", "Known branches: `dev`, `main`"),
        ({"latest": True, "project": "pest"}, "project", "You have no such project."),
        ({"evaluation": "01k9d3hv5gw2zj4t8x6c7m1n0p"}, "evaluation", "no evaluation with the id"),
    ):
        problem = compared(client, {"project": "pets", **name}, baseline, 404)
        [error] = problem["errors"]
        assert (problem["code"], error["pointer"]) == (
            "candidate_not_found",
            f"/candidate/{member}",
        )
        assert text in problem["detail"]


def test_a_key_names_no_evaluations_of_other_projects(serve_app: ServeApp, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    with keeping(serve_app, tmp_path, keys_file=path) as client:
        admin, reader, evaluator = (
            {"Authorization": f"Bearer {token}"}
            for _, token in (
                keys.create(path, ["admin"]),
                keys.create(path, ["evaluate", "read"], project="wild"),
                keys.create(path, ["evaluate"]),
            )
        )
        client.post("/v1/evaluate", json=labels(1, version="1"), headers=admin).raise_for_status()
        name = {"version": "1", "project": "pets"}
        for sides in ({"candidate": name}, {"baseline": name}):
            body = {"candidate": matrix(project=None), "baseline": matrix(project=None), **sides}
            for side in body.values():
                side.pop("indices", None)
            refused = client.post("/v1/compare", json=body, headers=reader)
            absent = client.post(
                "/v1/compare",
                json={k: {**v, "project": "none"} if v is name else v for k, v in body.items()},
                headers=reader,
            )
            assert (refused.status_code, refused.json()["detail"]) == (404, absent.json()["detail"])
        wild = matrix(project="wild", baseline=name)
        assert client.post("/v1/evaluate", json=wild, headers=reader).status_code == 404
        assert client.post("/v1/evaluate", json=wild, headers=evaluator).status_code == 403
