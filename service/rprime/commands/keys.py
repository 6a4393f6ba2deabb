"""The keys of the service: make, list and revoke them."""

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, Typer, echo

from rprime.commands.exit_status import refuse, refusing, say
from rprime.commands.options import example

if TYPE_CHECKING:
    from rprime.auth.keys import ApiKey

app = Typer(no_args_is_help=True, help="Make, list and revoke the keys of the service.")

File = Annotated[
    Path, Option("--file", envvar="RPRIME_KEYS_FILE", help="The file that has the keys.")
]


@app.command(epilog=example("rprime keys create --scope evaluate --file keys.json"))
def create(
    *,
    scope: Annotated[
        list[str],
        Option(
            help="evaluate: send evidence, get reports. read: see what is stored. write: change "
            "it, and see it. admin: everything. Give it several times for several scopes."
        ),
    ],
    file: File,
    project: Annotated[str | None, Option(help="The only project of the key; default all.")] = None,
    expires: Annotated[
        str, Option(help="In how many hours, days or weeks (12h, 90d, 4w), or never.")
    ] = "90d",
    name: Annotated[str, Option(help="What the key is for.")] = "",
) -> None:
    """Make a key and print it: this once, since only its hash is kept."""
    import structlog

    from rprime.auth import keys
    from rprime.schemas.provenance import Name
    from rprime.server import logs

    lasts = _duration(expires)
    scopes = [_valid("--scope", keys.Scope, text) for text in scope]
    _valid("--project", Name | None, project)
    _valid("--name", keys.Name, name)
    if "admin" in scopes and project is not None:
        refuse("--scope admin is for all projects; leave --project out")
    logs.configure()
    with refusing(keys.KeyFileError):
        key, token = keys.create(file, scopes, project=project, lasts=lasts, name=name)
    echo(token)
    structlog.get_logger().info("key_created", **_described(file, key))


@app.command("list", epilog=example("rprime keys list --file keys.json"))
def list_keys(*, file: File) -> None:
    """List the keys, without their secrets."""
    from rprime.auth import keys
    from rprime.commands.history import print_rows

    with refusing(keys.KeyFileError):
        api_keys = keys.read(file)
    rows = []
    for key in api_keys:
        expires = "never" if key.expires is None else f"{key.expires:%Y-%m-%d %H:%M}Z"
        scopes, project = ",".join(key.scopes), key.project or "*"
        rows.append((key.id, key.state, scopes, project, expires, key.name))
    print_rows(("ID", "STATE", "SCOPES", "PROJECT", "EXPIRES", "NAME"), rows)


@app.command(epilog=example("rprime keys revoke ID --file keys.json"))
def revoke(
    key_id: Annotated[str, Argument(metavar="ID", help="As `rprime keys list` shows it.")],
    *,
    file: File,
) -> None:
    """Revoke a key for good: a service refuses it from its next request on."""
    import structlog

    from rprime.auth import keys
    from rprime.server import logs

    logs.configure()
    try:
        with refusing(keys.KeyFileError):
            revoked = keys.revoke(file, key_id)
    except keys.UnknownKeyError:
        refuse("no key has this id; rprime keys list shows them")
    if revoked is None:
        say(f"key {key_id} was revoked before")
    else:
        structlog.get_logger().info("key_revoked", **_described(file, revoked))


def _described(file: Path, key: "ApiKey") -> dict[str, Any]:
    """Say who changed which key; its name may name people."""
    described = key.model_dump(mode="json", include={"scopes", "project", "expires"})
    user = os.environ.get("SUDO_USER") or os.environ.get("USER")
    return {"key": key.id, **described, "file": str(file), "uid": os.getuid(), "user": user}


def _valid(option: str, kind: Any, value: str | None) -> Any:  # noqa: ANN401 - of any kind
    from pydantic import TypeAdapter, ValidationError

    from rprime.problems.problem import error_sentence

    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as exc:
        refuse(error_sentence(exc.errors()[0], option))


def _duration(text: str) -> timedelta | None:
    if text == "never":
        return None
    match = re.fullmatch(r"([1-9]\d{0,4})([hdw])", text)
    if match is None:
        refuse("--expires is a number of hours, days or weeks, such as 12h, 90d or 4w; or never")
    unit = {"h": "hours", "d": "days", "w": "weeks"}[match[2]]
    return timedelta(**{unit: int(match[1])})
