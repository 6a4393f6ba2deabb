"""Read column bodies into evaluation requests."""

import errno
from typing import IO

from rprime import evidence
from rprime.application.request import EvaluationRequest, EvidenceErrorsAsProblems, validate_request
from rprime.evidence import Bounds, ColumnsRequest, Hold, Kind, TooLargeError
from rprime.problems.problem import Problem
from rprime.settings import Limits


def parse_columns_request(request: bytes, limits: Limits) -> ColumnsRequest:
    """Read the JSON members that accompany columns.

    Parameters
    ----------
    request
        A JSON object; b"" means none.
    limits
        The limits of a request.

    Raises
    ------
    Problem
        400 or 422.
    """
    with EvidenceErrorsAsProblems():
        return evidence.ask(request, _bounds(limits))


def read_columns_request(
    kind: Kind, body: IO[bytes], columns_request: ColumnsRequest, limits: Limits, hold: Hold
) -> EvaluationRequest:
    """Read a request whose items are columns.

    Parameters
    ----------
    kind
        The kind of the body, such as "csv".
    body
        A stream that is read to its end.
    columns_request
        The other members of the request.
    limits
        The limits of a request.
    hold
        Called with the number of bytes that stay in memory.

    Raises
    ------
    Problem
        400 if the body cannot be read, 413 if it is too large, 422 if it cannot be evaluated, 503
        if the temporary folder is full.
    """
    try:
        with EvidenceErrorsAsProblems():
            document = evidence.read_columns(kind, body, columns_request, _bounds(limits), hold)
    except TooLargeError as error:
        raise Problem("body_too_large", str(error)) from None
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise Problem("overloaded", _FULL, headers={"Retry-After": "2"}) from None
    return validate_request(document, limits)


_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FULL = "The temporary folder of the service has no room for the body; send CSV or Arrow, or wait."


def _bounds(limits: Limits) -> Bounds:
    return Bounds(
        classes=limits.sparse_classes,
        inflated=limits.other_body_bytes,
        depth=limits.json_depth,
    )
