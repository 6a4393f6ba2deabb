"""The only reader of foreign bytes: what a request says, as confusion tables and items."""

from rprime.evidence.columns import ColumnsRequest, Hold
from rprime.evidence.document import Document, parse, parse_batch
from rprime.evidence.errors import (
    EvidenceFault,
    InvalidEvidenceError,
    TooLargeError,
    UnreadableBodyError,
)
from rprime.evidence.matrices import read_matrices
from rprime.evidence.pasted import read_pasted
from rprime.evidence.reader import ClassLimits, Evidence, read, read_baseline
from rprime.evidence.streams import EXTRA, MEDIA_TYPES, Bounds, Kind, ask, is_readable, read_columns

__all__ = [
    "EXTRA",
    "MEDIA_TYPES",
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
    "is_readable",
    "parse",
    "parse_batch",
    "read",
    "read_baseline",
    "read_columns",
    "read_matrices",
    "read_pasted",
]
