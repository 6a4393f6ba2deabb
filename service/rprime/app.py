"""The composition root: builds the application from its settings."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from threading import Lock
from typing import Any

import orjson
from anyio import CapacityLimiter
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from rprime import __version__
from rprime.auth import access
from rprime.auth.keys import Keyring
from rprime.auth.sessions import SessionMiddleware, Sessions
from rprime.core import special
from rprime.dashboard import (
    class_page,
    documentation,
    model_page,
    pages,
    project_pages,
    sign_in,
    slices_page,
)
from rprime.dashboard.page import for_browsers
from rprime.problems.handlers import HANDLERS
from rprime.problems.problem import components, set_root_path
from rprime.routes import (
    aliases,
    catalog,
    compare,
    descriptions,
    evaluate,
    evaluations,
    figures,
    metrics,
    operations,
    projects,
    studies,
    transfer,
    trend,
)
from rprime.routes import store_lifespan as history
from rprime.routes.batching import RequestBatcher
from rprime.routes.request_route import guard_queries
from rprime.routes.services import Services
from rprime.routes.store_lifespan import StoreHandle, database_options
from rprime.routes.workers import worker_pool
from rprime.schemas import published
from rprime.server.addresses import TrustedHosts, TrustedProxies
from rprime.server.admission import AdmissionControl, return_freed_memory
from rprime.server.connections import Connections
from rprime.server.cost import Cost, check_declared
from rprime.server.draining import Draining
from rprime.server.metrics import Metrics
from rprime.server.middleware import RequestMiddleware
from rprime.server.pools import Slots, Threads
from rprime.server.read_scheduler import ReadScheduler
from rprime.server.services import LIFESPAN_KEY
from rprime.server.telemetry import tracing
from rprime.settings import Limits, Settings
from rprime.store.revoked_sessions import SessionFile

# The first gate of a service does not wait for it.
special.load()

DESCRIPTION = """\
Post a confusion matrix, label arrays or scores of a multiclass classifier and get back every
index, overall and for each class, with intervals and warnings, and, with gates, a verdict.

* **A verdict is data.** A failed gate answers 200 or 201 with `gate.verdict: "fail"`; 4xx means
  the request is wrong, 5xx that the service is.
* **Undefined values are null, with a reason.** An undefined index is never replaced by a number.
* **Errors are problems of RFC 9457**, and [every kind](docs/problems) says what to do.
* **[The documentation](docs/index.md)** explains indices, statistics, gates and operation.
"""

TAGS = [
    {"name": "Evaluation", "description": "Evidence in, report out."},
    {"name": "Comparison", "description": "Candidate against baseline; what a gate would do."},
    {"name": "History", "description": "Stored evaluations: lists, trends, aliases, retention."},
    {"name": "Studies", "description": "How indices relate to each other."},
    {"name": "Catalog", "description": "Every index: formula, range, source."},
    {"name": "Operation", "description": "Liveness, readiness, version, limits and metrics."},
]


ROUTERS = (
    evaluate,
    compare,
    catalog,
    evaluations,
    projects,
    aliases,
    trend,
    figures,
    transfer,
    studies,
    metrics,
)
"""The most frequent first, since routes are tried in order."""
PAGES = (pages, project_pages, class_page, model_page, slices_page)
RENDER_THREADS = 2
"""More would only take turns with the interpreter lock."""
TRANSFERS = 2
"""Exports and imports at a time."""
PUBLIC = (operations.router, documentation.router, pages.public, sign_in.public)


class RprimeApp(FastAPI):
    """FastAPI, with the schemas of evidence, reports and problems in its OpenAPI document."""

    def __init__(self, **more: Any) -> None:  # noqa: ANN401 - FastAPI types them
        super().__init__(**more)
        self._contract: bytes | None = None
        self._describing = Lock()

    def contract(self) -> bytes:
        """Return the OpenAPI document as it is sent; it is written once, which takes a second."""
        with self._describing:
            if self._contract is None:
                self._contract = orjson.dumps(self.openapi())
            return self._contract

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document; clients are generated from its operation ids."""
        if self.openapi_schema is not None:
            return self.openapi_schema
        for route in self.routes:
            if isinstance(route, APIRoute):
                first, *others = route.name.split("_")
                route.operation_id = first + "".join(map(str.capitalize, others))
        # What several routes declare is shared, and their examples are not to be changed.
        document: dict[str, Any] = orjson.loads(orjson.dumps(super().openapi()))
        document["components"]["schemas"].update(published.components() | components())
        document["components"]["securitySchemes"] = access.SCHEME
        if self.state.services.keyring is None:
            self._describe_keys(document)
        descriptions.add_examples(document)
        self.openapi_schema = document
        return document

    def _describe_keys(self, document: dict[str, Any]) -> None:
        """Say which scopes an operation needs where there are keys, which are optional."""
        refused = {str(status): answer for status, answer in access.REFUSED.items()}
        for route in self.routes:
            scopes = access.required_scopes(route)
            if isinstance(route, APIRoute) and route.include_in_schema and scopes:
                for method in route.methods or ():
                    operation = document["paths"][route.path_format][method.lower()]
                    operation["security"] = [{}, *access.security_of(scopes)]
                    operation["responses"] |= deepcopy(refused)


def create_app(settings: Settings) -> FastAPI:
    """Build the service from its settings; only OpenTelemetry reads variables of its own."""
    set_root_path(settings.root_path)
    services = _services(settings)
    app = RprimeApp(
        title="rprime",
        summary="Evaluation of multiclass classifiers",
        description=DESCRIPTION,
        version=__version__,
        license_info={"name": "Apache 2.0", "identifier": "Apache-2.0"},
        openapi_tags=TAGS,
        servers=[{"url": settings.root_path}] if settings.root_path else None,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=_middleware(settings, services),
        exception_handlers=for_browsers(HANDLERS | history.HANDLERS),
        lifespan=_lifespan,
    )
    app.state.services = services
    services.metrics.read(*metrics.readings(services))
    # Not include_router: FastAPI would match every request twice.
    for module in (*ROUTERS, *PAGES):
        routes, is_page = module.router.routes, module in PAGES
        guarded = access.with_authentication(routes, services.keyring, pages=is_page)
        app.router.routes.extend(guard_queries(guarded))
    for public in PUBLIC:
        app.router.routes.extend(guard_queries(check_declared(public.routes)))
    static = documentation.CompressedFiles(directory=documentation.STATIC)
    app.mount("/static", static, name="static")
    if services.guide is not None:
        app.mount("/guide", documentation.Guide(directory=services.guide), name="guide")
    return app


def _services(settings: Settings) -> Services:
    limits, keys_file = settings.limits, settings.keys_file
    counted = Metrics(__version__)
    store = StoreHandle(settings.store, database_options(settings), counted.commits.observe)
    return Services(
        limits=limits,
        log_requests=settings.log_requests,
        admission=AdmissionControl(limits),
        open_connections=Connections(limits.connections),
        metrics=counted,
        draining=Draining(settings.drain_seconds, settings.stop_seconds),
        coding=CapacityLimiter(1),
        spooling=CapacityLimiter(2),
        workers=worker_pool(limits, counted, stored=store.is_kept),
        store_threads=_threads("store", settings.store_connections, limits),
        render_threads=_threads("render", RENDER_THREADS, limits),
        transfer_threads=_threads("store", TRANSFERS, limits),
        scheduler=ReadScheduler(),
        keyring=Keyring(keys_file, settings.key_requests_per_minute) if keys_file else None,
        sessions=Sessions(settings.session_secret.get_secret_value()),
        revoked_sessions=SessionFile(keys_file.with_name(f"{keys_file.name}.sessions"))
        if keys_file and not store.is_kept
        else store,
        store=store,
        batcher=RequestBatcher(),
        guide=settings.guide,
    )


def _threads(cost: Cost, most: int, limits: Limits) -> Threads:
    slots = Slots(
        most, limits.in_flight_requests, seconds=limits.wait_seconds, what="Other requests"
    )
    return Threads(slots, cost)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
    services: Services = app.state.services
    with services.draining.handle_signals():
        await services.store.open()
        services.workers.prepare_later()
        returning = asyncio.create_task(return_freed_memory(services.admission))
        sharing = asyncio.create_task(services.metrics.share())
        try:
            # uvicorn hands this to each connection, which knows no application.
            yield {LIFESPAN_KEY: services}
        finally:
            returning.cancel()
            sharing.cancel()
            await services.store.close()
            await services.workers.close()


def _middleware(settings: Settings, services: Services) -> list[Middleware]:
    hosts, proxies = TrustedHosts(settings.known_hosts), TrustedProxies(settings.trusted_proxies)
    requests = Middleware(RequestMiddleware, services=services, hosts=hosts, proxies=proxies)
    surround = [*tracing(__version__), requests]
    if services.keyring is not None:
        surround.append(Middleware(SessionMiddleware))
    if settings.cors_origins:
        surround.append(
            Middleware(
                CORSMiddleware,
                allow_origins=settings.cors_origins,
                allow_methods=["GET", "POST", "PUT", "DELETE"],
                allow_headers=["*"],
                expose_headers=["*"],
            )
        )
    return surround
