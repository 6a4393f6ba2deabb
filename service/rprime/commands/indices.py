"""The catalog in a terminal."""

import math
import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rprime.core.index import Index

_WIDTH = 190
"""Of the table where it is not a terminal that shows it."""


def indices(
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything, as GET /v1/indices gives it.")
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table of docs/indices.md.")
    ] = False,
) -> None:
    """List every index: key, symbol, range, best value."""
    if markdown:
        _print_markdown()
    elif as_json:
        from rprime.schemas.report import catalog

        typer.echo(catalog().model_dump_json())
    else:
        _print_table()


def _print_table() -> None:
    from rich.console import Console
    from rich.table import Table

    from rprime.core.catalog import INDICES

    table = Table("scope", "family", "key", "symbol", "range", "best", "name", box=None)
    table.columns[2].no_wrap = True
    for index in INDICES:
        best = "" if index.best is None else _number(index.best)
        shown = (index.key, index.symbol, _limits(index), best, index.name)
        table.add_row(index.scope, index.family, *shown)
    Console(width=None if sys.stdout.isatty() else _WIDTH, markup=False).print(table)


def _print_markdown() -> None:
    """Print what is declared, without the averages, which follow from it."""
    from rprime.core.catalog import INDICES

    typer.echo("| key | name | family | range | best | interval | source |")
    typer.echo("|---|---|---|---|---|---|---|")
    for index in INDICES:
        if index.reads in ("macro", "weighted", "micro") and index.key.startswith(index.reads):
            continue
        marks = f"{' µ' if index.micro else ''}{' §' if index.association else ''}"
        key = f"`{index.key}`{marks}" + (" (class)" if index.scope == "class" else "")
        best = "" if index.best is None else _number(index.best)
        limits, interval = _limits(index), index.interval_name or ""
        cells = (key, index.name, index.family, limits, best, interval, index.source)
        typer.echo(f"| {' | '.join(cells)} |")


def _limits(index: "Index") -> str:
    low, high = index.range
    return (
        f"{'[' if math.isfinite(low) else '('}{_number(low)}, "
        f"{_number(high)}{']' if math.isfinite(high) else ')'}"
    )


def _number(number: float) -> str:
    return f"{number:g}"
