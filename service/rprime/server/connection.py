"""Connection: the private state of uvicorn's protocol that the server needs."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from rprime.problems.problem import Problem
from rprime.server.rejections import RawResponse, request_id_of


class Connection(HttpToolsProtocol):
    """uvicorn's protocol, with names for the states of its requests."""

    _started: RequestResponseCycle | None = None

    @property
    def active_request(self) -> RequestResponseCycle | None:
        """The request that was read last, if its response is not complete."""
        cycle: RequestResponseCycle | None = self.cycle
        return None if cycle is None or cycle.response_complete else cycle

    @property
    def is_body_awaited(self) -> bool:
        """Whether the client has to send the next part of a body."""
        return not (self.flow.read_paused or self.cycle.waiting_for_100_continue)

    @property
    def is_next_request_awaited(self) -> bool:
        """Whether the client has to send a request; between two, uvicorn has a timer for that."""
        return self.active_request is None and self.timeout_keep_alive_task is None

    def request_before(self, rejected: RequestResponseCycle | None) -> RequestResponseCycle | None:
        """Return the request that the application answers, if it is not the rejected one."""
        started = self._started
        if started is None or started is rejected or started.response_complete:
            return None
        return None if started.disconnected else started

    def close_after(self, earlier: RequestResponseCycle) -> None:
        """Close the connection with the response to an earlier request.

        Responses come in the order of requests, so the end of the connection tells the client that
        the next request has none.
        """
        earlier.keep_alive = False

    def disconnect(self, cycle: RequestResponseCycle) -> None:
        """Tell the application that the client has disconnected, and drop its response."""
        cycle.disconnected = True
        cycle.message_event.set()

    def write_last_response(self, problem: Problem) -> None:
        """Write a response without the application, and nothing after it."""
        headers = self.server_state.default_headers
        self.transport.write(RawResponse(problem).encode(request_id_of(()), headers, closing=True))
        # The rest of the request is read and dropped: closing at once would reset the connection,
        # and the response would be lost.
        self.flow.resume_reading()
        self.transport.write_eof()

    def write_early_response(self, content: bytes, *, keep_alive: bool) -> None:
        """Write a response without the application, and wait for the next request."""
        self._unset_keepalive_if_required()
        self.transport.write(content)
        if keep_alive:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        else:
            self.transport.close()
