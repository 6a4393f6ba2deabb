"""The service on each database in turn, and two services on one PostgreSQL."""

import json
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from pathlib import Path

import httpx
import pytest

from rprime.store import open_store
from tests.history_service import ServeApp, keep, keeping, labels, matrix
from tests.services import NO_TLS
from tests.store import samples

RULES = {"rules": [{"index": "accuracy", "max_drop": 0.1}], "max_looks": 20}
Serve = Callable[..., AbstractContextManager[httpx.Client]]


def test_a_project_is_kept_compared_promoted_and_found(
    serve_app: ServeApp, tmp_path: Path, url: str
) -> None:
    with keeping(serve_app, tmp_path, store=url) as client:
        first = client.post("/evaluate", json=labels(1, version="1"))
        assert first.status_code == 201, first.text
        path = first.headers["location"]
        assert client.get(path).content == first.content
        alias = "/v1/projects/pets/aliases/champion"
        target = {"evaluation": first.json()["id"]}
        assert client.put(alias, json=target, headers={"If-None-Match": "*"}).status_code == 201
        second = labels(2, version="2", baseline={"alias": "champion"}, tags=["x"])
        assert keep(client, second)["comparison"]["pairing"] == "paired"
        assert keep(client, second, 200)["version"] == "2"
        page = client.get("/v1/projects/pets/evaluations?tag=x").json()
        assert [item["version"] for item in page["items"]] == ["2"]
        trend = client.get("/v1/projects/pets/trend?index=accuracy").json()
        assert [item["version"] for item in trend["items"]] == ["1", "2"]
        board = client.get("/v1/projects/pets/leaderboard?index=accuracy").json()
        assert sum(len(tier["versions"]) for tier in board["tiers"]) == 2
        assert client.get("/readyz").json()["store"] == "ok"
        assert client.delete(path).status_code == 409
        assert client.delete("/v1/projects/pets").status_code == 204
        assert client.get(path).status_code == 404


def test_one_key_makes_one_evaluation(serve_app: ServeApp, tmp_path: Path, url: str) -> None:
    with keeping(serve_app, tmp_path, store=url) as client:

        def post(_: int) -> httpx.Response:
            return client.post("/evaluate", json=labels(), headers={"Idempotency-Key": "k"})

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(post, range(16)))
        assert {answer.status_code for answer in answers} <= {201, 409}
        assert len({answer.content for answer in answers if answer.status_code == 201}) == 1
        assert client.get("/v1/projects").json()["items"][0]["evaluations"] == 1


def test_an_evaluation_of_the_future_is_told_at_the_start(serve: Serve, tmp_path: Path) -> None:
    path, log = tmp_path / "r.db", tmp_path / "log"
    store = open_store(f"sqlite:///{path}")
    future = f"1{samples.put(store, samples.evaluation(1)).result().id[1:]}"
    store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE evaluations SET id = ?", (future,))
    with serve(log=log, RPRIME_STORE=f"sqlite:///{path}") as client:
        assert client.get("/readyz").status_code == 200
    lines = map(json.loads, log.read_text().splitlines())
    [told] = [line for line in lines if line["event"] == "clock_behind"]
    assert told["evaluation"] == future


@pytest.mark.slow
def test_several_workers_share_a_database(serve: Serve, postgresql_url: str) -> None:
    with serve("--workers", "2", RPRIME_STORE=postgresql_url) as client:

        def post(number: int) -> int:
            # A connection of its own each, so that both workers get some.
            with httpx.Client(base_url=client.base_url, timeout=30, verify=NO_TLS) as alone:
                return int(keep(alone, labels(number, gates=RULES))["gate"]["look"])

        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(post, range(24))) == list(range(1, 25))
        assert client.get("/v1/projects").json()["items"][0]["evaluations"] == 24


@pytest.mark.slow
def test_two_services_share_a_database(serve: Serve, postgresql_url: str) -> None:
    with serve(RPRIME_STORE=postgresql_url) as first, serve(RPRIME_STORE=postgresql_url) as two:
        both = (first, two)

        def post(number: int) -> int:
            return int(keep(both[number % 2], labels(number, gates=RULES))["gate"]["look"])

        with ThreadPoolExecutor(8) as pool:
            looks = list(pool.map(post, range(16)))
        assert sorted(looks) == list(range(1, 17))
        answers = [
            client.post("/evaluate", json=matrix(), headers={"Idempotency-Key": "k"})
            for client in both
        ]
        assert answers[0].content == answers[1].content
        assert answers[1].headers["idempotency-replayed"] == "true"
        kept = answers[0].json()
        assert two.get(kept["links"]["self"]).json() == kept
        compared = keep(two, matrix(version="2", baseline={"evaluation": kept["id"]}))
        assert compared["comparison"]["baseline"]["resolved"] == kept["id"]
