"""What all connections of a process share; uvicorn hands it to each of them."""

from dataclasses import dataclass, field
from typing import Any

from rprime.server.admission import AdmissionControl
from rprime.server.metrics import Metrics
from rprime.server.read_scheduler import ReadScheduler
from rprime.settings import Limits

_KEY = "connections"


@dataclass(frozen=True, slots=True)
class SharedState:
    """The state of the server that is not of one connection.

    Parameters
    ----------
    limits
        Bounds on time and size.
    admission
        Holds the queue of requests.
    metrics
        Counts requests and closed connections.
    log_requests
        Whether the log has an event for each request.
    scheduler
        Orders the reads of large bodies.
    """

    limits: Limits
    admission: AdmissionControl
    metrics: Metrics
    log_requests: bool
    scheduler: ReadScheduler = field(default_factory=ReadScheduler)

    def lifespan_state(self) -> dict[str, Any]:
        """Return the state that the ASGI lifespan hands to uvicorn."""
        return {_KEY: self}

    @staticmethod
    def of(lifespan_state: dict[str, Any]) -> "SharedState":
        """Return the object from the state that uvicorn hands to a connection."""
        found: SharedState = lifespan_state[_KEY]
        return found
