"""What is counted, by what, and for whom."""

import json
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from rprime import __version__
from rprime.app import create_app
from rprime.auth import keys
from rprime.server.metrics import SHARED_FOLDER, Metrics
from rprime.settings import Settings
from tests.history_service import matrix
from tests.services import ServeApp
from tests.waiting import wait_until

Serve = Callable[..., AbstractContextManager[httpx.Client]]
Labels = frozenset[tuple[str, str]]

JSON = {"Content-Type": "application/json"}
SECRET = "do-not-count-me"  # noqa: S105 - only a text to look for
GATES = {"rules": [{"index": "accuracy", "min_value": 0.5}]}
SCORES = {"y_true": ["a", "b"], "y_score": [[0.9, 0.1], [0.2, 0.8]], "labels": ["a", "b"]}
BODIES = {
    "confusion_matrix": matrix(project=None),
    "cells": {"cells": [[0, 0, 5], [1, 1, 5], [0, 1, 1]], "labels": ["a", "b"]},
    "labels": {"y_true": ["a", "b"], "y_pred": ["a", "a"]},
    "scores": SCORES,
}


@pytest.fixture(scope="module")
def counting(serve: Serve) -> Iterator[httpx.Client]:
    with serve(RPRIME_LIMITS_IN_FLIGHT_BYTES="1000000") as client:
        yield client


def samples(client: httpx.Client) -> dict[tuple[str, Labels], float]:
    """Return every value of a scrape, by its name and its labels."""
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version="), response.text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def value(client: httpx.Client, name: str, **labels: str) -> float:
    return samples(client).get((name, frozenset(labels.items())), 0.0)


def requests(client: httpx.Client, method: str, route: str, status: str) -> float:
    labels = {"method": method, "route": route, "status": status}
    return value(client, "rprime_http_request_duration_seconds_count", **labels)


def test_a_request_is_counted_by_the_template_of_its_route(counting: httpx.Client) -> None:
    route = "/v1/projects/{project}/aliases/{alias}"
    counting.get(f"/v1/projects/{SECRET}/aliases/{SECRET}")
    counting.get(f"/v1/projects/other/aliases/{SECRET}")
    assert requests(counting, "GET", route, "4xx") == 2


def test_what_is_unknown_makes_no_series(counting: httpx.Client) -> None:
    samples(counting)  # makes the series of the metrics themselves
    before = len(samples(counting))
    for i in range(20):
        counting.get(f"/{SECRET}/{i}")
        counting.request("PROPFIND", f"/{SECRET}/{i}")
    series = samples(counting)
    assert requests(counting, "GET", "other", "4xx") >= 20
    assert requests(counting, "other", "other", "4xx") >= 20
    # Two histograms at most, however many were asked for.
    assert len(series) - before <= 2 * 16
    assert SECRET not in counting.get("/metrics").text


@pytest.mark.parametrize("kind", BODIES)
def test_an_evaluation_is_counted_by_its_evidence(counting: httpx.Client, kind: str) -> None:
    labels = {"evidence": kind, "verdict": "none"}
    before = value(counting, "rprime_evaluations_total", **labels)
    assert counting.post("/evaluate", json=BODIES[kind]).status_code == 200
    assert value(counting, "rprime_evaluations_total", **labels) == before + 1


def test_a_verdict_is_counted_wherever_it_is_given(counting: httpx.Client) -> None:
    single = matrix(project=None, gates=GATES)
    bodies = [single, matrix(gates=GATES), matrix(gates=GATES, version="2")]
    verdicts = {counting.post("/evaluate", json=body).json()["gate"]["verdict"] for body in bodies}
    assert verdicts == {"pass"}
    batch = {"requests": [single, {"cells": 7}, matrix(gates=GATES, version="3")]}
    assert counting.post("/v1/evaluate/batch", json=batch).status_code == 207
    csv = counting.post(
        "/evaluate",
        content="y_true,y_pred\na,a\nb,b\n",
        params={"request": json.dumps({"gates": GATES})},
        headers={"Content-Type": "text/csv"},
    )
    assert csv.status_code == 200, csv.text
    tables = {"evidence": "confusion_matrix", "verdict": "pass"}
    assert value(counting, "rprime_evaluations_total", **tables) == 5
    labels = {"evidence": "labels", "verdict": csv.headers["evaluation-verdict"]}
    assert value(counting, "rprime_evaluations_total", **labels) == 1


def test_the_state_of_pools_store_and_memory_is_shown(counting: httpx.Client) -> None:
    assert value(counting, "rprime_info", version=__version__) == 1
    assert value(counting, "rprime_in_flight_limit_bytes") == 1_000_000
    assert value(counting, "rprime_pool_size", pool="workers") == 2
    metrics = samples(counting)
    for name in ("rprime_in_flight_bytes", "rprime_store_pending_writes"):
        assert metrics[name, frozenset()] == 0
    assert metrics["rprime_pool_requests", frozenset({("pool", "workers")})] == 0
    assert metrics["rprime_store_up", frozenset()] == 1
    assert metrics["process_resident_memory_bytes", frozenset()] > 0


def test_openmetrics_comes_where_it_is_asked_for(counting: httpx.Client) -> None:
    accept = "application/openmetrics-text; version=1.0.0"
    response = counting.get("/metrics", headers={"Accept": accept})
    assert response.headers["content-type"].startswith("application/openmetrics-text")
    assert response.text.endswith("# EOF\n")


def test_metrics_take_a_key_that_reads_all_projects(serve_app: ServeApp, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    tokens = {
        "all": keys.create(path, ["read"])[1],
        "one": keys.create(path, ["read"], project="p")[1],
        "evaluate": keys.create(path, ["evaluate"])[1],
    }
    with serve_app(create_app(Settings(keys_file=path, store="none"))) as client:
        answers = {
            name: client.get("/metrics", headers={"Authorization": f"Bearer {token}"})
            for name, token in tokens.items()
        }
        assert client.get("/metrics").status_code == 401
    assert {name: response.status_code for name, response in answers.items()} == {
        "all": 200,
        "one": 403,
        "evaluate": 403,
    }
    assert "\nrprime_store_up " not in answers["all"].text


@pytest.fixture(scope="module")
def workers(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory, processes: dict[int, int]
) -> Iterator[tuple[httpx.Client, Path, int]]:
    """Return a client of two workers, their log and the process that started them."""
    log = tmp_path_factory.mktemp("workers") / "log"
    with serve("--workers", "2", log=log, RPRIME_STORE="none") as client:
        # Each request may go to any of them, on a connection of its own.
        client.headers["Connection"] = "close"
        yield client, log, processes[client.base_url.port or 0]


def test_a_worker_that_is_starting_does_not_fail_a_scrape(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    metrics = Metrics("1")
    monkeypatch.setenv(SHARED_FOLDER, str(tmp_path))
    (tmp_path / "counter_7.db").touch()
    content, _ = metrics.exposition("text/plain")
    assert b"_total" not in content


def of_workers(client: httpx.Client, name: str) -> set[str]:
    return {dict(labels)["worker"] for sample, labels in samples(client) if sample == name}


@pytest.mark.slow
def test_a_scrape_sums_over_the_workers(workers: tuple[httpx.Client, Path, int]) -> None:
    client, _, _ = workers
    wait_until(lambda: len(of_workers(client, "process_resident_memory_bytes")) == 2)
    before = requests(client, "POST", "/evaluate", "2xx")
    for _ in range(30):
        assert client.post("/evaluate", json=matrix(project=None)).status_code == 200
    wait_until(lambda: requests(client, "POST", "/evaluate", "2xx") == before + 30)
    metrics = samples(client)
    labels = frozenset({("evidence", "confusion_matrix"), ("verdict", "none")})
    assert metrics["rprime_evaluations_total", labels] == before + 30
    wait_until(lambda: value(client, "rprime_in_flight_limit_requests") == 2 * 256)
    assert value(client, "rprime_info", version=__version__) == 2


@pytest.mark.slow
def test_a_worker_that_dies_is_logged_and_counted_and_takes_no_counts_with_it(
    workers: tuple[httpx.Client, Path, int],
) -> None:
    client, log, _ = workers
    for _ in range(10):
        client.post("/evaluate", json=matrix(project=None)).raise_for_status()
    name = "process_resident_memory_bytes"
    wait_until(lambda: len(of_workers(client, name)) == 2)
    counted, before = requests(client, "POST", "/evaluate", "2xx"), of_workers(client, name)
    killed = before.copy().pop()
    os.kill(int(killed), signal.SIGKILL)
    labels = {"kind": "server", "reason": "SIGKILL"}

    def replaced() -> bool:
        try:
            now = of_workers(client, name)
            return len(now) == 2 and killed not in now
        except httpx.TransportError:  # a connection that the dead worker had accepted
            return False

    wait_until(replaced)
    assert value(client, "rprime_workers_ended_total", **labels) == 1
    assert requests(client, "POST", "/evaluate", "2xx") == counted
    events = [json.loads(line) for line in log.read_text().splitlines()]
    (event,) = (event for event in events if event["event"] == "worker_ended")
    assert (event["kind"], event["reason"], event["pid"]) == ("server", "SIGKILL", int(killed))


def test_commits_are_measured_and_rejections_counted_by_limit(serve: Serve) -> None:
    with serve(RPRIME_LIMITS_IN_FLIGHT_BYTES="2000") as client:
        for version in ("1", "2"):
            client.post("/evaluate", json=matrix(version=version)).raise_for_status()
        assert value(client, "rprime_store_commit_duration_seconds_count") == 2
        assert 0 < value(client, "rprime_store_commit_duration_seconds_sum") < 10
        head = b"POST /evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1600\r\n"
        head += b"Content-Type: application/json\r\n\r\n"
        with socket.create_connection((client.base_url.host, client.base_url.port or 0)) as held:
            held.sendall(head + b" " * 1500)
            wait_until(lambda: value(client, "rprime_in_flight_bytes") == 1500)
            refused = client.post("/evaluate", content=b" " * 1500, headers=JSON)
        assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
        alone = client.post("/evaluate", content=b" " * 3000, headers=JSON)
        assert (alone.status_code, "limit of 2000 bytes" in alone.text) == (413, True)
        for _ in range(2):
            assert value(client, "rprime_requests_rejected_total", limit="in_flight_bytes") == 1


def test_the_state_of_the_keys_file_is_shown(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    token = keys.create(path, ["read"])[1]
    with serve(RPRIME_KEYS_FILE=str(path), RPRIME_STORE="none") as client:
        client.headers["Authorization"] = f"Bearer {token}"

        def states() -> dict[str, float]:
            names = keys.FILE_STATES
            return {name: value(client, "rprime_keys_file_state", state=name) for name in names}

        assert states() == {"ok": 1, "missing": 0, "unreadable": 0}
        good = path.read_bytes()
        path.write_bytes(good[:40])
        assert states() == {"ok": 0, "missing": 0, "unreadable": 1}
        path.write_bytes(good)
        wait_until(lambda: states() == {"ok": 1, "missing": 0, "unreadable": 0})


ABBREVIATED = re.compile(r"_(ms|msec|sec|s|kb|mb|gb|kib|mib|milliseconds|minutes|hours)(_|$)")


def test_names_follow_the_rules_of_promtool(counting: httpx.Client) -> None:
    """After the rules of `promtool check metrics` (util/promlint of client_golang)."""
    counting.post("/evaluate", json=matrix()).raise_for_status()
    families = list(text_string_to_metric_families(counting.get("/metrics").text))
    assert len(families) > 20
    for family in families:
        name = family.name
        assert family.documentation, name
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), name
        assert not ABBREVIATED.search(name), name
        kinds = ("counter", "gauge", "histogram", "summary")
        assert not any(kind in name.split("_") for kind in kinds), name
        for sample in family.samples:
            assert (family.type == "counter") == sample.name.endswith("_total"), sample.name
            special = sample.name.endswith(("_count", "_sum", "_bucket"))
            assert special == (family.type == "histogram"), sample.name
            assert all(re.fullmatch(r"[a-z_]+", label) for label in sample.labels)
