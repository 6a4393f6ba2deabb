"""The command line: each command is a function in a module of `rprime.commands`.

To add a command, write a function with annotations for typer there, and list it below. A module in
`rprime.commands` imports what is heavy (the application, numpy, a client) inside its function,
so that every other command starts at once.
"""

import os
from typing import Annotated

import typer

from rprime import __version__
from rprime.commands import (
    comment,
    documents,
    evaluate,
    history,
    keys,
    lint,
    plot,
    promote,
    serve,
    slices,
    study,
    transfer,
)

app = typer.Typer(
    name="rprime",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(serve.serve)
app.command()(evaluate.evaluate)
app.command()(evaluate.compare)
app.command()(comment.comment)
app.command()(lint.lint)
app.command()(lint.plan)
app.command()(slices.slices)
app.command()(documents.gates_schema)
app.command()(documents.indices)
app.command()(plot.plot)
app.command()(study.reproduce)
app.command()(documents.openapi)
app.command()(promote.promote)
app.command()(transfer.export)
app.command("import")(transfer.import_)
app.command()(transfer.backup)
app.add_typer(history.app, name="history")
app.add_typer(study.app, name="study")
app.add_typer(keys.app, name="keys")


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it by position
    if wanted:
        typer.echo(f"rprime {__version__}")
        raise typer.Exit


@app.callback()
def main(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Evaluate multiclass classifiers, as a service or locally."""
    # The tables are small: a second thread of BLAS costs more than it gains. numpy reads the
    # variable at import, so it must be set before any command runs.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
