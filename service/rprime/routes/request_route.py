"""A route whose endpoint takes the request itself."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute


class RequestRoute(APIRoute):
    """A route that calls its endpoint with the request, and nothing else.

    FastAPI would look for its parameters, its body and its dependencies in every request, and
    find that it has none, which costs a small request a twentieth of its time.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the endpoint."""
        found = self.dependant
        others = (
            *(found.path_params, found.query_params, found.header_params, found.cookie_params),
            *(found.body_params, found.dependencies),
        )
        if found.request_param_name != "request" or any(others):
            raise TypeError(f"{self.path}: a RequestRoute passes on only the request")
        handler: Callable[[Request], Coroutine[Any, Any, Response]] = self.endpoint
        return handler
