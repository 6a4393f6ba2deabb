"""What a file with gates may hold, for editors and checkers."""

from pathlib import Path
from typing import Annotated

import typer

from rprime.commands.exit_status import Refusal, Status


def gates_schema(
    files: Annotated[list[Path] | None, typer.Argument(help="Check these instead.")] = None,
) -> None:
    """Print the JSON Schema of a gates file, or say which lines of such files are wrong."""
    import json

    if files:
        wrong = [file for file in files if not _is_valid(file)]
        raise typer.Exit(Status.USAGE if wrong else Status.DONE)
    from rprime.schemas.gate import Gates

    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Gates.model_json_schema(),
    }
    typer.echo(json.dumps(schema, indent=2))


def _is_valid(file: Path) -> bool:
    from rprime.commands.mappings import read_gates

    try:
        read_gates(file)
    except Refusal:
        return False
    return True
