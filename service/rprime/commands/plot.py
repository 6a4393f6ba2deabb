"""A figure as a file: of evidence, of a report, or of what is stored."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple
from urllib.parse import quote, urlencode

import typer

from rprime.commands.drawn_files import read_drawn
from rprime.commands.exit_status import defects, refuse
from rprime.commands.history_source import HistorySource, with_history
from rprime.commands.images import known_form, write_image

if TYPE_CHECKING:
    from rprime.report.figures.sheet import Canvas

_HISTORY = "Of a history"


class FigureName(StrEnum):
    """What there is to draw."""

    CONFUSION = "confusion"
    RADAR = "radar"
    PER_CLASS = "per_class"
    ROC = "roc"
    PRECISION_RECALL = "precision_recall"
    RELIABILITY = "reliability"
    RISK_COVERAGE = "risk_coverage"
    SCORES = "scores"
    TREND = "trend"
    LINES = "lines"
    BOXES = "boxes"


_OF_HISTORY = (FigureName.TREND, FigureName.LINES, FigureName.BOXES)


def _filter(what: str) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(help=what, rich_help_panel=_HISTORY)
    return found


class Wanted(NamedTuple):
    """What is to be drawn, wherever it comes from; no indices: the usual ones."""

    figure: FigureName
    indices: tuple[str, ...]
    sheet: "Canvas"


@with_history
def plot(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE|ID",
            help="Evidence as `rprime evaluate` takes it, a report as JSON with its table, or the "
            "id of a stored evaluation. For trend, lines and boxes: none, but --project.",
        ),
    ] = None,
    *,
    figure: Annotated[FigureName, typer.Option(help="What to draw.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file, .svg or .png; default: FIGURE.svg."),
    ] = None,
    index: Annotated[
        list[str] | None, typer.Option(help="Key of an index to show; can be repeated.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="FILE", help="What evidence is compared with, as a file.")
    ] = None,
    width: Annotated[
        int, typer.Option(min=320, max=1600, help="In pixels of CSS, 96 to an inch.")
    ] = 800,
    scale: Annotated[
        float, typer.Option(min=0.5, max=4, help="Pixels of a PNG for each of these.")
    ] = 2.0,
    project: Annotated[str | None, _filter("Whose history.")] = None,
    model: Annotated[str | None, _filter("Of this model.")] = None,
    branch: Annotated[str | None, _filter("Of this branch.")] = None,
    label: Annotated[
        str | None, typer.Option("--class", help="A trend of this class.", rich_help_panel=_HISTORY)
    ] = None,
    by: Annotated[
        Literal["class", "evaluation"] | None,
        typer.Option(help="What has a box, or with class a panel.", rich_help_panel=_HISTORY),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=1000, help="The newest so many.", rich_help_panel=_HISTORY)
    ] = 100,
    history: HistorySource,
) -> None:
    """Draw a figure: of evidence or a report here, of what is stored here or by a service."""
    output = output or Path(f"{figure}.svg")
    form = known_form(output)
    given: dict[str, Any] = {
        "model": model,
        "branch": branch,
        "class": label,
        "limit": limit,
        "by": by,
    }
    with defects():
        from rprime.core.aliases import canonical
        from rprime.report.figures.sheet import Canvas

        wanted = Wanted(figure, tuple(map(canonical, index or ())), Canvas(form, width, scale))
        if figure in _OF_HISTORY:
            if project is None or source is not None:
                refuse(f"{figure} is of a history: name its --project, and no file")
            place = f"projects/{quote(project, safe='')}"
        elif source is None:
            refuse(f"{figure} is of an evaluation: name a file, or its id")
        elif Path(source).exists():
            write_image(output, lambda: _of_file(wanted, source, baseline))
            return
        else:
            place, given = f"evaluations/{quote(source, safe='')}", {}
        write_image(output, lambda: _of_history(wanted, place, given, history))


def _of_file(wanted: Wanted, file: str, baseline: str | None) -> bytes:
    from rprime.report.figures.evaluation import drawn

    found = read_drawn(file, baseline)
    try:
        draw = drawn(wanted.figure.value, found.subject, wanted.indices, compared=found.compared)
    except ValueError as error:
        refuse(str(error))
    return draw(wanted.sheet)


def _of_history(
    wanted: Wanted, place: str, narrowed: Mapping[str, Any], history: HistorySource
) -> bytes:
    from rprime.client.calls import Call
    from rprime.report.figures.sheet import MEDIA_TYPES

    sheet = wanted.sheet
    query = {"index": wanted.indices, "width": sheet.width, "scale": sheet.scale}
    query |= {name: value for name, value in narrowed.items() if value is not None}
    path = f"/v1/{place}/figures/{wanted.figure}.{sheet.form}?{urlencode(query, doseq=True)}"
    with history.client() as client:
        headers = {"Accept": MEDIA_TYPES[sheet.form]}
        return client.ask(Call("GET", path, lambda answer: answer.content, headers=headers))
