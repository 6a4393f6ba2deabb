"""Framing: bounds on the bytes of a request that are not content."""

from typing import NamedTuple

from rprime.problems.problem import Problem

MAX_TARGET_BYTES = 65_535
"""The parser of targets counts in 16 bits."""
LINE_BYTES = len(b"  HTTP/1.1\r\n") + len(b"\r\n")
"""What the first and the last line of a head have besides the method and the target."""
FIELD_BYTES = len(b": \r\n")
"""What a header field has besides its name and value."""


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
