"""From files of columns to what the core takes: for a command that reads its own files."""

from typing import IO, NamedTuple

from rprime import evidence
from rprime.application.request import EvaluationRequest, EvidenceErrorsAsProblems, validate_request
from rprime.evidence import Bounds, Kind
from rprime.settings import Limits

_BOUNDLESS = 2**62
"""Bytes: whose own files they are may spend all the memory on them."""


class Source(NamedTuple):
    """An open file of columns.

    Parameters
    ----------
    kind
        Of body.
    body
        Of the file.
    complete
        Whether it has true labels; else its predictions are for the items of another file.
    """

    kind: Kind
    body: IO[bytes]
    complete: bool = True


def read_files_request(
    candidate: Source, request: bytes, limits: Limits, baseline: Source | None = None
) -> EvaluationRequest:
    """Read a request whose items are columns of files.

    Parameters
    ----------
    candidate
        Read to its end, or as its kind needs it.
    request
        The other members of the request, a JSON object; b"" for none.
    limits
        How many classes there may be; files may be as large as they are.
    baseline
        What it is compared with.

    Raises
    ------
    Problem
        400 if a file cannot be read, 422 if it cannot be evaluated.
    """
    bounds = Bounds(classes=limits.sparse_classes, inflated=_BOUNDLESS, depth=limits.json_depth)
    with EvidenceErrorsAsProblems():
        asked = evidence.ask(request, bounds)
        mere = None if baseline is None or baseline.complete else baseline[:2]
        document = evidence.read_columns(*candidate[:2], asked, bounds, _hold, predictions=mere)
        if baseline is not None and baseline.complete:
            other = evidence.read_columns(*baseline[:2], evidence.ask(b"", bounds), bounds, _hold)
            other.pointer = "/baseline"
            document.names += ("baseline",)
            document.rest["baseline"] = {}
            document.inner["baseline"] = other
    return validate_request(document, limits)


def _hold(_size: int) -> None:
    """Keep whatever there is."""
