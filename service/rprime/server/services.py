"""What the server shares between all requests: limits, admission, pools and metrics."""

from dataclasses import dataclass

from anyio import CapacityLimiter

from rprime.server.admission import AdmissionControl
from rprime.server.connections import Connections
from rprime.server.draining import Draining
from rprime.server.metrics import Metrics
from rprime.server.pools import Threads
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
    open_connections: Connections
    metrics: Metrics
    draining: Draining
    coding: CapacityLimiter
    """Lets one body be inflated, or one answer be compressed, at a time."""
    spooling: CapacityLimiter
    """Lets some bodies be written to the temporary folder at a time."""
    workers: WorkerPool
    """Compute what is heavy."""
    store_threads: Threads
    """Read and change the history, and do nothing else."""
    render_threads: Threads
    """Compute from what is stored, and pages."""
    transfer_threads: Threads
    """Export and import the history, as fast as the client reads or sends."""
    scheduler: ReadScheduler
