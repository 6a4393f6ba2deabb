"""The simulation of a gate, here or by a service."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rprime.commands import options
from rprime.commands.exit_status import defects, put, refuse
from rprime.commands.options import OnServiceError, ServiceOptions

if TYPE_CHECKING:
    from rprime.application import EvaluationRequest
    from rprime.client.report import GateLintReport

_MOST_RULES = 20
_WIDTH = 120
"""Of the table where it is not a terminal that shows it."""


class Pairing(StrEnum):
    """How the gate will be used."""

    PAIRED = "paired"
    UNPAIRED = "unpaired"


def lint(
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
    replicates: Annotated[int | None, typer.Option(help="Simulated comparisons.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the simulation.")] = None,
    server: options.Server = None,
    key: options.Key = None,
    timeout: options.Timeout = 60.0,
    retries: options.Retries = 3,
    on_service_error: options.OnError = OnServiceError.FAIL,
    as_json: options.AsJson = False,
) -> None:
    """Say how often a gate fails a model that has not changed, and which drop it can see."""
    simulation = {
        "pairing": pairing.value,
        "discordance": discordance,
        "replicates": replicates,
        "seed": seed,
    }
    service = ServiceOptions(server, key, timeout, retries, on_service_error) if server else None
    with defects():
        found = _lint(gate_body(file, gates, simulation), service)
        if as_json:
            put(found.content + b"\n")
        else:
            print_shown(_overview(found))


def _lint(body: bytes, service: ServiceOptions | None) -> "GateLintReport":
    from rprime.application import lint_request
    from rprime.client import calls
    from rprime.client.report import GateLintReport
    from rprime.commands.evaluation import ask, limits, refuse_here
    from rprime.problems.problem import Problem

    if service is not None:
        return ask(calls.gate_lint(body), service)
    try:
        return GateLintReport(lint_request(body, limits()))
    except Problem as problem:
        refuse_here(problem)


def gate_body(file: str, gates: Path, simulation: dict[str, Any]) -> bytes:
    """Return a request about a gate and the table of a file."""
    from rprime.client.request import body
    from rprime.commands.ci_request import assemble
    from rprime.commands.evaluation import read
    from rprime.commands.mappings import read_mapping

    table = _table(read(assemble(file).request))
    try:
        return body(gates=read_mapping(gates, "gates"), **table, **simulation)
    except TypeError as error:
        refuse(f"{gates}: a value has no JSON: {error}")


def _table(evaluation_request: "EvaluationRequest") -> dict[str, Any]:
    from rprime.core.cells import DenseCells

    evidence = evaluation_request.evidence
    cells = evidence.table.cells
    if not isinstance(cells, DenseCells):
        refuse(f"{len(evidence.labels):,} classes are too many for a simulation")
    vectors = {
        "unclassified": evidence.table.unclassified,
        "spurious": evidence.table.spurious,
    }
    given = {
        name: vector for name, vector in vectors.items() if vector is not None and vector.any()
    }
    return {"confusion_matrix": cells.counts, "labels": evidence.labels, **given}


def print_shown(shown: Any) -> None:  # noqa: ANN401 (what rich prints)
    """Print with the width of the terminal, or a fixed one."""
    from io import StringIO

    from rich.console import Console

    if sys.stdout.isatty():
        Console().print(shown)
        return
    stream = StringIO()
    Console(file=stream, width=_WIDTH, color_system=None).print(shown)
    put("\n".join(line.rstrip() for line in stream.getvalue().splitlines()).encode() + b"\n")


def _overview(found: "GateLintReport") -> Any:  # noqa: ANN401 (what rich prints)
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from rprime.report.decimals import decimal, percent
    from rprime.report.names import clipped, isolated, shown

    rules = found.model.rules
    table = Table("rule", "class", "fails", "inconclusive", "drop it can see", box=None)
    for rule in rules[:_MOST_RULES]:
        label = "" if rule.class_ is None else isolated(clipped(shown(rule.class_), 60))
        rates = map(percent, (rule.false_fail_rate, rule.inconclusive_rate))
        table.add_row(Text(rule.id), Text(label), *rates, decimal(rule.detectable_drop))
    more = len(rules) - _MOST_RULES
    return Group(
        Text(
            f"An unchanged model fails this gate in {percent(found.false_fail_rate)} of all runs "
            f"and leaves it inconclusive in {percent(found.inconclusive_rate)}."
        ),
        table,
        *([Text(f"... and {more:,} more")] if more > 0 else []),
        *(Text(f"* {shown(line)}") for line in found.advice),
    )
