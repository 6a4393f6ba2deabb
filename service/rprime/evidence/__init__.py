"""The only reader of foreign bytes: what a request says, as confusion tables and items."""

from rprime.evidence.columns import Hold, Question
from rprime.evidence.document import Document, parse, parse_batch
from rprime.evidence.faults import Fault, InvalidEvidenceError, TooLargeError, UnreadableBodyError
from rprime.evidence.formats import (
    FORMATS,
    MEDIA_TYPES,
    SUFFIXES,
    BodyFormat,
    Bounds,
    Kind,
    ask,
    read_columns,
)
from rprime.evidence.matrices import read_matrices
from rprime.evidence.pasted import read_pasted
from rprime.evidence.reader import Evidence, Limits, read, read_baseline

__all__ = [
    "FORMATS",
    "MEDIA_TYPES",
    "SUFFIXES",
    "BodyFormat",
    "Bounds",
    "Document",
    "Evidence",
    "Fault",
    "Hold",
    "InvalidEvidenceError",
    "Kind",
    "Limits",
    "Question",
    "TooLargeError",
    "UnreadableBodyError",
    "ask",
    "parse",
    "parse_batch",
    "read",
    "read_baseline",
    "read_columns",
    "read_matrices",
    "read_pasted",
]
