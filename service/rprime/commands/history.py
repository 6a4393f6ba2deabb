"""The history from a terminal or a job: what there is, and which of it an alias points at."""

import json
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlencode

import typer

from rprime.commands import options
from rprime.commands.exit_status import refuse, say
from rprime.commands.history_source import (
    DEFAULT_STORE,
    Key,
    Project,
    Server,
    StoreUrl,
    asked,
    opened,
)

if TYPE_CHECKING:
    import httpx

    from rprime.client.blocking import Client

Json = dict[str, Any]

_COLUMNS = ("CREATED", "MODEL", "VERSION", "BRANCH", "VERDICT", "ID")
_NOT_FOUND = 404


def history(
    *,
    project: Project,
    model: Annotated[str | None, typer.Option(help="Of this model.")] = None,
    version: Annotated[str | None, typer.Option(help="Of this version.")] = None,
    branch: Annotated[str | None, typer.Option(help="Of this branch.")] = None,
    verdict: Annotated[str | None, typer.Option(help="With this verdict.")] = None,
    tag: Annotated[str | None, typer.Option(help="With this tag.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="The newest so many.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON for each.")] = False,
    server: Server = None,
    key: Key = None,
    timeout: options.Timeout = 60.0,
    retries: options.Retries = 3,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """List the evaluations of a project, newest first."""
    given = {"model": model, "version": version, "branch": branch, "verdict": verdict, "tag": tag}
    filters = {name: value for name, value in given.items() if value is not None}
    if server is None:
        found = _stored(store, project, filters, limit)
    else:
        query = {**filters, "limit": str(limit)}
        with asked(server, key, timeout=timeout, retries=retries) as client:
            found = _answered(client, project, query)
    if as_json:
        for item in found:
            typer.echo(json.dumps(item, ensure_ascii=False))
    elif found:
        _print([_COLUMNS, *map(_row, found)])
    else:
        say(f"{project} has no such evaluation")


def _stored(url: str, project: str, filters: dict[str, str], limit: int) -> list[Json]:
    from dataclasses import asdict

    from rprime.store import Filters

    with opened(url, read_only=True) as store:
        page = store.page(project, Filters(**filters), limit=limit)  # type: ignore[arg-type] # no time
    return [
        {**asdict(item), "created_at": item.created_at.isoformat(), "tags": list(item.tags)}
        for item in page.items
    ]


def _answered(client: "Client", project: str, query: dict[str, str]) -> list[Json]:
    from rprime.client.calls import Call
    from rprime.client.errors import ProblemError

    path = f"/v1/projects/{quote(project, safe='')}/evaluations?{urlencode(query)}"
    call: Call[Json] = Call("GET", path, lambda response: response.json())
    try:
        items: list[Json] = client.ask(call)["items"]
    except ProblemError as problem:
        if problem.status != _NOT_FOUND:
            raise
        refuse(f"there is no project {project}, or the key may not see it")
    return items


def _row(item: Json) -> tuple[str, ...]:
    verdict = f"{item['verdict'] or '-'}{' (waived)' if item['waived'] else ''}"
    names = (item["model"], item["version"], item["branch"])
    created = item["created_at"][:16].replace("T", " ")
    return (f"{created}Z", *(name or "-" for name in names), verdict, item["id"])


def _print(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


def promote(
    evaluation: Annotated[str, typer.Argument(help="Its id.")],
    alias: Annotated[str, typer.Argument(help="Such as champion.")],
    *,
    project: Project,
    server: Server = None,
    key: Key = None,
    timeout: options.Timeout = 60.0,
    retries: options.Retries = 3,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Point an alias at an evaluation, unless somebody else does so at the same time."""
    if server is None:
        _promote_here(store, project, alias, evaluation)
    else:
        with asked(server, key, timeout=timeout, retries=retries) as client:
            _promote_there(client, project, alias, evaluation)
    typer.echo(f"rprime: {alias} of {project} points at {evaluation}", err=True)


def _promote_here(url: str, project: str, alias: str, evaluation: str) -> None:
    from rprime.store import (
        EvaluationMissingError,
        Expected,
        InvalidRecordError,
    )

    with opened(url, read_only=False) as store:
        try:
            store.put_alias(project, alias, evaluation=evaluation, expected=Expected())
        except EvaluationMissingError:
            refuse("the project has no such evaluation")
        except InvalidRecordError as exc:
            refuse(str(exc))


def _promote_there(client: "Client", project: str, alias: str, evaluation: str) -> None:
    from rprime.client.calls import Call
    from rprime.client.errors import ProblemError

    path = f"/v1/projects/{quote(project, safe='')}/aliases/{quote(alias, safe='')}"

    def etag(response: "httpx.Response") -> dict[str, str]:
        return {"If-Match": response.headers["etag"]}

    try:
        expected = client.ask(Call("GET", path, etag))
    except ProblemError as problem:
        if problem.status != _NOT_FOUND:
            raise
        expected = {"If-None-Match": "*"}
    body = json.dumps({"evaluation": evaluation}).encode()
    headers = {**expected, "Content-Type": "application/json"}
    client.ask(Call("PUT", path, lambda _: None, body, headers))
