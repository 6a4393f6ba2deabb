"""A figure as a file: of evidence, of a report written before, or of what is stored."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from typer import Argument, Option

from rprime.commands.exit_status import attempting, refuse, refusing
from rprime.commands.history_source import HistorySource, with_history
from rprime.report.charts import sheet

_filter = partial(Option, rich_help_panel="Of a history")


_HistoryFigure = Literal["trend", "lines", "boxes"]
_Figure = Literal[sheet.EvaluationFigure, _HistoryFigure]


@with_history
def plot(
    source: Annotated[
        str | None,
        Argument(
            metavar="FILE|ID",
            help="Evidence as `rprime evaluate` takes it, a report as JSON with its table, or the "
            "id of a stored evaluation. For trend, lines and boxes: none, but --project.",
        ),
    ] = None,
    *,
    figure: Annotated[_Figure, Option(help="What to draw.")],
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="The file, .svg, .png or .pdf; default: FIGURE.svg."),
    ] = None,
    index: Annotated[
        list[str] | None, Option(help="Key of an index to show; can be repeated.")
    ] = None,
    baseline: Annotated[
        str | None, Option(metavar="FILE", help="What evidence is compared with, as a file.")
    ] = None,
    width: Annotated[int, Option(min=320, max=1600, help="In pixels of CSS, 96 to an inch.")] = 800,
    scale: Annotated[
        float, Option(min=0.5, max=4, help="Pixels of a PNG for each of these.")
    ] = 2.0,
    project: Annotated[str | None, _filter(help="Whose history.")] = None,
    model: Annotated[str | None, _filter(help="Of this model.")] = None,
    branch: Annotated[str | None, _filter(help="Of this branch.")] = None,
    label: Annotated[str | None, _filter("--class", help="A trend of this class.")] = None,
    by: Annotated[
        Literal["class", "evaluation"] | None,
        _filter(help="What has a box, or with class a panel."),
    ] = None,
    limit: Annotated[int, _filter(min=1, max=1000, help="The newest so many.")] = 100,
    history: HistorySource,
) -> None:
    """Draw a figure: of evidence or a report here, of what is stored here or by a service."""
    from rprime.core.index_names import canonical

    output = output or Path(f"{figure}.svg")
    form = known_form(output)
    keys = tuple(map(canonical, index or ()))
    query: dict[str, Any] = {"index": keys, "width": width, "scale": scale}
    if figure in get_args(_HistoryFigure):
        if project is None or source is not None:
            refuse(f"{figure} is of a history: name its --project, and no file")
        place: tuple[str, ...] = ("projects", project)
        query |= {"model": model, "branch": branch, "class": label, "limit": limit, "by": by}
    elif source is None:
        refuse(f"{figure} is of an evaluation: name a file, or its id")
    elif Path(source).exists():
        from rprime.commands.drawn_files import drawn_file

        canvas = sheet.Canvas(form, width, scale)
        write_image(output, lambda: drawn_file(source, baseline, figure, keys)(canvas))
        return
    else:
        place = ("evaluations", source)
    place = (*place, "figures", f"{figure}.{form}")
    write_image(output, lambda: _of_history(history, place, query, sheet.MEDIA_TYPES[form]))


def _of_history(
    history: HistorySource, place: tuple[str, ...], query: dict[str, Any], media_type: str
) -> bytes:
    from rprime.client.calls import Call, path_of

    path, headers = path_of(*place, query=query), {"Accept": media_type}
    with history.client() as client:
        return client.ask(Call("GET", path, lambda content, _: content, headers=headers))


def known_form(output: Path) -> sheet.Form:
    """Return the image format that the name of a file asks for, or end."""
    with refusing(ValueError):
        return sheet.form_of(output)


def write_image(output: Path, draw: Callable[[], bytes]) -> None:
    """Draw into a file, or end and say why not."""
    undrawn = refusing(sheet.NothingToDrawError, sheet.TooMuchToDrawError)
    with undrawn, attempting(f"write {output}"):
        output.write_bytes(draw())
