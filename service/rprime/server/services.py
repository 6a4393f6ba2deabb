"""What the server shares between all requests: limits, admission, pools and metrics."""

from dataclasses import dataclass

from anyio import CapacityLimiter

from rprime.server.admission import AdmissionControl
from rprime.server.draining import Draining
from rprime.server.metrics import Metrics
from rprime.server.pools import Slots
from rprime.server.read_scheduler import ReadScheduler
from rprime.server.worker_pool import WorkerPool
from rprime.settings import Limits

LIFESPAN_KEY = "services"
"""Key in the state of the ASGI lifespan."""


@dataclass(frozen=True, kw_only=True)
class ServerServices:
    """The objects that one process has once."""

    limits: Limits
    log_requests: bool
    admission: AdmissionControl
    metrics: Metrics
    draining: Draining
    inflating: CapacityLimiter
    """Lets one compressed JSON body be inflated at a time."""
    workers: WorkerPool
    """Answer requests with large bodies."""
    drawing: Slots
    """Places to draw figures."""
    scheduler: ReadScheduler
