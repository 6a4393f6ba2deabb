"""Which evaluation an alias points at."""

import json
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from rprime.commands.exit_status import refuse, say
from rprime.commands.history_source import HistorySource, Project, with_history

if TYPE_CHECKING:
    from rprime.client.clients import Client


@with_history
def promote(
    evaluation: Annotated[
        str, Argument(help="Its id, or the report that --json-file of `evaluate` wrote.")
    ],
    alias: Annotated[str, Argument(help="Such as champion.")],
    *,
    project: Project,
    if_absent: Annotated[
        bool, Option("--if-absent", help="Set the alias, but never move it.")
    ] = False,
    if_passed: Annotated[
        bool, Option("--if-passed", help="Only if the gate of the evaluation passed.")
    ] = False,
    history: HistorySource,
) -> None:
    """Point an alias at an evaluation, unless somebody else does so at the same time.

    It ends with 0, too, where --if-absent or --if-passed leaves the alias as it is.
    """
    identifier = _id_of(evaluation)
    with history.client(read_only=False) as client:
        verdict = client.evaluation(identifier).verdict or "no_gate" if if_passed else "pass"
        if verdict != "pass":
            say(f"{alias} of {project} stays as it is: the verdict is {verdict}")
        elif point(client, project, alias, identifier, if_absent=if_absent):
            say(f"{alias} of {project} points at {identifier}")
        else:
            say(f"{alias} of {project} is set already and stays as it is")


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


def point(client: "Client", project: str, alias: str, evaluation: str, *, if_absent: bool) -> bool:
    """Set an alias; return False where it is set already and must not be moved."""
    from rprime.client.calls import JSON, Call, path_of
    from rprime.client.errors import ProblemError

    path = path_of("projects", project, "aliases", alias)
    guard = {"If-None-Match": "*"}
    if not if_absent:
        try:
            guard = client.ask(Call("GET", path, lambda _, headers: {"If-Match": headers["etag"]}))
        except ProblemError as problem:
            if problem.status != HTTPStatus.NOT_FOUND:
                raise
    body = json.dumps({"evaluation": evaluation}).encode()
    try:
        client.ask(Call("PUT", path, lambda *_: None, body, {"Content-Type": JSON, **guard}))
    except ProblemError as problem:
        if not if_absent or problem.code != "precondition_failed":
            raise
        return False
    return True
