"""A figure as a file: of evidence, of a report written before, or of what is stored."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import orjson
from pydantic import ValidationError
from typer import Argument, Option

from rprime.application.report_subject import evaluated
from rprime.client.report import Report
from rprime.commands.ci_request import assemble
from rprime.commands.evaluation import read, subject_of
from rprime.commands.exit_status import attempting, refuse, refusing
from rprime.commands.history_source import HistorySource, with_history
from rprime.report.charts import sheet
from rprime.report.charts.evaluation import drawn
from rprime.report.charts.sheet import Canvas
from rprime.report.subject import ReportSubject

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


def drawn_file(
    file: str, baseline: str | None, figure: str, indices: tuple[str, ...]
) -> Callable[[Canvas], bytes]:
    """Return how a figure of a file is drawn, or end and say what is wrong with it."""
    report = _report(file)
    if report is None:
        subject, compared = _of_evidence(file, baseline)
    elif baseline is not None:
        refuse("a report has the baseline that it was made with; leave --baseline out")
    elif report.table is None:
        refuse(
            f"{file}: the report has no table; `rprime evaluate --json --table` and "
            "`GET /v1/evaluations/{id}?include=table` write one that has"
        )
    else:
        subject, compared = report.subject, report.comparison is not None
    with refusing(ValueError):
        return drawn(figure, subject, indices, compared=compared)


def _report(file: str) -> Report | None:
    """Return the report in a file; None if the file is no report."""
    path = Path(file)
    if path.suffix.lower() != ".json":
        return None
    try:
        document = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        # Who reads it as evidence says what is wrong.
        return None
    if not isinstance(document, dict) or "engine_version" not in document:
        return None
    report = Report(orjson.dumps(document))
    try:
        _ = report.model
    except ValidationError as error:
        place = "/".join(map(str, error.errors()[0]["loc"]))
        refuse(f"{file} is no whole report of this version: see /{place}")
    return report


def _of_evidence(
    file: str, baseline: str | None
) -> tuple[Callable[[tuple[str, ...]], ReportSubject], bool]:
    """Return what is drawn with given indices, and whether there is a baseline."""
    ci_request = assemble(file, baseline=baseline)
    if "baseline" in ci_request.kept_there:
        refuse("a stored baseline needs a stored evaluation: name its id, or give a file")
    evaluation_request = read(ci_request.request, kept_there=True)

    def subject(indices: tuple[str, ...]) -> ReportSubject:
        report_subject = subject_of(
            evaluation_request, evaluated(evaluation_request, indices), ci_request
        )
        model = report_subject.origin.model or Path(file).stem
        return replace(
            report_subject, origin=report_subject.origin.model_copy(update={"model": model})
        )

    assessment = evaluation_request.assessment
    return subject, assessment is not None and assessment.comparison is not None
