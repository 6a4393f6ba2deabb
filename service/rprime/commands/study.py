"""Studies of indices on this machine, and the results of the R' papers computed again."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import orjson
from typer import Argument, Exit, Option, Typer

from rprime.commands.exit_status import Status, put, refuse, refuse_here
from rprime.commands.options import example, settings
from rprime.commands.plot import known_form, write_image

if TYPE_CHECKING:
    from rprime.application.reproduction import Reproduction
    from rprime.settings import Limits

Result = TypeVar("Result")

app = Typer(no_args_is_help=True, help="Study what indices have to do with each other.")


@app.command(epilog=example("rprime study discrimination --figure 1"))
def discrimination(
    indices: Annotated[
        list[str] | None, Argument(metavar="INDEX...", help="Keys; `f1:1` is f1 of class 1.")
    ] = None,
    *,
    k: Annotated[list[int] | None, Option(help="Number of classes, 2 to 50.")] = None,
    p: Annotated[list[float] | None, Option(help="Imbalance, 0 to 1.")] = None,
    resolution: Annotated[int, Option(help="Grid values of each rate.")] = 101,
    figure: Annotated[
        int | None, Option(min=1, max=5, help="A figure of Labatut and Cherifi 2011.")
    ] = None,
    by: Annotated[
        Literal["condition", "index", "class", "imbalance"] | None,
        Option(help="What has a panel of its own in a figure."),
    ] = None,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="Draw into this file, .svg, .png or .pdf, instead of JSON."),
    ] = None,
) -> None:
    """Show where an index cannot tell two kinds of classifier apart."""
    from rprime.application import studies

    plan = studies.PrintedFigure("", "condition", {}) if figure is None else studies.FIGURES[figure]
    options = {"indices": [_entry(name) for name in indices or ()], "k": k, "p": p}
    request = {**plan.request, **{n: v for n, v in options.items() if v}, "resolution": resolution}
    if "indices" not in request:
        refuse("name an index, or a figure by --figure 1 to --figure 5")
    lines = _studied(studies.discrimination_lines, orjson.dumps(request))
    if output is not None or figure is not None:
        from rprime.report.charts.discrimination import COLUMNS, draw_discrimination

        output = output or Path(f"figure-{figure}.svg")
        look: Any = {"title": plan.title, "by": by or plan.by, "form": known_form(output)}
        columns = 1 if plan.title else COLUMNS
        write_image(output, lambda: draw_discrimination(lines, columns=columns, **look))
    else:
        put(studies.discrimination_document(lines) + b"\n")


@app.command(epilog=example("rprime study agreement request.json"))
def agreement(
    file: Annotated[
        str, Argument(help="A request of POST /v1/studies/agreement; - is standard input.")
    ],
) -> None:
    """Say how far indices agree over many models."""
    from rprime.application.studies import agreement_request
    from rprime.commands.inputs import read_document

    put(_studied(agreement_request, read_document(file)) + b"\n")


def _studied(study: Callable[[bytes, "Limits"], Result], body: bytes) -> Result:
    """Do what a request asks for, or end and say what is wrong with it."""
    from rprime.problems.problem import Problem

    try:
        return study(body, settings().limits)
    except Problem as problem:
        refuse_here(problem)


def _entry(name: str) -> str | dict[str, Any]:
    key, colon, number = name.partition(":")
    if colon and not number.isdecimal():
        refuse("a class is a number from 1 on, as in f1:1")
    return {"index": key, "class": int(number)} if colon else key


def reproduce(
    *,
    as_json: Annotated[bool, Option("--json", help="Print JSON, numbers in full.")] = False,
    table: Annotated[
        str | None, Option(help="Print this table of the paper as a request, such as mnist_before.")
    ] = None,
) -> None:
    """Print what the R' papers published against what is computed here, with errata and claims."""
    from rprime.application.reproduction import PRINTED_TABLES, printed_request
    from rprime.application.reproduction import reproduce as run

    if table is not None:
        if table not in PRINTED_TABLES:
            refuse(f"no such table: the tables are {', '.join(PRINTED_TABLES)}")
        put(orjson.dumps(printed_request(table)) + b"\n")
        return
    reproduction = run()
    put(_json(reproduction) if as_json else "\n".join((*_document(reproduction), "")).encode())
    if not reproduction.sound:
        raise Exit(Status.DEFECT)


def _document(reproduction: "Reproduction") -> Iterator[str]:
    yield from ("# Published and computed", "")
    yield from (f"{reproduction.source}.", "")
    yield from (f"{reproduction.summary} This document is what `rprime reproduce` prints.", "")
    for table in reproduction.tables:
        yield from (f"## {table}", "", "| | published | computed | |", "|---|---|---|---|")
        for printed in reproduction.results:
            if printed.table == table:
                name = (
                    printed.index
                    if printed.class_ is None
                    else f"{printed.index} of {printed.class_}"
                )
                mark = "" if printed.reproduced else printed.mark
                yield f"| {name} | {printed.published:.4f} | {printed.computed:.4f} | {mark} |"
        yield ""
    yield from ("## Claims", "", "| claim | result | numbers |", "|---|---|---|")
    for claim in reproduction.claims:
        result = "holds" if claim.holds else "does not hold"
        yield f"| {claim.text} ({claim.source}) | {result} | {claim.numbers} |"
    yield ""
    for heading, entries in (
        ("Errata", reproduction.errata),
        ("Reading the papers", reproduction.conventions),
    ):
        yield from (f"## {heading}", "")
        yield from (f"* {where}: {text}" for where, text in entries)
        yield ""


def _json(reproduction: "Reproduction") -> bytes:
    members = ("table", "index", "class", "published", "computed", "result")
    values = attrgetter("table", "index", "class_", "published", "computed", "mark")
    document = {
        "source": reproduction.source,
        "numbers": len(reproduction.results),
        "reproduced": reproduction.reproduced,
        "results": [
            dict(zip(members, values(printed), strict=True)) for printed in reproduction.results
        ],
        "errata": [{"table": where, "text": text} for where, text in reproduction.errata],
        "claims": [asdict(claim) for claim in reproduction.claims],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"
