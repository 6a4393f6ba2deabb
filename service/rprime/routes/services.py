"""The services that the routes share: one object, built by `rprime.app`."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from starlette.requests import Request

from rprime.auth.access import check_scopes
from rprime.auth.services import AuthServices
from rprime.routes.batching import RequestBatcher
from rprime.routes.store_lifespan import StoreHandle
from rprime.store import Store


@dataclass(frozen=True, kw_only=True)
class Services(AuthServices):
    """All services of the application.

    Parameters
    ----------
    store
        The store, if there is one.
    batcher
        Evaluates small requests that arrive together as one stack.
    guide
        The folder of the built documentation site, if there is one.
    """

    store: StoreHandle
    batcher: RequestBatcher
    guide: Path | None


def get_services(request: Request) -> Services:
    """Return the services of the application."""
    return cast("Services", request.app.state.services)


def get_store(request: Request) -> Store:
    """Return the open store.

    Raises
    ------
    Problem
        409 if the service has no store, 503 while it cannot be reached.
    """
    return get_services(request).store.store


def readable_store(request: Request) -> Store:
    """Return the open store to a caller who may read what is stored.

    Raises
    ------
    Problem
        403 for a key without the scope; else as of `get_store`.
    """
    check_scopes(request, "read")
    return get_store(request)
