"""Studies of indices, on this machine."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from rprime.commands.exit_status import defects, put, refuse
from rprime.commands.images import known_form, write_image

if TYPE_CHECKING:
    from rprime.application.discrimination import PrintedFigure
    from rprime.core.studies.discrimination import Line

app = typer.Typer(no_args_is_help=True, help="Study what indices have to do with each other.")


class Panels(StrEnum):
    """What has a panel of its own in a figure."""

    CONDITION = "condition"
    INDEX = "index"
    CLASS = "class"
    IMBALANCE = "imbalance"


@app.command()
def discrimination(
    indices: Annotated[
        list[str] | None, typer.Argument(metavar="INDEX...", help="Keys; `f1:1` is f1 of class 1.")
    ] = None,
    *,
    k: Annotated[list[int] | None, typer.Option(help="Number of classes, 2 to 50.")] = None,
    p: Annotated[list[float] | None, typer.Option(help="Imbalance, 0 to 1.")] = None,
    resolution: Annotated[int, typer.Option(help="Grid values of each rate.")] = 101,
    figure: Annotated[
        int | None, typer.Option(min=1, max=5, help="A figure of Labatut and Cherifi 2011.")
    ] = None,
    by: Annotated[
        Panels | None, typer.Option(help="What has a panel of its own in a figure.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Draw into this file, .svg or .png, instead of JSON."),
    ] = None,
) -> None:
    """Show where an index cannot tell two kinds of classifier apart."""
    from rprime.application.discrimination import FIGURES, PrintedFigure

    with defects():
        plan = PrintedFigure("", "condition", {}) if figure is None else FIGURES[figure]
        given = {"indices": [_entry(name) for name in indices or ()], "k": k, "p": p}
        asked = {**plan.request, **{n: v for n, v in given.items() if v}, "resolution": resolution}
        if "indices" not in asked:
            refuse("name an index, or a figure by --figure 1 to --figure 5")
        lines = _lines(asked)
        if output is None and figure is None:
            _print(lines)
            return
        plan = plan._replace(by=plan.by if by is None else by.value)
        columns = None if figure is None else 1
        _draw(lines, plan, columns, output or Path(f"figure-{figure}.svg"))


@app.command()
def agreement(
    file: Annotated[
        str, typer.Argument(help="A request of POST /v1/studies/agreement; - is standard input.")
    ],
) -> None:
    """Say how far indices agree over many models."""
    from rprime.commands.evaluation import limits, refuse_here
    from rprime.history.agreement import agreement_document
    from rprime.problems.problem import Problem

    with defects():
        try:
            put(agreement_document(_read(file), limits()) + b"\n")
        except Problem as problem:
            refuse_here(problem)


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        refuse(f"cannot read {file}: {error.strerror}")


def _lines(asked: dict[str, Any]) -> "list[Line]":
    from rprime.application.discrimination import discrimination_lines
    from rprime.commands.evaluation import limits, refuse_here
    from rprime.problems.problem import Problem

    try:
        return discrimination_lines(orjson.dumps(asked), limits())
    except Problem as problem:
        refuse_here(problem)


def _entry(name: str) -> Any:  # noqa: ANN401 (JSON)
    key, colon, number = name.partition(":")
    if colon and not number.isdecimal():
        refuse("a class is a number from 1 on, as in f1:1")
    return {"index": key, "class": int(number)} if colon else key


def _print(lines: "list[Line]") -> None:
    from rprime.application.discrimination import discrimination_document

    put(discrimination_document(lines) + b"\n")


def _draw(lines: "list[Line]", plan: "PrintedFigure", columns: int | None, output: Path) -> None:
    from rprime.report.figures.discrimination import COLUMNS, draw_discrimination

    form = known_form(output)
    write_image(
        output,
        lambda: draw_discrimination(
            lines, title=plan.title, by=plan.by, columns=columns or COLUMNS, form=form
        ),
    )
