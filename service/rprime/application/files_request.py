"""Read local files of columns into evaluation requests, for the command line."""

from collections.abc import Mapping
from typing import IO, Any, NamedTuple

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
    """

    kind: Kind
    body: IO[bytes]


def read_files_request(
    candidate: Source,
    request: bytes,
    limits: Limits,
    baseline: Source | None = None,
    *,
    chosen: Mapping[str, str],
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
        The file of the baseline, if any: evidence of its own, or other predictions.
    chosen
        The columns to read and what they are called in the files; empty: all.

    Raises
    ------
    Problem
        400 if a file cannot be read, 422 if it cannot be evaluated.
    """
    bounds = Bounds(classes=limits.sparse_classes, inflated=_BOUNDLESS, depth=limits.json_depth)
    with EvidenceErrorsAsProblems():
        asked = evidence.ask(request, bounds)
        document = evidence.read_columns(
            *candidate, asked, bounds, _hold, baseline=baseline, chosen=chosen
        )
    return validate_request(document, limits)


def read_file_columns(
    source: Source, limits: Limits, *, chosen: Mapping[str, str]
) -> dict[str, Any]:
    """Read the columns of a file as the members of a JSON request.

    Parameters
    ----------
    source
        The file: evidence, or predictions alone.
    limits
        The limit of classes.
    chosen
        The columns to read and what they are called in the file; empty: all.

    Raises
    ------
    Problem
        400 if the file cannot be read, 422 if its columns have no place in JSON.
    """
    bounds = Bounds(classes=limits.sparse_classes, inflated=_BOUNDLESS, depth=limits.json_depth)
    with EvidenceErrorsAsProblems():
        return evidence.read_members(*source, bounds, _hold, chosen)


def _hold(_size: int) -> None:
    """Accept any size."""
