"""Load shedding: responses that the server writes before a request costs what a request costs."""

import secrets
import socket
from collections.abc import Iterable
from functools import cache

import orjson
import structlog
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from rprime.problems.problem import MEDIA_TYPE, Problem
from rprime.server.admission import overloaded_problem
from rprime.server.metrics import OTHER
from rprime.server.request_record import CLOSE, DEFAULT_HEADERS, REQUEST_ID, SAFE_ID
from rprime.server.services import ServerServices

_MAX_PEEK = 64 * 1024
"""Bytes of a request that is rejected without a connection of its own."""

log = structlog.get_logger(__name__)
Headers = Iterable[tuple[bytes, bytes]]


def reject_early(
    data: bytes, shared: ServerServices, headers: Headers, *, closing: bool = False
) -> tuple[bytes, bool] | None:
    """Return the rejection of a complete POST request, and whether the connection stays open.

    None for anything else, such as a probe. The data are the first bytes of the request, the
    headers those of every response; closing: it closes even if the client would keep it.
    """
    if not data.startswith(b"POST ") or not (peeked := PeekedRequest(data)).is_complete:
        return None
    keep_alive = peeked.keep_alive and not closing
    request_id, response = request_id_of(peeked.headers), _overloaded()
    shared.admission.rejected["in_flight_requests"] += 1
    shared.metrics.observe_request("POST", OTHER, response.status, 0.0)
    if shared.log_requests:
        event = {"method": "POST", "route": OTHER, "status": response.status, "milliseconds": 0.0}
        log.info("request", **event, bytes_in=len(data), request_id=request_id.decode())
    return response.encode(request_id, headers, closing=not keep_alive), keep_alive


def reject_socket(accepted: socket.socket, shared: ServerServices, headers: Headers) -> bool:
    """Reject a request on a socket that has no protocol yet; return whether it was rejected."""
    try:
        data = accepted.recv(_MAX_PEEK, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        rejection = reject_early(data, shared, headers, closing=True)
        if rejection is None:
            return False
        # Unread bytes would reset the connection, and the response would be lost.
        accepted.recv(len(data))
        accepted.sendall(rejection[0])
    except OSError:
        return False
    accepted.close()
    return True


def request_id_of(headers: Headers) -> bytes:
    """Return the id of a request: the last of its own that is safe to repeat, else a new one."""
    found = [value for name, value in headers if name.lower() == REQUEST_ID]
    safe = next(filter(SAFE_ID.fullmatch, reversed(found)), None)
    return safe or secrets.token_hex(16).encode()


class RawResponse:
    """A problem as a response that lacks only the id of the request."""

    def __init__(self, problem: Problem) -> None:
        document = orjson.dumps(problem.document("\n"))
        self._before, self._after = document.split(orjson.dumps("\n")[1:-1])
        own = ((name.lower().encode(), value.encode()) for name, value in problem.headers.items())
        headers = ((b"content-type", MEDIA_TYPE.encode()), *DEFAULT_HEADERS, *own)
        self.status = problem.status
        self._head = STATUS_LINE[problem.status] + _lines(headers)

    def encode(self, request_id: bytes, headers: Headers, *, closing: bool) -> bytes:
        """Return the bytes of the response, with the default headers of the server."""
        length = len(self._before) + len(request_id) + len(self._after)
        more = _lines((*headers, CLOSE) if closing else headers)
        return b"%b%bcontent-length: %d\r\nx-request-id: %b\r\n\r\n%b%b%b" % (
            *(self._head, more, length, request_id),
            *(self._before, request_id, self._after),
        )


def _lines(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


@cache
def _overloaded() -> RawResponse:
    """Return the rejection, made when the service knows its prefix."""
    return RawResponse(overloaded_problem())


class PeekedRequest:
    """The head of a request that is parsed without its connection.

    It costs a tenth of what a request costs before the application.
    """

    def __init__(self, data: bytes) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.keep_alive = False
        self._started = self._completed = 0
        self._has_head = self._has_trailers = False
        self._parser = HttpRequestParser(self)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._completed = 0
        # Parser and callbacks refer to each other; many such cycles cost time in the collector.
        del self._parser

    @property
    def is_complete(self) -> bool:
        """Whether the bytes are exactly one request, without trailers."""
        return self._started == self._completed == 1 and not self._has_trailers

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        """Count the start of a request."""
        self._started += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header, and note a trailer."""
        self._has_trailers = self._has_head
        if not self._has_head:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Note whether the client keeps the connection."""
        self._has_head = True
        self.keep_alive = (
            self._parser.get_http_version() != "1.0" and self._parser.should_keep_alive()
        )

    def on_message_complete(self) -> None:
        """Count the end of a request."""
        self._completed += 1
