"""The protocol that uvicorn runs: deadlines and bounds for clients, and a queue."""

import asyncio
import re
import secrets
from collections.abc import Iterable
from functools import partial
from http import HTTPStatus
from typing import Any, Literal

import httptools
import orjson
import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from rprime.problems.problem import MEDIA_TYPE, Problem
from rprime.server.admission import ANNOUNCED, REJECTED, overloaded_problem
from rprime.server.connections import SPARE
from rprime.server.read_scheduler import ScheduledFlowControl
from rprime.server.request_record import CLOSE, DEFAULT_HEADERS, REQUEST_ID
from rprime.server.services import LIFESPAN_KEY, ServerServices
from rprime.settings import Limits

_INTERVAL = 0.5
"""Seconds between two checks of a connection. One timer per connection costs less than one per
request."""
_LINGER_SECONDS = 2.0
"""How long bytes that follow a rejected request are read and dropped."""
_LARGE_READ = 64 * 1024
"""Bytes: more than a request has that costs much less to read than to answer. A client that sends
more at a time lets the others be read first."""
_BEGINNING = b"HTTP/1.1 "
"""Of every answer."""
_MAX_TARGET_BYTES = 65_535
"""The parser of targets counts in 16 bits."""
_LINE_BYTES = len(b"  HTTP/1.1\r\n") + len(b"\r\n")
"""What the first and the last line of a head have besides the method and the target."""
_FIELD_BYTES = len(b": \r\n")
"""What a header field has besides its name and value."""

# The problem of a request that cannot be read, and the reason that the metrics count.
_bad = partial(Problem, "bad_request")
_MALFORMED = (_bad(), "malformed")
_LARGE_HEAD = (Problem("head_too_large"), "head")
_LARGE_FRAMING = (_bad("The chunks of the body have more framing than content."), "malformed")
_FULL = (overloaded_problem("The service has as many connections as it may have."), "connections")
_VERSIONS = ("1.1", "1.0")
_VERSION = (_bad("The version of HTTP is 1.1 or 1.0."), "malformed")
_CHUNK_SIZE = re.compile(rb"0*([0-9a-fA-F]{1,16})[ \t\r]*(?:;|$)")
_LONGEST_SIZE = 64
"""Bytes of a size that is looked at; more have leading zeros."""
_ABSOLUTE = re.compile(rb"https?://([^/?#]*)", re.IGNORECASE)
_TRAILERS = (_bad("The body has trailer fields; send them as headers."), "trailers")

log = structlog.get_logger(__name__)
Phase = Literal["idle", "head", "body", "rejected"]
"""What the server reads next. After a rejection it reads no more requests."""
_BYTE_CHUNK = len(b"1\r\n?\r\n")
"""Bytes of a chunk of one byte, which some clients send one after the other."""
_PHASES = 2
"""Of a request: its head and its body."""


class _FramingError(Exception):
    """Stops the parser, which calls `send_400_response`."""


class _RequestParser:
    """The parser of a connection, which ignores the header Upgrade (RFC 9110, 7.8).

    That of httptools takes what follows the head of such a request for another protocol. So the
    head is parsed once more without this header, and then its body.
    """

    def __init__(self, protocol: "HttpProtocol") -> None:
        self._protocol = protocol
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpRequestParser(self._protocol)
        # As uvicorn does: the answer to the first of pipelined requests may end the connection.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.get_method = self._parser.get_method
        self.get_http_version = self._parser.get_http_version
        self.should_keep_alive = self._parser.should_keep_alive

    def should_upgrade(self) -> bool:
        """Whether the head that was read will be read once more."""
        return self._parser.should_upgrade() and self.get_method() != b"CONNECT"

    def feed_data(self, data: bytes) -> None:
        """Parse some bytes."""
        rest = memoryview(data)
        while True:
            try:
                return self._parser.feed_data(rest)
            except httptools.HttpParserUpgrade as offered:
                if not self.should_upgrade():
                    raise
                rest = rest[offered.args[0] :]
                head = self._head()
                self._begin()
                self._parser.feed_data(head)

    def _head(self) -> bytes:
        """Write the head that was read without what it offers."""
        start = (self.get_method(), self._protocol.url, self.get_http_version().encode())
        fields = [field for field in self._protocol.headers if field[0] != b"upgrade"]
        lines = [b"%b %b HTTP/%b" % start, *(b"%b: %b" % field for field in fields)]
        return b"\r\n".join([*lines, b"", b""])


class _BegunTransport:
    """The transport of an answer of which some bytes were sent before it was there."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.sent = 0
        self._transport = transport
        self.close, self.is_closing = transport.close, transport.is_closing

    def probe(self) -> None:
        """Send one byte more, which the system of a client that is gone refuses."""
        if self.sent < len(_BEGINNING):
            self._transport.write(_BEGINNING[self.sent : self.sent + 1])
            self.sent += 1

    def write(self, content: bytes) -> None:
        """Send what is left of an answer."""
        self._transport.write(content[self.sent :])
        self.sent = 0


class _Chunk:
    """The chunk of a body that is being read, and its size, which httptools does not tell."""

    def __init__(self) -> None:
        self.start: int | None = None
        """Bytes of the body before it; None between two chunks."""
        self._has_begun = False
        self._line = b""
        """The beginning of a size of which the rest has not been read."""

    def begin(self, start: int) -> None:
        """Note that its size has been read."""
        self.start, self._has_begun = start, True

    def end(self) -> None:
        """Note that all of it has been read."""
        self.start = None

    def announced(self, data: bytes, received: int) -> int | None:
        """Return how long the body will be at least, if a chunk began in what was just read.

        Parameters
        ----------
        received
            Bytes of the body so far.
        """
        has_begun, self._has_begun = self._has_begun, False
        if self.start is None:
            *ends, line = data.rsplit(b"\n", 1)
            self._line = (b"" if ends else self._line) + line[:_LONGEST_SIZE]
            return None
        if not has_begun:
            return None
        # What was read ends with what there is of the chunk.
        before = data[: len(data) - (received - self.start)]
        *ends, line = before.removesuffix(b"\n").rsplit(b"\n", 1)
        size = _CHUNK_SIZE.match(line if ends else self._line + line)
        self._line = b""
        return None if size is None else self.start + int(size[1], 16)


class Deadlines:
    """Measure what the client of one connection sends, and how long it has sent or read nothing."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._unsent = 0
        self._stalled = 0.0
        self.phases = 0
        """How many have begun."""
        self.enter("idle")

    def enter(self, phase: Phase) -> None:
        """Begin a phase, with all of its time left."""
        self.phase: Phase = phase
        self.phases += 1
        self._waited = 0.0
        self.received = 0
        """Bytes of the body of the current request."""
        self.head = 0
        """Bytes of its head that the parser has reported."""
        self.framing = 0
        """Bytes that were read in this phase, by which they exceed chunks of one byte."""

    def is_read_overdue(self) -> bool:
        """Count one interval of waiting for the client; return whether that is too long."""
        self._waited += _INTERVAL
        return self.read_share >= 1

    @property
    def read_share(self) -> float:
        """The share of the time for this phase that the client has taken."""
        allowed = self._limits.head_seconds
        if self.phase == "rejected":
            allowed = _LINGER_SECONDS
        elif self.phase == "body":
            allowed = self._limits.body_seconds
            allowed += self.received / self._limits.body_bytes_per_second
        return self._waited / allowed

    @property
    def write_share(self) -> float:
        """The share of the time for reading a response in which the client has read nothing."""
        return self._stalled / self._limits.answer_seconds

    def count_framing(self, size: int, before: "tuple[Phase, int, int]") -> int:
        """Count what was read, and return by how much the framing of this phase is too much.

        Parameters
        ----------
        before
            The phase, the number of phases and the bytes of the body before it was read.
        """
        phase, phases, received = before
        if phases == self.phases:
            self.framing = max(0, self.framing + size - _BYTE_CHUNK * (self.received - received))
        elif phase != "body" and self.phases - phases <= _PHASES and not self.received:
            # It has no more than the beginning of one request.
            self.framing += size
        return self.framing

    def is_write_overdue(self, unsent: int) -> bool:
        """Count one interval, after which so many bytes are in the write buffer.

        Return whether the client has read nothing of a response for too long.
        """
        is_unchanged = unsent == self._unsent and unsent > 0
        self._unsent = unsent
        self._stalled = self._stalled + _INTERVAL if is_unchanged else 0.0
        return self._stalled >= self._limits.answer_seconds

    def record_write(self) -> None:
        """Note that the client has read something, even if the next response fills the buffer."""
        self._unsent = 0


class HttpProtocol(HttpToolsProtocol):
    """The protocol that uvicorn runs for each connection.

    uvicorn waits without end for a head, for a body and for a response to be read. Here deadlines
    run while the server waits for the client, and only then: not while a request is answered, and
    not while its body is not read because other connections are read first.

    Large bodies are read in turns. What is offered by the header Upgrade is ignored, and the
    request answered as it is (RFC 9110, 7.8).

    The callbacks count in place, without calls: they run for every header of every request.
    """

    def __init__(self, *args: Any, **more: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(*args, **more)
        self.parser = _RequestParser(self)  # type: ignore[assignment] # has what uvicorn calls
        self.shared: ServerServices = self.app_state[LIFESPAN_KEY]
        self.deadlines = Deadlines(self.shared.limits)
        self._max_head = self.shared.limits.head_bytes
        self._rejection = _MALFORMED
        self._timer: asyncio.TimerHandle | None = None
        self._chunk = _Chunk()
        self._started: RequestResponseCycle | None = None
        self._half_closed: int | None = None
        """Intervals since the client has closed its side."""

    # Callbacks of the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # by TCP
        super().connection_made(transport)
        self._timer = self.loop.call_later(_INTERVAL, self._check_deadlines)
        self.flow: ScheduledFlowControl = ScheduledFlowControl(transport, self.shared.scheduler)
        connections = self.shared.open_connections
        if connections.add(self) > connections.most + SPARE:
            self.abort("connections")
        elif connections.count > connections.most:
            self._reject(*_FULL)

    def connection_lost(self, exc: Exception | None) -> None:
        self.shared.open_connections.remove(self)
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        deadlines = self.deadlines
        if deadlines.phase != "rejected":
            before = deadlines.phase, deadlines.phases, deadlines.received
            super().data_received(data)
            if deadlines.phase == "body":
                self._announce(data)
            # The parser may have buffered all of it: it reports only complete fields.
            if (
                deadlines.phase in ("head", "body")
                and deadlines.count_framing(len(data), before) > self._max_head
            ):
                self._reject(*(_LARGE_HEAD if deadlines.phase == "head" else _LARGE_FRAMING))
        if len(data) > _LARGE_READ and not self.flow.read_paused:
            # libuv would read 32 such parts at a time, even of a rejected request.
            self.flow.yield_turn()

    def eof_received(self) -> bool:  # type: ignore[override] # asyncio reads what it returns
        """Whether to stay open, to answer a client that sends nothing after a whole request.

        A client that is gone looks the same until something is written to it.
        """
        cycle = self._active_request
        if cycle is None or cycle.more_body:
            return False
        cycle.keep_alive = False
        self._half_closed = 0
        self._probe()
        return True

    def resume_writing(self) -> None:
        self.deadlines.record_write()
        super().resume_writing()

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        self.deadlines.enter("head")
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        deadlines = self.deadlines
        deadlines.head += len(name) + len(value) + _FIELD_BYTES
        if deadlines.phase == "body":
            # uvicorn would append it to the headers that the application reads, which RFC 9110,
            # 6.5.1, forbids: a trailer comes after the checks of a proxy.
            self._rejection = _TRAILERS
            raise _FramingError
        if deadlines.head > self._max_head:
            self._rejection = _LARGE_HEAD
            raise _FramingError
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        lines = len(self.parser.get_method()) + len(self.url) + _LINE_BYTES
        if self.deadlines.head + lines > self._max_head or len(self.url) > _MAX_TARGET_BYTES:
            self._rejection = _LARGE_HEAD
            raise _FramingError
        if self.parser.get_http_version() not in _VERSIONS:
            self._rejection = _VERSION
            raise _FramingError
        if self.parser.should_upgrade():
            return
        if not self.url.startswith(b"/") and (target := _ABSOLUTE.match(self.url)):
            # RFC 9112, 3.2.2: the target names whom the request is for, whatever Host says.
            hosts = [value for name, value in self.headers if name == b"host"]
            others = [header for header in self.headers if header[0] != b"host"]
            self.headers = [*others, *((b"host", target[1]) for _ in hosts)]
            self.scope["headers"] = self.headers
        if self.parser.get_http_version() == "1.0":
            # RFC 9110, 10.1.1: its client knows no interim answers.
            self.expect_100_continue = False
        self.deadlines.enter("body")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self.deadlines.received += len(body)
        super().on_body(body)

    def on_chunk_header(self) -> None:
        """Note that the size of a chunk has been read."""
        self._chunk.begin(self.deadlines.received)

    def on_chunk_complete(self) -> None:
        """Note that a chunk has been read."""
        self._chunk.end()

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self.deadlines.enter("idle")
        super().on_message_complete()
        if not (self.cycle.response_complete or self.pipeline):
            self.shared.admission.enqueue(self.cycle.scope)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - it is a problem like others
        self._reject(*self._rejection)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401 - uvicorn's
        if not cycle.more_body:
            # It waited for an earlier request of its own connection, not in the queue.
            self.shared.admission.enqueue(cycle.scope)
        self._started = cycle
        super()._start_asgi_task(cycle, app)

    # Deadlines

    def _check_deadlines(self) -> None:
        self._timer = self.loop.call_later(_INTERVAL, self._check_deadlines)
        if self._half_closed is not None:
            self._half_closed += 1
            self._probe()
        if self.deadlines.is_write_overdue(self.transport.get_write_buffer_size()):
            self.abort("answer")
        elif self._is_client_awaited() and self.deadlines.is_read_overdue():
            phase = self.deadlines.phase
            if phase == "rejected":
                self.transport.abort()
            elif phase == "idle" or (phase == "body" and self.cycle.response_started):
                # There is no request to answer, or its response has begun.
                self.abort(phase)
            else:
                self._reject(Problem("request_timeout"), phase)

    @property
    def used_share(self) -> float:
        """The share of its time that the client has used up; 0 while the server works for it."""
        if (timer := self.timeout_keep_alive_task) is not None:
            allowed = self.shared.limits.keep_alive_seconds
            idle = allowed - (timer.when() - self.loop.time())
            return idle / allowed if idle >= _INTERVAL else 0.0
        awaited = self.deadlines.read_share if self._is_client_awaited() else 0.0
        return max(awaited, self.deadlines.write_share)

    def _is_client_awaited(self) -> bool:
        if self.deadlines.phase == "rejected":
            return self._request_before(None) is None
        if self.deadlines.phase == "body":
            return not (self.flow.read_paused or self.cycle.waiting_for_100_continue)
        # Between two requests uvicorn has a timer.
        return self._active_request is None and self.timeout_keep_alive_task is None

    # The requests of the connection, and its end

    def _announce(self, data: bytes) -> None:
        """Tell the application how long the body will be, if the size of a chunk says so."""
        announced = self._chunk.announced(data, self.deadlines.received)
        if announced is not None:
            self.cycle.scope["state"][ANNOUNCED] = announced
            self.cycle.message_event.set()

    def _probe(self) -> None:
        """Find out whether a client that sends nothing more still reads.

        The system of one that is gone refuses the first byte of the answer, so that the next one
        fails, and the request stops. There are nine, so each wait is twice the one before.
        """
        cycle, intervals = self._active_request, self._half_closed
        assert intervals is not None  # noqa: S101 (only then it is called)
        if cycle is None or cycle is not self._started or cycle.response_started:
            return
        if not intervals & (intervals - 1):
            transport: Any = cycle.transport
            if not isinstance(transport, _BegunTransport):
                cycle.transport = transport = _BegunTransport(self.transport)  # type: ignore[assignment] # has what uvicorn calls
            transport.probe()

    @property
    def _active_request(self) -> RequestResponseCycle | None:
        """The request that was read last, if its response is not complete."""
        cycle: RequestResponseCycle | None = self.cycle
        return None if cycle is None or cycle.response_complete else cycle

    def _request_before(self, rejected: RequestResponseCycle | None) -> RequestResponseCycle | None:
        """Return the request that the application answers, if it is not the rejected one."""
        started = self._started
        if started is None or started is rejected or started.response_complete:
            return None
        return None if started.disconnected else started

    def abort(self, reason: str) -> None:
        """Disconnect the client, which gets no response."""
        self.shared.metrics.closed.labels(reason).inc()
        self.transport.abort()

    def _reject(self, problem: Problem, reason: str) -> None:
        """Respond without the application, if no response has begun, and close the connection."""
        self.shared.metrics.closed.labels(reason).inc()
        log.info("request_rejected", client=self.client[0] if self.client else None, reason=reason)
        rejected = self.cycle if self.deadlines.phase == "body" else None
        self.deadlines.enter("rejected")
        if earlier := self._request_before(rejected):
            # Responses come in the order of requests, so the end of the connection tells the
            # client that the next request has none.
            earlier.keep_alive = False
            return
        if rejected is not None:
            # The application learns that its client is gone, and its response is dropped.
            rejected.scope["state"][REJECTED] = rejected.disconnected = True
            rejected.message_event.set()
            if rejected.response_started:
                self.transport.close()
                return
        self.transport.write(_response(problem, self.server_state.default_headers))
        # The rest of the request is read and dropped: closing at once would reset the connection,
        # and the response would be lost.
        self.flow.resume_reading()
        self.transport.write_eof()


def _response(problem: Problem, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the bytes of a response without the application, after which the connection closes."""
    request_id = secrets.token_hex(16)
    content = orjson.dumps(problem.document(request_id))
    problem_headers = (
        (name.lower().encode(), value.encode()) for name, value in problem.headers.items()
    )
    fields = (
        *(
            (b"content-type", MEDIA_TYPE.encode()),
            *DEFAULT_HEADERS,
            *problem_headers,
            *headers,
            CLOSE,
        ),
        (b"content-length", b"%d" % len(content)),
        (REQUEST_ID, request_id.encode()),
    )
    line = f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n".encode()
    return b"".join([line, *(b"%b: %b\r\n" % field for field in fields), b"\r\n", content])
