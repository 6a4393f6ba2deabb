"""How routes read their parameters: each one once, or the endpoint itself."""

from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, get_origin

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from starlette.datastructures import QueryParams
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from rprime.core.index_names import nearest_name
from rprime.problems.problem import Violation, pointer, raise_violations, refuse


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


def guard_queries(routes: Iterable[BaseRoute]) -> list[BaseRoute]:
    """Refuse repeated parameters, of which any might count, and unknown ones.

    Pages read their queries themselves, and unknown parameters of these do no harm; nor do those of
    routes for machines of the operator, some of which add their own to a probe. A `RequestRoute`
    calls `check_repeated` and `refuse_unknown`.
    """
    return [_guarded(route) if isinstance(route, APIRoute) else route for route in routes]


def _guarded(route: APIRoute) -> APIRoute:
    if isinstance(route, RequestRoute):
        return route
    # A copy, since the route belongs to every application of this process.
    guarded, fields = copy(route), dict(_fields(route))
    lists = frozenset(
        name for name, field in fields.items() if get_origin(field.annotation) is tuple
    )
    if "Operation" in route.tags:
        guarded.app = _Guard(route.app, lists)
    elif route.include_in_schema:
        described = (route.openapi_extra or {}).get("parameters", ())
        others = [other["name"] for other in described if other["in"] == "query"]
        guarded.app = _Guard(route.app, lists, (*fields, *others))
    else:
        guarded.app = _Guard(route.app, frozenset({"slice"}))
    return guarded


def _fields(route: APIRoute) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the query parameters of a route by their names."""
    for query in route.dependant.query_params:
        model = query.field_info.annotation
        assert isinstance(model, type)  # noqa: S101 (every query is a model)
        assert issubclass(model, BaseModel)  # noqa: S101 (as above)
        for name, field in model.model_fields.items():
            yield field.alias or name, field


@dataclass(frozen=True, eq=False)
class _Guard:
    """ASGI middleware of a route; `names` are those of its parameters, None where any may come."""

    app: ASGIApp
    lists: frozenset[str]
    names: tuple[str, ...] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["query_string"]:
            query = QueryParams(scope["query_string"])
            check_repeated(query, self.lists)
            if self.names is not None:
                refuse_unknown(query, self.names)
        await self.app(scope, receive, send)


def refuse_unknown(query: QueryParams, names: Sequence[str], otherwise: str = "") -> None:
    """Refuse parameters that a route does not have, and name the nearest that it has.

    Where none is near, `otherwise` says which there are.
    """
    raise_violations(
        Violation(
            pointer("query", name),
            "unknown_parameter",
            f"The parameter is not known here. {_hint(name, names, otherwise)}",
        )
        for name in query
        if name not in names
    )


def _hint(name: str, names: Sequence[str], otherwise: str) -> str:
    if not names:
        return "Leave it out: there are none."
    hint = nearest_name(name, names)
    return otherwise if otherwise and not hint.startswith("Did") else hint


def check_repeated(query: QueryParams, lists: frozenset[str] = frozenset()) -> None:
    """Refuse parameters that are given twice, unless they are lists."""
    names: set[str] = set()
    for place, (name, _) in enumerate(query.multi_items(), start=1):
        if name in names and name not in lists:
            detail = f"Parameter {place} has the name of an earlier one: give it once."
            raise refuse("/query", "repeated_parameter", detail)
        names.add(name)
