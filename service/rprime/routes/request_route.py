"""How routes read their parameters: each one once, or the endpoint itself."""

from collections.abc import Callable, Coroutine, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, get_origin

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.datastructures import QueryParams
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from rprime.problems.problem import refuse


class RequestRoute(APIRoute):
    """A route that calls its endpoint with the request, and nothing else.

    FastAPI would look for its parameters, its body and its dependencies in every request, and
    find that it has none, which costs a small request a twentieth of its time.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the endpoint."""
        dependant = self.dependant
        others = (
            *(
                dependant.path_params,
                dependant.query_params,
                dependant.header_params,
                dependant.cookie_params,
            ),
            *(dependant.body_params, dependant.dependencies),
        )
        if dependant.request_param_name != "request" or any(others):
            raise TypeError(f"{self.path}: a RequestRoute passes on only the request")
        handler: Callable[[Request], Coroutine[Any, Any, Response]] = self.endpoint
        return handler


def refuse_repeated(routes: Iterable[BaseRoute]) -> list[BaseRoute]:
    """Refuse repeated parameters, of which any might count, before routes that can, and pages.

    A `RequestRoute` reads its parameters itself, and calls `check_repeated`.
    """
    return [_guarded(route) if isinstance(route, APIRoute) else route for route in routes]


def _guarded(route: APIRoute) -> APIRoute:
    refuses = HTTPStatus.UNPROCESSABLE_ENTITY in route.responses or not route.include_in_schema
    if not refuses or isinstance(route, RequestRoute):
        return route
    # A copy, since the route belongs to every application of this process.
    guarded = copy(route)
    guarded.app = _Guard(route.app, frozenset(_lists(route)))
    return guarded


def _lists(route: APIRoute) -> Iterator[str]:
    """Yield the names of list parameters, which are repeated for every element."""
    if not route.include_in_schema:  # pages read their queries themselves
        yield "slice"
    for query in route.dependant.query_params:
        model = query.field_info.annotation
        assert isinstance(model, type)  # noqa: S101 (every query is a model)
        assert issubclass(model, BaseModel)  # noqa: S101 (as above)
        for name, field in model.model_fields.items():
            if get_origin(field.annotation) is tuple:
                yield field.alias or name


@dataclass(frozen=True, eq=False)
class _Guard:
    """ASGI middleware of a route."""

    app: ASGIApp
    lists: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["query_string"]:
            check_repeated(QueryParams(scope["query_string"]), self.lists)
        await self.app(scope, receive, send)


def check_repeated(query: QueryParams, lists: frozenset[str] = frozenset()) -> None:
    """Refuse parameters that are given twice, unless they are lists."""
    names: set[str] = set()
    for place, (name, _) in enumerate(query.multi_items(), start=1):
        if name in names and name not in lists:
            detail = f"Parameter {place} has the name of an earlier one: give it once."
            raise refuse("/query", "repeated_parameter", detail)
        names.add(name)
