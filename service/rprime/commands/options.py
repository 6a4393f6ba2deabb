"""Options that several commands share."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from typer import Exit, Option

from rprime.commands.exit_status import Status, say
from rprime.report.formats import FORMATS

if TYPE_CHECKING:
    from rprime.settings import Settings

_service = partial(Option, rich_help_panel="Service")
_output = partial(Option, rich_help_panel="Output")

OnError = Annotated[
    Literal["fail", "warn"],
    _service(
        help="Where the service gives no answer: fail ends with 4, warn says so and ends with 0."
    ),
]


class ServiceOptions(NamedTuple):
    """The service that is asked, and how patiently."""

    url: str
    key: str | None
    timeout: float
    retries: int
    on_service_error: OnError | None = None

    @classmethod
    def of(cls, server: str | None, **others: Any) -> "ServiceOptions | None":  # noqa: ANN401 (by name)
        """Return the options; None without an address."""
        return cls(server, **others) if server else None


TableOnly = Annotated[
    bool,
    _service(
        "--table-only", help="Send the table without the items; comparisons are unpaired then."
    ),
]
EngineOption = Annotated[
    str | None,
    Option(
        help="Count the items where they lie, and evaluate the table: duckdb, "
        "dask, dask://host:port, spark or spark://host:port."
    ),
]
ColumnsOption = Annotated[
    str | None,
    Option(
        metavar="NAME=COLUMN,...",
        help="Read only these columns, and what they are called in the files, as "
        "y_true=label,y_pred=prediction.",
    ),
]
CountOption = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="The column with the number of items of each pair of y_true and y_pred: each row of "
        "the file is such a pair, not an item.",
    ),
]
SlicesOption = Annotated[
    list[str] | None,
    Option(
        "--slice",
        metavar="COLUMN",
        help="Report the slices of this column of the file, too: region; "
        "age_band=cut(age, 18, 30, 50); cut(age, 3) for 3 parts of equal size. Columns slice:NAME "
        "need not be named. Can be repeated.",
    ),
]
CrossingsOption = Annotated[
    list[str] | None,
    Option(
        "--crossing",
        metavar="NAME,NAME",
        help="Report the combined values of two or three slices, too, as region,device; can be "
        "repeated.",
    ),
]
PopulationOption = Annotated[
    str | None,
    Option(
        metavar="FILE|JSON|uniform",
        help="What the numbers are about: the share of each class, or the `population` of a "
        "request, as YAML or JSON; uniform: equal shares.",
    ),
]
CustomOption = Annotated[
    list[str] | None,
    Option(
        metavar="NAME=EXPR",
        help="Add an index of your own, custom.NAME, as cost=\"cells['fraud', 'ok'] / items\"; can "
        "be repeated.",
    ),
]
GatesOption = Annotated[
    Path | None, Option(metavar="FILE", help="The rules, YAML or JSON: see `rprime gates-schema`.")
]
RequestOption = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="Further members of the request, YAML or JSON, such as `indices` or `confidence`.",
    ),
]
Strict = Annotated[
    bool,
    Option(
        "--strict",
        help="End with 3 where a result is undecided, the gate is inconclusive, or there is none.",
    ),
]
AsJson = Annotated[bool, _output("--json", help="Print the whole answer as JSON.")]
Annotations = Annotated[
    bool, _output("--annotations", help="Print what failed as annotations of GitHub Actions.")
]


def example(command: str) -> str:
    """Return what stands below the help of a command."""
    return f"Example: {command}"


def expanded(
    name: str, options: Mapping[str, tuple[Any, Any]], gather: Callable[..., object]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace a parameter of a command by options, by type and default, which `gather` takes."""
    added = [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for option, (kind, default) in options.items()
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def wrapped(**arguments: Any) -> None:  # noqa: ANN401 (the options of any command)
            values = {option: arguments.pop(option) for option in options}
            command(**arguments, **{name: gather(**values)})

        signature = inspect.signature(command)
        others = [each for each in signature.parameters.values() if each.name != name]
        # Typer reads the options from the signature.
        wrapped.__signature__ = signature.replace(  # type: ignore[attr-defined] # inspect reads it
            parameters=[*others, *added]
        )
        return wrapped

    return decorate


def _file(words: str, name: str) -> Any:  # noqa: ANN401 (an annotation)
    option = _output(f"--{name}", metavar="FILE", help=f"Write {words} to this file.")
    return Annotated[Path | None, option]


class Output(NamedTuple):
    """What to print and write."""

    changed: Path | None
    """Where to write the items whose prediction changed, as CSV."""
    as_json: bool
    json_file: Path | None
    """Where to write the JSON, whatever is printed."""
    annotations: bool
    """Beside the JSON they are printed on standard error."""
    files: Mapping[str, Path | None]
    """By the name of a format, where to write it; None: not asked for."""


with_output = expanded(
    "output",
    {
        "as_json": (AsJson, False),
        "json_file": (_file("the whole answer as JSON", "json-file"), None),
        "annotations": (Annotations, False),
        "changed": (
            _file("the items whose prediction changed, by item_id, as CSV", "changed"),
            None,
        ),
        **{entry.name: (_file(entry.words, entry.name), None) for entry in FORMATS},
    },
    lambda changed, as_json, json_file, annotations, **files: Output(
        changed, as_json, json_file, annotations, files
    ),
)
"""Add the options of the output, one for each rendering; the command takes them as `output`."""


def connection(otherwise: str) -> dict[str, tuple[Any, Any]]:
    """Return the options of a connection to a service; `otherwise`: what is done without one."""
    variable = partial(_service, show_envvar=True)
    explanation = f"Ask this service; default: {otherwise}."
    server = variable("--server", metavar="URL", envvar="RPRIME_SERVER", help=explanation)
    key = variable(envvar="RPRIME_KEY", help="A key of `rprime keys create`.")
    timeout = _service(min=0.001, help="Seconds to wait for an answer, each time.")
    again = "How often to ask again where the service is busy or out of reach."
    return {
        "server": (Annotated[str | None, server], None),
        "key": (Annotated[str | None, key], None),
        "timeout": (Annotated[float, timeout], 60.0),
        "retries": (Annotated[int, _service(min=0, help=again)], 3),
    }


with_service = expanded(
    "service",
    {**connection("evaluate here"), "on_service_error": (OnError, "fail")},
    ServiceOptions.of,
)
"""Add the options of a service; the command takes them as `service`, None without an address."""


def settings(**overrides: Any) -> "Settings":  # noqa: ANN401 (Pydantic types them)
    """Return the settings of the environment, or end and say which are wrong."""
    from pydantic import ValidationError

    from rprime.problems.problem import error_sentence
    from rprime.settings import Settings

    try:
        return Settings(**overrides)
    except ValidationError as exc:
        for error in exc.errors():
            places = [part + 1 for part in error["loc"] if isinstance(part, int)]
            parts = [part for part in error["loc"] if isinstance(part, str)]
            name = f"RPRIME_{'_'.join(parts).upper().removeprefix('RPRIME_')}"
            text = error_sentence(error, f"item {places[0]} of {name}" if places else name)
            say(text if name in text else f"{name}: {text}")
        raise Exit(Status.USAGE) from None
