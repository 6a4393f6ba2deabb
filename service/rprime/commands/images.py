"""Images that a command writes."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rprime.commands.exit_status import refuse

if TYPE_CHECKING:
    from rprime.report.figures.sheet import Form

_FORMS: dict[str, Literal["svg", "png"]] = {".svg": "svg", ".png": "png"}


def form_of(output: Path) -> "Form":
    """Return the image format that the name of a file asks for."""
    form = _FORMS.get(output.suffix.lower())
    if form is None:
        refuse(f"{output}: a figure is .svg or .png")
    return form


def write_image(output: Path, draw: Callable[[], bytes]) -> None:
    """Draw into a file, or end and say why not."""
    from rprime.report.figures.sheet import NoFiguresError, TooMuchToDrawError

    try:
        output.write_bytes(draw())
    except (NoFiguresError, TooMuchToDrawError) as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot write {output}: {error.strerror}")
