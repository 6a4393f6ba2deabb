"""The history that a command works on: that of a service, or a store that can be reached here."""

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Exit, Option

from rprime.commands import options
from rprime.commands.exit_status import Status, refuse, refuse_problem, refusing, say
from rprime.commands.options import ServiceOptions
from rprime.core.progress import watched

if TYPE_CHECKING:
    import httpx

    from rprime.client.clients import Client
    from rprime.store import Store

StoreUrl = Annotated[
    str, Option("--store", envvar="RPRIME_STORE", show_envvar=True, help="The store itself.")
]
Project = Annotated[str, Option("--project", help="Whose evaluations.")]
DEFAULT_STORE = "sqlite:///rprime.db"
"""The store, unless another is named."""
_PIECE = 1 << 16


class HistorySource(NamedTuple):
    """A service, or without one a store."""

    service: ServiceOptions | None
    store: str

    @contextmanager
    def client(self, *, read_only: bool = True) -> Iterator["Client"]:
        """Yield a client of the service, or of one on the store; its refusals end the command."""
        from rprime.client.errors import ProblemError

        if self.service is not None:
            with connect_or_end(self.service) as client:
                yield client
            return
        try:
            with open_store_or_end(self.store, read_only=read_only) as store:
                yield _client_of(store)
        except ProblemError as exc:
            refuse_problem(exc)


def _client_of(store: "Store") -> "Client":
    """Return a client of a service in this process: its routes answer without a connection."""
    import asyncio

    import httpx

    from rprime.app import create_app
    from rprime.client.clients import Client
    from rprime.settings import Settings

    app = create_app(Settings(store="none", keys_file=None, log_requests=False))
    app.state.services.store.use(store)
    routes = httpx.ASGITransport(app)

    class Here(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            return asyncio.run(self._answer(request))

        async def _answer(self, request: httpx.Request) -> httpx.Response:
            try:
                answer = await routes.handle_async_request(request)
                content = b"".join([part async for part in answer.aiter_raw()])
            finally:
                # A worker belongs to the loop, which ends with this request.
                await app.state.services.workers.close()
            return httpx.Response(answer.status_code, headers=answer.headers, content=content)

    return Client("http://localhost", http=httpx.Client(transport=Here()))


@contextmanager
def connect_or_end(service: ServiceOptions) -> Iterator["Client"]:
    """Connect to a service; what it refuses, and no answer, end the command."""
    import httpx

    from rprime.client.clients import Client, certificates, timeouts
    from rprime.client.errors import ProblemError, ServiceUnavailableError

    with refusing(ValueError):
        http = httpx.Client(
            timeout=timeouts(service.timeout),
            verify=certificates(),
            event_hooks={"request": [_watch_sending]},
        )
        client = Client(service.url, key=service.key, retries=service.retries, http=http)
    try:
        with http:
            yield client
    except ProblemError as problem:
        if problem.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            lost = problem.code == "not_found"
            versioned = lost and service.url.rstrip("/").endswith("/v1")
            hint = "give the address without /v1" if versioned else ""
            refuse_problem(problem, service.url if lost else "", hint)
        why = f"{problem} (request {problem.request_id})"
    except ServiceUnavailableError as error:
        why = str(error)
    else:
        return
    no_verdict = "NO VERDICT, the service gave no answer. "
    say(f"{no_verdict if service.on_service_error else ''}{why}")
    if service.on_service_error == "warn":
        say("this ends with 0 because of --on-service-error warn; nothing was evaluated")
        raise Exit(Status.DONE)
    raise Exit(Status.UNREACHABLE)


def _watch_sending(request: "httpx.Request") -> None:
    """Let a body report how much of it was sent."""
    import httpx

    class Sent(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            starts = range(0, len(request.content), _PIECE)
            yield from (request.content[i : i + _PIECE] for i in watched("Sending", starts))

    if len(request.content) > _PIECE:
        request.stream = Sent()


def page(client: "Client", project: str, limit: int, filters: Any) -> list[Any]:  # noqa: ANN401 (names)
    """Return the newest evaluations of a project, or end if there is no such project."""
    with absent(f"there is no project {project}, or the key may not see it"):
        return client.evaluations(project, limit=limit, **filters).items


@contextmanager
def absent(message: str) -> Iterator[None]:
    """End with these words if what is asked for is not there."""
    from rprime.client.errors import ProblemError

    try:
        yield
    except ProblemError as problem:
        if problem.status != HTTPStatus.NOT_FOUND:
            raise
        refuse(message)


def newest(client: "Client", project: str, names: dict[str, str | None]) -> str:
    """Return the id of the newest evaluation with these names; of one commit alone."""
    evaluations = page(client, project, 200 if names.get("commit") else 1, names)
    if len({evaluation.commit for evaluation in evaluations}) > 1:
        refuse("several commits begin like this: give more of it, or all of it")
    if not evaluations:
        criteria = ", ".join(f"{name} {value}" for name, value in names.items() if value)
        refuse(f"{project} has no evaluation of {criteria or 'any kind'}")
    return str(evaluations[0].id)


@contextmanager
def open_store_or_end(url: str, *, read_only: bool) -> Iterator["Store"]:
    """Open the store; what is wrong with it ends the command."""
    import structlog

    from rprime.server import logs
    from rprime.store import StoreError, StoreMissingError, open_store
    from rprime.store.errors import StoreInUseError

    # To standard error: what a command prints may be read by a program.
    logs.configure()
    logging.getLogger().setLevel(logging.WARNING)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    if url == "none":
        refuse("RPRIME_STORE is none: there is no store")
    try:
        with closing(open_store(url, read_only=read_only)) as store:
            yield store
    except StoreMissingError as exc:
        refuse(f"{exc} Name another by --store, or a service by --server or RPRIME_SERVER.")
    except StoreInUseError as exc:
        refuse(f"{exc} If that is a service, name it by --server or RPRIME_SERVER.")
    except StoreError as exc:
        refuse(str(exc))


with_history = options.expanded(
    "history",
    {**options.connection("open the store"), "store": (StoreUrl, DEFAULT_STORE)},
    lambda store, **service: HistorySource(ServiceOptions.of(**service), store),
)
"""Add the options of a history; the command takes them as `history`."""
