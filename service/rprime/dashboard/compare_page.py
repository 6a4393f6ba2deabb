"""The page that holds two stored evaluations against each other."""

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from rprime.auth.access import access_of, requires
from rprime.dashboard.class_query import given_of
from rprime.dashboard.compare_view import CompareQuery, comparison_view
from rprime.dashboard.page import page_of, shown
from rprime.dashboard.templates_environment import render
from rprime.history.visible_history import VisibleHistory
from rprime.routes.compressed_route import CompressedRoute
from rprime.routes.services import get_services, get_store

router = APIRouter(route_class=CompressedRoute, include_in_schema=False)


@router.get("/ui/compare")
@requires("read")
async def compare(request: Request) -> Response:
    """Show what changed from the baseline to the candidate."""
    query = CompareQuery.model_validate(given_of(request))
    visible_history = VisibleHistory(lambda: get_store(request), access_of(request).may_use)
    limits = get_services(request).limits
    content = await run_in_threadpool(comparison_view, query, limits, visible_history)
    sides = (content["candidate_entry"], content["baseline_entry"])
    page = page_of(request, " against ".join(side["version"] or side["id"] for side in sides))
    return shown(render("pages/compare.html", page, **content))
