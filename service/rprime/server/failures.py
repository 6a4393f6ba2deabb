"""What the log says of an exception: kinds and places, but no values."""

import traceback
from collections.abc import Iterator
from pathlib import Path

import rprime

_PACKAGE = str(Path(rprime.__file__).parent)


def traced(error: BaseException) -> Iterator[str]:
    """Yield the types and places of an exception and of those before it.

    No messages, as in "invalid literal for int(): 'what was sent'", and no values of variables.
    """
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield from traced(before)
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from traced(part)
    yield f"{type(error).__module__}.{type(error).__qualname__}\n"
    yield from traceback.format_tb(error.__traceback__)


def where(error: BaseException) -> dict[str, str]:
    """Return the kind of an exception, and the place in this package that raised it."""
    frames = traceback.walk_tb(error.__traceback__)
    package_frames = [(f, line) for f, line in frames if f.f_code.co_filename.startswith(_PACKAGE)]
    place = (
        f"{package_frames[-1][0].f_globals['__name__']}:{package_frames[-1][1]}"
        if package_frames
        else "outside"
    )
    kind = type(error)
    return {"exception_type": f"{kind.__module__}.{kind.__qualname__}", "place": place}
