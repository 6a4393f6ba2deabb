"""The route of the metrics, and its gauges."""

from collections.abc import Iterator

from fastapi import APIRouter, Request, Response

from rprime.auth.access import access_of, requires
from rprime.problems.problem import Problem, responses
from rprime.routes.services import Services, get_services
from rprime.server.metrics import Gauge

router = APIRouter(tags=["Operation"], responses=responses("internal_error"))


@router.get(
    "/metrics",
    summary="What has been done, and what is being done?",
    description="In the text format of Prometheus, or as OpenMetrics where Accept asks for it. "
    "Labels are templates of routes, methods, classes of status, kinds of evidence and verdicts; "
    "nothing that was sent. Where the service asks for keys, it takes one with the scope `read` "
    "for all projects. Of several workers the one answers that the request comes to, and each of "
    "its series names it in the label `worker`.",
    response_class=Response,
    responses={
        200: {"description": "The metrics.", "content": {"text/plain": {}}},
    },
)
@requires("read")
async def metrics(request: Request) -> Response:
    """Answer with the metrics of this process."""
    if access_of(request).project is not None:
        raise Problem("forbidden", "The metrics are those of all projects; the key opens one.")
    found = get_services(request).metrics
    content, media = found.exposition(request.headers.get("accept", ""))
    # Set as a header, so that nothing is added to it.
    return Response(content, headers={"Content-Type": media})


def gauges(services: Services) -> Iterator[Gauge]:
    """Yield the gauges of a service.

    Parameters
    ----------
    services
        The services of the application.
    """
    admission, store = services.admission, services.store
    pools = {
        "workers": services.workers.slots,
        "figures": services.drawing.slots,
    }
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
    yield Gauge(
        "rprime_store_up",
        "1 if the store is open, 0 if it is unavailable; absent without a store.",
        "",
        lambda: {"": store.is_open} if store.is_kept else {},
    )
    yield Gauge(
        "rprime_store_pending_writes",
        "Transactions that wait; evaluations that are committed together count once.",
        "",
        lambda: {"": store.store.waiting} if store.is_open else {},
    )
