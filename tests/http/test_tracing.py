"""Spans of requests, sent to a collector that reads OTLP over HTTP."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from structlog.testing import capture_logs

from rprime.server.telemetry import tracing
from tests.history_service import matrix

Serve = Callable[..., AbstractContextManager[httpx.Client]]
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector:
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, ExportTraceServiceRequest]] = []
        self.url = ""

    def spans(self) -> list[Any]:
        return [
            span
            for _, request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def resource(self) -> dict[str, str]:
        (_, first), *_ = self.requests
        attributes = first.resource_spans[0].resource.attributes
        return {attribute.key: attribute.value.string_value for attribute in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.requests.append((self.path, ExportTraceServiceRequest.FromString(body)))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        collector.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


def logged(log: Path) -> dict[str, dict[str, Any]]:
    """Return the lines of requests by their ids."""
    lines = [json.loads(text) for text in log.read_text().splitlines()]
    return {line["request_id"]: line for line in lines if line["event"] == "request"}


def test_spans_reach_the_collector_with_the_trace_of_the_log(serve: Serve, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with collecting() as collector:
        settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "RPRIME_LOG_REQUESTS": "1"}
        with serve(log=log, **settings) as client:
            ids = {"X-Request-Id": "called", "traceparent": f"00-{TRACE}-{PARENT}-01"}
            client.post("/evaluate", json=matrix(), headers=ids).raise_for_status()
            client.get("/v1/projects/pets/evaluations", headers={"X-Request-Id": "begun"})
            client.head("/livez", headers={"X-Request-Id": "head"})
        # The service has stopped: what it had not sent yet it sent at its end.
        spans = {span.name: span for span in collector.spans()}
        assert {path for path, _ in collector.requests} == {"/v1/traces"}
        resource = collector.resource()
    assert resource["service.name"] == "rprime"
    assert re.fullmatch(r"\d+\.\d+.*", resource["service.version"])
    called = spans["POST /evaluate"]
    assert (called.trace_id.hex(), called.parent_span_id.hex()) == (TRACE, PARENT)
    begun = spans["GET /v1/projects/{project}/evaluations"]
    assert begun.parent_span_id == b""
    lines = logged(log)
    assert lines["called"]["trace_id"] == TRACE
    assert lines["begun"]["trace_id"] == begun.trace_id.hex()
    assert len(spans) == 3
    assert "HEAD /livez" in spans


def test_the_standard_variables_hold(serve: Serve) -> None:
    with collecting() as collector:
        with serve(
            OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.url}/spans",
            OTEL_SERVICE_NAME="judge",
            OTEL_PYTHON_EXCLUDED_URLS="livez",
        ) as client:
            client.get("/livez")
            client.get("/v1/indices")
        assert [span.name for span in collector.spans()] == ["GET /v1/indices"]
        assert collector.resource()["service.name"] == "judge"
        assert collector.requests[0][0] == "/spans"


@pytest.mark.parametrize(
    "off", [{}, {"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}]
)
def test_without_an_endpoint_there_are_no_spans(serve: Serve, off: dict[str, str]) -> None:
    with collecting() as collector:
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url} if off else {}
        with serve(**endpoint, **off) as client:
            client.get("/livez")
        assert collector.requests == []


def test_a_protocol_that_is_not_there_is_said(serve: Serve, tmp_path: Path) -> None:
    log = tmp_path / "log"
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://[::1]:9",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
    }
    with serve(log=log, **settings) as client:
        assert client.get("/livez").status_code == 200
    assert log.read_text().count('"tracing_off"') == 1


def test_without_the_extra_the_log_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://[::1]:9")
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation.asgi", None)
    monkeypatch.delitem(sys.modules, "rprime.server.tracing", raising=False)
    with capture_logs() as lines:
        assert tracing("1") == []
    (line,) = lines
    assert line["event"] == "tracing_off"
    assert "OTEL_EXPORTER_OTLP_ENDPOINT needs pip install 'rprime[otel]'" in line["detail"]


def test_a_collector_that_is_gone_does_not_disturb(serve: Serve) -> None:
    with serve(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9") as client:
        assert client.post("/evaluate", json=matrix(project=None)).status_code == 200
