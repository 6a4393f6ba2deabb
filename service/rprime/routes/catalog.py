"""The catalog of indices (metrics), with formula, range and source."""

from functools import cache

from fastapi import APIRouter, Request, Response

from rprime.auth.access import requires
from rprime.core.aliases import canonical
from rprime.core.catalog import CLASS_INDICES, OVERALL_INDICES
from rprime.core.suggestions import unknown_index
from rprime.problems.problem import Problem, responses
from rprime.routes.compressed_route import CompressedRoute
from rprime.routes.negotiation import JSON
from rprime.schemas.report import Catalog, IndexEntry, catalog, entry_of

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
    responses=responses("internal_error"),
)
@requires("evaluate", "read", cost="cheap")
async def list_indices() -> Response:
    """List every index that a report can have: key, formula, range, best value, source."""
    return Response(_catalog(), media_type=JSON, headers=_HEADERS)


@router.get(
    "/v1/indices/{scope}/{key}",  # noqa: FAST003 - see _PARAMETERS
    summary="One index",
    response_model=IndexEntry,
    response_description="The entry.",
    openapi_extra={"parameters": _PARAMETERS},
    responses=responses("not_found", "internal_error"),
)
@requires("evaluate", "read", cost="cheap")
async def get_index(request: Request) -> Response:
    """Describe one index. The scope is `class` or `overall`; many keys exist in both."""
    scope, key = request.path_params["scope"], request.path_params["key"]
    found = _SCOPES[scope].get(canonical(key)) if scope in _SCOPES else None
    if found is None:
        raise Problem("not_found", unknown_index(key))
    entry = entry_of(found).model_dump_json()
    return Response(entry, media_type=JSON, headers=_HEADERS)


@cache
def _catalog() -> str:
    """Return the catalog; the properties of all indices take half a second the first time."""
    return catalog().model_dump_json()
