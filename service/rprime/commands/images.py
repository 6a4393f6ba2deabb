"""Images that a command writes."""

from collections.abc import Callable
from pathlib import Path

from rprime.commands.exit_status import refuse
from rprime.report.figures.sheet import (
    Form,
    NoFiguresError,
    NothingToDrawError,
    TooMuchToDrawError,
    form_of,
)


def known_form(output: Path) -> Form:
    """Return the image format that the name of a file asks for, or end."""
    try:
        return form_of(output)
    except ValueError as error:
        refuse(str(error))


def write_image(output: Path, draw: Callable[[], bytes]) -> None:
    """Draw into a file, or end and say why not."""
    try:
        output.write_bytes(draw())
    except (NoFiguresError, NothingToDrawError, TooMuchToDrawError) as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot write {output}: {error.strerror}")
