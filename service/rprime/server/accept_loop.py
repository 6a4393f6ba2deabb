"""Accept loop: all connections that wait in the backlog of a socket."""

import socket
from collections.abc import Iterator

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
