"""The pages of evaluations, the catalog and the reproduction, and what all pages load."""

import re
from functools import cache, partial
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from rprime.application.evaluate import RenderedReport, ResponseOptions, evaluate_stream
from rprime.application.reproduction import reproduce
from rprime.auth.access import access_of, requires
from rprime.auth.sessions import visitor_of
from rprime.core.catalog import INDICES
from rprime.core.index_names import unknown_index
from rprime.dashboard.catalog_view import catalog, entries_of
from rprime.dashboard.class_query import FAMILY_NAMES, ClassQuery, class_query, given_of
from rprime.dashboard.compare_view import CompareQuery, comparison_in_worker
from rprime.dashboard.page import part, show
from rprime.dashboard.report_view import NOT_KEPT, View, render_pasted, render_report_view, sample
from rprime.dashboard.templates_environment import ASSETS, asset
from rprime.evidence import MEDIA_TYPES
from rprime.history.stored_report import stored_report
from rprime.problems.problem import Problem, validated
from rprime.report.formats import FORMATS
from rprime.report.subject import read_comparison
from rprime.report.text import shown as fit
from rprime.report.verdicts import NOT_JUDGED, headline
from rprime.routes.evaluations import find_evaluation
from rprime.routes.negotiation import CompressedRoute, accepted_codings
from rprime.routes.services import get_services, get_store, in_render, in_store
from rprime.routes.workers import PAGE_SECONDS, answer_columns, in_worker, in_worker_with_store
from rprime.server.body import media_type, read_chunks
from rprime.server.cost import costs

public = APIRouter(route_class=CompressedRoute, include_in_schema=False)
"""These show nothing of anybody."""
router = APIRouter(route_class=CompressedRoute, include_in_schema=False)

PASTED = "text/plain"
MOST_PASTED = 8 * 1024 * 1024
"""Bytes: a thousand classes; what is longer comes as a file of predictions."""
_NAMES = ("JSON", "Markdown", "HTML", "CSV", "JUnit", "OpenMetrics")
_RENDERINGS = tuple(zip(_NAMES, ["", *(f"/report.{f.suffix}" for f in FORMATS)], strict=True))
"""Of a stored evaluation: how they are called, and where they are."""
_NAME_OF = {index.key: index.name for index in INDICES}
_NAME_OF["recall_of_class_0"] = "Recall of class 0"
_FIGURES = {"card": "summary", "confusion": "heat map", "per_class": "classes", "radar": "radar"}
_SCORE_FIGURES = {
    "roc": "ROC",
    "precision_recall": "precision-recall",
    "reliability": "reliability",
    "risk_coverage": "risk",
    "scores": "scores",
}
"""Of a stored evaluation, as images: the name in the address and the name for readers."""


@public.get("/")
@costs("store")
async def start(request: Request) -> Response:
    """Lead to what happened lately, or to the evaluator where nothing is stored."""
    services = get_services(request)
    may_read = services.keyring is None or visitor_of(request) is not None
    store = get_store(request) if may_read and services.store.is_open else None
    stored = () if store is None else await in_store(request, store.projects)
    return RedirectResponse("ui/projects" if stored else "ui/evaluate", HTTPStatus.SEE_OTHER)


@public.get("/ui/evaluate")
@costs("render")
async def evaluator(request: Request) -> Response:
    """Show a report beside the matrix that it is about, to be replaced by the reader's own."""
    query = class_query(request)
    matrix, subject = await in_render(request, sample)
    report = await in_render(request, render_report_view, subject, query=query)
    content: dict[str, Any] = {"matrix": matrix, "report": report, "families": FAMILY_NAMES}
    return show(request, "evaluator.html", "Evaluate a classifier", **content)


@router.post("/ui/evaluate")
@requires("evaluate", cost="heavy")
async def evaluate(request: Request) -> Response:
    """Answer with the part of a page that shows an evaluation; keep nothing.

    The body is what was pasted, or a file of predictions; `request` has the options.
    """
    media = media_type(request, (PASTED, *MEDIA_TYPES))
    limits, query = get_services(request).limits, class_query(request)
    if media == PASTED:
        text = await read_chunks(request, min(MOST_PASTED, limits.json_body_bytes))
        options = request.query_params.get("request", "").encode()
        work = partial(render_pasted, options=options, limits=limits, query=query)
        return part(await in_worker(request, work, text, wait_seconds=PAGE_SECONDS))
    kind = MEDIA_TYPES[media]
    reading = f"Read as predictions in {kind.upper()}, one row for each item."
    view = View("view", "the page", "text/html", "", query=query, reading=reading)
    question = ResponseOptions(limits, view, include=(), kind=kind)
    answer = await answer_columns(request, question, evaluate_stream)
    if not isinstance(answer, RenderedReport):
        raise NOT_KEPT
    return part(answer.content)


@router.get("/ui/evaluations/{evaluation}")
@requires("read", cost="render")
async def evaluation(request: Request, evaluation: str) -> Response:
    """Show a stored evaluation."""
    query = validated(ClassQuery, given_of(request))
    stored = await in_store(request, find_evaluation, request, evaluation)
    store, most = get_store(request), get_services(request).limits.top_confusions
    stored_view = await in_store(request, stored_report, stored, store, most, query.slice)
    stored_view = await in_store(request, stored_view.with_baseline_name, store)
    families = query.family_links(stored_view.options)
    stored_view = stored_view.of_indices((), query.families)
    stored_view = stored_view.at_equal_shares() if query.prevalence else stored_view
    subject = await in_render(request, lambda: stored_view.subject)
    compared = subject.comparison or read_comparison(stored.comparison)
    # Other evidence than a stored evaluation has no page to compare with.
    baseline = None if compared is None else compared.baseline.resolved
    verdict = NOT_JUDGED if stored.gate and not subject.gate else headline(subject.gate)
    # Without a model the project is in the title already.
    where = f" · {fit(stored.project)}" if stored.model else ""
    title = f"{fit(subject.title)}, {verdict.word}{where}"
    more = {"verdict": verdict, "families": families}
    report = await in_render(request, partial(render_report_view, subject, "../../", query, **more))
    content: dict[str, Any] = {"report": report, "stored": stored, "baseline": baseline}
    content["figures"] = _FIGURES if subject.kept_scores is None else _FIGURES | _SCORE_FIGURES
    content |= {"renderings": _RENDERINGS, "slice": subject.slice, "asked": query}
    content["equal_shares"] = query.prevalence or stored_view.has_equal_shares
    return show(request, "evaluation.html", title, **content)


@router.get("/ui/compare")
@requires("read", cost="heavy")
async def compare(request: Request) -> Response:
    """Show what changed from the baseline to the candidate."""
    parameters = given_of(request)
    chosen = {parameters.get("candidate"), parameters.get("baseline")}
    if None in chosen or len(chosen) == 1:
        text = "Choose a candidate and another evaluation as its baseline."
        raise Problem("invalid_request", text)
    query = validated(CompareQuery, parameters)
    get_store(request)
    may_use, limits = access_of(request).may_use, get_services(request).limits
    work = partial(comparison_in_worker, query=query, limits=limits, may_use=may_use)
    content = await in_worker_with_store(request, work, wait_seconds=PAGE_SECONDS)
    sides = (content["candidate_entry"], content["baseline_entry"])
    title = " against ".join(side["name"] for side in sides)
    title = f"{title} · {fit(content['project'])}"
    return show(request, "compare.html", title, **content)


@public.get("/ui/indices")
@costs("render")
async def indices(request: Request) -> Response:
    """Show the catalog."""
    entries = await in_render(request, catalog)
    return show(request, "indices.html", "Indices", entries=entries)


@public.get("/ui/indices/{key}")
@costs("render")
async def index(request: Request, key: str) -> Response:
    """Show what an index is, overall and for a class."""
    entries = await in_render(request, entries_of, key)
    if not entries:
        raise Problem("not_found", unknown_index(key))
    title = entries[0].facts.name
    return await in_render(request, show, request, "index.html", title, entries=entries)


@public.get("/ui/reproduced")
@costs("render")
async def reproduced(request: Request) -> Response:
    """Show what the R' paper printed against what is computed here."""
    reproduction = await in_render(request, _reproduction)
    tables = [
        (title, [r for r in reproduction.results if r.table == title])
        for title in reproduction.tables
    ]
    return show(
        request, "reproduced.html", "Paper results", found=reproduction, tables=tables, named=_named
    )


def _named(text: str) -> str:
    """Write the keys of indices in a text as their names."""
    return re.sub(r"\w+", lambda key: _NAME_OF.get(key[0], key[0]), text)


_reproduction = cache(reproduce)


@public.get("/ui/static/{name}")
@costs("cheap")
async def static(request: Request, name: str) -> Response:
    """Return a static file; it is immutable if its address has its digest."""
    if name not in ASSETS:
        raise Problem("not_found")
    file = asset(name)
    current = request.query_params.get("v") == file.digest
    kept = "public, max-age=31536000, immutable" if current else "no-cache"
    headers = {"Cache-Control": kept, "Vary": "Accept-Encoding"}
    if "gzip" in accepted_codings(request.headers):
        headers["Content-Encoding"] = "gzip"
        return Response(file.compressed, 200, headers, file.media_type)
    return Response(file.content, 200, headers, file.media_type)
