"""The record of a request: what the log and the metrics say about it."""

import re
import secrets
from contextlib import suppress
from contextvars import ContextVar
from ipaddress import IPv6Address, ip_address, ip_network
from math import inf
from time import monotonic
from typing import Any, NoReturn

from starlette.types import Message, Scope, Send

from rprime.problems.problem import Problem
from rprime.server.addresses import TrustedProxies
from rprime.server.admission import COMPLETED_AT
from rprime.server.draining import Draining
from rprime.server.metrics import METHODS, OTHER
from rprime.store.use import StoreUse

# A browser that shows such a response loads and runs nothing.
_POLICY = b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
DEFAULT_HEADERS = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
"""Headers of a response that does not set them."""
PRIVATE = ((b"cache-control", b"private, no-cache"), (b"vary", b"Authorization, Cookie"))
"""Headers of a response that does not say who may keep it: what one may see another may not."""
CLOSE = (b"connection", b"close")
REQUEST_ID = b"x-request-id"
SAFE_ID = re.compile(rb"[A-Za-z0-9._~:/+=@-]{1,128}")
"""The ids of clients that responses and logs repeat."""
KEY = "key"
"""In the state of a request: the id of its key."""
PROJECTS = "projects"
"""In the state of a request: the projects that its body names."""
_V6_PREFIX = 64
"""Bits of an address of IPv6 that a provider hands to one customer."""
_CACHING = {b"cache-control", b"last-modified"}
_IDS = rb"-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
_TRACEPARENT = re.compile(rb"00%b|(?!00|ff)[0-9a-f]{2}%b(?:-.*)?" % (_IDS, _IDS))


class RequestRecord:
    """Measures a request, and sends its response with the default headers."""

    def __init__(
        self, scope: Scope, send: Send, *, proxies: TrustedProxies, draining: Draining
    ) -> None:
        self.scope = scope
        self._send = send
        self._proxies = proxies
        self._draining = draining
        self.method = scope["method"] if scope["method"] in METHODS else OTHER
        """The method, if it is known: clients cannot create series."""
        self.request_id = self.trace_id = secrets.token_hex(16)
        """The id that the client sent, or a new one; and that of W3C Trace Context: without a valid
        header `traceparent` a trace begins here."""
        self.hosts: list[bytes] = []
        self.has_unknown_coding = False
        """Whether the body has a transfer coding that is not undone (RFC 9112, 6.1)."""
        traceparents: list[bytes] = []
        for name, value in scope["headers"]:
            if name == b"host":
                self.hosts.append(value)
            elif name == REQUEST_ID and SAFE_ID.fullmatch(value):
                self.request_id = str(value, "ascii")
            elif name == b"traceparent":
                traceparents.append(value)
            elif name == b"transfer-encoding" and value.lower() != b"chunked":
                self.has_unknown_coding = True
        # A client sends one; of two it is not known which is right.
        if len(traceparents) == 1 and (match := _TRACEPARENT.fullmatch(traceparents[0])):
            self.trace_id = str(match[1] or match[2], "ascii")
        state = scope.setdefault("state", {})
        state["request_id"] = self.request_id
        now = monotonic()
        complete: float = state.get(COMPLETED_AT, now)
        self.since = complete if complete > -inf else now
        """When the request was complete, or began to be answered, by the monotonic clock."""
        self.queue_seconds = now - self.since
        """How long it waited for its turn."""
        self.client_seconds = 0.0
        """How long it waited for the client to send or to read."""
        self.received = self.sent = self.status = 0
        """Bytes of the body, as they were sent, and of the content of the response; and the status
        of the response, 0 before it has begun."""
        self.store = StoreUse()

    async def __call__(self, message: Message) -> None:
        """Send a part of the response; the function `send` of ASGI."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message["headers"]
            present = {name for name, _ in headers}
            headers.extend(header for header in DEFAULT_HEADERS if header[0] not in present)
            if _CACHING.isdisjoint(present):
                # A second Vary, if there is one, adds to the first.
                headers.extend(PRIVATE)
            headers.append((REQUEST_ID, self.request_id.encode()))
            if self._draining.has_started:
                headers.append(CLOSE)
        else:
            self.sent += len(message.get("body", b""))
        since = monotonic()
        await self._send(message)
        self.client_seconds += monotonic() - since

    def refuse_coding(self) -> NoReturn:
        """Refuse the transfer coding; where the body ends is then not known."""
        detail = "The only Transfer-Encoding is `chunked`."
        headers = {"Connection": "close"}
        raise Problem("unsupported_transfer_coding", detail, headers=headers)

    @property
    def route(self) -> str:
        """The template of the route; a path would reveal names."""
        return getattr(self.scope.get("route"), "path", OTHER)

    @property
    def projects(self) -> list[str]:
        """The projects that the path or the body names."""
        named: set[str] = self.scope["state"].get(PROJECTS, set())
        in_path = self.scope.get("path_params", {}).get("project")
        return sorted(named if in_path is None else {*named, in_path})

    @property
    def client(self) -> str | None:
        """The address of the client; None if its connection has no address."""
        return self._proxies.client_of(self.scope)

    def identity(self) -> dict[str, str | None]:
        """Return what each event of the request has."""
        return {"request_id": self.request_id, "trace_id": self.trace_id, "client": self.client}

    def summary(self, seconds: float) -> dict[str, Any]:
        """Return what the log says of an answered request that took so many seconds."""
        waited = self.queue_seconds + self.client_seconds + self.store.seconds
        durations = {
            "milliseconds": seconds,
            "queue_milliseconds": self.queue_seconds,
            "client_milliseconds": self.client_seconds,
            "store_milliseconds": self.store.seconds,
            "compute_milliseconds": max(0.0, seconds - waited),
        }
        return {
            "method": self.method,
            "route": self.route,
            "status": self.status,
            "key": self.scope["state"].get(KEY),
            **{name: round(value * 1000, 3) for name, value in durations.items()},
            "bytes_in": self.received,
            "bytes_out": self.sent,
        }


current_request: ContextVar[RequestRecord | None] = ContextVar("request", default=None)
"""The request that is answered in this context, in its threads, too."""


def network_of_client() -> str | None:
    """Return the address of the client that asks in this context, or its network of IPv6."""
    record = current_request.get()
    client = None if record is None else record.client
    with suppress(ValueError):
        address = ip_address(client or "")
        if isinstance(address, IPv6Address):
            return str(ip_network((address, _V6_PREFIX), strict=False))
    return client
