"""In flight: what the requests of a process may take together, of its memory and of its time."""

from threading import Lock
from time import monotonic

from starlette.types import Scope

from rprime.problems.problem import Problem
from rprime.server.protocol import COMPLETED_AT, overloaded_problem
from rprime.settings import Limits

_BYTES = "rprime.bytes"


class AdmissionControl:
    """Where requests are admitted: a body for its bytes, a request once all of it is there.

    What one request takes of the event loop, all others wait for, in the order in which they came.
    So the line is no list of ours, and what shows its length is how long a request has stood in it
    when its turn comes. Who has waited too long is told to come again, which costs less
    than an answer, so that under many times the load that can be answered the line does not grow
    for ever. What still lies in the sockets is not seen here: to be read takes another turn or
    two of the loop. Large requests have pools of their own.

    Parameters
    ----------
    limits
        Bytes that are held, and seconds that may be waited.

    Attributes
    ----------
    requests
        Those that are there and not answered yet; the connections keep it.
    """

    def __init__(self, limits: Limits) -> None:
        self.limit = limits.in_flight_bytes
        self.held = 0
        self.requests: set[object] = set()
        self._wait = limits.wait_seconds
        self._lock = Lock()

    def hold(self, scope: Scope, size: int) -> None:
        """Count bytes that were read for a request, until the request ends.

        Raises
        ------
        Problem
            503 if they do not fit any more.
        """
        with self._lock:
            if self.held + size > self.limit:
                raise Problem("overloaded", headers={"Retry-After": "1"})
            self.held += size
            scope[_BYTES] = scope.get(_BYTES, 0) + size

    def admit(self, scope: Scope) -> None:
        """Let a request in whose turn has come.

        Raises
        ------
        Problem
            503 if it has waited too long.
        """
        complete = scope.get(COMPLETED_AT)
        if complete is not None and monotonic() - complete > self._wait:
            raise overloaded_problem()

    def release(self, scope: Scope) -> None:
        """Forget the bytes of a request that has ended."""
        with self._lock:
            self.held -= scope.pop(_BYTES, 0)
