"""The history that a command works on: that of a service, or a store that can be reached here."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from rprime.commands.exit_status import Status, refuse, refuse_problem, say

if TYPE_CHECKING:
    from rprime.client.clients import Client
    from rprime.store import Store

StoreUrl = Annotated[
    str,
    typer.Option("--store", envvar="RPRIME_STORE", show_envvar=True, help="The store itself."),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        envvar="RPRIME_SERVER",
        show_envvar=True,
        help="Ask this service; default: open the store.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key", envvar="RPRIME_KEY", show_envvar=True, help="A key of `rprime keys create`."
    ),
]
Project = Annotated[str, typer.Option("--project", help="Whose evaluations.")]
DEFAULT_STORE = "sqlite:///rprime.db"


@contextmanager
def opened(url: str, *, read_only: bool) -> Iterator["Store"]:
    """Open a store for a command; what is wrong with it ends the command."""
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


@contextmanager
def asked(
    server: str, key: str | None, *, timeout: float = 60.0, retries: int = 3
) -> Iterator["Client"]:
    """Ask a service for a command; what it refuses ends the command."""
    from rprime.client.clients import Client
    from rprime.client.errors import (
        ProblemError,
        ServiceUnavailableError,
    )

    try:
        with Client(server, key=key, timeout=timeout, retries=retries) as client:
            yield client
    except ProblemError as exc:
        refuse_problem(exc)
    except ServiceUnavailableError as exc:
        say(str(exc))
        raise typer.Exit(Status.UNREACHABLE) from None
    except ValueError as exc:
        refuse(str(exc))
