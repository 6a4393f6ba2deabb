"""Studies of indices, on this machine."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import orjson
import typer

from rprime.commands.exit_status import defects, put, refuse
from rprime.commands.images import form_of, write_image

if TYPE_CHECKING:
    from rprime.core.studies.discrimination import Line

app = typer.Typer(no_args_is_help=True, help="Study what indices have to do with each other.")

_WHOLE = ("accuracy", "kappa", "scott_pi_true_margin", "maxwell_re", "csi")
_OF_CLASS_1 = ("recall:1", "precision:1", "specificity:1", "f1:1", "jaccard:1", "icsi:1")
_SOME = ("accuracy", "kappa", "csi", "f1:1", "icsi:1", "r_prime:1")

# The five figures of Labatut and Cherifi 2011, with what is said about them in the text.
_FIGURES: dict[int, dict[str, Any]] = {
    1: {"title": "Balanced classes, indices of the whole classifier", "indices": _WHOLE},
    2: {"title": "Balanced classes, indices of class 1", "indices": _OF_CLASS_1},
    3: {
        "title": "From balanced (p = 0) to imbalanced classes (p = 1), three classes",
        "indices": (*_WHOLE, *_OF_CLASS_1),
        "p": (0.0, 0.5, 1.0),
    },
    4: {
        "title": "What imbalance does to an index, three classes",
        "indices": _SOME,
        "p": (0.0, 0.25, 0.5, 0.75, 1.0),
        "by": "index",
    },
    5: {
        "title": "What the number of classes does to an index, p = 1",
        "indices": _SOME,
        "k": (2, 3, 5, 10, 50),
        "p": (1.0,),
        "by": "index",
    },
}


class Panels(StrEnum):
    """What has a panel of its own in a figure."""

    CONDITION = "condition"
    INDEX = "index"


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
        Path | None, typer.Option(help="Draw into this file, .svg or .png; default: print JSON.")
    ] = None,
) -> None:
    """Show where an index cannot tell two kinds of classifier apart."""
    plan = dict(_FIGURES[figure]) if figure is not None else {}
    plan |= {n: v for n, v in (("indices", indices), ("k", k), ("p", p), ("by", by)) if v}
    if "indices" not in plan:
        refuse("name an index, or a figure by --figure 1 to --figure 5")
    if figure is not None and output is None:
        output = Path(f"figure-{figure}.svg")
    with defects():
        lines = _lines(plan, resolution)
        if output is None:
            _print(lines)
        else:
            _draw(lines, plan, output)


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


def _lines(plan: dict[str, Any], resolution: int) -> "list[Line]":
    from rprime.application.discrimination import discrimination_lines
    from rprime.commands.evaluation import limits, refuse_here
    from rprime.problems.problem import Problem

    asked: dict[str, Any] = {name: plan[name] for name in ("k", "p") if name in plan}
    asked |= {"indices": [_entry(name) for name in plan["indices"]], "resolution": resolution}
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


def _draw(lines: "list[Line]", plan: dict[str, Any], output: Path) -> None:
    from rprime.report.figures.discrimination import draw_discrimination

    form = form_of(output)
    by: Literal["condition", "index"] = "index" if plan.get("by") == Panels.INDEX else "condition"
    title = plan.get("title", "")
    write_image(output, lambda: draw_discrimination(lines, title=title, by=by, form=form))
