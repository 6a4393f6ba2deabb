"""Logging: one event per line on standard error."""

import logging
import sys
from typing import TextIO

import orjson
import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

from rprime.server.failures import traced
from rprime.server.request_record import current_request


def configure() -> None:
    """Send the log of the service and of its libraries to standard error.

    A terminal gets formatted lines; anything else gets JSON objects.
    """
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    shared: list[Processor] = [add_request, structlog.stdlib.add_log_level, stamp]
    if sys.stderr.isatty():
        # A path can have control characters; the terminal gets their escapes.
        console = structlog.dev.ConsoleRenderer(exception_formatter=_show, repr_native_str=True)
        rendering: list[Processor] = [console]
    else:
        rendering = [
            structlog.processors.ExceptionRenderer(lambda raised: "".join(traced(raised[1]))),
            structlog.processors.JSONRenderer(
                lambda e, **_: orjson.dumps(e, default=repr).decode()
            ),
        ]
    # Without the logging of the standard library, through which an event takes twice as long.
    structlog.configure(
        processors=[*shared, *rendering], logger_factory=structlog.WriteLoggerFactory(sys.stderr)
    )
    handler = logging.StreamHandler(sys.stderr)
    last = [ProcessorFormatter.remove_processors_meta, *rendering]
    handler.setFormatter(ProcessorFormatter(foreign_pre_chain=[_name, *shared], processors=last))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # At INFO httpx logs each request, uvicorn what the command has printed already, and alembic
    # its plugins. Requests that uvicorn warns of are logged where they are rejected.
    levels = {"alembic": logging.WARNING, "httpx": logging.WARNING, "uvicorn": logging.ERROR}
    for verbose, level in levels.items():
        logging.getLogger(verbose).setLevel(level)


def add_request(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Add the ids and the client of the request during which something happened."""
    record = current_request.get()
    return event if record is None else {**record.identity(), **event}


def _name(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Name the event of a library after it, since libraries log sentences."""
    library = event["_record"].name.partition(".")[0]
    return {**event, "event": library, "detail": event["event"]}


def _show(sink: TextIO, raised: ExcInfo) -> None:
    sink.write("\n" + "".join(traced(raised[1])).rstrip())
