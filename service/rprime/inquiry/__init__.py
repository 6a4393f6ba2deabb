"""From the bytes of a request to its answer, without HTTP: for the routes and in-process."""

from rprime.inquiry.comparison import answer_comparison
from rprime.inquiry.reading import Inquiry, inquire, parsed, parsed_batch, understand
from rprime.inquiry.rehearsal import answer_lint

__all__ = [
    "Inquiry",
    "answer_comparison",
    "answer_lint",
    "inquire",
    "parsed",
    "parsed_batch",
    "understand",
]
