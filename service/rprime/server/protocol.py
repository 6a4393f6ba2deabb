"""The protocol that uvicorn runs, with a queue of requests and load shedding."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from rprime.server.bounded_connection import BoundedConnection
from rprime.server.load_shedding import reject_early, reject_socket
from rprime.server.read_scheduler import ScheduledFlowControl

_LARGE_READ = 64 * 1024
"""Bytes: more than a request has that costs much less to read than to answer. A client that sends
more at a time lets the others be read first."""
_MAX_ACCEPTED = 1000


def pending_sockets(listener: socket.socket) -> Iterator[socket.socket]:
    """Accept and yield the connections that wait, at most a thousand.

    libuv accepts one connection in each iteration of the event loop. Under load an iteration is
    long, and new connections, such as those of probes, would wait in the backlog without a bound.
    """
    for _ in range(_MAX_ACCEPTED):
        try:
            accepted, _address = listener.accept()
        except OSError:
            return
        yield accepted


class HttpProtocol(BoundedConnection):
    """The protocol that uvicorn runs for each connection.

    While the queue of requests is full, requests that are already complete are rejected without the
    application, which costs some per cent of an answer. Large bodies are read in turns.

    Parameters
    ----------
    listener
        The socket whose other pending connections each new one accepts, too.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - uvicorn's
        listener: socket.socket | None = None,
        **more: Any,  # noqa: ANN401 - uvicorn's
    ) -> None:
        super().__init__(*args, **more)
        self._listener = listener

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # by TCP
        super().connection_made(transport)
        self.flow: ScheduledFlowControl = ScheduledFlowControl(transport, self.shared.scheduler)
        if self._listener is not None:
            self._accept_pending(self._listener)

    def data_received(self, data: bytes) -> None:
        if self.deadlines.phase != "rejected" and not (
            self.shared.admission.is_full and self._is_shed(data)
        ):
            super().data_received(data)
        if len(data) > _LARGE_READ and not self.flow.read_paused:
            # libuv would read 32 such parts at a time, even of a rejected request.
            self.flow.yield_turn()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if not (self.cycle.response_complete or self.pipeline):
            self.shared.admission.enqueue(self.cycle.scope)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if not cycle.more_body:
            # It waited for an earlier request of its own connection, not in the queue.
            self.shared.admission.enqueue(cycle.scope)
        self._started = cycle
        super()._start_asgi_task(cycle, app)

    def _is_shed(self, data: bytes) -> bool:
        if self.deadlines.phase != "idle" or self.active_request:
            return False
        rejection = reject_early(data, self.shared, self.server_state.default_headers)
        if rejection is None:
            return False
        self.write_early_response(rejection.content, keep_alive=rejection.keep_alive)
        return True

    def _accept_pending(self, listener: socket.socket) -> None:
        for accepted in pending_sockets(listener):
            if self.shared.admission.is_full and reject_socket(
                accepted, self.shared, self.server_state.default_headers
            ):
                continue
            # The server waits for its tasks before it stops.
            task = self.loop.create_task(self._connect(accepted))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _connect(self, accepted: socket.socket) -> None:
        def protocol() -> HttpProtocol:
            return HttpProtocol(
                config=self.config,
                server_state=self.server_state,
                app_state=self.app_state,
                _loop=self.loop,
            )

        with suppress(OSError):
            await self.loop.connect_accepted_socket(protocol, accepted)
