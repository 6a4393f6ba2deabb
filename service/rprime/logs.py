"""The log of the process: one event a line, on standard error."""

import logging
import sys

import structlog

_log = structlog.get_logger(__name__)


def configure() -> None:
    """Send the log of the service and of its libraries to standard error.

    For a person at a terminal the lines are laid out; for a machine each is a JSON object.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering()],
        )
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # httpx reports each request at INFO, uvicorn what the command has said already, alembic
    # its plugins.
    for talkative in ("alembic", "httpx", "uvicorn"):
        logging.getLogger(talkative).setLevel(logging.WARNING)


def log_request(method: str, route: str, status: int, seconds: float, request_id: str) -> None:
    """Write a line about a request that was answered."""
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
        # Its own way to show an exception has the values of all variables, keys and bodies too.
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(exception_formatter=plain)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
