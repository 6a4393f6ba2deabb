"""Framing: bounds on the bytes of a request that are not content."""

from typing import NamedTuple, NoReturn

from rprime.problems.problem import Problem
from rprime.server.deadlines import Phase

_MAX_TARGET_BYTES = 65_535
"""The parser of targets counts in 16 bits."""
_LINE_BYTES = len(b"  HTTP/1.1\r\n") + len(b"\r\n")
"""What the first and the last line of a head have besides the method and the target."""
_FIELD_BYTES = len(b": \r\n")


class Rejection(NamedTuple):
    """The problem of a request that cannot be read, and the reason that the metrics count."""

    problem: Problem
    reason: str


MALFORMED = Rejection(Problem("bad_request"), "malformed")
LARGE_HEAD = Rejection(Problem("head_too_large"), "head")
LARGE_FRAMING = Rejection(
    Problem("bad_request", "The chunks of the body have more framing than content."), "malformed"
)
TRAILERS = Rejection(
    Problem("bad_request", "The body has trailer fields; send them as headers."), "trailers"
)


class FramingError(Exception):
    """Stops the parser, which calls `send_400_response`."""


class FramingLimits:
    """Count the bytes of the head and of the chunk framing of one request.

    Parameters
    ----------
    limit
        Bytes, for the head and for the framing of the body alike.

    Attributes
    ----------
    rejection
        Why the parser stopped.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head = 0
        self._buffered = 0
        self.rejection = MALFORMED

    def reset(self) -> None:
        """Forget what was counted, for the next phase of a request."""
        self._head = 0
        self._buffered = 0

    def count_target(self, size: int) -> None:
        """Count a part of the target."""
        self._count_head(size)

    def count_field(self, phase: Phase, size: int) -> None:
        """Count a header field.

        Raises
        ------
        FramingError
            If the head is too large or the field is a trailer.
        """
        if phase == "body":
            # uvicorn would append it to the headers that the application reads, which RFC 9110,
            # 6.5.1, forbids: a trailer comes after the checks of a proxy.
            self._stop(TRAILERS)
        self._count_head(size + _FIELD_BYTES)

    def complete_head(self, method: int, target: int) -> None:
        """Count the first and the last line of a head.

        Raises
        ------
        FramingError
            If the head or its target is too large.
        """
        self._count_head(method + _LINE_BYTES)
        if target > _MAX_TARGET_BYTES:
            self._stop(LARGE_HEAD)

    def check_read(self, phase: Phase, size: int, *, has_content: bool) -> Rejection | None:
        """Count bytes that the parser may have buffered: it reports only complete fields.

        Parameters
        ----------
        phase
            After the bytes were parsed.
        size
            How many bytes were read.
        has_content
            Whether the parser found a part of the body in them.
        """
        if phase == "head" or (phase == "body" and not has_content):
            self._buffered += size
            if self._buffered > self._limit:
                return LARGE_HEAD if phase == "head" else LARGE_FRAMING
        return None

    def _count_head(self, size: int) -> None:
        self._head += size
        if self._head > self._limit:
            self._stop(LARGE_HEAD)

    def _stop(self, rejection: Rejection) -> NoReturn:
        self.rejection = rejection
        raise FramingError
