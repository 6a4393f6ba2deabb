"""The services that the routes share: one object, built by `rprime.app`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ParamSpec, TypeVar, cast

from fastapi import Query
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import Request

from rprime.application.stored_sides import VisibleHistory
from rprime.auth.access import access_of
from rprime.auth.sessions import AuthServices
from rprime.problems.problem import from_errors, validated
from rprime.routes.batching import RequestBatcher
from rprime.routes.negotiation import JSON
from rprime.routes.store_lifespan import StoreHandle
from rprime.schemas.history import NamesQuery
from rprime.schemas.provenance import PathName
from rprime.server.body import media_type, read_body, read_chunks
from rprime.store import Store

Model = TypeVar("Model", bound=BaseModel)
P = ParamSpec("P")
T = TypeVar("T")
Parameters = Annotated[Model, Query()]
"""The parameters of a request as a model."""
_NAME: TypeAdapter[str] = TypeAdapter(PathName)
SMALL_BODY = 64 * 1024


def named_page(
    entries: Iterable[T], name: Callable[[T], str], query: NamesQuery
) -> tuple[list[T], str | None]:
    """Return the page of a list sorted by name that a query wants, and the next cursor."""
    later = sorted(entries, key=name)
    if query.cursor is not None:
        later = [entry for entry in later if name(entry) > query.cursor]
    page = later[: query.limit]
    return page, name(page[-1]) if len(later) > len(page) else None


@dataclass(frozen=True, kw_only=True)
class Services(AuthServices):
    """All services of the application; the folder of the built guide is None without one."""

    store: StoreHandle
    batcher: RequestBatcher
    guide: Path | None


def get_services(request: Request) -> Services:
    """Return the services of the application."""
    return cast("Services", request.app.state.services)


def get_store(request: Request) -> Store:
    """Return the open store; 409 if the service has none, 503 while it cannot be reached."""
    return get_services(request).store.store


def visible_history(request: Request) -> VisibleHistory:
    """Return what the caller may see of the store."""
    return VisibleHistory(partial(get_store, request), access_of(request).may_use)


async def in_store(
    request: Request, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Read or change the history in a thread of the store; 503 where none is free in time."""
    return await get_services(request).store_threads.run(work, *args, **kwargs)


async def in_render(
    request: Request, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Compute from what is stored, or a page, in a thread for this; 503 as `in_store`."""
    return await get_services(request).render_threads.run(work, *args, **kwargs)


def check_name(member: str, name: str) -> None:
    """Refuse a new name in the path that a request could not name in its body."""
    try:
        _NAME.validate_python(name)
    except ValidationError as refused:
        raise from_errors(
            [{**error, "loc": ("path", member)} for error in refused.errors()]
        ) from None


async def read_model(request: Request, model: type[Model]) -> Model:
    """Read a small JSON body; a problem if it does not fit the model."""
    media_type(request, [JSON])
    return validated(model, await read_body(request, SMALL_BODY))


async def read_json_pieces(request: Request, most: int | None = None) -> list[bytes]:
    """Read a JSON body for a worker, of at most `most` bytes where the own limit is larger."""
    media_type(request, [JSON])
    limit = get_services(request).limits.json_body_bytes
    return await read_chunks(request, limit if most is None else min(limit, most))
