"""The catalog of indices (metrics), with formula, range and source."""

import json
from functools import cache

from fastapi import APIRouter, Request, Response

from rprime.auth.access import requires
from rprime.core.catalog import CLASS_INDICES, OVERALL_INDICES
from rprime.core.index_names import canonical, unknown_index
from rprime.problems.problem import Problem, refuse, responses
from rprime.routes.negotiation import JSON, CompressedRoute
from rprime.routes.services import Parameters
from rprime.schemas.history import CatalogQuery
from rprime.schemas.report import Catalog, IndexEntry, catalog, index_entry

router = APIRouter(route_class=CompressedRoute, tags=["Catalog"])

_SCOPES = {"class": CLASS_INDICES, "overall": OVERALL_INDICES}
_HEADERS = {"Cache-Control": "max-age=300"}


# Not arguments of the function: FastAPI would answer 422 to an unknown index, not 404.
_PARAMETERS = [
    {"name": name, "in": "path", "required": True, "schema": schema}
    for name, schema in (
        ("scope", {"type": "string", "enum": list(_SCOPES)}),
        ("key", {"$ref": "#/components/schemas/IndexKey"}),
    )
]


@router.get(
    "/v1/indices",
    summary="Every index",
    response_model=Catalog,
    response_description="The catalog.",
    responses=responses("invalid_request", "internal_error"),
)
@requires("evaluate", "read", cost="cheap")
async def list_indices(query: Parameters[CatalogQuery]) -> Response:
    """List the indices that a report can have: key, formula, range, best value, source."""
    places = [place for place, entry in enumerate(_catalog()) if _is_wanted(entry, query)]
    names = [f"{_catalog()[place].scope}/{_catalog()[place].key}" for place in places]
    if query.cursor is not None and query.cursor not in names:
        raise refuse("/query/cursor", "unknown_parameter", "No page of this list gave the cursor.")
    start = 0 if query.cursor is None else names.index(query.cursor) + 1
    page = places[start : start + query.limit]
    following = names[start + len(page) - 1] if start + len(page) < len(places) else None
    items = ",".join(_entries()[place] for place in page)
    document = f'{{"items":[{items}],"next_cursor":{json.dumps(following)}}}'
    return Response(document, media_type=JSON, headers=_HEADERS)


def _is_wanted(entry: IndexEntry, query: CatalogQuery) -> bool:
    if query.scope not in (None, entry.scope) or query.family not in (None, entry.family):
        return False
    text = (query.q or "").casefold()
    return any(text in name.casefold() for name in (entry.key, entry.name, *entry.aliases))


@router.get(
    "/v1/indices/{scope}/{key}",  # noqa: FAST003 - see _PARAMETERS
    summary="One index",
    response_model=IndexEntry,
    response_description="The entry.",
    openapi_extra={"parameters": _PARAMETERS},
    responses=responses("not_found", "invalid_request", "internal_error"),
)
@requires("evaluate", "read", cost="cheap")
async def get_index(request: Request) -> Response:
    """Describe one index. The scope is `class` or `overall`; many keys exist in both."""
    scope, key = request.path_params["scope"], request.path_params["key"]
    index = _SCOPES[scope].get(canonical(key)) if scope in _SCOPES else None
    if index is None:
        raise Problem("not_found", unknown_index(key))
    entry = index_entry(index).model_dump_json()
    return Response(entry, media_type=JSON, headers=_HEADERS)


@cache
def _catalog() -> list[IndexEntry]:
    """Return the catalog; the properties of all indices take half a second the first time."""
    return catalog().items


@cache
def _entries() -> list[str]:
    return [entry.model_dump_json() for entry in _catalog()]
