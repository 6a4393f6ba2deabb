"""How a command ends: the status says what happened, so that no outage reads as a bad model."""

import errno
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, NoReturn

from typer import Exit, echo

from rprime.core.progress import WATCH

if TYPE_CHECKING:
    from rprime.client.errors import ProblemError
    from rprime.problems.problem import Problem


class Status(IntEnum):
    """What a CI job branches on."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    INCONCLUSIVE = 3
    UNREACHABLE = 4
    NOT_JUDGED = 5
    """The gate could not be judged, which says nothing about the model."""
    DEFECT = 70
    """Of sysexits.h; the 1 that Python gives would read as a failed gate."""
    UNREAD = 141
    """What a shell says of a program that SIGPIPE ended: nobody reads its output."""


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Why the output cannot be written."""


def say(text: str) -> None:
    """Speak to people, beside the output."""
    put_error(f"rprime: {text}\n")


def put_error(text: str) -> None:
    """Write to standard error; where nobody reads it, the status keeps its meaning."""
    try:
        echo(text, err=True, nl=False)
    except BrokenPipeError:
        # Click would end with 1, which means that the gate failed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


class Refusal(Exit):
    """The end because of what was asked or given; `why` says it in words."""

    def __init__(self, why: str) -> None:
        super().__init__(Status.USAGE)
        self.why = why


def refuse(why: str) -> NoReturn:
    """End because of what was asked or given."""
    say(why)
    raise Refusal(why)


@contextmanager
def refusing(*kinds: type[Exception]) -> Iterator[None]:
    """End because of an error of these kinds, in its words."""
    try:
        yield
    except kinds as error:
        refuse(str(error))


@contextmanager
def attempting(what: str) -> Iterator[None]:
    """End because the system refuses what is attempted, such as `read FILE`."""
    try:
        yield
    except OSError as error:
        refuse(f"cannot {what}: {error.strerror or error}")


PlaceOf = Callable[[str], str]
"""Returns the place in a file that a JSON pointer names, or ""."""


def refuse_problem(
    problem: "ProblemError", source: str = "", hint: str = "", place_of: PlaceOf | None = None
) -> NoReturn:
    """End because the request is wrong; say where, in which files (`source`), and what to try."""
    say(f"{source}{': ' if source else ''}{problem.title}. {problem.detail}")
    for violation in problem.errors:
        place = place_of(violation.pointer) if place_of else ""
        put_error(f"  {place and f'{place}: '}{violation.pointer or '/'}: {violation.detail}\n")
    if any(violation.code == "needs_project" for violation in problem.errors):
        hint = "name the project by --project"
    if hint:
        put_error(f"  {hint}\n")
    raise Exit(Status.USAGE)


def refuse_here(problem: "Problem", files: str = "", place_of: PlaceOf | None = None) -> NoReturn:
    """End because of a problem that was found here, in these files of columns."""
    from rprime.client.errors import ProblemError

    of_columns = {"unknown_column", "missing_column"}
    hint = "" if of_columns.isdisjoint(error.code for error in problem.errors) else _COLUMNS
    refuse_problem(ProblemError(problem.document(local=True)), files, hint, place_of)


_COLUMNS = (
    "`columns` is the option --columns y_true=label,y_pred=prediction\n"
    "  a confusion matrix has the names of its classes in the first line and the first column:\n"
    "  ,cat,dog and cat,5,1 and dog,2,7"
)


@contextmanager
def telling() -> Iterator[None]:
    """End with the status of what happened; the 1 of Python would read as a failed gate."""
    try:
        yield
    except SystemExit as end:
        # So end click and rich, with 1, where nobody reads; a wrong usage keeps its status.
        if isinstance(end.__context__, BrokenPipeError):
            _leave_output()
            usage = end.__context__.__context__
            raise SystemExit(getattr(usage, "exit_code", Status.UNREAD)) from None
        raise
    except Exception as error:  # noqa: BLE001 (here the process ends)
        if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
            _leave_output()
            say(f"cannot write the output: {error.strerror}")
            raise SystemExit(Status.USAGE) from None
        traceback.print_exc()
        say("this is a defect of rprime and says nothing about the model; please report it")
        raise SystemExit(Status.DEFECT) from None


def open_streams() -> None:
    """Open the standard streams that are closed, as by `>&-`, to nobody.

    Else a file of the store takes their place, and gets what is printed.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w"))


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show at a terminal that long work goes on, and how far its parts are."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn

    share = TaskProgressColumn(text_format_no_percentage="{task.completed:,.0f}")
    columns = ("{task.description}", BarColumn(), share)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {what: bars.add_task(what, total=None)}

        def show(part: str, done: float, total: float | None) -> None:
            if part not in tasks:
                tasks[part] = bars.add_task(part)
            bars.update(tasks[part], completed=done, total=total)

        token = WATCH.set(show)
        try:
            yield
        finally:
            WATCH.reset(token)


def put(text: bytes) -> None:
    """Write to standard output as UTF-8; a reader who has seen enough is no failure."""
    try:
        sys.stdout.buffer.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_output()


def _leave_output() -> None:
    """Write to nobody from here on: Python flushes once more at its end, and would fail there."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
