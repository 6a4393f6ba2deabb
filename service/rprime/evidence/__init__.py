"""Read the evidence of requests, the only untrusted bytes, into confusion tables and items."""

from rprime.evidence.columns import ColumnsRequest, Hold
from rprime.evidence.document import Document, parse, parse_batch
from rprime.evidence.errors import (
    EvidenceFault,
    InvalidEvidenceError,
    TooLargeError,
    UnreadableBodyError,
)
from rprime.evidence.formats import (
    FORMATS,
    MEDIA_TYPES,
    SUFFIXES,
    BodyFormat,
    Bounds,
    Kind,
    ask,
    read_columns,
    read_members,
)
from rprime.evidence.matrices import read_matrices
from rprime.evidence.pasted import read_pasted
from rprime.evidence.reader import ClassLimits, Evidence, read, read_baseline

__all__ = [
    "FORMATS",
    "MEDIA_TYPES",
    "SUFFIXES",
    "BodyFormat",
    "Bounds",
    "ClassLimits",
    "ColumnsRequest",
    "Document",
    "Evidence",
    "EvidenceFault",
    "Hold",
    "InvalidEvidenceError",
    "Kind",
    "TooLargeError",
    "UnreadableBodyError",
    "ask",
    "parse",
    "parse_batch",
    "read",
    "read_baseline",
    "read_columns",
    "read_matrices",
    "read_members",
    "read_pasted",
]
