"""Read local files of columns into evaluation requests, for the command line."""

from typing import IO, NamedTuple

from rprime import evidence
from rprime.application.request import EvaluationRequest, EvidenceErrorsAsProblems, validate_request
from rprime.evidence import Bounds, Kind
from rprime.settings import Limits

_BOUNDLESS = 2**62
"""Bytes; local files may use all memory."""


class Source(NamedTuple):
    """An open file of columns.

    Parameters
    ----------
    kind
        The kind of body, such as "csv".
    body
        The content of the file.
    complete
        Whether it has true labels; otherwise it has predictions for the items of another file.
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
        The file of the candidate, read to its end.
    request
        The other members of the request as a JSON object; b"" means none.
    limits
        The limit of classes; the size of files is not limited.
    baseline
        The file of the baseline, if any.

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
    """Accept any size."""
