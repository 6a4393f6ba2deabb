"""What rprime declares: its contract, the schema of a gates file, the catalog of indices."""

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option, echo

from rprime.commands.exit_status import Refusal, Status

if TYPE_CHECKING:
    from rprime.core.index import Index


def openapi(*, output: Annotated[Path | None, Option(help="Write to this file.")] = None) -> None:
    """Print the OpenAPI document of the service."""
    from rprime.app import create_app
    from rprime.settings import Settings

    text = json.dumps(create_app(Settings()).openapi(), indent=1, ensure_ascii=False) + "\n"
    if output is None:
        echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")


def gates_schema(
    files: Annotated[list[Path] | None, Argument(help="Check these instead.")] = None,
) -> None:
    """Print the JSON Schema of a gates file, or say which lines of such files are wrong."""
    from rprime.commands.mappings import read_gates
    from rprime.schemas.gate import Gates

    status = Status.DONE
    for file in files or ():
        try:
            read_gates(file)
        except Refusal:
            status = Status.USAGE
    if files:
        raise Exit(status)
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    echo(json.dumps(dialect | Gates.model_json_schema(), indent=2))


def indices(
    *,
    as_json: Annotated[
        bool, Option("--json", help="Print everything, as GET /v1/indices gives it.")
    ] = False,
    markdown: Annotated[
        bool, Option("--markdown", help="Print the table of docs/indices.md.")
    ] = False,
) -> None:
    """List every index: key, symbol, range, best value."""
    if markdown:
        _print_markdown()
    elif as_json:
        from rprime.schemas.report import catalog

        echo(catalog().model_dump_json())
    else:
        _print_table()


def _print_table() -> None:
    from rich.console import Console
    from rich.table import Table

    from rprime.core.catalog import INDICES

    table = Table("scope", "family", "key", "symbol", "range", "best", "name", box=None)
    table.columns[2].no_wrap = True
    for index in INDICES:
        shown = (index.key, index.symbol, *_range_and_best(index), index.name)
        table.add_row(index.scope, index.family, *shown)
    # Where it is not a terminal that shows it, the table has its whole width.
    Console(width=None if sys.stdout.isatty() else 190, markup=False).print(table)


def _print_markdown() -> None:
    """Print what is declared, without the averages, which follow from it."""
    from rprime.core.catalog import INDICES

    echo("| key | name | family | range | best | interval | source |")
    echo("|---|---|---|---|---|---|---|")
    for index in INDICES:
        if index.reads in ("macro", "weighted", "micro") and index.key.startswith(index.reads):
            continue
        marks = f"{' µ' if index.micro else ''}{' §' if index.association else ''}"
        key = f"`{index.key}`{marks}" + (" (class)" if index.scope == "class" else "")
        cells = (key, index.name, index.family, *_range_and_best(index))
        echo(f"| {' | '.join(cells)} | {index.interval_name or ''} | {index.source} |")


def _range_and_best(index: "Index") -> tuple[str, str]:
    low, high = index.range
    opening, closing = "[" if math.isfinite(low) else "(", "]" if math.isfinite(high) else ")"
    best = "" if index.best is None else f"{index.best:g}"
    return f"{opening}{low:g}, {high:g}{closing}", best
