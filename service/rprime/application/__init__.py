"""Answer the bytes of a request without HTTP: for the routes and for in-process use."""

from rprime.application.compare import compare_request
from rprime.application.lint import lint_request, plan_request
from rprime.application.request import EvaluationRequest, read_request
from rprime.application.slice_search import search_request

__all__ = [
    "EvaluationRequest",
    "compare_request",
    "lint_request",
    "plan_request",
    "read_request",
    "search_request",
]
