"""Middleware: request ids, default headers, metrics, and responses to failures."""

import asyncio
from dataclasses import dataclass
from time import monotonic

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from rprime.problems.handlers import respond, stopping
from rprime.problems.problem import Problem
from rprime.server.addresses import TrustedHosts, TrustedProxies
from rprime.server.admission import REJECTED
from rprime.server.failures import where
from rprime.server.request_record import RequestRecord, current_request
from rprime.server.services import ServerServices
from rprime.store.use import current_use

_MONITORING = frozenset({"/livez", "/readyz", "/metrics", "/version"})
"""Answered even under overload: monitoring needs them most then."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, eq=False)
class RequestMiddleware:
    """ASGI middleware around the whole application.

    Starlette's ``BaseHTTPMiddleware`` would cost more than the answer to a small request.
    """

    app: ASGIApp
    services: ServerServices
    hosts: TrustedHosts
    proxies: TrustedProxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            # RFC 9110, 9.3.2: as GET; the server omits the content, by the scope that it has.
            scope = {**scope, "method": "GET"}
        record = RequestRecord(scope, send, proxies=self.proxies, draining=self.services.draining)
        current_request.set(record)
        current_use.set(record.store)
        try:
            self.hosts.check(scope, record.hosts)
            if record.has_unknown_coding:
                record.refuse_coding()
            if scope["path"] not in _MONITORING:
                # Here a rejection costs least; an incomplete body is checked again when complete.
                self.services.admission.admit(scope)
            await self.app(scope, receive, record)
        except (Exception, asyncio.CancelledError) as failure:  # noqa: BLE001 - the last handler
            problem = _problem_of(failure, record)
            if problem is not None:
                await respond(problem, record.request_id)(scope, receive, record)
        finally:
            self.services.admission.release(scope)
            seconds = monotonic() - record.since
            metrics = self.services.metrics
            metrics.observe_request(record.method, record.route, record.status, seconds)
            if record.store.has_changed:
                log.info("change", projects=record.projects, **record.summary(seconds))
            if self.services.log_requests:
                log.info("request", **record.summary(seconds))


def _problem_of(failure: BaseException, record: RequestRecord) -> Problem | None:
    """Return what to answer to a failure of the application; None if nothing can be answered."""
    if isinstance(failure, ClientDisconnect):
        if REJECTED not in record.scope["state"]:
            log.info("client_disconnected")
        return None
    if isinstance(failure, Problem):
        return failure
    if isinstance(failure, asyncio.CancelledError):
        # The service stops, and the request took longer than `stop_seconds`.
        return None if record.status else stopping()
    log.error("internal_error", route=record.route, **where(failure), exc_info=failure)
    if record.status:
        raise failure
    return Problem("internal_error")
