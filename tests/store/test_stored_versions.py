"""Stores with all that 0.1.0 and 0.2.0 stored, read in every way; see `schemas/README.md`."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import create_engine, inspect, make_url

from rprime.report.formats import FORMATS
from rprime.store.schema import metadata
from tests.history_service import ServeApp, keeping
from tests.store.conftest import on_sqlite
from tests.store.full_content import PROJECT

SCHEMAS = Path(__file__).parent / "schemas"
NUMBERS = (1, 2)
Json = dict[str, Any]
EVERY_VERDICT = {
    *("pass", "fail", "inconclusive", "waived"),
    *("no_baseline", "not_comparable", "undefined"),
}


def reports_of(number: int) -> dict[str, Json]:
    """Return members of the reports that the old version answered, by the id."""
    reports: dict[str, Json] = json.loads(
        (SCHEMAS / f"schema_{number}_full.json").read_text("utf-8")
    )
    return reports


@pytest.fixture(params=NUMBERS)
def number(request: pytest.FixtureRequest) -> int:
    """Return the number of each schema in turn."""
    schema: int = request.param
    return schema


@pytest.fixture
def old(url: str, number: int) -> str:
    """Return the URL of a full store of a schema, on each database in turn."""
    if make_url(url).get_backend_name() == "sqlite":
        shutil.copy(SCHEMAS / f"schema_{number}_full.db", make_url(url).database or "")
        return url
    engine = create_engine(url)
    with engine.begin() as connection:
        driver: Any = connection.connection.driver_connection
        driver.execute((SCHEMAS / f"schema_{number}_full.sql").read_text("utf-8"))
    engine.dispose()
    return url


@pytest.fixture
def client(serve_app: ServeApp, tmp_path: Path, old: str) -> Iterator[httpx.Client]:
    """Serve the old store."""
    with keeping(serve_app, tmp_path, store=old) as served:
        yield served


def test_a_migration_makes_the_columns_of_every_table(client: httpx.Client, old: str) -> None:
    assert client.get("/readyz").json()["store"] == "ok"
    engine = create_engine(old)
    columns = {
        f"{table}.{column['name']}"
        for table in metadata.tables
        for column in inspect(engine).get_columns(table)
    }
    engine.dispose()
    declared = {
        f"{name}.{column.name}"
        for name, table in metadata.tables.items()
        for column in table.columns
    }
    assert declared - columns == columns - declared == set(), "the newest migration lacks them"


def digest(document: Json) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def check_gate(now: Json, then: Json) -> None:
    """Compare a gate with what was answered for it; 0.1.0 had intervals for limits."""
    assert now["max_looks"] == then.pop("budget", None)
    for before, result in zip(then.pop("results"), now["results"], strict=True):
        before["verdict"] = before["verdict"].replace("inconclusive", "undecided")
        if "interval" in before:
            before["lower_limit"], before["upper_limit"] = before.pop("interval") or (None, None)
        assert {name: result[name] for name in before} == before
    assert {name: now[name] for name in then} == then


def check_comparison(now: Json, then: Json, number: int) -> None:
    """Compare a comparison with what was answered; 0.1.0 had two members less."""
    if number == 1:
        assert (now.pop("items"), now["classes"].pop("without_items")) == (None, [])
    assert digest(now) == then.pop("digest")
    assert {name: now[name] for name in then} == then


def check_report(now: Json, then: Json, number: int) -> None:
    """Compare a report with what the old version answered."""
    values = then.pop("overall")
    close = {key: None if v is None else pytest.approx(v, rel=1e-12) for key, v in values.items()}
    assert {key: now["overall"][key]["value"] for key in values} == close
    slices = then.pop("slices", [])
    assert [[part["slice"], part["items"]] for part in now.get("slices", [])] == slices
    for name, check in (("gate", check_gate), ("comparison", check_comparison)):
        before = then.pop(name, None)
        assert (now.get(name) is None) == (before is None)
        if before is not None:
            check(now[name], before, *((number,) if check is check_comparison else ()))
    assert {name: now[name] for name in then} == then


def test_the_old_stores_hold_every_kind_of_result() -> None:
    for number in NUMBERS:
        gates = [report["gate"] for report in reports_of(number).values() if report.get("gate")]
        results = [result for gate in gates for result in gate["results"]]
        assert {result["verdict"] for result in results} == EVERY_VERDICT
        assert number == 1 or {result["suspect"] for result in results} == {True, False}


def test_reports_are_those_that_were_answered(client: httpx.Client, number: int) -> None:
    for identifier, then in reports_of(number).items():
        path = f"/v1/evaluations/{identifier}"
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        report = answer.json()
        if report.get("comparison"):
            # Differences have the candidate where the report has no value, as of a younger index.
            bare = {"include": "cells", "index": "share_of_errors"}
            report["comparison"] = client.get(path, params=bare).json()["comparison"]
        check_report(report, then, number)


@on_sqlite
def test_every_rendering_shows_them(client: httpx.Client, number: int) -> None:
    for identifier, then in reports_of(number).items():
        for entry in FORMATS:
            answer = client.get(f"/v1/evaluations/{identifier}/report.{entry.suffix}")
            assert answer.status_code == 200, (entry.suffix, answer.text)
        page = client.get(f"/ui/evaluations/{identifier}")
        assert page.status_code == 200, page.text
        gate = then.get("gate")
        verdict = client.get(f"/v1/evaluations/{identifier}/verdict")
        expected = gate["verdict"] if gate else "no_gate"
        assert (verdict.status_code, verdict.text) == (200, expected)


@on_sqlite
def test_they_are_compared_and_followed(client: httpx.Client, number: int) -> None:
    reports = reports_of(number)
    judged = [i for i, then in reports.items() if then["project"] == PROJECT]
    for candidate, other in pairwise(judged):
        sides = {"candidate": {"evaluation": candidate}, "baseline": {"evaluation": other}}
        answer = client.post("/v1/compare", json=sides)
        assert answer.status_code == 200, answer.text
        page = client.get("/ui/compare", params={"candidate": candidate, "baseline": other})
        assert page.status_code == 200, page.text
    for project in {then["project"] for then in reports.values()}:
        paths = [f"/v1/projects/{project}/{name}" for name in ("trend", "leaderboard")]
        for path in paths:
            answer = client.get(path, params={"index": "accuracy"})
            assert answer.status_code == 200, answer.text
        others = ("evaluations", "aliases", "badge.svg", "badge.json")
        more = [f"/v1/projects/{project}/{name}" for name in others]
        for path in (*more, f"/ui/projects/{project}", "/ui/projects"):
            answer = client.get(path)
            assert answer.status_code == 200, (path, answer.text)
    trend = client.get(f"/v1/projects/{PROJECT}/trend", params={"index": "accuracy"}).json()
    assert len(trend["items"]) == len(judged)


def test_evaluations_go_on_beside_them(client: httpx.Client, number: int) -> None:
    """An old evaluation is a baseline, a champion and an anchor of a new one."""
    table = {"confusion_matrix": [[50, 3, 1], [2, 70, 0], [0, 1, 40]], "model": "resnet"}
    gates = {"rules": [{"index": "accuracy", "max_drop": 0.5}], "anchor": {"alias": "pinned"}}
    options = {"project": PROJECT, "baseline": {"alias": "champion"}, "gates": gates}
    labels = {"labels": ["cat", "dog", "naïve bird"], "version": "99"}
    answer = client.post("/v1/evaluate", json=table | options | labels)
    assert answer.status_code == 201, answer.text
    assert client.get(answer.headers["location"]).content == answer.content
    assert len({result["against"] for result in answer.json()["gate"]["results"]}) == 2
    assert reports_of(number)


def test_an_export_carries_them_to_another_store(
    client: httpx.Client, serve_app: ServeApp, tmp_path: Path, number: int
) -> None:
    exported = client.get("/v1/export").content
    written = (SCHEMAS / f"schema_{number}_full.jsonl").read_bytes()
    answers = {}
    with ExitStack() as services:
        for name, lines in (("now", exported), ("then", written)):
            settings = {"store": f"sqlite:///{tmp_path}/{name}.db"}
            other = services.enter_context(keeping(serve_app, tmp_path, **settings))
            headers = {"Content-Type": "application/x-ndjson"}
            added = other.post("/v1/import", content=lines, headers=headers)
            assert added.status_code == 200, added.text
            assert added.json()["evaluations"] == len(reports_of(number))
            answers[name] = {
                identifier: other.get(f"/v1/evaluations/{identifier}").json()
                for identifier in reports_of(number)
            }
    here = {i: client.get(f"/v1/evaluations/{i}").json() for i in reports_of(number)}
    assert here == answers["now"]
    # Exports of before had null for a comparison that had no baseline, and for none.
    for report in here.values():
        if report.get("comparison", "") is None:
            del report["comparison"]
    assert here == answers["then"]
