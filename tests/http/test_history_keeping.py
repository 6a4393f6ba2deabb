"""POST /evaluate with a project: kept before it is answered, once, and held against the past."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.history_service import LABELS, Json, ServeApp, keep, keeping, labels, matrix

RULES = [{"index": "accuracy", "max_drop": 0.05}]


@pytest.fixture
def client(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


def codes(report: Json) -> list[str]:
    return [warning["code"] for warning in report["warnings"]]


def test_a_project_is_kept_and_found_where_the_answer_says(client: httpx.Client) -> None:
    request: Json = {
        "model": "lenet",
        "version": "1.2",
        "branch": "main",
        "commit": "abc",
        "tags": ["nightly", "a b"],
        "source": "https://ci.example/7",
        "test_set": {"id": "holdout"},
    }
    response = client.post("/evaluate", json=matrix(**request))
    report = response.json()
    assert response.status_code == 201
    assert response.headers["location"] == report["links"]["self"]
    assert report["id"] in report["links"]["self"]
    assert {name: report[name] for name in request} == request
    assert "gate" not in report


def test_without_a_project_nothing_is_kept(client: httpx.Client) -> None:
    response = client.post("/evaluate", json=matrix(project=None, version="1"))
    assert response.status_code == 200
    assert not {"id", "links", "project"} & response.json().keys()
    assert "location" not in response.headers


def test_without_a_store_a_project_is_refused(serve_app: ServeApp, tmp_path: Path) -> None:
    with keeping(serve_app, tmp_path, store="none") as client:
        assert client.get("/readyz").json()["store"] == "none"
        assert keep(client, matrix(), 409)["code"] == "no_store"
        batch = client.post(
            "/v1/evaluate/batch", json={"requests": [matrix(), matrix(project=None)]}
        )
        assert [result["status"] for result in batch.json()["results"]] == [409, 200]


@pytest.mark.parametrize(
    ("content", "pointer"),
    [
        ({"project": "a/b"}, "/project"),
        ({"project": None}, "/project"),
        ({"project": ""}, "/project"),
        ({"tags": ["a\nb"]}, "/tags/0"),
        ({"baseline": {"alias": "x", "version": "y"}}, "/baseline"),
        ({"baseline": {"alias": None}}, "/baseline/alias"),
        ({"baseline": {"alias": "x", "cells": [[0, 0, 1]]}}, "/baseline"),
        ({"baseline": {"alias": "x", "axis": "rows_are_true"}}, "/baseline"),
    ],
)
def test_what_cannot_be_meant_is_refused(client: httpx.Client, content: Json, pointer: str) -> None:
    problem = keep(client, matrix() | content, 422)
    assert [error["pointer"] for error in problem["errors"]] == [pointer]


def test_a_stored_baseline_needs_a_project(client: httpx.Client) -> None:
    problem = keep(client, matrix(project=None, baseline={"alias": "x"}), 422)
    assert problem["errors"][0]["code"] == "needs_project"


# Once


def test_another_baseline_that_is_missing_is_another_request(client: httpx.Client) -> None:
    keep(client, matrix(version="1"))
    gates = {"rules": RULES}
    by_alias, by_version = (
        matrix(version="2", gates=gates, baseline=baseline)
        for baseline in ({"alias": "champion"}, {"version": "12"})
    )
    first, second = keep(client, by_alias), keep(client, by_version)
    assert first["id"] != second["id"]
    assert keep(client, by_version, 200)["id"] == second["id"]
    (missing,) = (w["detail"] for w in second["warnings"] if w["code"] == "no_baseline")
    assert "version `12`" in missing


def test_the_same_once_more_is_the_one_that_is_there(client: httpx.Client) -> None:
    first = keep(client, matrix(version="1"))
    again = keep(client, matrix(version="1"), 200)
    codes = [[warning["code"] for warning in report.pop("warnings")] for report in (first, again)]
    assert (codes[0].pop(), codes[1].pop()) == ("first_evaluation", "already_stored")
    assert codes[0] == codes[1]
    assert again == first
    others: list[Json] = [{"version": "2"}, {"model": "m"}, {"errors": 6}, {"beta": 2.0}]
    others += [{"branch": "main"}, {"commit": "4af1"}]
    for other in others:
        assert keep(client, matrix(**{"version": "1", **other}))["id"] != first["id"]
    gated = keep(client, matrix(version="1", gates={"rules": []}))
    assert gated["id"] != first["id"]
    assert keep(client, matrix(version="1", project="others"))["id"] != first["id"]


def test_another_key_stores_the_same_once(client: httpx.Client) -> None:
    answers = [
        client.post("/evaluate", json=matrix(version="1"), headers=headers)
        for headers in ({"Idempotency-Key": "k1"}, {"Idempotency-Key": "k2"}, {})
    ]
    assert [answer.status_code for answer in answers] == [201, 200, 200]
    assert len({answer.json()["id"] for answer in answers}) == 1
    other = client.post("/evaluate", json=matrix(version="1"), headers={"Idempotency-Key": "k1"})
    assert other.content == answers[0].content


@pytest.mark.parametrize(
    ("more", "lacks"),
    [
        ({"tags": ["release"]}, "these `tags`"),
        ({"keep_items": True}, "its items"),
        ({"source": "job 1"}, "this `source`"),
        ({"tags": ["a", "release"], "keep_items": True}, "these `tags` and its items"),
        ({"tags": ["a"]}, None),
    ],
)
def test_what_a_repetition_adds_is_not_lost_in_silence(
    client: httpx.Client, more: Json, lacks: str | None
) -> None:
    first = keep(client, labels(keep_items=False, tags=["a"]))
    again = keep(client, labels(**{"keep_items": False, **more}), 200)
    assert again["id"] == first["id"]
    (detail,) = (
        warning["detail"] for warning in again["warnings"] if warning["code"] == "already_stored"
    )
    rest = f" without {lacks}, and stays so: delete it to store it anew." if lacks else "."
    assert detail == f"This evaluation is stored already, as {first['id']}{rest}"


def test_a_key_gets_the_same_answer_again(client: httpx.Client) -> None:
    content = matrix(gates={"rules": RULES})
    first = client.post("/evaluate", json=content, headers={"Idempotency-Key": '"k 1"'})
    again = client.post("/evaluate", json=content, headers={"Idempotency-Key": "k 1"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    for name in ("location", "evaluation-verdict", "content-type"):
        assert first.headers[name] == again.headers[name]
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers


def test_a_key_is_forgotten_after_a_day(client: httpx.Client, tmp_path: Path) -> None:
    first = keep(client, matrix(), Idempotency_Key="k")
    with closing(sqlite3.connect(tmp_path / "rprime.db", isolation_level=None)) as other:
        # All but the last minute of the day goes by, then the rest.
        other.execute("UPDATE replays SET expires = expires - 1000 * 60 * (24 * 60 - 1)")
        assert keep(client, matrix(), Idempotency_Key="k")["id"] == first["id"]
        other.execute("UPDATE replays SET expires = expires - 1000 * 60")
    assert keep(client, matrix(errors=6), Idempotency_Key="k")["id"] != first["id"]


def test_a_key_stands_for_one_payload(client: httpx.Client) -> None:
    keep(client, matrix(), Idempotency_Key="k")
    assert keep(client, matrix(errors=6), 422, Idempotency_Key="k")["code"] == (
        "idempotency_key_reused"
    )
    headers = {"Idempotency-Key": "k", "Accept": "text/csv"}
    assert client.post("/v1/evaluate", json=matrix(), headers=headers).status_code == 422


@pytest.mark.parametrize(("key", "status"), [("x" * 255, 201), ("x" * 256, 400), ('""', 400)])
def test_a_key_has_a_bounded_length(client: httpx.Client, key: str, status: int) -> None:
    keep(client, matrix(), status, Idempotency_Key=key)


def test_two_with_one_key_at_once_make_one(client: httpx.Client) -> None:
    def post(_: int) -> httpx.Response:
        return client.post("/evaluate", json=labels(), headers={"Idempotency-Key": "k"})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(post, range(24)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    running = [answer for answer in answers if answer.status_code == 409]
    assert all(answer.headers["retry-after"] == "1" for answer in running)
    assert len({a.content for a in answers if a.status_code == 201}) == 1


def test_repeats_of_a_finished_key_are_answered_at_once(client: httpx.Client) -> None:
    first = keep(client, labels(), Idempotency_Key="k")

    def post(_: int) -> httpx.Response:
        return client.post("/evaluate", json=labels(), headers={"Idempotency-Key": "k"})

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(post, range(30)))
    assert {answer.status_code for answer in answers} == {201}
    assert {answer.json()["id"] for answer in answers} == {first["id"]}


@pytest.mark.parametrize("path", ["/evaluate", "/v1/evaluate/batch"])
def test_two_keys_are_refused(client: httpx.Client, path: str) -> None:
    content = {"requests": [matrix()]} if "batch" in path else matrix()
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    answer = client.post(path, json=content, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


def test_a_key_of_a_deleted_evaluation_says_so(client: httpx.Client) -> None:
    identifier = keep(client, matrix(), Idempotency_Key="k")["id"]
    assert client.delete(f"/v1/evaluations/{identifier}").status_code == 204
    for _ in range(2):
        assert keep(client, matrix(), 410, Idempotency_Key="k")["code"] == "evaluation_deleted"
    assert keep(client, matrix(), Idempotency_Key="new")["id"] != identifier


def test_a_key_holds_for_a_batch(client: httpx.Client) -> None:
    def post(*requests: Json, key: str = "k") -> httpx.Response:
        content = {"requests": requests}
        return client.post("/v1/evaluate/batch", json=content, headers={"Idempotency-Key": key})

    batch: tuple[Json, ...] = (
        matrix(4),
        matrix(5, project=None),
        {"labels": []},
        matrix(5, model="m"),
    )
    first = post(*batch)
    assert [result["status"] for result in first.json()["results"]] == [201, 200, 422, 201]
    with ThreadPoolExecutor(4) as pool:
        repeats = list(pool.map(lambda _: post(*batch), range(8)))
    alike = [[result.get("report") for result in answer.json()["results"]] for answer in repeats]
    assert alike == [[result.get("report") for result in first.json()["results"]]] * 8
    assert len(client.get("/v1/projects/pets/evaluations").json()["items"]) == 2
    other = post(matrix(4), matrix(6))
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert len(client.get("/v1/projects/pets/evaluations").json()["items"]) == 2
    stored = first.json()["results"][0]["report"]["id"]
    assert client.delete(f"/v1/evaluations/{stored}").status_code == 204
    assert [result["status"] for result in post(*batch).json()["results"]] == [410, 200, 422, 201]


def test_an_interrupted_batch_is_completed(client: httpx.Client) -> None:
    def post() -> list[Json]:
        batch = {"requests": [matrix(4), matrix(5, baseline={"version": "spring"})]}
        answer = client.post("/v1/evaluate/batch", json=batch, headers={"Idempotency-Key": "k"})
        results: list[Json] = answer.json()["results"]
        return results

    keep(client, matrix(3, version="sprint"))
    first = post()
    assert [result["status"] for result in first] == [201, 404]
    keep(client, matrix(6, version="spring"))
    again = post()
    assert [result["status"] for result in again] == [201, 201]
    assert again[0] == first[0]
    assert post() == again


def test_without_a_project_a_key_changes_nothing(client: httpx.Client) -> None:
    answers = [
        client.post("/evaluate", json=matrix(project=None), headers={"Idempotency-Key": "k"})
        for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content


def test_a_rendering_is_replayed_as_it_was(client: httpx.Client) -> None:
    headers = {"Accept": "text/markdown", "Idempotency-Key": "k"}
    first, again = (client.post("/evaluate", json=matrix(), headers=headers) for _ in range(2))
    assert first.headers["content-type"] == again.headers["content-type"]
    assert first.headers["content-type"].startswith("text/markdown")
    assert first.content == again.content


# Baselines


def test_a_missing_baseline_is_no_error(client: httpx.Client) -> None:
    content = matrix(baseline={"alias": "champion"}, gates={"rules": RULES})
    report = keep(client, content)
    assert report["comparison"] is None
    assert "no_baseline" in codes(report)
    assert [r["verdict"] for r in report["gate"]["results"]] == ["no_baseline"]


def test_a_version_is_held_against_another_one(client: httpx.Client) -> None:
    old = keep(client, matrix(version="1"))
    report = keep(client, matrix(7, version="2", baseline={"version": "1"}))
    baseline = report["comparison"]["baseline"]
    assert baseline["requested"] == {"version": "1"}
    assert baseline["resolved"] == old["id"]
    assert "newest" in baseline["why"]
    assert report["comparison"]["pairing"] == "unpaired"
    named = keep(client, matrix(7, version="3", baseline={"evaluation": old["id"]}))
    assert named["comparison"]["baseline"]["resolved"] == old["id"]


def test_a_branch_passes_over_what_failed_or_was_waived(client: httpx.Client) -> None:
    floor = {"index": "accuracy", "min_value": 0.85, "id": "floor"}
    waiver = {"rule": "floor", "ceiling": 0.3, "reason": "r", "by": "b", "expires": "2999-01-01"}
    good = keep(client, matrix(1, branch="main", gates={"rules": [floor]}))
    bad = keep(client, matrix(30, branch="main", gates={"rules": [floor]}))
    waived = keep(client, matrix(30, branch="main", gates={"rules": [floor], "waivers": [waiver]}))
    assert [r["gate"]["verdict"] for r in (good, bad)] == ["pass", "fail"]
    assert waived["gate"]["results"][0]["verdict"] == "waived"
    baseline = keep(client, matrix(2, baseline={"branch": "main"}))["comparison"]["baseline"]
    assert baseline["resolved"] == good["id"]
    skipped = [f"`{waived['id']}` (its failure was waived)", f"`{bad['id']}` (its gate failed)"]
    assert baseline["why"].endswith(f"skipped newer ones: {', '.join(skipped)}.")


def test_kept_items_make_comparisons_paired(client: httpx.Client) -> None:
    keep(client, labels(version="1"))
    paired = keep(client, labels(2, version="2", baseline={"version": "1"}))
    assert paired["comparison"]["comparability"] == "same_items"
    assert paired["comparison"]["pairing"] == "paired"
    keep(client, labels(3, version="3", keep_items=False))
    unpaired = keep(client, labels(2, version="4", baseline={"version": "3"}))
    assert unpaired["comparison"]["comparability"] == "same_test_set"
    assert unpaired["comparison"]["pairing"] == "unpaired"


def test_a_large_request_is_kept_as_well(client: httpx.Client) -> None:
    many = {"y_true": labels()["y_true"] * 60, "y_pred": labels()["y_pred"] * 60}
    first = keep(client, labels() | many | {"version": "1"})
    report = keep(client, labels() | many | {"version": "2", "baseline": {"version": "1"}})
    assert report["comparison"]["baseline"]["resolved"] == first["id"]
    assert report["comparison"]["flips"]["moved"] == 0


# Looks


def test_looks_are_counted_for_each_test_set(client: httpx.Client) -> None:
    gates = {"rules": RULES, "max_looks": 3}
    reports = [keep(client, labels(seed, gates=gates)) for seed in range(1, 5)]
    judgements = [report["gate"] for report in reports]
    assert [gate["look"] for gate in judgements] == [1, 2, 3, 4]
    assert [(gate["alpha"], gate["max_looks"]) for gate in judgements] == [(0.05 / 3, 3)] * 4
    exceeded = ["looks_exceeded" in codes(report) for report in reports]
    assert exceeded == [False, False, False, True]
    other = keep(client, matrix(gates=gates, test_set={"fingerprint": "ab" * 32}))
    assert other["gate"]["look"] == 1


def test_the_same_predictions_again_are_no_new_look(client: httpx.Client) -> None:
    gates = {"rules": RULES, "spend": True}
    sent = [(1, "a"), (1, "b"), (2, "c"), (1, "d"), (3, "e")]
    reports = [keep(client, labels(seed, version=name, gates=gates)) for seed, name in sent]
    assert [report["gate"]["look"] for report in reports] == [1, 1, 2, 2, 3]
    levels = [0.05 / (look * (look + 1)) for look in (1, 1, 2, 2, 3)]
    assert [report["gate"]["alpha"] for report in reports] == pytest.approx(levels)


def test_a_gate_that_ignores_looks_says_how_many_there_were(client: httpx.Client) -> None:
    for number in (1, 2):
        report = keep(client, labels(number, version=str(number), gates={"rules": RULES}))
        gate = report["gate"]
        assert (gate["look"], gate["max_looks"], gate["alpha"]) == (number, None, 0.05)
    alone = client.post("/evaluate", json=matrix(project=None, gates={"rules": RULES}))
    assert alone.json()["gate"]["look"] is None


def test_what_is_not_counted_is_said(client: httpx.Client) -> None:
    gates = {"rules": RULES, "max_looks": 20}
    for content in (matrix(gates=gates), matrix(project=None, gates=gates)):
        assert "looks_not_counted" in codes(client.post("/evaluate", json=content).json())


def test_no_two_gates_have_the_same_look(client: httpx.Client) -> None:
    gates = {"rules": RULES, "max_looks": 20}
    with ThreadPoolExecutor(8) as pool:
        reports = list(pool.map(lambda i: keep(client, labels(i, gates=gates)), range(24)))
    assert sorted(report["gate"]["look"] for report in reports) == list(range(1, 25))


# Batches


def test_each_of_a_batch_is_kept_by_itself(client: httpx.Client) -> None:
    requests = [matrix(version="1"), matrix(project=None), matrix(version="1"), {"project": "p"}]
    batch = client.post("/v1/evaluate/batch", json={"requests": requests})
    assert batch.status_code == 207
    results = batch.json()["results"]
    assert [result["status"] for result in results] == [201, 200, 200, 422]
    assert results[0]["report"]["id"] == results[2]["report"]["id"]
    assert [result["report"]["warnings"][-1]["code"] for result in results[:3:2]] == [
        "first_evaluation",
        "already_stored",
    ]
    assert results[0]["report"]["labels"] == LABELS


# Rest


def test_what_was_acknowledged_is_there_after_a_restart(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    with keeping(serve_app, tmp_path) as client:
        first = keep(client, matrix(version="1"))
    with keeping(serve_app, tmp_path) as client:
        assert keep(client, matrix(version="1"), 200)["id"] == first["id"]
        assert client.get(f"/v1/evaluations/{first['id']}").json() == first
