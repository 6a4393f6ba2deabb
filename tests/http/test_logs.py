"""The log says what happened, not what was sent."""

import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import product

import httpx
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from rprime.auth import keys

Serve = Callable[..., AbstractContextManager[httpx.Client]]
CANARY = "canary"
"""Stands wherever a client can write something, in numbers as 7321739."""
NUMBER = 7321739
LABELS = [f"{CANARY} a", f"{CANARY} b"]
ITEMS: dict[str, list[str]] = {"y_true": LABELS, "y_pred": LABELS[::-1]}
OPTIONS: dict[str, object] = {
    "project": f"{CANARY}-project",
    "model": f"{CANARY}-model",
    "version": f"{CANARY}-version",
    "tags": [f"{CANARY} tag"],
    "baseline": {"alias": f"{CANARY}-alias"},
}


def arrow() -> bytes:
    table, sink = pa.table(ITEMS), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def written(write: Callable[[io.BytesIO], object]) -> bytes:
    sink = io.BytesIO()
    write(sink)
    return sink.getvalue()


EVIDENCE: dict[str, dict[str, object]] = {
    "table": {"confusion_matrix": [[NUMBER, 1], [2, 3]], "labels": LABELS},
    "cells": {"cells": [[0, 1, NUMBER]], "labels": LABELS},
    "labels": {**ITEMS},
    "scores": {"y_true": LABELS, "y_score": [[0.7321739, 0.2678261]] * 2, "labels": LABELS},
}
COLUMNS = {
    "text/csv": f"y_true,y_pred\n{LABELS[0]},{LABELS[1]}\n".encode(),
    "application/vnd.apache.arrow.stream": arrow(),
    "application/vnd.apache.parquet": written(lambda s: parquet.write_table(pa.table(ITEMS), s)),
    "application/x-npz": written(
        lambda sink: np.savez(sink, y_true=ITEMS["y_true"], y_pred=ITEMS["y_pred"])
    ),
}


def bodies() -> list[tuple[str, bytes, dict[str, str]]]:
    """Return every kind of evidence: good, with a defect, and cut short."""
    options: tuple[dict[str, object], ...] = (OPTIONS, {CANARY: CANARY}, {"project": f"{CANARY}\n"})
    requests: list[tuple[str, bytes, dict[str, str]]] = [
        ("application/json", json.dumps(evidence | more).encode(), {})
        for evidence, more in product(EVIDENCE.values(), options)
    ]
    requests += [
        (media, content, {"request": json.dumps(more)})
        for (media, content), more in product(COLUMNS.items(), options)
    ]
    return requests + [
        (media, content[: len(content) // 2], more) for media, content, more in requests
    ]


@pytest.fixture(scope="module")
def logged(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], str]:
    """Return the log of a service that got all of them, with keys and without, and its key."""
    folder = tmp_path_factory.mktemp("logged")
    token = keys.create(folder / "keys.json", ["admin"], name=CANARY)[1]
    settings = {"RPRIME_KEYS_FILE": str(folder / "keys.json"), "RPRIME_LOG_REQUESTS": "1"}
    with serve(log=folder / "log", **settings) as client:
        for key in (token, f"{token}{CANARY}"):
            client.headers["Authorization"] = f"Bearer {key}"
            statuses = set()
            for media, content, query in bodies():
                response = client.post(
                    "/evaluate", content=content, params=query, headers={"Content-Type": media}
                )
                statuses.add(response.status_code)
            assert statuses >= ({201, 400, 422} if key == token else {401})
            client.get(f"/v1/projects/{CANARY}/evaluations", params={"tag": CANARY})
            client.get(f"/{CANARY}", headers={"X-Request-Id": "asked-for"})
        client.get("/livez", headers={"Host": CANARY, CANARY: CANARY})
    return (folder / "log").read_text().splitlines(), token


def test_no_payload_and_no_key_is_logged(logged: tuple[list[str], str]) -> None:
    lines, token = logged
    for line in lines:
        # Who changes something, or is refused, is logged with the project.
        named = re.sub(r'"project(s":\["|":")canary(-project)?"', "", line)
        assert named == line or json.loads(line)["event"] in {"change", "key_refused"}
        assert CANARY not in named
        assert str(NUMBER) not in line
        assert token.split("_")[2] not in line


def test_every_line_is_an_object_and_every_request_has_its_id(
    logged: tuple[list[str], str],
) -> None:
    events = [json.loads(line) for line in logged[0]]
    requests = [event for event in events if event["event"] == "request"]
    assert len(requests) == 2 * (len(bodies()) + 2) + 1
    assert all(event["request_id"] and event["timestamp"] for event in requests)
    unknown = [event for event in requests if event["request_id"] == "asked-for"]
    assert {(event["route"], event["status"]) for event in unknown} == {("other", 404)}


FAILING = """if True:
    import structlog
    from rprime.server import logs
    logs.configure()
    key = "".join(["can", "ary"])
    def fail(key):
        try:
            int(key)
        except ValueError as error:
            raise ExceptionGroup(key, [KeyError(key)]) from error
    try:
        fail(key)
    except ExceptionGroup:
        structlog.get_logger().exception("failed")
        import logging
        logging.getLogger("library.part").exception("failed, too")
"""
"""Logs a defect whose messages and variables have the canary."""


def test_a_failure_shows_no_values_at_a_terminal() -> None:
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", FAILING], stderr=theirs, check=True, timeout=60)
    os.close(theirs)
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        shown = terminal.read(65536).decode()
    check_failures(shown)


def test_a_failure_shows_no_values_in_the_log() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILING], capture_output=True, text=True, check=True, timeout=60
    )
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert [event["event"] for event in events] == ["failed", "library"]
    assert events[1].pop("detail") == "failed, too"
    for event in events:
        assert set(event) == {"event", "exception", "level", "timestamp"}
    check_failures(done.stderr)


def check_failures(shown: str) -> None:
    assert CANARY not in shown
    for told in ("builtins.ValueError", "builtins.KeyError", "builtins.ExceptionGroup"):
        assert shown.count(told) == 2
    assert shown.count("in fail") == 4
