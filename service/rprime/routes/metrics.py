"""The route of the metrics, and its gauges."""

from collections.abc import Iterator

from fastapi import APIRouter, Request, Response

from rprime.auth.access import access_of, requires
from rprime.problems.problem import Problem, responses
from rprime.routes.services import Services, get_services
from rprime.routes.store_lifespan import StoreHandle
from rprime.server.admission import AdmissionControl
from rprime.server.metrics import Count, Gauge
from rprime.server.pools import Slots
from rprime.store import STATES

router = APIRouter(tags=["Operation"], responses=responses("internal_error"))


@router.get(
    "/metrics",
    summary="Metrics of requests, pools and the store",
    description="In the text format of Prometheus, or as OpenMetrics if Accept asks for it. "
    "Labels are route templates, methods, classes of status, kinds of evidence and verdicts, "
    "never content of a request. If the service needs keys, this route needs one with the scope "
    "`read` for all projects. With several workers, each answers for itself and names itself in "
    "the label `worker`.",
    response_class=Response,
    responses={
        200: {"description": "The metrics.", "content": {"text/plain": {}}},
    },
)
@requires("read")
async def get_metrics(request: Request) -> Response:
    """Return the metrics of this process."""
    if access_of(request).project is not None:
        raise Problem("forbidden", "The metrics cover all projects, but the key opens only one.")
    found = get_services(request).metrics
    content, media = found.exposition(request.headers.get("accept", ""))
    # Set as a header, so that Starlette adds no charset.
    return Response(content, headers={"Content-Type": media})


def gauges(services: Services) -> Iterator[Gauge]:
    """Yield the gauges of a service.

    Parameters
    ----------
    services
        The services of the application.
    """
    yield from _admission_gauges(services.admission)
    yield from _pool_gauges(workers=services.workers.slots, figures=services.drawing.slots)
    yield from _store_gauges(services.store)


def _admission_gauges(admission: AdmissionControl) -> Iterator[Gauge]:
    yield Gauge(
        "rprime_in_flight_bytes",
        "Bytes of request bodies in memory.",
        "",
        lambda: {"": admission.held},
    )
    yield Gauge(
        "rprime_in_flight_limit_bytes",
        "Limit of the bytes of request bodies in memory.",
        "",
        lambda: {"": admission.limit},
    )
    yield Gauge(
        "rprime_in_flight_requests",
        "Requests that are complete and not answered yet.",
        "",
        lambda: {"": admission.queued},
    )


def _pool_gauges(**pools: Slots) -> Iterator[Gauge]:
    yield Gauge(
        "rprime_pool_requests",
        "Large requests that run or wait.",
        "pool",
        lambda: {name: slots.taken for name, slots in pools.items()},
    )
    yield Gauge(
        "rprime_pool_size",
        "Large requests that run at a time; others wait.",
        "pool",
        lambda: {name: slots.most for name, slots in pools.items()},
    )


def _store_gauges(store: StoreHandle) -> Iterator[Gauge]:
    yield Gauge(
        "rprime_store_up",
        "1 if the store is open, 0 if it is unavailable; absent without a store.",
        "",
        lambda: {"": store.is_open} if store.is_kept else {},
    )
    yield Gauge(
        "rprime_store_state",
        "1 for the state of the store, 0 for the others; all but `ok`: nothing can be stored.",
        "state",
        lambda: {} if store.health is None else {s: s == store.health.state for s in STATES},
    )
    yield Gauge(
        "rprime_store_last_write_timestamp_seconds",
        "When the store last committed something, since 1970.",
        "",
        lambda: {"": at} if store.health and (at := store.health.last_write) else {},
    )
    yield Count(
        "rprime_store_failures",
        "Calls to the store that failed, by cause.",
        "cause",
        lambda: {} if store.health is None else dict(store.health.failures),
    )
    yield Gauge(
        "rprime_store_pending_writes",
        "Transactions that wait; evaluations that are committed together count once.",
        "",
        lambda: {"": store.store.waiting} if store.is_open else {},
    )
