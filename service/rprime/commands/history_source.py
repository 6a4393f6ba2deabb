"""The history that a command works on: that of a service, or a store that can be reached here."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rprime.commands import options
from rprime.commands.exit_status import Status, refuse, refuse_problem, say

if TYPE_CHECKING:
    from rprime.client.clients import Client
    from rprime.store import Store

StoreUrl = Annotated[
    str, typer.Option("--store", envvar="RPRIME_STORE", show_envvar=True, help="The store itself.")
]
Project = Annotated[str, typer.Option("--project", help="Whose evaluations.")]
DEFAULT_STORE = "sqlite:///rprime.db"


class HistorySource(NamedTuple):
    """A service, or without one a store."""

    server: str | None
    key: str | None
    timeout: float
    retries: int
    store: str

    @contextmanager
    def client(self, *, read_only: bool = True) -> Iterator["Client"]:
        """Return a client of the service, or of one that runs here, on the store.

        What it refuses ends the command.
        """
        from rprime.client.clients import Client
        from rprime.client.errors import ProblemError, ServiceUnavailableError

        try:
            if self.server is None:
                with opened(self.store, read_only=read_only) as store:
                    from rprime.commands.local_service import client_of

                    yield client_of(store)
                    return
            try:
                client = Client(
                    self.server, key=self.key, timeout=self.timeout, retries=self.retries
                )
            except ValueError as exc:
                refuse(str(exc))
            with client:
                yield client
        except ProblemError as exc:
            refuse_problem(exc)
        except ServiceUnavailableError as exc:
            say(str(exc))
            raise typer.Exit(Status.UNREACHABLE) from None


@contextmanager
def opened(url: str, *, read_only: bool) -> Iterator["Store"]:
    """Open the store; what is wrong with it ends the command."""
    from rprime.server import logs
    from rprime.store import StoreError, open_store

    # To standard error: what a command prints may be read by a program.
    logs.configure()
    logging.getLogger().setLevel(logging.WARNING)
    if url == "none":
        refuse("RPRIME_STORE is none: there is no store")
    try:
        store = open_store(url, read_only=read_only)
        try:
            yield store
        finally:
            store.close()
    except StoreError as exc:
        refuse(str(exc))


with_history = options.expanded(
    "history",
    {**options.connection("open the store"), "store": (StoreUrl, DEFAULT_STORE)},
    HistorySource,
)
"""Add the options of a history; the command takes them as `history`."""
