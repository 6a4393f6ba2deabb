"""The search for weak slices, here or by a service."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rprime.commands import options
from rprime.commands.exit_status import defects, put, refuse_here
from rprime.commands.lint import answer, overview, show
from rprime.commands.options import ServiceOptions, settings
from rprime.report.decimals import count, decimal, percent, plural, signed, span
from rprime.report.names import shown

if TYPE_CHECKING:
    from rprime.client.report import SliceSearch

_TITLES = ("Slice", "Items", "", "Rest", "Difference", "Interval", "Adjusted p")


@options.with_service
def slices(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Predictions, as `rprime evaluate` takes them.")
    ],
    *,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Search in this column of the file, too: region; age_band=cut(age, 18, 30, 50); "
            "cut(age, 3) for 3 parts of equal size. Without a cut, more than 10 different numbers "
            "are cut into 4 parts. Columns slice:NAME need not be named.",
        ),
    ] = None,
    index: Annotated[str, typer.Option(help="A mean over items.")] = "accuracy",
    class_: Annotated[
        str | None, typer.Option("--class", help="The class of recall or precision.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the split into halves.")] = 0,
    columns: options.Columns = None,
    request: options.Request = None,
    service: ServiceOptions | None,
    as_json: options.AsJson = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown.", rich_help_panel="Output")
    ] = False,
) -> None:
    """Find slices in which a model is weak: one half of the items finds them, the other tests."""
    with defects():
        from rprime.commands.ci_request import chosen_members

        asked = {"index": index, "seed": seed} | ({"class": class_} if class_ else {})
        chosen = chosen_members(columns, column or [], option="--column")
        found = _found(file, asked, chosen, request, service)
        said, rows = _said(found), _rows(found)
        if as_json:
            put(found.content + b"\n")
        elif markdown:
            put(_markdown(found, said, rows).encode())
        else:
            show(overview(said[:1], _titles(found) if rows else (), rows, said[1:]))


def _found(
    file: str,
    members: dict[str, Any],
    chosen: dict[str, Any],
    request: Any,  # noqa: ANN401 (a path)
    service: ServiceOptions | None,
) -> "SliceSearch":
    """Search here, or let a service do it."""
    from rprime.client.calls import slice_search
    from rprime.commands.ci_request import ColumnFileRequest, assemble, local, splice, written
    from rprime.commands.evaluation import ask
    from rprime.problems.problem import Problem

    asked = assemble(file, request=request, chosen=chosen).request
    if not isinstance(asked, ColumnFileRequest):
        return answer(slice_search(splice(asked.body, members)), service)
    from rprime.application.slice_search import search_document
    from rprime.client.report import SliceSearch
    from rprime.evidence import FORMATS, read_columns

    content = written({**asked.members, **members})
    with asked.candidate.opened() as (kind, body):
        if service is not None:
            return ask(slice_search(body.read(), FORMATS[kind].media_type, content), service)
        try:
            document = read_columns(kind, body, content, local(settings().limits), measured=True)
            return SliceSearch(search_document(document, settings().limits))
        except Problem as problem:
            refuse_here(problem, file)


def _rows(found: "SliceSearch") -> list[tuple[str, ...]]:
    return [
        (
            ", ".join(shown(f"{name}={text}") for name, text in one.slice.items()),
            count(one.items),
            decimal(one.value),
            decimal(one.rest),
            signed(one.difference),
            span(*one.interval),
            "" if one.p_adjusted is None else f"{one.p_adjusted:.2g}",
        )
        for one in found.slices
        if one.weak
    ]


def _said(found: "SliceSearch") -> list[str]:
    """Say what was searched, and what would have been found."""
    model = found.model
    of = f" of class {shown(model.class_)}" if model.class_ else ""
    weak = sum(one.weak for one in found.slices)
    sure = f"with {percent(model.confidence)} confidence"
    found_weak = (
        f"{plural(weak, 'slice')} worse than the rest, {sure}"
        if weak
        else f"No slice is shown to be worse than the rest, {sure}"
    )
    first = (
        f"{model.index}{of} is {decimal(model.value)}. {found_weak}: found on {model.found_on:,} "
        f"items, tested on {model.tested_on:,} others (seed {model.seed})."
    )
    sizes = (f"{decimal(abs(one.difference))} in {one.items:,} items" for one in found.detectable)
    last = "In 8 of 10 cases such a search finds a slice that is worse by"
    if not found.detectable:
        return [first, "There are too few items to find any slice in 8 of 10 cases."]
    return [first, f"{last} {', '.join(sizes)}."]


def _titles(found: "SliceSearch") -> tuple[str, ...]:
    return tuple(title or found.model.index for title in _TITLES)


def _markdown(found: "SliceSearch", said: list[str], rows: list[tuple[str, ...]]) -> str:
    from rprime.report.markdown import MOST_OF_LIST, code, draw_table, prose

    first, last = map(prose, said)
    rows = [(code(name), *numbers) for name, *numbers in rows]
    drawn = draw_table(_titles(found), "lrrrrrr", rows, MOST_OF_LIST, "slice") if rows else ""
    return "\n\n".join(filter(None, (first, drawn, last))) + "\n"
