"""The history from a terminal or a job: what there is, and which of it an alias points at."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
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
    from rprime.client.clients import Client
    from rprime.store import Store

Json = dict[str, Any]

_COLUMNS = ("CREATED", "MODEL", "VERSION", "BRANCH", "COMMIT", "VERDICT", "ID")
_SHORT = 12
"""Characters of a commit in the table."""
_NOT_FOUND = 404
_NO_GATE = "no_gate"
"""The verdict of an evaluation without a gate."""


def history(
    *,
    project: Project,
    model: Annotated[str | None, typer.Option(help="Of this model.")] = None,
    version: Annotated[str | None, typer.Option(help="Of this version.")] = None,
    branch: Annotated[str | None, typer.Option(help="Of this branch.")] = None,
    commit: Annotated[str | None, typer.Option(help="Of this commit, in full.")] = None,
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
    given = {"model": model, "version": version, "branch": branch, "commit": commit}
    given |= {"verdict": verdict, "tag": tag}
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
    from rprime.client import calls
    from rprime.client.errors import ProblemError

    path = f"/v1/projects/{quote(project, safe='')}/evaluations?{urlencode(query)}"
    try:
        items: list[Json] = client.ask(calls.document(path))["items"]
    except ProblemError as problem:
        if problem.status != _NOT_FOUND:
            raise
        refuse(f"there is no project {project}, or the key may not see it")
    return items


def _row(item: Json) -> tuple[str, ...]:
    verdict = f"{item['verdict'] or '-'}{' (waived)' if item['waived'] else ''}"
    names = (item["model"], item["version"], item["branch"], (item["commit"] or "")[:_SHORT])
    created = item["created_at"][:16].replace("T", " ")
    return (f"{created}Z", *(name or "-" for name in names), verdict, item["id"])


def _print(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


def promote(
    evaluation: Annotated[
        str, typer.Argument(help="Its id, or the report that --json-file of `evaluate` wrote.")
    ],
    alias: Annotated[str, typer.Argument(help="Such as champion.")],
    *,
    project: Project,
    if_absent: Annotated[
        bool, typer.Option("--if-absent", help="Set the alias, but never move it.")
    ] = False,
    if_passed: Annotated[
        bool, typer.Option("--if-passed", help="Only if the gate of the evaluation passed.")
    ] = False,
    server: Server = None,
    key: Key = None,
    timeout: options.Timeout = 60.0,
    retries: options.Retries = 3,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Point an alias at an evaluation, unless somebody else does so at the same time.

    It ends with 0, too, where --if-absent or --if-passed leaves the alias as it is.
    """
    promotion = _Promotion(project, alias, _id_of(evaluation), if_absent, if_passed)
    if server is None:
        with opened(store, read_only=False) as there:
            said = _promote_here(there, promotion)
    else:
        with asked(server, key, timeout=timeout, retries=retries) as client:
            said = _promote_there(client, promotion)
    say(said)


class _Promotion(NamedTuple):
    """An alias, the evaluation that it shall point at, and on which conditions."""

    project: str
    alias: str
    evaluation: str
    if_absent: bool
    if_passed: bool

    @property
    def done(self) -> str:
        return f"{self.alias} of {self.project} points at {self.evaluation}"

    @property
    def present(self) -> str:
        return f"{self.alias} of {self.project} is set already and stays as it is"

    def not_passed(self, verdict: str) -> str:
        return f"{self.alias} of {self.project} stays as it is: the verdict is {verdict}"


def _id_of(evaluation: str) -> str:
    """Return the id; a path is one of a report."""
    if not evaluation.endswith(".json"):
        return evaluation
    try:
        found: object = json.loads(Path(evaluation).read_bytes()).get("id")
    except OSError as error:
        refuse(f"cannot read {evaluation}: {error.strerror}")
    except (ValueError, AttributeError):
        refuse(f"{evaluation} is no report")
    if not isinstance(found, str):
        refuse(f"{evaluation} has no id: its evaluation was not stored")
    return found


def _promote_here(store: "Store", promotion: _Promotion) -> str:
    from rprime.store import (
        AliasChangedError,
        EvaluationMissingError,
        Expected,
        InvalidRecordError,
    )

    project, alias, evaluation, if_absent, if_passed = promotion
    try:
        verdict = store.get(evaluation).verdict if if_passed else "pass"
        if verdict != "pass":
            return promotion.not_passed(verdict or _NO_GATE)
        store.put_alias(project, alias, evaluation=evaluation, expected=Expected(absent=if_absent))
    except EvaluationMissingError:
        refuse("the project has no such evaluation")
    except InvalidRecordError as exc:
        refuse(str(exc))
    except AliasChangedError:
        return promotion.present
    return promotion.done


def _promote_there(client: "Client", promotion: _Promotion) -> str:
    from rprime.client.calls import Call, document
    from rprime.client.errors import ProblemError

    project, alias, evaluation, if_absent, if_passed = promotion
    if if_passed:
        path = f"/v1/evaluations/{quote(evaluation, safe='')}?include=gate"
        verdict = client.ask(document(path)).get("gate", {}).get("verdict", _NO_GATE)
        if verdict != "pass":
            return promotion.not_passed(verdict)
    path = f"/v1/projects/{quote(project, safe='')}/aliases/{quote(alias, safe='')}"
    absent = {"If-None-Match": "*"}
    headers = {"Content-Type": "application/json", **(absent if if_absent else _etag(client, path))}
    body = json.dumps({"evaluation": evaluation}).encode()
    try:
        client.ask(Call("PUT", path, lambda _: None, body, headers))
    except ProblemError as problem:
        if not if_absent or problem.code != "precondition_failed":
            raise
        return promotion.present
    return promotion.done


def _etag(client: "Client", path: str) -> dict[str, str]:
    """Return the header that expects an alias as it is now."""
    from rprime.client.calls import Answered, Call
    from rprime.client.errors import ProblemError

    def found(response: Answered) -> dict[str, str]:
        return {"If-Match": response.headers["etag"]}

    try:
        return client.ask(Call("GET", path, found))
    except ProblemError as problem:
        if problem.status != _NOT_FOUND:
            raise
        return {"If-None-Match": "*"}
