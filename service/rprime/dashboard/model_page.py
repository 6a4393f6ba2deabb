"""The page of a model: its versions over time, and which of them an alias points at."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from rprime.auth.access import access_of, requires
from rprime.auth.browser_sessions import form_session, read_form, remember, session_of
from rprime.core.catalog import CLASS_INDICES, OVERALL_INDICES
from rprime.core.index import Index
from rprime.dashboard.class_query import given_of, slice_text
from rprime.dashboard.model_view import ModelQuery, model_history
from rprime.dashboard.page import show
from rprime.dashboard.tables import pointers, pointing
from rprime.problems.problem import Problem
from rprime.report.names import shown as fit
from rprime.routes.aliases import point
from rprime.routes.compressed_route import CompressedRoute
from rprime.routes.services import get_services, get_store
from rprime.store import Alias, AliasChangedError, Expected, Filters, Store
from rprime.store.ids import created_at

router = APIRouter(route_class=CompressedRoute, include_in_schema=False)

PATH = "/ui/projects/{project}/models/{model:path}"
_ETAG = "etag:"
MOST_CHANGES = 20
"""Of an alias that are shown: the newest."""
CHANGED_MEANWHILE = "Somebody else moved this alias meanwhile. Look where it points now."
NOT_A_NAME = "An alias starts with a letter or digit, then also . _ + and -, 128 in all."


@dataclass(frozen=True, slots=True)
class Promotion:
    """A promotion that was not carried out: it awaits a confirmation, or was refused.

    Parameters
    ----------
    evaluation
        Id of what the alias is to point at.
    refused
        The reason; empty if the reader only has to confirm.
    """

    alias: str
    evaluation: str
    refused: str = ""


@router.get(PATH)
@requires("read")
async def model(request: Request, project: str, model: str) -> Response:
    """Show a model over its versions."""
    return await _shown(request, project, model)


@router.post(PATH)
@requires("write")
async def promote(request: Request, project: str, model: str) -> Response:
    """Point an alias at one of its evaluations, as long as nobody else has changed it.

    An alias that points at something already moves only after a confirmation.
    """
    fields = await read_form(request)
    alias, evaluation = fields.get("alias", "").strip(), fields.get("evaluation", "")
    etag = fields.get(f"{_ETAG}{alias}")
    if etag is not None and "confirmed" not in fields:
        return await _shown(request, project, model, Promotion(alias, evaluation))
    expectation = Expected(etags=None if etag is None else {etag}, absent=etag is None)
    try:
        await point(request, (project, alias), evaluation, expectation)
    except AliasChangedError:
        found = Promotion(alias, evaluation, CHANGED_MEANWHILE)
        return await _shown(request, project, model, found, HTTPStatus.PRECONDITION_FAILED)
    except ValidationError:
        found = Promotion(alias, evaluation, NOT_A_NAME)
        return await _shown(request, project, model, found, HTTPStatus.UNPROCESSABLE_ENTITY)
    where = urlencode({**request.query_params, "promoted": alias})
    return RedirectResponse(f"?{where}", HTTPStatus.SEE_OTHER)


async def _shown(
    request: Request,
    project: str,
    model: str,
    promotion: Promotion | None = None,
    status: int = HTTPStatus.OK,
) -> Response:
    query = ModelQuery.model_validate({**given_of(request), "model": model})
    content = await run_in_threadpool(_content, get_store(request), project, query)
    if not content["steps"] and query == ModelQuery(model=model):
        raise Problem("not_found")
    sessions = get_services(request).sessions
    session = form_session(request)
    response = show(
        request,
        "model.html",
        fit(model),
        status=status,
        project=project,
        model=model,
        query=query,
        promotion=promotion,
        may_promote=access_of(request).may("write"),
        token=sessions.csrf_token(session),
        **content,
    )
    response.headers["Cache-Control"] = "no-store"
    if session_of(request) is None:
        remember(request, response, session)
    return response


def _content(store: Store, project: str, query: ModelQuery) -> dict[str, Any]:
    aliases = store.aliases(project)
    return {
        **model_history(store, project, query, pointing(aliases)),
        "aliases": [
            {**pointed, "changes": _changes(store, pointed["alias"])}
            for pointed in pointers(store, project)
        ],
        "pointing": pointing(aliases),
        "branches": store.branches(project),
        "slices": [slice_text(n) for n in store.slice_names(project, Filters(model=query.model))],
        "sliced": slice_text(dict(query.slice)) if query.slice else "",
        "class_indices": measurable(CLASS_INDICES),
        "overall_indices": measurable(OVERALL_INDICES),
        "etag": _ETAG,
    }


def _changes(store: Store, alias: Alias) -> list[dict[str, Any]]:
    """Describe what an alias pointed at, newest first; no id where it was deleted."""
    found = store.alias_changes(alias.project, alias.name, limit=MOST_CHANGES)
    return [
        {
            "id": change.evaluation,
            "model": fit(change.model or ""),
            "version": fit(change.version or ""),
            "time": change.evaluation and f"{created_at(change.evaluation):%Y-%m-%d %H:%M}",
            "moment": change.changed_at,
            "by": fit(change.by or ""),
        }
        for change in found
    ]


def measurable(indices: Mapping[str, Index]) -> list[tuple[str, str]]:
    """Return keys and names of the indices that need only a stored table."""
    return [(e.key, e.name) for e in indices.values() if e.needs is None and not e.scored]
