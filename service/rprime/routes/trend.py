"""Trend, leaderboard and badge of a project."""

from functools import partial

from fastapi import APIRouter, Request, Response

from rprime.auth.access import requires
from rprime.history.leaderboard import leaderboard_in_worker, versions_of
from rprime.history.series import Measured, filters_of, trend_document
from rprime.problems.problem import refuse
from rprime.report.badge import Badge, render_badge, render_endpoint, value_badge, verdict_badge
from rprime.report.slices import shown_slice
from rprime.routes.descriptions import PROBLEMS, TEXT, route_responses
from rprime.routes.evaluations import require_project
from rprime.routes.negotiation import JSON, CompressedRoute
from rprime.routes.services import Parameters, get_services, get_store, in_render, in_store
from rprime.routes.workers import in_worker_with_store
from rprime.schemas.history import (
    BadgeEndpoint,
    BadgeQuery,
    Leaderboard,
    LeaderboardQuery,
    Trend,
    TrendQuery,
)
from rprime.store import Filters

router = APIRouter(route_class=CompressedRoute, tags=["History"], default_response_class=Response)

BADGE_SECONDS = 60


@router.get(
    "/v1/projects/{project}/trend",
    summary="One index over the history",
    description="Oldest first, with intervals, computed now from the stored tables as one stack, "
    "so that a new index covers the whole history. With the default options of an evaluation; "
    "overall indices of scores are read as they were stored.",
    responses=route_responses("The series.", Trend, "not_found", *PROBLEMS),
)
@requires("read", cost="render")
def get_trend(request: Request, project: str, query: Parameters[TrendQuery]) -> Response:
    """Return the series."""
    store = get_store(request)
    measured = Measured.of(query.index, query.class_, uniform=query.prevalence is not None)
    require_some(request, project)
    document = trend_document(store, project, measured, filters_of(query), query.limit)
    return Response(document, media_type=JSON)


@router.get(
    "/v1/projects/{project}/leaderboard",
    summary="Versions in tiers",
    description="The newest evaluation of each version on one test set, best first. Versions that "
    "a test cannot tell apart from the best of their tier share it: paired if the items of both "
    "are stored, else unpaired, one-sided at 5 %, Holm-adjusted.",
    responses=route_responses("The tiers.", Leaderboard, "not_found", *PROBLEMS),
)
@requires("read", cost="heavy")
async def get_leaderboard(
    request: Request, project: str, query: Parameters[LeaderboardQuery]
) -> Response:
    """Return the tiers."""
    await in_store(request, require_some, request, project)
    versions = await in_render(request, versions_of, get_store(request), project, query)
    work = partial(leaderboard_in_worker, query=query, versions=versions)
    return Response(await in_worker_with_store(request, work), media_type=JSON)


def require_some(request: Request, project: str) -> None:
    """Answer 404 if a project has no evaluation and does not exist."""
    if not get_store(request).page(project, limit=1).items:
        require_project(request, project)


async def has_public_badge(request: Request) -> bool:
    """Whether the badge of the requested project is public."""
    history = get_services(request).store
    if not history.is_open:
        return False
    project = request.path_params["project"]
    return await in_store(request, history.store.setting, project, "badge_public")


@router.get(
    "/v1/projects/{project}/badge.svg",
    summary="A badge",
    description="The newest verdict, or one index of the newest evaluation. Needs no key if the "
    "project has `badge_public`.",
    responses=route_responses("The image.", {"image/svg+xml": TEXT}, "not_found", *PROBLEMS),
)
@requires("read", cost="render", unless=has_public_badge)
def get_badge_svg(request: Request, project: str, query: Parameters[BadgeQuery]) -> Response:
    """Return the image."""
    badge = _badge(request, project, query)
    return _cached(request, project, render_badge(badge).encode(), "image/svg+xml")


@router.get(
    "/v1/projects/{project}/badge.json",
    summary="A badge as data",
    description="For the endpoint badge of shields.io; otherwise like badge.svg.",
    responses=route_responses("The data.", BadgeEndpoint, "not_found", *PROBLEMS),
)
@requires("read", cost="render", unless=has_public_badge)
def get_badge_json(request: Request, project: str, query: Parameters[BadgeQuery]) -> Response:
    """Return the badge as JSON."""
    badge = _badge(request, project, query)
    return _cached(request, project, render_endpoint(badge), JSON)


def _badge(request: Request, project: str, query: BadgeQuery) -> Badge:
    store = get_store(request)
    measured = None if query.index is None else Measured.of(query.index, query.class_)
    if measured is None and (query.slice or query.class_ is not None):
        raise refuse("/query", "misplaced", "A verdict is about all items: name an `index`, too.")
    require_some(request, project)
    filters = Filters(model=query.model, branch=query.branch, slice=query.slice)
    if measured is None:
        newest = store.page(project, filters, limit=1).items
        verdict = newest[0].verdict if newest else None
        return verdict_badge(verdict)  # type: ignore[arg-type] # as stored
    points = measured.points(store, project, filters, 1)
    if not points:
        measured.refuse_unknown(store, project, filters)
    value = points[0].value if points else None
    about = (measured.label, shown_slice(dict(filters.slice)))
    options = points[0].options if points else ""
    return value_badge(measured.index, value, ", ".join(filter(None, about)), options)


def _cached(request: Request, project: str, picture: bytes, media_type: str) -> Response:
    whose = "public" if get_store(request).setting(project, "badge_public") else "private"
    headers = {"Cache-Control": f"{whose}, max-age={BADGE_SECONDS}"}
    return Response(picture, headers=headers, media_type=media_type)
