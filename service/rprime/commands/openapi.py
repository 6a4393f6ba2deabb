"""The contract as a file."""

import json
from pathlib import Path
from typing import Annotated

import typer


def openapi(
    *, output: Annotated[Path | None, typer.Option(help="Write to this file.")] = None
) -> None:
    """Print the OpenAPI document of the service."""
    from rprime.app import create_app
    from rprime.settings import Settings

    document = create_app(Settings()).openapi()
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
