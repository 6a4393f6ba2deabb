"""The simulation of a gate, and the items that it needs, here or by a service."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from rprime.commands import options
from rprime.commands.exit_status import put, refuse
from rprime.commands.options import ServiceOptions
from rprime.core.quantities import condition
from rprime.report.text import cut_text, decimal, isolated, percent, shown

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rprime.application import EvaluationRequest
    from rprime.client.clients import Client
    from rprime.client.in_process import InProcess
    from rprime.client.report import GateLintReport, GatePlanReport

_MOST_ROWS = 20
_OPTION = re.compile("`(discordance|drop|width)`")
"""Members of a request that are options here."""

File = Annotated[str, Argument(help="How the model behaves: a file as `rprime evaluate` takes it.")]
GatesArgument = Annotated[Path, Option("--gates", metavar="FILE", help="The rules, YAML or JSON.")]
PairingOption = Annotated[
    Literal["paired", "unpaired"], Option(help="Whether candidates will be compared item by item.")
]
Discordance = Annotated[
    float | None,
    Option(
        help="Share of items that just one of two models gets right; default: that of "
        "`y_pred_baseline`, else 0.06."
    ),
]
Seed = Annotated[int | None, Option(help="Of the simulation.")]


@dataclass(frozen=True)
class Reading:
    """How the file is read, as by `rprime evaluate`."""

    columns: options.ColumnsOption = None
    count: options.CountOption = None
    slice_: options.SlicesOption = None
    crossings: options.CrossingsOption = None
    population: options.PopulationOption = None
    request: options.RequestOption = None


_READING = {name: (kind, None) for name, kind in Reading.__annotations__.items()}
_with_reading = options.expanded("reading", _READING, Reading)


@_with_reading
@options.with_service
def lint(
    file: File,
    *,
    gates: GatesArgument,
    pairing: PairingOption = "paired",
    discordance: Discordance = None,
    replicates: Annotated[int | None, Option(help="Simulated comparisons.")] = None,
    seed: Seed = None,
    service: ServiceOptions | None,
    reading: Reading,
    as_json: options.AsJson = False,
) -> None:
    """Say how often a gate fails a model that has not changed, and which drop it can see."""
    simulation = {"pairing": pairing, "discordance": discordance, "seed": seed}
    with _simulating(file, gates, service, reading, simulation) as (client, request):
        report = client.lint(**request, replicates=replicates)
    show(report.content if as_json else _lint_overview(report))


@_with_reading
@options.with_service
def plan(
    file: File,
    *,
    gates: GatesArgument,
    pairing: PairingOption = "paired",
    discordance: Discordance = None,
    drop: Annotated[
        float | None, Option(help="The drop to find; default: twice the limit of a change or gap.")
    ] = None,
    width: Annotated[
        float | None, Option(help="Items until the limits of every result are so near.")
    ] = None,
    seed: Seed = None,
    service: ServiceOptions | None,
    reading: Reading,
    as_json: options.AsJson = False,
) -> None:
    """Say how many items a gate needs to pass an unchanged model and to find a drop."""
    simulation = {"pairing": pairing, "discordance": discordance, "seed": seed}
    with _simulating(file, gates, service, reading, simulation) as (client, request):
        report = client.plan(**request, drop=drop, width=width)
    show(report.content if as_json else _plan_overview(report))


@contextmanager
def _simulating(
    file: str,
    gates: Path,
    service: ServiceOptions | None,
    reading: Reading,
    simulation: dict[str, Any],
) -> Iterator[tuple["Client | InProcess", dict[str, Any]]]:
    """Yield a client, and the request: what is asked, the gates, and the evidence of a file."""
    from rprime.commands.ci_request import assemble, chosen_members
    from rprime.commands.evaluation import answering, read
    from rprime.commands.mappings import read_gates

    chosen = chosen_members(
        reading.columns, reading.slice_, reading.crossings, reading.population, count=reading.count
    )
    submitted = assemble(file, request=reading.request, chosen=chosen).request
    evaluation_request = read(submitted)
    request = simulated_evidence(evaluation_request) | {"gates": read_gates(gates)}
    request |= {name: value for name, value in simulation.items() if value is not None}
    request["population"] = submitted.members.get("population")
    with answering(service) as client:
        try:
            yield client, request
        except TypeError as error:
            refuse(f"{gates}: a value has no JSON: {error}")


def simulated_evidence(evaluation_request: "EvaluationRequest") -> dict[str, Any]:
    """Return what a simulation is of, as members of its request."""
    return _evidence(evaluation_request) | {"discordance": _discordance(evaluation_request)}


def _evidence(evaluation_request: "EvaluationRequest") -> dict[str, Any]:
    """Return the table; the items where a simulation must refuse them."""
    from rprime.application.assessment import side_of
    from rprime.commands.payload import spelled_side
    from rprime.core.cells import DenseCells
    from rprime.tally.table import slice_tables

    evidence = evaluation_request.evidence
    cells = evidence.table.cells
    if not isinstance(cells, DenseCells):
        refuse(f"{len(evidence.labels):,} classes are too many for a simulation")
    side = side_of(evidence, None)
    omitted = evidence.table.has_omissions
    if side.items is not None and (omitted or not side.counts_once):
        return spelled_side(side)
    content: dict[str, Any] = {"confusion_matrix": cells.counts, "labels": evidence.labels}
    for name in ("unclassified", "spurious"):
        vector = getattr(evidence.table, name)
        if vector is not None and vector.any():
            content[name] = vector
    if evidence.slices is not None:
        content["slices"] = slice_tables(evidence.slices)
    return content


def _discordance(evaluation_request: "EvaluationRequest") -> float | None:
    """Return the share of items that only the model or its baseline gets right, where it is known.

    None, too, if there is no such item, which says nothing of another candidate.
    """
    from rprime.commands.payload import baseline_of, same_items

    baseline, ours = baseline_of(evaluation_request), evaluation_request.evidence.items
    if ours is None or baseline is None or not same_items(evaluation_request.evidence, baseline):
        return None
    assert baseline.items is not None  # noqa: S101 (they are the same)
    theirs = baseline.items
    differ = (ours.predicted != ours.true) != (theirs.predicted != theirs.true)
    return float(differ.mean()) or None


def show(content: "bytes | RenderableType") -> None:
    """Print JSON, or a table with the width of the terminal or a fixed one."""
    from io import StringIO

    from rich.console import Console

    if isinstance(content, bytes):
        put(content + b"\n")
    elif sys.stdout.isatty():
        Console().print(content)
    else:
        stream = StringIO()
        Console(file=stream, width=120, color_system=None).print(content)
        put("\n".join(line.rstrip() for line in stream.getvalue().splitlines()).encode() + b"\n")


def _lint_overview(report: "GateLintReport") -> "RenderableType":
    summary, *advice = report.advice
    rows = []
    for rule in report.model.rules:
        rates = (percent(rule.false_fail_rate), percent(rule.inconclusive_rate))
        name = _name(rule.class_, rule.slice) if rule.average_of is None else "average"
        rows.append((rule.id, name, *rates, decimal(rule.detectable_drop)))
    about = "class, slice" if any(rule.slice for rule in report.model.rules) else "class"
    columns = ("rule", about, "fails", "inconclusive", "drop it can see")
    return overview([summary], columns, rows, advice)


def _plan_overview(report: "GatePlanReport") -> "RenderableType":
    model = report.model
    counts = [(_name(c.class_, None), c.items, c.needed, c.for_width) for c in model.classes]
    counts += [(_name(None, s.slice), s.items, s.needed, s.for_width) for s in model.slices]
    heads = ["class, slice" if model.slices else "class", "items", "needed", "for width"]
    most = 4 if any(near is not None for *_, near in counts) else 3
    rows = [(name, *map(_count, numbers))[:most] for name, *numbers in counts]
    return overview([], heads[:most], rows, report.advice)


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _name(label: str | None, part: dict[str, str] | None) -> str:
    named = [condition(*pair) for pair in (part or {}).items()]
    return ", ".join(isolated(cut_text(shown(name), 60)) for name in [label, *named] if name)


def overview(
    sentences: Sequence[str],
    head: Sequence[str],
    rows: Sequence[tuple[str, ...]],
    advice: Sequence[str],
) -> "RenderableType":
    """Return sentences, a table and advice."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(*head, box=None)
    for row in rows[:_MOST_ROWS]:
        table.add_row(*map(Text, row))
    more = [f"... and {len(rows) - _MOST_ROWS:,} more"] if len(rows) > _MOST_ROWS else []
    advice = [_OPTION.sub("`--\\1`", shown(line)) for line in advice]
    lines = (*more, *(f"* {line}" for line in advice))
    return Group(*map(Text, sentences), table, *map(Text, lines))
