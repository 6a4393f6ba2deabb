"""What a route may cost at most: each route declares it, and the pools enforce it."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Literal, TypeVar, cast, get_args

from starlette.routing import BaseRoute

from rprime.server.request_record import current_request

Cost = Literal["cheap", "store", "render", "heavy"]
"""`cheap` is answered in the event loop. `store` reads or changes the history in threads that do
nothing else. `render` computes from what is stored, or a page, in other threads. `heavy` computes,
or reads much, in a worker process with limits of memory and processor time. Each has a bounded
queue and 503 after `wait_seconds`. A route may always do what costs less than it declares."""
COSTS: tuple[Cost, ...] = get_args(Cost)

_COST = "rprime_cost"
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class UndeclaredCostError(TypeError):
    """A route declares no cost, or does more than it declares."""


def costs(cost: Cost) -> Callable[[Endpoint], Endpoint]:
    """Declare what a route costs at most.

    A function that blocks is run in threads: those of the store, or those that render.
    """

    def declare(endpoint: Endpoint) -> Endpoint:
        declared = endpoint
        if not inspect.iscoroutinefunction(endpoint):
            if cost not in ("store", "render"):
                raise UndeclaredCostError(f"{endpoint!r} blocks, and `{cost}` has no threads")
            declared = cast("Endpoint", _in_threads(endpoint, f"{cost}_threads"))
        setattr(declared, _COST, cost)
        return declared

    return declare


def _in_threads(endpoint: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(endpoint)
    async def answer(**arguments: Any) -> Any:  # noqa: ANN401 (as FastAPI hands them on)
        threads = getattr(arguments["request"].app.state.services, name)
        return await threads.run(endpoint, **arguments)

    return answer


def cost_of(route: BaseRoute) -> Cost:
    """Return what a route declares; an `UndeclaredCostError` if it declares nothing."""
    cost: Cost | None = getattr(getattr(route, "endpoint", None), _COST, None)
    if cost is None:
        raise UndeclaredCostError(f"{route!r} does not declare what it costs")
    return cost


def check_cost(needed: Cost) -> None:
    """Refuse that the request of this context costs more than its route declares."""
    record = current_request.get()
    # Before the routes there is only the session of a browser, which the store knows.
    route = None if record is None else record.scope.get("route")
    if route is not None and COSTS.index(cost_of(route)) < COSTS.index(needed):
        raise UndeclaredCostError(f"{route!r} does what costs `{needed}`, and does not declare it")


def check_declared(routes: Iterable[BaseRoute]) -> Iterable[BaseRoute]:
    """Return routes that need no key; an `UndeclaredCostError` if one declares no cost."""
    for route in routes:
        cost_of(route)
    return routes
