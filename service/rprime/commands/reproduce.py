"""The results of the R' papers, computed again."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from rprime.commands.exit_status import Status, put

if TYPE_CHECKING:
    from rprime.application.reproduction import Reproduction


def reproduce(
    *, as_json: Annotated[bool, typer.Option("--json", help="Print JSON, numbers in full.")] = False
) -> None:
    """Print what the R' papers published against what is computed here, with errata and claims."""
    from rprime.application.reproduction import reproduce as run

    found = run()
    put(_json(found) if as_json else "\n".join((*_document(found), "")).encode())
    if not found.sound:
        raise typer.Exit(Status.DEFECT)


def _document(found: "Reproduction") -> Iterator[str]:
    yield from ("# Published and computed", "")
    yield from (f"{found.source}.", "")
    yield from (f"{found.summary} This document is what `rprime reproduce` prints.", "")
    for table in found.tables:
        yield from (f"## {table}", "", "| | published | computed | |", "|---|---|---|---|")
        for one in found.results:
            if one.table == table:
                name = one.index if one.class_ is None else f"{one.index} of {one.class_}"
                mark = "" if one.reproduced else one.mark
                yield f"| {name} | {one.published:.4f} | {one.computed:.4f} | {mark} |"
        yield ""
    yield from ("## Claims", "", "| claim | result | numbers |", "|---|---|---|")
    for claim in found.claims:
        result = "holds" if claim.holds else "holds not"
        yield f"| {claim.text} ({claim.source}) | {result} | {claim.numbers} |"
    yield ""
    for heading, entries in (("Errata", found.errata), ("Reading the papers", found.conventions)):
        yield from (f"## {heading}", "")
        yield from (f"* {where}: {text}" for where, text in entries)
        yield ""


def _json(found: "Reproduction") -> bytes:
    results = [
        {
            "table": result.table,
            "index": result.index,
            "class": result.class_,
            "published": result.published,
            "computed": result.computed,
            "result": result.mark,
        }
        for result in found.results
    ]
    document = {
        "source": found.source,
        "numbers": len(results),
        "reproduced": found.reproduced,
        "results": results,
        "errata": [{"table": where, "text": text} for where, text in found.errata],
        "claims": [asdict(claim) for claim in found.claims],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"
