"""Middleware: request ids, default headers, metrics, and responses to failures."""

import asyncio
import secrets
from time import perf_counter

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rprime.problems.handlers import respond, stopping
from rprime.problems.problem import Problem
from rprime.server.admission import AdmissionControl
from rprime.server.draining import Draining
from rprime.server.headers import CSP_NONE, REQUEST_ID, SAFE_ID, SECURITY
from rprime.server.hosts import TrustedHosts
from rprime.server.logs import log_request
from rprime.server.metrics import METHODS, OTHER, Metrics

_MONITORING = frozenset({"/livez", "/readyz", "/metrics", "/version"})
"""Answered even under overload: monitoring needs them most then."""
_CLOSE = (b"connection", b"close")

DEFAULT_HEADERS = (CSP_NONE, *SECURITY)
"""Headers of a response that does not set them."""

log = structlog.get_logger(__name__)


class RequestMiddleware:
    """ASGI middleware around the whole application.

    Starlette's ``BaseHTTPMiddleware`` would cost more than the answer to a small request.

    Parameters
    ----------
    admission
        Admits complete requests; the bytes of a request are released at its end.
    hosts
        The names that requests may use.
    metrics
        Count each request.
    draining
        Whether connections are to close.
    log_requests
        Whether the log has an event for each request.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        admission: AdmissionControl,
        hosts: TrustedHosts,
        metrics: Metrics,
        draining: Draining,
        log_requests: bool = False,
    ) -> None:
        self.app = app
        self.hosts = hosts
        self.admission = admission
        self.metrics = metrics
        self.draining = draining
        self.log_requests = log_requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = perf_counter()
        request_id, hosts = _id_and_hosts(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        if scope["method"] == "HEAD":
            # RFC 9110, 9.3.2: as GET; the server omits the content, by the scope that it has.
            scope = {**scope, "method": "GET"}
        sender = _Sender(send, self.draining, request_id)
        try:
            self.hosts.check(scope, hosts)
            if scope["path"] not in _MONITORING:
                # Here a rejection costs least; an incomplete body is checked again when complete.
                self.admission.admit(scope)
            await self.app(scope, receive, sender)
        except (Exception, asyncio.CancelledError) as failure:  # noqa: BLE001 - the last handler
            problem = _problem_of(failure, scope, sender)
            if problem is not None:
                await respond(problem, request_id)(scope, receive, sender)
        finally:
            self.admission.release(scope)
            self._count(scope, sender.status, request_id, perf_counter() - started)

    def _count(self, scope: Scope, status: int, request_id: str, seconds: float) -> None:
        method = scope["method"] if scope["method"] in METHODS else OTHER
        route = getattr(scope.get("route"), "path", OTHER)
        self.metrics.observe_request(method, route, status, seconds)
        if self.log_requests:
            log_request(method, route, status, seconds, request_id)


class _Sender:
    """Adds the default headers to a response."""

    def __init__(self, send: Send, draining: Draining, request_id: str) -> None:
        self.send = send
        self.draining = draining
        self.request_id = request_id
        self.status = 0

    @property
    def started(self) -> bool:
        return self.status > 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message["headers"]
            present = {name for name, _ in headers}
            headers.extend(header for header in DEFAULT_HEADERS if header[0] not in present)
            headers.append((REQUEST_ID, self.request_id.encode()))
            if self.draining.has_started:
                headers.append(_CLOSE)
        await self.send(message)


def _id_and_hosts(scope: Scope) -> tuple[str, list[bytes]]:
    """Return the id of a request and its headers Host."""
    request_id, hosts = None, []
    for name, value in scope["headers"]:
        if name == b"host":
            hosts.append(value)
        elif name == REQUEST_ID and SAFE_ID.fullmatch(value):
            request_id = str(value, "ascii")
    return request_id or secrets.token_hex(16), hosts


def _problem_of(failure: BaseException, scope: Scope, sender: _Sender) -> Problem | None:
    """Return what to answer to a failure of the application; None if nothing can be answered."""
    if isinstance(failure, ClientDisconnect):
        log.info("client_disconnected", request_id=sender.request_id)
        return None
    if isinstance(failure, Problem):
        return failure
    if isinstance(failure, asyncio.CancelledError):
        # The service stops, and the request took longer than `stop_seconds`.
        return None if sender.started else stopping()
    # The template of the route; a path would reveal names.
    route = getattr(scope.get("route"), "path", OTHER)
    log.error("internal_error", request_id=sender.request_id, route=route, exc_info=failure)
    if sender.started:
        raise failure
    return Problem("internal_error")
