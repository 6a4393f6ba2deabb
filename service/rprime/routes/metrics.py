"""Metrics: the route, and what is looked up when it is asked."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response
from starlette.datastructures import State

from rprime.metrics import Gauge, Metrics
from rprime.problems import Problem, responses
from rprime.routes.access import access_of, needs

if TYPE_CHECKING:
    from rprime.routes.history import History
    from rprime.routes.in_flight import InFlight

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
@needs("read")
async def metrics(request: Request) -> Response:
    """Answer with the metrics of this process."""
    if access_of(request).project is not None:
        raise Problem("forbidden", "The metrics are those of all projects; the key opens one.")
    found: Metrics = request.app.state.metrics
    content, media = found.exposition(request.headers.get("accept", ""))
    # Set as a header, so that nothing is added to it.
    return Response(content, headers={"Content-Type": media})


def gauges(state: State) -> Iterator[Gauge]:
    """Give what is so at the time of asking.

    Parameters
    ----------
    state
        Of the application.
    """
    in_flight: InFlight = state.in_flight
    history: History = state.history
    pools = {
        "workers": state.workers.places,
        "figures": state.drawing.places,
    }
    yield Gauge(
        "rprime_in_flight_bytes",
        "Bytes of bodies that are held.",
        "",
        lambda: {"": in_flight.held},
    )
    yield Gauge(
        "rprime_in_flight_limit_bytes",
        "Bytes of bodies that may be held.",
        "",
        lambda: {"": in_flight.limit},
    )
    yield Gauge(
        "rprime_in_flight_requests",
        "Requests that are there and not answered yet.",
        "",
        lambda: {"": len(in_flight.requests)},
    )
    yield Gauge(
        "rprime_pool_requests",
        "Large requests that are worked on or wait for it.",
        "pool",
        lambda: {name: places.taken for name, places in pools.items()},
    )
    yield Gauge(
        "rprime_pool_places",
        "Large requests that are worked on at a time; more of them wait.",
        "pool",
        lambda: {name: places.most for name, places in pools.items()},
    )
    yield Gauge(
        "rprime_store_open",
        "1 if the store is open, 0 if it is waited for; nothing without a store.",
        "",
        lambda: {"": history.is_open} if history.is_kept else {},
    )
    yield Gauge(
        "rprime_store_waiting",
        "Changes that wait to be written; evaluations that came together count once.",
        "",
        lambda: {"": history.store.waiting} if history.is_open else {},
    )
