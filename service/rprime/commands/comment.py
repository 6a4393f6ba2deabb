"""A report as one comment of a pull or merge request, which every run brings up to date."""

import json
import os
import re
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Argument, Exit, Option

from rprime.commands.exit_status import Status, refuse, say

if TYPE_CHECKING:
    import httpx

_MARKER = re.compile(r"<!-- rprime:report [0-9a-f]+ -->")
_PAGE = 100


class Forge(NamedTuple):
    """Where the comments of a request are: the paths of all of them and of one, without its id.

    `edit` is the method that changes one, `author` its member that says who wrote it; `token` is a
    variable, and `needs` says what the token in it needs.
    """

    api: str
    listed: str
    comment: str
    edit: str
    author: str
    token: str
    needs: str
    headers: dict[str, str]


def comment(
    file: Annotated[Path, Argument(help="The report that --markdown of `evaluate` wrote.")],
    *,
    number: Annotated[
        int | None, Option(min=1, help="Of the pull or merge request; default: that of the job.")
    ] = None,
) -> None:
    """Put a report into the pull request of a job on GitHub, or the merge request on GitLab.

    There is one comment for each project and model, and every run edits it. The variable
    GITHUB_TOKEN or GITLAB_TOKEN holds the token. It ends with 0, too, where the job belongs to no
    request, with 2 for a file that is no report or without a token, and with 4 where the API
    refuses or gives no answer.
    """
    on_gitlab = "CI_API_V4_URL" in os.environ
    if not on_gitlab and "GITHUB_REPOSITORY" not in os.environ:
        refuse("this is no job of GitHub or GitLab: there is no GITHUB_REPOSITORY")
    number = number or _number(on_gitlab=on_gitlab)
    if number is None:
        say("this job belongs to no pull or merge request, so there is no comment")
        return
    try:
        body = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"cannot read {file}: {error}")
    if not _MARKER.match(body):
        refuse(f"{file} is no report that --markdown wrote")
    _publish(_gitlab(number) if on_gitlab else _github(number), body)


def _number(*, on_gitlab: bool) -> int | None:
    """Return the number of the request that the job belongs to."""
    if on_gitlab:
        return int(os.environ.get("CI_MERGE_REQUEST_IID") or 0) or None
    event = os.environ.get("GITHUB_EVENT_PATH")
    payload: Any = json.loads(Path(event).read_bytes()) if event else {}
    number: int | None = payload.get("pull_request", {}).get("number")
    return number


def _github(number: int) -> Forge:
    issues = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    return Forge(
        api=os.environ.get("GITHUB_API_URL", "https://api.github.com"),
        listed=f"{issues}/{number}/comments",
        comment=f"{issues}/comments",
        edit="PATCH",
        author="user",
        token="GITHUB_TOKEN",  # noqa: S106 (a name)
        needs="the permission `pull-requests: write`, which a pull request of a fork never has",
        headers={"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"},
    )


def _gitlab(number: int) -> Forge:
    # The pipeline of a fork runs in the fork, but its merge request is in the other project.
    project = os.environ.get("CI_MERGE_REQUEST_PROJECT_ID") or os.environ["CI_PROJECT_ID"]
    notes = f"/projects/{project}/merge_requests/{number}/notes"
    return Forge(
        api=os.environ["CI_API_V4_URL"],
        listed=notes,
        comment=notes,
        edit="PUT",
        author="author",
        token="GITLAB_TOKEN",  # noqa: S106 (a name)
        needs="the scope `api`; a CI_JOB_TOKEN may not write notes",
        headers={},
    )


def _publish(forge: Forge, body: str) -> None:
    import httpx

    token = os.environ.get(forge.token)
    if not token:
        refuse(f"there is no {forge.token}: set it to a token with {forge.needs}")
    headers = {**forge.headers, "Authorization": f"Bearer {token}"}
    try:
        http = httpx.Client(base_url=forge.api, headers=headers, timeout=30, follow_redirects=True)
        with http:
            mine = _mine(http, forge, body[: body.index("\n")])
            way = (
                ("POST", forge.listed) if mine is None else (forge.edit, f"{forge.comment}/{mine}")
            )
            done = http.request(*way, json={"body": body}).raise_for_status().json()["id"]
    except httpx.HTTPStatusError as error:
        request, status = error.request, error.response.status_code
        say(f"NO COMMENT: {request.method} {request.url} answers {status}")
        say(f"the token in {forge.token} needs {forge.needs}")
        raise Exit(Status.UNREACHABLE) from None
    except (httpx.HTTPError, ValueError, LookupError) as error:
        say(f"NO COMMENT: {forge.api} gives no answer: {error!r}")
        raise Exit(Status.UNREACHABLE) from None
    say(f"comment {done} is {'new' if mine is None else 'brought up to date'}")


def _mine(client: "httpx.Client", forge: Forge, marker: str) -> int | None:
    """Find the comment of an earlier run, by the marker and by who wrote it."""
    user = client.get("/user")
    # The token of a job on GitHub belongs to an app, which may not ask who it is.
    app = user.status_code == HTTPStatus.FORBIDDEN and forge.author == "user"
    identity = {"type": "Bot"} if app else {"id": user.raise_for_status().json()["id"]}
    for page in count(1):
        answer = client.get(forge.listed, params={"per_page": _PAGE, "page": page})
        comments: list[Any] = answer.raise_for_status().json()
        for entry in comments:
            author = entry.get(forge.author) or {}
            if entry.get("body", "").startswith(marker) and identity.items() <= author.items():
                return int(entry["id"])
        if len(comments) < _PAGE:
            break
    return None
