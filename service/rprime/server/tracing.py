"""Spans of requests by OpenTelemetry; needs the extra `otel`."""

from threading import Thread

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.http import get_excluded_urls
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rprime.server.request_record import current_request

_FLUSH_SECONDS = 1.0
_TRACE_CONTEXT = TraceContextTextMapPropagator()


def tracer_provider(version: str) -> TracerProvider:
    """Return what sends the spans of this process to the collector that the variables name."""
    service = Resource.create({"service.name": "rprime", "service.version": version})
    resource = service.merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class TracingMiddleware:
    """ASGI middleware that makes a span of each request, named by its method and route.

    What sends the spans is shut down with the application.
    """

    def __init__(self, app: ASGIApp, *, provider: TracerProvider) -> None:
        self.app = app
        self._provider = provider
        self._traced = OpenTelemetryMiddleware(
            self._answer,
            excluded_urls=get_excluded_urls("ASGI"),
            default_span_details=lambda scope: (scope["method"], {}),
            tracer_provider=provider,
            exclude_spans=["receive", "send"],
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            await self._traced(scope, receive, send)
            return
        await self.app(scope, receive, send)
        if scope["type"] == "lifespan":
            # In a thread: a collector that does not answer must not hold the end up.
            sending = Thread(target=self._provider.shutdown, daemon=True)
            sending.start()
            sending.join(_FLUSH_SECONDS)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer within the span, whose trace is the one that the log names."""
        carrier: dict[str, str] = {}
        _TRACE_CONTEXT.inject(carrier)
        if "traceparent" in carrier:
            others = [header for header in scope["headers"] if header[0] != b"traceparent"]
            scope["headers"] = [*others, (b"traceparent", carrier["traceparent"].encode())]

        async def naming(message: Message) -> None:
            # Before the last message, with which the span ends.
            record = current_request.get()
            if message["type"] == "http.response.start" and record is not None:
                span = trace.get_current_span()
                span.update_name(f"{scope['method']} {record.route}")
                span.set_attribute("http.route", record.route)
            await send(message)

        await self.app(scope, receive, naming)
