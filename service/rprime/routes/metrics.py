"""The route of the metrics, and what they read."""

from collections.abc import Iterator

from fastapi import APIRouter, Request, Response

from rprime.auth.access import access_of, requires
from rprime.auth.keys import FILE_STATES
from rprime.problems.problem import Problem, responses
from rprime.routes.services import Services, get_services
from rprime.routes.store_lifespan import StoreHandle
from rprime.server.metrics import Reading
from rprime.store import STATES

router = APIRouter(tags=["Operation"], responses=responses("invalid_request", "internal_error"))


@router.get(
    "/metrics",
    summary="Metrics of requests, pools and the store",
    description="In the text format of Prometheus, or as OpenMetrics if Accept asks for it. "
    "Labels are route templates, methods, classes of status, kinds of evidence and verdicts, "
    "never content of a request. If the service needs keys, this route needs one with the scope "
    "`read` for all projects. With several workers the values are sums, but those of each process "
    "(`process_...`), which has the label `worker`.",
    response_class=Response,
    responses={200: {"description": "The metrics.", "content": {"text/plain": {}}}},
)
@requires("read", cost="cheap")
async def get_metrics(request: Request) -> Response:
    """Return the metrics."""
    if access_of(request).project is not None:
        raise Problem("forbidden", "The metrics cover all projects, but the key opens only one.")
    metrics = get_services(request).metrics
    content, media = metrics.exposition(request.headers.get("accept", ""))
    # Set as a header, so that Starlette adds no charset.
    return Response(content, headers={"Content-Type": media})


def readings(services: Services) -> Iterator[Reading]:
    """Yield the metrics that are read from the services."""
    yield from _load_readings(services)
    yield from _store_readings(services.store)
    admission, slots, keyring = services.admission, services.workers.slots, services.keyring
    yield Reading(
        "rprime_requests_rejected",
        "Requests that were answered 503, by the limit.",
        lambda: {**admission.rejected, "large_waiting": slots.rejected},
        label="limit",
        workers="total",
    )
    if keyring is not None:
        yield Reading(
            "rprime_keys_file_state",
            "Processes that found the file of the keys in this state.",
            lambda: {state: state == keyring.state for state in FILE_STATES},
            label="state",
        )


def _load_readings(services: Services) -> Iterator[Reading]:
    admission = services.admission
    pools = {
        "workers": services.workers.slots,
        "store": services.store_threads.slots,
        "render": services.render_threads.slots,
        "transfers": services.transfer_threads.slots,
    }
    yield Reading(
        "rprime_in_flight_bytes", "Bytes of request bodies in memory.", lambda: admission.held
    )
    yield Reading(
        "rprime_in_flight_limit_bytes",
        "Limit of the bytes of request bodies in memory.",
        lambda: admission.limit,
    )
    yield Reading(
        "rprime_in_flight_limit_requests",
        "Limit of the requests that are complete and not answered yet.",
        lambda: services.limits.in_flight_requests,
    )
    yield Reading(
        "rprime_in_flight_requests",
        "Requests that are complete and not answered yet.",
        lambda: admission.queued,
    )
    yield Reading(
        "rprime_connections", "Open connections.", lambda: services.open_connections.count
    )
    yield Reading(
        "rprime_pool_requests",
        "Requests that run or wait, by the pool.",
        lambda: {name: slots.taken for name, slots in pools.items()},
        label="pool",
    )
    yield Reading(
        "rprime_pool_size",
        "Requests of a pool that run at a time; others wait.",
        lambda: {name: slots.most for name, slots in pools.items()},
        label="pool",
    )


def _store_readings(store: StoreHandle) -> Iterator[Reading]:
    yield Reading(
        "rprime_store_up",
        "1 once the store has been opened, before that 0; absent without a store.",
        lambda: store.is_open if store.is_kept else None,
        workers="livemin",
    )
    yield Reading(
        "rprime_store_state",
        "Processes whose store is in this state; all but `ok`: the last read or write failed.",
        lambda: {} if store.health is None else {s: s == store.health.state for s in STATES},
        label="state",
    )
    yield Reading(
        "rprime_store_last_write_timestamp_seconds",
        "When the store last committed something, since 1970.",
        lambda: (store.health and store.health.last_write) or None,
        workers="max",
    )
    yield Reading(
        "rprime_store_failures",
        "Calls to the store that failed, by cause.",
        lambda: {} if store.health is None else dict(store.health.failures),
        label="cause",
        workers="total",
    )
    yield Reading(
        "rprime_store_pending_writes",
        "Transactions that wait; evaluations that are committed together count once.",
        lambda: store.store.waiting if store.is_open else None,
    )
