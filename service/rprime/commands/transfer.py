"""A store as a file, and back: for backups, and to move house."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from rprime.commands.exit_status import attempting, put, refuse, say, working
from rprime.commands.history_source import (
    DEFAULT_STORE,
    HistorySource,
    StoreUrl,
    open_store_or_end,
    with_history,
)
from rprime.core.progress import report

_STANDARD = Path("-")
_LINES = "application/x-ndjson"


@with_history
def export(
    *,
    project: Annotated[str | None, Option(help="Only this one; default all.")] = None,
    output: Annotated[Path, Option(help="A file; - is standard output.")] = _STANDARD,
    history: HistorySource,
) -> None:
    """Write the history as lines of JSON, while a service may use it."""
    if history.service is None:
        from rprime.store import ProjectMissingError

        with open_store_or_end(history.store, read_only=True) as database:
            try:
                records = database.export(project)
            except ProjectMissingError:
                refuse(f"there is no project {project}")
            _write(records, output)
    else:
        from rprime.client.calls import Call, path_of

        path = path_of("export", query={"project": project})
        lines = Call("GET", path, lambda content, _: content, headers={"Accept": _LINES})
        with history.client() as client:
            with working("Exporting ..."):
                content = client.ask(lines)
            _write([content], output)


def _write(lines: Iterable[bytes], output: Path) -> None:
    if output == _STANDARD:
        for line in lines:
            put(line)
        return
    with attempting(f"write {output}"), output.open("xb") as file, working("Exporting ..."):
        for done, line in enumerate(lines, 1):
            file.write(line)
            report("Lines", done)


@with_history
def import_(
    file: Annotated[Path, Argument(help="What `rprime export` wrote; - is standard input.")],
    *,
    history: HistorySource,
) -> None:
    """Add an export to the history of a service, or to a store that no service uses."""
    from rprime.commands.inputs import bounded_lines
    from rprime.store import InvalidExportError

    try:
        with (
            attempting(f"read {file}"),
            sys.stdin.buffer if file == _STANDARD else file.open("rb") as lines,
        ):
            added = _added(history, bounded_lines(lines, str(file)))
    except InvalidExportError as exc:
        refuse(f"{file}: {exc}")
    say(
        f"{added['evaluations']} evaluations and {added['aliases']} aliases added, "
        f"{added['evaluations_present']} and {added['aliases_present']} were there"
    )


def _added(history: HistorySource, lines: Iterable[bytes]) -> dict[str, int]:
    from rprime.client.calls import Call

    if history.service is None:
        with open_store_or_end(history.store, read_only=False) as store:
            return store.import_lines(lines).model_dump()
    read, headers = lambda content, _: json.loads(content), {"Content-Type": _LINES}
    with working("Importing ..."), history.client() as client:
        return client.ask(Call("POST", "/v1/import", read, b"".join(lines), headers))


def backup(
    path: Annotated[Path, Argument(help="The copy; it must not be there yet.")],
    *,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Copy a SQLite store by SQLite's own means, while a service may use it."""
    with open_store_or_end(store, read_only=True) as database:
        database.backup(path)
