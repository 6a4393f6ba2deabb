"""Refusals: answers that the server gives by itself, without asking the application."""

import secrets
from collections.abc import Iterable

import orjson
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from rprime.problems.problem import MEDIA_TYPE, Problem
from rprime.server.headers import NO_CONTENT_AT_ALL, REQUEST_ID, SAFE_ID, SECURITY

_CLOSE = (b"connection", b"close")


def request_id_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Give the id under which a request is answered: its own, if that is safe to repeat."""
    given = [value for name, value in headers if name.lower() == REQUEST_ID]
    # Of several the last.
    for value in reversed(given):
        if SAFE_ID.fullmatch(value):
            return value
    return secrets.token_hex(16).encode()


class RawResponse:
    """A problem as an answer, of which only the id of the request is still missing.

    Parameters
    ----------
    problem
        With headers of its own.
    """

    def __init__(self, problem: Problem) -> None:
        document = orjson.dumps(problem.document("\n"))
        self._before, self._after = document.split(orjson.dumps("\n")[1:-1])
        own = ((name.lower().encode(), value.encode()) for name, value in problem.headers.items())
        headers = ((b"content-type", MEDIA_TYPE.encode()), NO_CONTENT_AT_ALL, *SECURITY, *own)
        self.status = problem.status
        self._head = STATUS_LINE[problem.status] + _lines(headers)

    def written(
        self, request_id: bytes, headers: Iterable[tuple[bytes, bytes]], *, closing: bool
    ) -> bytes:
        """Write it.

        Parameters
        ----------
        request_id
            Of the request.
        headers
            What the server adds to every answer.
        closing
            Whether it is the last one on its connection.
        """
        length = len(self._before) + len(request_id) + len(self._after)
        more = _lines((*headers, _CLOSE) if closing else headers)
        return b"%b%bcontent-length: %d\r\nx-request-id: %b\r\n\r\n%b%b%b" % (
            *(self._head, more, length, request_id),
            *(self._before, request_id, self._after),
        )


def _lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


class PeekedRequest:
    """A look at bytes that came over a connection, to see whether they are one whole request.

    It costs a tenth of what it costs to begin with a request, and leaves nothing behind.

    Parameters
    ----------
    data
        From where a request begins.
    """

    def __init__(self, data: bytes) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.keep_alive = False
        self._begun = self._complete = 0
        self._has_head = self._has_trailers = False
        self._parser = HttpRequestParser(self)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._complete = 0
        # The two hold each other, and many of them are work for the collector of garbage.
        del self._parser

    @property
    def is_whole(self) -> bool:
        """Whether they are one request without trailers, and no more."""
        return self._begun == self._complete == 1 and not self._has_trailers

    # What the parser says

    def on_message_begin(self) -> None:
        """Count it."""
        self._begun += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep it, unless it is a trailer."""
        self._has_trailers = self._has_head
        if not self._has_head:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Ask whether the client will go on."""
        self._has_head = True
        self.keep_alive = (
            self._parser.get_http_version() != "1.0" and self._parser.should_keep_alive()
        )

    def on_message_complete(self) -> None:
        """Count it."""
        self._complete += 1
