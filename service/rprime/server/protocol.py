"""Connections: uvicorn's protocol, with a deadline for every client that keeps it waiting."""

import asyncio
import socket
from contextlib import suppress
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Literal, NoReturn

from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from rprime.problems.problem import Problem
from rprime.server.logs import log_request
from rprime.server.metrics import OTHER, Metrics
from rprime.server.read_scheduler import ReadScheduler, ScheduledFlowControl
from rprime.server.rejections import PeekedRequest, RawResponse, request_id_of
from rprime.settings import Limits

COMPLETED_AT = "rprime.complete"
"""In the scope of a request: when all of it was there, by the monotonic clock; for one that found
too many before it, so long ago that nobody waits so long."""
_ACCEPTED_AT_ONCE = 1000
_AT_ONCE = 64 * 1024
"""Bytes: more than a request has that costs much less to read than to answer. Who sends more at a
time lets others go first."""
_TICK = 0.5
_LINGERING = 2.0
_LONGEST_TARGET = 65_535
"""Bytes: the parser of targets cannot count further."""
_LINE_BYTES = len(b"  HTTP/1.1\r\n") + len(b"\r\n")
"""What the first and the last line of a head have besides the method and the target."""
_FIELD_BYTES = len(b": \r\n")


def overloaded_problem() -> Problem:
    """Give the problem of who comes when too many others have come."""
    detail = "More requests came than could be answered in time."
    return Problem("overloaded", detail, headers={"Retry-After": "1"})


_BUSY = RawResponse(overloaded_problem())

_Fault = tuple[Problem, str]
"""The answer to a request that cannot be read, and the reason that the metrics count."""
_MALFORMED: _Fault = (Problem("bad_request"), "malformed")
_LARGE_HEAD: _Fault = (Problem("head_too_large"), "head")
_LARGE_FRAMING: _Fault = (
    Problem("bad_request", "The chunks of the body have more framing than content."),
    "malformed",
)
_TRAILERS: _Fault = (
    Problem("bad_request", "The body has trailer fields; send them as headers."),
    "trailers",
)

Phase = Literal["idle", "head", "body", "refused"]


class _RefusedError(Exception):
    """Stops the parser where it is; `_fault` has the answer."""


class HttpProtocol(HttpToolsProtocol):
    """A connection whose client has to send its requests and to take its answers.

    uvicorn waits for ever for a head, for a body and for an answer to be taken. Here a clock runs
    whenever the client is the one who is waited for, and only then: not while a request is worked
    on, and not while its body is not read because others go first. It has no timer for each
    request: twice a second a look at the connection adds to what it has waited.

    Requests of all connections that are there and not answered stand in one line. If that is as
    long as it may be, who comes with a whole body in hand is told so by the server itself: that
    costs some per cent of an answer, and many times more can be told so than can be answered.

    Parameters
    ----------
    limits
        How long each may take, and how long a head may be.
    listener
        Where others wait who have come at the same time.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - uvicorn's
        limits: Limits,
        listener: socket.socket | None = None,
        **more: Any,  # noqa: ANN401 - uvicorn's
    ) -> None:
        super().__init__(*args, **more)
        self._limits = limits
        self._listener = listener
        self._phase: Phase = "idle"
        self._waited = 0.0
        self._received = 0
        self._head_bytes = 0
        self._framing_bytes = 0
        self._fault = _MALFORMED
        self._current: RequestResponseCycle | None = None
        self._untaken = 0
        self._stuck = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # What uvicorn and its parser say

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # by TCP
        super().connection_made(transport)
        scheduler: ReadScheduler = self.app_state["turns"]
        self.flow: ScheduledFlowControl = ScheduledFlowControl(transport, scheduler)
        if self._listener is not None:
            self._accept_others(self._listener)
        self._timer = self.loop.call_later(_TICK, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._phase != "refused":
            self._take(data)
        if len(data) > _AT_ONCE and not self.flow.read_paused:
            # Of what nobody reads any more libuv would take 32 such parts at a time.
            self.flow.let_others()

    def _take(self, data: bytes) -> None:
        if self._is_line_full and self._is_turned_away(data):
            return
        before = self._received
        super().data_received(data)
        if self._phase == "head":
            self._received += len(data)
            if self._received > self._limits.head_bytes:
                self._refuse(*_LARGE_HEAD)
        elif self._phase == "body" and self._received == before:
            # Not a byte of the body: sizes and extensions of chunks, or the start of a trailer,
            # which the parser keeps until it is complete.
            self._framing_bytes += len(data)
            if self._framing_bytes > self._limits.head_bytes:
                self._refuse(*_LARGE_FRAMING)

    def on_message_begin(self) -> None:
        self._enter("head")
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._phase == "body":
            # A trailer. uvicorn would append it to the headers that the application reads, which
            # RFC 9110, 6.5.1, forbids: it comes after whatever a proxy checked.
            self._stop_parsing(_TRAILERS)
        self._count_head(len(name) + len(value) + _FIELD_BYTES)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._count_head(len(self.parser.get_method()) + _LINE_BYTES)
        if len(self.url) > _LONGEST_TARGET:
            self._stop_parsing(_LARGE_HEAD)
        self._enter("body")
        super().on_headers_complete()

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._limits.head_bytes:
            self._stop_parsing(_LARGE_HEAD)

    def _stop_parsing(self, fault: "_Fault") -> NoReturn:
        self._fault = fault
        raise _RefusedError

    def on_body(self, body: bytes) -> None:
        self._received += len(body)
        if cycle := self._answering:
            # uvicorn copies what comes into a bytearray, and that again when it is asked for. One
            # part at a time, which is how a large body comes, is handed on as it is.
            if not cycle.body:
                cycle.body, body = body, b""  # type: ignore[assignment] # it gives bytes of it
            elif isinstance(cycle.body, bytes):
                cycle.body = bytearray(cycle.body)
        super().on_body(body)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if not cycle.more_body:
            # It waited for the one before it on the same connection, which is nobody's line.
            self._line_up(cycle)
        self._current = cycle
        super()._start_asgi_task(cycle, partial(self._answer, cycle, app))

    def on_message_complete(self) -> None:
        self._enter("idle")
        super().on_message_complete()
        if self._answering and not self.pipeline:
            self._line_up(self.cycle)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - it is a problem like others
        self._refuse(*self._fault)

    # The line

    @property
    def _is_line_full(self) -> bool:
        return len(self._line) >= self._limits.in_flight_requests

    def _line_up(self, cycle: RequestResponseCycle) -> None:
        complete = -inf if self._is_line_full else monotonic()
        cycle.scope[COMPLETED_AT] = complete  # type: ignore[literal-required] # a key of our own
        if complete > 0:
            self._line.add(cycle)

    async def _answer(
        self,
        cycle: RequestResponseCycle,
        app: ASGI3Application,
        scope: Scope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
    ) -> None:
        try:
            await app(scope, receive, send)
        finally:
            self._line.discard(cycle)

    def _is_turned_away(self, data: bytes) -> bool:
        """Refuse a request that is all there; others go the usual way."""
        if self._phase != "idle" or self._answering or (peeked := _whole(data)) is None:
            return False
        self._unset_keepalive_if_required()
        self.transport.write(self._dismissal(peeked, closing=not peeked.keep_alive))
        if peeked.keep_alive:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        else:
            self.transport.close()
        return True

    def _is_sent_away(self, other: socket.socket) -> bool:
        """Refuse who comes with such a request, before it costs what a connection costs."""
        try:
            data = other.recv(_AT_ONCE, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            if (peeked := _whole(data)) is None:
                return False
            # What is left unread would reset the connection, and the answer would be lost.
            other.recv(len(data))
            other.send(self._dismissal(peeked, closing=True))
        except OSError:
            return False
        other.close()
        return True

    def _dismissal(self, peeked: PeekedRequest, *, closing: bool) -> bytes:
        request_id = request_id_of(peeked.headers)
        self._metrics.answered("POST", OTHER, _BUSY.status, 0.0)
        if self.app_state["log_requests"]:
            log_request("POST", OTHER, _BUSY.status, 0.0, request_id.decode())
        return _BUSY.written(request_id, self.server_state.default_headers, closing=closing)

    def _accept_others(self, listener: socket.socket) -> None:
        """Accept all who wait.

        libuv accepts one for each turn of the loop. Under load a turn is long, and who comes
        anew, a probe for one, would stand in a line that nobody sees and that nobody ends.
        """
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                other, _address = listener.accept()
            except OSError:
                return
            if self._is_line_full and self._is_sent_away(other):
                continue
            # The server waits for its tasks before it stops.
            task = self.loop.create_task(self._connected(other))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _connected(self, other: socket.socket) -> None:
        with suppress(OSError):
            await self.loop.connect_accepted_socket(self._sibling, other)

    def _sibling(self) -> "HttpProtocol":
        return HttpProtocol(
            config=self.config,
            server_state=self.server_state,
            app_state=self.app_state,
            _loop=self.loop,
            limits=self._limits,
        )

    # The clock

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._waited = 0.0
        self._received = 0
        self._head_bytes = 0
        self._framing_bytes = 0

    def _look(self) -> None:
        self._timer = self.loop.call_later(_TICK, self._look)
        if self._is_stuck():
            self._abort("answer")
        elif self._phase == "refused" and not self._before(None):
            self._waited += _TICK
            if self._waited >= _LINGERING:
                self.transport.abort()
        elif self._is_waited_for():
            self._waited += _TICK
            if self._waited >= self._patience():
                self._give_up()

    def _is_waited_for(self) -> bool:
        if self._phase == "body":
            return not (self.flow.read_paused or self.cycle.waiting_for_100_continue)
        # Of an idle connection uvicorn's own timer takes care, until something comes.
        return self._answering is None and self.timeout_keep_alive_task is None

    def _patience(self) -> float:
        if self._phase != "body":
            return self._limits.head_seconds
        return self._limits.body_seconds + self._received / self._limits.body_bytes_per_second

    def _is_stuck(self) -> bool:
        """Whether the client has taken nothing of what waits for it for too long."""
        untaken = self.transport.get_write_buffer_size()
        moved = untaken != self._untaken
        self._untaken = untaken
        self._stuck = 0.0 if moved or not untaken else self._stuck + _TICK
        return self._stuck >= self._limits.answer_seconds

    def resume_writing(self) -> None:
        # Something was taken, even if as much waits again at the next look.
        self._untaken = 0
        super().resume_writing()

    # The end

    def _give_up(self) -> None:
        phase = self._phase
        if phase == "idle":
            # Nothing was asked, so there is nothing to answer.
            self._abort("idle")
        elif phase == "body" and self.cycle.response_started:
            self._abort("body")
        else:
            self._refuse(Problem("request_timeout"), phase)

    def _abort(self, reason: str) -> None:
        self._metrics.closed(reason)
        self.transport.abort()

    def _refuse(self, problem: Problem, reason: str) -> None:
        """Answer without the application, if no answer has begun, and end the connection."""
        self._metrics.closed(reason)
        is_read = self._phase == "body"
        self._enter("refused")
        if earlier := self._before(self.cycle if is_read else None):
            # Answers come in the order of their requests. The connection ends with this one, which
            # tells the client that the next request has none.
            earlier.keep_alive = False
            return
        if is_read and self.cycle.response_started:
            self._disconnect(self.cycle)
            self.transport.close()
            return
        if is_read:
            self._disconnect(self.cycle)
        headers = self.server_state.default_headers
        self.transport.write(RawResponse(problem).written(request_id_of(()), headers, closing=True))
        # What is on its way already is read and dropped: closing at once would reset the
        # connection, and the answer would be lost with it.
        self.flow.resume_reading()
        self.transport.write_eof()

    def _before(self, refused: RequestResponseCycle | None) -> RequestResponseCycle | None:
        """Return the request that is being answered, if it is not the refused one."""
        current = self._current
        if current is None or current is refused or current.response_complete:
            return None
        return None if current.disconnected else current

    @staticmethod
    def _disconnect(cycle: RequestResponseCycle) -> None:
        """Tell the application that the client has gone; its answer goes nowhere."""
        cycle.disconnected = True
        cycle.message_event.set()

    @property
    def _answering(self) -> RequestResponseCycle | None:
        """The request that is worked on."""
        cycle: RequestResponseCycle | None = self.cycle
        return None if cycle is None or cycle.response_complete else cycle

    @property
    def _metrics(self) -> Metrics:
        found: Metrics = self.app_state["metrics"]
        return found

    @property
    def _line(self) -> set[RequestResponseCycle]:
        found: set[RequestResponseCycle] = self.app_state["line"]
        return found


def _whole(data: bytes) -> PeekedRequest | None:
    """Look at what has come: a whole request with a body, or anything else, a probe above all."""
    if not data.startswith(b"POST "):
        return None
    peeked = PeekedRequest(data)
    return peeked if peeked.is_whole else None
