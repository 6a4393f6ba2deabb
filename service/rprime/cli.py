"""The command line: each command is a function in a module of `rprime.commands`.

To add a command, write a function with annotations for typer there, and list it in `_COMMANDS`. A
module in `rprime.commands` imports what is heavy (the application, numpy, a client) inside its
function, so that every other command starts at once.
"""

import os
from collections.abc import Callable, Mapping, Sequence
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
from rprime.commands.exit_status import open_streams, telling
from rprime.commands.options import example

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

    def main(self, *args: Any, **more: Any) -> Any:  # noqa: ANN401 (the base class has it so)
        open_streams()
        with telling():
            return super().main(*args, **more)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 (the base class has it so)
        try:
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
_COMMANDS: Mapping[str, Sequence[tuple[str, Callable[..., None], str]]] = {
    "Evaluate": (
        (
            "evaluate",
            evaluate.evaluate,
            "rprime evaluate predictions.csv --baseline champion.csv --no-worse-than .02",
        ),
        ("compare", evaluate.compare, "rprime compare predictions.csv champion.csv"),
        ("slices", slices.slices, "rprime slices predictions.csv --column region"),
        (
            "plot",
            plot.plot,
            "rprime plot predictions.csv --baseline champion.csv --figure radar -o radar.svg",
        ),
    ),
    "Gate": (
        ("init", init.init, "rprime init predictions.csv --ci github"),
        ("lint", lint.lint, "rprime lint predictions.csv --gates gates.yaml"),
        ("plan", lint.plan, "rprime plan predictions.csv --gates gates.yaml --drop 0.15"),
        ("gates-schema", documents.gates_schema, "rprime gates-schema gates.yaml"),
        ("comment", comment.comment, "rprime comment rprime.md"),
    ),
    "Service and history": (
        ("serve", serve.serve, "rprime serve --port 8080"),
        ("promote", history.promote, "rprime promote rprime.json champion --project digits"),
        ("export", transfer.export, "rprime export --project digits --output history.jsonl"),
        ("import", transfer.import_, "rprime import history.jsonl"),
        ("backup", transfer.backup, "rprime backup copy.db"),
    ),
    "Reference": (
        ("indices", documents.indices, "rprime indices --json"),
        ("reproduce", study.reproduce, "rprime reproduce --table mnist_before"),
        ("openapi", documents.openapi, "rprime openapi --output openapi.json"),
    ),
}
"""The commands by what they are for, each with an example."""
_GROUPS: Mapping[str, Mapping[str, Typer]] = {
    "Service and history": {"history": history.app, "keys": keys.app},
    "Reference": {"study": study.app},
}
for _panel, _commands in _COMMANDS.items():
    for _name, _command, _text in _commands:
        app.command(_name, rich_help_panel=_panel, epilog=example(_text))(_command)
for _panel, _groups in _GROUPS.items():
    for _name, _group in _groups.items():
        app.add_typer(_group, name=_name, rich_help_panel=_panel)


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
