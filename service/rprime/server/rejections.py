"""Rejections: responses that the server writes without the application."""

import secrets
from collections.abc import Iterable

import orjson
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from rprime.problems.problem import MEDIA_TYPE, Problem
from rprime.server.headers import CLOSE, CSP_NONE, REQUEST_ID, SAFE_ID, SECURITY


def request_id_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the id of a request: its own if that is safe to repeat, else a new one."""
    found = [value for name, value in headers if name.lower() == REQUEST_ID]
    # The last of several.
    safe = next(filter(SAFE_ID.fullmatch, reversed(found)), None)
    return safe or secrets.token_hex(16).encode()


class RawResponse:
    """A problem as a response that lacks only the id of the request.

    Parameters
    ----------
    problem
        The problem, with headers of its own.
    """

    def __init__(self, problem: Problem) -> None:
        document = orjson.dumps(problem.document("\n"))
        self._before, self._after = document.split(orjson.dumps("\n")[1:-1])
        own = ((name.lower().encode(), value.encode()) for name, value in problem.headers.items())
        headers = ((b"content-type", MEDIA_TYPE.encode()), CSP_NONE, *SECURITY, *own)
        self.status = problem.status
        self._head = STATUS_LINE[problem.status] + _lines(headers)

    def encode(
        self, request_id: bytes, headers: Iterable[tuple[bytes, bytes]], *, closing: bool
    ) -> bytes:
        """Return the bytes of the response.

        Parameters
        ----------
        request_id
            The id of the request.
        headers
            The default headers of the server.
        closing
            Whether the connection closes after it.
        """
        length = len(self._before) + len(request_id) + len(self._after)
        more = _lines((*headers, CLOSE) if closing else headers)
        return b"%b%bcontent-length: %d\r\nx-request-id: %b\r\n\r\n%b%b%b" % (
            *(self._head, more, length, request_id),
            *(self._before, request_id, self._after),
        )


def _lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


class PeekedRequest:
    """The head of a request that is parsed without its connection.

    It costs a tenth of what a request costs before the application.

    Parameters
    ----------
    data
        Bytes that start with a request.
    """

    def __init__(self, data: bytes) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.keep_alive = False
        self._started = self._completed = 0
        self._has_head = self._has_trailers = False
        self._parser = HttpRequestParser(self)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._completed = 0
        # Parser and callbacks refer to each other; many such cycles cost time in the collector.
        del self._parser

    @property
    def is_complete(self) -> bool:
        """Whether the bytes are exactly one request, without trailers."""
        return self._started == self._completed == 1 and not self._has_trailers

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        """Count the start of a request."""
        self._started += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header, and note a trailer."""
        self._has_trailers = self._has_head
        if not self._has_head:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Note whether the client keeps the connection."""
        self._has_head = True
        self.keep_alive = (
            self._parser.get_http_version() != "1.0" and self._parser.should_keep_alive()
        )

    def on_message_complete(self) -> None:
        """Count the end of a request."""
        self._completed += 1
