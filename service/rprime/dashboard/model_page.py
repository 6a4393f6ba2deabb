"""The page of a model: its versions over time, and which of them an alias points at."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from pydantic import Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from rprime.auth.access import access_of, requires
from rprime.auth.browser_sessions import form_session, read_form, remember, session_of
from rprime.core.catalog import CLASS_INDICES, OVERALL_INDICES
from rprime.core.index import Index
from rprime.dashboard.model_view import ModelViewOptions, model_history
from rprime.dashboard.page import page_of, shown
from rprime.dashboard.tables import pointing
from rprime.dashboard.templates_environment import render
from rprime.history.series import filters_of
from rprime.problems.problem import Problem
from rprime.report.names import shown as fit
from rprime.routes.aliases import point
from rprime.routes.services import get_services, get_store
from rprime.schemas.fields import IndexKey
from rprime.schemas.history import Narrowed
from rprime.store import AliasChangedError, Expected, Store

router = APIRouter(include_in_schema=False)

PATH = "/ui/projects/{project}/models/{model:path}"
MOST_STEPS = 200
"""What a list of the store has at most."""
_ETAG = "etag:"
NOT_A_NAME = "An alias starts with a letter or digit, then also . _ + and -, 128 in all."


class ModelQuery(Narrowed):
    """What is shown of a model."""

    index: IndexKey = "r_prime"
    overall: IndexKey = "macro_f1"
    limit: Annotated[int, Field(ge=2, le=MOST_STEPS)] = 40
    promoted: Annotated[str | None, Field(max_length=128)] = None


@router.get(PATH)
@requires("read")
async def model(request: Request, project: str, model: str) -> Response:
    """Show a model over its versions."""
    return await _shown(request, project, model)


@router.post(PATH)
@requires("write")
async def promote(request: Request, project: str, model: str) -> Response:
    """Point an alias at one of its evaluations, as long as nobody else has changed it."""
    fields = await read_form(request)
    alias = fields.get("alias", "").strip()
    etag = fields.get(f"{_ETAG}{alias}")
    expectation = Expected(etags=None if etag is None else {etag}, absent=etag is None)
    evaluation = fields.get("evaluation", "")
    try:
        store = get_store(request)
        await run_in_threadpool(point, store, (project, alias), evaluation, expectation)
    except AliasChangedError:
        refused = "It was changed meanwhile; what it points at now is shown here. Decide again."
        status = HTTPStatus.PRECONDITION_FAILED
        return await _shown(request, project, model, refused=(alias, refused), status=status)
    except ValidationError:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        return await _shown(request, project, model, refused=(alias, NOT_A_NAME), status=status)
    where = urlencode({**request.query_params, "promoted": alias})
    return RedirectResponse(f"?{where}", HTTPStatus.SEE_OTHER)


async def _shown(
    request: Request,
    project: str,
    model: str,
    *,
    refused: tuple[str, str] | None = None,
    status: int = HTTPStatus.OK,
) -> Response:
    given = {name: value for name, value in request.query_params.items() if value}
    query = ModelQuery.model_validate({**given, "model": model})
    content = await run_in_threadpool(_content, get_store(request), project, query)
    if not content["steps"] and query == ModelQuery(model=model):
        raise Problem("not_found")
    sessions = get_services(request).sessions
    session = form_session(request)
    page = page_of(request, fit(model))
    text = render(
        "pages/model.html",
        page,
        project=project,
        model=model,
        query=query,
        refused=refused,
        may_promote=access_of(request).may("write"),
        token=sessions.csrf_token(session),
        **content,
    )
    response = shown(text, status)
    response.headers["Cache-Control"] = "no-store"
    if session_of(request) is None:
        remember(request, response, session)
    return response


def _content(store: Store, project: str, query: ModelQuery) -> dict[str, Any]:
    asked = ModelViewOptions(
        project=project,
        filters=filters_of(query),
        of_classes=query.index,
        overall=query.overall,
        newest=query.limit,
    )
    aliases = store.aliases(project)
    return {
        **model_history(store, asked),
        "aliases": [(fit(alias.name), alias) for alias in aliases],
        "pointing": pointing(aliases),
        "branches": store.branches(project),
        "class_indices": _measurable(CLASS_INDICES),
        "overall_indices": _measurable(OVERALL_INDICES),
        "etag": _ETAG,
    }


def _measurable(indices: Mapping[str, Index]) -> list[tuple[str, str]]:
    """Return keys and names of the indices that need only a stored table."""
    return [(e.key, e.name) for e in indices.values() if e.needs is None and not e.scored]
