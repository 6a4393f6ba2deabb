"""The page that holds two stored evaluations against each other."""

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from rprime.dashboard.rendering import render
from rprime.inquiry.archive import Archive
from rprime.inquiry.juxtaposition import juxtaposed
from rprime.routes.access import access_of, needs
from rprime.routes.history import store_of
from rprime.routes.page import page_of, shown
from rprime.schemas.history import Query

router = APIRouter(include_in_schema=False)


class CompareQuery(Query):
    """Which two evaluations."""

    candidate: Annotated[str, Field(min_length=1, max_length=64)]
    baseline: Annotated[str, Field(min_length=1, max_length=64)]


@router.get("/ui/compare")
@needs("read")
async def compare(request: Request) -> Response:
    """Show what changed from the baseline to the candidate."""
    query = CompareQuery.model_validate(dict(request.query_params))
    archive = Archive(lambda: store_of(request), access_of(request).may_use)
    limits = request.app.state.limits
    content = await run_in_threadpool(juxtaposed, query.candidate, query.baseline, limits, archive)
    page = page_of(request, "Compare")
    return shown(render("pages/compare.html", page, **content))
