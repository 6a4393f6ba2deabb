"""Whether requests have spans: the standard variables of OpenTelemetry decide it."""

import os

import structlog
from starlette.middleware import Middleware

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL = "http/protobuf"

log = structlog.get_logger(__name__)


def tracing(version: str) -> list[Middleware]:
    """Return the middleware that makes spans, if a variable names a collector.

    Without the extra, or with a protocol that it does not have, the log says that there are none.
    """
    environment = os.environ
    endpoint = next((name for name in _ENDPOINTS if environment.get(name)), None)
    is_off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if endpoint is None or is_off or environment.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return []
    if (
        next((environment[name] for name in _PROTOCOLS if environment.get(name)), _PROTOCOL)
        != _PROTOCOL
    ):
        log.warning("tracing_off", detail=f"Spans are sent by {_PROTOCOL} only.")
        return []
    try:
        from rprime.server.tracing import TracingMiddleware, tracer_provider  # noqa: PLC0415 - an extra
    except ImportError:
        log.warning("tracing_off", detail=f"{endpoint} needs pip install 'rprime[otel]'.")
        return []
    return [Middleware(TracingMiddleware, provider=tracer_provider(version))]
