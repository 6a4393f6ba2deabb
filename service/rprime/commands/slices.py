"""The search for weak slices, here or by a service."""

from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from rprime.commands import options
from rprime.commands.exit_status import put, refuse_here
from rprime.commands.lint import overview, show
from rprime.commands.options import ServiceOptions, settings
from rprime.core.quantities import condition, plural
from rprime.report.text import count, decimal, percent, shown, signed, span

if TYPE_CHECKING:
    from rprime.client.report import SliceSearch
    from rprime.commands.ci_request import ColumnFileRequest, JsonRequest


@options.with_service
def slices(
    file: Annotated[
        str, Argument(metavar="FILE", help="Predictions, as `rprime evaluate` takes them.")
    ],
    *,
    column: Annotated[
        list[str] | None,
        Option(
            metavar="COLUMN",
            help="Search in this column of the file, too: region; age_band=cut(age, 18, 30, 50); "
            "cut(age, 3) for 3 parts of equal size. Without a cut, more than 10 different numbers "
            "are cut into 4 parts. Columns slice:NAME need not be named.",
        ),
    ] = None,
    index: Annotated[str, Option(help="A mean over items.")] = "accuracy",
    class_: Annotated[
        str | None, Option("--class", help="The class of recall or precision.")
    ] = None,
    seed: Annotated[int, Option(help="Of the split into halves.")] = 0,
    columns: options.ColumnsOption = None,
    request: options.RequestOption = None,
    service: ServiceOptions | None,
    as_json: options.AsJson = False,
    markdown: Annotated[
        bool, Option("--markdown", help="Print Markdown.", rich_help_panel="Output")
    ] = False,
) -> None:
    """Find slices in which a model is weak: one half of the items finds them, the other tests."""
    from rprime.commands.ci_request import assemble, chosen_members

    members = {"index": index, "seed": seed} | ({"class": class_} if class_ else {})
    chosen = chosen_members(columns, column, option="--column")
    search = _found(assemble(file, request=request, chosen=chosen).request, members, service)
    sentences, rows = _said(search), _rows(search)
    numbers = (search.model.index, "Rest", "Difference", "Interval", "Adjusted p")
    titles = ("Slice", "Items", *numbers)
    if as_json:
        show(search.content)
    elif markdown:
        put(_markdown(sentences, titles, rows).encode())
    else:
        show(overview(sentences[:1], titles if rows else (), rows, sentences[1:]))


def _found(
    submitted: "JsonRequest | ColumnFileRequest",
    more: dict[str, Any],
    service: ServiceOptions | None,
) -> "SliceSearch":
    """Search here, or let a service do it; `more` are further members of the request."""
    from rprime.application.slice_search import search_document
    from rprime.client.calls import slice_search
    from rprime.client.report import SliceSearch
    from rprime.commands.ci_request import ColumnFileRequest, local, splice, written
    from rprime.commands.evaluation import answering
    from rprime.evidence import FORMATS, read_columns
    from rprime.problems.problem import Problem

    if isinstance(submitted, ColumnFileRequest):
        content, limits = written({**submitted.members, **more}), settings().limits
        with submitted.candidate.opened() as (kind, body):
            if service is None:
                try:
                    document = read_columns(kind, body, content, local(limits), measured=True)
                    return SliceSearch(search_document(document, limits))
                except Problem as problem:
                    refuse_here(problem, submitted.candidate.name, submitted.place_of)
            call = slice_search(body.read(), FORMATS[kind].media_type, content)
    else:
        call = slice_search(splice(submitted.body, more))
    with answering(service) as client:
        return client.ask(call)


def _rows(search: "SliceSearch") -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for part in (entry for entry in search.slices if entry.weak):
        name = ", ".join(shown(condition(*pair)) for pair in part.slice.items())
        numbers = (
            count(part.items),
            decimal(part.value),
            decimal(part.rest),
            signed(part.difference),
        )
        adjusted = "" if part.p_adjusted is None else f"{part.p_adjusted:.2g}"
        rows.append((name, *numbers, span(*part.interval), adjusted))
    return rows


def _said(search: "SliceSearch") -> list[str]:
    """Say what was searched, and what would have been found."""
    model = search.model
    of = f" of class {shown(model.class_)}" if model.class_ else ""
    weak = sum(part.weak for part in search.slices)
    sure = f"with {percent(model.confidence)} confidence"
    found_weak = f"No slice is shown to be worse than the rest, {sure}"
    if weak:
        found_weak = f"{plural(weak, 'slice')} worse than the rest, {sure}"
    elif not search.searched:
        found_weak = "No slice is large and weak enough to be tested"
    first = (
        f"{model.index}{of} is {decimal(model.value)}. {found_weak}: found on {model.found_on:,} "
        f"items, tested on {model.tested_on:,} others (seed {model.seed})."
    )
    sizes = (
        f"{decimal(abs(effect.difference))} in {effect.items:,} items"
        for effect in search.detectable
    )
    last = "In 8 of 10 cases such a search finds a slice that is worse by"
    if not search.detectable:
        return [first, "There are too few items to find any slice in 8 of 10 cases."]
    return [first, f"{last} {', '.join(sizes)}."]


def _markdown(sentences: list[str], titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    from rprime.report.markdown import MOST_OF_LIST, code, draw_table, prose

    first, last = map(prose, sentences)
    rows = [(code(name), *numbers) for name, *numbers in rows]
    drawn = draw_table(titles, "lrrrrrr", rows, MOST_OF_LIST, "slice") if rows else ""
    return "\n\n".join(filter(None, (first, drawn, last))) + "\n"
