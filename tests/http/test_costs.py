"""No request costs more than its route declares, and none takes what others need."""

import asyncio
import gzip
import json
import socket
import time
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path

import httpx
import pytest
from fastapi import APIRouter, Request
from fastapi.routing import APIRoute

from rprime.app import create_app
from rprime.auth.access import requires, with_authentication
from rprime.problems.problem import Problem
from rprime.server.cost import UndeclaredCostError, cost_of
from rprime.server.pools import Slots, Threads, check_time
from rprime.server.worker_limits import CPU_SECONDS
from rprime.settings import Limits, Settings
from tests.services import Serve, ServeApp
from tests.system.bombs import processor_seconds
from tests.waiting import gauge, wait_until

TABLE = [[60, 7, 1], [8, 70, 2], [3, 4, 90]]
INDICES = (
    *("r_prime", "r", "recall", "precision", "specificity", "negative_predictive_value"),
    *("prevalence", "predicted_prevalence", "f1", "f_beta", "jaccard", "kulczynski"),
    *("fowlkes_mallows", "icsi", "informedness", "markedness", "class_mcc", "g_mean"),
    *("class_balanced_accuracy", "lift", "detection_rate", "class_accuracy", "class_kappa"),
)


def gate(rules: int) -> dict[str, object]:
    named = [
        {"id": f"r{i}", "index": INDICES[i % 23], "classes": "all", "max_drop": 0.01 + i / 1e4}
        for i in range(rules)
    ]
    return {"confusion_matrix": TABLE, "gates": {"rules": named}}


def diagonal(k: int, count: int) -> dict[str, object]:
    return {"cells": [[j, j, count] for j in range(k)], "labels": [str(j) for j in range(k)]}


@pytest.fixture(scope="module")
def quick(serve: Serve) -> Iterator[httpx.Client]:
    """Yield a service with a history, two workers and short waits."""
    with serve(RPRIME_LIMITS_WAIT_SECONDS="0.5") as client:
        yield client


def test_every_route_declares_what_it_costs() -> None:
    app = create_app(Settings(store="none"))
    declared = {cost_of(route) for route in app.routes if isinstance(route, APIRoute)}
    assert declared == {"cheap", "store", "render", "heavy"}


def test_only_files_of_the_package_are_answered_without_a_declared_cost() -> None:
    routes = create_app(Settings(store="none")).routes
    others = [route for route in routes if not isinstance(route, APIRoute)]
    assert [getattr(route, "path", "") for route in others] == ["/static"]


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize(
    "path",
    [
        *("/openapi.json", "/docs", "/docs/problems", "/docs/operations.md", "/v1/indices"),
        *("/ui/evaluate", "/ui/indices", "/version", "/livez", "/readyz", "/metrics"),
        *("/docs/schemas", "/static/favicon.svg"),
    ],
)
def test_what_anybody_may_read_again_and_again_is_cheap(
    quick: httpx.Client, processes: dict[int, int], path: str, coding: str
) -> None:
    process, headers = processes[quick.base_url.port or 0], {"Accept-Encoding": coding}
    # What is read first may take longer: it is kept.
    assert quick.get(path, headers=headers).status_code == 200
    before, times = processor_seconds(process), 10
    for _ in range(times):
        assert quick.get(path, headers=headers).status_code == 200
    assert (processor_seconds(process) - before) / times < 0.05


def test_a_route_that_declares_no_cost_is_refused() -> None:
    router = APIRouter()

    @router.get("/free")
    async def free() -> None: ...

    free.rprime_needs = ("read",)  # type: ignore[attr-defined] # as `requires` sets it
    with pytest.raises(UndeclaredCostError, match="does not declare what it costs"):
        with_authentication(router.routes, None)
    with pytest.raises(UndeclaredCostError, match="blocks"):
        requires("read", cost="cheap")(lambda: None)


def test_a_route_cannot_do_more_than_it_declares(serve_app: ServeApp) -> None:
    app = create_app(Settings(store="none"))
    router = APIRouter()

    @router.get("/sly")
    @requires("read", cost="cheap")
    async def sly(request: Request) -> None:
        await request.app.state.services.store_threads.run(time.monotonic)

    app.router.routes.extend(with_authentication(router.routes, None))
    with serve_app(app) as client:
        answer = client.get("/sly")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")


def test_one_owner_has_half_of_the_places_and_whoever_waits_gets_503() -> None:
    async def scenario() -> None:
        slots = Slots(4, 8, seconds=0.05, share=0.5, what="Others")
        async with slots.place("a"), slots.place("a"):
            with pytest.raises(Problem, match="too long"):
                async with slots.place("a"):
                    pass
            async with slots.place("b"):
                assert slots.taken == 3
        assert (slots.taken, slots.rejected) == (0, 1)

    asyncio.run(scenario())


def test_whoever_waits_longest_gets_the_place_but_for_an_owner_with_its_share() -> None:
    async def scenario() -> list[str]:
        slots, order = Slots(2, 8, share=0.5, what="Others"), list[str]()
        done = asyncio.Event()

        async def visit(owner: str, name: str, until: asyncio.Event | None = None) -> None:
            async with slots.place(owner):
                order.append(name)
                if until is not None:
                    await until.wait()

        first = [visit("a", "a1", done), visit("b", "b1", done)]
        later = [visit("a", "a2"), visit("c", "c1"), visit("b", "b2")]
        tasks = [asyncio.create_task(visitor) for visitor in (*first, *later)]
        await asyncio.sleep(0)
        done.set()
        await asyncio.gather(*tasks)
        assert slots.taken == 0
        return order

    assert asyncio.run(scenario()) == ["a1", "b1", "a2", "c1", "b2"]


def test_a_place_that_comes_when_its_request_gives_up_is_not_lost() -> None:
    async def scenario() -> None:
        slots = Slots(1, 8, seconds=9, what="Others")
        async with slots.place("a"):
            waiting = asyncio.create_task(slots.place("b").__aenter__())
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(1), slots.place("c"):
            assert slots.taken == 1

    asyncio.run(scenario())


def test_a_thread_stops_when_its_work_has_taken_too_much_processor_time() -> None:
    def endless() -> None:
        while True:
            check_time()

    async def scenario() -> None:
        threads = Threads(Slots(1, 8, what="Others"), "render", cpu_seconds=0.05)
        with pytest.raises(Problem) as refused:
            await threads.run(endless)
        [error] = refused.value.errors
        assert (refused.value.status, error.code) == (422, "too_much")
        await threads.run(check_time)

    asyncio.run(scenario())


@pytest.mark.slow
def test_tables_that_are_in_memory_together_are_bounded(
    quick: httpx.Client, processes: dict[int, int]
) -> None:
    """40 full tables of 1000 classes have 320 MB of counts."""
    content = {"confusion_matrix": [[1] * 1000] * 1000, "project": "wide", "model": "m"}
    for number in range(40):
        stored = {**content, "version": str(number), "indices": ["accuracy"]}
        assert quick.post("/v1/evaluate", json=stored).status_code == 201
    process = processes[quick.base_url.port or 0]
    before = resident(process)
    page = quick.get("/ui/projects/wide/models/m?limit=40")
    assert (page.status_code, "lower `limit`" in page.text) == (422, True)
    assert resident(process) - before < Limits().in_flight_bytes
    trend = quick.get("/v1/projects/wide/trend?index=accuracy")
    assert len(trend.json()["items"]) == 40


def test_a_comparison_of_many_classes_is_bounded_and_says_what_to_change(
    quick: httpx.Client,
) -> None:
    sides = {"candidate": diagonal(10_000, 50), "baseline": diagonal(10_000, 51)}
    refused = quick.post("/v1/compare", json={**sides, "options": {"families": ["core"]}})
    [error] = refused.json()["errors"]
    assert (refused.status_code, error["pointer"]) == (422, "/options/indices")
    assert "at most 10 `indices`" in error["detail"]
    fewer = quick.post("/v1/compare", json={**sides, "options": {"indices": ["recall"]}})
    assert fewer.status_code == 200


def test_comparing_takes_no_memory_of_the_service(serve: Serve, processes: dict[int, int]) -> None:
    with serve(RPRIME_STORE="none", RPRIME_MEMORY="256MiB") as client:
        process = processes[client.base_url.port or 0]
        before, sides = resident(process), {"candidate": diagonal(3000, 50)}
        sides["baseline"] = diagonal(3000, 51)
        answer = client.post("/v1/compare", json=sides)
        assert answer.status_code in {200, 413}
        assert resident(process) - before < 40 << 20


def resident(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("path", ["/v1/gates/plan", "/v1/gates/lint"])
def test_a_simulation_that_takes_too_long_is_refused_before_it_starts(
    quick: httpx.Client, path: str
) -> None:
    dear = gate(100) | ({"replicates": 20_000} if path.endswith("lint") else {})
    since = time.monotonic()
    refused = quick.post(path, json=dear)
    [error] = refused.json()["errors"]
    place = "/replicates" if path.endswith("lint") else "/gates/rules"
    assert (refused.status_code, error["code"], error["pointer"]) == (422, "too_much", place)
    assert f"a request has at most {CPU_SECONDS} s" in error["detail"]
    assert time.monotonic() - since < 10
    assert quick.post(path, json=gate(1)).status_code == 200


def test_simulations_whose_clients_are_gone_end_and_the_history_answers(
    quick: httpx.Client,
) -> None:
    body = gzip.compress(json.dumps(gate(25)).encode())
    head = (
        b"POST /v1/gates/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    address = quick.base_url.host, quick.base_url.port or 0
    for _ in range(45):
        with socket.create_connection(address) as connection:
            connection.sendall(head + body)
    for path in ("/v1/projects", "/ui/projects", "/livez"):
        assert quick.get(path, timeout=5).status_code == 200
    stored = {"confusion_matrix": TABLE, "project": "beside"}
    assert quick.post("/v1/evaluate", json=stored, timeout=5).status_code == 201
    wait_until(lambda: gauge(quick, 'rprime_pool_requests{pool="workers"}') == 0, seconds=20)


def test_a_client_that_closes_its_side_after_a_large_body_gets_its_answer(
    quick: httpx.Client,
) -> None:
    labels = ["cat", "dog"] * 200_000
    body = json.dumps({"y_true": labels, "y_pred": labels}).encode()
    assert len(body) > 1 << 20
    address = quick.base_url.host, quick.base_url.port or 0
    head = b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        connection.shutdown(socket.SHUT_WR)
        answer = HTTPResponse(connection)
        answer.begin()
        assert answer.status == 200
        assert json.loads(answer.read())["overall"]["accuracy"]["value"] == 1


def test_one_address_has_one_of_two_workers(quick: httpx.Client) -> None:
    """A second simulation of the same address waits, and gets 503 after `wait_seconds`."""
    address = quick.base_url.host, quick.base_url.port or 0
    body = json.dumps(gate(30)).encode()
    head = b"POST /v1/gates/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(address) as connection:
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        taken = 'rprime_pool_requests{pool="workers"}'
        wait_until(lambda: gauge(quick, taken) == 1)
        second = quick.post("/v1/gates/plan", json=gate(1))
        assert (second.status_code, second.json()["code"]) == (503, "overloaded")
        assert second.headers["Retry-After"]
