"""The items that a gate needs, planned here or by a service."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rprime.commands import options
from rprime.commands.exit_status import defects, put
from rprime.commands.lint import Pairing, gate_body, print_shown
from rprime.commands.options import OnServiceError, ServiceOptions

if TYPE_CHECKING:
    from rprime.client.report import GatePlanReport

_MOST_CLASSES = 20


def plan(
    file: Annotated[
        str,
        typer.Argument(help="How the model behaves: a file as `rprime evaluate` takes it."),
    ],
    *,
    gates: Annotated[
        Path, typer.Option("--gates", metavar="FILE", help="The rules, YAML or JSON.")
    ],
    pairing: Annotated[
        Pairing, typer.Option(help="Whether candidates will be compared item by item.")
    ] = Pairing.PAIRED,
    discordance: Annotated[
        float | None, typer.Option(help="Share of items that just one of two models gets right.")
    ] = None,
    drop: Annotated[
        float | None,
        typer.Option(help="The drop to find; default: twice the limit of each rule."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the simulation.")] = None,
    server: options.Server = None,
    key: options.Key = None,
    timeout: options.Timeout = 60.0,
    retries: options.Retries = 3,
    on_service_error: options.OnError = OnServiceError.FAIL,
    as_json: options.AsJson = False,
) -> None:
    """Say how many items a gate needs to pass an unchanged model and to find a drop."""
    asked = {"pairing": pairing.value, "discordance": discordance, "drop": drop, "seed": seed}
    service = ServiceOptions(server, key, timeout, retries, on_service_error) if server else None
    with defects():
        found = _plan(gate_body(file, gates, asked), service)
        if as_json:
            put(found.content + b"\n")
        else:
            print_shown(_overview(found))


def _plan(body: bytes, service: ServiceOptions | None) -> "GatePlanReport":
    from rprime.application import plan_request
    from rprime.client import calls
    from rprime.client.report import GatePlanReport
    from rprime.commands.evaluation import ask, limits, refuse_here
    from rprime.problems.problem import Problem

    if service is not None:
        return ask(calls.gate_plan(body), service)
    try:
        return GatePlanReport(plan_request(body, limits()))
    except Problem as problem:
        refuse_here(problem)


def _overview(found: "GatePlanReport") -> Any:  # noqa: ANN401 (what rich prints)
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from rprime.report.names import clipped, isolated, shown

    classes = found.model.classes
    table = Table("class", "items", "needed", box=None)
    for part in classes[:_MOST_CLASSES]:
        needed = "" if part.needed is None else f"{part.needed:,}"
        label = isolated(clipped(shown(part.class_), 60))
        table.add_row(Text(label), f"{part.items:,}", needed)
    more = len(classes) - _MOST_CLASSES
    return Group(
        table,
        *([Text(f"... and {more:,} more")] if more > 0 else []),
        *(Text(f"* {shown(line)}") for line in found.advice),
    )
