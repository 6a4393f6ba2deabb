"""Options that several commands share."""

import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from rprime.report.formats import FORMATS


class OnServiceError(StrEnum):
    """What an outage of the service means for the job."""

    FAIL = "fail"
    WARN = "warn"


class ServiceOptions(NamedTuple):
    """The service that is asked, and how patiently."""

    url: str
    key: str | None
    timeout: float
    retries: int
    on_error: OnServiceError

    @classmethod
    def of(cls, url: str | None, *others: Any) -> "ServiceOptions | None":  # noqa: ANN401 (fields)
        """Return the options; None without an address."""
        return cls(url, *others) if url else None


_SERVICE = "Service"
_OUTPUT = "Output"

Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        envvar="RPRIME_SERVER",
        show_envvar=True,
        help="Ask this service; default: evaluate here.",
        rich_help_panel=_SERVICE,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="RPRIME_KEY",
        show_envvar=True,
        help="A key of `rprime keys create`.",
        rich_help_panel=_SERVICE,
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        min=0.001,
        help="Seconds to wait for an answer, each time.",
        rich_help_panel=_SERVICE,
    ),
]
Retries = Annotated[
    int,
    typer.Option(
        "--retries",
        min=0,
        help="How often to ask again where the service is busy or out of reach.",
        rich_help_panel=_SERVICE,
    ),
]
OnError = Annotated[
    OnServiceError,
    typer.Option(
        "--on-service-error",
        help="Where the service gives no answer: fail ends with 4, warn says so and ends with 0.",
        rich_help_panel=_SERVICE,
    ),
]
TableOnly = Annotated[
    bool,
    typer.Option(
        "--table-only",
        help="Send the table without the items; comparisons are unpaired then.",
        rich_help_panel=_SERVICE,
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="Count the items where they lie, and evaluate the table: duckdb, "
        "dask://host:port, spark or spark://host:port.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAME=COLUMN,...",
        help="Read these columns alone, and what they are called in the files, as "
        "y_true=label,y_pred=prediction.",
    ),
]
Gates = Annotated[
    Path | None,
    typer.Option(
        "--gates", metavar="FILE", help="The rules, YAML or JSON: see `rprime gates-schema`."
    ),
]
Request = Annotated[
    Path | None,
    typer.Option(
        "--request",
        metavar="FILE",
        help="Further members of the request, YAML or JSON, such as `indices` or `confidence`.",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="End with 3 where the gate is inconclusive.")
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print the whole answer as JSON.", rich_help_panel=_OUTPUT),
]
JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--json-file",
        metavar="FILE",
        help="Write the whole answer as JSON to this file.",
        rich_help_panel=_OUTPUT,
    ),
]


Annotations = Annotated[
    bool,
    typer.Option(
        "--annotations",
        help="Print what failed as annotations of GitHub Actions.",
        rich_help_panel=_OUTPUT,
    ),
]


def with_report_files(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each rendering; the command takes their paths by name as `files`."""
    signature = inspect.signature(command)
    options = [
        inspect.Parameter(
            entry.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                Path | None,
                typer.Option(
                    f"--{entry.name}",
                    metavar="FILE",
                    help=f"Write {entry.words} to this file.",
                    rich_help_panel=_OUTPUT,
                ),
            ],
        )
        for entry in FORMATS
    ]

    @wraps(command)
    def wrapped(**given: Any) -> None:  # noqa: ANN401 (the options of any command)
        files = {option.name: given.pop(option.name) for option in options}
        command(**given, files=files)

    others = [each for each in signature.parameters.values() if each.name != "files"]
    # Typer reads the options from the signature.
    wrapped.__signature__ = signature.replace(  # type: ignore[attr-defined] # inspect reads it
        parameters=[*others, *options]
    )
    return wrapped
