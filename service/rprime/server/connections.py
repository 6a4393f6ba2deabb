"""The open connections of a process, which are bounded."""

import resource
from typing import Protocol

SPARE = 64
"""Connections beyond the most, which are told that they are too many; further ones are closed."""
_MOST_CLOSED = 32
_FILES_EACH = 2
"""The socket, and the temporary file of a body."""
_OTHER_FILES = 128
"""The rest of a process: its store, its workers, its log."""


class Connection(Protocol):
    """What is known of a connection."""

    @property
    def used_share(self) -> float:
        """The share of its time that the client has used up; 0 while the server works for it."""

    def abort(self, reason: str) -> None:
        """Disconnect the client."""


class Connections:
    """The open connections, of which the slowest are closed where there are too many.

    So clients that send nothing cannot keep others out. An orchestrator whose probe gets no answer
    would end the process.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._open: dict[Connection, None] = {}
        """In the order in which they came."""

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._open)

    def add(self, connection: Connection) -> int:
        """Add a connection, and make room for it where clients are waited for; return the count."""
        if len(self._open) >= self.most:
            self._close_slowest()
        self._open[connection] = None
        return len(self._open)

    def remove(self, connection: Connection) -> None:
        """Remove a connection that has ended."""
        self._open.pop(connection, None)

    def _close_slowest(self) -> None:
        """Close some of those whose clients have used up most of their time.

        Closed one at a time, all of them would be looked through for each new one of a flood.
        """
        shares = {connection: connection.used_share for connection in self._open}
        slowest = sorted(filter(shares.__getitem__, shares), key=shares.__getitem__, reverse=True)
        for connection in slowest[: max(1, min(_MOST_CLOSED, self.most // 8))]:
            self.remove(connection)
            connection.abort("connections")


def allow_files(most: int) -> int:
    """Raise the limit of open files to what so many connections need; return how many it allows."""
    needed = most * _FILES_EACH + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return most if soft == resource.RLIM_INFINITY else min(most, (soft - _OTHER_FILES) // 2)
