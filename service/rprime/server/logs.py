"""Logging: one event per line on standard error."""

import logging
import sys
import traceback
from collections.abc import Iterator
from typing import TextIO

import structlog

_log = structlog.get_logger(__name__)


def configure() -> None:
    """Send the log of the service and of its libraries to standard error.

    A terminal gets formatted lines; anything else gets JSON objects.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering()],
        )
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # At INFO httpx logs each request, uvicorn what the command has printed already, and alembic
    # its plugins.
    for verbose in ("alembic", "httpx", "uvicorn"):
        logging.getLogger(verbose).setLevel(logging.WARNING)


def log_request(method: str, route: str, status: int, seconds: float, request_id: str) -> None:
    """Log a request that was answered."""
    _log.info(
        "request",
        method=method,
        route=route,
        status=status,
        milliseconds=round(seconds * 1000, 3),
        request_id=request_id,
    )


def _rendering() -> list[structlog.typing.Processor]:
    if sys.stderr.isatty():
        return [structlog.dev.ConsoleRenderer(exception_formatter=_show)]
    shown = structlog.processors.ExceptionRenderer(lambda raised: "".join(traced(raised[1])))
    return [shown, structlog.processors.JSONRenderer()]


def _show(sink: TextIO, raised: structlog.typing.ExcInfo) -> None:
    sink.write("\n" + "".join(traced(raised[1])).rstrip())


def traced(error: BaseException) -> Iterator[str]:
    """Yield the types and places of an exception and of those before it.

    No messages, as in "invalid literal for int(): 'what was sent'", and no values of variables.
    """
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield from traced(before)
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from traced(one)
    yield f"{type(error).__module__}.{type(error).__qualname__}\n"
    yield from traceback.format_tb(error.__traceback__)
