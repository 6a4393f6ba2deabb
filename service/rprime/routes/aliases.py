"""Aliases: names that point at a stored evaluation, changed under If-Match or If-None-Match."""

from http import HTTPStatus
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

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
    route_responses,
)
from rprime.routes.evaluations import require_project
from rprime.routes.negotiation import JSON, expected
from rprime.routes.services import (
    Parameters,
    check_name,
    get_store,
    in_store,
    named_page,
    read_model,
)
from rprime.schemas.history import AliasTarget, NamesQuery
from rprime.store import Alias, AliasPut, EvaluationMissingError, Expected

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
    responses=route_responses("The list.", "AliasList", "not_found", *PROBLEMS),
)
@requires("read", cost="store")
def list_aliases(request: Request, project: str, query: Parameters[NamesQuery]) -> Response:
    """Return a page of the aliases of the project."""
    aliases = get_store(request).aliases(project)
    if not aliases:
        require_project(request, project)
    page, cursor = named_page(aliases, lambda alias: alias.name, query)
    document = {"items": list(map(_document, page)), "next_cursor": cursor}
    return Response(orjson.dumps(document), media_type=JSON)


@router.get(
    "/v1/projects/{project}/aliases/{alias}",
    summary="An alias",
    description="The evaluation it points at. A change must send the header ETag in If-Match.",
    responses=route_responses("The alias.", "AliasEntry", "not_found", *PROBLEMS, headers=ETAG),
)
@requires("read", cost="store")
def get_alias(request: Request, project: str, alias: str) -> Response:
    """Return the alias."""
    return _response(get_store(request).alias(project, alias))


@router.get(
    "/v1/projects/{project}/aliases/{alias}/history",
    summary="What an alias pointed at",
    description="Since when, and who changed it; newest first. It outlives a deleted alias.",
    responses=route_responses("The changes.", "AliasHistory", "not_found", *PROBLEMS),
)
@requires("read", cost="store")
def alias_history(request: Request, project: str, alias: str) -> Response:
    """Return the changes of the alias."""
    changes = get_store(request).alias_changes(project, alias)
    if not changes:
        raise Problem("not_found")
    return Response(orjson.dumps({"items": list(map(vars, changes))}), media_type=JSON)


@router.put(
    "/v1/projects/{project}/aliases/{alias}",
    summary="Point an alias at an evaluation",
    description="The request says which state of the alias it expects, so that one of two "
    "simultaneous promotions fails with 412.",
    responses={
        **route_responses(
            "The alias points at the evaluation.",
            "AliasEntry",
            *("not_found", "precondition_failed", "precondition_required"),
            *CHANGE_PROBLEMS,
            *PROBLEMS,
            headers=ETAG,
        ),
        201: response_of("The alias is new.", "AliasEntry", headers=ETAG),
    },
    openapi_extra={
        "parameters": [_MATCH, _NONE_MATCH],
        **json_body("AliasTarget", example={"evaluation": EVALUATION}),
    },
)
@requires("write", cost="store")
async def put_alias(request: Request, project: str, alias: str) -> Response:
    """Point the alias at the evaluation in the body."""
    expectation = expected(request)
    target = await read_model(request, AliasTarget)
    put = await point(request, (project, alias), target.evaluation, expectation)
    return _response(put.alias, HTTPStatus.CREATED if put.created else HTTPStatus.OK)


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
    expectation, by = expected(request), caller_of(request)
    get_store(request).delete_alias(project, alias, expected=expectation, by=by)


def _document(alias: Alias) -> dict[str, Any]:
    names = {"project": alias.project, "alias": alias.name}
    return names | {"evaluation": alias.evaluation, "updated_at": alias.updated_at}


def _response(alias: Alias, status: HTTPStatus = HTTPStatus.OK) -> Response:
    headers = {"ETag": f'"{alias.etag}"'}
    if status == HTTPStatus.CREATED:
        headers["Location"] = rooted(f"/v1/projects/{alias.project}/aliases/{alias.name}")
    return Response(orjson.dumps(_document(alias)), status, headers, media_type=JSON)
