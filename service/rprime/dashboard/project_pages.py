"""The pages of the projects: which there are, and the evaluations of one."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from pydantic import Field

from rprime.auth.access import access_of, requires
from rprime.core.catalog import OVERALL_INDICES
from rprime.dashboard.class_query import given_of, said_of
from rprime.dashboard.listings import (
    HEADLINES,
    NEWEST_FIRST,
    listing,
    listing_entry,
    listing_table,
    pointers,
    pointing,
)
from rprime.dashboard.overview import overview
from rprime.dashboard.page import show
from rprime.history.series import filters_of
from rprime.problems.problem import validated
from rprime.report.class_selection import Order
from rprime.report.text import shown as fit
from rprime.routes.evaluations import require_project
from rprime.routes.negotiation import CompressedRoute
from rprime.routes.services import get_store, in_render, in_store
from rprime.schemas.history import Narrowed
from rprime.store import EvaluationSummary, Store

router = APIRouter(route_class=CompressedRoute, include_in_schema=False)

PAGE_SIZE = 50
EXAMPLE = "example"
"""The project of `static/example.json`."""
ORDERS = {
    "-date": "Newest first",
    "date": "Oldest first",
    **{
        f"{sign}{key}": f"{OVERALL_INDICES[key].name}, {word} first"
        for key in HEADLINES
        for sign, word in (("-", "highest"), ("", "lowest"))
    },
    "model": "Model, ascending",
    "-model": "Model, descending",
    "-version": "Version, descending",
    "version": "Version, ascending",
    "verdict": "Verdict, ascending",
    "-verdict": "Verdict, descending",
}
"""As the form names them."""


class ListingQuery(Narrowed):
    """Which part of the evaluations of a project, and in which order."""

    order: Annotated[str, Field(pattern=f"^({'|'.join(ORDERS)})$")] = NEWEST_FIRST.order
    cursor: Annotated[str | None, Field(max_length=100)] = None


@router.get("/ui/projects")
@requires("read", cost="render")
async def projects(request: Request) -> Response:
    """Show what happened lately in the projects that the caller may see."""
    store, may_use = get_store(request), access_of(request).may_use
    content = await in_render(
        request,
        lambda: overview(store, [entry for entry in store.projects() if may_use(entry.name)]),
    )
    content["origin"] = str(request.base_url).rstrip("/")
    access = access_of(request)
    content["may_store"] = (
        access.may("evaluate") and access.may("write") and access.may_use(EXAMPLE)
    )
    return show(request, "projects.html", "Projects", **content)


@router.get("/ui/projects/{project}")
@requires("read", cost="render")
async def project(request: Request, project: str) -> Response:
    """List the evaluations of a project."""
    query = validated(ListingQuery, given_of(request))
    store = get_store(request)
    content = await in_render(request, _project, store, project, query)
    if not content["models"]:
        await in_store(request, require_project, request, project)
    return show(request, "project.html", fit(project), project=project, **content)


def _project(store: Store, project: str, query: ListingQuery) -> dict[str, Any]:
    filters = filters_of(query)
    order = Order(query.order)
    rows, following = listing(store, project, filters, order, limit=PAGE_SIZE, cursor=query.cursor)
    models, aliases = store.models(project), store.aliases(project)
    summaries = [summary for summary, _ in rows]
    compared = _compared_with(summaries, {alias.evaluation for alias in aliases})
    return {
        "table": listing_table(rows),
        "preset": _preset(summaries, compared),
        "compared": {key: listing_entry(baseline) for key, baseline in compared.items()},
        "models": models,
        "branches": store.branches(project),
        "evaluations": sum(model.evaluations for model in models),
        "fitting": store.count(project, filters),
        "named_aliases": pointers(store, aliases),
        "aliases": pointing(aliases),
        "order": order,
        "orders": ORDERS,
        "given": dict.fromkeys(ListingQuery.model_fields, "") | _given(query),
        "narrowed": query != ListingQuery(),
        "address": partial(_address, query),
        "following": following,
    }


def _compared_with(
    summaries: Sequence[EvaluationSummary], pointed: Collection[str]
) -> dict[str, EvaluationSummary]:
    """Return what each evaluation of a list is compared with first, by its id.

    Of its model: the newest that an alias points at, else the one before it.
    """
    newest_first = sorted(summaries, key=attrgetter("id"), reverse=True)
    compared = {}
    for summary in newest_first:
        others = [s for s in newest_first if s.model == summary.model and s.id != summary.id]
        champions = [s for s in others if s.id in pointed]
        before = [s for s in others if s.id < summary.id]
        if champions or before:
            compared[summary.id] = (champions or before)[0]
    return compared


def _preset(
    summaries: Sequence[EvaluationSummary], compared: Mapping[str, EvaluationSummary]
) -> tuple[str, str]:
    """Return the candidate and the baseline that are chosen in a list, until a reader does.

    The newest of the model that has most of the list, and what it is compared with first.
    """
    if not summaries:
        return "", ""
    most = Counter(summary.model for summary in summaries).most_common(1)[0][0]
    newest = max(s.id for s in summaries if s.model == most)
    return newest, compared[newest].id if newest in compared else newest


def _given(query: ListingQuery) -> dict[str, str]:
    members = said_of(query)
    if query.since is not None:
        members["since"] = query.since.date()
    return {name: str(value) for name, value in members.items()}


def _address(query: ListingQuery, **changed: str | None) -> str:
    """Return the query of the same list in another order, or of a later part of it."""
    members = {**_given(query), **changed}
    return "?" + urlencode({name: value for name, value in members.items() if value is not None})
