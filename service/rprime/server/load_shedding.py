"""Load shedding: rejections of requests before they cost what a request costs."""

import socket
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import structlog

from rprime.server.admission import overloaded_problem
from rprime.server.metrics import OTHER
from rprime.server.rejections import PeekedRequest, RawResponse, request_id_of
from rprime.server.services import ServerServices

_MAX_PEEK = 64 * 1024
"""Bytes of a request that is rejected without a connection of its own."""

log = structlog.get_logger(__name__)
Headers = Iterable[tuple[bytes, bytes]]


class EarlyRejection(NamedTuple):
    """A response that the server writes by itself."""

    content: bytes
    keep_alive: bool


@cache
def _overloaded() -> RawResponse:
    """Return the rejection, made when the service knows its prefix."""
    return RawResponse(overloaded_problem())


def reject_early(
    data: bytes, shared: ServerServices, headers: Headers, *, closing: bool = False
) -> EarlyRejection | None:
    """Return the rejection of a complete POST request; None for anything else, such as a probe.

    Parameters
    ----------
    data
        The first bytes of a request.
    shared
        Has the metrics that count the rejection.
    headers
        Default headers of a response.
    closing
        Whether the connection closes even if the client would keep it.
    """
    if not data.startswith(b"POST "):
        return None
    peeked = PeekedRequest(data)
    if not peeked.is_complete:
        return None
    keep_alive = peeked.keep_alive and not closing
    request_id = request_id_of(peeked.headers)
    shared.admission.rejected["in_flight_requests"] += 1
    shared.metrics.observe_request("POST", OTHER, _overloaded().status, 0.0)
    if shared.log_requests:
        log.info(
            "request",
            method="POST",
            route=OTHER,
            status=_overloaded().status,
            milliseconds=0.0,
            bytes_in=len(data),
            request_id=request_id.decode(),
        )
    content = _overloaded().encode(request_id, headers, closing=not keep_alive)
    return EarlyRejection(content, keep_alive)


def reject_socket(accepted: socket.socket, shared: ServerServices, headers: Headers) -> bool:
    """Reject a request on a socket that has no protocol yet; return whether it was rejected."""
    try:
        data = accepted.recv(_MAX_PEEK, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        rejection = reject_early(data, shared, headers, closing=True)
        if rejection is None:
            return False
        # Unread bytes would reset the connection, and the response would be lost.
        accepted.recv(len(data))
        accepted.send(rejection.content)
    except OSError:
        return False
    accepted.close()
    return True
