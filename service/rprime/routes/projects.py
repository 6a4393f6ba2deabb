"""Projects: list, settings, deletion, and purging of old evaluations."""

from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from rprime.auth.access import access_of, requires
from rprime.problems.problem import responses
from rprime.routes.descriptions import CHANGE_PROBLEMS, PROBLEMS, json_body
from rprime.routes.evaluations import require_project
from rprime.routes.services import (
    Parameters,
    check_name,
    get_store,
    in_store,
    named_page,
    read_model,
)
from rprime.schemas.history import (
    NamesQuery,
    ProjectList,
    ProjectSettings,
    PurgeReport,
    PurgeRequest,
)
from rprime.store import Retention

router = APIRouter(tags=["History"], default_response_class=Response)


@router.get(
    "/v1/projects",
    summary="The projects",
    description="The projects that the caller may see, sorted by name, with the number of their "
    "evaluations.",
    response_class=JSONResponse,
    response_description="The list.",
    responses=responses(*PROBLEMS),
)
@requires("read", cost="store")
def list_projects(request: Request, query: Parameters[NamesQuery]) -> ProjectList:
    """Return the projects that the caller may see."""
    may_use = access_of(request).may_use
    visible = [project for project in get_store(request).projects() if may_use(project.name)]
    page, cursor = named_page(visible, lambda project: project.name, query)
    return ProjectList(items=list(page), next_cursor=cursor)


@router.put(
    "/v1/projects/{project}",
    status_code=HTTPStatus.NO_CONTENT,
    summary="Change the settings of a project",
    description="What is left out stays as it is. A badge needs a key with `read`, like everything "
    "else of the project, unless it is made public here. Without `keeps_slices` new evaluations "
    "are stored without their slices. A project may have settings before its first evaluation.",
    responses=responses(*CHANGE_PROBLEMS, *PROBLEMS),
    openapi_extra=json_body(ProjectSettings, example={"badge_public": True}),
)
@requires("write", cost="store")
async def set_project(request: Request, project: str) -> None:
    """Change settings."""
    check_name("project", project)
    store = get_store(request)
    settings = await read_model(request, ProjectSettings)
    changes = settings.model_dump(exclude_unset=True)
    await in_store(request, lambda: store.put_settings(project, **changes))


@router.delete(
    "/v1/projects/{project}",
    status_code=HTTPStatus.NO_CONTENT,
    summary="Delete a project",
    description="With its evaluations, its aliases and the looks at its test sets.",
    responses=responses("not_found", "store_full", *PROBLEMS),
)
@requires("write", cost="store")
def delete_project(request: Request, project: str) -> None:
    """Delete the project and everything in it."""
    get_store(request).delete_project(project)


@router.post(
    "/v1/projects/{project}/purge",
    summary="Thin out a project",
    description="Deletes the evaluations that are neither among the newest `keep_last` of "
    "their model nor newer than `newer_than_days`; those that an alias points at always stay. "
    "`dry_run` only counts.",
    response_class=JSONResponse,
    response_description="What was deleted.",
    responses=responses("not_found", *CHANGE_PROBLEMS, *PROBLEMS),
    openapi_extra=json_body(PurgeRequest, example={"keep_last": 500, "dry_run": True}),
)
@requires("write", cost="store")
async def purge_project(request: Request, project: str) -> PurgeReport:
    """Delete the evaluations that no criterion protects."""
    store = get_store(request)
    criteria = await read_model(request, PurgeRequest)
    await in_store(request, require_project, request, project)
    keep = Retention(keep_last=criteria.keep_last, newer_than_days=criteria.newer_than_days)
    return await in_store(request, store.purge, project, keep, dry_run=criteria.dry_run)
