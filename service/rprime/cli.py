"""The command line: each command is a function in a module of `rprime.commands`.

To add a command, write a function with annotations for typer there, and list it below. A module in
`rprime.commands` imports what is heavy (the application, numpy, a client) inside its function,
so that every other command starts at once.
"""

import os
from typing import Annotated, Any

from typer import Exit, Option, Typer, echo
from typer.core import TyperGroup

from rprime import __version__
from rprime.commands import (
    comment,
    documents,
    evaluate,
    history,
    init,
    keys,
    lint,
    plot,
    serve,
    slices,
    study,
    transfer,
)
from rprime.commands.exit_status import defects

_MEANT = {
    "--output": "`rprime evaluate` writes files by --json-file, --html and --markdown",
    "--format": "`rprime evaluate` writes files by --json-file, --html and --markdown",
    "--index": "state `indices` in the file of --request",
    "--confidence": "state `confidence` in the file of --request",
    "--baseline": "the file may have a column `y_pred_baseline`",
}
"""What people look for by the names of options that a command does not have."""


class _Commands(TyperGroup):
    """Says of an unknown option what has its place; by its spelling another one is near."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 (the base class has it so)
        try:
            with defects():
                return super().invoke(ctx)
        except Exception as error:
            # Its class is that of click, or of the copy of click in newer versions of typer.
            attributes = vars(error)
            if "possibilities" in attributes and (
                meant := _MEANT.get(attributes.get("option_name", ""))
            ):
                attributes.update(message=f"{attributes['message']} ({meant})", possibilities=None)
            raise


app = Typer(
    name="rprime",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(serve.serve)
app.command()(evaluate.evaluate)
app.command()(evaluate.compare)
app.command()(init.init)
app.command()(comment.comment)
app.command()(lint.lint)
app.command()(lint.plan)
app.command()(slices.slices)
app.command()(documents.gates_schema)
app.command()(documents.indices)
app.command()(plot.plot)
app.command()(study.reproduce)
app.command()(documents.openapi)
app.command()(history.promote)
app.command()(transfer.export)
app.command("import")(transfer.import_)
app.command()(transfer.backup)
app.add_typer(history.app, name="history")
app.add_typer(study.app, name="study")
app.add_typer(keys.app, name="keys")


def _print_version(value: bool) -> None:  # noqa: FBT001 - typer calls it by position
    if value:
        echo(f"rprime {__version__}")
        raise Exit


@app.callback()
def main(
    *,
    _version: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Evaluate multiclass classifiers, as a service or locally."""
    # The tables are small: a second thread of BLAS costs more than it gains. numpy reads the
    # variable at import, so it must be set before any command runs.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
