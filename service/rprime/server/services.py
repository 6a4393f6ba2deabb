"""What the server shares between all requests: limits, admission, pools and metrics."""

from dataclasses import dataclass

from anyio import CapacityLimiter

from rprime.server.admission import AdmissionControl
from rprime.server.draining import Draining
from rprime.server.metrics import Metrics
from rprime.server.pools import ThreadPool
from rprime.server.read_scheduler import ReadScheduler
from rprime.server.worker_pool import WorkerPool
from rprime.settings import Limits

LIFESPAN_KEY = "services"
"""Key in the state of the ASGI lifespan."""


@dataclass(frozen=True, kw_only=True)
class ServerServices:
    """The objects that one process has once.

    Parameters
    ----------
    limits
        What a request may cost.
    log_requests
        Whether each request has a line in the log.
    admission
        Admits requests and counts the bytes that they hold.
    metrics, draining
        The metrics, and whether the process is stopping.
    inflating
        Lets one compressed JSON body be inflated at a time.
    workers
        Processes that answer requests with large bodies.
    drawing
        Threads that draw figures.
    scheduler
        Orders the reads of large bodies.
    """

    limits: Limits
    log_requests: bool
    admission: AdmissionControl
    metrics: Metrics
    draining: Draining
    inflating: CapacityLimiter
    workers: WorkerPool
    drawing: ThreadPool
    scheduler: ReadScheduler

    def close(self) -> None:
        """Close the pools."""
        self.workers.close()
        self.drawing.close()
