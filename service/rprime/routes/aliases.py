"""Aliases: names that point at a stored evaluation, changed under If-Match or If-None-Match."""

from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from rprime.auth.access import caller_of, requires
from rprime.problems.problem import Problem, refuse, responses, rooted
from rprime.routes.descriptions import (
    CHANGE_PROBLEMS,
    ETAG,
    EVALUATION,
    PROBLEMS,
    TEXT,
    json_body,
    response_of,
)
from rprime.routes.evaluations import require_project
from rprime.routes.negotiation import expected
from rprime.routes.services import (
    Parameters,
    check_name,
    get_store,
    in_store,
    named_page,
    read_model,
)
from rprime.schemas.history import AliasEntry, AliasHistory, AliasList, AliasTarget, NamesQuery
from rprime.store import Alias, AliasPut, EvaluationMissingError, Expected

_FOUND = {"description": "The alias.", "headers": ETAG}
router = APIRouter(tags=["History"], default_response_class=Response)

_MATCH, _NONE_MATCH = (
    {"name": name, "in": "header", "description": description, **TEXT}
    for name, description in (
        ("If-Match", "The current ETag of the alias; `*` if any alias will do."),
        ("If-None-Match", "`*`: only if the alias does not exist."),
    )
)


@router.get(
    "/v1/projects/{project}/aliases",
    summary="The aliases of a project",
    description="Sorted by name.",
    response_class=JSONResponse,
    response_description="The list.",
    responses=responses("not_found", *PROBLEMS),
)
@requires("read", cost="store")
def list_aliases(request: Request, project: str, query: Parameters[NamesQuery]) -> AliasList:
    """Return a page of the aliases of the project."""
    aliases = get_store(request).aliases(project)
    if not aliases:
        require_project(request, project)
    page, cursor = named_page(aliases, lambda alias: alias.name, query)
    return AliasList(items=list(map(_entry, page)), next_cursor=cursor)


@router.get(
    "/v1/projects/{project}/aliases/{alias}",
    summary="An alias",
    description="The evaluation it points at. A change must send the header ETag in If-Match.",
    response_class=JSONResponse,
    responses={**responses("not_found", *PROBLEMS), 200: _FOUND},
)
@requires("read", cost="store")
def get_alias(request: Request, response: Response, project: str, alias: str) -> AliasEntry:
    """Return the alias."""
    return _answered(get_store(request).alias(project, alias), response)


@router.get(
    "/v1/projects/{project}/aliases/{alias}/history",
    summary="What an alias pointed at",
    description="Since when, and who changed it; newest first. It outlives a deleted alias.",
    response_class=JSONResponse,
    response_description="The changes.",
    responses=responses("not_found", *PROBLEMS),
)
@requires("read", cost="store")
def alias_history(request: Request, project: str, alias: str) -> AliasHistory:
    """Return the changes of the alias."""
    changes = get_store(request).alias_changes(project, alias)
    if not changes:
        raise Problem("not_found")
    return AliasHistory(items=list(changes))


@router.put(
    "/v1/projects/{project}/aliases/{alias}",
    summary="Point an alias at an evaluation",
    description="The request says which state of the alias it expects, so that one of two "
    "simultaneous promotions fails with 412.",
    responses={
        **responses(
            *("not_found", "precondition_failed", "precondition_required"),
            *CHANGE_PROBLEMS,
            *PROBLEMS,
        ),
        200: {"description": "The alias points at the evaluation.", "headers": ETAG},
        201: response_of("The alias is new.", AliasEntry, headers=ETAG),
    },
    response_class=JSONResponse,
    openapi_extra={
        "parameters": [_MATCH, _NONE_MATCH],
        **json_body(AliasTarget, example={"evaluation": EVALUATION}),
    },
)
@requires("write", cost="store")
async def put_alias(request: Request, response: Response, project: str, alias: str) -> AliasEntry:
    """Point the alias at the evaluation in the body."""
    _check_names(project, alias)
    expectation = expected(request)
    target = await read_model(request, AliasTarget)
    put = await point(request, (project, alias), target.evaluation, expectation)
    if put.created:
        response.status_code = HTTPStatus.CREATED
        response.headers["Location"] = rooted(f"/v1/projects/{project}/aliases/{alias}")
    return _answered(put.alias, response)


async def point(
    request: Request, name: tuple[str, str], evaluation: str, expectation: Expected
) -> AliasPut:
    """Point an alias at an evaluation; `name` is the project and the alias, which is validated."""
    check_name("alias", name[1])
    put, by = get_store(request).put_alias, caller_of(request)
    try:
        return await in_store(
            request, put, *name, evaluation=evaluation, expected=expectation, by=by
        )
    except EvaluationMissingError:
        detail = "The project has no such evaluation."
        raise refuse("/evaluation", "unknown_evaluation", detail) from None


@router.delete(
    "/v1/projects/{project}/aliases/{alias}",
    status_code=HTTPStatus.NO_CONTENT,
    summary="Delete an alias",
    description="The evaluation itself stays.",
    responses=responses(
        *("not_found", "precondition_failed", "precondition_required", "store_full"), *PROBLEMS
    ),
    openapi_extra={"parameters": [_MATCH]},
)
@requires("write", cost="store")
def delete_alias(request: Request, project: str, alias: str) -> None:
    """Delete the alias."""
    _check_names(project, alias)
    expectation, by = expected(request), caller_of(request)
    get_store(request).delete_alias(project, alias, expected=expectation, by=by)


def _check_names(project: str, alias: str) -> None:
    """Refuse a name that no alias can have, before its state is compared."""
    check_name("project", project)
    check_name("alias", alias)


def _answered(alias: Alias, response: Response) -> AliasEntry:
    response.headers["ETag"] = f'"{alias.etag}"'
    return _entry(alias)


def _entry(alias: Alias) -> AliasEntry:
    return AliasEntry(
        project=alias.project,
        alias=alias.name,
        evaluation=alias.evaluation,
        updated_at=alias.updated_at,
    )
